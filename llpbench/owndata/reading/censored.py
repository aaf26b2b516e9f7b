"""Impute counts that are known only within bounds ("fewer than 5").

The counts ``k`` of a bag of ``B`` rows are modelled as Dirichlet-multinomial: the shares of the classes vary between
bags around the overall shares ``π``, with concentration ``s``. Such counts are independent negative-binomial numbers,
given their sum. So those of a bag that are known within bounds have, given the others,

    P(k) ∝ Π_c Γ(k_c + s π_c) / k_c!     over all k within the bounds that add up to the rest of the bag,

and each is replaced by its mean. For two classes ``π`` and ``s`` have the highest likelihood, in which a count within
bounds counts as an interval. For more they are estimated from all bags including the imputed ones, iterated to
convergence: ``π`` as the share of all rows, ``s`` from the spread of the counts around ``B π`` (including the variance
between the bounds).
"""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray

_ROUNDS = 30
_LEAST_CORRELATION, _MOST_CORRELATION = 1e-6, 0.5


def fill_in(low: FloatArray, high: FloatArray, sizes: FloatArray | IntArray) -> tuple[FloatArray, FloatArray]:
    """Impute counts that are known within bounds.

    Args:
        low: (bags, C) lower bounds, whole numbers unless equal to ``high``.
        high: (bags, C) upper bounds; some values within the bounds of a bag add up to its size.
        sizes: (bags,) rows of each bag.

    Returns:
        (bags, C) counts, and (bags, C) standard deviations, 0 for exact counts.
    """
    open_ = low < high
    counts, variance = np.where(open_, 0.5 * (low + high), low), np.zeros_like(low)
    bags = np.flatnonzero(open_.any(axis=1))
    left = sizes - np.where(open_, 0.0, low).sum(axis=1)
    _, of_bag = np.unique(np.column_stack([low, high, left])[bags], axis=0, return_inverse=True)
    first = bags[np.unique(of_bag, return_index=True)[1]]  # bags with equal bounds get equal values
    shares = np.full(low.shape[1], -1.0)
    best = _most_likely(low[:, 1], high[:, 1], np.asarray(sizes, np.float64)) if low.shape[1] == 2 else None
    for _ in range(_ROUNDS):
        before, shares = shares, _shares(counts)
        alpha = _concentration(counts, variance, sizes, shares) * shares if best is None else best
        for kind, b in enumerate(first):
            cells, same = np.flatnonzero(open_[b]), bags[of_bag == kind]
            mean, spread = truncated_moments(low[b, cells], high[b, cells], float(left[b]), alpha[cells])
            counts[np.ix_(same, cells)], variance[np.ix_(same, cells)] = mean, spread
        if best is not None or np.abs(shares - before).max() < 1e-6:
            break
    return counts, np.sqrt(variance)


def _most_likely(low: FloatArray, high: FloatArray, sizes: FloatArray) -> FloatArray:
    """(2,) ``s π`` of beta-binomial counts of the second class with the highest likelihood of their intervals."""
    from scipy.optimize import minimize
    from scipy.special import betaln, gammaln

    kinds, times = np.unique(
        np.column_stack([np.ceil(low - 1e-9), np.floor(high + 1e-9), np.rint(sizes)]), axis=0, return_counts=True
    )
    first = np.clip(kinds[:, 0], 0.0, kinds[:, 2])
    widths = (np.clip(kinds[:, 1], first, kinds[:, 2]) - first + 1.0).astype(np.int64)  # a fraction is rounded up
    starts = np.cumsum(widths) - widths
    kind = np.repeat(np.arange(len(kinds)), widths)
    k = first[kind] + np.arange(len(kind)) - starts[kind]
    n = kinds[kind, 2]
    ways = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    def loss(point: FloatArray) -> float:
        a, b = np.exp(point)
        logs = ways + betaln(k + a, n - k + b) - betaln(a, b)
        top = np.maximum.reduceat(logs, starts)
        whole = top + np.log(np.add.reduceat(np.exp(logs - top[kind]), starts))
        return float(-(times @ whole) + 0.005 * (np.log(a + b) - 3.0) ** 2)

    begin = np.clip((0.5 * (low + high)).sum() / sizes.sum(), 0.01, 0.99)
    found = minimize(loss, np.log(20.0 * np.array([begin, 1.0 - begin])), method="Nelder-Mead")
    return np.asarray(np.exp(np.clip(found.x, -20.0, 20.0))[::-1])


def _shares(counts: FloatArray) -> FloatArray:
    totals = np.maximum(counts, 0.0).sum(axis=0) + 0.5
    shares: FloatArray = totals / totals.sum()
    return shares


def _concentration(counts: FloatArray, variance: FloatArray, sizes: FloatArray | IntArray, shares: FloatArray) -> float:
    """``s = 1/ρ − 1``, ``ρ`` being the correlation of two rows of a bag, by moments.

    ``E Σ_c (k_c − B π_c)² / (B π_c) = (C − 1) (1 + ρ (B − 1))``.
    """
    expected = sizes[:, None] * shares
    spread = ((counts - expected) ** 2 + variance) / expected
    excess = float(spread.sum() / (len(shares) - 1) - len(sizes))
    pairs = float((np.asarray(sizes) - 1.0).sum())
    rho = np.clip(excess / pairs if pairs > 0 else 0.0, _LEAST_CORRELATION, _MOST_CORRELATION)
    return float(1.0 / rho - 1.0)


def tighten(
    low: FloatArray, high: FloatArray, sizes: FloatArray, *, noisy: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Tighten bounds by the sizes of the bags and the other classes, to whole numbers unless exact.

    Args:
        low: (bags, C) lower bounds, NaN if unknown.
        high: (bags, C) upper bounds.
        sizes: (bags,) rows of each bag.
        noisy: whether exact counts are noisy, so that they need not add up to the size.
    """
    exact = low == high
    low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), sizes[:, None], high)
    low = np.where(exact, low, np.ceil(np.clip(low, 0.0, None) - 1e-9))
    high = np.where(exact, high, np.floor(np.minimum(high, sizes[:, None]) + 1e-9))
    rest = np.where(exact, 0.0, sizes[:, None] - np.where(exact, low, 0.0).sum(axis=1, keepdims=True))
    if noisy:
        open_low, open_high = (np.where(exact, 0.0, x).sum(axis=1, keepdims=True) for x in (low, high))
        rest = np.clip(rest, open_low, open_high)
    others_low = np.where(exact, 0.0, low).sum(axis=1, keepdims=True) - low
    others_high = np.where(exact, 0.0, high).sum(axis=1, keepdims=True) - high
    least, most = np.ceil(rest - others_high - 1e-9), np.floor(rest - others_low + 1e-9)
    only = (~exact).sum(axis=1, keepdims=True) == 1  # the rest of the bag, whole or not
    least, most = np.where(only, rest, least), np.where(only, rest, most)
    return np.where(exact, low, np.maximum(low, least)), np.where(exact, high, np.minimum(high, most))


def truncated_moments(
    low: FloatArray, high: FloatArray, total: float, alpha: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and variances of Dirichlet-multinomial counts of sum ``total`` between bounds.

    Args:
        low: (C,) whole lower bounds.
        high: (C,) whole upper bounds.
        total: their sum; moments for the nearest whole number are scaled to it.
        alpha: (C,) parameters.
    """
    n = int(np.clip(np.rint(total), low.sum(), high.sum()))
    tilt = np.log(n / (n + alpha.sum())) if n > 0 else 0.0
    cells = [_weights(int(a), int(b), x, tilt) for a, b, x in zip(low, high, alpha, strict=True)]
    mean, variance = np.empty(len(cells)), np.empty(len(cells))
    for c, own in enumerate(cells):
        rest, start = np.ones(1), 0
        for other in (i for i in range(len(cells)) if i != c):
            rest, start = np.convolve(rest, cells[other]), start + int(low[other])
        values = int(low[c]) + np.arange(len(own))
        places = n - values - start
        inside = (places >= 0) & (places < len(rest))
        p = np.where(inside, own * rest[np.clip(places, 0, len(rest) - 1)], 0.0)
        p = p / p.sum() if p.sum() > 0 else inside / inside.sum()  # all weights underflow
        mean[c] = p @ values
        variance[c] = p @ (values - mean[c]) ** 2
    scale = total / n if n > 0 else 1.0
    return mean * scale, variance


def _weights(low: int, high: int, alpha: float, tilt: float) -> FloatArray:
    """``θ^k Γ(k + α) / k!`` from ``low`` to ``high``, the largest 1; ``θ`` changes nothing once the sum is given."""
    from scipy.special import gammaln

    k = np.arange(low, high + 1)
    logs = gammaln(k + alpha) - gammaln(k + 1.0) + tilt * k
    return np.asarray(np.exp(logs - logs.max()))
