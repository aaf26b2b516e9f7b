"""Hard labels that fit the counts: of all labellings of a bag with the known counts, the most probable one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench import IntArray


def fitting_labels(scores: NDArray[Any], offsets: IntArray, counts: IntArray) -> IntArray:
    """(rows,) ``t`` that minimises ``Σ_{i∈b} −log p(t_i)`` in every bag, under the bag's exact class counts.

    Two classes: the ``c_b`` rows with the highest scores, the first of equal ones. Several: an assignment of rows to
    places, ``counts[b, c]`` places of class c.

    Args:
        scores: (rows,) any monotone score of class 1, or (rows, C) logarithms of probabilities (a constant may be
            added to a row).
        offsets: (bags + 1,) where bags begin and end.
        counts: (bags, 1) whole counts of class 1, or (bags, C) with rows that add up to the bags' sizes.
    """
    if scores.ndim == 1:
        return _highest(scores, offsets, counts[:, 0])
    labels = np.empty(len(scores), np.int64)
    for b, (first, last) in enumerate(pairwise(offsets)):
        labels[first:last] = _assigned(np.asarray(scores[first:last], np.float64), counts[b])
    return labels


def _highest(scores: NDArray[Any], offsets: IntArray, counts: IntArray) -> IntArray:
    """1 for the ``counts[b]`` rows of bag b with the highest scores, 0 for the others."""
    sizes = np.diff(offsets)
    order = np.lexsort((-scores, np.repeat(np.arange(len(sizes)), sizes)))
    rank = np.arange(len(scores)) - np.repeat(offsets[:-1], sizes)
    labels = np.empty(len(scores), np.int64)
    labels[order] = rank < np.repeat(counts, sizes)
    return labels


def _assigned(scores: NDArray[np.float64], counts: IntArray) -> IntArray:
    """The most probable labels of one bag: rows to places, each class having as many places as its count."""
    from scipy.optimize import linear_sum_assignment

    place_of = np.repeat(np.arange(len(counts)), counts)
    rows, places = linear_sum_assignment(scores[:, place_of], maximize=True)
    labels = np.empty(len(scores), np.int64)
    labels[rows] = place_of[places]
    return labels
