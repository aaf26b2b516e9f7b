"""From labelled rows to ``Bags``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from llpbench.contracts.data import Bags, Column, FloatArray, IntArray, Overlap, Part
from llpbench.contracts.data import read_only as read_only
from llpbench.contracts.errors import DatasetError
from llpbench.contracts.specs import NO_BAG


def bag_order(bag_of: IntArray, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows sorted by bag (in random order within each) and the bags' offsets; rows without a bag are left out.

    Raises:
        DatasetError: ``bag_of`` does not give each of the ``n`` rows a bag number.
    """
    bag_of = checked_numbers(bag_of, n)
    order = np.lexsort((rng.random(n), bag_of))
    order = order[bag_of[order] != NO_BAG]
    _, sizes = np.unique(bag_of[order], return_counts=True)
    return order, np.concatenate([[0], np.cumsum(sizes)])


def checked_numbers(bag_of: IntArray, n: int) -> IntArray:
    """The output of a scheme; an error unless it has a bag number (or ``NO_BAG``) for each of ``n`` rows."""
    bag_of = np.asarray(bag_of)
    if bag_of.shape != (n,) or not np.issubdtype(bag_of.dtype, np.integer):
        raise DatasetError(f"a bag scheme must return {n} integers, not {bag_of.dtype} of shape {bag_of.shape}")
    return bag_of


def class_counts(labels: IntArray, offsets: IntArray, classes: int) -> FloatArray:
    """(bags, 1) counts of class 1 for two classes, (bags, C) counts otherwise; ``labels`` in bag order."""
    indicator = (labels == 1)[:, None] if classes == 2 else labels[:, None] == np.arange(classes)
    return np.add.reduceat(indicator.astype(np.float64), offsets[:-1], axis=0)


Groupings = dict[str, IntArray]
"""For each grouping by name, the bag number of each row (or ``NO_BAG``). A single one may have an empty name."""


def checked_groupings(found: IntArray | Mapping[str, IntArray], n: int) -> Groupings:
    """The output of a scheme as groupings; an error unless each has a bag number (or ``NO_BAG``) for each row."""
    given = found if isinstance(found, Mapping) else {"": found}
    if not given:
        raise DatasetError("a bag scheme returned no grouping")
    return {name: checked_numbers(bag_of, n) for name, bag_of in given.items()}


def gather_groupings(
    part: Part, groupings: Groupings, *, classes: int, columns: tuple[Column, ...], rng: np.random.Generator
) -> tuple[Bags, IntArray]:
    """Put labelled rows into the bags of one or several groupings; returns the bags and the labels of their rows.

    Several groupings: rows are shuffled, and those without a bag in every grouping are left out.
    """
    if len(groupings) == 1:
        return gather(part, next(iter(groupings.values())), classes=classes, columns=columns, rng=rng)
    covered = np.any([numbers != NO_BAG for numbers in groupings.values()], axis=0)
    rows = rng.permutation(np.flatnonzero(covered))
    overlap, offsets = overlap_of({name: numbers[rows] for name, numbers in groupings.items()})
    labels = part.y[rows]
    bags = Bags(
        X=read_only(part.X[rows]),
        offsets=offsets,
        counts=read_only(class_counts(labels[overlap.members], offsets, classes)),
        classes=classes,
        columns=columns,
        overlap=overlap,
    )
    return bags, labels


def overlap_of(groupings: Groupings) -> tuple[Overlap, IntArray]:
    """Several groupings as an incidence structure with exact counts, and the offsets of its bags."""
    members, sizes = [], []
    for numbers in groupings.values():
        order = np.argsort(numbers, kind="stable")
        members.append(order[numbers[order] != NO_BAG])
        sizes.append(np.unique(numbers[members[-1]], return_counts=True)[1])
    every = np.concatenate(sizes)
    overlap = Overlap(
        members=read_only(np.concatenate(members)),
        grouping_of=read_only(np.repeat(np.arange(len(sizes)), [len(each) for each in sizes])),
        groupings=tuple(groupings),
        count_sd=read_only(np.zeros(len(every))),
    )
    return overlap, read_only(np.concatenate([[0], np.cumsum(every)]))


def gather(
    part: Part, bag_of: IntArray, *, classes: int, columns: tuple[Column, ...], rng: np.random.Generator
) -> tuple[Bags, IntArray]:
    """Put labelled rows into bags; returns the bags (with exact counts) and the labels in the bags' row order."""
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
