"""How far the proportions of bags are spread: binomial chance, and what bags differ by beyond it.

Were a bag's labels drawn one by one, its proportion of a class would have the variance ``π (1 − π) / B``. Days,
regions and campaigns differ for more reasons than that. With the intraclass correlation ``φ`` of a bag's labels it is

    π (1 − π) (1 / B + φ),

``φ = 0`` for bags at random and ``φ = 1`` for bags of one class each. Everything here is for all ``C`` classes at
once, in columns.
"""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.experiment.count_laws import WHOLE, all_classes, log_density, over_classes

_ROUNDS = 50


def class_shares(*parts: Bags) -> FloatArray:
    """(C,) share of each class over the rows of all bags, kept half a row off 0 and 1."""
    counts = sum(all_classes(bags.clipped_proportions).T @ bags.sizes for bags in parts)
    rows = sum(int(bags.sizes.sum()) for bags in parts)
    shares = np.maximum(np.asarray(counts) / rows, 0.5 / rows)
    return np.asarray(shares / shares.sum())


def chance_variance(shares: FloatArray, sizes: IntArray | FloatArray, count_sd: float | FloatArray = 0.0) -> FloatArray:
    """(bags, C) variance of bags' proportions by chance alone: ``π (1 − π) / B``, and the noise that was added."""
    sizes = sizes[:, None].astype(np.float64)
    return np.asarray(shares * (1.0 - shares) / sizes + (np.reshape(count_sd, (-1, 1)) / sizes) ** 2)


def spread_ratio(known: FloatArray, expected: FloatArray, shares: FloatArray, chance: FloatArray) -> float:
    """How many times as far as chance the proportions are from what was expected of them (1: as bags at random).

    The root of the mean over bags of ``(α − expected)² / chance``, classes weighted by ``π (1 − π)``: what is expected
    may differ from bag to bag and counts may be noisy. For true counts around the overall shares, times
    ``n / (n − 1)`` for the shares that are the bags' own, it is ``pearson_spread`` of two classes.
    """
    weights = shares * (1.0 - shares)
    ratio = ((known - expected) ** 2 / chance * weights).sum(axis=1) / weights.sum()
    return float(np.sqrt(ratio.mean()))


def intraclass_correlation(
    known: FloatArray, shares: FloatArray, sizes: IntArray, count_sd: float | FloatArray = 0.0
) -> float:
    """Estimate ``φ`` from the proportions of bags around the overall shares; 0 where they are no wider than chance.

    The fixed point of ``φ = Σ_b w_b (d_b − c_b) / Σ_b w_b`` with ``w_b = 1 / (c_b + φ)``, where ``d_b`` is a bag's
    squared distance from the shares and ``c_b`` what chance makes of it, both in units of ``Σ_c π_c (1 − π_c)``.
    """
    scale = float((shares * (1.0 - shares)).sum())
    distance = ((known - shares) ** 2).sum(axis=1) / scale
    chance = chance_variance(shares, sizes, count_sd).sum(axis=1) / scale
    phi = 0.0
    for _ in range(_ROUNDS):
        weights = 1.0 / (chance + phi)
        found = float(np.clip(weights @ (distance - chance) / weights.sum(), 0.0, 1.0))
        if abs(found - phi) < 1e-9:
            break
        phi = found
    return phi


def bag_log_likelihood(
    known: FloatArray, means: FloatArray, within: FloatArray, shares: FloatArray, phi: float
) -> FloatArray:
    """(bags,) log-likelihood of bags' proportions: normal, with the variance ``within + φ π (1 − π)``.

    As a score it is proper: no other mean and variance than the true ones do better in the long run, normal or not.

    Args:
        known: (bags, C) known proportions.
        means: (bags, C) predicted ones, the means of the rows' probabilities.
        within: (bags, C) their variance by chance, see ``within_variance``.
        shares: (C,) overall shares of the classes.
        phi: the intraclass correlation that the predictions leave.
    """
    variance = within + phi * shares * (1.0 - shares)
    return over_classes(log_density(known - means, variance))


def within_variance(p: FloatArray, bags: Bags) -> FloatArray:
    """(bags, C) variance of bags' proportions when rows are drawn one by one: ``Σ_i p_i (1 − p_i) / B²``, and noise."""
    sizes = bags.sizes[:, None].astype(np.float64)
    drawn = np.add.reduceat(bags.entries(p * (1.0 - p)), bags.offsets[:-1], axis=0)
    return np.asarray((drawn + bags.count_sds[:, None] ** 2 + WHOLE) / sizes**2)
