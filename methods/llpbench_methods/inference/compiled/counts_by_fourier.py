"""One counting factor in O(B Q): tilt, a truncated Fourier sum, and leave-one-out by division.

Members have odds `e_i`; the factor is `phi(s) = exp(-lam (s - y)^2)` of their sum. Any tilt `tau` rewrites it: with
`p_i = sigma(theta_i + tau)` and `psi(s) = exp(-lam (s - s*)^2)`, `s* = y - tau / (2 lam)`,

    e^{mu_i} = e^tau A1_i / A0_i,   A0_i = sum_s P_{-i}(s) psi(s),   A1_i = sum_s P_{-i}(s) psi(s + 1)

under the tilted law. The right tilt puts the mean of the law on `s*`, so that both sums are of order one. On `N`
Fourier nodes `w = 2 pi k / N`, with the characteristic function `X(w) = prod_i (q_i + p_i e^{iw})`,

    A0_i = 1/N sum_k X(w) Psi(w) / (q_i + p_i e^{iw}),   Psi(w) = sum_s psi(s) e^{-iws}

and A1 the same with one more `e^{iw}`. For small bags `N = B + 1` is exact; otherwise an `N` against which the law is
narrow (Bernstein's bound) suffices, and nodes where `|X Psi| < 1e-16` are left out. `N` is odd: `w = pi` would divide
by zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.jit import njit, njit_fast

Floats = NDArray[np.float64]

NODES = 128
"""Most Fourier nodes ever used; a factor that would need more takes the slow path."""
WHOLE = 49
"""Bags up to this size may use all `B + 1` nodes."""
_SMALLEST = 1e-6
"""Fourier sums below this share of their absolute terms have lost too many digits."""


def workspace(largest_bag: int) -> Floats:
    """Scratch for one thread: three rows for the table of roots of unity, then rows of members and of nodes."""
    # A hard or strong factor needs its whole table, of less than 10 + sqrt(200 + 15 B) + 8 roots.
    return np.zeros((10, max(2 * NODES, largest_bag + 1)))


@njit_fast
def _tilted(e: Floats, t: float, p: Floats) -> tuple[float, float]:
    """Fill `p_i = e_i t / (1 + e_i t)`; return the mean and the variance of the sum."""
    mean = 0.0
    variance = 0.0
    for i in range(e.size):
        q = 1.0 / (1.0 + e[i] * t)
        p[i] = 1.0 - q
        mean += p[i]
        variance += p[i] * q
    return mean, variance


@njit
def _find_tilt(e: Floats, y: float, lam: float, tau: float, p: Floats) -> tuple[float, float, float]:
    """Newton for `tau / (2 lam) + sum_i sigma(theta_i + tau) = y`, loosely: any tau near the root will do.

    Returns tau, the mean and the variance; the mean is nan when it was not found.
    """
    softness = 0.5 / lam
    low = -600.0
    high = 600.0
    for _ in range(80):
        mean, variance = _tilted(e, np.exp(tau), p)
        spread = variance + softness
        gap = tau * softness + mean - y
        if gap * gap <= 0.01 * spread + 1e-4:
            return tau, mean, variance
        if gap > 0.0:
            high = tau
        else:
            low = tau
        step = gap / (spread + 1e-300)
        tau -= min(max(step, -8.0), 8.0)
        if not (low < tau < high):
            tau = 0.5 * (low + high)
    return tau, np.nan, 0.0


@njit
def _goal_values(lam: float, star: float, first: int, last: int, psi: Floats) -> tuple[int, int, float]:
    """`psi(s)` over its nearest integer's value, for `s` from `first` to `last` (at `psi[s - first]`).

    Ratios of neighbours change by the constant factor `e^{-2 lam}`, so three exponentials serve all. Returns where the
    values drop below 1e-18, and the log of the nearest integer's value.
    """
    near = int(min(max(np.floor(star + 0.5), float(first)), float(last)))
    shrink = np.exp(-2.0 * lam)
    psi[near - first] = 1.0
    left, right = near, near
    value = 1.0
    ratio = np.exp(-lam * (2.0 * (near - star) + 1.0))
    while right < last and value * ratio > 1e-18:
        value *= ratio
        ratio *= shrink
        right += 1
        psi[right - first] = value
    value = 1.0
    ratio = np.exp(lam * (2.0 * (near - star) - 1.0))
    while left > first and value * ratio > 1e-18:
        value *= ratio
        ratio *= shrink
        left -= 1
        psi[left - first] = value
    return left, right, -lam * (near - star) ** 2


@njit
def _goal_by_sum(first: int, left: int, right: int, psi: Floats, N: int, table: Floats, re: Floats, im: Floats) -> None:
    """`Psi` at the nodes from the values at `left..right`, by a table of the N-th roots of unity."""
    for k in range(re.size):
        at = (k * left) % N
        a = 0.0
        b = 0.0
        for s in range(left, right + 1):
            a += psi[s - first] * table[0, at]
            b -= psi[s - first] * table[1, at]
            at += k
            if at >= N:
                at -= N
        re[k] = a
        im[k] = b


@njit
def _goal_by_poisson(lam: float, star: float, angle: float, re: Floats, im: Floats) -> None:
    """`Psi` over all integers by Poisson's summation formula, two images: exact to 1e-14 for `lam < 0.3`."""
    scale = np.sqrt(np.pi / lam)
    turn_c = np.cos(2.0 * np.pi * star)
    turn_s = np.sin(2.0 * np.pi * star)
    c1 = np.cos(angle * star)
    s1 = np.sin(angle * star)
    c = 1.0
    z = 0.0
    for k in range(re.size):
        w = angle * k
        near = scale * np.exp(-w * w / (4.0 * lam))
        far = scale * np.exp(-((2.0 * np.pi - w) ** 2) / (4.0 * lam))
        # e^{-i w s*} and e^{-i (w - 2 pi) s*}
        re[k] = near * c + far * (c * turn_c + z * turn_s)
        im[k] = -near * z + far * (c * turn_s - z * turn_c)
        c, z = c * c1 - z * s1, z * c1 + c * s1


@njit_fast
def _products(p: Floats, c: Floats, z: Floats, re: Floats, im: Floats) -> None:
    """Multiply the characteristic function of the sum into `re + i im`, node by node."""
    for i in range(p.size):
        pi = p[i]
        qi = 1.0 - pi
        for k in range(re.size):
            a = qi + pi * c[k]
            b = pi * z[k]
            r = re[k]
            re[k] = r * a - im[k] * b
            im[k] = r * b + im[k] * a


@njit_fast
def _leave_one_out(p: Floats, c: Floats, z: Floats, re: Floats, im: Floats, a0: Floats, a1: Floats) -> None:
    """`a0_i`, `a1_i` from the weighted spectrum `re + i im`, dividing each member's own factor out."""
    r = re[0]
    for i in range(p.size):
        a0[i] = r
        a1[i] = r
    for k in range(1, re.size):
        r = re[k]
        j = im[k]
        ck = c[k]
        zk = z[k]
        r1 = r * ck - j * zk
        j1 = r * zk + j * ck
        for i in range(p.size):
            pi = p[i]
            qi = 1.0 - pi
            a = qi + pi * ck
            b = pi * zk
            inverse = 1.0 / (a * a + b * b)
            a0[i] += (r * a + j * b) * inverse
            a1[i] += (r1 * a + j1 * b) * inverse


@njit
def _nodes(size: int, variance: float, lam: float, whole: bool, table: Floats) -> tuple[int, int]:
    """The number of roots of unity `N` and how many of them to use; their cosines and sines go into `table`."""
    N = size + 1
    if not whole:
        # Odd, and on a coarse grid, so that bags in a row mostly share one table.
        N = int(10.0 + np.sqrt(100.0 + 60.0 * (variance + 0.5 / lam))) | 7
    N += 1 - N % 2
    angle = 2.0 * np.pi / N
    if table[2, 0] != N:
        table[2, 0] = N
        for k in range(min(N, table.shape[1])):
            table[0, k] = np.cos(angle * k)
            table[1, k] = np.sin(angle * k)
    K = 1
    while 2 * K < N and K <= NODES:
        w = angle * K
        # Cut to 0..B the goal is no Gaussian any more, and only the law itself bounds the spectrum.
        if variance * (1.0 - table[0, K]) + (0.0 if whole else w * w * 0.25 / lam) > 36.0:
            break
        K += 1
    return N, K


@njit
def fourier_messages(
    e: Floats, y: float, lam: float, tau: float, work: Floats, out: Floats
) -> tuple[bool, float, float]:
    """Message odds `e^{mu_i}` of one factor into `out`.

    Args:
        e: incoming odds of the members, all positive and finite.
        y: the count.
        lam: the factor's weight; `inf` for a hard count strictly between 0 and the bag size.
        tau: a first guess of the tilt, from an earlier round.
        work: scratch from `workspace`.
        out: where the odds go.

    Returns:
        Whether every message is accurate (otherwise use `windowed_messages`), the tilt, and the log of
        `sum_s P(s) phi(s)` up to `log_tilt_mass`.
    """
    size = e.size
    p, a0, a1, psi = work[3, :size], work[4, :size], work[5, :size], work[6]
    tau, mean, variance = _find_tilt(e, y, lam, tau, p)
    if not np.isfinite(mean):
        return False, 0.0, 0.0
    hard = np.isinf(lam)
    star = y if hard else y - 0.5 * tau / lam
    whole = size < min(10.0 + np.sqrt(100.0 + 60.0 * (variance + 0.5 / lam)), WHOLE)
    table = work[0:3]
    N, K = _nodes(size, variance, lam, whole, table)
    if K > NODES:
        return False, 0.0, 0.0
    c, z, re, im = table[0, :K], table[1, :K], work[7, :K], work[8, :K]
    log_scale = 0.0
    if hard:
        psi[0] = 1.0
        _goal_by_sum(int(y), int(y), int(y), psi, N, table, re, im)
    elif whole or lam >= 0.3:
        reach = np.sqrt(40.0 / lam) + 1.0
        first = 0 if whole else int(np.ceil(star - reach))
        last = size if whole else int(np.floor(star + reach))
        left, right, log_scale = _goal_values(lam, star, first, last, psi)
        _goal_by_sum(first, left, right, psi, N, table, re, im)
    else:
        _goal_by_poisson(lam, star, 2.0 * np.pi / N, re, im)
    _products(p, c, z, re, im)
    absolute = abs(re[0])
    re[0] /= N
    total = re[0]
    for k in range(1, K):
        absolute += 2.0 * (abs(re[k]) + abs(im[k]))
        re[k] *= 2.0 / N
        im[k] *= 2.0 / N
        total += re[k]
    floor = _SMALLEST * absolute / N
    _leave_one_out(p, c, z, re, im, a0, a1)
    if not (total > floor and np.min(a0) > floor and np.min(a1) > floor):
        return False, 0.0, 0.0
    t = np.exp(tau)
    for i in range(size):
        out[i] = t * a1[i] / a0[i]
    # phi(s) e^{-tau s} = psi(s) e^{lam (s*^2 - y^2)}
    log_mass = np.log(total) + log_scale - (tau * y if hard else lam * (y - star) * (y + star))
    return True, tau, log_mass


@njit_fast
def log_tilt_mass(e: Floats, tau: float) -> float:
    """`sum_i log((1 + e_i e^tau) / (1 + e_i))`."""
    t = np.exp(tau)
    total = 0.0
    for i in range(e.size):
        total += np.log((1.0 + e[i] * t) / (1.0 + e[i]))
    return total
