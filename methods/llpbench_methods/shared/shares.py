"""Shares of classes: of both classes from that of one, and the shift that gives predictions known shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

Array = NDArray[np.float64]


def all_classes(shares: NDArray[Any]) -> NDArray[Any]:
    """Shares of every class, (..., C); the share of class 1 alone, (..., 1), becomes that of both classes."""
    return np.concatenate([1.0 - shares, shares], axis=-1) if shares.shape[-1] == 1 else shares


def shift_to_shares(fields: Array, shares: Array, rounds: int = 50, tol: float = 1e-6) -> Array:
    """(1,) or (C,) constants ``τ`` that give ``mean_i p(θ_i + τ) = shares``.

    Two classes, (n, 1) log-odds: Newton's method kept inside a bracket. Several, (n, C) logarithms of probabilities:
    `scale_to_shares`.
    """
    if fields.shape[1] > 1:
        return scale_to_shares(fields, shares, np.zeros(fields.shape[1]), rounds=rounds, tol=tol * 10)
    theta, share = fields[:, 0], float(shares[0])
    low, high = -60.0 - float(theta.max()), 60.0 - float(theta.min())
    tau = float(np.log(share) - np.log1p(-share)) - float(np.median(theta))
    for _ in range(rounds):
        p = expit(theta + tau)
        gap = float(p.mean()) - share
        if abs(gap) < tol * min(share, 1.0 - share):
            break
        low, high = (tau, high) if gap < 0 else (low, tau)
        slope = float(np.mean(p * (1.0 - p)))
        step = tau - gap / slope if slope > 1e-12 else low
        tau = step if low < step < high else 0.5 * (low + high)
    return np.array([tau])


def scale_to_shares(
    fields: Array, shares: Array, start: Array, *, rounds: int = 50, tol: float = 1e-5, least: float = 1e-12
) -> Array:
    """Iterative scaling: ``τ_c += log(share_c / mean_i softmax(θ_i + τ)_c)`` until it changes by less than ``tol``.

    Args:
        fields: (n, C) logarithms of probabilities, up to a constant for each row.
        shares: (C,) shares to reach, all positive.
        start: (C,) first ``τ``.
        rounds: most steps.
        tol: a smaller change ends the search.
        least: a mean below this counts as this.
    """
    shift = start
    for _ in range(rounds):
        mean = softmax(fields + shift, axis=1).mean(axis=0)
        change = np.log(shares) - np.log(np.maximum(mean, least))
        shift = shift + change
        if np.abs(change).max() < tol:
            break
    return np.asarray(shift)
