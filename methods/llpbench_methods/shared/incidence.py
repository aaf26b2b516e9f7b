"""Overlapping bags as a sparse matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from llpbench import Bags, IntArray, Overlap


def incidence_matrix(bags: Bags) -> Any:
    """The sparse 0/1 matrix (bags, rows) whose row ``b`` marks the rows of bag ``b``."""
    return sparse_incidence(bags.members, bags.offsets, len(bags.X))


def sparse_incidence(members: IntArray, offsets: IntArray, n: int) -> Any:
    """The same for bags given by their ``members`` among ``n`` rows."""
    return csr_matrix((np.ones(len(members)), np.asarray(members, np.int32), offsets), shape=(len(offsets) - 1, n))


def take_bags(bags: Bags, chosen: IntArray) -> Bags:
    """Some of the bags, in ascending order, as overlapping ones with all rows."""
    sizes = bags.sizes[chosen]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.repeat(bags.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
    own = bags.members[entries], bags.grouping_of[chosen], bags.groupings, bags.count_sds[chosen]
    return replace(bags, offsets=offsets, counts=bags.counts[chosen], validation=None, overlap=Overlap(*own))
