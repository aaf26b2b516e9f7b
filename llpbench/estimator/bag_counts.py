"""Read what a user gives about bags (an id for each row; counts or proportions in several forms) as checked arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import UsageError

_SUM_TOLERANCE = 0.01


@dataclass(frozen=True)
class BagIds:
    """Which bag each row is in.

    Attributes:
        ids: the bags' ids, sorted where they can be, in order of appearance otherwise.
        numbers: (n,) place of each row's bag in ``ids``.
        sizes: (bags,) rows of each bag.
        ordered: whether the ids could be sorted.
    """

    ids: list[Hashable]
    numbers: IntArray
    sizes: IntArray
    ordered: bool


def read_bag_ids(bag_of: Any, rows: int) -> BagIds:
    """Number the bags of ``rows`` rows by their ids: any hashable values."""
    given = bag_of.tolist() if hasattr(bag_of, "tolist") else list(bag_of)
    if not isinstance(given, list) or len(given) != rows:
        length = len(given) if isinstance(given, list) else 1
        raise UsageError(f"bag_of must name the bag of each of the {rows:,} rows; it has {length:,} values.")
    missing = sum(map(_is_missing, given))
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
    place = {bag: number for number, bag in enumerate(ids)}
    numbers = np.array([place[bag] for bag in given], np.int64)
    return BagIds(ids, numbers, np.bincount(numbers, minlength=len(ids)), ordered)


def _is_missing(value: Any) -> bool:
    absent = value is None or type(value).__name__ in ("NAType", "NaTType")
    return absent or (isinstance(value, float) and value != value)


def read_counts(
    given: Any,
    bags: BagIds,
    *,
    proportions: bool,
    count_sd: float,
    classes: Sequence[Any] | None,
    per_row: bool = False,
) -> tuple[FloatArray, list[Any]]:
    """Counts of each bag and the classes they are of.

    Args:
        given: for each bag one number (class 1 of two) or one for each class, in any of these forms: a mapping from
            bag ids, a Series or DataFrame indexed by them, an array in the order of the sorted ids; or for each row
            (a column of the table), the same for all rows of a bag.
        bags: the bags.
        proportions: whether ``given`` holds shares of the bag's rows.
        count_sd: standard deviation of the noise in the counts; without noise they must be possible.
        classes: names of the classes; from the DataFrame's columns, or 0, 1, ..., when not given.
        per_row: ``given`` has one value for each row (it is columns of the table), even where bags have one row each.

    Returns:
        (bags, 1) counts of class 1 for two classes, (bags, C) otherwise; and the classes.
    """
    what = "proportions" if proportions else "counts"
    keys, table, names = _to_array(given, what)
    mapping = isinstance(given, Mapping)
    values = _values_from_rows(table, bags, what) if per_row else _values_of_bags(keys, table, mapping, bags, what)
    if values.shape[1] == 0:
        raise UsageError(f"{what} has no column.")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise UsageError(f"{what} is missing or not finite for bag {bags.ids[bad[0]]!r} ({len(bad):,} bags in all).")
    chosen = list(classes) if classes is not None else list(names or range(max(values.shape[1], 2)))
    if len(chosen) != max(values.shape[1], 2) or len(set(chosen)) < len(chosen):
        raise UsageError(f"{what} is for {max(values.shape[1], 2)} classes, but classes names {chosen!r}.")
    if count_sd == 0:
        _check_possible(values, bags, proportions)
    counts = values * bags.sizes[:, None] if proportions else values
    return (counts[:, 1:] if counts.shape[1] == 2 else counts), chosen


def _to_array(given: Any, what: str) -> tuple[list[Any] | None, FloatArray, list[Any]]:
    """Keys (if the form has any), a table of numbers, and the names of its columns (if it has any)."""
    import pandas as pd

    try:
        if isinstance(given, Mapping):
            rows = [np.atleast_1d(np.asarray(value, np.float64)) for value in given.values()]
            return list(given), np.array(rows, np.float64).reshape(len(rows), -1), []
        if isinstance(given, pd.DataFrame):
            names = list(given.columns) if given.shape[1] > 1 else []
            return list(given.index), given.to_numpy(np.float64, na_value=np.nan), names
        if isinstance(given, pd.Series):
            return list(given.index), given.to_numpy(np.float64, na_value=np.nan)[:, None], []
        table = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} must be numbers, the same number of them for every bag ({error}).") from None
    if table.ndim not in (1, 2):
        raise UsageError(f"{what} has the shape {table.shape}; give one number, or one for each class, for each bag.")
    return None, table.reshape(len(table), -1), []


def _values_of_bags(keys: list[Any] | None, table: FloatArray, mapping: bool, bags: BagIds, what: str) -> FloatArray:
    """(bags, columns) values of each bag, whether they were given by key, in the order of bags or for each row."""
    n_bags, n_rows = len(bags.ids), len(bags.numbers)
    by_bag: FloatArray | None = None
    if keys is not None and len(keys) == n_bags and set(keys) == set(bags.ids):
        place = {key: i for i, key in enumerate(keys)}
        by_bag = table[[place[bag] for bag in bags.ids]]
    if mapping and by_bag is None:
        assert keys is not None
        raise UsageError(_describe_mismatch(keys, bags, what))
    if keys is None and len(table) == n_bags and (bags.ordered or n_bags == n_rows):
        by_bag = table
    by_row = _values_from_rows(table, bags, what) if not mapping and len(table) == n_rows and n_rows > 0 else None
    if by_bag is not None and by_row is not None and not np.array_equal(by_bag, by_row, equal_nan=True):
        raise UsageError(
            f"every bag has one row, so {what} could be in the order of bags or of rows; "
            "give a mapping from bag to value."
        )
    found = by_bag if by_bag is not None else by_row
    if found is not None:
        return found
    if keys is not None:
        raise UsageError(_describe_mismatch(keys, bags, what))
    if len(table) == n_bags:
        raise UsageError(f"the bag ids cannot be sorted, so {what} must be a mapping from bag to value.")
    raise UsageError(
        f"{what} has {len(table):,} values for {n_bags:,} bags and {n_rows:,} rows; give one for each bag."
    )


def _values_from_rows(table: FloatArray, bags: BagIds, what: str) -> FloatArray:
    """The value of each bag from a column of the table, which must be the same in all its rows."""
    first = np.full(len(bags.ids), -1)
    first[bags.numbers[::-1]] = np.arange(len(table))[::-1]
    values: FloatArray = table[first]
    same = (table == values[bags.numbers]) | (np.isnan(table) & np.isnan(values[bags.numbers]))
    if not same.all():
        bag = bags.ids[bags.numbers[np.flatnonzero(~same.all(axis=1))[0]]]
        raise UsageError(f"{what} differs between rows of bag {bag!r}; a bag has one value.")
    return values


def _describe_mismatch(keys: list[Any], bags: BagIds, what: str) -> str:
    """Which bags have no value, and which values have no bag."""
    absent = [bag for bag in bags.ids if bag not in set(keys)]
    unknown = [key for key in keys if key not in set(bags.ids)]
    parts = [f"it has none for {_name_bags(absent)}"] if absent else []
    parts += [f"{_name_bags(unknown)} {'have' if len(unknown) > 1 else 'has'} no row"] if unknown else []
    parts = parts or ["it names a bag twice"]
    return f"{what} does not fit the bags: {'; '.join(parts)}."


def _name_bags(items: list[Any], most: int = 3) -> str:
    """The first ids of a list, and how many more there are."""
    more = f" and {len(items) - most:,} more bags" if len(items) > most else ""
    return "bag " + ", ".join(map(repr, items[:most])) + more


def _check_possible(values: FloatArray, bags: BagIds, proportions: bool) -> None:
    """Refuse counts that no labels of the rows could give."""
    most = np.ones(len(values)) if proportions else bags.sizes.astype(np.float64)
    slack = 1e-6 * most
    outside = np.flatnonzero(((values < -slack[:, None]) | (values > (most + slack)[:, None])).any(axis=1))
    what = "proportion" if proportions else "count"
    if len(outside):
        b = int(outside[0])
        limit = "1" if proportions else f"its {bags.sizes[b]:,} rows"
        raise UsageError(
            f"the {what} of bag {bags.ids[b]!r} is {_format_values(values[b])}, not from 0 to {limit} "
            f"({len(outside):,} such bags). If noise was added, give its standard deviation as count_sd."
        )
    if values.shape[1] > 1:
        off = np.flatnonzero(np.abs(values.sum(axis=1) - most) > _SUM_TOLERANCE * most)
        if len(off):
            b = int(off[0])
            raise UsageError(
                f"the {what}s of bag {bags.ids[b]!r} add up to {values[b].sum():g}, not to {most[b]:g} "
                f"({len(off):,} such bags). If noise was added, give its standard deviation as count_sd."
            )
    if not proportions and (bags.sizes > 1).all() and (values <= 1).all() and (values != np.rint(values)).any():
        raise UsageError("counts holds fractions below 1: these look like proportions; pass them as proportions=.")


def _format_values(row: FloatArray) -> str:
    return f"{row[0]:g}" if len(row) == 1 else "(" + ", ".join(f"{value:g}" for value in row) + ")"
