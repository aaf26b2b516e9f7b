"""Which methods, datasets, bag sizes and seeds are shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned


@dataclass(frozen=True)
class Filter:
    """What is shown; an empty collection stands for everything. Display names and registered names both match."""

    methods: Collection[str] = ()
    datasets: Collection[str] = ()
    bags: Collection[int] = ()
    seeds: Collection[int] = ()

    def keeps_setting(self, plan: Planned | CellResult) -> bool:
        """Whether the dataset, bag size and seed of a cell are wanted. A bound belongs to every bag size."""
        cell = plan.cell
        return (
            (not self.datasets or bool({plan.dataset_name, cell.dataset} & set(self.datasets)))
            and (not self.bags or plan.oracle or cell.bag_size in self.bags)
            and (not self.seeds or cell.seed in self.seeds)
        )

    def keeps_method(self, name: str, registered: str) -> bool:
        """Whether a method is wanted."""
        return not self.methods or bool({name, registered} & set(self.methods))

    def keeps(self, plan: Planned | CellResult) -> bool:
        """Whether a cell is wanted."""
        return self.keeps_setting(plan) and self.keeps_method(plan.method_name, plan.cell.method)
