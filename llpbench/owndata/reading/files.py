"""Read tables from CSV, TSV and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.contracts.errors import UnknownNameError, UsageError, describe

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = {".csv": "", ".tsv": "\t", ".tab": "\t", ".txt": ""}
_PARQUET = (".parquet", ".pq")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def read_table(path: Path, separator: str = "") -> pd.DataFrame:
    """Read a table from a file; text columns in which all values are dates (2024-01-31, 2024-01-31 18:30) become dates.

    Args:
        path: a .csv, .tsv, .tab or .txt file (possibly compressed), or a .parquet file.
        separator: separator of a text file; detected by default.

    Raises:
        UsageError: the file cannot be read as a table.
    """
    import pandas as pd

    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    kind = suffixes[-1] if suffixes else ""
    if kind not in _SEPARATORS and kind not in _PARQUET:
        raise UnknownNameError(f"file type of {path}:", kind, [*_SEPARATORS, *_PARQUET])
    try:
        if kind in _PARQUET:
            return pd.read_parquet(path)
        found = separator or _SEPARATORS[kind]
        table = pd.read_csv(path, sep=found) if found else pd.read_csv(path, sep=None, engine="python")
    except ImportError:
        raise UsageError(f"reading {path} requires pyarrow: pip install pyarrow, or save it as CSV.") from None
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise UsageError(f"{path} cannot be read as a table ({describe(error)}).") from None
    if not len(table):
        raise UsageError(f"{path} has no rows.")
    return table.assign(**{str(name): dates for name in table if (dates := _dates(table[name])) is not None})


def column_of(table: pd.DataFrame, name: str, path: Path) -> str:
    """The name of a column, if the file has it."""
    if name not in table.columns:
        raise UnknownNameError(f"column of {path}:", name, map(str, table.columns))
    return name


def _dates(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """A text column as dates if all its values are dates, otherwise None."""
    import pandas as pd

    known = column.dropna()
    if not len(known) or not pd.api.types.is_string_dtype(known) or not known.str.match(r"\d{4}-\d\d-\d\d").all():
        return None
    try:
        return pd.to_datetime(column, format="ISO8601")
    except ValueError:
        return None
