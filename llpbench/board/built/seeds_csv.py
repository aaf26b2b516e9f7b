"""All seeds as CSV: a line for each published cell and selection rule, a column for each metric."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from llpbench.contracts.result import CellResult
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Group, value_of


def seeds_csv(groups: Iterable[Group], styles: Sequence[MetricStyle], rules: Sequence[str]) -> str:
    """The cells of groups with all digits, metrics as shares; a cell without a number has one line and no rule."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    facts = ("dataset", "method", "bag_size", "noise", "seed", "status", "rule")
    costs = ("fit_seconds", "peak_memory_mb", "machine", "id")
    writer.writerow([*facts, *(style.name for style in styles), *costs])
    for group in groups:
        setting = group.setting
        for result in sorted(group.found, key=lambda r: (r.cell.seed, r.id)):
            place = (setting.dataset, group.method, setting.bag_size, setting.noise_name, result.cell.seed)
            stated = [rule for rule in rules if rule in result.selected] if result.status == "ok" else [""]
            for rule in stated:
                numbers = [_text(value_of(result, style.name, rule)) for style in styles]
                writer.writerow([*place, result.status, rule, *numbers, *_costs(result)])
    return out.getvalue()


def _costs(result: CellResult) -> tuple[object, ...]:
    return (result.fit_seconds, result.peak_memory_mb, result.machine, result.id)


def _text(value: float | None) -> object:
    return "" if value is None else value
