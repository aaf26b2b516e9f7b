"""The scale of prior log-odds, chosen by the marginal likelihood of all counts.

A penalty shrinks the log-odds of a regression, and corrections of the right size then drown them: the more counts, the
worse the posterior. The cure is one number. With `q_s` the probabilities of the log-odds times `s`, shifted to the
known rate, `V_s = diag(q_s (1 - q_s))` and `A` the incidence matrix of the bags,

    s = argmax  log N(c; A q_s, A V_s A' + diag(sd^2)),

exactly for up to `MOST_TOGETHER` bags, and as if bags did not overlap beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from llpbench_methods.shared.shares import shift_to_shares

Array = NDArray[np.float64]

SCALES = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0)
MOST_TOGETHER = 1100
"""Largest number of bags whose joint covariance is used."""
_JITTER = 1e-6
_LEAST_VARIANCE = 1.0 / 12.0


def rescaled(fields: Array, incidence: Any, counts: Array, count_sd: Array, rate: float) -> tuple[Array, float]:
    """The log-odds times the scale under which the counts are most likely, shifted to the rate, and the scale.

    Args:
        fields: (n,) prior log-odds.
        incidence: (bags, n) sparse matrix of the bags' rows.
        counts: (bags,) known counts.
        count_sd: (bags,) standard deviation of their noise.
        rate: known rate of class 1.
    """
    scale, _ = best_scale(lambda scale: log_marginal(expit(scaled(fields, scale, rate)), incidence, counts, count_sd))
    return scaled(fields, scale, rate), scale


def scaled(fields: Array, scale: float, rate: float) -> Array:
    """(n,) log-odds times the scale, shifted to the rate."""
    values = scale * fields
    return np.asarray(values + float(shift_to_shares(values[:, None], np.array([rate]))[0]))


def best_scale(value: Callable[[float], float]) -> tuple[float, float]:
    """The scale with the highest value, and this value: upwards from 1 while it rises, otherwise downwards."""
    start = SCALES.index(1.0)
    best, scale = value(1.0), 1.0
    for further in (SCALES[start + 1 :], SCALES[:start][::-1]):
        for each in further:
            found = value(each)
            if found <= best:
                break
            best, scale = found, each
        if scale != 1.0:
            break
    return scale, best


def log_marginal(q: Array, incidence: Any, counts: Array, count_sd: Array) -> float:
    """The Gaussian log-likelihood of counts whose rows have independent labels of probabilities ``q``."""
    gap, spread = counts - incidence @ q, q * (1.0 - q)
    if len(counts) > MOST_TOGETHER:
        variance = np.maximum(incidence @ spread + count_sd**2, _LEAST_VARIANCE)
        return float(-0.5 * np.sum(np.log(2.0 * np.pi * variance) + gap**2 / variance))
    covariance = (incidence.multiply(spread) @ incidence.T).toarray()
    diagonal = covariance.diagonal() + count_sd**2
    covariance[np.diag_indices_from(covariance)] = np.maximum(diagonal * (1.0 + _JITTER), _LEAST_VARIANCE)
    factor, lower = cho_factor(covariance, lower=True)
    logs = 2.0 * float(np.log(factor.diagonal()).sum())
    return -0.5 * (logs + float(gap @ cho_solve((factor, lower), gap)) + len(counts) * float(np.log(2.0 * np.pi)))
