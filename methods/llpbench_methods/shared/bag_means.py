"""Sums and means over bags whose rows lie one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bag_sums(X: NDArray[Any], offsets: NDArray[Any]) -> Array:
    """(bags, ...) sum of each bag's rows; no bag is empty."""
    sums: Array = np.add.reduceat(X, offsets[:-1], axis=0, dtype=np.float64)
    return sums


def bag_means(X: NDArray[Any], offsets: NDArray[Any]) -> Array:
    """(bags, ...) mean of each bag's rows; no bag is empty."""
    return bag_sums(X, offsets) / np.diff(offsets).reshape(-1, *(1,) * (X.ndim - 1))
