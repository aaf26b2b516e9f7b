"""Tables of methods tuned with labels, as published, tuned without labels, and at their defaults.

They are those of ``llpbench table --kind protocol``, on the seeds for which parameters were searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llpbench.board.content.bootstrap import Replicates
from llpbench.board.content.folder import Content
from llpbench.board.content.searches import is_tuned
from llpbench.board.maths.bootstrap import METRIC, interval_of
from llpbench.board.protocol_tables import Interval, line_of, protocol_tables
from llpbench.board.schema import ProtocolLine, ProtocolTable
from llpbench.experiment.tuned import History, tuned_setting
from llpbench.report.tables import Table
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Group, make_rows, value_of


def board_protocol(
    groups: Sequence[Group], content: Content, styles: Sequence[MetricStyle], rules: Sequence[str]
) -> list[Table]:
    """A table for every setting in which parameters were searched."""
    style = next((style for style in styles if style.name == METRIC), None)
    if style is None:
        return []
    settings: dict[object, list[Group]] = {}
    for group in _on_searched_seeds(groups):
        settings.setdefault(group.setting, []).append(group)
    interval = _interval(groups, style, content.replicates)
    tables = []
    for found in settings.values():
        (table,) = protocol_tables(make_rows(found, [style], rules), content.facts.references, style, interval)
        tables.append(replace(table, notes=[_terms(found, content.searches.values()), *table.notes]))
    return tables


def _terms(groups: Sequence[Group], searches: Iterable[History]) -> str:
    """The seeds of a table, and the number of trials of each method."""
    seeds = sorted({plan.cell.seed for group in groups for plan in group.plans})
    searched = {tuned_setting(result.cell).id: line_of(g) for g in groups if _is_searched(g) for result in g.fine}
    trials: dict[str, set[int]] = {}
    for history in searches:
        line = searched.get(tuned_setting(history.setting.cell).id)
        if line is not None:
            trials.setdefault(line, set()).add(len(history.trials))
    numbers = {method: "/".join(map(str, sorted(found))) for method, found in sorted(trials.items())}
    words = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    if len(set(numbers.values())) == 1:
        return f"{words}; {next(iter(numbers.values()))} trials for each method"
    told = ", ".join(f"{method} {number}" for method, number in numbers.items()) or "not shown"
    return f"{words}; trials: {told}"


def table_data(table: Table) -> ProtocolTable:
    """A table as plain data, for the page."""
    return ProtocolTable(
        title=" · ".join((*table.about, table.what)),
        columns=list(table.columns.values()),
        lines=[
            ProtocolLine(method=method, texts=[e.text for e in entries], marks=[e.mark for e in entries])
            for method, entries in ((method, table.row(method)) for method in table.methods)
        ],
        notes=table.notes,
    )


def _on_searched_seeds(groups: Sequence[Group]) -> list[Group]:
    """Groups of methods and settings with a search, on the seeds that all searches of the setting have."""
    seeds: dict[object, set[int]] = {}
    lines: set[object] = set()
    for group in groups:
        if _is_searched(group):
            there = {result.cell.seed for result in group.fine}
            seeds[group.setting] = seeds.get(group.setting, there) & there
            lines.add((group.setting, line_of(group)))
    kept = [_only(group, seeds[group.setting]) for group in groups if (group.setting, line_of(group)) in lines]
    return [group for group in kept if group.plans]


def _is_searched(group: Group) -> bool:
    return any(is_tuned(plan.cell) for plan in group.plans)


def _only(group: Group, seeds: set[int]) -> Group:
    kept = [i for i, plan in enumerate(group.plans) if plan.cell.seed in seeds]
    return replace(group, plans=[group.plans[i] for i in kept], results=[group.results[i] for i in kept])


def _interval(groups: Sequence[Group], style: MetricStyle, replicates: Mapping[str, Replicates]) -> Interval:
    by_id = {result.id: result for group in groups for result in group.fine}

    def interval(cell_id: str, rule: str) -> tuple[float, float] | None:
        value = value_of(by_id[cell_id], METRIC, rule) if cell_id in by_id else None
        found = replicates[cell_id].values(rule) if cell_id in replicates else None
        ends = None if value is None or found is None else interval_of(value, found)
        return None if ends is None else (style.scale * ends[0], style.scale * ends[1])

    return interval
