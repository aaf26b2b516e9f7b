"""Predictions brought to a known level: one shift of the logits, so that the mean prediction equals a given rate.

A model may rank rows well and still predict too many positives: the level of its predictions is one number that bags
tell by themselves. Shifting all logits by a constant changes that number alone; the order of the rows stays.
"""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import FloatArray

_TINY = 1e-300
_HUGE = 1e100  # logits beyond this are as good as certain; sums and differences of them stay finite
_TOLERANCE = 1e-11
_MOST_STEPS = 200


def log_odds(scores: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Logits of predictions: (n,) log-odds of class 1, or (n, C) logarithms of the classes' probabilities.

    Scores that are log-odds already are taken as they are, so that confident ones keep their order; probabilities of
    exactly 0 or 1 get the largest finite log-odds.

    Args:
        scores: what the method gave: probabilities or logits.
        probabilities: the same as probabilities; equal to ``scores`` where these are probabilities.
    """
    from scipy.special import log_softmax

    scores, p = np.asarray(scores, np.float64), np.asarray(probabilities, np.float64)
    if not np.array_equal(scores, p):
        scores = np.clip(scores, -_HUGE, _HUGE)
        return scores if scores.ndim == 1 else np.asarray(log_softmax(scores, axis=1))
    if p.ndim == 1:
        p = np.clip(p, _TINY, 1.0 - np.finfo(np.float64).epsneg)
        return np.asarray(np.log(p) - np.log1p(-p))
    return np.log(np.clip(p, 1e-12, 1.0))


def inner_rate(rate: FloatArray, rows: int) -> FloatArray:
    """Rates kept half a row away from 0 and 1: (1,) of class 1, or (C,) shares that add up to 1."""
    least = 0.5 / rows
    if rate.shape == (1,):
        return np.clip(rate, least, 1.0 - least)
    inner = np.maximum(rate, least)
    return np.asarray(inner / inner.sum())


def level(logits: FloatArray, rate: FloatArray) -> FloatArray:
    """Probabilities whose mean over the rows is ``rate``: the logits shifted by one number for each class.

    Args:
        logits: (n,) log-odds of class 1, or (n, C) logits.
        rate: (1,) rate of class 1, or (C,) shares, inside the open interval.
    """
    from scipy.special import expit, softmax

    if logits.ndim == 1:
        return np.asarray(expit(logits + binary_shift(logits, float(rate[0]))))
    return np.asarray(softmax(logits + class_shifts(logits, rate), axis=1))


def binary_shift(logits: FloatArray, rate: float) -> float:
    """The one ``t`` with ``mean σ(z_i + t) = rate``.

    Newton's method on ``log(m / (1 − m)) − log(rate / (1 − rate))``, ``m`` being the mean: linear in ``t`` when all
    logits are equal, and almost so otherwise. ``t`` is held between the shifts that bring the largest and the smallest
    logit to the rate, one of which is too small and the other too large; a step that leaves what is left of this
    interval is replaced by its middle.
    """
    from scipy.special import expit

    wanted = float(np.log(rate) - np.log1p(-rate))
    low, high = wanted - float(logits.max()), wanted - float(logits.min())
    shift = min(max(0.0, low), high)
    for _ in range(_MOST_STEPS):
        up, down = expit(logits + shift), expit(-logits - shift)
        mean, rest = float(up.mean()), float(down.mean())
        gap = float(np.log(mean) - np.log(rest)) - wanted
        if abs(gap) <= _TOLERANCE or low >= high:
            break
        low, high = (low, shift) if gap > 0 else (shift, high)
        slope = float((up * down).mean()) / (mean * rest)
        step = shift - gap / slope if slope > 0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if step in (low, high):  # neighbours among the floating-point numbers
            break
        shift = step
    return shift


def class_shifts(logits: FloatArray, shares: FloatArray) -> FloatArray:
    """The ``t``, up to a constant, with ``mean softmax(z_i + t) = shares``: the least of a convex function.

    ``F(t) = mean log Σ_c exp(z_ic + t_c) − shares · t`` has the gradient ``mean − shares``. A step is Newton's, cut to
    a reach that follows success, where that lowers ``F`` enough, and otherwise iterative scaling,
    ``t ← t + log(shares / mean)``, which always lowers it.
    """

    def at(t: FloatArray) -> tuple[float, FloatArray]:
        moved = logits + t
        top = moved.max(axis=1, keepdims=True)
        p = np.exp(moved - top)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        return float((top + np.log(total)).mean() - shares @ t), p

    shift = np.zeros(logits.shape[1])
    reach = max(8.0, float(np.ptp(logits)) / 16.0)
    value, p = at(shift)
    for _ in range(_MOST_STEPS):
        mean = p.mean(axis=0)
        gradient = mean - shares
        if np.abs(gradient).max() <= 1e-10:
            break
        curvature = np.diag(mean) - p.T @ p / len(p) + 1e-9 * np.eye(len(mean))
        step = -np.linalg.solve(curvature, gradient)
        step -= step.mean()
        step *= min(1.0, reach / float(np.abs(step).max()))
        tried = at(shift + step)
        if tried[0] <= value + 0.1 * float(gradient @ step):
            reach *= 2.0
        else:
            reach = max(0.25 * float(np.abs(step).max()), 1e-3)
            step = np.log(shares / np.maximum(mean, _TINY))
            tried = at(shift + step)
        shift = shift + step
        value, p = tried
    return shift
