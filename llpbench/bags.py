"""Forming bags: schemes that see features only, and the step from labelled rows to ``Bags``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from llpbench.data import Bags, Column, FloatArray, IntArray, Part
from llpbench.data import read_only as read_only
from llpbench.errors import DatasetError, UnknownNameError, UsageError

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


def bag_order(bag_of: IntArray, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows bag after bag (shuffled inside each, so order tells nothing) and the bags' offsets.

    Raises:
        DatasetError: ``bag_of`` does not give each of the ``n`` rows a bag number.
    """
    bag_of = np.asarray(bag_of)
    if bag_of.shape != (n,) or not np.issubdtype(bag_of.dtype, np.integer):
        raise DatasetError(f"a bag scheme must return {n} integers, not {bag_of.dtype} of shape {bag_of.shape}")
    order = np.lexsort((rng.random(n), bag_of))
    _, sizes = np.unique(bag_of, return_counts=True)
    return order, np.concatenate([[0], np.cumsum(sizes)])


def class_counts(labels: IntArray, offsets: IntArray, classes: int) -> FloatArray:
    """(bags, 1) counts of class 1 for two classes, (bags, C) counts otherwise; ``labels`` in bag order."""
    indicator = (labels == 1)[:, None] if classes == 2 else labels[:, None] == np.arange(classes)
    return np.add.reduceat(indicator.astype(np.float64), offsets[:-1], axis=0)


def make_bags(
    part: Part,
    assign: Assign,
    bag_size: int,
    *,
    classes: int,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    own: bool = False,
) -> tuple[Bags, IntArray]:
    """Put labelled rows into bags; with ``own``, the scheme is told the part's own bags.

    Returns:
        The bags (exact counts, no noise) and the labels in the bags' row order.
    """
    if bag_size < 1:
        raise UsageError(f"a bag size must be at least 1, not {bag_size}.")
    told = {"bag_of": part.bag_of} if own else {}
    bag_of = assign(part.X, bag_size, columns=columns, rng=rng, **told)
    order, offsets = bag_order(bag_of, len(part), rng)
    labels = part.y[order]
    bags = Bags(
        X=read_only(part.X[order]),
        offsets=read_only(offsets),
        counts=read_only(class_counts(labels, offsets, classes)),
        classes=classes,
        columns=columns,
    )
    return bags, labels
