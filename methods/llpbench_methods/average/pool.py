"""The logarithmic opinion pool: a weighted mean of log-odds, which is a geometric mean of odds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from llpbench import Bags

Array = NDArray[np.float64]

_LEAST = 1e-12
"""Probabilities are kept this far from 0 and 1, so that no member can veto the others."""


def log_odds(predicted: NDArray[Any]) -> Array:
    """(n, 1) log-odds of class 1, or (n, C) logarithms of the probabilities of several classes."""
    p = np.clip(np.asarray(predicted, np.float64), _LEAST, 1.0 - _LEAST)
    return (np.log(p) - np.log1p(-p))[:, None] if p.ndim == 1 else np.log(p)


def pooled(fields: Sequence[Array], weights: Array) -> Array:
    """``Σ_k w_k θ_k``, for several classes up to a constant for each row."""
    mean = np.tensordot(weights, np.stack(fields), axes=1)
    return np.asarray(mean if mean.shape[1] == 1 else log_softmax(mean, axis=1))


def probabilities(fields: Array) -> Array:
    """Of class 1, (n,), or of every class, (n, C)."""
    return np.asarray(expit(fields[:, 0]) if fields.shape[1] == 1 else softmax(fields, axis=1))


def known_rate(bags: Bags) -> Array:
    """The shares of the classes by the counts, half a row away from 0 and 1: (1,) or (C,)."""
    least = 0.5 / len(bags.X)
    rate = np.clip(bags.prior.astype(np.float64), least, 1.0 - least)
    return np.asarray(rate if len(rate) == 1 else rate / rate.sum())
