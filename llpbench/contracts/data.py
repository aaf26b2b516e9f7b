"""The data of a cell: rows with labels, which only the harness sees, and bags, which methods are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Column:
    """One column of the original table and the features it became.

    A categorical column of ``width`` features is a one-hot block; a numeric one has width 1. Features are in the order
    of ``Bags.columns``.
    """

    name: str
    kind: Literal["numeric", "category"]
    width: int = 1


@dataclass(frozen=True)
class Part:
    """Rows with their labels. Methods never see it.

    ``bag_of`` is the bag of each row if the dataset has natural bags.
    """

    X: FloatArray
    y: IntArray
    bag_of: IntArray | None = None

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Split:
    """What a dataset loads: three disjoint parts, encoded with statistics of the training rows only."""

    train: Part
    valid: Part
    test: Part
    classes: int = 2
    columns: tuple[Column, ...] = ()


class Files(Protocol):
    """Access of a dataset's loader to its files, which are verified whatever their source."""

    def path(self, name: str) -> Path:
        """The local path of the declared file ``name``, verified."""
        ...

    def first_of(self, names: Sequence[str], *, hint: str = "") -> Path:
        """The first of ``names`` that the data folder or the cache has, for files that users provide themselves.

        ``hint`` says how to get one, for the error message.
        """
        ...

    @property
    def cache(self) -> Path:
        """A persistent folder for results that are expensive to compute (embeddings)."""
        ...


@dataclass(frozen=True)
class Overlap:
    """How bags overlap: several groupings of the same rows, each of which puts a row into one bag or none.

    Attributes:
        members: (entries,) row numbers, bag after bag: a row has one entry for each bag that it belongs to.
        grouping_of: (bags,) number of each bag's grouping, in ascending order.
        groupings: names of the groupings.
        count_sd: (bags,) standard deviation of the noise on each bag's counts.
    """

    members: IntArray
    grouping_of: IntArray
    groupings: tuple[str, ...]
    count_sd: FloatArray


@dataclass(frozen=True, repr=False)
class Bags:
    """What a method learns from: rows in bags, and the class counts of each bag.

    Each row is in one bag, and rows are in bag order: ``b`` is ``X[offsets[b]:offsets[b + 1]]``. Bags may differ in
    size; arrays are read-only.

    With several groupings of the same rows (``overlap``), bags overlap: ``X`` has each row once, and bag ``b`` is
    ``X[members[offsets[b]:offsets[b + 1]]]``. Only methods that declare ``overlapping`` receive this form; others
    receive the ``unrolled`` one. Code for both forms sums over ``entries(values)`` instead of the values of rows.

    Attributes:
        X: float32 rows (n, d), or images (n, height, width, channels) for methods that declare them.
        offsets: (bags + 1,) offsets of the bags' entries; without overlap, an entry is a row.
        counts: (bags, 1) number of class-1 rows for two classes, (bags, C) otherwise. A noisy count is any real number,
            also outside [0, size].
        classes: number of classes.
        count_sd: standard deviation of the noise added to each count; 0 without noise. Where bags differ in it
            (``count_sds``), the root of its mean square.
        columns: the table's columns, if there are any.
        validation: held-out bags for model selection, or None.
        overlap: the groupings, if there are several.
    """

    X: FloatArray
    offsets: IntArray
    counts: FloatArray
    classes: int = 2
    count_sd: float = 0.0
    columns: tuple[Column, ...] = ()
    validation: Bags | None = None
    overlap: Overlap | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.X.shape[1:]))
        held_out = "" if self.validation is None else f", {len(self.validation)} held-out bags"
        noise = f", count_sd {self.count_sd:g}" if self.count_sd else ""
        facts = f"{len(self):,} bags, {len(self.X):,} rows of {shape} features, {self.classes} classes"
        return f"<Bags: {facts}{noise}{held_out}>"

    @cached_property
    def members(self) -> IntArray:
        """(entries,) the row of each entry, bag after bag; without overlap ``0..n-1``."""
        return read_only(np.arange(len(self.X))) if self.overlap is None else self.overlap.members

    @cached_property
    def grouping_of(self) -> IntArray:
        """(bags,) number of each bag's grouping; without overlap 0."""
        return read_only(np.zeros(len(self), np.int64)) if self.overlap is None else self.overlap.grouping_of

    @property
    def groupings(self) -> tuple[str, ...]:
        """Names of the groupings; without overlap a single empty one."""
        return ("",) if self.overlap is None else self.overlap.groupings

    @cached_property
    def count_sds(self) -> FloatArray:
        """(bags,) standard deviation of the noise on the counts of each bag."""
        return read_only(np.full(len(self), self.count_sd)) if self.overlap is None else self.overlap.count_sd

    def entries(self, values: FloatArray) -> FloatArray:
        """The values (n, ...) of rows, entry by entry, bag after bag."""
        return values if self.overlap is None else values[self.overlap.members]

    @property
    def unrolled(self) -> Bags:
        """The same bags without overlap: a row is repeated once for each bag that it belongs to."""
        if self.overlap is None:
            return self
        valid = None if self.validation is None else self.validation.unrolled
        return replace(self, X=read_only(self.X[self.overlap.members]), validation=valid, overlap=None)

    @cached_property
    def sizes(self) -> IntArray:
        """(bags,) number of rows of each bag."""
        return read_only(np.diff(self.offsets))

    @cached_property
    def bag_of(self) -> IntArray:
        """(entries,) bag number of each entry: without overlap, of each row."""
        return read_only(np.repeat(np.arange(len(self)), self.sizes))

    @cached_property
    def proportions(self) -> FloatArray:
        """Counts divided by bag sizes; under noise also below 0 or above 1."""
        return read_only(self.counts / self.sizes[:, None])

    @cached_property
    def clipped_proportions(self) -> FloatArray:
        """Proportions forced into [0, 1], and to a sum of 1 for several classes."""
        clipped = np.clip(self.proportions, 0.0, 1.0)
        if self.classes == 2:
            return read_only(clipped)
        total = clipped.sum(axis=1, keepdims=True)
        uniform = np.full_like(clipped, 1.0 / self.classes)
        return read_only(np.where(total > 0, clipped / np.where(total > 0, total, 1.0), uniform))

    @cached_property
    def prior(self) -> FloatArray:
        """The shares of the classes over all bags: (1,) rate of class 1, or (C,) shares.

        With several groupings, those of the grouping that covers most rows (of equal ones, that with fewest bags).
        """
        counts, sizes = self.counts, self.sizes
        if self.overlap is not None:
            covered = np.bincount(self.grouping_of, self.sizes)
            chosen = self.grouping_of == np.lexsort((np.bincount(self.grouping_of), -covered))[0]
            counts, sizes = counts[chosen], sizes[chosen]
        rate: FloatArray = np.clip(counts.sum(axis=0) / sizes.sum(), 0.0, 1.0)
        return read_only(rate if self.classes == 2 else rate / max(float(rate.sum()), 1e-12))


@dataclass(frozen=True)
class HeldOut:
    """A model's predictions for the held-out rows, and what a selection rule may know about these rows.

    Attributes:
        scores: (n,) or (n, C) scores as the method gave them.
        probabilities: the same as probabilities.
        bags: the held-out bags with their known (maybe noisy) counts; rows in the order of the predictions. With
            several groupings bags overlap: ``bags.entries(probabilities)`` has the predictions bag after bag.
        labels: labels of the rows, for rules that declare ``uses_labels``; None for all others.
    """

    scores: FloatArray
    probabilities: FloatArray
    bags: Bags
    labels: IntArray | None = None


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, locked against writing, so that a method that changes its input fails."""
    array.setflags(write=False)
    return array


def random_split(n: int, shares: Sequence[float], seed: int) -> list[IntArray]:
    """Shuffle ``range(n)`` and divide it into index sets of the given shares (rounded; the first takes the rest).

    Args:
        n: number of rows.
        shares: relative sizes, e.g. ``(0.81, 0.09, 0.10)``.
        seed: seed of the shuffle.
    """
    total = float(sum(shares))
    sizes = [round(n * share / total) for share in shares]
    sizes[0] = n - sum(sizes[1:])
    order = np.random.default_rng(seed).permutation(n)
    return list(np.split(order, np.cumsum(sizes)[:-1]))
