"""Numba kernels of C-state labels in probabilities: products and divisions, no logarithm and no exponential.

For moderate models: every product of a row's messages must stay far inside the range of float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.counts_by_fourier import fourier_messages
from llpbench_methods.inference.compiled.counts_in_logs import windowed_messages
from llpbench_methods.inference.compiled.jit import njit, njit_fast

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

CEILING = 1e90
"""Message odds of a counting factor are cut here: a class that a bag's count rules out has no more than 1 / this."""
_WIDEST = 1e108
"""Odds beyond this are left to the path in logarithms."""


@njit_fast
def _message(belief: Floats, reverse: Floats, away: float, old: Floats, damping: float, product: Floats) -> None:
    """`m(x) = a + (1 - a) b(x)`, `b` the sender's belief without what the receiver told it, into `old` and `product`.

    A first loop over the states adds up the cavity belief, a second one normalises it.
    """
    total = 0.0
    for c in range(belief.size):
        total += belief[c] / reverse[c]
    share = (1.0 - away) / total
    for c in range(belief.size):
        new = away + share * belief[c] / reverse[c]
        if damping > 0.0:
            new *= (old[c] / new) ** damping
        old[c] = new
        product[c] *= new


@njit
def potts_edges(
    left: Rows, right: Rows, away: Floats, forth: Floats, back: Floats, beliefs: Floats, damping: float, product: Floats
) -> None:
    """One round of edge messages, multiplied into `product`; `away` is `e^{-2w}` of each pair.

    `forth` goes left to right, `back` right to left; both are made from the messages of the round before.
    """
    reverse = np.empty(beliefs.shape[1])
    for t in range(left.size):
        i, j = left[t], right[t]
        reverse[:] = forth[t]
        _message(beliefs[i], back[t], away[t], forth[t], damping, product[j])
        _message(beliefs[j], reverse, away[t], back[t], damping, product[i])


@njit
def odds_against_rest(node: Floats, from_bag: Floats, odds: Floats) -> None:
    """`node_c / sum_{c' != c} node_c' bag_c'` into `odds[c]`, rest summed from both ends so that nothing cancels."""
    n, classes = node.shape
    rest = np.empty(classes)
    for i in range(n):
        before = 0.0
        for c in range(classes):
            rest[c] = before
            before += node[i, c] * from_bag[i, c]
        after = 0.0
        for c in range(classes - 1, -1, -1):
            odds[c, i] = node[i, c] / (rest[c] + after)
            after += node[i, c] * from_bag[i, c]


@njit
def bag_messages(
    odds: Floats,
    offsets: Ints,
    counts: Floats,
    lambda_b: Floats,
    damping: float,
    work: Floats,
    tilts: Floats,
    message: Floats,
) -> None:
    """Message odds of the counting factors of all bags and classes, damped into `message` (rows, classes)."""
    for c in range(counts.shape[1]):
        for b in range(lambda_b.size):
            first, last = offsets[b], offsets[b + 1]
            size = last - first
            y, lam = counts[b, c], lambda_b[b]
            part = odds[c, first:last]
            fresh = work[9, :size]
            if lam == 0.0 or size == 0:
                fresh[:] = 1.0
            elif np.isinf(lam) and (y == 0.0 or y == size):
                fresh[:] = CEILING if y > 0.0 else 1.0 / CEILING
            elif size == 1:
                fresh[0] = np.exp(lam * (2.0 * y - 1.0))
            else:
                good = True
                for i in range(size):
                    good &= 1.0 / _WIDEST < part[i] < _WIDEST
                if good:
                    good, tau, _ = fourier_messages(part, y, lam, tilts[c, b], work, fresh)
                    if good:
                        tilts[c, b] = tau
                if not good:
                    windowed_messages(np.log(part), y, lam, fresh)
                    for i in range(size):
                        fresh[i] = np.exp(fresh[i])
            for i in range(size):
                new = min(max(fresh[i], 1.0 / CEILING), CEILING)
                if damping > 0.0:
                    new *= (message[first + i, c] / new) ** damping
                message[first + i, c] = new


@njit
def potts_beliefs(node: Floats, from_bag: Floats, beliefs: Floats) -> float:
    """Probabilities of the states into `beliefs`; returns the largest change of one."""
    worst = 0.0
    classes = node.shape[1]
    for i in range(node.shape[0]):
        total = 0.0
        for c in range(classes):
            total += node[i, c] * from_bag[i, c]
        for c in range(classes):
            new = node[i, c] * from_bag[i, c] / total
            worst = max(worst, abs(new - beliefs[i, c]))
            beliefs[i, c] = new
    return worst
