"""Who is marked in a column of a table: best and second among methods; controls stand below, and get no mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from llpbench.results.metric_style import MetricStyle
from llpbench.results.shared import shared_means, unbeaten_control
from llpbench.results.table import Row, roles_of

Key = int | str
Mark = Literal["", "best", "second"]


def lines_of(rows: list[Row]) -> list[str]:
    """The methods in the order of the rows, then the controls."""
    return list(dict.fromkeys(row.method for row in sorted(rows, key=lambda row: row.control)))


def control_notes(
    rows: list[Row], metric: MetricStyle, key: Callable[[Row], Key], columns: Mapping[Key, str]
) -> list[str]:
    """Says which lines are controls, and in which columns no method is better than one of them."""
    names = dict.fromkeys(row.method for row in rows if row.control)
    notes = [f"controls, which are yardsticks and get no mark: {', '.join(names)}"] if names else []
    unbeaten: dict[str, list[str]] = {}
    for place, heading in columns.items():
        control = unbeaten_control(compared_means(rows, key, place), names, metric.higher_is_better)
        if control is not None:
            unbeaten.setdefault(control, []).append(heading)
    return notes + [f"no method is better than the control {m}: {', '.join(of)}" for m, of in unbeaten.items()]


def marks_of(rows: list[Row], higher_is_better: bool, key: Callable[[Row], Key]) -> dict[tuple[str, Key], Mark]:
    """Best and second of each column on the seeds that methods share.

    Ties share a mark; a lone method has none, and a control never.
    """
    marks: dict[tuple[str, Key], Mark] = {}
    for place in {key(row) for row in rows}:
        controls = {row.method for row in rows if row.control}
        means = {m: mean for m, mean in compared_means(rows, key, place).items() if m not in controls}
        if len(means) < 2:
            continue
        ranked = sorted({round(mean, 10) for mean in means.values()}, reverse=higher_is_better)
        for method, mean in means.items():
            rank = ranked.index(round(mean, 10))
            if rank < 2:
                marks[(method, place)] = "best" if rank == 0 else "second"
    return marks


def compared_means(rows: list[Row], key: Callable[[Row], Key], place: Key) -> dict[str, float]:
    """The means of a column that are compared, and those of its controls, by method (``results.shared``)."""
    there = [row for row in rows if row.mean is not None and row.compared]
    column = {row.method: row for row in there if key(row) == place}
    values = {m: dict(zip(r.value_seeds, r.values, strict=True)) for m, r in column.items()}
    variant_of = {m: r.base_method for m, r in column.items()}
    return shared_means(values, variant_of, roles_of(column.values()))
