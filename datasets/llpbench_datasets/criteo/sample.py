"""Three disjoint random samples of a file of unknown length, in one pass and bounded memory.

Every line draws a number ``u`` from [0, 1); the ``m`` lines with the smallest numbers are the sample, in the order of
their numbers. That is a uniform draw without replacement in random order, so its beginning, middle and end are the
three parts. A line is read only if its number is below the ``m``-th smallest so far, which happens to
``m (1 + ln(n / m))`` of ``n`` lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from llpbench import FloatArray
from llpbench_datasets.criteo.text import BLOCK, WIDTH, Rows, blocks

SHARES = (1_000_000, 200_000, 250_000)
"""Training, validation and test rows in the paper; smaller draws have the same shares."""


def draw(path: Path, rows: int, seed: int, *, block: int = BLOCK) -> Rows:
    """Draw ``rows`` lines of a file at random, without replacement, in random order; all lines if it has fewer.

    The draw depends on the file's lines and the seed alone: not on the block size, not on compression.

    Args:
        path: a file in Criteo's format, gzipped or plain.
        rows: lines to draw.
        seed: seed of the draw.
        block: bytes read at once.
    """
    rng = np.random.default_rng(seed)
    kept: Rows = np.empty((0, WIDTH), np.int32)
    keys: FloatArray = np.empty(0)
    waiting: list[tuple[Rows, FloatArray]] = []
    bar, held = 1.0, 0
    for piece in blocks(path, block):
        u = rng.random(len(piece))
        wanted = np.flatnonzero(u < bar)
        waiting.append((piece.rows(wanted), u[wanted]))
        held += len(wanted)
        if len(keys) + held > rows + max(rows // 4, 4096):
            kept, keys = _smallest(kept, keys, waiting, rows)
            bar, held = float(keys.max()), 0
    kept, keys = _smallest(kept, keys, waiting, rows)
    return kept[np.argsort(keys, kind="stable")]


def _smallest(
    kept: Rows, keys: FloatArray, waiting: list[tuple[Rows, FloatArray]], rows: int
) -> tuple[Rows, FloatArray]:
    """The rows with the smallest numbers among those kept and those waiting; empties the waiting list."""
    keys = np.concatenate([keys, *(u for _, u in waiting)])
    best = np.argpartition(keys, rows - 1)[:rows] if len(keys) > rows else np.arange(len(keys))
    best.sort()
    chosen = np.empty((len(best), WIDTH), np.int32)
    start = 0
    for source in _taken(kept, waiting):  # piece by piece: the rows are never held twice over
        inside = best[np.searchsorted(best, start) : np.searchsorted(best, start + len(source))]
        at = int(np.searchsorted(best, start))
        chosen[at : at + len(inside)] = source[inside - start]
        start += len(source)
    return chosen, keys[best]


def _taken(kept: Rows, waiting: list[tuple[Rows, FloatArray]]) -> Iterator[Rows]:
    yield kept
    while waiting:
        yield waiting.pop(0)[0]


def part_sizes(n: int) -> tuple[int, int, int]:
    """Training, validation and test rows of ``n``, in the paper's shares; training takes what rounding leaves."""
    total = sum(SHARES)
    valid, test = round(n * SHARES[1] / total), round(n * SHARES[2] / total)
    return n - valid - test, valid, test
