"""Read and check a user's table, its bags and counts: the input of ``fit`` and ``compare``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray, Overlap
from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.owndata.reading.arguments import are_names, check_column, check_width, read_classes
from llpbench.owndata.reading.bag_counts import BagCounts, KnownCounts, read_counts
from llpbench.owndata.reading.bag_ids import BagIds, read_bag_ids
from llpbench.owndata.reading.forms import as_frame, check_order, to_pandas
from llpbench.owndata.reading.groupings import Grouping, describe_totals, describe_uncovered, read_groupings

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

    @property
    def noise(self) -> float | FloatArray:
        """Standard deviation of the counts; (bags,) of each if there are several groupings."""
        return self.count_sd if self.bags.overlap is None else self.bags.overlap.count_sd

    def take(self, chosen: IntArray) -> BaggedTable:
        """The chosen bags (by number, in ascending order) and their rows."""
        rows = self.bags.rows_of(chosen)
        return replace(
            self,
            whole=self.whole.iloc[rows],
            features=self.features.iloc[rows],
            rows=self.rows[rows],
            bags=self.bags.take(chosen),
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
    Without ``bag_of``, ``counts`` or ``proportions`` are tables of counts (``owndata/reading/groupings.py``).
    """
    frame = as_frame(X)
    check_width(frame.shape[1], "columns")
    classes = read_classes(classes)
    if (counts is None) == (proportions is None):
        raise UsageError("give either counts or proportions.")
    values = counts if counts is not None else proportions
    options: dict[str, Any] = {"classes": classes, "count_sd": count_sd, "to_learn": to_learn}
    if bag_of is None:
        groupings = read_groupings(frame, values, proportions=counts is None, **options)
    else:
        groupings = [_read_single(frame, bag_of, values, proportions=counts is None, **options)]
    taken = [name for each in groupings for name in each.columns]
    if len(groupings) == 1 and groupings[0].name in frame.columns:
        taken.append(groupings[0].name)  # as with bag_of, which names the same bags
    features = frame.drop(columns=list(dict.fromkeys(taken)))
    bags, known, every_count = _joined(groupings)
    usual = _usual(np.concatenate([each.counts.within.sd[each.counts.known] for each in groupings]))
    one_sd = float(np.hypot(usual, groupings[0].counts.sd))
    notes = [
        note
        for each in groupings
        for note in (
            *_notes(each, usual),
            *(_notes_on_fractions(each.counts) if counts is not None else ()),
            *_notes_on_columns(features, each),
        )
    ]
    several = [describe_uncovered(groupings), describe_totals(groupings)]
    every_bag = BaggedTable(
        whole=frame,
        features=features,
        rows=np.arange(len(features)),
        given=len(features),
        bags=bags,
        counts=every_count,
        known=known,
        classes=groupings[0].counts.classes,
        count_sd=one_sd if bags.overlap is None else _usual(bags.overlap.count_sd),
        every_row=features,
        notes=tuple(dict.fromkeys(note for note in (*several, *notes) if note)),
    )
    usable = ~np.isnan(every_count).any(axis=1)
    covered = len(bags.rows_of(np.flatnonzero(usable))) == len(features)
    return every_bag if usable.all() and covered else every_bag.take(np.flatnonzero(usable))


def _read_single(frame: pd.DataFrame, bag_of: Any, values: Any, *, proportions: bool, **options: Any) -> Grouping:
    """Bags that every row belongs to."""
    check_order(bag_of, frame, "bag_of")
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
    bags = read_bag_ids(ids, len(frame))
    found = read_counts(values, bags, proportions=proportions, per_row=per_row, bag_column=bag_column, **options)
    return Grouping("", bags.numbers, bags.ids, found, np.zeros(len(bags.ids)), tuple(taken), bags.ordered)


def _usual(noise: FloatArray) -> float:
    """The root mean square; exactly their value if all are equal."""
    return float(noise[0]) if (noise == noise[0]).all() else float(np.sqrt(np.mean(noise**2)))


def _joined(groupings: Sequence[Grouping]) -> tuple[BagIds, KnownCounts, FloatArray]:
    """The bags of all groupings, one after the other, what is known about their counts, and these counts."""
    if len(groupings) == 1:
        (only,) = groupings
        return BagIds(only.keys, only.numbers, only.sizes, only.ordered), only.counts.within, only.counts.counts
    rows = [np.flatnonzero(each.numbers >= 0) for each in groupings]
    starts = np.cumsum([0, *(len(each.keys) for each in groupings)])
    overlap = Overlap(
        members=np.concatenate(rows),
        grouping_of=np.repeat(np.arange(len(groupings)), np.diff(starts)),
        groupings=tuple(each.name for each in groupings),
        count_sd=np.concatenate(
            [np.sqrt(each.counts.within.sd**2 + each.counts.sd**2 + each.rounding**2) for each in groupings]
        ),
    )
    bags = BagIds(
        ids=[f"{each.name}={_key(key)}" for each in groupings for key in each.keys],
        numbers=np.concatenate(
            [each.numbers[own] + start for each, own, start in zip(groupings, rows, starts[:-1], strict=True)]
        ),
        sizes=np.concatenate([each.sizes for each in groupings]),
        ordered=False,
        overlap=overlap,
        marginal=all(each.by_columns for each in groupings),
    )
    known = KnownCounts(
        np.concatenate([each.counts.within.low for each in groupings]),
        np.concatenate([each.counts.within.high for each in groupings]),
        np.concatenate([np.hypot(each.counts.within.sd, each.rounding) for each in groupings]),
    )
    return bags, known, np.concatenate([each.counts.counts for each in groupings])


def _key(key: Any) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _notes(grouping: Grouping, count_sd: float) -> list[str]:
    notes, found, n = [], grouping.counts, len(grouping.keys)
    unknown, bounded = int((~found.known).sum()), int(found.bounded.sum())
    by = f" by {grouping.name}" if grouping.name else ""
    if unknown:
        rows = int(grouping.sizes[~found.known].sum())
        unused = f": their {rows:,} rows are not used." if not by else f" ({rows:,} rows)."
        notes.append(f"the counts{by} of {unknown:,} of {n:,} bags are unknown{unused}")
    if bounded:
        notes.append(
            f"the counts{by} of {bounded:,} of {n:,} bags are known only within bounds: they are replaced by their "
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


def _notes_on_columns(features: pd.DataFrame, grouping: Grouping) -> list[str]:
    """A sentence for each column that equals the bags' counts or shares, or whose sums do."""
    import pandas as pd

    inside = np.flatnonzero(grouping.numbers >= 0)
    features = features.iloc[inside] if len(inside) < len(features) else features
    numbers, counts = grouping.numbers[inside], grouping.counts.counts
    seen = ~np.isnan(counts).any(axis=1)
    totals = list(counts.T) if seen.sum() >= _LEAST_BAGS and len(np.unique(counts[seen])) > 1 else []
    sizes = grouping.sizes[:, None].astype(np.float64)
    known = np.hstack([counts, sizes - counts])
    known = np.hstack([known, known / sizes])
    by_row = [values[numbers] for values in known.T if len(np.unique(values[~np.isnan(values)])) > 1]
    notes = []
    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        if any(
            np.array_equal(np.bincount(numbers, own, len(sizes))[seen], sums[seen])
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
