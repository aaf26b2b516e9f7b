"""Factorial moments of a bag: the law of the composition of r of its rows, predicted and known.

``m_r(k) = mean over sets S of r rows of P(composition of S = k)``, rows independent with the predicted probabilities.
With ``E(t) = Π_i (1 + t·p_i / B)``, a polynomial in one variable for each class, ``m_r(k)`` is the coefficient of
``t^k`` times ``B^r / C(B, r)``. Coefficients are sums of products of probabilities: nothing is subtracted and no
logarithm is needed before the end, so single precision suffices.

The product is taken in two loops, so that a program has the same length for every bag size: groups of rows grow row by
row, all groups at once, and the groups of a bag are then multiplied with each other. Multiplying two parts A and B
of a bag is merging their laws with the weights of a draw,
``m_d = Σ_j w_j (m_j^A * m_{d−j}^B)``, ``w_j = C(n_A, j) C(n_B, d−j) / C(n_A + n_B, d)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from llpbench_methods.llp_mm.terms import Terms
from llpbench_methods.nets.backend import backend, ops
from llpbench_methods.nets.batches import power_of_two
from llpbench_methods.nets.losses import class_probabilities, segment_sum

Tensor = Any

TINY = 1e-30
"""Stands for a probability of 0 inside a logarithm."""


class RowGroups(NamedTuple):
    """The division of bags into at most ``most`` groups of up to ``rows`` rows."""

    rows: int
    most: int


def groups_for(largest: int) -> RowGroups:
    """The groups for bags of up to that many rows: one up to 16 rows, else about as many groups as rows in a group."""
    rows = largest if largest <= 16 else power_of_two(np.sqrt(2.0 * largest))
    return RowGroups(rows, -(-largest // rows))


def row_laws(logits: Tensor, *, one_vs_rest: bool = False) -> Tensor:
    """(rows, views, classes) law of each row's label: one view of all classes, or for each class "other, this one"."""
    p = class_probabilities(logits)
    if len(logits.shape) == 1:
        return ops.stack([ops.sigmoid(-logits), p[:, 0]], axis=-1)[:, None, :]
    return ops.stack([1.0 - p, p], axis=-1) if one_vs_rest else p[:, None, :]


def grow(sums: Tensor, p: Tensor, additions: Tensor) -> Tensor:
    """Multiply each group's polynomial with that of one more row: ``e_k ← e_k + Σ_c p_c e_{k − 1_c}``.

    Args:
        sums: (groups, views, terms) coefficients ``e``, terms of fewer rows first.
        p: (groups, views, classes) of the new row; zeros leave the group as it is.
        additions: the table of ``Terms``.
    """
    shorter = additions.shape[0] // p.shape[-1]
    longer = ops.reshape(sums[..., :shorter, None] * p[..., None, :], (*sums.shape[:-1], -1))
    return sums + ops.matmul(longer, additions)


def subset_sums(
    laws: Tensor, bag_of: Tensor, position: Tensor, sizes: Tensor, terms: Terms, groups: RowGroups
) -> Tensor:
    """Coefficients of ``Π_{i∈b} (1 + t·p_i / B_b)`` of each bag, (bags, views, terms).

    Args:
        laws: (rows, views, classes) law of each row's label.
        bag_of: (rows,) position of each row's bag in the batch.
        position: (rows,) place of each row in its bag.
        sizes: (bags,) rows of each bag.
        terms: the compositions that are asked for.
        groups: how bags are cut.
    """
    n_bags, (n_rows, views, classes) = sizes.shape[0], laws.shape
    used = ops.cast(ops.ceil(sizes / groups.rows), "int32")
    first = ops.cumsum(used) - used
    slots = n_bags if groups.most == 1 else n_rows // groups.rows + n_bags
    bag = ops.minimum(bag_of, n_bags - 1)
    slot = ops.take(first, bag, axis=0) + position // groups.rows
    cell = ops.where(bag_of < n_bags, slot * groups.rows + position % groups.rows, slots * groups.rows)
    scaled = laws / ops.reshape(ops.maximum(ops.take(sizes, bag, axis=0), 1.0), (-1, 1, 1))
    table = ops.reshape(segment_sum(scaled, cell, slots * groups.rows), (slots, groups.rows, views, classes))
    table = ops.moveaxis(table, 1, 0)

    additions = ops.convert_to_tensor(terms.additions)
    one = _first_of(len(terms.exponents), (slots, views))
    sums = backend().repeat(groups.rows, lambda i, sums: grow(sums, table[i], additions), one)
    if groups.most == 1:
        return sums
    left, right, total = (ops.convert_to_tensor(part) for part in terms.products)
    one = _first_of(len(terms.exponents), (n_bags, views))

    def multiply(number: Tensor, whole: Tensor) -> Tensor:
        part = ops.take(sums, ops.minimum(first + number, slots - 1), axis=0)
        part = ops.where(ops.reshape(number < used, (-1, 1, 1)), part, one)
        return ops.matmul(ops.matmul(whole, left) * ops.matmul(part, right), total)

    return backend().repeat(groups.most, multiply, one)


def moment_losses(sums: Tensor, factors: Tensor, targets: Tensor, uniform: Tensor, smoothing: float) -> Tensor:
    """``−Σ_k t_k log((1 − τ) m_k + τ u_k)`` of each bag, (bags,), over all terms and views.

    Args:
        sums: (bags, views, terms) coefficients.
        factors: (bags, terms) what makes them the laws ``m``.
        targets: (bags, views, terms) known laws, each times the weight of its order; 0 for what does not count.
        uniform: (terms,) the uniform law of each order.
        smoothing: ``τ``, the share of the uniform law.
    """
    law = (1.0 - smoothing) * sums * factors[:, None, :] + smoothing * uniform
    return -ops.sum(targets * ops.log(ops.maximum(law, TINY)), axis=(-2, -1))


def _first_of(width: int, shape: tuple[int, int]) -> Tensor:
    """1 at the first place of the last axis, 0 elsewhere, (*shape, width)."""
    return ops.convert_to_tensor(np.broadcast_to(np.eye(1, width, dtype=np.float32), (*shape, width)).copy())
