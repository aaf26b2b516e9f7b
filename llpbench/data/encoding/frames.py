"""A user's table as columns for the encoder, checked.

A column of numbers, booleans or lengths of time (in seconds) is numeric; texts that look like numbers are texts. A
column of dates or times is one of dates, texts that look like dates are texts. All other columns are categories, and a
missing value is one of their levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from llpbench.contracts.data import Column, FloatArray
from llpbench.contracts.errors import UsageError
from llpbench.data.encoding.dates import Dates
from llpbench.data.encoding.encoder import (
    Categories,
    DateColumn,
    FittedColumn,
    NumberColumn,
    Numbers,
    RawColumn,
    TableEncoder,
)
from llpbench.data.encoding.forms import as_frame

if TYPE_CHECKING:
    import pandas as pd

Encoding = Literal["table", "none"]


class FrameEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a user's table becomes features, the same for every later table.

    Attributes:
        table: what was learned of the columns.
        named: whether columns are found by name (a DataFrame was fitted) or by place alone.
        encoding: ``table``, or ``none``: numbers as they are, features of one space rather than columns.
    """

    table: TableEncoder
    named: bool
    encoding: Encoding = "table"

    @property
    def columns(self) -> tuple[FittedColumn, ...]:
        """What was learned of each column."""
        return self.table.columns

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return [column.name for column in self.columns]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.columns) if self.encoding == "none" else self.table.width

    def described(self) -> tuple[Column, ...]:
        """The columns as methods are told of them; none for features of one space."""
        return () if self.encoding == "none" else self.table.described()

    def transform(self, X: Any) -> FloatArray:
        """(n, features) float32 rows of a table with the fitted columns (others are ignored).

        Raises:
            UsageError: a column is missing, or holds values that it cannot hold.
        """
        series = self._arrange(as_frame(X))
        if self.encoding == "none":
            columns = [_read_finite(values, name) for values, name in zip(series, self.names, strict=True)]
            return np.stack(columns, axis=1).astype(np.float32)
        return self.table.transform(
            [_read_as(column, values) for values, column in zip(series, self.columns, strict=True)]
        )

    def _arrange(self, frame: pd.DataFrame) -> list[pd.Series[Any]]:
        """The fitted columns in their order: found by name where both sides have names, by place otherwise."""
        if self.named and named_columns(frame):
            given = [str(name) for name in frame.columns]
            absent = [name for name in self.names if name not in given]
            if absent:
                raise UsageError(
                    f"the table has no column {', '.join(map(repr, absent[:5]))}, which the model was fitted on. "
                    f"Its columns: {', '.join(given)}."
                )
            return [frame.iloc[:, given.index(name)] for name in self.names]
        if frame.shape[1] != len(self.columns):
            raise UsageError(f"the table has {frame.shape[1]} columns; the model was fitted on {len(self.columns)}.")
        return _series(frame)


def fit_encoder(X: pd.DataFrame, rows: np.ndarray[Any, Any], encoding: str = "table") -> FrameEncoder:
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
        for values, name in zip(_series(X), names, strict=True):
            _read_finite(values, name)
        return FrameEncoder(TableEncoder(tuple(NumberColumn(name, 0.0, 1.0) for name in names)), named, "none")
    if encoding != "table":
        raise UsageError(f"encoding {encoding!r} is not known; choose 'table' or 'none'.")
    columns = [_read(values, name) for values, name in zip(_series(X), names, strict=True)]
    return FrameEncoder(TableEncoder.fit(columns, rows), named)


def named_columns(frame: pd.DataFrame) -> bool:
    """Whether columns have names of their own, not just their places 0, 1, 2, ...; years are names."""
    names: list[Any] = frame.columns.tolist()
    return names != list(range(len(names)))


def is_numeric(values: pd.Series[Any]) -> bool:
    """Whether a column holds numbers, booleans or lengths of time; texts that look like numbers are texts."""
    import pandas as pd

    types = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        return False
    if _is_length_of_time(values):
        return True
    if types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return not types.is_complex_dtype(values.dtype)
    if values.dtype == object:
        kinds = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
        return types.infer_dtype(values, skipna=True) in kinds
    return False


def is_dated(values: pd.Series[Any]) -> bool:
    """Whether a column holds dates or times; texts that look like dates are texts."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values.dtype) or isinstance(values.dtype, pd.PeriodDtype):
        return True
    return values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in (
        "datetime",
        "date",
        "datetime64",
    )


def _is_length_of_time(values: pd.Series[Any]) -> bool:
    """Whether a column holds lengths of time, of pandas or of pyarrow."""
    return getattr(values.dtype, "kind", "") == "m"


def _series(frame: pd.DataFrame) -> list[pd.Series[Any]]:
    return [frame.iloc[:, j] for j in range(frame.shape[1])]


def _read(values: pd.Series[Any], name: str) -> RawColumn:
    """A column by what it holds."""
    if is_numeric(values):
        return _read_numbers(values, name)
    return _read_dates(values, name) if is_dated(values) else _read_categories(values, name)


def _read_as(column: FittedColumn, values: pd.Series[Any]) -> RawColumn:
    """A column as the kind of the fitted one."""
    if isinstance(column, NumberColumn):
        return _read_numbers(values, column.name)
    return (_read_dates if isinstance(column, DateColumn) else _read_categories)(values, column.name)


def _read_dates(values: pd.Series[Any], name: str) -> Dates:
    """A column of dates, NaT where one is missing; a time with a zone is taken as its own clocks show it."""
    import pandas as pd

    if not is_dated(values) and not values.isna().all():
        raise UsageError(f"column {name!r} holds {values.dtype} values where the model expects dates.")
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    try:
        times = pd.to_datetime(values)
        local = times.dt.tz_localize(None) if times.dt.tz is not None else times
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"column {name!r} holds dates that cannot be read ({error}).") from None
    return Dates(name, local.to_numpy().astype("datetime64[s]"))


def _read_numbers(values: pd.Series[Any], name: str) -> Numbers:
    """A column as float64, NaN where a value is missing."""
    import pandas as pd

    if not is_numeric(values):
        raise UsageError(f"column {name!r} holds {values.dtype} values where the model expects numbers.")
    if _is_length_of_time(values):
        values = values.dt.total_seconds()
    numbers = pd.to_numeric(values) if values.dtype == object else values
    array = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(array).any():
        raise UsageError(f"column {name!r} holds {int(np.isinf(array).sum())} infinite values.")
    return Numbers(name, array)


def _read_finite(values: pd.Series[Any], name: str) -> FloatArray:
    array = _read_numbers(values, name).values
    if np.isnan(array).any():
        raise UsageError(f"column {name!r} has missing values, which encoding='none' cannot take.")
    if (np.abs(array) > np.finfo(np.float32).max).any():
        raise UsageError(f"column {name!r} holds numbers beyond 3e38, which encoding='none' cannot take.")
    return array


def _read_categories(values: pd.Series[Any], name: str) -> Categories:
    """A column's values as texts; None where one is missing."""
    import pandas as pd

    if pd.api.types.is_complex_dtype(values.dtype):
        raise UsageError(f"Complex data not supported: column {name!r} holds complex numbers.")
    if is_dated(values) or _is_length_of_time(values):
        raise UsageError(f"column {name!r} holds dates or times where the model expects texts or categories.")
    missing = values.isna().to_numpy()
    texts = [None if absent else _to_text(value) for value, absent in zip(values.tolist(), missing, strict=True)]
    return Categories.from_texts(name, texts)


def _to_text(value: Any) -> str:
    """A level's text; whole numbers read the same whether they came as integers or as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
