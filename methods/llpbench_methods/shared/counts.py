"""Counts of bags: as whole numbers, and their mean over all rows."""

from __future__ import annotations

import numpy as np

from llpbench import Bags, FloatArray, IntArray


def whole_counts(bags: Bags) -> IntArray:
    """Counts as whole numbers that a bag can hold: (bags, 1) for two classes, (bags, C) with rows summing to the size.

    Counts of two classes are rounded and forced into [0, size]. Those of several are forced into [0, size], scaled to
    add up to the size and rounded down; the rows that are left go to the classes with the largest remainders (the
    lowest class first among equals).
    """
    sizes = bags.sizes[:, None]
    if bags.classes == 2:
        return np.clip(np.rint(bags.counts), 0, sizes).astype(np.int64)
    exact = bags.clipped_proportions * sizes
    # Sums of floats: a count of 3 may arrive as 2.9999999999.
    whole = np.floor(exact + 1e-9).astype(np.int64)
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(whole + (rank < sizes - whole.sum(axis=1, keepdims=True)))


def mean_counts(bags: Bags) -> FloatArray:
    """Counts of all bags divided by the number of rows, (1,) or (C,); noisy ones are not forced into [0, 1].

    A loss that subtracts the prior from counts needs this one; ``Bags.prior`` is the nearest that is a distribution.
    """
    mean: FloatArray = bags.counts.sum(axis=0) / bags.sizes.sum()
    return mean
