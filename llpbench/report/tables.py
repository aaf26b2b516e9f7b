"""Tables as a paper prints them: methods down, bag sizes across, mean (sd), best bold, second underlined."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from llpbench.report.levels import across_levels, on_common_seeds, usual_seeds
from llpbench.report.marks import Key, Mark, compared_means, control_notes, lines_of, marks_of
from llpbench.results.metric_style import TEST_ROWS, MetricStyle
from llpbench.results.naming import unusual_noise
from llpbench.results.shared import name_seeds, seeds_note, shared_keys, usual_number
from llpbench.results.table import Row, roles_of

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


@dataclass(frozen=True)
class Entry:
    """One printed entry."""

    text: str
    mark: Mark = ""
    number: bool = True


@dataclass(frozen=True)
class Table:
    """One table: methods down, bag sizes (or noise levels) across, under one selection rule and one metric.

    Attributes:
        about: what the table is of: the dataset, its noise, the bag size where columns are noise levels.
        rule: the selection rule; empty where nothing is selected (times, pseudo-labels).
        columns: heading of each column by its key (bag size, noise level).
        entries: by method and column.
        bounds: the bounds in the heading, each with its value.
        sources: the publications whose values stand in brackets beside ours.
    """

    about: tuple[str, ...]
    rule: str
    what: str
    columns: dict[Key, str]
    methods: list[str]
    entries: dict[tuple[str, Key], Entry]
    bounds: list[str]
    notes: list[str]
    sources: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What the numbers are, how they were selected, the bounds, and what stands in brackets."""
        rule = [f"selection rule: {self.rule}"] if self.rule else []
        brackets = [f"[{source}, difference]" for source in self.sources]
        return " · ".join([*self.about, self.what, *rule, *self.bounds, *brackets])

    def row(self, method: str) -> list[Entry]:
        """The entries of a method, an empty one where the plan has no such cell."""
        return [self.entries.get((method, key), Entry("", number=False)) for key in self.columns]


def format_value(row: Row, usual: int | None = None, shared: float | None = None, told: Sequence[int] = ()) -> str:
    """``mean (sd)`` and what must be said of its seeds; the status when there is no number.

    ``usual`` is the number of seeds that is usual in its column; another one is told, with ``shared``, the mean that is
    compared. ``told`` are seeds that the title names: nothing is said of these.
    """
    if row.mean is None:
        return row.status
    n = row.digits
    text = f"{row.mean:.{n}f}" + (f" ({row.sd:.{n}f})" if row.sd is not None else "")
    partial = [] if row.status == "ok" else [f"{row.seeds}/{row.planned}"]
    picked = seeds_note(row.value_seeds, row.seeds if partial or usual is None else usual)
    picked = "" if sorted(row.value_seeds) == sorted(told) else picked
    compared = [] if shared is None else [f"shared {shared:.{n}f}"] if f"{shared:.{n}f}" != f"{row.mean:.{n}f}" else []
    said = [*partial, *([picked] if picked else [])]
    said += compared if said else []
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
    return [_table(key, group, metric) for key, group in groups.items()]


def build_noise_tables(rows: Iterable[Row], metric: MetricStyle) -> list[Table]:
    """Values against the noise level: one table for each dataset, rule and bag size that has several levels.

    Such a table is read along its lines, so a method stands with the seeds that it has at every level.
    """
    return [_noise_table(group, metric) for group in across_levels(row for row in rows if row.metric == metric.name)]


def _noise_table(group: list[Row], metric: MetricStyle) -> Table:
    levels = {row.noise: row for row in group}
    ordered = sorted(levels, key=lambda n: (-(levels[n].epsilon or float("inf")), n))
    cut = on_common_seeds(group)
    told = _picked_by_all(cut) if cut == group else usual_seeds(cut)
    words = "every method with the seeds that it has at all of its noise levels, so that a line can be read along"
    columns: dict[Key, str] = {noise: _noise_heading(levels[noise]) for noise in ordered}
    return Table(
        about=(group[0].dataset, group[0].bags_name, *_seeds_words(told)),
        rule=group[0].rule,
        what=metric.title,
        columns=columns,
        methods=lines_of(group),
        entries=make_entries(cut, metric, lambda row: row.noise, told),
        bounds=[],
        notes=[
            *control_notes(cut, metric, lambda row: row.noise, columns),
            *([] if cut == group else [words]),
            *_unequal_seeds(cut),
            *reasons_of(group),
        ],
        sources=_sources(group),
    )


def _noise_heading(row: Row) -> str:
    if row.epsilon is None:
        return "no noise"
    return ", ".join([f"ε = {row.epsilon:g}", *unusual_noise(row.mechanism, row.delta)])


def _table(key: tuple[str, str, str], rows: list[Row], metric: MetricStyle) -> Table:
    dataset, noise, rule = key
    plain = [row for row in rows if not row.oracle]
    told = _picked_by_all(plain)
    columns: dict[Key, str] = dict(sorted({row.bag_size: row.bags_name for row in plain}.items()))
    return Table(
        about=(dataset, *([] if noise == "none" else [f"noise {noise}"]), *_seeds_words(told)),
        rule=rule,
        what=metric.title,
        columns=columns,
        methods=lines_of(plain),
        entries=make_entries(plain, metric, lambda row: row.bag_size, told),
        bounds=_bounds(rows, metric, told),
        notes=[
            *control_notes(plain, metric, lambda row: row.bag_size, columns),
            *_unequal_seeds(plain),
            *reasons_of(rows),
        ],
        sources=_sources(rows),
    )


def _bounds(rows: list[Row], metric: MetricStyle, told: Sequence[int]) -> list[str]:
    """The bounds with their values; none where numbers are of bags, which a bound has none of.

    Where whole bags are split a bound has a value for each size of them. Seeds are told where most numbers have others.
    """
    usual = usual_number(row.seeds for row in rows if not row.oracle)
    values: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.oracle and metric.measured_on == TEST_ROWS:
            values.setdefault(row.method, {})[row.bags_name] = format_value(row, usual or None, told=told)
    bounds = []
    for method, found in values.items():
        several = len(set(found.values())) > 1
        words = [f"{value} ({bags})" if several else value for bags, value in found.items()]
        bounds.append(f"{method} {', '.join(dict.fromkeys(words))}")
    return bounds


def _picked_by_all(rows: list[Row]) -> tuple[int, ...]:
    """The seeds behind every number, where all have the same and these are not the first ones; else none."""
    found = {tuple(row.value_seeds) for row in rows if row.value_seeds}
    (seeds,) = found if len(found) == 1 else [()]
    return seeds if seeds_note(seeds, len(seeds)) else ()


def _seeds_words(seeds: Sequence[int]) -> list[str]:
    return [name_seeds(seeds)] if seeds else []


def make_entries(
    rows: list[Row], metric: MetricStyle, key: Callable[[Row], Key], told: Sequence[int] = ()
) -> dict[tuple[str, Key], Entry]:
    """The entries of rows by method and column, with the marks of each column.

    ``key`` tells the column of a row, ``told`` are the seeds that the title names.
    """
    marks = marks_of(rows, metric.higher_is_better, key)
    means = {place: compared_means(rows, key, place) for place in {key(row) for row in rows}}
    usual = {place: 0 if told else usual_number(row.seeds for row in rows if key(row) == place) for place in means}
    return {
        (row.method, key(row)): Entry(
            format_value(row, usual[key(row)], means[key(row)].get(row.method), told),
            marks.get((row.method, key(row)), ""),
            row.mean is not None,
        )
        for row in rows
    }


def _sources(rows: list[Row]) -> list[str]:
    """The publications whose values are shown."""
    return list(dict.fromkeys(r.paper_source for r in rows if r.paper is not None and r.paper_rule == r.rule))


def _unequal_seeds(rows: list[Row]) -> list[str]:
    """Says how marks were given where methods of a column have other seeds than others."""
    places: dict[tuple[str, int], dict[str, list[int]]] = {}
    for row in rows:
        if row.compared:
            places.setdefault((row.noise, row.bag_size), {})[row.method] = row.value_seeds
    unequal = [of for of in places.values() if len({tuple(sorted(seeds)) for seeds in of.values() if seeds}) > 1]
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
    notes = [
        f"{row.method}{'' if row.oracle else f', {_size_words(row)}'}: {row.status}: {reason}"
        for row in rows
        if row.status != "ok"
        for reason in row.reasons
    ]
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


def _size_words(row: Row) -> str:
    return f"bag size {row.bag_size}" if row.bag_size else row.bags_name


def to_markdown(tables: Iterable[Table]) -> str:
    """GitHub Markdown; the second is underlined with HTML, which Markdown lacks."""
    style = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
    return "\n\n".join(
        f"**{markdown_text(t.title)}**\n\n{_grid(t, 'github', style, markdown_text)}{_notes(t)}" for t in tables
    )


def to_latex(tables: Iterable[Table]) -> str:
    """LaTeX with booktabs rules."""
    style = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    return "\n\n".join(
        f"% {' '.join(t.title.split())}\n{_booktabs(_grid(t, 'latex_raw', style, latex_text))}" for t in tables
    )


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
    rows = list(rows)
    if any(row.paper is not None for row in rows):
        columns += ["paper", "paper_sd", "paper_rule", "paper_source"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if (value := getattr(row, name)) is None else value for name in columns])
    return out.getvalue().rstrip("\n")


def entries_to_csv(tables: Iterable[Table]) -> str:
    """One line for each printed entry of tables that are not of rows (times, pseudo-labels)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "line", "column", "entry"])
    writer.writerows(_flat(tables))
    return out.getvalue().rstrip("\n")


def entries_to_json(tables: Iterable[Table]) -> str:
    """A list of objects, one for each printed entry."""
    names = ("table", "line", "column", "entry")
    found = [dict(zip(names, entry, strict=True)) for entry in _flat(tables)]
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode()


def _flat(tables: Iterable[Table]) -> list[tuple[str, str, str, str]]:
    return [
        (t.title, line, heading, entry.text)
        for t in tables
        for line in t.methods
        for heading, entry in zip(t.columns.values(), t.row(line), strict=True)
    ]


def to_json(rows: Iterable[Row]) -> str:
    """A list of objects, one for each entry."""
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1).decode()


def _grid(table: Table, fmt: str, style: dict[str, str], clean: Callable[[str], str]) -> str:
    from tabulate import tabulate

    body = [
        [clean(method), *(style[entry.mark].format(clean(entry.text)) for entry in table.row(method))]
        for method in table.methods
    ]
    headers = ["method", *map(clean, table.columns.values())]
    return tabulate(
        body,
        headers=headers,
        tablefmt=fmt,
        disable_numparse=True,
        colalign=["left", *["right"] * len(table.columns)] if body else None,
    )


def _notes(table: Table) -> str:
    return "\n" * bool(table.notes) + "".join(f"\n- {markdown_text(note)}" for note in table.notes)


def _booktabs(text: str) -> str:
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        text = text.replace(r"\hline", rule, 1)
    return text


def latex_text(text: str) -> str:
    """Text as LaTeX prints it; nothing in it can be a command."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_text(text: str) -> str:
    """Text as Markdown shows it; nothing in it can be HTML, a column or a link."""
    for special, safe in _MARKDOWN:
        text = text.replace(special, safe)
    text = " ".join(text.split())
    says_where_links_lead = text.startswith("[") and "]:" in text
    return f"\\{text}" if says_where_links_lead else text
