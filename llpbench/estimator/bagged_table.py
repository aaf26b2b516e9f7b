"""A user's table with its bags and counts, read and checked: what ``fit`` and ``compare`` learn from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPWarning, UnknownNameError, UsageError
from llpbench.estimator.bag_counts import BagCounts, BagIds, read_bag_ids, read_counts
from llpbench.estimator.count_forms import looks_like_counts
from llpbench.estimator.forms import as_frame, to_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BaggedTable:
    """The rows of all bags whose counts are known.

    Attributes:
        whole: all columns that were given.
        features: the columns to learn from.
        rows: (n,) number of each of these rows in the table that was given.
        bags: the bags of these rows.
        counts: (bags, 1) counts of class 1 for two classes, (bags, C) otherwise.
        classes: names of the classes.
        count_sd: standard deviation of the counts' noise; that of counts known within bounds is in it.
        notes: sentences on what was left out or filled in.
    """

    whole: pd.DataFrame
    features: pd.DataFrame
    rows: IntArray
    bags: BagIds
    counts: FloatArray
    classes: list[Any]
    count_sd: float
    notes: tuple[str, ...] = ()

    def take(self, chosen: IntArray) -> BaggedTable:
        """The chosen bags (by number, in ascending order) and their rows."""
        rows = np.flatnonzero(np.isin(self.bags.numbers, chosen))
        return replace(
            self,
            whole=self.whole.iloc[rows],
            features=self.features.iloc[rows],
            rows=self.rows[rows],
            bags=take_bags(self.bags, chosen, rows),
            counts=self.counts[chosen],
        )

    def warn(self) -> None:
        """Give every note as a warning to the caller of the caller."""
        for note in self.notes:
            warnings.warn(note, LLPWarning, stacklevel=3)


def read_bagged_table(
    X: Any,
    bag_of: Any,
    counts: Any,
    proportions: Any,
    *,
    classes: Sequence[Any] | None = None,
    count_sd: float = 0.0,
) -> BaggedTable:
    """Read a table, its bags and their counts; arguments as those of ``llpbench.fit``.

    Rows of bags whose count is not known are left out. A count that is known within bounds is filled in
    (``estimator/censored.py``). All counts have one standard deviation in the end, so its square is raised by the mean
    variance that is left between the bounds.

    Raises:
        UsageError: with what is wrong.
    """
    if not (0.0 <= count_sd < np.inf):
        raise UsageError(f"count_sd must be a standard deviation, not {count_sd!r}.")
    frame = as_frame(X)
    table = _separate(frame, bag_of, counts, proportions)
    bags = read_bag_ids(table.bag_of, len(table.features))
    found = read_counts(
        table.values,
        bags,
        proportions=table.proportions,
        count_sd=count_sd,
        classes=classes,
        per_row=table.per_row,
        bag_column=bag_of if isinstance(bag_of, str) else getattr(to_pandas(bag_of), "name", None),
    )
    every_bag = BaggedTable(
        whole=frame,
        features=table.features,
        rows=np.arange(len(table.features)),
        bags=bags,
        counts=found.counts,
        classes=found.classes,
        count_sd=float(np.hypot(count_sd, found.sd)),
        notes=tuple(_notes(found, bags, count_sd)),
    )
    return every_bag if found.known.all() else every_bag.take(np.flatnonzero(found.known))


def take_bags(bags: BagIds, chosen: IntArray, rows: IntArray) -> BagIds:
    """The chosen bags, numbered anew; ``rows`` are theirs."""
    ids = [bags.ids[b] for b in chosen]
    return BagIds(ids, np.searchsorted(chosen, bags.numbers[rows]), bags.sizes[chosen], bags.ordered)


def _notes(found: BagCounts, bags: BagIds, count_sd: float) -> list[str]:
    notes = []
    unknown, bounded, n = int((~found.known).sum()), int(found.bounded.sum()), len(bags.ids)
    if unknown:
        rows = int(bags.sizes[~found.known].sum())
        notes.append(
            f"the counts of {unknown:,} of {n:,} bags are not known: their {rows:,} rows are not learned from."
        )
    if bounded:
        notes.append(
            f"the counts of {bounded:,} of {n:,} bags are known within bounds only: they are filled in by what is "
            f"likely there; count_sd is {np.hypot(count_sd, found.sd):.3g} instead of {count_sd:.3g} for all bags."
        )
    return notes


@dataclass(frozen=True)
class _Separated:
    """A table whose features are apart from its bags and counts; ``per_row`` counts are columns of the table."""

    features: pd.DataFrame
    bag_of: Any
    values: Any
    proportions: bool
    per_row: bool


def _separate(frame: pd.DataFrame, bag_of: Any, counts: Any, proportions: Any) -> _Separated:
    """Take the columns that are named as bags, counts or proportions out of the features."""
    if (counts is None) == (proportions is None):
        raise UsageError("give either counts or proportions.")
    values = counts if counts is not None else proportions
    taken: list[str] = []

    def take(name: str) -> str:
        if name not in frame.columns:
            raise UnknownNameError("column of the table:", name, map(str, frame.columns))
        taken.append(name)
        return name

    if isinstance(bag_of, str):
        bag_of = frame[take(bag_of)]
    names = [values] if isinstance(values, str) else values
    per_row = _are_names(names, frame)
    if per_row:
        values = frame[[take(name) for name in names]]
    return _Separated(frame.drop(columns=taken), bag_of, values, counts is None, per_row)


def _are_names(values: Any, frame: pd.DataFrame) -> bool:
    """Whether values are names of columns: a list of texts, unless these are counts in words (``["<5", "7"]``)."""
    if isinstance(values, Mapping) or not isinstance(values, list | tuple) or not values:
        return False
    if not all(isinstance(name, str) for name in values):
        return False
    return any(name in frame.columns for name in values) or not looks_like_counts(values)
