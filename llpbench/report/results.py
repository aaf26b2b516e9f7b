"""The results of a request, for a notebook: a pandas table of cells, and the tables and curves made from it."""

from __future__ import annotations

from pathlib import Path

from llpbench.contracts.result import FAILURES, CellResult
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.store import Store


class Results:
    """What became of the cells of a request."""

    def __init__(self, store: Store, planned: list[Planned], registry: Registry) -> None:
        self.store, self.planned, self.registry = store, planned, registry
        wanted = {plan.cell.id for plan in planned}
        self.results: list[CellResult] = [result for result in store.results() if result.id in wanted]

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.root

    @property
    def failed(self) -> int:
        """Cells that have no number though they should."""
        return sum(result.status in FAILURES for result in self.results)
