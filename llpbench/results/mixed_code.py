"""Which rows of a table hold seeds that were computed by different code."""

from __future__ import annotations

from collections.abc import Iterable

from llpbench.contracts.cell import setting_name
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.results.table import group_cells


def mixed_rows(planned: Iterable[Planned], results: Iterable[CellResult]) -> list[str]:
    """The rows whose seeds were computed by different code, in words, each with the parts that differ."""
    return [
        f"{group.method} on {setting_name(group.setting.dataset, group.setting.bag_size)} ({', '.join(parts)})"
        for group in group_cells(planned, results)
        if (parts := differing_parts(group.fine))
    ]


def differing_parts(results: Iterable[CellResult]) -> list[str]:
    """The parts of the code (``method``, ``harness``) that differ between results."""
    lines: dict[str, set[str]] = {}
    for result in results:
        for part, line in result.code.items():
            lines.setdefault(part, set()).add(line)
    return [part for part, found in lines.items() if len(found) > 1]
