"""Tables of numbers and categories: read once from text, then kept in a compact form beside the other caches.

Every cell of a benchmark loads its dataset in its own process; reading text takes a third of a second, the
compact form a hundredth.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llpbench import Categories, IntArray, Numbers, write_atomically
from llpbench_datasets.keys import short_digest

FORMAT = 2
"""Version of the compact form: raise it when the form or the meaning of its fields changes."""


@dataclass(frozen=True)
class LabelledTable:
    """Columns in their original order, and the label of each row."""

    columns: tuple[Numbers | Categories, ...]
    labels: IntArray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: IntArray) -> LabelledTable:
        """The given rows, in the given order."""
        return LabelledTable(tuple(column.take(rows) for column in self.columns), self.labels[rows])

    def without(self, name: str) -> LabelledTable:
        """The same table less one column."""
        return LabelledTable(tuple(c for c in self.columns if c.name != name), self.labels)


def table_from_rows(
    rows: Iterable[Sequence[str]], names: Sequence[str], numeric: Iterable[str], positive: str
) -> LabelledTable:
    """Build a table from rows of text whose last field is the label.

    Args:
        rows: fields of each row.
        names: names of the feature columns, without the label's.
        numeric: which of them are numbers; a missing value of the others (``?``) is one more category.
        positive: the text of a label of class 1; any other text is class 0.
    """
    *features, labels = zip(*rows, strict=True)
    numbers = set(numeric)
    columns: list[Numbers | Categories] = []
    for name, texts in zip(names, features, strict=True):
        if name in numbers:
            columns.append(Numbers(name, np.fromiter(map(float, texts), np.float64, len(texts))))
        else:
            columns.append(Categories.from_texts(name, texts))
    return LabelledTable(tuple(columns), np.fromiter((text == positive for text in labels), np.int64))


def cached_table(folder: Path, checksums: Sequence[str], read: Callable[[], LabelledTable]) -> LabelledTable:
    """The table that ``read`` gives, from the compact form if that was kept earlier.

    A compact form that cannot be read, or does not begin with its SHA-256, is made again, and a folder that cannot be
    written only costs time.

    Args:
        folder: where compact forms are kept.
        checksums: SHA-256 of the files that ``read`` reads: other files, other compact form.
        read: reads the text.
    """
    key = "\n".join([str(FORMAT), *checksums])
    path = folder / f"table-{short_digest(key.encode())}.npz"
    with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        kept = path.read_bytes() if path.is_file() else b""
        if kept[:32] == hashlib.sha256(kept[32:]).digest():
            return unpack(kept[32:])
    table = read()
    with suppress(OSError):
        packed = pack(table)
        write_atomically(path, hashlib.sha256(packed).digest() + packed)
    return table


def pack(table: LabelledTable) -> bytes:
    """The compact form: three arrays and a description, no pickles."""
    numbers = [c.values for c in table.columns if isinstance(c, Numbers)]
    codes = [c.codes for c in table.columns if isinstance(c, Categories)]
    small = np.uint8 if all(c.size == 0 or c.max() < 256 for c in codes) else np.int32
    head = [[c.name, None if isinstance(c, Numbers) else c.levels] for c in table.columns]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        numbers=np.array(numbers, np.float64).reshape(len(numbers), len(table)),
        codes=np.array(codes, small).reshape(len(codes), len(table)),
        labels=table.labels,
    )
    return buffer.getvalue()


def unpack(contents: bytes) -> LabelledTable:
    """Read the compact form; what is damaged fails its zip checksum."""
    with np.load(io.BytesIO(contents), allow_pickle=False) as stored:
        head = json.loads(stored["head"].tobytes())
        numbers, codes = iter(stored["numbers"]), iter(stored["codes"])
        columns = tuple(
            Numbers(name, next(numbers))
            if levels is None
            else Categories(name, next(codes).astype(np.int32), tuple(levels))
            for name, levels in head
        )
        return LabelledTable(columns, stored["labels"])
