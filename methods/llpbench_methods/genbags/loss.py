"""The loss of generalised bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import segment_sum

Tensor = Any


def residuals(probabilities: Tensor, bag_of: Tensor, counts: Tensor, bag_mask: Tensor) -> Tensor:
    """``d_j = Σ_{i∈j} p_i − c_j`` of each bag and class, (bags, classes); 0 for padding."""
    return (segment_sum(probabilities, bag_of, counts.shape[0]) - counts) * bag_mask[:, None]


def mean_block_losses(d: Tensor, covariance: Tensor, *, norm: str = "l2") -> Tensor:
    """Mean of a block's loss over all weights ``w ~ N(0, W)``, (blocks, classes).

    Squared: ``E (wᵀd)² = dᵀ W d``. Absolute: ``E |wᵀd| = sqrt(2 dᵀ W d / π)``.

    Args:
        d: (blocks, q, classes) residuals.
        covariance: (q, q).
        norm: ``l2`` or ``l1``.
    """
    squares = ops.sum(d * ops.einsum("jk,bkc->bjc", covariance, d), axis=1)
    return squares if norm == "l2" else ops.sqrt(2.0 / np.pi * ops.maximum(squares, 1e-12))


def drawn_block_losses(d: Tensor, weights: Tensor, *, norm: str = "l2") -> Tensor:
    """A block's loss summed over given weights, (blocks, classes): ``Σ_g (w_gᵀ d)²`` or ``Σ_g |w_gᵀ d|``.

    Args:
        d: (blocks, q, classes) residuals.
        weights: (blocks, draws, q).
        norm: ``l2`` or ``l1``.
    """
    sums = ops.einsum("bgj,bjc->bgc", weights, d)
    return ops.sum(sums**2 if norm == "l2" else ops.abs(sums), axis=1)


def drawn_weights(noise: Tensor, factor: Tensor) -> Tensor:
    """``w = ε Lᵀ`` with ``W = L Lᵀ``: weights of covariance W from standard normal noise (blocks, draws, q)."""
    return ops.einsum("bgk,jk->bgj", noise, factor)
