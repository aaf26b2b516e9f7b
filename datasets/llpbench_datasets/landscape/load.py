"""Adult in published bags, split as the published runs were: inside bags, so that a test row's bag was trained on."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from llpbench import Files, IntArray, Split
from llpbench_datasets.adult.load import read
from llpbench_datasets.encoding import encode_parts
from llpbench_datasets.landscape import LANDSCAPE
from llpbench_datasets.landscape.names import USUAL
from llpbench_datasets.tables import LabelledTable, cached_table

PUBLISHED = Path(__file__).parent / "published"
TEST_SHARE = 0.25


def load(
    files: Files,
    *,
    seed: int,
    run: int,
    set: str = USUAL,  # noqa: A002 - the word a user types
    validation: float = 0.2,
    encoding: str = "onehot",
) -> Split:
    """Load a bag set with the split of one published run.

    Args:
        files: Adult's files.
        seed: seed of the rows that are held out for validation.
        run: number of the published run.
        set: name of the bag set.
        validation: share of the training rows of each bag that is held out.
        encoding: ``"onehot"`` or ``"ordinal"``.
    """
    bag_of = bag_numbers(set)
    known, test = published_split(len(bag_of), run)
    train, valid = held_out(known, bag_of, validation, seed)
    return encode_parts(rows_in_place(files), (train, valid, test), encoding, bag_of=bag_of)


def rows_in_place(files: Files) -> LabelledTable:
    """Adult with its rows in the places of the bag vectors: the test file first, then put in the published order."""
    data, test = LANDSCAPE.files
    paths = [files.path(file.path) for file in (test, data)]
    table = cached_table(files.cache, [test.sha256, data.sha256], lambda: read(paths))
    with np.load(PUBLISHED / "bags.npz") as stored:
        return table.take(stored["rows"])


def bag_numbers(name: str) -> IntArray:
    """The bag of each place in a set."""
    with np.load(PUBLISHED / "bags.npz") as stored:
        return np.asarray(stored[name], np.int64)


@cache
def published_seeds() -> tuple[int, ...]:
    """The seed of each published run's split."""
    return tuple(json.loads((PUBLISHED / "split_seeds.json").read_text(encoding="ascii")))


def published_split(n: int, run: int) -> tuple[IntArray, IntArray]:
    """Training and test places of a run, as scikit-learn's ``ShuffleSplit(1, test_size=.25)`` draws them.

    The first quarter (rounded up) of a permutation is the test. There are 30 published runs; a later one is drawn in
    the same way with its number as the seed.
    """
    seeds = published_seeds()
    generator = np.random.RandomState(seeds[run] if run < len(seeds) else run)
    order = generator.permutation(n)
    tested = int(np.ceil(TEST_SHARE * n))
    return order[tested:], order[:tested]


def held_out(rows: IntArray, bag_of: IntArray, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Divide rows into training and validation: the given share of the rows of each bag, at random, is held out.

    So a validation bag is a part of a training bag, with a count of its own.
    """
    order = rows[np.random.default_rng(seed).permutation(len(rows))]
    order = order[np.argsort(bag_of[order], kind="stable")]
    _, first, sizes = np.unique(bag_of[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, sizes)
    held = place < np.repeat(np.round(share * sizes), sizes)
    return order[~held], order[held]
