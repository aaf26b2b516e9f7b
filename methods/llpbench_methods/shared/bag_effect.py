"""The bag effect: bags differ for reasons that no feature explains.

A natural bag (a day, a region, a campaign) has ``P(y_i = 1) = σ(θ(x_i) + u_b)`` with one ``u_b ~ N(0, τ²)`` for all its
rows. Its proportion then has the variance ``v = (p(1−p) τ)²`` on top of the noise of the labels and of a noisy count.
Random bags have ``v = 0``. Here is how large ``v`` is: found by the evidence of whoever regresses on bag means, and
exactly 0 unless the counts are more spread than labels alone make them and the evidence is clear. What a count's
likelihood is under an effect of known size stands in ``inference/bag_effect.py`` (numpy, bags of any size) and, as a
loss that has a gradient on every backend, in ``count_nll/loss.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.shared.mean_regression import SCALES, Array, decompose, noise_variances, regression
from llpbench_methods.shared.spectrum import Spectrum

LEAST_SPREAD = 2.0
"""Standard errors by which proportions must vary more than their known noise, before an effect is looked for."""

CLEAR = 3.0
"""Nats of evidence (20 to 1) that an effect must bring over none."""

GAMMAS = (0.0, 0.75, 1.5, 3.0)
"""Powers of the spectrum under which ``spectral_effect`` compares sizes of the effect."""

_STEP = 2.0
_MOST_STEPS = 12


def excess_variance(proportions: Array, variances: Array) -> tuple[float, float]:
    """Variance of proportions beyond their known noise, and the same in standard errors.

    The score of ``v`` at 0 in ``p_b ~ N(m, n_b + v)``: ``v̂ = Σ_b [(p_b − m)²/n_b² − 1/n_b] / Σ_b 1/n_b²``, whose
    standard error without an effect is ``√(2 / Σ_b 1/n_b²)``. Features need not be known: for random bags, what they
    explain of a proportion is a part of ``n_b``.

    Args:
        proportions: (bags,).
        variances: (bags,) known noise ``n_b``.
    """
    precision = 1.0 / variances
    gap = proportions - float(precision @ proportions) / float(precision.sum())
    weight = float(np.sum(precision**2))
    excess = float(np.sum((gap * precision) ** 2 - precision)) / weight
    return excess, excess * float(np.sqrt(weight / 2.0))


def choose_effect(proportions: Array, variances: Array, evidence: Callable[[float], float]) -> float:
    """The variance ``v`` of the bag effect on proportions that has the highest evidence; 0 unless it is clear.

    Nothing is computed for bags that are no more spread than their known noise. Otherwise the search begins at their
    excess variance, which is the most that an effect can be, and goes on by factors of 2 while the evidence rises.

    Args:
        proportions: (bags,).
        variances: (bags,) known noise without an effect.
        evidence: log evidence of the proportions for a ``v``.
    """
    start, spread = excess_variance(proportions, variances)
    if spread <= LEAST_SPREAD:
        return 0.0
    best, top = start, evidence(start)
    for factor in (1.0 / _STEP, _STEP):
        moved = False
        for _ in range(_MOST_STEPS):
            value = evidence(best * factor)
            if value <= top:
                break
            best, top, moved = best * factor, value, True
        if moved:
            break
    return best if top - evidence(0.0) > CLEAR else 0.0


def spectral_effect(
    proportions: Array,
    sizes: NDArray[Any],
    rate: float,
    count_sd: float,
    features: Callable[[], tuple[Array, Spectrum]],
) -> float:
    """The ``v`` that regression on bag means under priors from the rows' spectrum finds; see ``choose_effect``.

    Args:
        proportions: (bags,).
        sizes: (bags,) rows of each bag.
        rate: share of the class.
        count_sd: standard deviation of the noise on counts.
        features: gives the (bags, d) bag means and the principal components of the rows; called only where bags are
            more spread than their noise.
    """

    @cache
    def regressors() -> tuple[Array, list[Array]]:
        means, spectrum = features()
        return means, [spectrum.prior_factor(gamma) for gamma in GAMMAS]

    def evidence(effect: float) -> float:
        means, factors = regressors()
        problem = regression(means, proportions, noise_variances(sizes, rate, count_sd, effect))
        scales = rate * (1.0 - rate) * SCALES
        return max(float(decompose(problem, factor).log_evidence(scales).max()) for factor in factors)

    return choose_effect(proportions, noise_variances(sizes, rate, count_sd), evidence)


def effect_scale(effect: float, rate: float) -> float:
    """``τ``, the effect's standard deviation in log-odds: ``√v / (p(1−p))``, the least it can be.

    It is exact for rows that are all alike; where their probabilities differ, a bag's mean answers less to the effect.
    """
    return float(np.sqrt(effect)) / (rate * (1.0 - rate))
