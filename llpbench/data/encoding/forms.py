"""The forms in which people have tables and columns, as pandas: arrays, sparse matrices, DataFrames of other libraries.

Nothing is imported for it: a polars DataFrame is known by what it can do. Its columns are taken one by one as arrays,
so that pyarrow is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

MOST_DENSE_BYTES = 4 * 2**30
"""Memory that a sparse matrix may take when all its zeros are written out."""


def as_frame(X: Any) -> pd.DataFrame:
    """A table as a DataFrame of pandas with its own column types.

    Args:
        X: a DataFrame of pandas, polars or any library whose DataFrames have ``to_pandas``; an array; a sparse matrix
            of scipy, whose zeros are written out; rows of values.

    Raises:
        UsageError: it is not a table of rows and columns, or too large with its zeros written out.
    """
    import pandas as pd

    X = to_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, pd.Series):
        raise UsageError(f"X must be a table of rows and columns, not one column of {len(X):,} values.")
    if _is_sparse(X):
        X = _to_dense(X)
    try:
        array = np.asarray(X)
    except ValueError:
        raise UsageError("the rows of X do not have the same number of columns.") from None
    if array.ndim != 2:
        raise UsageError(f"X must be a table of rows and columns, not an array of shape {array.shape}.")
    return pd.DataFrame(array)


def check_order(values: Any, frame: pd.DataFrame, what: str) -> None:
    """Refuse a Series whose index has the rows of a table in another order: values are matched by place.

    Args:
        values: a value for each row, in any form.
        frame: the table; one that was made of an array has no names of rows to compare.
        what: the argument's name.

    Raises:
        UsageError: which of the two orders is meant is not clear.
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
        f"{what} has the rows of the table in another order, by its index; values are matched by place. Give "
        f"{what}.loc[X.index] to match them by index, or {what}.to_numpy() if the places are right."
    )


def to_pandas(given: Any) -> Any:
    """A DataFrame or Series of another library as one of pandas; anything else as it is."""
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
    """The values of a column of polars. A day becomes a time, as pandas knows no days; zones are left off."""
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
            f"X is a sparse matrix of {' x '.join(f'{n:,}' for n in X.shape)}. Methods learn from dense features, and "
            f"these would take {size / 2**30:.1f} GiB (at most {MOST_DENSE_BYTES / 2**30:g}). Make fewer columns of it "
            "first, for example with TruncatedSVD of scikit-learn."
        )
    return np.asarray(X.toarray())
