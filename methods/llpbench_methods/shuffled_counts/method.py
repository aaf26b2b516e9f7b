"""Another method, given the bags with counts that belong to other bags."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from llpbench import Bags, IntArray
from llpbench_methods.shared.counts import whole_counts
from llpbench_methods.shared.other_method import OtherMethod


def shuffle_counts(bags: Bags, rng: np.random.Generator) -> Bags:
    """The same rows in the same bags, each bag with the count of another; validation bags among themselves.

    Counts are permuted at random among the bags of equal size, so that every size keeps its counts. A bag whose size no
    other bag has takes the *proportion* of a bag drawn at random from all others (as a whole count, where counts are
    whole). What is left of the counts is their distribution: above all the rate of each class.
    """
    shuffled = bags.counts[_other_of_its_size(bags.sizes, rng)]
    _, number, members = np.unique(bags.sizes, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(members[number] == 1)
    if len(alone) and len(bags) > 1:
        lender = (alone + rng.integers(1, len(bags), len(alone))) % len(bags)
        lent = bags.proportions[lender] * bags.sizes[alone, None]
        if np.array_equal(bags.counts, np.rint(bags.counts)):
            offsets = np.concatenate([[0], np.cumsum(bags.sizes[alone])])
            lent = whole_counts(Bags(bags.X[:0], offsets, lent, bags.classes)).astype(np.float64)
        shuffled[alone] = lent
    shuffled.setflags(write=False)
    held = None if bags.validation is None else shuffle_counts(bags.validation, rng)
    return replace(bags, counts=shuffled, validation=held)


def _other_of_its_size(sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """A random permutation of the bags that leads from each bag to one of its size."""
    by_size = np.argsort(sizes, kind="stable")
    drawn = np.lexsort((rng.random(len(sizes)), sizes))
    source = np.empty(len(sizes), np.int64)
    source[by_size] = drawn
    return source


class ShuffledCounts(OtherMethod):
    """Runs another method at its defaults on bags whose counts were shuffled.

    What is left above chance is what the rows, the class rates and the choice among reports give, and no merit of
    learning from counts.

    Args:
        method: name of an installed method; neither a bound nor a control that runs another method.
        patience: the monitor's patience.
    """

    control: ClassVar[str] = "shuffled-counts"

    def __init__(self, method: str = "dllp", patience: int = 20) -> None:
        super().__init__(method, patience)

    def _bags(self, bags: Bags, seed: int) -> Bags:
        return shuffle_counts(bags, np.random.default_rng([seed, 1]))
