"""Tables as a paper prints them: methods down, bag sizes across, mean (sd), best bold, second underlined."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from llpbench.report.aggregate import MetricStyle, Row

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Entry:
    """One printed entry."""

    text: str
    mark: Mark = ""
    number: bool = True


@dataclass(frozen=True)
class Table:
    """One table: a dataset under one noise level, one selection rule and one metric."""

    dataset: str
    noise: str
    rule: str
    metric: MetricStyle
    bag_sizes: list[int]
    methods: list[str]
    entries: dict[tuple[str, int], Entry]
    bounds: list[str]
    notes: list[str]

    @property
    def title(self) -> str:
        """What the numbers are, how they were selected, and the bound."""
        parts = [self.dataset, self.metric.title, f"selection rule: {self.rule}"]
        if self.noise != "none":
            parts.insert(1, f"noise {self.noise}")
        return " · ".join([*parts, *self.bounds])

    def row(self, method: str) -> list[Entry]:
        """The entries of a method, an empty one where the plan has no such cell."""
        return [self.entries.get((method, size), Entry("", number=False)) for size in self.bag_sizes]


def format_value(row: Row) -> str:
    """``mean (sd)``; the seeds behind it when some are missing; the status when there is no number."""
    if row.mean is None:
        return row.status
    text = f"{row.mean:.2f}" + (f" ({row.sd:.2f})" if row.sd is not None else "")
    return text if row.status == "ok" else f"{text} [{row.seeds}/{row.planned}]"


def build_tables(rows: Iterable[Row], metric: MetricStyle) -> list[Table]:
    """One table for each dataset, noise level and rule, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.metric == metric.name:
            groups.setdefault((row.dataset, row.noise, row.rule), []).append(row)
    return [_table(key, group, metric) for key, group in groups.items()]


def _table(key: tuple[str, str, str], rows: list[Row], metric: MetricStyle) -> Table:
    dataset, noise, rule = key
    plain = [row for row in rows if not row.oracle]
    bounds = {row.method: f"{row.method} {format_value(row)}" for row in rows if row.oracle}
    marks = _marks(plain, metric.higher_is_better)
    entries = {
        (row.method, row.bag_size): Entry(
            format_value(row), marks.get((row.method, row.bag_size), ""), row.mean is not None
        )
        for row in plain
    }
    notes = [
        f"{row.method}{'' if row.oracle else f', bag size {row.bag_size}'}: {row.status}: {reason}"
        for row in rows
        if row.status != "ok"
        for reason in row.reasons
    ]
    return Table(
        dataset=dataset,
        noise=noise,
        rule=rule,
        metric=metric,
        bag_sizes=sorted({row.bag_size for row in plain}),
        methods=list(dict.fromkeys(row.method for row in plain)),
        entries=entries,
        bounds=list(bounds.values()),
        notes=list(dict.fromkeys(notes)),
    )


def _marks(rows: list[Row], higher_is_better: bool) -> dict[tuple[str, int], Mark]:
    """Best and second of each column among methods that have all seeds; ties share a mark, a lone method has none."""
    marks: dict[tuple[str, int], Mark] = {}
    for size in {row.bag_size for row in rows}:
        column = [row for row in rows if row.bag_size == size and row.mean is not None and row.status == "ok"]
        if len(column) < 2:
            continue
        ranked = sorted({round(row.mean or 0.0, 10) for row in column}, reverse=higher_is_better)
        for row in column:
            rank = ranked.index(round(row.mean or 0.0, 10))
            if rank < 2:
                marks[(row.method, size)] = "best" if rank == 0 else "second"
    return marks


def to_markdown(tables: Iterable[Table]) -> str:
    """GitHub Markdown; the second is underlined with HTML, which Markdown lacks."""
    style = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
    return "\n\n".join(f"**{t.title}**\n\n{_grid(t, 'github', style)}{_notes(t)}" for t in tables)


def to_latex(tables: Iterable[Table]) -> str:
    """LaTeX with booktabs rules."""
    style = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    return "\n\n".join(f"% {t.title}\n{_booktabs(_grid(t, 'latex_raw', style, _latex))}" for t in tables)


def to_csv(rows: Iterable[Row]) -> str:
    """One line for each entry, all digits."""
    columns = [
        "dataset",
        "method",
        "bag_size",
        "noise",
        "rule",
        "metric",
        "mean",
        "sd",
        "seeds",
        "planned",
        "status",
        "unit",
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if (value := getattr(row, name)) is None else value for name in columns])
    return out.getvalue().rstrip("\n")


def to_json(rows: Iterable[Row]) -> str:
    """A list of objects, one for each entry."""
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1).decode()


def _grid(table: Table, fmt: str, style: dict[str, str], escape: object = None) -> str:
    from tabulate import tabulate

    def clean(text: str) -> str:
        return escape(text) if callable(escape) else text.replace("|", r"\|")

    body = [
        [clean(method), *(style[entry.mark].format(clean(entry.text)) for entry in table.row(method))]
        for method in table.methods
    ]
    headers = ["method", *(f"bag {size}" for size in table.bag_sizes)]
    return tabulate(
        body,
        headers=headers,
        tablefmt=fmt,
        disable_numparse=True,
        colalign=["left", *["right"] * len(table.bag_sizes)] if body else None,
    )


def _notes(table: Table) -> str:
    return "".join(f"\n\n- {note}" for note in table.notes)


def _booktabs(text: str) -> str:
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        text = text.replace(r"\hline", rule, 1)
    return text


def _latex(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text
