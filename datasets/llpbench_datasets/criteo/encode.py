"""From rows to numbers and buckets, and the cheap features made of them. All is fitted on training rows alone.

An integer becomes its signed logarithm ``sign(x) log(1 + |x|)``, standardised and clipped; a missing one becomes 0 and
is marked. A category becomes a bucket of its column: 0 when missing, a bucket of its own for the values that training
rows show most often, and one of the other buckets by a hash for all the rest, seen or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench import Column, FloatArray, IntArray
from llpbench_datasets.criteo.text import CATEGORIES, FIELDS, INTEGERS, MISSING, NAMES, Rows

CLIP = 4.0
"""Standard deviations beyond which a number is cut off."""
_SCATTER = np.uint32(2_654_435_761)
_BLOCK = 2**14


@dataclass(frozen=True)
class Encoded:
    """Rows as a network takes them.

    Attributes:
        numbers: (n, 13) float32, 0 where missing.
        absent: (n, 13) float32, 1 where the integer is missing.
        buckets: (n, 26) int32 from 0 to ``size - 1``.
        size: buckets of each category.
    """

    numbers: FloatArray
    absent: FloatArray
    buckets: IntArray
    size: int

    def __len__(self) -> int:
        return len(self.numbers)

    def head(self, n: int) -> Encoded:
        """The first ``n`` rows."""
        return Encoded(self.numbers[:n], self.absent[:n], self.buckets[:n], self.size)


def encode(rows: Rows, train: int, size: int) -> Encoded:
    """Encode rows; what is learned for this is learned from the first ``train`` of them.

    Args:
        rows: rows, training rows first.
        train: number of training rows.
        size: buckets of each category; half of them are for frequent values.
    """
    integers = rows[:, 1 : 1 + INTEGERS]
    absent = integers == MISSING
    numbers = np.zeros(integers.shape, np.float32)
    for column in range(INTEGERS):
        value = np.where(absent[:, column], 0, integers[:, column]).astype(np.float64)
        value = np.sign(value) * np.log1p(np.abs(value))
        present = value[:train][~absent[:train, column]]
        mean, sd = (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)
        scaled = np.clip((value - mean) / (sd if sd > 1e-9 else 1.0), -CLIP, CLIP)
        numbers[:, column] = np.where(absent[:, column], 0.0, scaled)
    buckets = np.empty((len(rows), CATEGORIES), np.int32)
    for column in range(CATEGORIES):
        gone = (rows[:, FIELDS] >> column & 1).astype(bool)
        hashes = np.ascontiguousarray(rows[:, 1 + INTEGERS + column]).view(np.uint32)
        buckets[:, column] = np.where(gone, 0, _place(hashes, frequent(hashes[:train][~gone[:train]], size), size))
    return Encoded(numbers, absent.astype(np.float32), buckets, size)


def frequent(hashes: NDArray[np.uint32], size: int) -> NDArray[np.uint32]:
    """The values that get a bucket of their own, in ascending order: the most frequent, at least twice seen."""
    values, counts = np.unique(hashes, return_counts=True)
    best = np.argsort(-counts, kind="stable")[: size // 2 - 1]
    return np.sort(values[best[counts[best] > 1]])


def _place(hashes: NDArray[np.uint32], own: NDArray[np.uint32], size: int) -> IntArray:
    """Buckets 1, 2, … for the values of ``own``; hashed into the second half for the others."""
    at = np.searchsorted(own, hashes)
    known = own[np.minimum(at, len(own) - 1)] == hashes if len(own) else np.zeros(len(hashes), bool)
    half = size // 2
    shared = half + ((hashes * _SCATTER) >> np.uint32(8)) % np.uint32(size - half)
    return np.where(known, at + 1, shared)


def hashed_features(rows: Rows, train: int, seed: int, *, dim: int, size: int) -> FloatArray:
    """A cheap embedding: numbers, marks of missing numbers, and a random projection of all values as 0/1 columns.

    The projection of a row is ``sum_c r(c, bucket_c) / sqrt(39)`` with standard normal vectors ``r`` drawn by the
    seed; numbers enter it too, cut into steps of half a standard deviation.

    Returns:
        (n, 26 + dim) float32.
    """
    encoded = encode(rows, train, size)
    rng = np.random.default_rng(seed)
    steps = 1 + 2 * int(CLIP) * 2
    tables = [rng.standard_normal((steps + 1, dim), dtype=np.float32) for _ in range(INTEGERS)]
    tables += [rng.standard_normal((size, dim), dtype=np.float32) for _ in range(CATEGORIES)]
    X = np.empty((len(rows), 2 * INTEGERS + dim), np.float32)
    X[:, :INTEGERS], X[:, INTEGERS : 2 * INTEGERS] = encoded.numbers, encoded.absent
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        step = np.rint((encoded.numbers[part] + CLIP) * 2).astype(np.int32)
        step = np.where(encoded.absent[part] > 0, steps, step)
        total = sum(table[index] for table, index in zip(tables, [*step.T, *encoded.buckets[part].T], strict=True))
        X[part, 2 * INTEGERS :] = total / np.sqrt(len(tables))
    return X


def column_features(rows: Rows, train: int, size: int) -> tuple[FloatArray, tuple[Column, ...]]:
    """The 39 columns: 13 standardised numbers (0 if missing), and a 0/1 feature for each bucket of a category.

    Returns:
        (n, 13 + 26 * size) float32, and the columns they belong to.
    """
    encoded = encode(rows, train, size)
    X = np.zeros((len(rows), INTEGERS + CATEGORIES * size), np.float32)
    X[:, :INTEGERS] = encoded.numbers
    starts = INTEGERS + size * np.arange(CATEGORIES)
    np.put_along_axis(X, starts + encoded.buckets.astype(np.int64), 1, axis=1)
    numbers = tuple(Column(name, "numeric", 1) for name in NAMES[1 : 1 + INTEGERS])
    categories = tuple(Column(name, "category", size) for name in NAMES[1 + INTEGERS :])
    return X, numbers + categories
