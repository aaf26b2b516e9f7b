"""The bag cross-entropy with a tolerance."""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import log_mean_probability, segment_logsumexp, weighted_mean

Tensor = Any


def tolerant_cross_entropy(
    logits: Tensor, bag_of: Tensor, sizes: Tensor, proportions: Tensor, tolerances: Tensor, weights: Tensor
) -> Tensor:
    """Mean over bags of ``−Σ_c α_c log p̄_c``, without the classes whose ``p̄_c`` is within its tolerance of ``α_c``.

    A tolerance of 0 everywhere gives the bag cross-entropy (but where it is exactly met). Of two classes both are
    within or neither.

    Args:
        logits: (rows,) or (rows, C).
        bag_of: (rows,) position of each row's bag in the batch.
        sizes: (bags,) rows of each bag.
        proportions: (bags, 1) share of class 1, or (bags, C).
        tolerances: (bags, 1) or (bags, C).
        weights: (bags,) weight of each bag in the mean; 0 for padding.
    """
    if len(logits.shape) == 1:
        positive, negative = log_mean_probability(logits, bag_of, sizes)
        share = proportions[:, 0]
        outside = ops.abs(ops.exp(positive) - share) > tolerances[:, 0]
        per_bag = -share * positive - (1.0 - share) * negative
        return weighted_mean(ops.where(outside, per_bag, ops.zeros_like(per_bag)), weights)
    log_size = ops.log(ops.maximum(sizes, 1.0))[:, None]
    log_mean = segment_logsumexp(ops.log_softmax(logits, axis=-1), bag_of, sizes) - log_size
    outside = ops.abs(ops.exp(log_mean) - proportions) > tolerances
    per_class = -proportions * log_mean
    return weighted_mean(ops.sum(ops.where(outside, per_class, ops.zeros_like(per_class)), axis=-1), weights)
