"""A job: a cell and all that a process needs to run it, wherever it is."""

from __future__ import annotations

import msgspec

from llpbench.contracts.cell import Cell


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """When to give up a trial: ``limits[r]`` is what the best of its reports 0 to r must reach under the rule.

    Reports beyond the list are held to its last limit; None sets none.
    """

    rule: str
    limits: tuple[float | None, ...]

    def limit(self, report: int) -> float | None:
        """What the best of reports 0 to ``report`` must reach."""
        return self.limits[min(report, len(self.limits) - 1)] if self.limits else None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a worker process needs to run one cell, wherever it is."""

    cell: Cell
    method_name: str
    dataset_name: str
    out: str
    data: str = ""
    offline: bool = False
    plugins: tuple[str, ...] = ()
    override: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    threads: int = 1
    timeout: float = 3600.0
    memory_mb: float = 8192.0
    resources: dict[str, float] = {}
    predictions: bool = True
    prune: Prune | None = None
    tuning_seconds: float = 0.0
