"""Read and check a user's table, its bags and counts: the input of ``fit`` and ``compare``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.data.encoding.forms import as_frame, check_order, to_pandas
from llpbench.owndata.reading.arguments import are_names, check_column, check_width, read_classes
from llpbench.owndata.reading.bag_counts import BagCounts, BagIds, KnownCounts, read_bag_ids, read_counts

if TYPE_CHECKING:
    import pandas as pd

_MOST_LEVELS = 20
_FIRST = 1000
_WHOLE = 1e-6
_LEAST_BAGS = 3
"""Number of bags from which on the sums of a column do not equal the counts by chance."""


def as_python(value: Any) -> Any:
    """A numpy scalar as a Python scalar; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def read_whole(value: Any, name: str, least: int | None = None) -> int:
    """An integer argument as a Python int; raises ``UsageError`` if it is not one, or below ``least``."""
    number = as_python(value)
    whole = isinstance(number, int | float) and math.isfinite(number) and number == int(number)
    if not whole or (least is not None and number < least):
        wanted = "an integer" if least is None else f"an integer >= {least}"
        raise UsageError(f"{name} must be {wanted}, got {_shown(value)}.")
    return int(number)


def is_share(value: Any) -> bool:
    """Whether a value is a number strictly between 0 and 1."""
    number = as_python(value)
    return isinstance(number, int | float) and 0.0 < number < 1.0


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


@dataclass(frozen=True)
class BaggedTable:
    """The rows of all bags with known counts.

    Attributes:
        whole: all columns that were given.
        features: the feature columns.
        rows: (n,) number of each row in the table that was given.
        given: number of rows of that table.
        bags: the bags of these rows.
        counts: (bags, 1) counts of class 1 for two classes, (bags, C) otherwise.
        known: the bounds of the counts of all classes, and their noise.
        classes: names of the classes.
        count_sd: standard deviation of the counts, including that of counts known within bounds.
        every_row: the feature columns of all rows that were given.
        notes: sentences about bags that were left out, counts that were imputed, and columns that equal the counts.
    """

    whole: pd.DataFrame
    features: pd.DataFrame
    rows: IntArray
    given: int
    bags: BagIds
    counts: FloatArray
    known: KnownCounts
    classes: list[Any]
    count_sd: float
    every_row: pd.DataFrame
    notes: tuple[str, ...] = ()

    def take(self, chosen: IntArray) -> BaggedTable:
        """The chosen bags (by number, in ascending order) and their rows."""
        rows = np.flatnonzero(np.isin(self.bags.numbers, chosen))
        ids = [self.bags.ids[b] for b in chosen]
        numbers = np.searchsorted(chosen, self.bags.numbers[rows])
        return replace(
            self,
            whole=self.whole.iloc[rows],
            features=self.features.iloc[rows],
            rows=self.rows[rows],
            bags=BagIds(ids, numbers, self.bags.sizes[chosen], self.bags.ordered),
            counts=self.counts[chosen],
            known=self.known.take(chosen),
        )

    def warn(self) -> None:
        """Issue every note as a warning at the caller's caller."""
        for note in self.notes:
            warnings.warn(note, LLPWarning, stacklevel=3)


def read_bagged_table(
    X: Any,
    bag_of: Any,
    counts: Any,
    proportions: Any,
    *,
    classes: Sequence[Any] | None = None,
    count_sd: Any = 0.0,
    to_learn: bool = True,
) -> BaggedTable:
    """Read a table, its bags and their counts; arguments as those of ``llpbench.fit``.

    Rows of bags with unknown counts are left out. A count that is known within bounds is imputed
    (``owndata/reading/censored.py``). To methods all counts have one standard deviation, whose square is the mean of
    those of the bags and of the variances between the bounds. With ``to_learn``, counts of a single class are an error.
    """
    frame = as_frame(X)
    check_width(frame.shape[1], "columns")
    classes = read_classes(classes)
    check_order(bag_of, frame, "bag_of")
    if (counts is None) == (proportions is None):
        raise UsageError("give either counts or proportions.")
    values = counts if counts is not None else proportions
    taken: list[str] = []

    def take(name: str) -> str:
        check_column(name, frame)
        if list(frame.columns).count(name) > 1:
            raise UsageError(f"the table has several columns named {name!r}.")
        taken.append(name)
        return name

    bag_column = bag_of if isinstance(bag_of, str) else getattr(to_pandas(bag_of), "name", None)
    ids = frame[take(bag_of)] if isinstance(bag_of, str) else bag_of
    names = [values] if isinstance(values, str) else values
    per_row = are_names(names, frame)
    if per_row:
        values = frame[[take(name) for name in names]]
    features = frame.drop(columns=taken)
    bags = read_bag_ids(ids, len(features))
    found = read_counts(
        values,
        bags,
        proportions=counts is None,
        count_sd=count_sd,
        classes=classes,
        per_row=per_row,
        to_learn=to_learn,
        bag_column=bag_column,
    )
    usual = _usual(found.within.sd[found.known])
    every_bag = BaggedTable(
        whole=frame,
        features=features,
        rows=np.arange(len(features)),
        given=len(features),
        bags=bags,
        counts=found.counts,
        known=found.within,
        classes=found.classes,
        count_sd=float(np.hypot(usual, found.sd)),
        every_row=features,
        notes=(
            *_notes(found, bags, usual),
            *(_notes_on_fractions(found) if counts is not None else ()),
            *_notes_on_columns(features, bags, found.counts),
        ),
    )
    return every_bag if found.known.all() else every_bag.take(np.flatnonzero(found.known))


def _usual(noise: FloatArray) -> float:
    """The root mean square; exactly their value if all are equal."""
    return float(noise[0]) if (noise == noise[0]).all() else float(np.sqrt(np.mean(noise**2)))


def _notes(found: BagCounts, bags: BagIds, count_sd: float) -> list[str]:
    notes = []
    unknown, bounded, n = int((~found.known).sum()), int(found.bounded.sum()), len(bags.ids)
    if unknown:
        rows = int(bags.sizes[~found.known].sum())
        notes.append(f"the counts of {unknown:,} of {n:,} bags are unknown: their {rows:,} rows are not used.")
    if bounded:
        notes.append(
            f"the counts of {bounded:,} of {n:,} bags are known only within bounds: they are replaced by their "
            f"expected value; count_sd is {np.hypot(count_sd, found.sd):.3g} instead of {count_sd:.3g} for all bags."
        )
    return notes


def _notes_on_fractions(found: BagCounts) -> list[str]:
    exact = found.known & ~found.bounded & (found.within.sd == 0.0)
    away = np.abs(found.counts - np.rint(found.counts)).max(axis=1)
    number = int((away[exact] > _WHOLE).sum())
    if not number:
        return []
    return [
        f"{number:,} of {len(exact):,} bags have counts that are not whole numbers of rows. They are used as they are; "
        "if they are estimates, or noise was added, pass its standard deviation as count_sd."
    ]


def _notes_on_columns(features: pd.DataFrame, bags: BagIds, counts: FloatArray) -> list[str]:
    """A sentence for each column that equals the bags' counts or shares, or whose sums do."""
    import pandas as pd

    seen = ~np.isnan(counts).any(axis=1)
    totals = list(counts.T) if seen.sum() >= _LEAST_BAGS and len(np.unique(counts[seen])) > 1 else []
    sizes = bags.sizes[:, None].astype(np.float64)
    known = np.hstack([counts, sizes - counts])
    known = np.hstack([known, known / sizes])
    by_row = [values[bags.numbers] for values in known.T if len(np.unique(values[~np.isnan(values)])) > 1]
    notes = []
    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        if any(
            np.array_equal(np.bincount(bags.numbers, own, len(sizes))[seen], sums[seen])
            for own in _as_labels(column)
            for sums in totals
        ):
            notes.append(
                f"column {str(name)!r} looks like the label: its sums over the bags are the counts. Remove it, or "
                "every method looks better than it is."
            )
        if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
            continue
        own = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if any(_agree(own[:50], values[:50]) and _agree(own, values) for values in by_row):  # most differ at once
            notes.append(
                f"column {str(name)!r} contains the counts of the bags: it is the same for all rows of a bag. Remove "
                "it, or every method looks better than it is."
            )
    return notes


def _as_labels(column: pd.Series[Any]) -> list[FloatArray]:
    """The 0/1 indicators of the values of a column with few values."""
    import pandas as pd

    try:
        if len(pd.factorize(column.iloc[:_FIRST])[1]) > _MOST_LEVELS:
            return []
        codes, levels = pd.factorize(column)
    except TypeError:  # values that are not hashable
        return []
    few = 1 < len(levels) <= _MOST_LEVELS
    return [(codes == level).astype(np.float64) for level in range(len(levels))] if few else []


def _agree(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))
