"""Forward-corrected cross-entropy."""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import weighted_mean

Tensor = Any

LEAST = 1e-12
"""Least entry of a transition matrix in logarithms."""


def forward_losses(logits: Tensor, mixtures: Tensor) -> Tensor:
    """``−log q``, ``q = Σ_j T[ỹ, j] softmax(z)_j``: probability of each row's noisy label, in logarithms, (rows,).

    Args:
        logits: (rows,) for two classes, (rows, C) otherwise.
        mixtures: (rows, C): the row ``T[ỹ, :]`` of its group's matrix, for its noisy label ``ỹ``.
    """
    if len(logits.shape) == 1:
        log_clean = ops.stack([ops.log_sigmoid(-logits), ops.log_sigmoid(logits)], axis=1)
    else:
        log_clean = ops.log_softmax(logits, axis=-1)
    return -ops.logsumexp(log_clean + ops.log(ops.maximum(mixtures, LEAST)), axis=1)


def forward_loss(logits: Tensor, mixtures: Tensor, weights: Tensor) -> Tensor:
    """``Σ v ℓ / Σ v`` over a batch of rows; padding has weight 0."""
    return weighted_mean(forward_losses(logits, mixtures), weights)
