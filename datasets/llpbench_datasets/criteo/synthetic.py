r"""Write a file of any length in Criteo's format, with a signal: for scale, and where the real file cannot be had.

    python -m llpbench_datasets.criteo.synthetic synthetic.txt.gz --rows 1000000 --seed 0

A row has four hidden traits ``z``, standard normal. An integer is ``round(exp(mu + sigma t)) - 1``, and a category the
rank ``floor(V^v)`` among ``V`` values with ``v`` uniform, so that value ``r`` has a share of about ``1 / (r log V)``:
few frequent, many rare. ``t`` and ``v`` depend on the traits in part, which ties the columns to each other.
The click is drawn with probability ``sigmoid(b + s)``, where ``s`` sums an effect of each column (linear in ``t`` for
integers, one number for each category value), scaled to a standard deviation of 1.2; ``b`` gives 25 % clicks.
Missing fields and numbers of values follow the real file; missing says nothing about the click.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llpbench import FloatArray, IntArray, whole_file
from llpbench_datasets.criteo.text import CATEGORIES, INTEGERS

CLICK_RATE = 0.25
SIGNAL = 1.2
"""Standard deviation of the score; the best possible AUROC is then about 0.78."""
TRAITS = 4
TIED = 0.5
"""Share of a column's variance that comes from the traits."""
INTEGER_MISSING = (0.45, 0.0, 0.21, 0.22, 0.03, 0.22, 0.04, 0.001, 0.04, 0.45, 0.04, 0.76, 0.22)
INTEGER_SHAPE = (
    (0.7, 1.1), (1.8, 2.0), (1.9, 1.4), (1.7, 1.0), (7.0, 2.2), (3.8, 1.6), (1.7, 1.5), (2.2, 1.0), (3.9, 1.6),
    (0.4, 0.3), (0.9, 0.7), (0.3, 0.6), (1.7, 1.1),
)  # fmt: skip
"""Mean and standard deviation of the logarithm of each integer plus one."""
VALUES = (
    1460, 583, 100_000, 90_000, 305, 24, 12_517, 633, 3, 93_145, 5683, 80_000, 3194, 27, 14_992, 70_000, 10, 5652,
    2173, 4, 75_000, 18, 15, 60_000, 105, 50_000,
)  # fmt: skip
"""Values of each category; the largest are cut to 100,000."""
CATEGORY_MISSING = (
    0, 0, 0.034, 0.034, 0, 0.12, 0, 0, 0, 0, 0, 0.034, 0, 0, 0, 0.034, 0, 0, 0.44, 0.44, 0.034, 0.76, 0, 0.034, 0.44,
    0.44,
)  # fmt: skip
_BLOCK = 50_000


@dataclass(frozen=True)
class World:
    """Parameters that all rows share: how columns depend on the traits, and how their values affect the click."""

    loadings: FloatArray  # (39, TRAITS), unit rows
    slopes: FloatArray  # (13,)
    effects: tuple[FloatArray, ...]  # (V,) for each category
    scale: float = 1.0
    intercept: float = 0.0


def make_world(seed: int) -> World:
    """Draw a world, and set scale and intercept by a trial block so that signal and click rate are as stated."""
    rng = np.random.default_rng([seed, 1])
    loadings = rng.standard_normal((INTEGERS + CATEGORIES, TRAITS))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    effects = tuple(0.5 * rng.standard_normal(count, dtype=np.float32) for count in VALUES)
    world = World(loadings, rng.standard_normal(INTEGERS), effects)
    *_, score = _columns(world, np.random.default_rng([seed, 2]), 20_000)
    scale = SIGNAL / float(score.std())
    low, high = -10.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        rate = float(_sigmoid(middle + scale * (score - score.mean())).mean())
        low, high = (middle, high) if rate < CLICK_RATE else (low, middle)
    return World(loadings, world.slopes, effects, scale, low - scale * float(score.mean()))


def _sigmoid(x: FloatArray) -> FloatArray:
    result: FloatArray = 1.0 / (1.0 + np.exp(-x))
    return result


def _columns(world: World, rng: np.random.Generator, rows: int) -> tuple[FloatArray, list[IntArray], FloatArray]:
    """Standardised integers (rows, 13), the ranks of each category, and the unscaled score."""
    from scipy.special import ndtr

    traits = rng.standard_normal((rows, TRAITS))
    own = rng.standard_normal((rows, INTEGERS + CATEGORIES))
    t = np.sqrt(TIED) * traits @ world.loadings.T + np.sqrt(1 - TIED) * own
    score = t[:, :INTEGERS] @ world.slopes
    ranks = []
    for column, count in enumerate(VALUES):
        rank = np.minimum(np.floor(count ** ndtr(t[:, INTEGERS + column])).astype(np.int64), count) - 1
        ranks.append(rank)
        score += world.effects[column][rank]
    return t[:, :INTEGERS], ranks, score


def lines(rows: int, seed: int) -> Iterator[bytes]:
    """The file's text in blocks of lines; the same lines for the same seed, and more of them for more rows."""
    world = make_world(seed)
    words = [_words(column, count, seed) for column, count in enumerate(VALUES)]
    for number, start in enumerate(range(0, rows, _BLOCK)):
        rng = np.random.default_rng([seed, 3, number])
        t, ranks, score = _columns(world, rng, _BLOCK)
        click = rng.random(_BLOCK) < _sigmoid(world.intercept + world.scale * score)
        fields = [np.where(click, b"1", b"0").tolist()]
        for column, (mu, sigma) in enumerate(INTEGER_SHAPE):
            value = np.minimum(np.rint(np.exp(mu + sigma * t[:, column])), 2**30).astype(np.int64) - 1
            fields.append(_blank(value.astype("S11"), INTEGER_MISSING[column], rng))
        for column, rank in enumerate(ranks):
            fields.append(_blank(words[column][rank], CATEGORY_MISSING[column], rng))
        count = min(_BLOCK, rows - start)
        yield b"".join(b"\t".join(row) + b"\n" for row in zip(*(field[:count] for field in fields), strict=True))


def _words(column: int, count: int, seed: int) -> np.ndarray:
    """The hash that stands for each value of a category: distinct, of 8 hexadecimal digits."""
    start = np.random.default_rng([seed, 4, column]).integers(2**32)
    numbers = (np.arange(count, dtype=np.uint64) * np.uint64(2_654_435_761) + np.uint64(start)) % np.uint64(2**32)
    return np.array([b"%08x" % number for number in numbers.tolist()], dtype="S8")


def _blank(texts: np.ndarray, share: float, rng: np.random.Generator) -> list[bytes]:
    if share:
        texts = np.where(rng.random(len(texts)) < share, b"", texts)
    result: list[bytes] = texts.tolist()
    return result


def write_synthetic(path: Path, rows: int, seed: int = 0) -> None:
    """Write ``rows`` lines to ``path`` (gzipped if its name ends in ``.gz``), whole or not at all."""
    with whole_file(path) as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0) as stream:
                stream.writelines(lines(rows, seed))
        else:
            raw.writelines(lines(rows, seed))


def main() -> None:
    """Write a file from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m llpbench_datasets.criteo.synthetic", description=write_synthetic.__doc__
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.rows < 1:
        parser.error("--rows must be at least 1")
    write_synthetic(options.path, options.rows, options.seed)


if __name__ == "__main__":
    main()
