"""A planned cell with its display names."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from llpbench.contracts.cell import Cell
from llpbench.contracts.result import CellResult


class Planned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell of the manifest and its display names.

    Attributes:
        method_name: the method with the options that differ from its defaults; ``label`` in files.
        dataset_name: the dataset with its options, bag scheme and so on; ``dataset_label`` in files.
        oracle: whether the method is given labels.
        tuning_seconds: the duration of the search for its parameters, if there was one.
    """

    cell: Cell
    method_name: str = msgspec.field(name="label")
    dataset_name: str = msgspec.field(name="dataset_label")
    oracle: bool = False
    tuning_seconds: float = 0.0

    @classmethod
    def of(cls, result: CellResult) -> Planned:
        """The plan of a result; without display names, those of its cell are used."""
        return cls(
            cell=result.cell,
            method_name=result.method_name or result.cell.method,
            dataset_name=result.dataset_name or result.cell.dataset,
            oracle=result.oracle,
            tuning_seconds=result.tuning_seconds,
        )


def without_trials(planned: Iterable[Planned]) -> list[Planned]:
    """The cells of a run without the trials of a search, which have no test scores; all if there are only trials."""
    planned = list(planned)
    return [plan for plan in planned if not plan.cell.tuning] or planned
