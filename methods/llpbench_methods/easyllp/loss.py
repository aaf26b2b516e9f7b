"""The debiased loss of EasyLLP: targets from counts, and the loss of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import FloatArray, IntArray
from llpbench_methods.nets.backend import backend, ops
from llpbench_methods.nets.losses import row_cross_entropy, segment_mean, segment_sum, weighted_mean

Tensor = Any


def debiased_targets(
    counts: FloatArray, sizes: IntArray, prior: FloatArray, *, without_replacement: bool = False
) -> FloatArray:
    """Targets ``w_b = B_b (α_b − π) + π`` of a bag's rows: ``E[w_b | y_i] = y_i`` when bags are independent draws.

    They may lie outside [0, 1]. Over classes they add up to 1 where the counts of a bag add up to its size; with noisy
    counts they do so in the mean over all rows, if the prior is the mean of these counts.

    Bags that partition N rows are drawn without replacement, which shrinks the mean to
    ``(y_i − π)(N − B_b)/(N − 1) + π``; the correction divides by that factor. A bag of all N
    rows contains no information beyond the prior: its target is the prior.

    Args:
        counts: (bags, 1) or (bags, C); noisy counts may be any real number, the mean stays right.
        sizes: (bags,) rows of each bag.
        prior: (1,) rate of class 1, or (C,) shares: the sum of the counts divided by the number of rows.
        without_replacement: whether to apply the correction.
    """
    excess = counts - sizes[:, None] * prior
    if without_replacement:
        rows = sizes.sum()
        others = np.maximum(rows - sizes, 1)[:, None]
        excess = np.where(sizes[:, None] < rows, excess * (rows - 1) / others, 0.0)
    targets: FloatArray = prior + excess
    return targets


def row_losses(logits: Tensor, targets: Tensor, *, square: bool = False) -> Tensor:
    """Debiased loss of each row, ``Σ_c w_c ℓ(z, c)``, (rows,).

    Log-loss, binary: ``softplus(z) − w z``; multiclass: ``−Σ_c w_c log softmax(z)_c``.
    Squared loss, binary: ``w (1 − p)² + (1 − w) p²``; multiclass: ``Σ_c w_c ‖q − e_c‖²``.

    Args:
        logits: (rows,) or (rows, C).
        targets: (rows, 1) or (rows, C).
        square: squared loss instead of log-loss.
    """
    if not square:
        return row_cross_entropy(logits, targets[:, 0] if len(logits.shape) == 1 else targets)
    if len(logits.shape) == 1:
        p, w = ops.sigmoid(logits), targets[:, 0]
        return w * (1.0 - p) ** 2 + (1.0 - w) * p**2
    q = ops.softmax(logits, axis=-1)
    return ops.sum(q**2, axis=-1) - 2.0 * ops.sum(targets * q, axis=-1) + 1.0


def reference_excess(reference: Tensor, targets: Tensor, weights: Tensor, prior: Tensor, *, square: bool) -> Tensor:
    """``Σ_c (w̄_c − π_c) E_c`` with ``E_c`` the mean loss of class c on reference rows: what centring takes away.

    The centred loss of a row is ``Σ_c π_c ℓ_c + Σ_c (w_c − π_c)(ℓ_c − E_c)``; its mean is that of `row_losses` less
    this. It is 0 in expectation, and large where a batch's bags happen to hold more of a class than the data does.

    Args:
        reference: (m,) or (m, C) logits of the reference rows.
        targets: (n, 1) or (n, C) targets ``w``.
        weights: (n,) their weights in the mean ``w̄``.
        prior: (1,) or (C,) ``π``.
        square: squared loss instead of log-loss.
    """
    mean = ops.sum(targets * weights[:, None], axis=0) / ops.maximum(ops.sum(weights), 1e-12)
    rows = ops.ones((reference.shape[0], 1))
    at_mean, at_prior = (row_losses(reference, rows * target[None, :], square=square) for target in (mean, prior))
    return ops.mean(at_mean - at_prior)


def one_row_of_each_bag(bag_of: Tensor, n_bags: int, key: Tensor) -> Tensor:
    """(rows,) 1 for one row of each bag, drawn at random, 0 for all others."""
    noise = backend().normal(key, (bag_of.shape[0],))
    top = ops.segment_max(noise, bag_of, num_segments=n_bags + 1)
    chosen = ops.cast(noise >= ops.take(top, bag_of, axis=0), "float32")
    ties = segment_sum(chosen, bag_of, n_bags)
    ties = ops.concatenate([ops.maximum(ties, 1.0), ops.ones((1,))])
    return chosen / ops.take(ties, bag_of, axis=0)


def mean_over_bags(
    per_row: Tensor, bag_of: Tensor, sizes: Tensor, weights: Tensor, *, chosen: Tensor | None = None
) -> Tensor:
    """Mean over bags of the mean over rows, or of the chosen row.

    Args:
        per_row: (rows,) loss of each row.
        bag_of: (rows,) position of each row's bag in the batch.
        sizes: (bags,) rows of each bag.
        weights: (bags,) weight of each bag in the mean; 0 for padding.
        chosen: (rows,) 1 for the row that represents its bag; the mean of all rows when not given.
    """
    if chosen is None:
        per_bag = segment_mean(per_row, bag_of, sizes)
    else:
        per_bag = segment_sum(per_row * chosen, bag_of, sizes.shape[0])
    return weighted_mean(per_bag, weights)


def apply_remedy(loss: Tensor, remedy: str) -> Tensor:
    """A batch's loss as it is (``none``), its absolute value, or 0 where it is below (``relu``)."""
    return {"none": lambda x: x, "absolute": ops.abs, "relu": ops.relu}[remedy](loss)
