"""Losses as pure functions of arrays, the same on every backend.

Rows of a batch lie flat; ``bag_of`` gives the position of each row's bag in the batch. A row with
``bag_of == n_bags`` is padding and counts nowhere. ``weights`` of rows or bags are 0 for padding. Binary
logits have the shape (rows,), multiclass logits (rows, classes).
"""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops

Tensor = Any


def class_probabilities(logits: Tensor) -> Tensor:
    """(rows, 1) probability of class 1 for binary logits, (rows, C) otherwise."""
    return ops.sigmoid(logits)[:, None] if len(logits.shape) == 1 else ops.softmax(logits, axis=-1)


def segment_sum(values: Tensor, bag_of: Tensor, n_bags: int) -> Tensor:
    """Sum over each bag: ``s_b = Σ_{i ∈ b} v_i`` for values of shape (rows, ...)."""
    return ops.segment_sum(values, bag_of, num_segments=n_bags + 1)[:n_bags]


def segment_mean(values: Tensor, bag_of: Tensor, sizes: Tensor) -> Tensor:
    """Mean over each bag: ``m_b = (1/B_b) Σ_{i ∈ b} v_i``; a padded bag (size 0) gives 0."""
    total = segment_sum(values, bag_of, sizes.shape[0])
    safe = ops.maximum(sizes, 1.0)
    return total / ops.reshape(safe, (-1,) + (1,) * (len(values.shape) - 1))


def segment_logsumexp(values: Tensor, bag_of: Tensor, sizes: Tensor) -> Tensor:
    """``l_b = log Σ_{i ∈ b} exp v_i``, with the bag's maximum taken out first; a padded bag (size 0) gives 0."""
    n_bags = sizes.shape[0]
    top = ops.segment_max(ops.stop_gradient(values), bag_of, num_segments=n_bags + 1)
    total = segment_sum(ops.exp(values - ops.take(top, bag_of, axis=0)), bag_of, n_bags)
    in_use = ops.reshape(sizes > 0, (-1,) + (1,) * (len(values.shape) - 1))
    total = ops.where(in_use, total, ops.ones_like(total))
    return ops.log(total) + ops.where(in_use, top[:n_bags], ops.zeros_like(total))


def log_mean_probability(logits: Tensor, bag_of: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of a bag's mean probabilities, exact for confident networks (no clamp).

    Binary: ``log p̄_b = logsumexp_{i∈b} log σ(z_i) − log B_b`` and
    ``log(1 − p̄_b) = logsumexp_{i∈b} log σ(−z_i) − log B_b``.
    """
    log_size = ops.log(ops.maximum(sizes, 1.0))
    positive = segment_logsumexp(ops.log_sigmoid(logits), bag_of, sizes) - log_size
    negative = segment_logsumexp(ops.log_sigmoid(-logits), bag_of, sizes) - log_size
    return positive, negative


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """``Σ w v / Σ w``, and 0 when all weights are 0."""
    return ops.sum(values * weights) / ops.maximum(ops.sum(weights), 1e-12)


def bag_cross_entropy(logits: Tensor, bag_of: Tensor, sizes: Tensor, proportions: Tensor, weights: Tensor) -> Tensor:
    """DLLP's loss: cross-entropy between a bag's proportion and its mean *probability*, mean over bags.

    Binary: ``L_b = −α_b log p̄_b − (1 − α_b) log(1 − p̄_b)``, ``p̄_b = (1/B_b) Σ_{i∈b} σ(z_i)``.
    Multiclass: ``L_b = −Σ_c α_{b,c} log q̄_{b,c}``, ``q̄_b = (1/B_b) Σ_{i∈b} softmax(z_i)``.

    Args:
        logits: (rows,) or (rows, classes).
        bag_of: (rows,) position of each row's bag in the batch.
        sizes: (bags,) rows of each bag.
        proportions: (bags, 1) share of class 1, or (bags, classes).
        weights: (bags,) weight of each bag in the mean; 0 for padding.
    """
    if len(logits.shape) == 1:
        positive, negative = log_mean_probability(logits, bag_of, sizes)
        share = proportions[:, 0]
        per_bag = -share * positive - (1.0 - share) * negative
    else:
        log_size = ops.log(ops.maximum(sizes, 1.0))[:, None]
        log_mean = segment_logsumexp(ops.log_softmax(logits, axis=-1), bag_of, sizes) - log_size
        per_bag = -ops.sum(proportions * log_mean, axis=-1)
    return weighted_mean(per_bag, weights)


def row_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each row, (rows,).

    Binary: ``softplus(z) − t z``, right for any real target ``t`` (hard, soft, or outside [0, 1]).
    Multiclass: ``−Σ_c t_c log softmax(z)_c`` for targets (rows, classes), or the row's class as an integer.
    """
    if len(logits.shape) == 1:
        return ops.softplus(logits) - ops.cast(targets, logits.dtype) * logits
    if len(targets.shape) == 1:
        targets = ops.one_hot(targets, logits.shape[-1], dtype=logits.dtype)
    return -ops.sum(ops.cast(targets, logits.dtype) * ops.log_softmax(logits, axis=-1), axis=-1)


def instance_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of the rows' cross-entropies: ``Σ w_i CE(z_i, t_i) / Σ w_i``; padding has weight 0."""
    return weighted_mean(row_cross_entropy(logits, targets), weights)
