"""The pair message as a plain numpy function, safe for any finite coupling and for infinite log-odds.

With `sp(z) = log(1 + e^z)` the message over a coupling `J` from log-odds `x` is `sp(x + J) - sp(x)`. Around its middle,
with `a = x + J/2` and `w = J/2`, it is `w + g(a, w)` where

    g(a, w) = log(e^-w + e^a) - log(1 + e^(a-w)) = clip(a, -w, w) + log1p(e^-|a+w|) - log1p(e^-|a-w|)   (w >= 0)

is odd in `a` and in `w` and never exceeds `|w|`: no cancellation, no overflow. `g` itself is the message of a
similarity weight `w`, whose field `-w` at both ends it absorbs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mode = Literal["sum", "max"]


def centred_message(a: Floats, w: Floats, mode: Mode = "sum") -> Floats:
    """`g(a, w)`; in `max` mode its zero-temperature limit, the clip alone."""
    size = np.abs(w)
    value = np.clip(a, -size, size)
    if mode == "sum":
        value = value + np.log1p(np.exp(-np.abs(a + size))) - np.log1p(np.exp(-np.abs(a - size)))
    return np.asarray(np.sign(w) * value)


def pair_message(x: Floats, J: Floats, mode: Mode = "sum") -> Floats:
    """`sp(x + J) - sp(x)`, or `max(0, x + J) - max(0, x)` in `max` mode."""
    half = 0.5 * J
    return np.asarray(half + centred_message(x + half, half, mode))


def largest_change(new: Floats, old: Floats) -> float:
    """Largest absolute difference, equal infinities differing by nothing."""
    with np.errstate(invalid="ignore"):
        gap = np.where(new == old, 0.0, np.abs(new - old))
    return float(gap.max(initial=0.0))


def damp(old: Floats, new: Floats, damping: float) -> Floats:
    """`d old + (1 - d) new`, infinities unchanged when there is no damping."""
    return new if damping == 0.0 else np.asarray(damping * old + (1.0 - damping) * new)


def run_rounds(one_round: Callable[[], float], rounds: int, tol: float) -> Floats:
    """Residuals of up to `rounds` rounds; stops after the first that is at most `tol`."""
    residuals = []
    for _ in range(rounds):
        residuals.append(one_round())
        if residuals[-1] <= tol:
            break
    return np.array(residuals)


def even_cuts(starts: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Numbers of blocks that cut `starts[-1]` items into nearly equal parts; block `b` begins at `starts[b]`."""
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], parts + 1))
    cuts[0], cuts[-1] = 0, len(starts) - 1
    return cuts


def sum_at(rows: NDArray[np.integer], values: Floats, n: int) -> Floats:
    """Sum of the values at each of `n` rows."""
    return np.asarray(np.bincount(rows, weights=values, minlength=n), dtype=np.float64)


def sigmoid(z: Floats) -> Floats:
    """`1 / (1 + e^-z)` without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
