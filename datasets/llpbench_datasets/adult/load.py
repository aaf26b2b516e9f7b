"""Read Adult: both upstream files joined, then split at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from llpbench import Files, Split
from llpbench_datasets.adult import FILES
from llpbench_datasets.encoding import encoded_split
from llpbench_datasets.tables import LabelledTable, cached_table, table_from_rows

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
SHARES = (0.81, 0.09, 0.10)


def load(files: Files, *, seed: int, encoding: str = "onehot") -> Split:
    """Load Adult: 90/10, then 10 % of the training rows for validation.

    Args:
        files: the dataset's files.
        seed: seed of the split.
        encoding: ``"onehot"`` or ``"ordinal"``.
    """
    paths = [files.path(file.path) for file in FILES]
    table = cached_table(files.cache, [file.sha256 for file in FILES], lambda: read(paths))
    return encoded_split(table, SHARES, seed=seed, encoding=encoding)


def read(paths: Sequence[Path]) -> LabelledTable:
    """Read upstream files in the given order into one table."""
    return table_from_rows((row for path in paths for row in _rows(path)), COLUMNS, NUMERIC, ">50K")


def _rows(path: Path) -> Iterator[list[str]]:
    """Rows of one file: its blank last line and the remark that opens ``adult.test`` are no rows.

    Labels of ``adult.test`` end in a full stop; those of ``adult.data`` do not.
    """
    for line in path.read_text(encoding="ascii").splitlines():
        if line and not line.startswith("|"):
            yield line.rstrip(".").split(", ")
