"""The counting factor of a bag: exact messages, posteriors and likelihoods of a known count.

A bag of independent labels with log-odds `theta_i` and the factor `phi(s) = exp(-lambda_b (s - c)^2)` of their sum.
`lambda_b = inf` is the hard count; Gaussian count noise of standard deviation `sd` is `lambda_b = 1 / (2 sd^2)`. Bags
are given flat: bag `b` is `theta[offsets[b]:offsets[b + 1]]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llpbench_methods.inference.compiled.counts_by_fourier import fourier_messages, log_tilt_mass, workspace
from llpbench_methods.inference.compiled.counts_in_logs import log_sigmoid, max_messages, windowed_messages
from llpbench_methods.inference.compiled.jit import njit
from llpbench_methods.inference.messages import Mode, sigmoid

Floats = NDArray[np.float64]
_NOTHING_BESIDE = 750.0
"""`exp` of minus this is 0: whole sums beside the count have no mass."""
Ints = NDArray[np.int64]

LARGEST_ODDS = 250.0
"""Log-odds beyond this are left to the path in logarithms."""


@njit
def fill_messages(
    theta: Floats,
    offsets: Ints,
    counts: Floats,
    lambda_b: Floats,
    use_max: bool,
    work: Floats,
    tilts: Floats,
    mu: Floats,
    log_mass: Floats,
) -> int:
    """Messages of all bags into `mu`, the tilts found into `tilts`; returns how many bags took the slow path."""
    slow = 0
    for b in range(counts.size):
        first, last = offsets[b], offsets[b + 1]
        y, lam = counts[b], lambda_b[b]
        part = theta[first:last]
        out = mu[first:last]
        size = last - first
        if size == 0:
            continue
        if lam == 0.0:
            log_mass[b] = 0.0
            out[:] = 0.0
            continue
        if np.isinf(lam) and (y == 0.0 or y == size):
            sign = 1.0 if y > 0.0 else -1.0
            total = 0.0
            for i in range(size):
                total += log_sigmoid(sign * part[i])
                out[i] = sign * np.inf
            log_mass[b] = total
            continue
        if size == 1:
            out[0] = lam * (2.0 * y - 1.0)
            a = log_sigmoid(-part[0]) - lam * y * y
            c = log_sigmoid(part[0]) - lam * (1.0 - y) * (1.0 - y)
            log_mass[b] = max(a, c) + (0.0 if use_max else np.log1p(np.exp(-abs(a - c))))
            continue
        if use_max:
            log_mass[b] = max_messages(part, y, lam, out)
            continue
        odds = work[9, :size]
        extreme = False
        for i in range(size):
            extreme |= abs(part[i]) > LARGEST_ODDS
            odds[i] = np.exp(part[i])
        good = False
        if not extreme:
            good, tau, mass = fourier_messages(odds, y, lam, tilts[b], work, out)
            if good:
                tilts[b] = tau
                log_mass[b] = mass + log_tilt_mass(odds, tau)
                for i in range(size):
                    out[i] = np.log(out[i])
        if not good:
            slow += 1
            log_mass[b] = windowed_messages(part, y, lam, out)
    return slow


def _flat(
    theta: ArrayLike, offsets: ArrayLike, counts: ArrayLike, lambda_b: ArrayLike, mode: Mode
) -> tuple[Floats, Floats]:
    odds = np.ascontiguousarray(theta, dtype=np.float64)
    edges = np.ascontiguousarray(offsets, dtype=np.int64)
    count = np.ascontiguousarray(counts, dtype=np.float64)
    lam = np.ascontiguousarray(np.broadcast_to(np.asarray(lambda_b, dtype=np.float64), count.shape))
    sizes = np.diff(edges)
    if edges[0] != 0 or edges[-1] != len(odds) or len(sizes) != len(count) or (sizes < 0).any():
        raise ValueError("offsets must start at 0, end at the number of rows, and have one step per count")
    if not np.isfinite(odds).all() or not np.isfinite(count).all() or np.isnan(lam).any() or (lam < 0).any():
        raise ValueError("theta and counts must be finite, lambda_b not negative")
    hard = np.isinf(lam)
    if ((count != np.round(count)) | (count < 0) | (count > sizes))[hard].any():
        raise ValueError("hard counts (lambda_b = inf) must be whole numbers between 0 and the bag size")
    mu, log_mass = np.zeros(len(odds)), np.zeros(len(count))
    work, tilts = workspace(int(sizes.max(initial=1))), np.zeros(len(count))
    fill_messages(odds, edges, count, lam, mode == "max", work, tilts, mu, log_mass)
    return mu, log_mass


def counting_messages(
    theta: ArrayLike, offsets: ArrayLike, counts: ArrayLike, lambda_b: ArrayLike = np.inf, mode: Mode = "sum"
) -> Floats:
    """Messages `mu_i = log sum_s P_{-i}(s) phi(s + 1) - log sum_s P_{-i}(s) phi(s)` of every bag to its members.

    `P_{-i}` is the law of the sum of the other members. A hard count 0 (or B) gives `-inf` (`+inf`).
    """
    return _flat(theta, offsets, counts, lambda_b, mode)[0]


def bag_posterior(theta: ArrayLike, offsets: ArrayLike, counts: ArrayLike, lambda_b: ArrayLike = np.inf) -> Floats:
    """`P(y_i = 1 | count)` of every row: `sigma(theta_i + mu_i)`. With hard counts they add up to the count."""
    mu = counting_messages(theta, offsets, counts, lambda_b)
    return sigmoid(np.asarray(theta, dtype=np.float64) + mu)


def count_log_likelihood(
    theta: ArrayLike, offsets: ArrayLike, counts: ArrayLike, lambda_b: ArrayLike = np.inf
) -> Floats:
    """`log sum_s P(s) phi(s)` per bag; with hard counts the Poisson-binomial log-probability of the count.

    Its gradient with respect to `theta_i` is `bag_posterior_i - sigma(theta_i)`. A factor so strong that
    `exp(-lambda_b)` is 0 in floating-point numbers is a hard count, whose law has no rounding of its own.
    """
    count = np.asarray(counts, dtype=np.float64)
    possible = (count == np.round(count)) & (count >= 0) & (count <= np.diff(np.asarray(offsets)))
    strength = np.where(possible & (np.asarray(lambda_b) > _NOTHING_BESIDE), np.inf, lambda_b)
    return _flat(theta, offsets, counts, strength, "sum")[1]
