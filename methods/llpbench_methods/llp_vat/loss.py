"""Virtual adversarial consistency: divergence of predictions, the adversary's direction, the ramp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llpbench_methods.nets.backend import backend, ops

Tensor = Any
Logits = Callable[[Tensor], Tensor]

TINY = 1e-30


def divergences(clean: Tensor, other: Tensor) -> Tensor:
    """``KL(P ‖ Q)`` of each row for the predictions with logits ``clean`` and ``other``, (rows,)."""
    if len(clean.shape) == 1:
        p = ops.sigmoid(clean)
        positive = p * (ops.log_sigmoid(clean) - ops.log_sigmoid(other))
        return positive + (1.0 - p) * (ops.log_sigmoid(-clean) - ops.log_sigmoid(-other))
    log_p, log_q = ops.log_softmax(clean, axis=-1), ops.log_softmax(other, axis=-1)
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def unit_rows(values: Tensor) -> Tensor:
    """Each row divided by its length; a row of zeros stays one. The largest entry is taken out first."""
    axes = tuple(range(1, len(values.shape)))
    scaled = values / ops.maximum(ops.max(ops.abs(values), axis=axes, keepdims=True), TINY)
    return scaled / ops.maximum(ops.sqrt(ops.sum(scaled**2, axis=axes, keepdims=True)), 0.5)


def adversarial_directions(
    logits_of: Logits,
    X: Tensor,
    clean: Tensor,
    noise: Tensor,
    *,
    mask: Tensor,
    rows: Tensor,
    xi: float,
    iterations: int,
    official: bool = False,
) -> Tensor:
    """Unit directions in which predictions change most: ``d ← ∇_d Σ KL(P ‖ f(x + ξ d)) / ‖·‖``, from noise.

    The divergence is of second order in ``ξ d``, so its gradient is about ``ξ² H d``; its length is taken after
    dividing by its largest entry. The published code (``official``) uses the mean over the batch and adds 1e-8 to
    the length, which makes the result almost 0.

    Args:
        logits_of: the network.
        X: (rows, ...) inputs.
        clean: their logits, held constant.
        noise: standard normal numbers, shaped as X.
        mask: (rows,) 0 for padding.
        rows: number of rows of the whole batch (for ``official``).
        xi: length of the probe.
        iterations: number of power iterations.
        official: the published normalisation.
    """

    def divergence(d: Tensor) -> Tensor:
        total = ops.sum(mask * divergences(clean, logits_of(X + xi * d)))
        return total / rows if official else total

    d = unit_rows(noise)
    for _ in range(iterations):
        gradient = backend().input_gradient(divergence, d)
        d = _official_unit_rows(gradient) if official else unit_rows(gradient)
    return ops.stop_gradient(d)


def _official_unit_rows(values: Tensor) -> Tensor:
    axes = tuple(range(1, len(values.shape)))
    return values / (ops.sqrt(ops.sum(values**2, axis=axes, keepdims=True)) + 1e-8)


def ramp(step: Tensor, length: Tensor) -> Tensor:
    """``exp(−5 (1 − min(t, T)/T)²)``: from 0.0067 at step 0 to 1 at step T; 1 throughout when T is 0."""
    share = ops.minimum(ops.cast(step, "float32") / ops.maximum(length, 1e-6), 1.0)
    share = ops.where(length > 0, share, ops.ones_like(share))
    return ops.exp(-5.0 * (1.0 - share) ** 2)
