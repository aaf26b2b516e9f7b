"""A cell as it is planned: with the names it is shown under."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from llpbench.contracts.cell import Cell
from llpbench.contracts.result import CellResult


class Planned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell of the manifest and the names it is shown under.

    Attributes:
        method_name: the method with the options that differ from its defaults; ``label`` in files.
        dataset_name: the dataset with all that makes its cells a table of their own, the bag scheme included;
            ``dataset_label`` in files.
        oracle: whether the method is given labels.
        tuning_seconds: what the search for its parameters took, when they were searched for.
    """

    cell: Cell
    method_name: str = msgspec.field(name="label")
    dataset_name: str = msgspec.field(name="dataset_label")
    oracle: bool = False
    tuning_seconds: float = 0.0

    @classmethod
    def of(cls, result: CellResult) -> Planned:
        """The plan that a result is of; one that holds no names is shown under those of its cell."""
        return cls(
            cell=result.cell,
            method_name=result.method_name or result.cell.method,
            dataset_name=result.dataset_name or result.cell.dataset,
            oracle=result.oracle,
            tuning_seconds=result.tuning_seconds,
        )


def without_trials(planned: Iterable[Planned]) -> list[Planned]:
    """The cells of a run without trials of a search; these where there is nothing else.

    Trials have no test scores, and the first of them has the name and the parameters of a cell of the run.
    """
    planned = list(planned)
    return [plan for plan in planned if not plan.cell.tuning] or planned
