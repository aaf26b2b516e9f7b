"""A user's table with its bags and counts, read and checked: what ``fit`` and ``compare`` learn from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPWarning, UnknownNameError, UsageError
from llpbench.data.encoding.forms import as_frame, check_order, to_pandas
from llpbench.owndata.reading.arguments import read_count_sd
from llpbench.owndata.reading.bag_counts import BagCounts, BagIds, read_bag_ids, read_counts
from llpbench.owndata.reading.count_forms import looks_like_counts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BaggedTable:
    """The rows of all bags whose counts are known.

    Attributes:
        whole: all columns that were given.
        features: the columns to learn from.
        rows: (n,) number of each of these rows in the table that was given.
        given: number of rows of that table.
        bags: the bags of these rows.
        counts: (bags, 1) counts of class 1 for two classes, (bags, C) otherwise.
        classes: names of the classes.
        count_sd: standard deviation of the counts' noise; that of counts known within bounds is in it.
        notes: sentences on what was left out or filled in, and on columns that are the counts themselves.
    """

    whole: pd.DataFrame
    features: pd.DataFrame
    rows: IntArray
    given: int
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
    to_learn: bool = True,
) -> BaggedTable:
    """Read a table, its bags and their counts; arguments as those of ``llpbench.fit``.

    ``to_learn`` says that a model is to be fitted: counts may then not be all of one class.

    Rows of bags whose count is not known are left out. A count that is known within bounds is filled in
    (``owndata/reading/censored.py``). All counts have one standard deviation in the end, so its square is raised by
    the mean variance that is left between the bounds.

    Raises:
        UsageError: with what is wrong.
    """
    count_sd = read_count_sd(count_sd)
    frame = as_frame(X)
    check_order(bag_of, frame, "bag_of")
    table = _separate(frame, bag_of, counts, proportions)
    bags = read_bag_ids(table.bag_of, len(table.features))
    found = read_counts(
        table.values,
        bags,
        proportions=table.proportions,
        count_sd=count_sd,
        classes=classes,
        per_row=table.per_row,
        to_learn=to_learn,
        bag_column=bag_of if isinstance(bag_of, str) else getattr(to_pandas(bag_of), "name", None),
    )
    every_bag = BaggedTable(
        whole=frame,
        features=table.features,
        rows=np.arange(len(table.features)),
        given=len(table.features),
        bags=bags,
        counts=found.counts,
        classes=found.classes,
        count_sd=float(np.hypot(count_sd, found.sd)),
        notes=(*_notes(found, bags, count_sd), *_notes_on_columns(table.features, bags, found.counts)),
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


def _notes_on_columns(features: pd.DataFrame, bags: BagIds, counts: FloatArray) -> list[str]:
    """A sentence for each column that is the bags' counts or shares themselves, not a fact about rows."""
    import pandas as pd

    sizes = bags.sizes[:, None].astype(np.float64)
    known = np.hstack([counts, sizes - counts])
    known = np.hstack([known, known / sizes])
    told = [values[bags.numbers] for values in known.T if len(np.unique(values[~np.isnan(values)])) > 1]
    notes = []
    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
            continue
        own = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if any(_agree(own[:50], values[:50]) and _agree(own, values) for values in told):  # most differ at once
            notes.append(
                f"column {str(name)!r} holds the counts of the bags themselves: it is the same in all rows of a bag "
                "and tells none of them apart. Leave it out, or every method looks better than it is."
            )
    return notes


def _agree(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


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
        if list(frame.columns).count(name) > 1:
            raise UsageError(f"the table has several columns of the name {name!r}.")
        taken.append(name)
        return name

    if isinstance(bag_of, str):
        bag_of = frame[take(bag_of)]
    names = [values] if isinstance(values, str) else values
    per_row = are_names(names, frame)
    if per_row:
        values = frame[[take(name) for name in names]]
    return _Separated(frame.drop(columns=taken), bag_of, values, counts is None, per_row)


def are_names(values: Any, frame: pd.DataFrame) -> bool:
    """Whether values are names of columns: a list of texts, unless these are counts in words (``["<5", "7"]``)."""
    if isinstance(values, Mapping) or not isinstance(values, list | tuple) or not values:
        return False
    if not all(isinstance(name, str) for name in values):
        return False
    return any(name in frame.columns for name in values) or not looks_like_counts(values)
