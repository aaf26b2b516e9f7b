"""The tables of a suite in every format; LaTeX (booktabs) and Markdown have an appendix of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from llpbench.board.suites.tables import PaperTable, paper_tables, parameters_of, shown_cells
from llpbench.contracts.result import CellResult
from llpbench.experiment.suites.file import Suite
from llpbench.experiment.suites.plan import Limits, plan_suite
from llpbench.plugins.registry import Registry
from llpbench.report.render import choose, table_rows
from llpbench.report.tables import LATEX_STYLE, Table, latex_text, markdown_text, rows_as_text, to_markdown

Parameters = Mapping[str, Mapping[str, str]]


def suite_tables(
    suite: Suite,
    part: str,
    own: Sequence[CellResult],
    published: Sequence[CellResult],
    metric: str,
    rule: str,
    fmt: str,
    registry: Registry,
) -> list[Table] | str:
    """The tables of a suite, or of a part: for the terminal, or as text in a file format; empty without a number."""
    shown = shown_cells(plan_suite(suite, registry, Limits(part=part)), own, published)
    results = list({result.id: result for result in (*published, *own)}.values())
    wanted = choose(registry, results, metric, rule, paper=True)
    tables = paper_tables(suite, shown, results, wanted, registry)
    if not tables or fmt == "terminal":
        return list(map(with_caption, tables))
    if fmt in ("latex", "markdown"):
        as_text = paper_latex if fmt == "latex" else paper_markdown
        return as_text(suite, tables, parameters_of(suite, shown, tables))
    rows = [row for of_part in shown for row in table_rows(of_part.planned, results, wanted)]
    different = {msgspec.json.encode(row): row for row in rows}  # parts may share cells
    return rows_as_text(different.values(), fmt)


def paper_latex(suite: Suite, tables: Iterable[PaperTable], parameters: Parameters) -> str:
    r"""All tables and the appendix; the document needs ``\usepackage{booktabs,adjustbox}``."""
    head = [rf"% {_line(suite.citation)}", r"% needs: \usepackage{booktabs,adjustbox}"]
    head += [f"% {suite.name} is {suite.state}"] if not suite.published else []
    return "\n\n".join(["\n".join(head), *(_latex(suite, table) for table in tables), _appendix(suite, parameters)])


def paper_markdown(suite: Suite, tables: Iterable[PaperTable], parameters: Parameters) -> str:
    """The same as GitHub Markdown."""
    rows = [f"| {markdown_text(m)} | {markdown_text(_values(v))} |" for m, v in parameters.items()]
    appendix = [f"**{markdown_text(_appendix_caption(suite))}**", "", "| method | parameters |", "|:--|:--|", *rows]
    return "\n\n".join([to_markdown(map(with_caption, tables)), "\n".join(appendix)])


def with_caption(paper: PaperTable) -> Table:
    """A table whose notes begin with its caption, for a terminal or Markdown."""
    return replace(paper.table, notes=[*paper.sentences, *paper.table.notes])


def _latex(suite: Suite, paper: PaperTable) -> str:
    widths = [len(span.columns) for span in paper.spans]
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize",
        rf"\caption{{{latex_text(' '.join(paper.sentences))}}}",
        rf"\label{{tab:{_label(suite, paper.name)}}}",
        r"\begin{adjustbox}{max width=\textwidth}",
        rf"\begin{{tabular}}{{l{' '.join('r' * width for width in widths)}}}",
        r"\toprule",
    ]
    if len(paper.spans) > 1:
        headings = [rf"\multicolumn{{{len(s.columns)}}}{{c}}{{{latex_text(s.heading)}}}" for s in paper.spans]
        lines.append(_row(["", *headings]))
        ends = [1 + sum(widths[: i + 1]) for i in range(len(widths))]
        lines.append(" ".join(rf"\cmidrule(lr){{{end - n + 1}-{end}}}" for end, n in zip(ends, widths, strict=True)))
    lines.append(_row(["method", *(latex_text(heading) for span in paper.spans for heading in span.columns)]))
    for group in paper.groups.values():
        lines.append(r"\midrule")
        for method in group:
            entries = [LATEX_STYLE[entry.mark].format(latex_text(entry.text)) for entry in paper.table.row(method)]
            lines.append(_row([latex_text(method), *entries]))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}", r"\end{table*}"]
    return "\n".join([*lines, *(f"% {_line(note)}" for note in paper.table.notes)])


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _appendix(suite: Suite, parameters: Parameters) -> str:
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize",
        rf"\caption{{{latex_text(_appendix_caption(suite))}}}",
        rf"\label{{tab:{_label(suite, 'parameters')}}}",
        r"\begin{tabular}{lp{0.8\textwidth}}",
        r"\toprule",
        _row(["method", "parameters"]),
        r"\midrule",
        *(_row([latex_text(method), latex_text(_values(values))]) for method, values in parameters.items()),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines)


def _appendix_caption(suite: Suite) -> str:
    return (
        f"Parameters of the methods, as {suite.name} fixes them ({suite.frozen.by}). The same on every dataset and at "
        "every bag size."
    )


def _values(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"


def _label(suite: Suite, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.:]+", "-", f"{suite.name}-{name}").strip("-")


def _line(text: str) -> str:
    return " ".join(text.split())
