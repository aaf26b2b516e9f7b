"""Convert tables to pandas: arrays, sparse matrices, DataFrames of other libraries.

No other library is imported: a polars DataFrame is recognised by its methods. Its columns are converted one by one to
arrays, so that pyarrow is not needed.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

MOST_DENSE_BYTES = 4 * 2**30
"""Maximum size of a sparse matrix after conversion to a dense one."""


def as_frame(X: Any) -> pd.DataFrame:
    """A table as a pandas DataFrame.

    Args:
        X: a DataFrame of pandas, polars or any library whose DataFrames have ``to_pandas``; an array; a scipy sparse
            matrix, which is converted to a dense one; rows of values.

    Raises:
        UsageError: it is not a table of rows and columns, or too large as a dense matrix.
    """
    import pandas as pd

    X = to_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, str | PathLike):
        raise UsageError(f"X must be a table, got the path {str(X)!r}; read it first, e.g. with pandas.read_csv.")
    if isinstance(X, pd.Series):
        raise UsageError(f"X must be a table of rows and columns, got one column of {len(X):,} values.")
    if _is_sparse(X):
        X = _to_dense(X)
    try:
        array = np.asarray(X)
    except ValueError:
        raise UsageError("the rows of X must have the same number of columns.") from None
    if array.ndim != 2:
        raise UsageError(f"X must be a table of rows and columns, got an array of shape {array.shape}.")
    return pd.DataFrame(array)


def check_order(values: Any, frame: pd.DataFrame, what: str) -> None:
    """Reject a Series whose index has the rows of the table in another order, since values are matched by position.

    Args:
        values: one value per row, in any form.
        frame: the table.
        what: name of the argument.
    """
    import pandas as pd

    if not isinstance(values, pd.Series) or len(values) != len(frame) or isinstance(frame.columns, pd.RangeIndex):
        return
    ours, theirs = frame.index, values.index
    if ours.nlevels != theirs.nlevels:
        return
    if ours.equals(theirs) or not (ours.is_unique and theirs.is_unique) or not ours.isin(theirs).all():
        return
    raise UsageError(
        f"the index of {what} has the rows of the table in another order, but values are matched by position. Pass "
        f"{what}.loc[X.index] to match by index, or {what}.to_numpy() to match by position."
    )


def to_pandas(given: Any) -> Any:
    """A DataFrame or Series of another library as one of pandas; other values unchanged."""
    import pandas as pd

    if isinstance(given, pd.DataFrame | pd.Series):
        return given
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):  # a lazy frame
        given = given.collect()
    if hasattr(given, "get_columns") and hasattr(given, "iter_rows"):  # polars
        return pd.DataFrame({column.name: _values(column) for column in given.get_columns()})
    if hasattr(given, "to_numpy") and hasattr(given, "to_physical"):  # a column of polars
        return pd.Series(_values(given), name=given.name or None)
    if hasattr(given, "to_pandas"):
        return given.to_pandas()
    return given


def _values(column: Any) -> Any:
    """The values of a polars column; days become times, and time zones are dropped."""
    if getattr(column.dtype, "time_zone", None):
        column = column.dt.replace_time_zone(None)
    values = column.to_numpy()
    if values.dtype == np.dtype("datetime64[D]"):
        return values.astype("datetime64[s]")
    return values


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "toarray") and hasattr(X, "nnz")


def _to_dense(X: Any) -> np.ndarray[Any, Any]:
    size = int(np.prod(X.shape)) * np.dtype(X.dtype).itemsize
    if size > MOST_DENSE_BYTES:
        raise UsageError(
            f"X is a sparse matrix of {' x '.join(f'{n:,}' for n in X.shape)}. Methods need dense features, "
            f"which would take {size / 2**30:.1f} GiB (at most {MOST_DENSE_BYTES / 2**30:g}). Reduce the number of "
            "columns first, for example with TruncatedSVD of scikit-learn."
        )
    return np.asarray(X.toarray())
