"""Tables: methods down, bag sizes across, mean (sd), best bold, second underlined."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from llpbench.report.levels import across_levels, on_common_seeds, usual_seeds
from llpbench.results.metric_style import TEST_ROWS, MetricStyle
from llpbench.results.naming import dataset_title, unusual_noise
from llpbench.results.shared import name_seeds, seeds_note, shared_keys, shared_means, unbeaten_control, usual_number
from llpbench.results.table import Row, roles_of
from llpbench.results.worth import at_as_many_labels, is_label_bound

Key = int | str
"""A column of a table: a bag size, a noise level, a dataset, a rule."""
Mark = Literal["", "best", "second"]
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "ε": r"$\varepsilon$",
    "·": r"$\cdot$",
}
_MARKDOWN = (
    ("\\", r"\\"),  # first: the others add some
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ("|", r"\|"),
    ("](", r"]\("),
    ("][", r"]\["),
    ("*", r"\*"),
    ("`", r"\`"),
)
LATEX_STYLE = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}


@dataclass(frozen=True)
class TableEntry:
    """One printed entry."""

    text: str
    mark: Mark = ""
    number: bool = True


_LONG_SCHEME = re.compile(r", .*(columns|times)=")


@dataclass(frozen=True)
class Table:
    """One table: methods down, bag sizes (or noise levels) across, under one selection rule and one metric.

    Attributes:
        about: the dataset, its noise, and the bag size if columns are noise levels.
        rule: the selection rule; empty if nothing is selected (times, pseudo-labels).
        columns: heading of each column by its key (bag size, noise level).
        entries: by method and column.
        bounds: the bounds in the heading, each with its value.
        sources: the publications whose values are shown in brackets.
    """

    about: tuple[str, ...]
    rule: str
    what: str
    columns: dict[Key, str]
    methods: list[str]
    entries: dict[tuple[str, Key], TableEntry]
    bounds: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The data, the metric, the selection rule, the bounds, and what is shown in brackets."""
        rule = [f"selection rule: {self.rule}"] if self.rule else []
        brackets = [f"[{source}, difference]" for source in self.sources]
        data, *about = self.about
        data = dataset_title(data) if _LONG_SCHEME.search(data) else data
        return " · ".join([data, *about, self.what, *rule, *self.bounds, *brackets])

    def row(self, method: str) -> list[TableEntry]:
        """The entries of a method, empty ones for cells that are not planned."""
        return [self.entries.get((method, key), TableEntry("", number=False)) for key in self.columns]


def format_value(row: Row, usual: int | None = None, shared: float | None = None, told: Sequence[int] = ()) -> str:
    """``mean (sd)`` with a note about its seeds if they are unusual; the status if there is no number.

    ``usual`` is the usual number of seeds of the column; for another number, the note also has ``shared``, the mean
    that is compared. ``told`` are the seeds in the title, which need no note.
    """
    if row.mean is None:
        return row.status
    n = row.digits
    text = f"{row.mean:.{n}f}" + (f" ({row.sd:.{n}f})" if row.sd is not None else "")
    partial = [] if row.status == "ok" else [f"{row.seeds}/{row.planned}"]
    picked = seeds_note(row.value_seeds, row.seeds if partial or usual is None else usual)
    said = [*partial, *([picked] if picked and sorted(row.value_seeds) != sorted(told) else [])]
    if said and shared is not None and f"{shared:.{n}f}" != f"{row.mean:.{n}f}":
        said.append(f"shared {shared:.{n}f}")
    text += f" [{', '.join(said)}]" if said else ""
    if row.paper is not None and row.paper_rule == row.rule:
        text += f" [{row.paper:.{n}f}, {row.mean - row.paper:+.{n}f}]"
    return text


def build_tables(rows: Iterable[Row], metric: MetricStyle) -> list[Table]:
    """One table for each dataset, noise level and rule, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.metric == metric.name:
            groups.setdefault((row.dataset, row.noise, row.rule), []).append(row)
    return [_score_table(group, metric) for group in groups.values()]


def build_noise_tables(rows: Iterable[Row], metric: MetricStyle) -> list[Table]:
    """Values by noise level: one table for each dataset, rule and bag size with several levels.

    Such a table compares noise levels of a method, so each method is shown on the seeds that it has at every level.
    """
    return [_noise_table(group, metric) for group in across_levels(row for row in rows if row.metric == metric.name)]


def _score_table(rows: list[Row], metric: MetricStyle) -> Table:
    plain = [row for row in rows if not row.oracle]
    told = _picked_by_all(plain)
    noise = [] if rows[0].noise == "none" else [f"noise {rows[0].noise}"]
    columns: dict[Key, str] = dict(sorted({row.bag_size: row.bags_name for row in plain}.items()))
    bounds = _bounds(rows, metric, told)
    return _table(plain, rows, metric, lambda row: row.bag_size, columns, told, (rows[0].dataset, *noise), bounds)


def _noise_table(group: list[Row], metric: MetricStyle) -> Table:
    levels = {row.noise: row for row in group}
    ordered = sorted(levels, key=lambda n: (-(levels[n].epsilon or float("inf")), n))
    cut = on_common_seeds(group)
    told = _picked_by_all(cut) if cut == group else usual_seeds(cut)
    words = "every method with the seeds that it has at all of its noise levels, so that a line can be read along"
    columns: dict[Key, str] = {noise: _noise_heading(levels[noise]) for noise in ordered}
    about, notes = (group[0].dataset, group[0].bags_name), [] if cut == group else [words]
    return _table(cut, group, metric, lambda row: row.noise, columns, told, about, [], notes)


def _table(
    shown: list[Row],
    rows: list[Row],
    metric: MetricStyle,
    key: Callable[[Row], Key],
    columns: dict[Key, str],
    told: Sequence[int],
    about: tuple[str, ...],
    bounds: list[str],
    notes: Sequence[str] = (),
) -> Table:
    return Table(
        about=(*about, *([name_seeds(told)] if told else [])),
        rule=rows[0].rule,
        what=metric.title,
        columns=columns,
        methods=list(dict.fromkeys(row.method for row in sorted(shown, key=lambda row: row.control))),
        entries=make_entries(shown, metric, key, told),
        bounds=bounds,
        notes=[*_control_notes(shown, metric, key, columns), *notes, *_unequal_seeds(shown), *reasons_of(rows)],
        sources=list(dict.fromkeys(r.paper_source for r in rows if r.paper is not None and r.paper_rule == r.rule)),
    )


def _noise_heading(row: Row) -> str:
    if row.epsilon is None:
        return "no noise"
    return ", ".join([f"ε = {row.epsilon:g}", *unusual_noise(row.mechanism, row.delta)])


def _bounds(rows: list[Row], metric: MetricStyle, told: Sequence[int]) -> list[str]:
    """The bounds with their values, one for each bag size if they differ; none for metrics of bags."""
    if metric.measured_on != TEST_ROWS:
        return []
    usual = usual_number(row.seeds for row in rows if not row.oracle)
    values = at_as_many_labels(rows, higher_is_better=metric.higher_is_better)
    one_by_one = not values
    for row in rows:
        if row.oracle and (one_by_one or not is_label_bound(row)):
            values.setdefault(row.method, {})[row.bags_name] = format_value(row, usual or None, told=told)
    bounds = []
    for method, found in values.items():
        several = len(set(found.values())) > 1
        words = [f"{value} ({bags})" if several else value for bags, value in found.items()]
        bounds.append(f"{method} {', '.join(dict.fromkeys(words))}")
    return bounds


def _picked_by_all(rows: list[Row]) -> tuple[int, ...]:
    """The seeds of all numbers if these are equal and not the first seeds; empty otherwise."""
    found = {tuple(row.value_seeds) for row in rows if row.value_seeds}
    (seeds,) = found if len(found) == 1 else [()]
    return seeds if seeds_note(seeds, len(seeds)) else ()


def make_entries(
    rows: list[Row], metric: MetricStyle, key: Callable[[Row], Key], told: Sequence[int] = ()
) -> dict[tuple[str, Key], TableEntry]:
    """The entries of rows by method and column, with the marks of each column.

    ``key`` gives the column of a row, ``told`` are the seeds in the title.
    """
    means = {column: _compared_means(rows, key, column) for column in {key(row) for row in rows}}
    usual = {column: 0 if told else usual_number(row.seeds for row in rows if key(row) == column) for column in means}
    controls = {row.method for row in rows if row.control}
    marks = {column: _marks(of, controls, metric.higher_is_better) for column, of in means.items()}
    entries = {}
    for row in rows:
        column = key(row)
        text = format_value(row, usual[column], means[column].get(row.method), told)
        entries[row.method, column] = TableEntry(text, marks[column].get(row.method, ""), row.mean is not None)
    return entries


def _marks(means: Mapping[str, float], controls: set[str], higher_is_better: bool) -> dict[str, Mark]:
    """Best and second of a column. Ties share a mark; controls and a single method have none."""
    rounded = {method: round(mean, 10) for method, mean in means.items() if method not in controls}
    ranked = sorted(set(rounded.values()), reverse=higher_is_better)[:2]
    if len(rounded) < 2:
        return {}
    return {m: "best" if mean == ranked[0] else "second" for m, mean in rounded.items() if mean in ranked}


def _compared_means(rows: list[Row], key: Callable[[Row], Key], column: Key) -> dict[str, float]:
    """The means of a column over the seeds that methods share, by method (``results.shared``)."""
    there = {row.method: row for row in rows if row.mean is not None and row.compared and key(row) == column}
    values = {method: dict(zip(row.value_seeds, row.values, strict=True)) for method, row in there.items()}
    return shared_means(values, {m: row.base_method for m, row in there.items()}, roles_of(there.values()))


def _control_notes(
    rows: list[Row], metric: MetricStyle, key: Callable[[Row], Key], columns: Mapping[Key, str]
) -> list[str]:
    """Notes that name the controls, and the columns in which no method is better than one of them."""
    names = dict.fromkeys(row.method for row in rows if row.control)
    notes = [f"controls, which are yardsticks and get no mark: {', '.join(names)}"] if names else []
    unbeaten: dict[str, list[str]] = {}
    for column, heading in columns.items():
        control = unbeaten_control(_compared_means(rows, key, column), names, metric.higher_is_better)
        if control is not None:
            unbeaten.setdefault(control, []).append(heading)
    return notes + [f"no method is better than the control {m}: {', '.join(of)}" for m, of in unbeaten.items()]


def _unequal_seeds(rows: list[Row]) -> list[str]:
    """A note on the seeds that are compared if methods of a column have different seeds."""
    settings: dict[tuple[str, int], dict[str, list[int]]] = {}
    for row in rows:
        if row.compared:
            settings.setdefault((row.noise, row.bag_size), {})[row.method] = row.value_seeds
    unequal = [of for of in settings.values() if len({tuple(sorted(seeds)) for seeds in of.values() if seeds}) > 1]
    if not unequal:
        return []
    variant_of = {row.method: row.base_method for row in rows}
    shared = [shared_keys(of, variant_of, roles_of(rows)) for of in unequal]
    seeds = " or ".join(dict.fromkeys(", ".join(map(str, sorted(s.keys))) or "none" for s in shared))
    left = sorted({m for of, s in zip(unequal, shared, strict=True) for m in of if of[m] and m not in s.methods})
    out = f"; not compared, for lack of some of them: {', '.join(left)}" if left else ""
    return [f"where seeds differ, best and second are those of the seeds that methods share ({seeds}){out}"]


def reasons_of(rows: list[Row]) -> list[str]:
    """Why entries have no number, and by which rule published values were selected; each once."""
    notes = []
    for row in rows:
        size = f"bag size {row.bag_size}" if row.bag_size else row.bags_name
        where = row.method if row.oracle else f"{row.method}, {size}"
        notes += [f"{where}: {row.status}: {reason}" for reason in row.reasons if row.status != "ok"]
    notes += [
        f"{row.method}: another rule chose its parameters; compared under that rule alone"
        for row in rows
        if not row.compared
    ]
    notes += [
        f"{row.paper_source} selected by {row.paper_rule!r}: its values stand beside those of that rule"
        for row in rows
        if row.paper is not None and row.paper_rule != row.rule
    ]
    return list(dict.fromkeys(notes))


def to_markdown(tables: Iterable[Table]) -> str:
    """GitHub Markdown; the second is underlined with HTML, because Markdown has no underline."""
    style = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
    return "\n\n".join(
        f"**{markdown_text(t.title)}**\n\n{_grid(t, 'github', style, markdown_text)}"
        + "\n" * bool(t.notes)
        + "".join(f"\n- {markdown_text(note)}" for note in t.notes)
        for t in tables
    )


def to_latex(tables: Iterable[Table]) -> str:
    """LaTeX with booktabs rules."""
    made = []
    for table in tables:
        text = _grid(table, "latex_raw", LATEX_STYLE, latex_text)
        for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
            text = text.replace(r"\hline", rule, 1)
        made.append(f"% {' '.join(table.title.split())}\n{text}")
    return "\n\n".join(made)


def _grid(table: Table, fmt: str, style: dict[str, str], clean: Callable[[str], str]) -> str:
    from tabulate import tabulate

    body = [
        [clean(method), *(style[entry.mark].format(clean(entry.text)) for entry in table.row(method))]
        for method in table.methods
    ]
    headers = ["method", *map(clean, table.columns.values())]
    align = ["left", *["right"] * len(table.columns)] if body else None
    return tabulate(body, headers=headers, tablefmt=fmt, disable_numparse=True, colalign=align)


_COLUMNS = [
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
_ENTRY = ("table", "line", "column", "entry")


def rows_as_text(rows: Iterable[Row], fmt: str) -> str:
    """Rows with all their digits: a line for each as ``csv``, an object for each as ``json``."""
    rows = list(rows)
    if fmt == "json":
        return json_text(rows)
    published = any(row.paper is not None for row in rows)
    columns = [*_COLUMNS, *(["paper", "paper_sd", "paper_rule", "paper_source"] if published else [])]
    return csv_text(columns, ([getattr(row, name) for name in columns] for row in rows))


def entries_as_text(tables: Iterable[Table], fmt: str) -> str:
    """The printed entries of tables that are not made of rows (times, pseudo-labels), as ``csv`` or ``json``."""
    lines = [
        (t.title, line, heading, entry.text)
        for t in tables
        for line in t.methods
        for heading, entry in zip(t.columns.values(), t.row(line), strict=True)
    ]
    if fmt == "json":
        return json_text([dict(zip(_ENTRY, line, strict=True)) for line in lines])
    return csv_text(_ENTRY, lines)


def csv_text(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Lines as CSV under a heading; None is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in line] for line in lines)
    return out.getvalue().rstrip("\n")


def json_text(content: object) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1).decode()


def latex_text(text: str) -> str:
    """Text with all special characters of LaTeX escaped."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_text(text: str) -> str:
    """Text with HTML, columns and links of Markdown escaped."""
    for special, safe in _MARKDOWN:
        text = text.replace(special, safe)
    text = " ".join(text.split())
    defines_a_link = text.startswith("[") and "]:" in text
    return f"\\{text}" if defines_a_link else text
