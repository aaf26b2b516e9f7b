"""The block of a publication's protocol: methods tuned with and without labels, beside its values and as they are.

The tables are those of ``llpbench table --kind protocol``. A search is dear, so fewer seeds have one than have results
as shipped: here every column has the seeds that were searched, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from llpbench.contracts.cell import SEARCHED
from llpbench.contracts.specs import Reference
from llpbench.leaderboard.bootstrap import METRIC, Replicates, interval_of
from llpbench.leaderboard.schema import ProtocolLine, ProtocolTable
from llpbench.report.protocol import Interval, line_of, protocol_tables
from llpbench.report.tables import Table
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Group, make_rows, value_of


def board_protocol(
    groups: Sequence[Group],
    references: Sequence[Reference],
    styles: Sequence[MetricStyle],
    rules: Sequence[str],
    replicates: Mapping[str, Replicates],
) -> list[Table]:
    """Tables for every setting in which parameters were searched; none where there was no search."""
    style = next((style for style in styles if style.name == METRIC), None)
    if style is None:
        return []
    rows = make_rows(_on_searched_seeds(groups), [style], rules)
    return protocol_tables(rows, references, style, _interval(groups, style, replicates))


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
    """Of methods and settings with a search, the groups with the seeds that all searches of the setting have."""
    seeds: dict[object, set[int]] = {}
    lines: set[object] = set()
    for group in groups:
        if _is_searched(group):
            there = {result.cell.seed for result in group.fine}
            seeds[group.setting] = seeds.get(group.setting, there) & there
            lines.add((group.setting, line_of(group)))
    return [
        _only(group, seeds[group.setting])
        for group in groups
        if (group.setting, line_of(group)) in lines and seeds[group.setting]
    ]


def _is_searched(group: Group) -> bool:
    return group.options.get("params", "").startswith(SEARCHED)


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
