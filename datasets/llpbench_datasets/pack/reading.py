"""The columns of a data file of the pack, by format. Nothing of a file is executed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from llpbench import DatasetError
from llpbench_datasets.pack.declared import DeclaredTable
from llpbench_datasets.pack.pickled import AnyArray, read_pickled


def read_columns(path: Path, table: DeclaredTable) -> dict[str, AnyArray]:
    """The columns that a table uses, its label included, from its data file.

    Raises:
        DatasetError: the file cannot be read, or its columns are not those that the table declares.
    """
    wanted = {table.label.column, *(name.partition(":")[0] for name in table.used)}
    if table.file.format == "pickle":
        found = read_pickled(path.read_bytes())
        check_names(table, found)
        return {name: found[name] for name in wanted}
    if table.file.format == "csv":
        return _read_csv(path, table, wanted)
    return _read_parquet(path, table, wanted)


def check_names(table: DeclaredTable, found: Iterable[str]) -> None:
    """Reject a file whose columns are not exactly the declared ones."""
    declared = {table.label.column, *table.dropped, *(name.partition(":")[0] for name in table.used)}
    if missing := sorted(declared - set(found)):
        raise DatasetError(f"{table.name}: the file has no column {', '.join(missing)}.")
    if more := sorted(set(found) - declared):
        raise DatasetError(f"{table.name}: columns that the table does not declare: {', '.join(more)}.")


def _read_csv(path: Path, table: DeclaredTable, wanted: set[str]) -> dict[str, AnyArray]:
    import pandas as pd

    check_names(table, pd.read_csv(path, nrows=0).columns)
    frame = pd.read_csv(path, usecols=sorted(wanted))
    return {name: np.asarray(frame[name]) for name in wanted}


def _read_parquet(path: Path, table: DeclaredTable, wanted: set[str]) -> dict[str, AnyArray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    check_names(table, schema.names)
    texts = [name for name in wanted if pa.types.is_string(schema.field(name).type)]
    frame = pq.read_table(path, columns=sorted(wanted), read_dictionary=texts, use_threads=False)
    return {name: _from_arrow(frame.column(name).combine_chunks()) for name in wanted}


def _from_arrow(column: Any) -> AnyArray:
    """An Arrow array as a NumPy array; equal texts share one object."""
    chunk = column.chunk(0) if hasattr(column, "chunk") else column
    if not hasattr(chunk, "dictionary"):
        return np.asarray(chunk.to_numpy(zero_copy_only=False))
    levels = np.array([*chunk.dictionary.to_pylist(), None], object)
    codes = chunk.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(levels[codes])
