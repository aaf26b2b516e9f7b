"""Read several tables of counts about the rows of one table: ``counts=[by_job, by_region, by_age_and_sex]``.

Each table is a *grouping*: it puts rows into disjoint groups, the bags, and has the counts of each. It is

- a Series or DataFrame whose index names are the columns of the table of rows that it groups by (a column for each
  class, or a level ``class``);
- a DataFrame with these columns and those of the counts (wide, or long with a column ``class``);
- a pair ``(bag_of, counts)`` in the forms of ``fit``; ``bag_of`` may be a list of columns.

A row belongs to no group of a table if the table has no line for it, or if its id is missing. A line without rows is
ignored if it may have been empty: its count is 0, unknown or noisy.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.owndata.reading.arguments import are_names, check_column
from llpbench.owndata.reading.bag_counts import BagCounts, name_bags, read_counts
from llpbench.owndata.reading.bag_ids import BagIds, ids_of_rows, is_missing, read_bag_ids
from llpbench.owndata.reading.count_forms import CLASS_COLUMNS, CountForm, read_columns, read_form
from llpbench.owndata.reading.forms import check_order, to_pandas

if TYPE_CHECKING:
    import pandas as pd

NO_GROUP = -1
"""Number of the group of a row that is in none."""
_UNITS = (1000.0, 500.0, 100.0, 50.0, 10.0, 5.0)
"""Rounded counts are multiples of one of these; shares of a ten-thousandth."""
_LEAST_ROUNDED = 5
"""Number of values from which on common multiples are taken for rounding."""
_IDS = "(bag ids)"
_FAR = 4.0
"""Standard deviations of rounding and noise beyond which totals disagree."""


@dataclass(frozen=True)
class Grouping:
    """One table of counts about the rows of a table.

    Attributes:
        name: the columns it groups by, joined by ``+``; or ``table 2``.
        numbers: (n,) number of each row's group in ``keys``; ``NO_GROUP`` for rows in none.
        keys: the groups; tuples if it groups by several columns.
        counts: what is known about their counts. ``counts.within`` has the bounds of all classes and the standard
            deviation of the noise of each group (``counts.within.sd``), ``counts.known`` which are known at all.
        rounding: (groups,) standard deviation of the rounding of each count; 0 if they do not look rounded.
        columns: columns of the table of rows that contain its counts.
        ordered: whether the keys could be sorted.
        by_columns: whether it groups by columns of the table of rows.
    """

    name: str
    numbers: IntArray
    keys: list[Hashable]
    counts: BagCounts
    rounding: FloatArray
    columns: tuple[Hashable, ...] = ()
    ordered: bool = True
    by_columns: bool = False

    @property
    def sizes(self) -> IntArray:
        """(groups,) rows of each group."""
        return np.bincount(self.numbers[self.numbers >= 0], minlength=len(self.keys))


@dataclass(frozen=True)
class _Table:
    """A table of counts before it is matched with the rows.

    Attributes:
        name: name of the grouping.
        by: what rows are grouped by: one column, or several.
        given: the counts; a ``CountForm`` if they have been read.
        names: names of the classes, as far as they are known.
        columns: columns of the table of rows that contain the counts; empty if ``given`` is not about rows.
    """

    name: str
    by: pd.DataFrame
    given: Any
    names: list[Any]
    columns: tuple[Hashable, ...] = ()


def read_groupings(
    frame: pd.DataFrame,
    counts: Any,
    *,
    proportions: bool = False,
    classes: Sequence[Any] | None = None,
    count_sd: Any = 0.0,
    to_learn: bool = True,
) -> list[Grouping]:
    """Read tables of counts about the rows of a table.

    Args:
        frame: the table of rows.
        counts: a list of tables of counts, or a single Series or DataFrame.
        proportions: whether they contain shares of the rows of each group.
        classes: names of the classes; by default those of the first table that names them, or 0 and 1.
        count_sd: standard deviation of the noise in the counts: one number for all, or a list with a number or one for
            each group (a dict or Series), in the order of the tables.
        to_learn: whether a model is to be fitted; then counts of a single class are an error.

    Raises:
        UsageError: a table is invalid; the message names it.
    """
    what = "proportions" if proportions else "counts"
    given = _as_list(counts, what)
    noise = _noise_of_each(count_sd, len(given))
    tables: list[_Table] = []
    for number, each in enumerate(given, 1):
        with_name = _read_table(each, f"table {number} of {what}", frame, what, classes)
        tables.append(replace(with_name, name=_unused(with_name.name or f"table {number}", tables)))
    named = next((table.names for table in tables if table.names), None)
    chosen = list(classes) if classes is not None else named
    found = []
    for table, sd in zip(tables, noise, strict=True):
        try:
            found.append(_match(table, what, chosen, sd, to_learn))
        except UsageError as error:
            raise UsageError(f"{what} by {table.name}: {error}") from None
    return found


def describe_uncovered(groupings: Sequence[Grouping]) -> str:
    """A sentence about rows that are in no group of a table; empty if there are none."""
    outside = [(grouping.name, int((grouping.numbers < 0).sum())) for grouping in groupings]
    parts = [f"{rows:,} in none by {name}" for name, rows in outside if rows]
    if not parts:
        return ""
    n = len(groupings[0].numbers)
    text = f"some of the {n:,} rows are in no group of a table: {', '.join(parts)}."
    nowhere = int(np.all([grouping.numbers < 0 for grouping in groupings], axis=0).sum())
    return text + (f" The {nowhere:,} that are in no group of any table are not used for training." if nowhere else "")


def describe_totals(groupings: Sequence[Grouping]) -> str:
    """A sentence about tables whose totals differ by more than rounding and noise; empty if they do not.

    A table implies an interval for the total of each class: rows without a known count may be of any class. Counts
    whose values are all multiples of 5, 10, 50, ... are taken as rounded.
    """
    for c, name in reversed(list(enumerate(groupings[0].counts.classes))):
        spans = [_span_of_total(grouping, c) for grouping in groupings]
        lowest = min(range(len(spans)), key=lambda g: spans[g][1])
        highest = max(range(len(spans)), key=lambda g: spans[g][0])
        (_, low, low_sd), (high, _, high_sd) = spans[lowest], spans[highest]
        if high - low > 0.5 + _FAR * float(np.hypot(low_sd, high_sd)):
            return (
                f"the tables of counts disagree about the total of class {name!r}: at least {high:,.0f} by "
                f"{groupings[highest].name}, at most {low:,.0f} by {groupings[lowest].name}. Check that they count the "
                "same rows; if they are noisy, pass count_sd."
            )
    return ""


def rounding_sd(values: FloatArray, scale: float = 1.0) -> float:
    """Standard deviation of the rounding errors of values that are all multiples of 5, 10, 50, ...; otherwise 0."""
    there = np.abs(values[np.isfinite(values) & (values != 0.0)]) / scale
    if len(there) < _LEAST_ROUNDED:
        return 0.0
    found = next((unit for unit in _UNITS if (np.abs(there - unit * np.rint(there / unit)) < 1e-6).all()), 0.0)
    return scale * found / float(np.sqrt(12.0))


def _span_of_total(grouping: Grouping, c: int) -> tuple[float, float, float]:
    """The least and the largest total of a class over all rows, and its standard deviation by rounding and noise."""
    counts, sizes, rows = grouping.counts, grouping.sizes, len(grouping.numbers)
    low, high = counts.within.low[counts.known, c], counts.within.high[counts.known, c]
    free = rows - float(sizes[counts.known].sum())
    sd = float(np.sqrt(np.sum((counts.within.sd**2 + grouping.rounding**2)[counts.known])))
    return float(low.sum()), float(high.sum()) + free, sd


def _as_list(counts: Any, what: str) -> list[Any]:
    import pandas as pd

    given = to_pandas(counts)
    if isinstance(given, pd.Series | pd.DataFrame):
        return [given]
    if not isinstance(given, list | tuple):
        raise UsageError(
            f"without bag_of, {what} must be a list of tables, each with the names of the columns that it groups by "
            f"as index names, got {type(counts).__name__}."
        )
    if not given:
        raise UsageError(f"{what} is an empty list; pass at least one table of {what}.")
    return list(given)


def _noise_of_each(count_sd: Any, tables: int) -> list[Any]:
    if not isinstance(count_sd, list | tuple):
        if tables > 1 and not isinstance(count_sd, int | float | np.generic):
            raise UsageError(
                f"count_sd must be one number for all {tables} tables, or a list of {tables} in their order."
            )
        return [count_sd] * tables
    if len(count_sd) != tables:
        raise UsageError(f"count_sd has {len(count_sd)} entries for {tables} tables of counts.")
    return list(count_sd)


def _unused(name: str, others: Sequence[_Table]) -> str:
    """The name, with a number if another table has it."""
    taken = {table.name for table in others}
    return next(text for k in range(1, len(taken) + 2) if (text := name if k == 1 else f"{name} ({k})") not in taken)


def _read_table(given: Any, label: str, frame: pd.DataFrame, what: str, classes: Sequence[Any] | None) -> _Table:
    import pandas as pd

    given = to_pandas(given)
    if isinstance(given, pd.Series | pd.DataFrame):
        return _read_by_columns(given, label, frame, what, classes)
    if isinstance(given, tuple) and len(given) == 2:
        return _read_pair(*given, label, frame, what, classes)
    raise UsageError(
        f"{label} must be a Series or DataFrame whose index names are columns of the table of rows, or a pair "
        f"(bag_of, {what}), got {type(given).__name__}. Without bag_of, {what} are a list of tables."
    )


def _read_by_columns(
    given: pd.Series[Any] | pd.DataFrame, label: str, frame: pd.DataFrame, what: str, classes: Sequence[Any] | None
) -> _Table:
    """A table whose index names, or else whose column names, are columns of the table of rows."""
    import pandas as pd

    values = given.to_frame("count") if isinstance(given, pd.Series) else given
    levels: list[Any] = list(values.index.names)
    if all(name is None for name in levels):
        keys = [name for name in values.columns if name in frame.columns]
        if not keys or isinstance(given, pd.Series):
            raise UsageError(
                f"{label} has an index without names. Name its levels after the columns of the table of rows that it "
                "groups by, for example with rename_axis(['age', 'sex']), or pass a pair (bag_of, counts)."
            )
        lines, others = values[keys], [name for name in values.columns if name not in keys]
        classed = [name for name in others if len(others) == 2 and str(name).lower() in CLASS_COLUMNS]
        by_class = values[classed[0]].tolist() if classed else None
        values = values[[name for name in others if name not in classed]]
    else:
        classed = [name for name in levels if name not in frame.columns and str(name).lower() in CLASS_COLUMNS]
        keys = [name for name in levels if name not in classed]
        lines = pd.DataFrame({k: values.index.get_level_values(k) for k in range(len(levels)) if levels[k] in keys})
        by_class = values.index.get_level_values(classed[0]).tolist() if classed else None
        for name in keys:
            if name is None:
                raise UsageError(f"the index of {label} has a level without a name.")
            if name not in frame.columns:
                raise UnknownNameError(f"column in the index of {label}:", str(name), map(str, frame.columns))
    for name in keys:
        if list(frame.columns).count(name) > 1:
            raise UsageError(f"the table has several columns named {name!r}.")
    ids, by = _keys(lines), "+".join(map(str, keys))
    if by_class is not None:
        values = pd.DataFrame({"bag": pd.Series(ids, dtype=object), "class": by_class, "n": values.iloc[:, 0].tolist()})
    elif len(set(ids)) < len(ids):
        twice = next(key for key in ids if ids.count(key) > 1)
        raise UsageError(f"{label} (by {by}) has several lines for {twice!r}; add them up first.")
    else:
        values = values.set_axis(pd.Index(ids, tupleize_cols=False), axis=0)
    form = read_form(values, what, ids, bag_column="bag" if by_class is not None else None, classes=classes)
    return _Table(by, frame[keys], replace(form, by_key=True), form.names)


def _read_pair(
    bag_of: Any, given: Any, label: str, frame: pd.DataFrame, what: str, classes: Sequence[Any] | None
) -> _Table:
    """A pair of the bag of each row and the counts of the bags."""
    import pandas as pd

    names = [bag_of] if isinstance(bag_of, str) else bag_of
    if isinstance(names, list) and names and all(isinstance(name, str) and name in frame.columns for name in names):
        by, name = frame[names], "+".join(names)
    elif isinstance(bag_of, str):
        raise UnknownNameError(f"column in {label}:", bag_of, map(str, frame.columns))
    else:
        check_order(bag_of, frame, "bag_of")
        name = str(getattr(to_pandas(bag_of), "name", None) or "")
        by = pd.DataFrame({_IDS: pd.Series(ids_of_rows(bag_of, len(frame))[0], dtype=object)})
    columns = [given] if isinstance(given, str) else given
    if are_names(columns, frame):
        form = read_columns(frame[[check_column(each, frame) for each in columns]], what)
        return _Table(name, by, form, form.names, tuple(columns))
    ids = _keys(by.iloc[np.unique(_codes(by), return_index=True)[1]])
    form = read_form(given, what, ids, classes=classes)
    by_key = form.keys is not None and (form.by_key or not set(form.keys).isdisjoint(ids))
    return _Table(name, by, replace(form, by_key=by_key), form.names)


def _keys(lines: pd.DataFrame) -> list[Any]:
    """The key of each line: a value, or a tuple for several columns; a missing value is None."""
    columns = [
        [None if is_missing(value) else value for value in lines.iloc[:, k].tolist()] for k in range(lines.shape[1])
    ]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _match(table: _Table, what: str, classes: Sequence[Any] | None, count_sd: Any, to_learn: bool) -> Grouping:
    """The groups of the rows and their counts."""
    _, start, row = np.unique(_codes(table.by), return_index=True, return_inverse=True)
    keys = _keys(table.by.iloc[start])  # of each combination of values
    form: CountForm = table.given
    covered = {key: line for line, key in enumerate(form.keys or ())} if form.by_key else None
    inside = [not is_missing(key) if covered is None else key in covered for key in keys]
    if not any(inside):
        raise UsageError(_without_rows(form, keys))
    place = np.full(len(keys), NO_GROUP)
    bags = read_bag_ids([key for key, is_in in zip(keys, inside, strict=True) if is_in], sum(inside))
    place[np.flatnonzero(inside)] = bags.numbers
    numbers = place[row]
    bags = BagIds(bags.ids, numbers[numbers >= 0], np.bincount(numbers[numbers >= 0]), bags.ordered)
    noise = _noise_by_key(count_sd, bags)
    if covered is not None:
        kept = [covered[key] for key in bags.ids]
        empty = np.setdiff1d(np.arange(len(form.low)), kept)
        full = empty[(form.low[empty] > 0.0).any(axis=1)] if np.ndim(noise) == 0 and not noise else empty[:0]
        if len(full):
            raise UsageError(_without_rows(replace(form, keys=[(form.keys or [])[line] for line in full]), keys))
        form = CountForm(list(bags.ids), form.low[kept], form.high[kept], form.names, by_key=True)
    elif table.columns:
        form = replace(form, low=form.low[numbers >= 0], high=form.high[numbers >= 0])
    found = read_counts(
        form,
        bags,
        proportions=what == "proportions",
        count_sd=noise,
        classes=classes,
        per_row=bool(table.columns),
        to_learn=to_learn,
    )
    if what == "counts":
        rounding = np.full(len(bags.ids), rounding_sd(form.low[form.low == form.high]))
    else:
        rounding = rounding_sd(form.low[form.low == form.high], 1e-4) * bags.sizes
    return Grouping(
        table.name, numbers, bags.ids, found, rounding, table.columns, bags.ordered, list(table.by.columns) != [_IDS]
    )


def _codes(columns: pd.DataFrame) -> IntArray:
    """(n,) a number for each combination of values."""
    import pandas as pd

    codes = np.zeros(len(columns), np.int64)
    for k in range(columns.shape[1]):
        try:
            own, levels = pd.factorize(columns.iloc[:, k])
        except TypeError as error:
            raise UsageError(f"bag ids must be hashable ({error}).") from None
        codes = codes * (len(levels) + 1) + own + 1
        _, codes = np.unique(codes, return_inverse=True)  # so that numbers stay small
    return codes


def _without_rows(form: CountForm, keys: list[Any]) -> str:
    there = [key for key in keys if not is_missing(key)]
    values = f" The table of rows has {', '.join(map(repr, there[:3]))}{', ...' if len(there) > 3 else ''}."
    return f"no rows of the table are in {name_bags(list(form.keys or ()))}.{values}"


def _noise_by_key(count_sd: Any, bags: BagIds) -> Any:
    """The noise of the groups that have rows, if it is given by group."""
    import pandas as pd

    given = to_pandas(count_sd)
    if isinstance(given, pd.Series | Mapping):
        own = dict(given.items())
        return {key: value for key, value in own.items() if key in set(bags.ids)}
    return given
