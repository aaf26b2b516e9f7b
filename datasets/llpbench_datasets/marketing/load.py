"""Read Bank Marketing: ``bank-full.csv``, split at random."""

from __future__ import annotations

import csv
from pathlib import Path

from llpbench import Files, Split, UsageError
from llpbench_datasets.encoding import encoded_split
from llpbench_datasets.marketing import FILES
from llpbench_datasets.marketing.released import released_split
from llpbench_datasets.tables import LabelledTable, cached_table, table_from_rows

NUMERIC = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
SHARES = (4, 2, 3)


def load(files: Files, *, seed: int, encoding: str = "onehot", duration: bool = True) -> Split:
    """Load Bank Marketing: 2/3 and 1/3, then 1/3 of the training rows for validation.

    Args:
        files: the dataset's files.
        seed: seed of the split; the released split is the same for every seed.
        encoding: ``"onehot"``, ``"ordinal"`` or ``"released"`` (see ``released.py``).
        duration: keep the column ``duration``; the released matrix always has it.
    """
    if encoding == "released" and not duration:
        raise UsageError(
            "marketing: encoding=released reproduces a published matrix that contains the column duration; "
            "use duration=false with encoding=onehot or encoding=ordinal."
        )
    path = files.path(FILES[0].path)
    table = cached_table(files.cache, [FILES[0].sha256], lambda: read(path))
    if encoding == "released":
        return released_split(table)
    if not duration:
        table = table.without("duration")
    return encoded_split(table, SHARES, seed=seed, encoding=encoding)


def read(path: Path) -> LabelledTable:
    """Read ``bank-full.csv`` into a table; its first line names the columns, its last column is the label."""
    with path.open(encoding="ascii", newline="") as stream:
        rows = csv.reader(stream, delimiter=";")
        names = next(rows)[:-1]
        return table_from_rows(rows, names, NUMERIC, "yes")
