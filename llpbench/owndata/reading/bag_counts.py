"""Read counts or proportions of bags as checked arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import UsageError
from llpbench.owndata.reading.bag_ids import BagIds
from llpbench.owndata.reading.censored import fill_in, tighten
from llpbench.owndata.reading.count_forms import CountForm, read_columns, read_form

BoolArray = NDArray[np.bool_]

_SUM_TOLERANCE = 0.01


@dataclass(frozen=True)
class KnownCounts:
    """What is known about the counts of bags.

    Attributes:
        low: (bags, C) least count of each class; equal to ``high`` for a count that is known.
        high: (bags, C) largest count.
        sd: (bags,) standard deviation of the noise of each count.
    """

    low: FloatArray
    high: FloatArray
    sd: FloatArray

    @classmethod
    def exactly(cls, counts: FloatArray, sd: float = 0.0) -> KnownCounts:
        """Counts of all classes, with noise of one standard deviation."""
        return cls(counts, counts, np.full(len(counts), sd))

    def take(self, chosen: IntArray) -> KnownCounts:
        """The chosen bags."""
        return KnownCounts(self.low[chosen], self.high[chosen], self.sd[chosen])


@dataclass(frozen=True)
class BagCounts:
    """Counts of the bags, as far as they are known.

    Attributes:
        counts: (bags, 1) counts of class 1 for two classes, (bags, C) otherwise; NaN for unknown ones.
        classes: names of the classes.
        known: (bags,) whether a bag's counts are known, at least within bounds.
        bounded: (bags,) whether one of them is known only within bounds; ``counts`` then has its expected value.
        sd: root mean square, over known bags, of the standard deviation between bounds; 0 if all counts are exact.
        within: the bounds of the counts of all classes, and their noise; from 0 to the size where nothing is known.
    """

    counts: FloatArray
    classes: list[Any]
    known: BoolArray
    bounded: BoolArray
    sd: float
    within: KnownCounts


def read_counts(
    given: Any,
    bags: BagIds,
    *,
    proportions: bool,
    count_sd: Any,
    classes: Sequence[Any] | None,
    per_row: bool = False,
    bag_column: str | None = None,
    to_learn: bool = True,
) -> BagCounts:
    """Counts of each bag and the classes they are of.

    Args:
        given: one number per bag (class 1 of two), or one per class, in any form of ``count_forms``; or one per row (a
            column of the table), the same for all rows of a bag. Or a ``CountForm``, which has been read already.
        bags: the bags.
        proportions: whether ``given`` holds shares of the bag's rows.
        count_sd: standard deviation of the noise in the counts, or one for each bag; counts without must be possible.
        classes: names of the classes; by default the DataFrame's columns, or 0, 1, ...
        per_row: whether ``given`` has one value per row.
        bag_column: name of the bag column in the table of rows.
        to_learn: whether a model is to be fitted; then counts of a single class are an error.
    """
    what = "proportions" if proportions else "counts"
    if isinstance(given, CountForm):
        form = given
    elif per_row:
        form = read_columns(given, what)
    else:
        form = read_form(given, what, bags.ids, bag_column=bag_column, classes=classes)
    if form.low.shape[1] == 0:
        raise UsageError(f"{what} has no columns.")
    if np.isinf(form.low).any():
        raise UsageError(f"{what} contains infinite values.")
    lines = np.hstack([form.low, form.high])
    lines = _values_from_rows(lines, bags, what) if per_row else _values_of_bags(form, lines, bags, what)
    low, high = np.hsplit(lines, 2)
    chosen, order = _choose_classes(form.names, low.shape[1], classes, what)
    low, high = low[:, order], high[:, order]
    known = ~np.isnan(low).all(axis=1)
    noise = read_noise(count_sd, bags)
    noisy = (noise > 0.0)[:, None]
    _check_possible(np.where(noisy, np.nan, low), np.where(noisy, np.nan, high), bags, known, proportions)
    if proportions:
        low, high = low * bags.sizes[:, None], high * bags.sizes[:, None]
    known &= ~((low < high) & (low <= 0.0) & (high >= bags.sizes[:, None])).all(axis=1)  # bounds that say nothing
    if not known.any():
        raise UsageError(f"{what} is unknown for every bag.")
    filled, sd, bounded, bounds = _fill_in(low[known], high[known], bags, known, noise[known] > 0.0)
    counts = np.full((len(known), filled.shape[1]), np.nan)
    counts[known] = filled
    if to_learn and not noisy[known].any() and not bounded.any():
        _check_classes(counts[known], bags.sizes[known], chosen)
    is_bounded = np.zeros(len(known), bool)
    is_bounded[np.flatnonzero(known)[bounded]] = True
    within = np.zeros((len(known), len(chosen))), np.repeat(bags.sizes[:, None].astype(np.float64), len(chosen), axis=1)
    for every, of_known in zip(within, bounds, strict=True):
        every[known] = of_known
    return BagCounts(counts, chosen, known, is_bounded, sd, KnownCounts(*within, noise))


def read_noise(given: Any, bags: BagIds) -> FloatArray:
    """(bags,) standard deviation of the noise in each bag's counts, from one number or one for each bag."""
    number = given.item() if isinstance(given, np.generic) else given
    if isinstance(number, int | float):
        values = np.full(len(bags.ids), float(number))
    elif given is None or isinstance(given, str):
        raise UsageError(f"count_sd must be a number >= 0, or one for each bag, got {given!r}.")
    else:
        form = read_form(given, "count_sd", bags.ids)
        if form.low.shape[1] != 1 or not np.array_equal(form.low, form.high):
            raise UsageError("count_sd must be one number for each bag.")
        values = _values_of_bags(form, form.low, bags, "count_sd")[:, 0]
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise UsageError(f"count_sd must be a number >= 0, or one for each bag, got {values.min():g}.")
    return values


def _choose_classes(
    names: list[Any], width: int, classes: Sequence[Any] | None, what: str
) -> tuple[list[Any], list[int]]:
    """Names of the classes, and the column of each; named columns are put in the order of ``classes``."""
    n = max(width, 2)
    chosen = list(classes) if classes is not None else list(names or range(n))
    if len(chosen) != n or len(set(chosen)) < len(chosen):
        raise UsageError(f"{what} has {n} classes, but classes is {chosen!r}.")
    common = [name for name in chosen if name in names]
    if 0 < len(common) < n and names:
        raise UsageError(f"{what} has the columns {names!r}, but classes is {chosen!r}.")
    return chosen, [names.index(name) for name in chosen] if common else list(range(width))


def _fill_in(
    low: FloatArray, high: FloatArray, bags: BagIds, known: BoolArray, noisy: BoolArray
) -> tuple[FloatArray, float, BoolArray, tuple[FloatArray, FloatArray]]:
    """Counts in the form of ``Bags`` with imputed values, their spread, which are imputed, and the bounds."""
    sizes = bags.sizes[known].astype(np.float64)
    if low.shape[1] == 1:
        low, high = np.hstack([sizes[:, None] - high, low]), np.hstack([sizes[:, None] - low, high])
    bounded: BoolArray = ~(low == high).all(axis=1)
    counts, sd = np.where(low == high, low, 0.0), 0.0
    if bounded.any():
        tight = tighten(low[bounded], high[bounded], sizes[bounded], noisy=noisy[bounded])
        short = np.flatnonzero((tight[0] > tight[1] + 1e-9).any(axis=1))
        if len(short):
            b = int(np.flatnonzero(known)[np.flatnonzero(bounded)[short[0]]])
            raise UsageError(
                f"no counts within the bounds of bag {bags.ids[b]!r} add up to its {bags.sizes[b]:,} rows."
            )
        low, high = low.copy(), high.copy()
        low[bounded], high[bounded] = tight
        filled, each_sd = fill_in(low, high, sizes)
        counts = np.where(bounded[:, None], filled, low)
        spread = each_sd[:, 1:] if low.shape[1] == 2 else each_sd
        sd = float(np.sqrt(np.mean(spread**2)))
        bounded &= (each_sd > 0).any(axis=1)
    return (counts[:, 1:] if counts.shape[1] == 2 else counts), sd, bounded, (low, high)


def _values_of_bags(form: CountForm, table: FloatArray, bags: BagIds, what: str) -> FloatArray:
    """(bags, columns) values of each bag, given by key, in the order of bags, or per row."""
    n_bags, n_rows, keys = len(bags.ids), len(bags.numbers), form.keys
    by_bag: FloatArray | None = None
    if keys is not None and len(keys) == n_bags and set(keys) == set(bags.ids):
        place = {key: i for i, key in enumerate(keys)}
        by_bag = table[[place[bag] for bag in bags.ids]]
    if form.by_key and by_bag is None:
        assert keys is not None
        raise UsageError(_describe_mismatch(keys, bags, what))
    if keys is None and len(table) == n_bags and (bags.ordered or n_bags == n_rows):
        by_bag = table
    by_row = _values_from_rows(table, bags, what) if not form.by_key and len(table) == n_rows and n_rows > 0 else None
    if by_bag is not None and by_row is not None and not np.array_equal(by_bag, by_row, equal_nan=True):
        raise UsageError(
            f"every bag has one row, so {what} could be in the order of bags or of rows; "
            "pass a mapping from bag to value."
        )
    found = by_bag if by_bag is not None else by_row
    if found is not None:
        return found
    if keys is not None:
        raise UsageError(_describe_mismatch(keys, bags, what))
    if len(table) == n_bags:
        raise UsageError(
            "the bag ids cannot be sorted, or are categories with another order, "
            f"so {what} must be a mapping from bag to value."
        )
    raise UsageError(
        f"{what} must have one value for each of the {n_bags:,} bags, got {len(table):,} values ({n_rows:,} rows)."
    )


def _values_from_rows(table: FloatArray, bags: BagIds, what: str) -> FloatArray:
    """The value of each bag from values per row, which must be the same in all its rows."""
    first = np.full(len(bags.ids), -1)
    first[bags.numbers[::-1]] = np.arange(len(table))[::-1]
    values: FloatArray = table[first]
    same = (table == values[bags.numbers]) | (np.isnan(table) & np.isnan(values[bags.numbers]))
    if not same.all():
        bag = bags.ids[bags.numbers[np.flatnonzero(~same.all(axis=1))[0]]]
        raise UsageError(f"{what} must be the same for all rows of a bag, but differs in bag {bag!r}.")
    return values


def _describe_mismatch(keys: list[Any], bags: BagIds, what: str) -> str:
    """A message that names bags without a value, and values without a bag."""
    given, there = set(keys), set(bags.ids)
    absent = [bag for bag in bags.ids if bag not in given]
    unknown = [key for key in keys if key not in there]
    parts = [f"no value for {name_bags(absent)}"] if absent else []
    parts += [f"no rows for {name_bags(unknown)}"] if unknown else []
    parts = parts or ["a bag appears twice"]
    hint = " Use NaN for an unknown count." if absent and not unknown else ""
    return f"{what} does not match the bags: {'; '.join(parts)}.{hint}"


def name_bags(items: list[Any], most: int = 3) -> str:
    """The first ids of a list, and the number of further ones."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return "bag " + ", ".join(map(repr, items[:most])) + more


def _check_possible(low: FloatArray, high: FloatArray, bags: BagIds, known: BoolArray, proportions: bool) -> None:
    """Reject impossible counts."""
    most = np.ones(len(low)) if proportions else bags.sizes.astype(np.float64)
    slack = 1e-6 * most
    exact = known & (low == high).all(axis=1)
    wrong = (low < -slack[:, None]) | (low > (most + slack)[:, None]) | (high < -slack[:, None])
    above = np.isfinite(high) & (high > 1.0 + slack[:, None]) & proportions  # a bound like "<5" is in percent
    wrong |= above
    outside = np.flatnonzero(wrong.any(axis=1))
    what = "proportion" if proportions else "count"
    unit = " (in rows, not as a share)" if proportions else ""
    hint = f"If noise was added, pass its standard deviation{unit} as count_sd."
    if proportions and (high[exact] > 2.0).any() and (low[exact] >= 0.0).all() and (high[exact] <= 100.0).all():
        hint = "If these are percentages, divide them by 100."
    if len(outside):
        b = int(outside[0])
        limit = "1" if proportions else f"its {bags.sizes[b]:,} rows"
        found = _format_values(np.where(above[b], high[b], low[b]))
        raise UsageError(
            f"the {what} of bag {bags.ids[b]!r} must be between 0 and {limit}, got {found} "
            f"(bags affected: {len(outside):,}). {hint}"
        )
    if low.shape[1] > 1:
        off = np.flatnonzero(exact & (np.abs(low.sum(axis=1) - most) > _SUM_TOLERANCE * most))
        if len(off):
            b = int(off[0])
            raise UsageError(
                f"the {what}s of bag {bags.ids[b]!r} must add up to {most[b]:g}, got {low[b].sum():g} "
                f"(bags affected: {len(off):,}). {hint}"
            )
    whole = np.rint(low[exact])
    if not proportions and (bags.sizes > 1).all() and (low[exact] <= 1).all() and (low[exact] != whole).any():
        raise UsageError("counts contains fractions below 1, which look like proportions; pass them as proportions=.")


def _check_classes(counts: FloatArray, sizes: IntArray, names: list[Any]) -> None:
    """Reject counts of a single class."""
    rows, found = float(sizes.sum()), counts.sum(axis=0)
    totals = np.array([rows - found[0], found[0]]) if counts.shape[1] == 1 else found
    there = [name for name, total in zip(names, totals, strict=True) if total > 1e-9 * rows]
    if len(there) < 2:
        one = ", ".join(map(repr, there)) or "none"
        raise UsageError(
            f"according to their counts the {len(counts):,} bags contain only one class ({one}). "
            "Check that counts are those of class 1, not the bag sizes."
        )


def _format_values(row: FloatArray) -> str:
    return f"{row[0]:g}" if len(row) == 1 else "(" + ", ".join(f"{value:g}" for value in row) + ")"
