"""Counts of bags that have an effect of their own: the likelihood with that effect integrated out.

The labels of a bag have the log-odds `theta_i + u` with one `u ~ N(0, tau^2)`, unrelated to the rows. Given a hard
count the posterior of the rows does not depend on `u` (a common shift cancels), but the likelihood of the count does.
For hard counts a shift only tilts the law of the sum,

    log P(c | theta + u) = log P(c | theta) + u c - K(u),    K(u) = sum_i log (1 - p_i + p_i e^u),

so that the exact law is needed once and the integral over `u` costs a few passes over the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from llpbench_methods.inference.counting import count_log_likelihood

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TAUS = np.array([0.0, *np.geomspace(0.02, 4.0, 24)])
"""Standard deviations of the effect among which `fitted_tau` chooses."""

_NEWTON_STEPS = 30


def effect_log_likelihood(
    theta: ArrayLike,
    offsets: ArrayLike,
    counts: ArrayLike,
    lambda_b: float = np.inf,
    tau: float = 0.0,
    nodes: int = 15,
) -> Floats:
    """`log E_u sum_s P(s | theta + u) phi(s)` per bag, `u ~ N(0, tau^2)`; `tau = 0` is `count_log_likelihood`.

    Gauss-Hermite nodes are laid around the top of each bag's integrand, whose logarithm is concave for hard counts, so
    that few serve bags of any size.
    """
    odds = np.asarray(theta, dtype=np.float64)
    edges = np.asarray(offsets, dtype=np.int64)
    count = np.asarray(counts, dtype=np.float64)
    if not 0.0 <= tau < np.inf:
        raise ValueError(f"tau must be finite and not negative, got {tau}")
    plain = count_log_likelihood(odds, edges, count, lambda_b) if tau == 0.0 or np.isinf(lambda_b) else None
    if plain is not None and tau == 0.0:
        return plain
    bag_of = np.repeat(np.arange(len(count)), np.diff(edges))
    centre, width = _peak(odds, bag_of, count, lambda_b, tau)
    points, weights = np.polynomial.hermite.hermgauss(nodes)
    level = np.bincount(bag_of, _softplus(odds), len(count)) if plain is not None else np.zeros(0)
    logs = np.empty((nodes, len(count)))
    for k, (point, weight) in enumerate(zip(points, weights, strict=True)):
        u = centre + np.sqrt(2.0) * width * point
        if plain is not None:
            tilt = np.bincount(bag_of, _softplus(odds + u[bag_of]), len(count)) - level
            logs[k] = plain + u * count - tilt
        else:
            logs[k] = count_log_likelihood(odds + u[bag_of], edges, count, lambda_b)
        logs[k] += np.log(weight) + point**2 - 0.5 * (u / tau) ** 2
    return np.asarray(logsumexp(logs, axis=0) + np.log(width / tau) - 0.5 * np.log(np.pi))


def _peak(odds: Floats, bag_of: Ints, counts: Floats, lambda_b: float, tau: float) -> tuple[Floats, Floats]:
    """Location of the maximum of each bag's integrand, and the standard deviation of a Gaussian of its curvature there.

    Newton's method on `(c - mu(u)) r = u / tau^2` with `mu` the mean of the sum, `V` its variance, and the share
    `r = V / (V + sd^2)` of the gap that noise of the count leaves to the labels; 1 for hard counts.
    """
    noise = 0.0 if np.isinf(lambda_b) else (0.5 / lambda_b if lambda_b > 0.0 else np.inf)
    u = np.zeros(len(counts))
    for _ in range(_NEWTON_STEPS):
        p = expit(odds + u[bag_of])
        mean = np.bincount(bag_of, p, len(counts))
        variance = np.bincount(bag_of, p * (1.0 - p), len(counts))
        trust = np.ones(len(counts)) if noise == 0.0 else variance / (variance + noise)
        curvature = variance * trust + 1.0 / tau**2
        step = ((counts - mean) * trust - u / tau**2) / curvature
        if np.abs(step).max(initial=0.0) < 1e-3:
            break
        u = u + np.clip(step, -1.0, 1.0)
    return u, 1.0 / np.sqrt(curvature)


def fitted_tau(theta: ArrayLike, offsets: ArrayLike, counts: ArrayLike, lambda_b: float = np.inf) -> float:
    """The `tau` of `TAUS` under which the counts are most likely, each taken as Gaussian.

    To first order the effect moves a count by `V u`, so `c ~ N(mu, V + sd^2 + V^2 tau^2)`.
    """
    p = expit(np.asarray(theta, dtype=np.float64))
    edges = np.asarray(offsets, dtype=np.int64)
    count = np.asarray(counts, dtype=np.float64)
    bag_of = np.repeat(np.arange(len(count)), np.diff(edges))
    gap = count - np.bincount(bag_of, p, len(count))
    variance = np.bincount(bag_of, p * (1.0 - p), len(count))
    noise = 0.0 if np.isinf(lambda_b) else 0.5 / max(lambda_b, 1e-300)
    total = np.maximum(variance + noise, 1e-12) + np.outer(TAUS**2, variance**2)
    goodness = -0.5 * np.sum(gap**2 / total + np.log(total), axis=1)
    return float(TAUS[int(np.argmax(goodness))])


def _softplus(x: Floats) -> Floats:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))
