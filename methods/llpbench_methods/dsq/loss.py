"""The debiased squared loss: an unbiased estimate of the squared risk of rows from proportions of bags."""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import segment_mean, segment_sum, weighted_mean

Tensor = Any


def debiased_square(
    p: Tensor, bag_of: Tensor, sizes: Tensor, proportions: Tensor, weights: Tensor, *, prior: Tensor, mean: Tensor
) -> Tensor:
    """Mean over bags of ``B_b (α_b − p̄_b + μ − π)² + (μ − π)²``, summed over classes.

    With ``μ = E p`` and ``π = E y`` over all data its expectation over random bags is ``E (y − p)²``: the rows of a bag
    are independent, so that ``√B (α − p̄)`` centred has the variance of one row's ``y − p``, and the second term is
    the square of its mean.

    Args:
        p: (rows, classes) predicted probabilities; one column for two classes.
        bag_of: (rows,) position of each row's bag in the batch.
        sizes: (bags,) rows of each bag.
        proportions: (bags, classes) known shares, noisy ones as they are.
        weights: (bags,) weight of each bag in the mean; 0 for padding.
        prior: (classes,) ``π``.
        mean: (1 or bags, classes) ``μ``.
    """
    level = mean - prior
    residual = proportions - segment_mean(p, bag_of, sizes) + level
    return weighted_mean(ops.sum(sizes[:, None] * residual**2 + level**2, axis=1), weights)


def mean_of_other_bags(p: Tensor, bag_of: Tensor, sizes: Tensor) -> Tensor:
    """(bags, classes) for each bag the mean of ``p`` over the rows of all other bags of the batch."""
    sums = segment_sum(p, bag_of, sizes.shape[0])
    others = ops.sum(sizes) - sizes
    return (ops.sum(sums, axis=0) - sums) / ops.maximum(others, 1.0)[:, None]
