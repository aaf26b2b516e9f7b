"""Differential-privacy noise on bag counts: the Gaussian mechanism.

One row changes a bag's proportion by at most 1/B. Adding N(0, sigma^2) with
``sigma = sqrt(2 ln(1.25 / delta)) / (epsilon B)`` to each proportion makes it (epsilon, delta)-private, so the
noise on a *count* has the same standard deviation whatever the bag size: ``sqrt(2 ln(1.25 / delta)) / epsilon``.
"""

from __future__ import annotations

import math

import numpy as np

from llpbench.data import FloatArray
from llpbench.errors import UsageError

LEVELS: dict[str, float | None] = {"none": None, "medium": 10.0, "high": 1.0}


def noise_label(text: str) -> str:
    """The canonical name of a noise level: ``none``, ``medium``, ``high`` or ``epsilon=VALUE``."""
    epsilon = epsilon_of(text)
    for name, value in LEVELS.items():
        if value == epsilon:
            return name
    short = f"{epsilon:g}"
    return f"epsilon={short if float(short) == epsilon else repr(epsilon)}"


def epsilon_of(text: str) -> float | None:
    """The epsilon a noise level stands for; None for no noise."""
    if text in LEVELS:
        return LEVELS[text]
    try:
        epsilon = float(text.removeprefix("epsilon="))
    except ValueError:
        epsilon = math.nan
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"noise {text!r} is not one of {', '.join(LEVELS)}, nor a positive epsilon.")
    return epsilon


def count_noise_sd(epsilon: float | None, delta: float, mechanism: str = "gaussian") -> float:
    """Standard deviation of the noise on one bag count, 0 without noise."""
    if mechanism != "gaussian":
        raise UsageError(f"unknown noise mechanism {mechanism!r}. Available: gaussian.")
    if not 0 < delta < 1:
        raise UsageError(f"--delta must lie between 0 and 1, not {delta:g}.")
    return 0.0 if epsilon is None else math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def add_count_noise(counts: FloatArray, sd: float, rng: np.random.Generator) -> FloatArray:
    """Counts with independent Gaussian noise; unclipped, so any real number may come out."""
    return counts if sd == 0 else counts + rng.normal(0.0, sd, size=counts.shape)
