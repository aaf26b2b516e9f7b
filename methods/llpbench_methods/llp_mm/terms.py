"""Compositions: how many rows of each class there are among a few rows. Tables to count them, and their laws in a bag.

A *term* is a composition ``(k_1, …, k_C)`` of ``r = Σ k_c`` rows. Everything here is numpy and made once for a fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import binom

from llpbench import FloatArray, IntArray

Table = NDArray[np.float32]


@dataclass(frozen=True)
class Terms:
    """The compositions of 0 to ``orders`` rows over ``classes`` classes, by their number of rows; the empty one first.

    Attributes:
        classes: number of classes C.
        orders: most rows of a composition.
    """

    classes: int
    orders: int

    @cached_property
    def exponents(self) -> IntArray:
        """(terms, C) rows of each class."""
        found = [k for r in range(self.orders + 1) for k in _compositions(r, self.classes)]
        return np.array(found, np.int64).reshape(-1, self.classes)

    @cached_property
    def degrees(self) -> IntArray:
        """(terms,) number of rows ``r``."""
        return np.asarray(self.exponents.sum(axis=1))

    @cached_property
    def uniform(self) -> FloatArray:
        """(terms,) one over the number of compositions of as many rows."""
        return np.asarray(1.0 / np.bincount(self.degrees)[self.degrees])

    @cached_property
    def additions(self) -> Table:
        """(shorter terms · C, terms) 1 where a term below ``orders`` rows and a row of class c make a term."""
        shorter = self.exponents[self.degrees < self.orders]
        longer = shorter[:, None, :] + np.eye(self.classes, dtype=np.int64)
        table = np.zeros((len(shorter) * self.classes, len(self.exponents)), np.float32)
        table[np.arange(len(table)), [self._place(k) for k in longer.reshape(-1, self.classes)]] = 1.0
        return table

    @cached_property
    def products(self) -> tuple[Table, Table, Table]:
        """Three 0/1 tables with ``((a · left) ∘ (b · right)) · total = Σ_{j + l = k} a_j b_l`` for every term k.

        (terms, pairs) twice and (pairs, terms): all pairs of terms that have no more than ``orders`` rows together.
        """
        n = len(self.exponents)
        first, second = np.nonzero(self.degrees[:, None] + self.degrees[None, :] <= self.orders)
        target = [self._place(self.exponents[i] + self.exponents[j]) for i, j in zip(first, second, strict=True)]
        pairs = np.arange(len(first))
        left, right, total = (np.zeros((n, len(first)), np.float32) for _ in range(3))
        left[first, pairs] = right[second, pairs] = total[target, pairs] = 1.0
        return left, right, total.T.copy()

    def factors(self, sizes: IntArray) -> FloatArray:
        """(bags, terms) ``B^r / C(B, r)``: makes ``Σ_S Π_{i∈S} (p_i / B)`` over sets of r rows a mean; 0 above B."""
        size = sizes[:, None].astype(np.float64)
        falling = np.ones((len(sizes), self.orders + 1))
        for r in range(1, self.orders + 1):
            falling[:, r] = falling[:, r - 1] * np.maximum(1.0 - (r - 1) / size[:, 0], 0.0) / r
        shares = falling[:, self.degrees]
        return np.asarray(np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0))

    def targets(self, counts: IntArray) -> FloatArray:
        """(..., terms) law of the composition of r rows drawn from a bag: ``Π_c C(n_c, k_c) / C(B, r)``; 0 above B.

        Args:
            counts: (..., C) rows of each class in the bag, whole numbers.
        """
        law: FloatArray = np.ones((*counts.shape[:-1], len(self.exponents)))
        for c in range(self.classes):
            law *= binom(counts[..., c, None], self.exponents[:, c])
        drawn = binom(counts.sum(axis=-1)[..., None], self.degrees)
        return np.asarray(np.divide(law, drawn, out=np.zeros_like(law), where=drawn > 0))

    def _place(self, exponents: IntArray) -> int:
        return self._places[tuple(int(k) for k in exponents)]

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        return {tuple(int(k) for k in exponents): i for i, exponents in enumerate(self.exponents)}


def _compositions(rows: int, classes: int) -> Iterator[tuple[int, ...]]:
    if classes == 1:
        yield (rows,)
        return
    for k in range(rows + 1):
        for rest in _compositions(rows - k, classes - 1):
            yield (k, *rest)
