"""Read counts of bags in all supported forms (wide, long, by key, by order; exact or not) as bounds of numbers.

A value is exact, unknown (NaN, None, an empty string), or known within bounds: ``"<5"``, ``"<=5"``, ``">20"``,
``">=20"``, ``"20+"``, ``"5-10"``, a ``pandas.Interval``, or a pair ``(low, high)`` where it cannot be the counts
of two classes. Proportions may also be percentages (``"12 %"``, ``"<5 %"``).
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import UsageError
from llpbench.owndata.reading.forms import to_pandas

if TYPE_CHECKING:
    import pandas as pd

CLASS_COLUMNS = ("class", "label")
"""Names of the class column in a long table of counts."""
BAG_COLUMN = "bag"
"""Name of the bag column in a table of counts, unless it is named as in the table of rows."""

_NUMBER = r"[-+]?\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+"
_BELOW = re.compile(rf"(<=|≤|<)\s*({_NUMBER})\Z")
_ABOVE = re.compile(rf"(?:(>=|≥|>)\s*({_NUMBER})|({_NUMBER})\s*\+)\Z")
_BETWEEN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|to)\s*({_NUMBER})\Z")
_UNKNOWN = ("", "na", "n/a", "nan", "none", "null", "?")


@dataclass(frozen=True)
class CountForm:
    """Counts as given, before they are matched with the bags.

    Attributes:
        keys: the bag of each line; None if lines have no keys.
        low: (lines, columns) lower bounds; NaN if unknown.
        high: upper bounds; equal to ``low`` for exact values.
        names: names of the columns; empty if they have none.
        by_key: whether lines can only be matched by their keys.
    """

    keys: list[Any] | None
    low: FloatArray
    high: FloatArray
    names: list[Any]
    by_key: bool = False


def read_form(
    given: Any,
    what: str,
    bags: Iterable[Hashable] = (),
    *,
    bag_column: str | None = None,
    classes: Sequence[Any] | None = None,
) -> CountForm:
    """Read counts or proportions in any supported form.

    Args:
        given: a mapping from bag ids to a number (or one for each class); a Series by bag id, or by (bag, class); a
            DataFrame with the bags as index or as a column: wide (a column for each class) or long (a column of
            classes, one of numbers); an array.
        what: ``counts`` or ``proportions``.
        bags: the bags' ids. A two-level index that contains one of them is an index of bags, not of (bag, class).
        bag_column: name of the bag column in the table of rows.
        classes: the classes, if the user named them.
    """
    import pandas as pd

    given = to_pandas(given)
    if isinstance(given, Mapping):
        return CountForm(list(given), *_bounds_of_mapping(list(given.values()), what), names=[], by_key=True)
    if isinstance(given, pd.Series):
        if _is_by_class(given.index, bags):
            return _read_long(given.to_frame("count").reset_index(), what, bag_column, classes, from_index=True)
        return CountForm(list(given.index), *_bounds(given.to_frame(), what), names=[])
    if isinstance(given, pd.DataFrame):
        return _read_frame(given, what, bags, bag_column, classes)
    return _read_array(given, what)


def read_columns(frame: pd.DataFrame, what: str) -> CountForm:
    """Columns of the table of rows, one line per row."""
    return CountForm(None, *_bounds(frame, what), names=list(frame.columns) if frame.shape[1] > 1 else [])


def looks_like_counts(texts: Iterable[str]) -> bool:
    """Whether all texts can be read as counts, so that they are not names of columns."""
    try:
        return all(read_value(text, "counts") is not None for text in texts)
    except UsageError:
        return False


def _is_by_class(index: pd.Index[Any], bags: Iterable[Hashable]) -> bool:
    """Whether an index has the levels bag and class; bags may be pairs themselves."""
    return index.nlevels == 2 and set(index.tolist()).isdisjoint(bags)


def _read_frame(
    frame: pd.DataFrame,
    what: str,
    bags: Iterable[Hashable],
    bag_column: str | None,
    classes: Sequence[Any] | None,
) -> CountForm:
    if frame.shape[1] == 1 and _is_by_class(frame.index, bags):
        return _read_long(frame.reset_index(), what, bag_column, classes, from_index=True)
    key = next((name for name in (bag_column, BAG_COLUMN) if name is not None and name in frame.columns), None)
    if key is None:
        names = list(frame.columns) if frame.shape[1] > 1 else []
        return CountForm(list(frame.index), *_bounds(frame, what), names=names)
    others = [name for name in frame.columns if name != key]
    if len(others) == 2 and any(str(name).lower() in CLASS_COLUMNS for name in others):
        return _read_long(frame, what, key, classes)
    keys, wide = frame[key].tolist(), frame[others]
    if len(set(keys)) < len(keys):
        twice = next(k for k in keys if keys.count(k) > 1)
        raise UsageError(
            f"{what} has several lines for bag {twice!r}. A wide table has one line per bag; a long one has the "
            f"columns {key!r}, 'class' and one of numbers."
        )
    return CountForm(keys, *_bounds(wide, what), names=others if len(others) > 1 else [], by_key=True)


def _read_long(
    frame: pd.DataFrame, what: str, bag_column: str | None, classes: Sequence[Any] | None, *, from_index: bool = False
) -> CountForm:
    """Lines of (bag, class, number); missing lines count as 0."""
    columns = list(frame.columns)
    key = bag_column if bag_column in columns else columns[0]
    others = [name for name in columns if name != key]
    by_class = others[0] if from_index else next(n for n in others if str(n).lower() in CLASS_COLUMNS)
    value = next(name for name in others if name != by_class)
    found, bags = frame[by_class].tolist(), frame[key].tolist()
    low, high = _bounds(frame[[value]], what)
    given = list(dict.fromkeys(found))
    names = list(classes) if classes is not None else _sorted(given)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise UsageError(f"{what} contains the class {unknown[0]!r}, which is not one of classes ({_listing(names)}).")
    if len(names) < 2:
        raise UsageError(f"{what} has lines for only one class ({_listing(names)}); list all of them in classes.")
    ids = list(dict.fromkeys(bags))
    line, column = {bag: i for i, bag in enumerate(ids)}, {name: j for j, name in enumerate(names)}
    lows, highs = np.zeros((len(ids), len(names))), np.zeros((len(ids), len(names)))
    seen: set[tuple[int, int]] = set()
    for bag, name, a, b in zip(bags, found, low[:, 0], high[:, 0], strict=True):
        place = line[bag], column[name]
        if place in seen:
            raise UsageError(f"{what} has several lines for bag {bag!r} and class {name!r}.")
        seen.add(place)
        lows[place], highs[place] = a, b
    return CountForm(ids, lows, highs, names, by_key=True)


def _sorted(names: list[Any]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError:
        return names


def _listing(names: Sequence[Any]) -> str:
    return ", ".join(map(repr, names))


def _read_array(given: Any, what: str) -> CountForm:
    if np.ndim(given) == 0 and not isinstance(given, Sequence):
        raise UsageError(f"{what} must have one number (or one per class) for each bag, got a single value.")
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.asarray([], object)
    if array.dtype.kind not in "biuf":
        cells = [list(line) if isinstance(line, list | np.ndarray) else [line] for line in given]
        if len({len(line) for line in cells}) > 1:
            raise UsageError(f"{what} must have equally many numbers for every bag.")
        return CountForm(None, *_read_cells(cells, what), names=[])
    if array.ndim not in (1, 2):
        raise UsageError(
            f"{what} must have one number (or one per class) for each bag, got an array of shape {array.shape}."
        )
    values = array.reshape(len(array), -1).astype(np.float64)
    return CountForm(None, values, values.copy(), names=[])


def _bounds_of_mapping(values: list[Any], what: str) -> tuple[FloatArray, FloatArray]:
    """The values of a mapping; pairs are bounds if some values are single numbers, otherwise one number per class."""
    several = [isinstance(v, list | tuple) or (isinstance(v, np.ndarray) and v.ndim > 0) for v in values]
    lines = [list(value) for value in values] if all(several) else [[value] for value in values]
    if len({len(line) for line in lines}) > 1:
        raise UsageError(f"{what} must have equally many numbers for every bag.")
    return _read_cells(lines, what)


def _bounds(frame: pd.DataFrame, what: str) -> tuple[FloatArray, FloatArray]:
    """Bounds of all cells of a table."""
    import pandas as pd

    if all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        values = frame.to_numpy(np.float64, na_value=np.nan)
        return values, values.copy()
    return _read_cells(frame.astype(object).to_numpy().tolist(), what)


def _read_cells(lines: list[list[Any]], what: str) -> tuple[FloatArray, FloatArray]:
    width = len(lines[0]) if lines else 0
    pairs = [read_value(value, what) or (np.nan, np.nan) for line in lines for value in line]
    both = np.array(pairs, np.float64).reshape(len(lines), width, 2)
    return both[..., 0].copy(), both[..., 1].copy()


def read_value(value: Any, what: str) -> tuple[float, float] | None:
    """The bounds of one value, None if unknown; bounds of counts are whole numbers (``"<5"`` is 0 to 4)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, numbers.Real):
        return None if math.isnan(value) else (float(value), float(value))
    if isinstance(value, str):
        return _read_text(value.strip(), what)
    if all(hasattr(value, name) for name in ("left", "right", "closed_left", "closed_right")):  # a pandas.Interval
        whole = what == "counts"
        low = math.floor(value.left) + 1 if whole and not value.closed_left else value.left
        high = math.ceil(value.right) - 1 if whole and not value.closed_right else value.right
        return _in_order(float(low), float(high), value, what)
    if isinstance(value, Sequence | np.ndarray) and len(value) == 2:
        low, high = (read_value(end, what) for end in value)
        return _in_order(0.0 if low is None else low[0], math.inf if high is None else high[1], value, what)
    raise UsageError(f"{what} must be numbers, got {value!r}. {_hint(what)}")


def _read_text(text: str, what: str) -> tuple[float, float] | None:
    if text.lower() in _UNKNOWN:
        return None
    whole = what == "counts"
    if text.endswith("%"):
        if whole:
            raise UsageError(f"counts must be numbers, got {text!r}; pass percentages as proportions=.")
        percent = _read_text(text[:-1].strip(), what)
        return None if percent is None else (percent[0] / 100.0, percent[1] / 100.0)
    if match := _BELOW.match(text):
        end = float(match[2])
        return _in_order(0.0, math.ceil(end) - 1.0 if whole and match[1] == "<" else end, text, what)
    if match := _ABOVE.match(text):
        end = float(match[2] or match[3])
        return (math.floor(end) + 1.0 if whole and match[1] == ">" else end), math.inf
    if match := _BETWEEN.match(text):
        return _in_order(float(match[1]), float(match[2]), text, what)
    try:
        number = float(text.replace(",", "")) if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", text) else float(text)
    except ValueError:
        raise UsageError(f"{what} must be numbers, got {text!r}. {_hint(what)}") from None
    return None if math.isnan(number) else (number, number)


def _hint(what: str) -> str:
    example = "'<5'" if what == "counts" else "'<0.05'"
    return f"Use bounds such as {example} for a value that is not exact, and NaN for an unknown one."


def _in_order(low: float, high: float, value: Any, what: str) -> tuple[float, float]:
    if not low <= high:
        raise UsageError(f"{what} has the empty interval {value!r}.")
    return low, high
