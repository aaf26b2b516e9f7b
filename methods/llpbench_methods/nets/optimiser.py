"""AdamW as a pure function of arrays: rate and decay are run-time values, so no setting recompiles a fit.

Why not Keras's own (measured with Keras 3.15 on 40 steps of the small network): on jax its ``stateless_apply`` takes
the rate as a run-time value and needs the same time, but its weight decay is a constant of the compiled program (a
change is silently ignored until the next compilation); on TensorFlow ``stateless_apply`` is not supported at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llpbench_methods.nets.backend import ops

Tensor = Any
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7


class Moments(NamedTuple):
    """Adam's memory: running means of the gradients and of their squares."""

    first: list[Tensor]
    second: list[Tensor]


def adamw(
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    moments: Moments,
    *,
    time: Tensor,
    rate: Tensor,
    decay: Tensor,
) -> tuple[list[Tensor], Moments]:
    """One step of Adam with decoupled weight decay (Loshchilov & Hutter), in Keras's form.

    ``m ← β₁m + (1−β₁)g``, ``v ← β₂v + (1−β₂)g²``,
    ``w ← w − η δ w − η √(1−β₂ᵗ)/(1−β₁ᵗ) · m / (√v + ε)``.
    The decay ``δ`` is not part of the gradient and is multiplied by the rate ``η``; it acts on kernels
    (two or more axes), not on biases and scales.

    Args:
        weights: trainable arrays.
        gradients: their gradients.
        moments: Adam's memory before the step.
        time: number of this step, from 1, as a float.
        rate: learning rate ``η``.
        decay: weight decay ``δ``.
    """
    alpha = rate * ops.sqrt(1.0 - ops.power(BETA_2, time)) / (1.0 - ops.power(BETA_1, time))
    new_weights, first, second = [], [], []
    for w, g, m, v in zip(weights, gradients, moments.first, moments.second, strict=True):
        m = BETA_1 * m + (1.0 - BETA_1) * g
        v = BETA_2 * v + (1.0 - BETA_2) * (g * g)
        kept = w * (1.0 - rate * decay) if len(w.shape) >= 2 else w
        new_weights.append(kept - alpha * m / (ops.sqrt(v) + EPSILON))
        first.append(m)
        second.append(v)
    return new_weights, Moments(first, second)
