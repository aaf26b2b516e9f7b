"""Compare the protocol of a publication with what a user gets: a method tuned with and without labels, and as shipped.

A publication that tunes and selects with labels of held-out rows reports numbers that cannot be reached without such
labels. So each line of these tables has, for one method in one setting: ours tuned and selected as the publication did,
its value, ours tuned and selected by other rules, and ours as shipped, selected on held-out bags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec

from llpbench.board.maths.bootstrap import METRIC, interval_over_rows
from llpbench.contracts.cell import SEARCHED
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import DEFAULT_RULE, Reference
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.report.render import Wanted
from llpbench.report.tables import Key, Table, make_entries, reasons_of
from llpbench.results.metric_style import MetricStyle
from llpbench.results.references import reference_for, references_of
from llpbench.results.store import Store
from llpbench.results.table import Group, Row, aggregate

Interval = Callable[[str, str], tuple[float, float] | None]
"""The 95 % interval over resampled test rows of a cell id under a rule, in the table's unit; None if there is none."""

_PUBLISHED, _SHIPPED = "published", "shipped"
_BRACKETS = "(…) is the standard deviation over seeds"
_INTERVAL = "[…] is the 95 % interval over resampled test rows, where there is one seed"


def run_tables(
    store: Store, planned: Iterable[Planned], results: Sequence[CellResult], wanted: Wanted, registry: Registry
) -> list[Table]:
    """The tables of a results folder (``llpbench table --kind protocol``); intervals are of AUROC only."""
    by_id = {result.id: result for result in results}
    scale = wanted.metric.scale

    def interval(cell_id: str, rule: str) -> tuple[float, float] | None:
        ends = interval_over_rows(store.predictions_path(cell_id), by_id[cell_id], rule)
        return None if ends is None else (scale * ends[0], scale * ends[1])

    rows = aggregate(planned, results, [wanted.metric], wanted.rules, wanted.roles)
    has_interval = wanted.metric.name == METRIC
    return protocol_tables(rows, registry.references(), wanted.metric, interval if has_interval else None)


def protocol_tables(
    rows: Iterable[Row], references: Sequence[Reference], metric: MetricStyle, interval: Interval | None = None
) -> list[Table]:
    """A table for each dataset, noise level and bag size: methods down, ways of tuning across.

    ``rows`` are aggregated results under every rule of a search; ``interval`` gives that of a single seed.
    """
    places: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if not row.oracle and _column(row):
            line = msgspec.structs.replace(row, method=line_of(row))
            places.setdefault((row.dataset, row.noise, row.bag_size), []).append(line)
    return [_table(group, references, metric, interval) for group in places.values()]


def _column(row: Row) -> str:
    """The column of a row: tuned and selected by its rule, or as shipped under the default rule; empty for neither."""
    origin = row.options.get("params", "")
    if row.rule == _PUBLISHED or origin == SEARCHED + row.rule:
        return row.rule
    return _SHIPPED if not origin and row.rule == DEFAULT_RULE else ""


def line_of(row: Row | Group) -> str:
    """The method as it is shown, without the search that its parameters come from."""
    option = f"params={row.options.get('params', '')}"
    found = (text for text in (f"[{option}]", f"{option};", f";{option}") if text in row.method)
    return row.method.replace(next(found, ""), "", 1)


def _table(group: list[Row], references: Sequence[Reference], metric: MetricStyle, interval: Interval | None) -> Table:
    first = group[0]
    lines = {row.method: row for row in group}
    known = references_of(references, first.dataset)
    found = {m: reference for m, row in lines.items() if (reference := reference_for(known, row)) is not None}
    published = [_published_row(lines[method], reference, metric) for method, reference in found.items()]
    entries = make_entries([*group, *published], metric, _column)
    notes = [_BRACKETS] if any(row.sd is not None for row in (*group, *published)) else []
    for row in group:
        ends = interval(row.cell_ids[0], row.rule) if interval and row.seeds == len(row.cell_ids) == 1 else None
        if ends is not None:
            place, n = (row.method, _column(row)), row.digits
            notes += [_INTERVAL] * (_INTERVAL not in notes)
            entries[place] = replace(entries[place], text=f"{entries[place].text} [{ends[0]:.{n}f}, {ends[1]:.{n}f}]")
    return Table(
        about=(first.dataset, first.bags_name, *([] if first.noise == "none" else [f"noise {first.noise}"])),
        rule="",
        what=metric.title,
        columns=_columns(group, list(found.values())),
        methods=list(lines),
        entries=entries,
        bounds=[],
        notes=[*notes, *reasons_of(group)],
    )


def _published_row(row: Row, reference: Reference, metric: MetricStyle) -> Row:
    """A published value as a row of the table; if none was printed, the status is what the publication says."""
    values = [] if reference.mean is None else [reference.mean * metric.scale]
    return msgspec.structs.replace(
        row,
        rule=_PUBLISHED,
        mean=values[0] if values else None,
        sd=None if reference.sd is None else reference.sd * metric.scale,
        values=values,
        value_seeds=list(range(len(values))),
        seeds=len(values),
        planned=len(values),
        status="ok" if values else reference.note or "no value",
    )


def _columns(group: list[Row], found: list[Reference]) -> dict[Key, str]:
    """Headings: the rules of publications and their values first, then other rules, then as shipped."""
    there = dict.fromkeys(map(_column, group))
    theirs = [rule for rule in dict.fromkeys(reference.rule for reference in found) if rule in there]
    others = [rule for rule in there if rule not in (*theirs, _SHIPPED)]
    columns: dict[Key, str] = {rule: _tuned_by(rule) for rule in theirs}
    if found:
        columns[_PUBLISHED] = ", ".join(dict.fromkeys(reference.source for reference in found))
    columns.update({rule: _tuned_by(rule) for rule in others})
    if _SHIPPED in there:
        columns[_SHIPPED] = f"as shipped, selected by {DEFAULT_RULE}"
    return columns


def _tuned_by(rule: str) -> str:
    return f"tuned and selected by {rule}"
