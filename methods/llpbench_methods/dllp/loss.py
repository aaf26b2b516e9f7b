"""Squared errors of a bag's proportion or count."""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import class_probabilities, segment_mean, weighted_mean

Tensor = Any


def bag_squared_error(
    logits: Tensor, bag_of: Tensor, sizes: Tensor, proportions: Tensor, weights: Tensor, *, of_counts: bool
) -> Tensor:
    """Mean over bags of ``(p̄_b − α_b)²``, or of ``(Σ_{i∈b} p_i − c_b)² = B_b² (p̄_b − α_b)²``; summed over classes.

    Args:
        logits: (rows,) or (rows, classes).
        bag_of: (rows,) position of each row's bag in the batch.
        sizes: (bags,) rows of each bag.
        proportions: (bags, 1) share of class 1, or (bags, classes).
        weights: (bags,) weight of each bag in the mean; 0 for padding.
        of_counts: the error of the count, so that a bag weighs as its size squared.
    """
    means = segment_mean(class_probabilities(logits), bag_of, sizes)
    error = ops.sum((means - proportions) ** 2, axis=1)
    return weighted_mean(error * sizes**2 if of_counts else error, weights)
