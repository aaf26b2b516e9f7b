"""Overlapping bags as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from llpbench import Bags, IntArray


def incidence_matrix(bags: Bags) -> Any:
    """The sparse 0/1 matrix (bags, rows) whose row ``b`` marks the rows of bag ``b``."""
    return sparse_incidence(bags.members, bags.offsets, len(bags.X))


def sparse_incidence(members: IntArray, offsets: IntArray, n: int) -> Any:
    """The same for bags given by their ``members`` among ``n`` rows."""
    return csr_matrix((np.ones(len(members)), np.asarray(members, np.int32), offsets), shape=(len(offsets) - 1, n))
