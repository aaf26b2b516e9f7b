"""Bag schemes: which rows share a bag. A scheme sees features only, unless it declares ``uses_labels``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from llpbench.contracts.data import Column, FloatArray, IntArray
from llpbench.contracts.errors import DatasetError, UnknownNameError, UsageError
from llpbench.contracts.specs import NO_BAG


def random_groupings(
    X: FloatArray, bag_size: int, *, columns: tuple[Column, ...], rng: np.random.Generator, times: int = 1
) -> IntArray | dict[str, IntArray]:
    """``random_bags``; with ``times`` above 1 that many groupings, drawn independently."""
    if times == 1:
        return random_bags(X, bag_size, columns=columns, rng=rng)
    return {f"draw {i}": random_bags(X, bag_size, columns=columns, rng=rng) for i in range(1, times + 1)}


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
    """Rows sorted by a column's value (or k-means cluster), ties in random order, and divided into bags."""
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
    most: int = 0,
) -> IntArray:
    """The natural bags of a dataset; those of more than ``most`` rows are divided at random into equal parts.

    Older cells have no ``most`` and give it as the bag size.
    """
    del columns
    if bag_of is None:
        raise DatasetError("the bag scheme own-bags needs a dataset with natural bags (an option names them)")
    bag_size = most or bag_size or len(X)
    order = np.lexsort((rng.random(len(X)), bag_of))
    _, first, sizes = np.unique(bag_of[order], return_index=True, return_counts=True)
    parts = -(-sizes // bag_size)
    place = np.arange(len(X)) - np.repeat(first, sizes)
    part = place * np.repeat(parts, sizes) // np.repeat(sizes, sizes)
    found = np.empty(len(X), np.int64)
    found[order] = np.repeat(np.cumsum(parts) - parts, sizes) + part
    found[bag_of == NO_BAG] = NO_BAG
    return found


def check_groups(columns: str, least: int, most: int) -> None:
    """Reject options of ``group-by`` that are invalid for every table."""
    if not any(name.strip() for name in columns.split("+")):
        raise UsageError("group-by needs the columns that define the bags: group-by[columns=a] or [columns=a+b].")
    if least > most:
        raise UsageError(f"group-by[least={least};most={most}]: least must not exceed most.")


def group_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    columns_: str = "",
    least: int = 50,
    most: int = 2500,
) -> IntArray:
    """One bag for each distinct value of a column, or combination of values of several (``a+b``).

    Groups of fewer than ``least`` or more than ``most`` rows are left out.
    """
    del bag_size, rng
    check_groups(columns_, least, most)
    names = filter(None, map(str.strip, columns_.split("+")))
    bag_of = _crossed([_group_key(X, columns, name) for name in names], len(X))
    sizes = np.bincount(bag_of)
    fits = (sizes >= least) & (sizes <= most)
    numbers = np.where(fits, np.cumsum(fits) - 1, NO_BAG)
    return np.asarray(numbers[bag_of], dtype=np.int64)


EVERY_COLUMN = "*"
USUAL_BANDS = 6
"""Number of bands into which ``margins`` cuts a numeric column."""
_BANDS = re.compile(r"(.*\S)\s*:\s*(\d{1,4})\Z", re.DOTALL)


def check_margins(columns: str, least: int = 1, shown: str = "margins[columns={}]") -> None:
    """Reject options of ``margins`` that are invalid for every table; ``shown`` is how errors quote the columns."""
    del least
    quoted = shown.format(columns)
    groupings = [text.strip() for text in columns.split(",")]
    if not all(name.strip() for text in groupings for name in text.split("+")):
        raise UsageError(
            f"{quoted}: expected columns separated by commas, crossed by +, numbers cut by :BANDS, "
            f"e.g. {shown.format('education,age:6,sex+race')}."
        )
    if twice := sorted({text for text in groupings if groupings.count(text) > 1}):
        raise UsageError(f"{quoted} has {', '.join(twice)} twice.")
    for text in groupings:
        for name in text.split("+"):
            if (found := _BANDS.match(name.strip())) and int(found[2]) < 2:
                raise UsageError(f"{quoted}: {name.strip()} needs at least 2 bands.")


def margin_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    columns_: str = EVERY_COLUMN,
    least: int = 1,
) -> dict[str, IntArray]:
    """A grouping for each column (``a``), numbers in quantile bands (``a:6``), or each crossing of columns (``a+b``).

    ``*`` stands for every column, ``*:10`` cuts numeric ones into ten bands. Groups of fewer than ``least`` rows are
    left out.
    """
    del bag_size, rng
    check_margins(columns_, least)
    found: dict[str, IntArray] = {}
    for text in margin_names(columns_, columns):
        bag_of = _crossed([_margin_key(X, columns, name.strip()) for name in text.split("+")], len(X))
        fits = np.bincount(bag_of) >= least
        found[text] = np.where(fits, np.cumsum(fits) - 1, NO_BAG)[bag_of].astype(np.int64)
    return found


def margin_names(text: str, columns: Sequence[Column]) -> list[str]:
    """The groupings of ``margins``, with ``*`` written out."""
    names: dict[str, None] = {}
    for each in (one.strip() for one in text.split(",")):
        base, bands = bands_of(each)
        if base != EVERY_COLUMN:
            names[each] = None
            continue
        for column in columns:
            numeric = column.kind == "numeric" and bands
            names[f"{column.name}:{bands}" if numeric else column.name] = None
        if not columns:
            raise DatasetError("the bag scheme margins needs a table; the rows of this dataset have no columns")
    return list(names)


def bands_of(name: str) -> tuple[str, int]:
    """A column and its number of bands, 0 if none is given."""
    found = _BANDS.match(name)
    return (found[1], int(found[2])) if found else (name, 0)


def _margin_key(X: FloatArray, columns: Sequence[Column], name: str) -> FloatArray:
    """The group of each row by one column: its category, or its quantile band."""
    base, bands = bands_of(name)
    column, block = _block(X, columns, base, "margins")
    if column.kind == "numeric":
        return quantile_bands(block[:, 0], bands or USUAL_BANDS).astype(float)
    if bands:
        raise UsageError(f"margins[columns={name}]: {base} is a category and cannot be cut into bands.")
    return _group_key(X, columns, base)


def quantile_bands(values: FloatArray, bands: int) -> IntArray:
    """(n,) number of the band of each value: about equally many rows in each, equal values in the same one.

    If there are no more distinct values than bands, each is a band.
    """
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) <= bands:
        return number.reshape(-1)
    cuts = np.quantile(values, np.arange(1, bands) / bands, method="lower")
    return np.searchsorted(np.unique(np.minimum(cuts, distinct[-2])), values, side="left")


def _crossed(keys: Sequence[FloatArray], n: int) -> IntArray:
    """(n,) number of each row's combination of keys, from 0."""
    number = np.zeros(n, dtype=np.int64)
    for key in keys:
        values = np.unique(key, return_inverse=True)[1].reshape(-1)
        number = np.unique(number * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].reshape(-1)
    return number


def cluster_dirichlet_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    clusters: int = 16,
    total: float = 1.0,
) -> IntArray:
    """Bags with different mixtures of k-means clusters (``mixture_bags``); a small ``total`` makes them differ more."""
    del columns
    return mixture_bags(_cluster_key(X, clusters, rng).astype(np.int64), bag_size, total, rng)


def proportion_dirichlet_bags(
    X: FloatArray,
    bag_size: int,
    *,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
    labels: IntArray,
    concentration: float = 10.0,
) -> IntArray:
    """Bags with different class shares (``mixture_bags`` of the labels).

    For two classes of rate ``p`` the proportions have mean ``p`` and variance ``p (1 - p) / (concentration + 1)``.
    """
    del X, columns
    return mixture_bags(labels, bag_size, concentration, rng)


def mixture_bags(group_of: IntArray, bag_size: int, total: float, rng: np.random.Generator) -> IntArray:
    """Disjoint bags of ``bag_size`` rows, each with a mixture of groups drawn from a Dirichlet; every row is used.

    With ``s`` the shares of the groups among the remaining rows, a bag draws ``w ~ Dirichlet(total * s)`` and takes
    ``bag_size * w`` rows of each group without replacement (rounded at random, so that the mean is exact). The mean
    mixture is therefore that of all rows, from the first bag to the last. If a group is exhausted, rows are drawn from
    all remaining ones; the last bag is smaller.
    """
    groups = np.unique(group_of, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((rng.random(len(groups)), groups))  # the rows of each group together, in random order
    left = np.bincount(groups)
    first = np.cumsum(left) - left  # the place in ``order`` of the next row of each group
    bag_of = np.empty(len(groups), dtype=np.int64)
    for bag in range(-(-len(groups) // bag_size)):
        size = min(bag_size, int(left.sum()))
        there = np.flatnonzero(left)
        weights = np.zeros(len(left))
        weights[there] = rng.dirichlet(total * left[there] / left.sum())
        cuts = np.floor(size * np.cumsum(weights / weights.sum()) + rng.random())
        cuts = np.minimum(np.append(cuts[:-1], size), size)
        wanted = np.diff(np.maximum.accumulate(cuts), prepend=0).astype(np.int64)
        taken = np.minimum(wanted, left)
        if short := size - int(taken.sum()):
            taken += rng.multivariate_hypergeometric(left - taken, short)
        for group in np.flatnonzero(taken):
            bag_of[order[first[group] : first[group] + taken[group]]] = bag
        first, left = first + taken, left - taken
    return bag_of


def _column_key(X: FloatArray, columns: Sequence[Column], name: str) -> FloatArray:
    column, block = _block(X, columns, name, "by-feature")
    return block.argmax(axis=1).astype(float) if column.kind == "category" else block[:, 0]


def _group_key(X: FloatArray, columns: Sequence[Column], name: str) -> FloatArray:
    """The value of a column as one number; a one-hot block of zeros (an unknown value) is -1."""
    _, block = _block(X, columns, name, "group-by")
    if block.shape[1] == 1:
        return block[:, 0]
    return np.where(block.any(axis=1), block.argmax(axis=1), -1).astype(float)


def _block(X: FloatArray, columns: Sequence[Column], name: str, scheme: str) -> tuple[Column, FloatArray]:
    start = 0
    for column in columns:
        if column.name == name:
            return column, X[:, start : start + column.width]
        start += column.width
    hint = "" if columns else " The rows of this dataset have no columns."
    raise UnknownNameError(f"column for bag scheme {scheme}:", name, (c.name for c in columns), hint)


def _cluster_key(X: FloatArray, clusters: int, rng: np.random.Generator) -> FloatArray:
    from sklearn.cluster import MiniBatchKMeans

    flat = X.reshape(len(X), -1)
    model = MiniBatchKMeans(min(clusters, len(flat)), random_state=int(rng.integers(2**31)), n_init=1)
    return np.asarray(model.fit_predict(flat), dtype=float)
