"""The tables of a suite for a paper: one for each dataset and noise level, one for natural bags.

Every table has the selection rule in its caption, published values in separate columns, and lines in three groups:
methods (best bold, second underlined), controls, and bounds. The seeds are those that all methods of the suite have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from llpbench.contracts.cell import OWN_SIZES, Cell
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Scalar
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.file import Suite, base_name
from llpbench.experiment.suites.plan import PlannedBlock, all_cells
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import Registry
from llpbench.report.render import Wanted
from llpbench.report.tables import Key, Table, TableEntry, make_entries, reasons_of
from llpbench.results.metric_style import MetricStyle
from llpbench.results.references import with_references
from llpbench.results.table import Row, Setting, aggregate, mean_sd, setting_of

MISSING = "missing"


@dataclass(frozen=True)
class ShownPart:
    """The cells of a part that its tables show.

    ``averages`` has the title of the block for each dataset of a block that is averaged.
    """

    part: str
    title: str
    planned: list[Planned]
    averages: dict[str, str]


@dataclass(frozen=True)
class Span:
    """Adjacent columns: ours, or those of a publication."""

    heading: str
    columns: list[str]


@dataclass(frozen=True)
class PaperTable:
    """A table with its caption.

    Attributes:
        name: for references to it: ``random-adult``.
        sentences: the caption.
        table: the entries; published values are in the last columns.
        spans: its columns, ours first.
        groups: its lines by role (``methods``, ``controls``, ``bounds``), without empty ones.
    """

    name: str
    sentences: list[str]
    table: Table
    spans: list[Span]
    groups: dict[str, list[str]]


def shown_cells(
    blocks: Iterable[PlannedBlock], own: Iterable[CellResult], published: Iterable[CellResult]
) -> list[ShownPart]:
    """The cells that the tables of each part show: the suite's cells, and those of other methods in the same settings.

    Published results add other methods; one's own results also add other settings of the suite's methods.
    """
    parts: dict[str, list[PlannedBlock]] = {}
    for block in blocks:
        parts.setdefault(block.part, []).append(block)
    own, published = list(own), list(published)
    shown = []
    for part, of_part in parts.items():
        cells = _with_equal_seeds(of_part)
        ids, places = {plan.cell.id for plan in cells}, {_place(plan.cell) for plan in cells if not plan.oracle}
        known = {plan.cell.method for block in of_part for plan in block.cells}
        others = [r for r in own if r.id not in ids] + [r for r in published if r.cell.method not in known]
        guests = _with_missing_seeds([r for r in others if not r.oracle and _place(r.cell) in places], cells)
        averages = {
            plan.dataset_name: block.block.title
            for block in of_part
            if block.block.average
            for plan in block.cells
            if not plan.oracle
        }
        shown.append(ShownPart(part, of_part[0].title, [*cells, *guests], averages))
    return shown


def _with_equal_seeds(blocks: Sequence[PlannedBlock]) -> list[Planned]:
    """The cells of a part, without the further seeds that only some methods have."""
    whole = [block for block in blocks if not block.block.methods]
    settings = {setting_of(plan) for block in whole for plan in block.cells}
    further = [plan for block in blocks if block.block.methods for plan in block.cells]
    cells = [*all_cells(whole), *(plan for plan in further if setting_of(plan) not in settings)]
    return list({plan.cell.id: plan for plan in cells}.values())


def _with_missing_seeds(guests: Iterable[CellResult], cells: Iterable[Planned]) -> list[Planned]:
    """The planned cells of other methods, including those of the suite's seeds that they lack."""
    seeds: dict[Setting, dict[int, None]] = {}
    for plan in cells:
        seeds.setdefault(setting_of(plan), {})[plan.cell.seed] = None
    found: dict[tuple[Setting, str, str], dict[int, Planned]] = {}
    for r in guests:
        found.setdefault((setting_of(r), r.method_name, r.cell.backend), {})[r.cell.seed] = Planned.of(r)
    planned = []
    for (setting, _, _), plans in found.items():
        first = next(iter(plans.values()))
        for seed in {**seeds.get(setting, {}), **dict.fromkeys(plans)}:
            moved = msgspec.structs.replace(first, cell=msgspec.structs.replace(first.cell, seed=seed))
            planned.append(plans.get(seed, moved))
    return planned


def _place(cell: Cell) -> str:
    """The id of a cell without its method: equal for cells with the same rows, bags, noise and seed."""
    return msgspec.structs.replace(cell, method="", params={}, backend="", preset="").id


def paper_tables(
    suite: Suite, shown: Iterable[ShownPart], results: Iterable[CellResult], wanted: Wanted, registry: Registry
) -> list[PaperTable]:
    """The tables of a suite under each wanted rule; those without a number are omitted."""
    results = [result for result in results if result.protocol == suite.protocol]
    made = []
    for part in shown:
        rows = aggregate(part.planned, results, [wanted.metric], wanted.rules, wanted.roles)
        rows = with_references(rows, wanted.references, wanted.metric.scale)
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in rows:
            natural = row.bag_size == OWN_SIZES
            groups.setdefault(("", "", row.rule) if natural else (row.dataset, row.noise, row.rule), []).append(row)
        for (dataset, noise, rule), group in groups.items():
            if any(row.mean is not None for row in group):
                made.append(_paper_table(suite, part, dataset, noise, rule, group, wanted, registry))
    return made


def _paper_table(
    suite: Suite,
    part: ShownPart,
    dataset: str,
    noise: str,
    rule: str,
    rows: list[Row],
    wanted: Wanted,
    registry: Registry,
) -> PaperTable:
    """One table; without a dataset its columns are the natural bags of a part, numbered."""
    legend: dict[str, str] = {}
    if not dataset:
        rows = _averaged(rows, part.averages)
        legend = {name: f"({n})" for n, name in enumerate(dict.fromkeys(row.dataset for row in rows), 1)}

    def column(row: Row) -> Key:
        return row.bag_size if dataset else row.dataset

    there = Counter(row.method for row in rows if row.status != MISSING)
    absent = list(dict.fromkeys(row.method for row in rows if not there[row.method]))
    rows = [row for row in rows if there[row.method]]
    groups = _by_role(rows, suite)
    plain = [msgspec.structs.replace(row, paper=None) for row in rows]
    entries: dict[tuple[str, Key], TableEntry] = {}
    for role, methods in groups.items():
        made = make_entries([row for row in plain if row.method in methods], wanted.metric, column)
        entries |= made if role == "methods" else {at: replace(entry, mark="") for at, entry in made.items()}
    keys: dict[Key, str] = {column(row): legend.get(row.dataset, row.bags_name) for row in rows}
    keys = dict(sorted(keys.items())) if dataset else keys
    spans = [Span(suite.name, list(keys.values()))]
    columns, sources = dict(keys), dict.fromkeys((r.paper_source, r.paper_rule) for r in rows if r.paper is not None)
    word = "published" if len(sources) == 1 else ""
    for source, by_rule in sources:
        found = [r for r in rows if r.paper is not None and (r.paper_source, r.paper_rule) == (source, by_rule)]
        of_source = [key for key in keys if key in {column(row) for row in found}]
        spans.append(Span(f"{source}, rule {by_rule}", [keys[key] for key in of_source]))
        columns |= {f"{source} {by_rule} {key}": f"{word or source}, {keys[key]}" for key in of_source}
        entries |= {(row.method, f"{source} {by_rule} {column(row)}"): TableEntry(_published(row)) for row in found}
    about = [f"{suite.name}/{part.part}", dataset or part.title]
    about += [_noise_words(rows[0])] if noise not in ("", "none") else []
    decided = _is_decided(wanted.metric, registry)
    sentences = [
        *_what(suite, about, rule, rows, wanted, registry),
        *_lines(groups),
        *(["[n/m]: n of m seeds have a number."] if any(row.status == "partial" for row in rows) else []),
        *(_of_source(source, by_rule, rule, decided) for source, by_rule in sources),
        *(
            [f"Columns: {'; '.join(_explained(number, name, rows, part) for name, number in legend.items())}."]
            * bool(legend)
        ),
    ]
    table = Table(
        about=tuple(about),
        rule=rule,
        what=wanted.metric.title,
        columns=columns,
        methods=[method for methods in groups.values() for method in methods],
        entries=entries,
        bounds=[],
        notes=[*([f"no result yet: {', '.join(absent)}"] if absent else []), *reasons_of(plain)],
    )
    name = [part.part, about[1], *([f"noise {noise}"] if noise not in ("", "none") else []), rule]
    return PaperTable("-".join(name), sentences, table, spans, groups)


def _noise_words(row: Row) -> str:
    """The noise with its privacy parameter: ``noise high (epsilon 1)``."""
    known = row.epsilon is None or row.noise.startswith("epsilon=")
    return f"noise {row.noise}" + ("" if known else f" (epsilon {row.epsilon:g})")


def _averaged(rows: list[Row], averages: dict[str, str]) -> list[Row]:
    """Rows with those of averaged datasets replaced by their mean, over datasets first, then over seeds."""
    kept: list[Row] = []
    found: dict[tuple[str, str], list[Row]] = {}
    datasets = Counter(averages.values())
    for row in rows:
        if row.dataset in averages:
            found.setdefault((averages[row.dataset], row.method), []).append(row)
        else:
            kept.append(row)
    return kept + [_mean_row(title, group, datasets[title]) for (title, _), group in found.items()]


def _mean_row(title: str, rows: list[Row], datasets: int) -> Row:
    """The mean over datasets for the seeds that every dataset has a number for."""
    by_seed: dict[int, list[float]] = {}
    for row in rows:
        for seed, value in zip(row.value_seeds, row.values, strict=True):
            by_seed.setdefault(seed, []).append(value)
    values = {seed: sum(v) / datasets for seed, v in sorted(by_seed.items()) if len(v) == datasets}
    mean, sd = mean_sd(list(values.values()))
    planned = max(row.planned for row in rows)
    worst = Counter(row.status for row in rows if row.status != "ok").most_common()
    status = "ok" if len(values) == planned else "partial" if values or not worst else worst[0][0]
    papers = [row.paper for row in rows if row.paper is not None]
    return msgspec.structs.replace(
        rows[0],
        dataset=title,
        mean=mean,
        sd=sd,
        values=list(values.values()),
        value_seeds=list(values),
        seeds=len(values),
        planned=planned,
        status=status,
        reasons=list(dict.fromkeys(reason for row in rows for reason in row.reasons)),
        paper=sum(papers) / datasets if len(papers) == datasets else None,
        paper_sd=None,
    )


ROLES = ("methods", "controls", "bounds")


def _by_role(rows: Iterable[Row], suite: Suite) -> dict[str, list[str]]:
    """Methods, controls and bounds in the suite's order, others after them; empty groups are omitted."""
    order = {base_name(text): n for n, text in enumerate(suite.methods)}
    places: dict[str, tuple[int, int]] = {}
    for row in rows:
        role = 2 if row.oracle else 1 if row.control else 0
        places.setdefault(row.method, (role, order.get(row.base_method, len(order))))
    names = sorted(places, key=lambda name: places[name])
    groups = {role: [name for name in names if places[name][0] == n] for n, role in enumerate(ROLES)}
    return {role: group for role, group in groups.items() if group}


def _what(
    suite: Suite, about: Sequence[str], rule: str, rows: Sequence[Row], wanted: Wanted, registry: Registry
) -> list[str]:
    """Sentences about the metric, the seeds and the selection rule."""
    seeds = sorted({seed for row in rows if not row.oracle for seed in row.value_seeds})
    said = [f"{', '.join(about[1:])}: {wanted.metric.title} ({about[0]}, protocol {suite.protocol})."]
    said.append(f"Mean (standard deviation) over seeds {', '.join(map(str, seeds))}.")
    if _is_decided(wanted.metric, registry):
        said.append("The class of a row is decided with the known overall rate, which needs no label.")
    if rule:
        spec = registry.rules[rule]
        labels = "labels of held-out rows" if spec.uses_labels else "no label of any row"
        said.append(f"Selection rule: {rule}, version {spec.version} (it uses {labels}).")
    return said


def _is_decided(metric: MetricStyle, registry: Registry) -> bool:
    """Whether a metric depends on decided classes of rows, and so on a threshold."""
    entry = registry.metrics.entries.get(metric.name)
    return entry is not None and entry.spec.needs == "decisions"


def _lines(groups: Mapping[str, Sequence[str]]) -> list[str]:
    said = []
    if len(groups.get("methods", ())) > 1:
        said.append("The best method of a column is bold, the second underlined.")
    words = {
        "controls": "controls: what one column, random labels or counts of other bags give",
        "bounds": "bounds, which are given labels",
    }
    below = [words[role] for role in groups if role in words]
    return said + ([f"Below the methods: {'; '.join(below)}."] if below else [])


def _explained(number: str, name: str, rows: Iterable[Row], part: ShownPart) -> str:
    """The legend of a numbered column; for a mean over datasets with their number and its seeds."""
    datasets = sum(title == name for title in part.averages.values())
    if not datasets:
        return f"{number} {name}"
    seeds = sorted({seed for row in rows if row.dataset == name for seed in row.value_seeds})
    return f"{number} {name} (the mean of {datasets}; seeds {', '.join(map(str, seeds)) or 'none'})"


def _of_source(source: str, by_rule: str, rule: str, decided: bool) -> str:
    other = "" if by_rule == rule else ", another rule than ours"
    threshold = "; classes were decided as their authors did" if decided else ""
    return f"{source}: published values, selected by rule {by_rule}{other}{threshold}."


def _published(row: Row) -> str:
    n = row.digits
    return f"{row.paper:.{n}f}" + (f" ({row.paper_sd:.{n}f})" if row.paper_sd is not None else "")


def parameters_of(suite: Suite, shown: Iterable[ShownPart], tables: Iterable[PaperTable]) -> dict[str, dict[str, str]]:
    """The parameters of every method in the tables, as frozen by the suite or, for other methods, from their cells."""
    in_tables = dict.fromkeys(method for table in tables for method in table.table.methods)
    cells: dict[str, list[Planned]] = {}
    for plan in (plan for part in shown for plan in part.planned):
        cells.setdefault(plan.method_name, []).append(plan)
    found: dict[str, dict[str, str]] = {}
    for method in in_tables:
        plans = cells.get(method, [])
        if method in suite.frozen.methods:
            values: dict[str, set[str]] = {k: {_text(v)} for k, v in suite.frozen.methods[method].items()}
        else:
            values = {}
            for plan in plans:
                for name, value in plan.cell.params.items():
                    values.setdefault(name, set()).add(_text(value))
        found[method] = {name: given.pop() if len(given) == 1 else "differs by cell" for name, given in values.items()}
    return found


def _text(value: Scalar) -> str:
    return format_scalar(value) or '""'
