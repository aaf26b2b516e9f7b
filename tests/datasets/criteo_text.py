"""Small files in Criteo's format, for tests."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def line(number: int, label: int = 0) -> bytes:
    """A valid line whose I2 is its own number; every third I1 and every second C1 is missing."""
    integers = [b"" if number % 3 == 0 else b"7", b"%d" % number, b"-2", *([b"5"] * 10)]
    hashes = [b"" if number % 2 else b"%08x" % (number % 5), *(b"%08x" % (4_000_000_000 + c) for c in range(25))]
    return b"\t".join([b"%d" % label, *integers, *hashes])


def write(path: Path, lines: list[bytes], end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(one + end for one in lines)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def numbered(path: Path, rows: int) -> Path:
    """A file whose rows carry their number in I2 and a random label."""
    labels = np.random.default_rng(0).integers(2, size=rows)
    return write(path, [line(i, int(labels[i])) for i in range(rows)])
