"""Probabilities of rows given the counts of their bags: the exact law of labels whose sums are known.

The rows of a bag are independent with probabilities ``p_ic``; ``S`` is the vector of the class counts. With the
likelihood ``g(k)`` of what is known about the counts (one vector, an interval, a noisy number),

    P(y_i = c | known)  ∝  p_ic Σ_k g(k) P(S_{-i} = k − e_c),

``S_{-i}`` being the counts of the other rows. Two facts make this fast and accurate. A shift of all logits of a bag
multiplies both sides by ``exp(t · k)``, so it changes nothing if ``g`` is divided by it: rows are first shifted to the
known level, where the sums are of the size of 1. And the laws of ``S_{-i}`` have the characteristic functions
``Π_{j ≠ i} Σ_c p_jc exp(iθ_c)``, which vanish except at frequencies of the order of 1 / sd(S); sums over ``k`` are sums
over these. So a bag of ``B`` rows costs ``B^1.5`` steps for two classes.

With so many classes and rows that even these frequencies are too many, ``S_{-i}`` is taken as normal.

**Bag effects.** What the rows of a bag have in common (the day, the clinic) is a shift as well, and cancels if counts
are exact. Otherwise the level of the bag first moves towards what is known, by ``E / (E + V + s²)`` of the way: ``E``
is the variance of the effect, ``V`` that of chance, ``s²`` that of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.experiment.levelling import binary_shift, class_shifts
from llpbench.owndata.judging.predictor import softmax
from llpbench.owndata.reading.bag_counts import KnownCounts

_MOST_POINTS = 50_000
"""Most points of the grid of frequencies."""
_MOST_TERMS = 300_000
"""Most rows times frequencies of one bag; beyond, counts of several classes are taken as normal."""
_CHUNK = 2_000_000
_NEGLIGIBLE = 40.0
_WHOLE = 1e-6


def posterior(
    logits: FloatArray, numbers: IntArray, known: KnownCounts, effect: FloatArray | None = None
) -> FloatArray:
    """(n, C) probabilities of rows, given what is known about the counts of their bags.

    Args:
        logits: (n, C) logits of the rows.
        numbers: (n,) bag of each row.
        known: the counts of the bags.
        effect: (C,) variance of a bag's proportions beyond chance, for counts that are not exact.
    """
    p = np.empty(logits.shape, np.float64)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        b = numbers[rows[0]] if len(rows) else 0
        if len(rows):
            p[rows] = posterior_of_bag(logits[rows], known.low[b], known.high[b], float(known.sd[b]), effect)
    return p


def posterior_of_bag(
    logits: FloatArray, low: FloatArray, high: FloatArray, sd: float, effect: FloatArray | None = None
) -> FloatArray:
    """(B, C) probabilities of the rows of one bag; arguments as those of ``posterior``, for this bag."""
    size = len(logits)
    low, high = _bounds(low, high, size, sd)
    exact = sd == 0.0 and bool((low == high).all())
    if exact:
        target = low
    else:
        p = softmax(logits)
        mean, chance = p.sum(axis=0), (p * (1.0 - p)).sum(axis=0)
        wanted = np.clip(mean, low, high)
        if effect is not None:
            reach = size**2 * effect
            mean = mean + reach / (reach + chance + sd**2 + _WHOLE) * (wanted - mean)
            mean = np.maximum(mean, 0.25)
            logits = logits + _shift(logits, mean / mean.sum())
            wanted = np.clip(mean, low, high)
        target = np.maximum(mean + chance / (chance + sd**2 + _WHOLE) * (wanted - mean), 0.25)
    shares = target / target.sum()
    there = shares > 0.0
    if exact and there.sum() == 1:
        return np.tile(there.astype(np.float64), (size, 1))
    shift = np.zeros(len(shares))
    shift[there] = _shift(logits[:, there], shares[there])
    p = np.zeros(logits.shape)
    p[:, there] = softmax(logits[:, there] + shift[there])
    grid = _Grid.of(p[:, there], low[there], high[there], sd, shift[there])
    p[:, there] = _condition(p[:, there], grid) if grid is not None else _as_normal(p[:, there], low, high, sd, there)
    return p


def level_to(logits: FloatArray, totals: FloatArray) -> FloatArray:
    """(n, C) probabilities of rows whose sums are ``totals``: one shift of the logits for each class.

    Args:
        logits: (n, C) logits.
        totals: (C,) wanted sums, 0 or more; scaled to add up to the number of rows.
    """
    shares = totals / max(float(totals.sum()), 1e-300)
    there = shares > 1e-9
    p = np.zeros_like(logits)
    if there.sum() == 1:
        p[:, there] = 1.0
        return p
    inner = logits[:, there]
    p[:, there] = softmax(inner + _shift(inner, shares[there] / shares[there].sum()))
    return p


def _shift(logits: FloatArray, shares: FloatArray) -> FloatArray:
    if logits.shape[1] == 2:
        return np.array([0.0, binary_shift(logits[:, 1] - logits[:, 0], float(shares[1]))])
    return np.asarray(class_shifts(logits, shares))


def _bounds(low: FloatArray, high: FloatArray, size: int, sd: float) -> tuple[FloatArray, FloatArray]:
    """Bounds within the bag; exact counts that do not quite add up to its size are scaled."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if sd > 0.0:
        return low, high
    if (low == high).all():
        low = np.maximum(low, 0.0)
        low = low * (size / low.sum()) if low.sum() > 0 else low
        whole = np.rint(low)
        low = np.where(np.abs(low - whole) < _WHOLE * max(size, 1), whole, low)
        return low, low
    return np.clip(low, 0.0, size), np.clip(high, 0.0, size)


def _likelihood(values: FloatArray, low: float, high: float, sd: float) -> FloatArray:
    """``g`` of one class at whole counts: a fractional count lies between its neighbours."""
    from scipy.special import ndtr

    if sd > 0.0:
        if low == high:
            gap = (values - low) / sd
            return np.asarray(np.exp(-0.5 * (gap**2 - (gap**2).min())))
        mass = ndtr((high + 0.5 - values) / sd) - ndtr((low - 0.5 - values) / sd)
        return np.asarray(np.maximum(mass, 1e-300))
    if low == high:
        return np.asarray(np.maximum(1.0 - np.abs(values - low), 0.0))
    return ((values >= low - _WHOLE) & (values <= high + _WHOLE)).astype(np.float64)


@dataclass(frozen=True)
class _Grid:
    """Frequencies of the classes after the first, and the transform of ``g`` at each.

    Attributes:
        angles: (frequencies, C) with 0 for the first class; one of each pair ±θ.
        weights: (frequencies,) the transform of ``g``, twice for a pair.
    """

    angles: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, p: FloatArray, low: FloatArray, high: FloatArray, sd: float, shift: FloatArray) -> _Grid | None:
        """The grid for a bag whose logits were shifted; None if it would be too large."""
        size, classes = p.shape
        mean, sds = p.sum(axis=0), np.sqrt((p * (1.0 - p)).sum(axis=0))
        reach = np.ceil(10.0 * sds + 40.0).astype(int)
        widths = np.minimum(size + 1 + size % 2, 2 * reach + 1)[1:]  # odd, so that frequencies come in pairs
        if np.prod(widths.astype(np.float64)) > _MOST_POINTS:
            return None
        first = np.clip(np.rint(mean).astype(int) - reach, 0, None)[1:]
        first = np.maximum(np.minimum(first, size + 1 - widths), 0)
        places = np.meshgrid(*[np.arange(a, a + n) for a, n in zip(first, widths, strict=True)], indexing="ij")
        rest = size - sum(places)
        logs = -sum(t * k for t, k in zip(shift[1:] - shift[0], places, strict=True))
        g = np.where(rest >= 0, 1.0, 0.0)
        for c in range(1 if classes == 2 else 0, classes):
            g = g * _likelihood(rest if c == 0 else places[c - 1], float(low[c]), float(high[c]), sd)
        inside = g > 0.0
        if not inside.any():
            return None
        logs = np.where(inside, np.log(np.where(inside, g, 1.0)) + logs, -np.inf)
        g = np.exp(logs - logs.max())
        turns = np.meshgrid(*[np.fft.fftfreq(n) * n for n in widths], indexing="ij")
        angles = [2.0 * np.pi * turn / n for turn, n in zip(turns, widths, strict=True)]
        decay = np.zeros(g.shape)
        both = p.T @ p
        for a in range(classes):
            for b in range(a):
                gap = angles[a - 1] - (angles[b - 1] if b else 0.0)
                decay += 2.0 * both[a, b] * np.sin(0.5 * gap) ** 2
        half = turns[0] >= 0
        kept = half & (decay < _NEGLIGIBLE)
        if classes > 2 and size * kept.sum() > _MOST_TERMS:
            return None
        transform = np.fft.fftn(g)
        turned = sum(angle * a for angle, a in zip(angles, first, strict=True))
        weights = np.where(turns[0] > 0, 2.0, 1.0) * transform * np.exp(-1j * turned)
        chosen = np.stack([np.zeros(int(kept.sum())), *(angle[kept] for angle in angles)], axis=1)
        return cls(chosen, weights[kept])


def _condition(p: FloatArray, grid: _Grid) -> FloatArray:
    """(B, C) probabilities given ``g``: a sum over frequencies of the characteristic function of the other rows."""
    sums = np.zeros(p.shape)
    step = max(_CHUNK // max(len(p), 1), 1)
    for start in range(0, len(grid.weights), step):
        waves = np.exp(1j * grid.angles[start : start + step])
        values = p @ waves.T
        logs = np.log(np.where(np.abs(values) < 1e-30, 1e-30, values))
        others = np.exp(logs.sum(axis=0) - logs) * grid.weights[start : start + step]
        sums += (others @ waves).real
    joint = p * np.maximum(sums, 0.0)
    total = joint.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), p)


def _as_normal(p: FloatArray, low: FloatArray, high: FloatArray, sd: float, there: NDArray[np.bool_]) -> FloatArray:
    """The same with a normal law of the other rows' counts, levelled to the counts if they are exact."""
    low, high = low[there], high[there]
    spread = np.where(low < high, (high - low + 1.0) ** 2 / 12.0, 0.0) + sd**2
    inner = p[:, 1:]
    own = np.einsum("ic,cd->icd", inner, np.eye(inner.shape[1])) - np.einsum("ic,id->icd", inner, inner)
    rest = own.sum(axis=0) - own + np.diag(spread[1:] + _WHOLE)
    inverse = np.linalg.inv(rest)
    logs = np.log(np.maximum(p, 1e-300))
    middle = np.clip(p.sum(axis=0), low, high)[1:] - p.sum(axis=0)[1:]
    for c in range(p.shape[1]):
        gap = inner - np.eye(p.shape[1])[c][1:] + middle
        logs[:, c] -= 0.5 * np.einsum("ic,icd,id->i", gap, inverse, gap)
    if sd == 0.0 and (low == high).all():
        return level_to(logs, low)
    return softmax(logs)
