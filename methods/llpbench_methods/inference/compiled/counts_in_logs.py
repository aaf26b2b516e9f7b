"""One counting factor for any finite input, in logarithms and with positive terms only.

The tilted law of a partial sum lives within a few standard deviations of its running mean, so forward and backward
tables keep a window of that width: O(B W) instead of O(B^2), and the whole table for small bags.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.jit import njit

Floats = NDArray[np.float64]


@njit
def log_sigmoid(z: float) -> float:
    """`-log(1 + e^-z)`."""
    if z > 0.0:
        return float(-np.log1p(np.exp(-z)))
    return float(z - np.log1p(np.exp(z)))


@njit
def _log_add(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return float(a + np.log1p(np.exp(b - a)))


@njit
def _tilt_moments(theta: Floats, tau: float) -> tuple[float, float]:
    mean = 0.0
    variance = 0.0
    for i in range(theta.size):
        p = np.exp(log_sigmoid(theta[i] + tau))
        mean += p
        variance += p * np.exp(log_sigmoid(-theta[i] - tau))
    return mean, variance


@njit
def _safe_tilt(theta: Floats, y: float, lam: float) -> tuple[float, float]:
    """The tilt by Newton inside a bracket, and the variance of the tilted sum."""
    if np.isinf(lam):
        low, high = float(-np.max(theta) - 60.0), float(-np.min(theta) + 60.0)
    else:
        low, high = 2.0 * lam * (y - theta.size), 2.0 * lam * y
    softness = 0.5 / lam
    tau = 0.5 * (low + high)
    variance = 0.0
    for _ in range(200):
        mean, variance = _tilt_moments(theta, tau)
        gap = tau * softness + mean - y
        if abs(gap) < 1e-3 or high - low < 1e-9 * (1.0 + abs(tau)):
            break
        if gap > 0.0:
            high = tau
        else:
            low = tau
        trial = tau - gap / (variance + softness + 1e-300)
        tau = trial if low < trial < high else 0.5 * (low + high)
    return tau, variance


@njit
def windowed_messages(theta: Floats, y: float, lam: float, out: Floats) -> float:
    """Messages `mu_i` of one factor into `out`; returns `log sum_s P(s) phi(s)`.

    A hard count must lie strictly between 0 and the bag size.
    """
    size = theta.size
    tau, variance = _safe_tilt(theta, y, lam)
    star = y if np.isinf(lam) else y - 0.5 * tau / lam
    reach = min(int(24.0 + 9.0 * np.sqrt(variance)), size)
    width = 2 * reach + 1
    low = np.empty(size + 1, np.int64)
    running = 0.0
    for i in range(size + 1):
        low[i] = int(np.floor(running + 0.5)) - reach
        if i < size:
            running += np.exp(log_sigmoid(theta[i] + tau))
    backward = np.full((size + 1, width + 2), -np.inf)
    for d in range(width):
        s = low[size] + d
        if 0 <= s <= size:
            if np.isinf(lam):
                backward[size, d] = 0.0 if s == y else -np.inf
            else:
                backward[size, d] = -lam * (s - star) ** 2
    for i in range(size - 1, -1, -1):
        log_p = log_sigmoid(theta[i] + tau)
        log_q = log_sigmoid(-theta[i] - tau)
        shift = low[i] - low[i + 1]
        for d in range(max(0, -low[i]), min(width, i - low[i] + 1)):
            at = d + shift
            stay = backward[i + 1, at] if 0 <= at < width else -np.inf
            step = backward[i + 1, at + 1] if 0 <= at + 1 < width else -np.inf
            backward[i, d] = _log_add(log_q + stay, log_p + step)
    forward = np.full(width, -np.inf)
    moved = np.empty(width)
    forward[-low[0]] = 0.0
    for i in range(size):
        shift = low[i] - low[i + 1]
        zero = -np.inf
        one = -np.inf
        for d in range(width):
            if forward[d] > -np.inf:
                at = d + shift
                if 0 <= at < width:
                    zero = _log_add(zero, forward[d] + backward[i + 1, at])
                if 0 <= at + 1 < width:
                    one = _log_add(one, forward[d] + backward[i + 1, at + 1])
        out[i] = 0.0 if zero == one else tau + one - zero
        log_p = log_sigmoid(theta[i] + tau)
        log_q = log_sigmoid(-theta[i] - tau)
        for d in range(width):
            at = d - shift
            stay = forward[at] if 0 <= at < width else -np.inf
            step = forward[at - 1] if 0 <= at - 1 < width else -np.inf
            moved[d] = _log_add(log_q + stay, log_p + step)
        forward, moved = moved, forward
    mass = backward[0, -low[0]]
    mass -= tau * y if np.isinf(lam) else lam * (y - star) * (y + star)
    for i in range(size):
        mass += log_sigmoid(-theta[i]) - log_sigmoid(-theta[i] - tau)
    return float(mass)


@njit
def _log_goal(s: int, y: float, lam: float) -> float:
    if np.isinf(lam):
        return 0.0 if s == y else -np.inf
    return -lam * (s - y) ** 2


@njit
def max_messages(theta: Floats, y: float, lam: float, out: Floats) -> float:
    """Max-product messages: the best way to reach a sum `s` is to take the `s` largest log-odds.

    With `T(s)` the sum of the `s` largest, the others of a member of rank `r` reach `s` at best with `T(s)` for
    `s <= r` and with `T(s + 1)` minus its own log-odds beyond: prefix and suffix maxima give all messages at once.
    Returns the best log-weight.
    """
    size = theta.size
    order = np.argsort(-theta)
    top = np.zeros(size + 1)
    for r in range(size):
        top[r + 1] = top[r] + theta[order[r]]
    best = -np.inf
    after_one = np.full(size + 2, -np.inf)
    after_zero = np.full(size + 2, -np.inf)
    for s in range(size, -1, -1):
        here = top[s] + _log_goal(s, y, lam)
        best = max(best, here)
        after_one[s] = max(after_one[s + 1], here)
        after_zero[s] = max(after_zero[s + 1], top[s] + _log_goal(s - 1, y, lam) if s > 0 else -np.inf)
    before_one = -np.inf
    before_zero = -np.inf
    for r in range(size):
        before_one = max(before_one, top[r] + _log_goal(r + 1, y, lam))
        before_zero = max(before_zero, top[r] + _log_goal(r, y, lam))
        own = theta[order[r]]
        one = max(before_one, after_one[r + 2] - own)
        zero = max(before_zero, after_zero[r + 2] - own)
        out[order[r]] = 0.0 if one == zero else one - zero
    for i in range(size):
        best += log_sigmoid(-theta[i])
    return best
