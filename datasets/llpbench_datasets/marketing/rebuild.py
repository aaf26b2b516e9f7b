"""Rebuild ``bank-full.csv``, byte for byte, from the copy that a package carries in another form."""

from __future__ import annotations

import csv
import gzip
import io

from llpbench_datasets.marketing.load import NUMERIC


def bank_full(*members: bytes) -> bytes:
    """Join gzipped pieces of the table and write them as upstream does.

    The pieces are plain CSV files with a first column without a name that holds the row's number in the
    original, and the label is called ``deposit``. Upstream separates by ``;``, quotes text and ends lines
    with LF.
    """
    rows: list[tuple[int, list[str]]] = []
    names: list[str] = []
    for member in members:
        piece = csv.reader(io.StringIO(gzip.decompress(member).decode("ascii"), newline=""))
        _, *names = next(piece)
        rows += [(int(number), fields) for number, *fields in piece]
    rows.sort(key=lambda row: row[0])
    names = ["y" if name == "deposit" else name for name in names]
    bare = [name in NUMERIC for name in names]
    lines = [";".join(f'"{name}"' for name in names)]
    lines += (
        ";".join(field if plain else f'"{field}"' for field, plain in zip(fields, bare, strict=True))
        for _, fields in rows
    )
    return ("\n".join(lines) + "\n").encode("ascii")
