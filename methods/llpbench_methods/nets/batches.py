"""Batches of one shape: whole bags up to a budget of rows, padded and masked; or minibatches of rows.

A plan holds the indices of one epoch's batches; the rows themselves are gathered on the device. Every epoch of
a fit has plans of the same shapes, also for uneven bags, so that a fit compiles once. Sizes that depend on the
draw of the bags are rounded up, so that the next seed finds the compiled fit again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from llpbench import IntArray


class Plan(NamedTuple):
    """Index arrays of batches of one shape: ``n_batches`` batches in use of those there is room for.

    Attributes:
        rows: (room, R) row numbers; padding repeats rows of the same batch.
        bag_of: (room, R) position of the row's bag in the batch; ``K`` for padding.
        bags: (room, K) bag numbers; -1 for padding.
        n_batches: number of batches in use.
    """

    rows: IntArray
    bag_of: IntArray
    bags: IntArray
    n_batches: int


class Batches(Protocol):
    """Source of the batches of each epoch."""

    def plans(self, rng: np.random.Generator) -> list[Plan]:
        """Shuffle and cut one epoch into batches: one plan for each shape of batch, in the order to run."""
        ...


@dataclass(frozen=True)
class _Shape:
    """Bags that share a shape of batch: ``rows`` rows, ``bags`` bags, and room for ``room`` batches."""

    members: IntArray
    rows: int
    bags: int
    room: int


@dataclass(frozen=True)
class BagBatches:
    """Whole bags per batch: shuffled bags are filled into batches one after the other, none is dropped.

    Equal bags fill the budget exactly. Uneven bags get an eighth more room, so that about the budget fits in.
    Bags above that go into shapes of twice, four times, ... the room, so that a few large bags do not swell
    every batch (a shape with almost nothing in it is joined with the next one); most bag schemes need one shape only.

    Between two reports every method takes about as many steps as there are budgets in the data, whatever the bags:
    where batches are larger than the budget (one bag, or one block of bags, is more), an epoch passes over the bags
    several times, shuffled anew each time.

    Attributes:
        sizes: (bags,) rows of each bag.
        batch_rows: budget of rows.
        block: number of bags that stay together (GenBags); bags beyond the last whole block are not used in that pass.
    """

    sizes: IntArray
    batch_rows: int
    block: int = 1

    def __post_init__(self) -> None:
        if len(self.sizes) < self.block:
            raise ValueError(f"a block of {self.block} bags cannot be formed from {len(self.sizes)} bags")

    @cached_property
    def shapes(self) -> list[_Shape]:
        """The shapes of batch, smallest first, with the bags that go into each."""
        everyone = np.arange(len(self.sizes))
        largest = int(np.sort(self.sizes)[-self.block :].sum())
        total = int(self.sizes.sum())
        if np.count_nonzero(self.sizes != self.sizes.max()) <= 1:
            budget = min(self.batch_rows, _round_up(total, largest))
            return [self._shape(everyone, max(budget // largest, 1) * largest)]
        room = min(self.batch_rows + self.batch_rows // 8, _round_up(total, 128))
        if self.block > 1 or largest <= room:
            return [self._shape(everyone, room if largest <= room else _round_up(largest, 128))]
        doublings = np.ceil(np.log2(np.maximum(self.sizes / room, 1.0))).astype(int)
        found, waiting = [], np.zeros(0, int)
        for doubling in np.unique(doublings):
            members = np.concatenate([waiting, everyone[doublings == doubling]])
            if doubling < doublings.max() and self.sizes[members].sum() <= 2 * room:
                waiting = members
                continue
            most = _round_up(int(self.sizes[members].max()), 128)
            found.append(self._shape(members, min(room << int(doubling), most) if doubling else room))
            waiting = np.zeros(0, int)
        return found

    @cached_property
    def passes(self) -> int:
        """Passes over the bags in an epoch: as many as give about one step for each budget of rows."""
        wanted = -(-int(self.sizes.sum()) // self.batch_rows)
        steps = sum(self._plan(shape, np.random.default_rng(0)).n_batches for shape in self.shapes)
        return max(1, round(wanted / steps))

    def plans(self, rng: np.random.Generator) -> list[Plan]:
        """Shuffle the bags and fill batches, pass after pass; shapes take turns in a shuffled order."""
        found: list[Plan] = []
        for _ in range(self.passes):
            plans = [self._plan(shape, rng) for shape in self.shapes]
            found += [plans[i] for i in rng.permutation(len(plans))]
        return found

    def _shape(self, members: IntArray, rows: int) -> _Shape:
        """Room for bags by their mean size; for batches because two that follow each other are more than full."""
        sizes = self.sizes[members]
        blocks = power_of_two(1.25 * rows / (self.block * float(sizes.mean())))
        bags = self.block * min(len(members) // self.block, blocks)
        return _Shape(members, rows, bags, power_of_two(2 * sizes.sum() / rows + len(members) / bags + 1))

    def _plan(self, shape: _Shape, rng: np.random.Generator) -> Plan:
        order = rng.permutation(shape.members)
        order = order[: len(order) // self.block * self.block]
        sizes = self.sizes[order]
        ends = np.cumsum(sizes)
        first = np.fromiter(_fill(ends[self.block - 1 :: self.block], shape.rows, shape.bags // self.block), int)
        first_bag = first * self.block
        last_bag = np.append(first_bag[1:], len(order))
        starts = np.concatenate([[0], ends])
        within = np.arange(int(ends[-1])) - np.repeat(starts[:-1], sizes)
        rows = np.repeat(self._offsets[order], sizes) + within
        position = np.arange(len(order)) - np.repeat(first_bag, last_bag - first_bag)
        return _assemble(
            rows,
            np.repeat(position, sizes),
            order,
            row_bounds=(starts[first_bag], starts[last_bag]),
            bag_bounds=(first_bag, last_bag),
            shape=(shape.room, shape.rows, shape.bags),
        )

    @cached_property
    def _offsets(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])


@dataclass(frozen=True)
class RowBatches:
    """Minibatches of single rows, shuffled; bags are not used (each batch has room for one, unused).

    Attributes:
        n_rows: rows of the data.
        batch_rows: rows of a batch; the last batch may hold fewer.
        subset: the rows in use, all when None.
    """

    n_rows: int
    batch_rows: int
    subset: IntArray | None = None

    def plans(self, rng: np.random.Generator) -> list[Plan]:
        """Shuffle the rows and cut them."""
        rows = rng.permutation(self.n_rows if self.subset is None else self.subset)
        size = min(self.batch_rows, self.n_rows)
        first = np.arange(0, len(rows), size)
        last = np.minimum(first + size, len(rows))
        room = power_of_two(self.n_rows / size)
        no_bag = np.full(len(first), -1)
        bag_bounds = (np.arange(len(first)), np.arange(1, len(first) + 1))
        return [_assemble(rows, np.zeros_like(rows), no_bag, (first, last), bag_bounds, (room, size, 1))]


def _fill(ends: IntArray, rows: int, blocks: int) -> Iterator[int]:
    """First block of each batch, when blocks that end at the given rows are filled in one after the other."""
    at, used = 0, 0
    while at < len(ends):
        yield at
        fit = int(np.searchsorted(ends, used + rows, side="right"))
        at = min(fit, at + blocks)
        used = int(ends[at - 1])


def _assemble(
    rows: IntArray,
    position: IntArray,
    bags: IntArray,
    row_bounds: tuple[IntArray, IntArray],
    bag_bounds: tuple[IntArray, IntArray],
    shape: tuple[int, int, int],
) -> Plan:
    """Cut flat arrays of an epoch at the bounds and pad each batch to the shape (room, R, K)."""
    room, n_rows, n_bags = shape
    n_batches = len(row_bounds[0])

    def cut(values: IntArray, bounds: tuple[IntArray, IntArray], width: int) -> tuple[Any, Any]:
        start, count = bounds[0][:, None], (bounds[1] - bounds[0])[:, None]
        column = np.arange(width)[None, :]
        return values[start + column % count], column < count

    row_table, in_use = cut(rows, row_bounds, n_rows)
    position_table, _ = cut(position, row_bounds, n_rows)
    bag_table, bag_in_use = cut(bags, bag_bounds, n_bags)
    plan = (
        row_table,
        np.where(in_use, position_table, n_bags),
        np.where(bag_in_use, bag_table, -1),
    )
    padded = [np.zeros((room, table.shape[1]), np.int32) for table in plan]
    for target, table in zip(padded, plan, strict=True):
        target[:n_batches] = table
    return Plan(padded[0], padded[1], padded[2], n_batches)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def power_of_two(value: float) -> int:
    """The least power of two that is not less than the value (1 at the least)."""
    return 1 << max(0, int(np.ceil(np.log2(max(value, 1.0)))))
