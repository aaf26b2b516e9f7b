"""Differential-privacy noise on bag counts: the Gaussian mechanism.

Neighbours are two label tables that differ in the label of one row. The row is in one bag of each of ``g`` groupings
(usually one), and the counts of these bags change: the single count of two classes by 1, those of several classes by
one up and one down. The sensitivity ``D`` (Euclidean) of all counts together is ``sqrt(g)`` or ``sqrt(2 g)``, and
epsilon is that of their whole release. Noise ``N(0, sd^2)`` is added to every count:

``gaussian``  ``sd = D sqrt(2 ln(1.25 / delta)) / epsilon`` (Dwork & Roth 2014, theorem A.1), proved to be
              (epsilon, delta)-private for epsilon < 1 only. Beyond it is a convention, not a guarantee.
``analytic``  the least sd that is (epsilon, delta)-private, for every epsilon (Balle & Wang 2018, theorem 8):
              ``delta = Phi(D / (2 sd) - epsilon sd / D) - e^epsilon Phi(-D / (2 sd) - epsilon sd / D)``.

The noise on a count does not depend on the bag size, that on a proportion is ``sd / B``.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import UnknownNameError, UsageError

LEVELS: dict[str, float | None] = {"none": None, "medium": 10.0, "high": 1.0}
MECHANISMS = ("gaussian", "analytic")


def noise_name(text: str) -> str:
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


def count_sensitivity(classes: int, groupings: int = 1) -> float:
    """How far all counts move (Euclidean distance) when one row's label changes."""
    return (1.0 if classes == 2 else math.sqrt(2.0)) * math.sqrt(groupings)


def count_noise_sd(epsilon: float | None, delta: float, mechanism: str = "gaussian", sensitivity: float = 1.0) -> float:
    """Standard deviation of the noise on one bag count, 0 without noise."""
    if mechanism not in MECHANISMS:
        raise UnknownNameError("noise mechanism", mechanism, MECHANISMS)
    if not 0 < delta < 1:
        raise UsageError(f"--delta must lie between 0 and 1, not {delta:g}.")
    if epsilon is None:
        return 0.0
    if mechanism == "analytic":
        return sensitivity * _least_private_sd(epsilon, delta)
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def log_gaussian_delta(epsilon: float, sd: float) -> float:
    """``log delta`` that noise of standard deviation ``sd`` gives at ``epsilon`` when the sensitivity is 1.

    ``log(Phi(a) - e^epsilon Phi(b))`` with ``a, b = +-1 / (2 sd) - epsilon sd``, as
    ``log Phi(a) + log(1 - exp(epsilon + log Phi(b) - log Phi(a)))``, which neither overflows nor underflows.
    """
    from scipy.special import log_ndtr

    above, below = (float(log_ndtr(side / (2.0 * sd) - epsilon * sd)) for side in (1.0, -1.0))
    ratio = min(epsilon + below - above, -sys.float_info.min)
    return above + math.log(-math.expm1(ratio))


def _least_private_sd(epsilon: float, delta: float) -> float:
    """The root in ``sd`` of ``log_gaussian_delta(epsilon, sd) = log delta``; delta falls as sd grows."""
    from scipy.optimize import brentq

    def excess(log_sd: float) -> float:
        return log_gaussian_delta(epsilon, math.exp(log_sd)) - math.log(delta)

    low = high = math.log(math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon)
    while excess(low) < 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    return math.exp(low if low == high else float(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))


def add_count_noise(counts: FloatArray, sd: float, rng: np.random.Generator) -> FloatArray:
    """Counts with independent Gaussian noise; unclipped, so any real number may come out."""
    return counts if sd == 0 else counts + rng.normal(0.0, sd, size=counts.shape)
