"""The likelihood of a count of independent labels: exact in logarithms, or Gaussian.

``L_b = −log P(Σ_{i∈b} Y_i = c_b)``, ``Y_i ~ Bernoulli(p_i)``. Its slope is ``p_i − P(Y_i = 1 | ΣY = c)``, the
difference to the posterior, so that it distinguishes the rows of a bag. Several classes: the sum over classes of that
loss for "this class or another" (a composite likelihood).

With a bag effect the labels of a bag have the log-odds ``z_i + u_b``, ``u_b ~ N(0, τ²)``, and the likelihood is the
mean over ``u_b``. A common shift tilts the law of the count, ``P_u(s) ∝ e^{us} P_0(s)``, so the exact law is made once
for all values of ``u``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import segment_sum

Tensor = Any

NEVER = -1e30
"""Stands for the logarithm of 0."""

LEAST_VARIANCE = 1.0 / 12.0
"""Least variance of a Gaussian count: that of rounding to a whole number."""

_NODES, _REACH = 41, 6.0
"""Nodes of the integral over a bag effect, and how many of its standard deviations they reach to either side."""


def log_probabilities(logits: Tensor, *, one_vs_rest: bool = False) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 − p)`` of each row and class, (rows, classes); one class for binary logits.

    With ``one_vs_rest`` every class has a sigmoid of its own, ``p_c = σ(z_c − log(C − 1))``: 1/C for logits of 0.
    """
    if len(logits.shape) == 1:
        return ops.log_sigmoid(logits)[:, None], ops.log_sigmoid(-logits)[:, None]
    if one_vs_rest:
        shifted = logits - float(np.log(logits.shape[-1] - 1.0))
        return ops.log_sigmoid(shifted), ops.log_sigmoid(-shifted)
    log_p = ops.log_softmax(logits, axis=-1)
    own = _constant(np.where(np.eye(logits.shape[-1], dtype=bool), NEVER, 0.0)[None])
    return log_p, ops.logsumexp(log_p[:, None, :] + own, axis=-1)


def tabulate_rows(
    values: Tensor, bag_of: Tensor, position: Tensor, shape: tuple[int, int], empty: Sequence[float]
) -> Tensor:
    """Values of rows as a table (bags, places, ..., k), ``empty`` where a bag has no row.

    Args:
        values: (rows, ..., k).
        bag_of: (rows,) position of each row's bag in the batch.
        position: (rows,) place of each row in its bag; rows beyond the table are left out.
        shape: bags and places.
        empty: k numbers for the gaps.
    """
    bags, places = shape
    inside = (bag_of < bags) & (position < places)
    cell = ops.where(inside, bag_of * places + position, bags * places)
    table = segment_sum(values, cell, bags * places)
    there = segment_sum(ops.ones_like(values), cell, bags * places)
    gaps = _constant(empty) * (1.0 - there)
    return ops.reshape(table + gaps, (bags, places, *values.shape[1:]))


def log_count_law(log_terms: Tensor) -> Tensor:
    """``log P(Σ_i Y_i = s)`` for s = 0 … n of independent labels: (..., n, 2) gives (..., n + 1).

    Halves are convolved with each other in logarithms: ``log Σ_j exp(a_j + b_{s−j})``.

    Args:
        log_terms: (..., n, 2) the pairs ``log(1 − p_i), log p_i``; ``0, NEVER`` for a place without a row.
    """
    n, law = log_terms.shape[-2], log_terms
    while law.shape[-2] > 1:
        if law.shape[-2] % 2:
            nothing = _constant(np.where(np.arange(law.shape[-1]) == 0, 0.0, NEVER))
            law = ops.concatenate([law, ops.zeros_like(law[..., :1, :]) + nothing], axis=-2)
        law = _log_convolution(law[..., 0::2, :], law[..., 1::2, :])
    return law[..., 0, : n + 1]


def _log_convolution(a: Tensor, b: Tensor) -> Tensor:
    """``c_s = log Σ_j exp(a_j + b_{s−j})`` along the last axis: two laws on 0 … m give one on 0 … 2m."""
    width = a.shape[-1]
    pairs = a[..., :, None] + b[..., None, :]
    lead = [(0, 0)] * (len(pairs.shape) - 1)
    padded = ops.pad(pairs, [*lead, (0, width)], constant_values=NEVER)
    flat = ops.reshape(padded, (*a.shape[:-1], 2 * width * width))[..., : width * (2 * width - 1)]
    skewed = ops.reshape(flat, (*a.shape[:-1], width, 2 * width - 1))
    return ops.logsumexp(skewed, axis=-2)


def exact_losses(log_law: Tensor, counts: Tensor, noise_sd: float) -> Tensor:
    """``−log P(s = c)``, or ``−log Σ_s P(s) exp(−(c − s)²/(2 sd²))`` when noise was added to the count.

    Args:
        log_law: (..., n + 1) logarithms of the law of the count.
        counts: (...) counts: whole numbers when there is no noise.
        noise_sd: standard deviation of the noise.
    """
    gap = _constant(np.arange(log_law.shape[-1])) - counts[..., None]
    if noise_sd > 0:
        return -ops.logsumexp(log_law - gap**2 / (2.0 * noise_sd**2), axis=-1)
    return -ops.sum(ops.where(ops.abs(gap) < 0.5, log_law, ops.zeros_like(log_law)), axis=-1)


def exact_losses_with_effect(log_law: Tensor, counts: Tensor, noise_sd: float, tau: Sequence[float]) -> Tensor:
    """``exact_losses`` with the bag effect integrated out: ``−log Σ_k w_k P_{u_k}(c)`` over equally spaced nodes.

    Args:
        log_law: (bags, classes, n + 1).
        counts: (bags, classes).
        noise_sd: standard deviation of the noise.
        tau: (classes,) standard deviation of the effect.
    """
    points = np.linspace(-_REACH, _REACH, _NODES)
    log_weights = -0.5 * points**2
    log_weights -= np.log(np.exp(log_weights).sum())
    tilt = np.asarray(tau)[:, None, None] * points[:, None] * np.arange(log_law.shape[-1])
    laws = ops.log_softmax(log_law[:, :, None, :] + _constant(tilt), axis=-1)
    each = exact_losses(laws, ops.repeat(counts[:, :, None], _NODES, axis=-1), noise_sd)
    return -ops.logsumexp(_constant(log_weights) - each, axis=-1)


def gaussian_losses(
    mean: Tensor, variance: Tensor, counts: Tensor, noise_sd: float, tau: Sequence[float] = (0.0,)
) -> Tensor:
    """``½ (c − μ)²/v + ½ log v`` with ``v = V + sd² + (V τ)²``, ``V = Σ p_i (1 − p_i)``, at least 1/12.

    To first order an effect ``u`` moves the count by ``V u``.

    Args:
        mean: (bags, classes) ``Σ p_i``.
        variance: (bags, classes) ``Σ p_i (1 − p_i)``.
        counts: (bags, classes).
        noise_sd: standard deviation of the noise that was added to counts.
        tau: (classes,) standard deviation of the bag effect.
    """
    v = variance + noise_sd**2
    if any(tau):
        v = v + _constant(np.asarray(tau) ** 2) * variance**2
    v = ops.maximum(v, LEAST_VARIANCE)
    return 0.5 * (counts - mean) ** 2 / v + 0.5 * ops.log(v)


def count_losses(
    logits: Tensor,
    bag_of: Tensor,
    position: Tensor,
    sizes: Tensor,
    counts: Tensor,
    *,
    exact_rows: int,
    gaussian: bool,
    noise_sd: float = 0.0,
    one_vs_rest: bool = False,
    tau: Sequence[float] = (0.0,),
) -> Tensor:
    """Negative log-likelihood of each bag's count, (bags,), summed over classes.

    Args:
        logits: (rows,) or (rows, classes).
        bag_of: (rows,) position of each row's bag in the batch.
        position: (rows,) place of each row in its bag.
        sizes: (bags,) rows of each bag.
        counts: (bags, 1) or (bags, classes).
        exact_rows: bags up to this size are treated exactly; 0 when there are none.
        gaussian: whether there are larger bags.
        noise_sd: standard deviation of the noise that was added to counts.
        one_vs_rest: a sigmoid for each of several classes.
        tau: (classes,) standard deviation of the bag effect; zeros for random bags.
    """
    n_bags = sizes.shape[0]
    log_p, log_q = log_probabilities(logits, one_vs_rest=one_vs_rest)
    exact = approximate = None
    if exact_rows:
        terms = tabulate_rows(ops.stack([log_q, log_p], axis=-1), bag_of, position, (n_bags, exact_rows), (0.0, NEVER))
        law = log_count_law(ops.swapaxes(terms, 1, 2))
        of_law = (
            exact_losses_with_effect(law, counts, noise_sd, tau) if any(tau) else exact_losses(law, counts, noise_sd)
        )
        exact = ops.sum(of_law, axis=-1)
    if gaussian:
        p = ops.exp(log_p)
        mean = segment_sum(p, bag_of, n_bags)
        variance = segment_sum(p * ops.exp(log_q), bag_of, n_bags)
        approximate = ops.sum(gaussian_losses(mean, variance, counts, noise_sd, tau), axis=-1)
    if exact is None:
        return approximate
    return exact if approximate is None else ops.where(sizes <= exact_rows, exact, approximate)


def _constant(values: Any) -> Tensor:
    return ops.convert_to_tensor(np.asarray(values, np.float32))
