"""Read and check the columns of a user's DataFrame for the encoder.

Columns of numbers, booleans or time deltas (in seconds) are numeric, columns of dates or times are dates. Texts that
look like numbers or dates are texts. All other columns are categories, in which a missing value is a level.
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
from llpbench.owndata.reading.forms import as_frame

if TYPE_CHECKING:
    import pandas as pd

Encoding = Literal["table", "none"]


class FrameEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fitted encoder from a user's table to features.

    Attributes:
        table: the fitted columns.
        named: whether columns are matched by name (a DataFrame was fitted) or by position.
        encoding: ``table``, or ``none``: numbers are used as they are (embeddings).
    """

    table: TableEncoder
    named: bool
    encoding: Encoding = "table"

    @property
    def columns(self) -> tuple[FittedColumn, ...]:
        """The fitted columns."""
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
        """Descriptions of the columns for methods; empty for ``none``."""
        return () if self.encoding == "none" else self.table.described()

    def transform(self, X: Any) -> FloatArray:
        """(n, features) float32 rows of a table with the fitted columns (others are ignored).

        Raises:
            UsageError: a column is missing, or has values of another type.
        """
        series = self._arrange(as_frame(X))
        if self.encoding == "none":
            columns = [_read_finite(values, name) for values, name in zip(series, self.names, strict=True)]
            return np.stack(columns, axis=1).astype(np.float32)
        return self.table.transform(
            [_read_as(column, values) for values, column in zip(series, self.columns, strict=True)]
        )

    def _arrange(self, frame: pd.DataFrame) -> list[pd.Series[Any]]:
        """The fitted columns in their order: matched by name if both tables have names, otherwise by position."""
        if self.named and named_columns(frame):
            given = [str(name) for name in frame.columns]
            absent = [name for name in self.names if name not in given]
            if absent:
                raise UsageError(
                    f"the table lacks the column {', '.join(map(repr, absent[:5]))}, which the model was fitted on. "
                    f"Its columns: {', '.join(given)}."
                )
            return [frame.iloc[:, given.index(name)] for name in self.names]
        if frame.shape[1] != len(self.columns):
            raise UsageError(f"expected a table of {len(self.columns)} columns, got {frame.shape[1]}.")
        return _series(frame)


def fit_encoder(X: pd.DataFrame, rows: np.ndarray[Any, Any], encoding: str = "table") -> FrameEncoder:
    """Fit an encoder to some rows of a table.

    Args:
        X: the table, as ``as_frame`` gives it.
        rows: numbers of the training rows.
        encoding: ``table`` or ``none``.
    """
    named = named_columns(X)
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"the table has several columns named {', '.join(map(repr, twice))}.")
    if not names:
        raise UsageError("the table has no feature columns.")
    if encoding == "none":
        for values, name in zip(_series(X), names, strict=True):
            _read_finite(values, name)
        return FrameEncoder(TableEncoder(tuple(NumberColumn(name, 0.0, 1.0) for name in names)), named, "none")
    if encoding != "table":
        raise UsageError(f"encoding must be 'table' or 'none', got {encoding!r}.")
    columns = [_read(values, name) for values, name in zip(_series(X), names, strict=True)]
    return FrameEncoder(TableEncoder.fit(columns, rows), named)


def named_columns(frame: pd.DataFrame) -> bool:
    """Whether columns have names other than 0, 1, 2, ..."""
    names: list[Any] = frame.columns.tolist()
    return names != list(range(len(names)))


def is_numeric(values: pd.Series[Any]) -> bool:
    """Whether a column contains numbers, booleans or time deltas."""
    import pandas as pd

    types = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        return False
    if _is_time_delta(values):
        return True
    if types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return not types.is_complex_dtype(values.dtype)
    if values.dtype == object:
        kinds = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
        return types.infer_dtype(values, skipna=True) in kinds
    return False


def is_dated(values: pd.Series[Any]) -> bool:
    """Whether a column contains dates or times."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values.dtype) or isinstance(values.dtype, pd.PeriodDtype):
        return True
    return values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in (
        "datetime",
        "date",
        "datetime64",
    )


def _is_time_delta(values: pd.Series[Any]) -> bool:
    """Whether a column contains time deltas, of pandas or pyarrow."""
    return getattr(values.dtype, "kind", "") == "m"


def _series(frame: pd.DataFrame) -> list[pd.Series[Any]]:
    return [frame.iloc[:, j] for j in range(frame.shape[1])]


def _read(values: pd.Series[Any], name: str) -> RawColumn:
    """Read a column by its type."""
    if is_numeric(values):
        return _read_numbers(values, name)
    return _read_dates(values, name) if is_dated(values) else _read_categories(values, name)


def _read_as(column: FittedColumn, values: pd.Series[Any]) -> RawColumn:
    """Read a column as the type of the fitted one."""
    if isinstance(column, NumberColumn):
        return _read_numbers(values, column.name)
    return (_read_dates if isinstance(column, DateColumn) else _read_categories)(values, column.name)


def _read_dates(values: pd.Series[Any], name: str) -> Dates:
    """Read a column of dates, NaT if missing; times with a time zone become local times."""
    import pandas as pd

    if not is_dated(values) and not values.isna().all():
        raise UsageError(f"column {name!r}: expected dates, got {values.dtype} values.")
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    try:
        times = pd.to_datetime(values)
        local = times.dt.tz_localize(None) if times.dt.tz is not None else times
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"column {name!r} contains invalid dates ({error}).") from None
    return Dates(name, local.to_numpy().astype("datetime64[s]"))


def _read_numbers(values: pd.Series[Any], name: str) -> Numbers:
    """Read a column as float64, NaN if missing."""
    import pandas as pd

    if not is_numeric(values):
        raise UsageError(f"column {name!r}: expected numbers, got {values.dtype} values.")
    if _is_time_delta(values):
        values = values.dt.total_seconds()
    numbers = pd.to_numeric(values) if values.dtype == object else values
    array = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(array).any():
        raise UsageError(f"column {name!r} contains {int(np.isinf(array).sum())} infinite values.")
    return Numbers(name, array)


def _read_finite(values: pd.Series[Any], name: str) -> FloatArray:
    array = _read_numbers(values, name).values
    if np.isnan(array).any():
        raise UsageError(f"column {name!r} has missing values, which encoding='none' does not support.")
    if (np.abs(array) > np.finfo(np.float32).max).any():
        raise UsageError(f"column {name!r} has numbers beyond 3e38, which encoding='none' does not support.")
    return array


def _read_categories(values: pd.Series[Any], name: str) -> Categories:
    """Read a column as texts, None if missing."""
    import pandas as pd

    if pd.api.types.is_complex_dtype(values.dtype):
        raise UsageError(f"Complex data not supported: column {name!r} has complex numbers.")
    if is_dated(values) or _is_time_delta(values):
        raise UsageError(f"column {name!r}: expected texts or categories, got dates or times.")
    if values.dtype == object and (several := values.map(lambda cell: isinstance(cell, list | dict | set))).any():
        cell = values[several].iloc[0]
        raise UsageError(
            f"column {name!r} must have one value in each cell, got a {type(cell).__name__}: {str(cell)[:40]}. Make a "
            "column of each value, or drop the column."
        )
    missing = values.isna().to_numpy()
    texts = [None if absent else _to_text(value) for value, absent in zip(values.tolist(), missing, strict=True)]
    return Categories.from_texts(name, texts)


def _to_text(value: Any) -> str:
    """The text of a level; whole numbers are the same as integers and as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
