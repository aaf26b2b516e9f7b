"""From a user's table to features: learned on training rows, kept with the model, the same for every later table.

A number is standardised and cut off at four standard deviations; where it is missing it counts as the mean, and a
column that had missing values when the encoder was fitted gets a 0/1 column that says so. A text or category
becomes a block of 0/1 columns, one for each of its levels (a missing value is a level), at most the 200 most
frequent; a level without a column leaves the block at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from llpbench.contracts.data import Column, FloatArray
from llpbench.contracts.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

CLIP = 4.0
"""Standard deviations beyond which a number is cut off."""
LEVELS = 200
"""Most levels of a category that get a column of their own."""

Encoding = Literal["table", "none"]


class NumberColumn(msgspec.Struct, frozen=True, tag="number", forbid_unknown_fields=True):
    """A numeric column: what is subtracted, what it is divided by, and whether missing values have a column."""

    name: str
    mean: float
    sd: float
    missing: bool = False


class CategoryColumn(msgspec.Struct, frozen=True, tag="category", forbid_unknown_fields=True):
    """A categorical column: its levels in order; None is the missing value."""

    name: str
    levels: tuple[str | None, ...]


class Encoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the columns of a table become features.

    Attributes:
        columns: the columns in the order of the fitted table.
        named: whether columns are known by name (a DataFrame was fitted) or by place alone.
        encoding: ``table``, or ``none``: numbers as they are, features of one space rather than columns.
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    named: bool
    encoding: Encoding = "table"

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        """Number of features."""
        if self.encoding == "none":
            return len(self.columns)
        return sum(column.width for column in self.described())

    def described(self) -> tuple[Column, ...]:
        """The columns as methods are told of them; none for features of one space."""
        if self.encoding == "none":
            return ()
        found = []
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                found.append(Column(column.name, "category", width=len(column.levels)))
                continue
            found.append(Column(column.name, "numeric"))
            if column.missing:
                found.append(Column(f"{column.name} is missing", "numeric"))
        return tuple(found)

    def transform(self, X: Any) -> FloatArray:
        """(n, features) float32 rows of a table with the fitted columns (others are ignored).

        Raises:
            UsageError: a column is missing, or holds what it cannot hold.
        """
        frame = self._arranged(as_frame(X))
        if self.encoding == "none":
            parts = [_finite(frame.iloc[:, j], c.name)[:, None] for j, c in enumerate(self.columns)]
            return np.hstack(parts).astype(np.float32) if parts else np.zeros((len(frame), 0), np.float32)
        features = np.zeros((len(frame), self.width), np.float32)
        at = 0
        for j, column in enumerate(self.columns):
            values = frame.iloc[:, j]
            if isinstance(column, CategoryColumn):
                _fill_block(features[:, at : at + len(column.levels)], values, column.levels)
                at += len(column.levels)
                continue
            numbers = _numbers(values, column.name)
            absent = np.isnan(numbers)
            scaled = np.clip((numbers - column.mean) / column.sd, -CLIP, CLIP)
            features[:, at] = np.where(absent, 0.0, scaled)
            at += 1
            if column.missing:
                features[:, at] = absent
                at += 1
        return features

    def _arranged(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The fitted columns in their order: by name where both sides have names, by place otherwise."""
        if self.named and named_columns(frame):
            given = [str(name) for name in frame.columns]
            absent = [name for name in self.names if name not in given]
            if absent:
                raise UsageError(
                    f"the table has no column {', '.join(map(repr, absent[:5]))}, which the model was fitted on. "
                    f"Its columns: {', '.join(given)}."
                )
            return frame.iloc[:, [given.index(name) for name in self.names]]
        if frame.shape[1] != len(self.columns):
            raise UsageError(f"the table has {frame.shape[1]} columns; the model was fitted on {len(self.columns)}.")
        return frame


def fit_encoder(X: pd.DataFrame, rows: np.ndarray[Any, Any], encoding: str = "table") -> Encoder:
    """Learn an encoder from some rows of a table.

    Args:
        X: the table, as ``as_frame`` gives it.
        rows: numbers of the training rows.
        encoding: ``table`` or ``none``.
    """
    named = named_columns(X)
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"the table has several columns of the name {', '.join(map(repr, twice))}.")
    if not names:
        raise UsageError("the table has no feature column.")
    if encoding == "none":
        for j, name in enumerate(names):
            _finite(X.iloc[:, j], name)
        return Encoder(tuple(NumberColumn(name, 0.0, 1.0) for name in names), named, "none")
    if encoding != "table":
        raise UsageError(f"encoding {encoding!r} is not known; choose 'table' or 'none'.")
    columns = [_fit_column(X.iloc[:, j], name, rows) for j, name in enumerate(names)]
    return Encoder(tuple(columns), named)


def as_frame(X: Any) -> pd.DataFrame:
    """A table given as a DataFrame, an array or rows of values, as a DataFrame with its own column types.

    Raises:
        UsageError: it is not a table of rows and columns.
    """
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        raise UsageError("the rows of X do not have the same number of columns.") from None
    if array.ndim != 2:
        raise UsageError(f"X must be a table of rows and columns, not an array of shape {array.shape}.")
    return pd.DataFrame(array)


def named_columns(frame: pd.DataFrame) -> bool:
    """Whether columns have names of their own, not just numbers."""
    return len(frame.columns) > 0 and all(isinstance(name, str) for name in frame.columns)


def is_numeric(values: pd.Series[Any]) -> bool:
    """Whether a column holds numbers (or booleans); texts that look like numbers are texts."""
    import pandas as pd

    types = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        return False
    if types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return not types.is_complex_dtype(values.dtype)
    if values.dtype == object:
        kinds = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
        return types.infer_dtype(values, skipna=True) in kinds
    return False


def _fit_column(values: pd.Series[Any], name: str, rows: np.ndarray[Any, Any]) -> NumberColumn | CategoryColumn:
    if not is_numeric(values):
        return CategoryColumn(name, _levels(_texts(values.iloc[rows], name)))
    numbers = _numbers(values, name)[rows]
    known = numbers[~np.isnan(numbers)]
    missing = len(known) < len(numbers)
    if not len(known):
        return NumberColumn(name, 0.0, 1.0, missing)
    mean, sd = float(known.mean()), float(known.std())
    if known.min() == known.max() or not 0.0 < sd < np.inf:
        mean, sd = float(known[0]), 1.0
    return NumberColumn(name, mean, sd, missing)


def _levels(texts: Sequence[str | None]) -> tuple[str | None, ...]:
    """The levels that get a column, in alphabetical order, the missing value last."""
    counts: dict[str | None, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1

    def place(level: str | None) -> tuple[bool, str]:
        return level is None, level or ""

    frequent = sorted(counts, key=lambda level: (-counts[level], place(level)))[:LEVELS]
    return tuple(sorted(frequent, key=place))


def _numbers(values: pd.Series[Any], name: str) -> np.ndarray[Any, Any]:
    """A column as float64, NaN where a value is missing."""
    import pandas as pd

    if not is_numeric(values):
        raise UsageError(f"column {name!r} holds {values.dtype} values where the model expects numbers.")
    numbers = pd.to_numeric(values.astype(object) if values.dtype == object else values)
    array = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(array).any():
        raise UsageError(f"column {name!r} holds {int(np.isinf(array).sum())} infinite values.")
    return array


def _finite(values: pd.Series[Any], name: str) -> np.ndarray[Any, Any]:
    array = _numbers(values, name)
    if np.isnan(array).any():
        raise UsageError(f"column {name!r} has missing values, which encoding='none' cannot take.")
    return array


def _texts(values: pd.Series[Any], name: str) -> list[str | None]:
    """A column's values as texts; None where one is missing."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_timedelta64_dtype(values.dtype):
        raise UsageError(f"column {name!r} holds times; make numbers or texts of them first.")
    missing = values.isna().to_numpy()
    return [None if absent else _text(value) for value, absent in zip(values.tolist(), missing, strict=True)]


def _text(value: Any) -> str:
    """A level's text; whole numbers read the same whether they came as integers or as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _fill_block(block: FloatArray, values: pd.Series[Any], levels: Sequence[str | None]) -> None:
    place = {level: i for i, level in enumerate(levels)}
    codes = np.array([place.get(text, -1) for text in _texts(values, str(values.name))], np.int64)
    known = np.flatnonzero(codes >= 0)
    block[known, codes[known]] = 1.0
