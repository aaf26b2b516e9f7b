"""Read the bag of each row: the ids of bags, and the bags that each row is in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench.contracts.data import IntArray, Overlap
from llpbench.contracts.errors import UsageError
from llpbench.owndata.reading.forms import to_pandas

_SEVERAL = "If several columns define the bags, pass pandas.MultiIndex.from_frame(...) of them."


@dataclass(frozen=True)
class BagIds:
    """Which bag each row is in.

    With several groupings of the rows (``overlap``) a row has an entry for each bag that it is in.

    Attributes:
        ids: the bags' ids, sorted if possible, otherwise in order of appearance; of several groupings one after the
            other.
        numbers: (entries,) index of each entry's bag in ``ids``. Without overlap an entry is a row.
        sizes: (bags,) rows of each bag.
        ordered: whether the ids could be sorted, and are not categories with another order.
        overlap: the rows of the entries, and the groupings; None for a single one.
        marginal: whether several groupings are all by columns that are features.
    """

    ids: list[Hashable]
    numbers: IntArray
    sizes: IntArray
    ordered: bool
    overlap: Overlap | None = None
    marginal: bool = False

    @property
    def grouping_of(self) -> IntArray | None:
        """(bags,) the grouping of each bag, if there are several."""
        return None if self.overlap is None else self.overlap.grouping_of

    def entries(self, values: Any) -> Any:
        """The values of rows, entry by entry."""
        return values if self.overlap is None else values[self.overlap.members]

    def rows_of(self, chosen: IntArray) -> IntArray:
        """The rows of the chosen bags, ascending."""
        entries = np.flatnonzero(np.isin(self.numbers, chosen))
        return entries if self.overlap is None else np.unique(self.overlap.members[entries])

    def take(self, chosen: IntArray) -> BagIds:
        """The chosen bags (ascending), for the rows that are in one of them."""
        entries = np.flatnonzero(np.isin(self.numbers, chosen))
        overlap = self.overlap and Overlap(
            members=np.searchsorted(self.rows_of(chosen), self.overlap.members[entries]),
            grouping_of=self.overlap.grouping_of[chosen],
            groupings=self.overlap.groupings,
            count_sd=self.overlap.count_sd[chosen],
        )
        ids = [self.ids[b] for b in chosen]
        numbers = np.searchsorted(chosen, self.numbers[entries])
        return BagIds(ids, numbers, self.sizes[chosen], self.ordered, overlap, self.marginal)

    def of_grouping(self, g: int) -> tuple[IntArray, IntArray, IntArray]:
        """The numbers of a grouping's bags, and the rows and bags (counted from 0) of its entries."""
        if self.overlap is None:
            return np.arange(len(self.ids)), np.arange(len(self.numbers)), self.numbers
        bags = np.flatnonzero(self.overlap.grouping_of == g)
        entries = np.isin(self.numbers, bags)
        return bags, self.overlap.members[entries], np.searchsorted(bags, self.numbers[entries])


def read_bag_ids(bag_of: Any, rows: int) -> BagIds:
    """Number the bags of ``rows`` rows by their ids, which may be any hashable values."""
    given, categories = ids_of_rows(bag_of, rows)
    missing = sum(map(is_missing, given))
    if missing:
        raise UsageError(f"bag_of is missing for {missing:,} rows; every row must be in a bag.")
    try:
        unique = dict.fromkeys(given)
    except TypeError as error:
        raise UsageError(f"bag ids must be hashable ({error}).") from None
    try:
        ids, ordered = sorted(unique), True
    except TypeError:
        ids, ordered = list(unique), False
    ordered = ordered and (categories is None or [name for name in categories if name in unique] == ids)
    place = {bag: number for number, bag in enumerate(ids)}
    numbers = np.array([place[bag] for bag in given], np.int64)
    return BagIds(ids, numbers, np.bincount(numbers, minlength=len(ids)), ordered)


def ids_of_rows(bag_of: Any, rows: int) -> tuple[list[Any], list[Any] | None]:
    """The id of each row's bag, and the ordered categories if the ids are categorical."""
    import pandas as pd

    bag_of = to_pandas(bag_of)
    if isinstance(bag_of, np.ndarray) and bag_of.dtype.kind in "mM":
        bag_of = pd.Series(bag_of)  # numpy lists times in nanoseconds as integers
    if isinstance(bag_of, pd.DataFrame):
        raise UsageError(f"bag_of must have one id per row, got a table of {bag_of.shape[1]} columns. {_SEVERAL}")
    if not hasattr(bag_of, "__iter__"):
        raise UsageError(f"bag_of must be the bag of each of the {rows:,} rows, or the name of a column.")
    given = bag_of.tolist() if hasattr(bag_of, "tolist") else list(bag_of)
    if not isinstance(given, list) or len(given) != rows:
        length = len(given) if isinstance(given, list) else 1
        hint = f" {_SEVERAL}" if 1 < length < rows and all(isinstance(name, str) for name in given) else ""
        raise UsageError(f"bag_of must have one value for each of the {rows:,} rows, got {length:,} values.{hint}")
    dtype = getattr(bag_of, "dtype", None)
    return given, dtype.categories.tolist() if isinstance(dtype, pd.CategoricalDtype) else None


def is_missing(value: Any) -> bool:
    """Whether an id is None, NaN or one of pandas' missing values."""
    absent = value is None or type(value).__name__ in ("NAType", "NaTType")
    return absent or (isinstance(value, float) and value != value)
