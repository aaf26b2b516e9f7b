"""Bag schemes: which rows fall into a bag together. A scheme sees features only, never a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from llpbench.contracts.data import Column, FloatArray, IntArray
from llpbench.contracts.errors import DatasetError, UnknownNameError

Assign = Callable[..., IntArray]


def random_bags(X: FloatArray, bag_size: int, *, columns: tuple[Column, ...], rng: np.random.Generator) -> IntArray:
    """Disjoint bags of ``bag_size`` rows drawn without replacement; the last, incomplete one is kept."""
    del columns
    bag_of = np.empty(len(X), dtype=np.int64)
    bag_of[rng.permutation(len(X))] = np.arange(len(X)) // bag_size
    return bag_of


def uneven_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    spread: float = 0.5,
) -> IntArray:
    """Random bags whose sizes are uniform on the integers of ``bag_size * (1 +- spread)``, mean ``bag_size``."""
    del columns
    reach = int(min(bag_size * spread, bag_size - 1))
    sizes: list[int] = []
    left = len(X)
    while left > 0:
        size = min(int(rng.integers(bag_size - reach, bag_size + reach + 1)), left)
        sizes.append(size)
        left -= size
    bag_of = np.empty(len(X), dtype=np.int64)
    bag_of[rng.permutation(len(X))] = np.repeat(np.arange(len(sizes)), sizes)
    return bag_of


def feature_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    column: str = "",
    clusters: int = 16,
) -> IntArray:
    """Rows ordered by a column's value (or k-means cluster), ties at random, then cut into bags."""
    key = _column_key(X, columns, column) if column else _cluster_key(X, clusters, rng)
    order = np.lexsort((rng.random(len(X)), key))
    bag_of = np.empty(len(X), dtype=np.int64)
    bag_of[order] = np.arange(len(X)) // bag_size
    return bag_of


def own_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    bag_of: IntArray | None,
) -> IntArray:
    """The bags a dataset brings; one of more than ``bag_size`` rows is cut at random into nearly equal parts."""
    del columns
    if bag_of is None:
        raise DatasetError("the bag scheme own-bags needs a dataset with bags of its own (an option names them)")
    order = np.lexsort((rng.random(len(X)), bag_of))
    _, first, sizes = np.unique(bag_of[order], return_index=True, return_counts=True)
    parts = -(-sizes // bag_size)
    place = np.arange(len(X)) - np.repeat(first, sizes)
    part = place * np.repeat(parts, sizes) // np.repeat(sizes, sizes)
    found = np.empty(len(X), np.int64)
    found[order] = np.repeat(np.cumsum(parts) - parts, sizes) + part
    return found


def _column_key(X: FloatArray, columns: Sequence[Column], name: str) -> FloatArray:
    start = 0
    for column in columns:
        if column.name == name:
            block = X[:, start : start + column.width]
            return block.argmax(axis=1).astype(float) if column.kind == "category" else block[:, 0]
        start += column.width
    raise UnknownNameError("column for bag scheme by-feature:", name, (c.name for c in columns))


def _cluster_key(X: FloatArray, clusters: int, rng: np.random.Generator) -> FloatArray:
    from sklearn.cluster import MiniBatchKMeans

    flat = X.reshape(len(X), -1)
    model = MiniBatchKMeans(min(clusters, len(flat)), random_state=int(rng.integers(2**31)), n_init=1)
    return np.asarray(model.fit_predict(flat), dtype=float)
