r"""The cross-entropy of bags as a function of logits, with its gradient, in plain numpy.

With :math:`p_i = \sigma(z_i)`, :math:`\bar p_b` the mean of a bag's rows and :math:`\alpha_b` its known proportion,

.. math:: L(z) = -\sum_b w_b\,[\alpha_b \log \bar p_b + (1 - \alpha_b) \log(1 - \bar p_b)]

where :math:`w_b` is what the bag's count is worth in rows. With :math:`w_b = B_b` it is the negative log-likelihood of
a binomial count of rate :math:`\bar p_b`. Several classes: :math:`-\sum_b w_b \sum_c \alpha_{bc} \log \bar p_{bc}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import chi2

from llpbench import IntArray
from llpbench_methods.shared.bag_means import bag_means

Array = NDArray[np.floating[Any]]
_LEAST = 1e-9
"""Mean predictions are kept this far from 0."""
_CHANCE = 1e-3
"""Significance level of the test for a bag effect."""


def worth_in_rows(sizes: IntArray, rate: Array, count_sd: Array | float, effect: float = 0.0) -> Array:
    """Number of rows of an exact random bag that is as informative about a rate as the bag's count.

    A proportion of ``B`` rows of rate ``r`` has the variance ``r (1 − r) / B``; noise of standard deviation ``s`` on
    the count adds ``s² / B²``, and what moves the bag as a whole adds its variance ``v``. So the worth is
    ``r (1 − r) / (r (1 − r) / B + s² / B² + v)``: ``B`` without either, and never more than ``r (1 − r) / v``.

    Args:
        sizes: (bags,) rows of each bag.
        rate: shares of the classes over all bags; the one nearest to a half counts.
        count_sd: standard deviation ``s`` of the noise on counts, for all bags or each.
        effect: variance ``v`` of the bag effect.
    """
    spread = max(float(np.max(rate * (1.0 - rate))), 1e-6)
    worth: Array = spread / (spread / sizes + (count_sd / sizes) ** 2 + effect)
    return worth


def bag_effect(errors: Array, worth: Array, rate: Array) -> float:
    """The variance ``v`` by which proportions of held-out bags miss their mean predictions beyond chance.

    With ``e_b`` the errors and ``w_b`` the rows their counts are worth, chance makes ``Σ_b w_b e_b² / (r (1 − r))``
    about as large as the number of bags. If chance would make it so large less than once in a thousand times,
    ``v = Σ_b w_b (e_b² − r (1 − r) / w_b) / Σ_b w_b``; else 0. Several classes: the one nearest to a half.

    Args:
        errors: (bags, 1) or (bags, C) proportions less mean predictions.
        worth: (bags,) rows that each bag's count is worth.
        rate: shares of the classes.
    """
    column = int(np.argmax(rate * (1.0 - rate)))
    spread = max(float(rate[column] * (1.0 - rate[column])), 1e-6)
    squares = errors[:, column] ** 2
    if float(worth @ squares) / spread <= float(chi2.isf(_CHANCE, len(worth))):
        return 0.0
    return max(0.0, float(worth @ (squares - spread / worth)) / float(worth.sum()))


def probabilities(z: Array) -> Array:
    """Of class 1, (n, 1), or of every class, (n, C)."""
    return np.asarray(expit(z) if z.shape[1] == 1 else softmax(z, axis=1))


def bag_loss(
    z: Array, offsets: IntArray, proportions: Array, worth: Array, incidence: Any = None
) -> tuple[float, Array]:
    """The loss of logits and its gradient.

    Args:
        z: (n, 1) logits of class 1 or (n, C) of every class, bag after bag.
        offsets: (bags + 1,) where bags begin.
        proportions: (bags, 1) or (bags, C), in [0, 1].
        worth: (bags,) weights of the bags.
        incidence: of overlapping bags, the sparse matrix (bags, n) of their rows; ``z`` then has each row once.
    """
    sizes = np.diff(offsets)
    p = probabilities(z)
    mean = bag_means(p, offsets) if incidence is None else (incidence @ p) / sizes[:, None]
    mean = np.clip(mean, _LEAST, 1.0 - _LEAST)
    loss = -float(worth @ (proportions * np.log(mean)).sum(axis=1))
    slope = -proportions / mean
    if z.shape[1] == 1:
        loss -= float(worth @ ((1.0 - proportions) * np.log1p(-mean)).sum(axis=1))
        slope = slope + (1.0 - proportions) / (1.0 - mean)
    of_bags = slope * (worth / sizes)[:, None]
    of_rows = np.repeat(of_bags, sizes, axis=0) if incidence is None else incidence.T @ of_bags
    inner = of_rows if z.shape[1] == 1 else of_rows - (p * of_rows).sum(axis=1, keepdims=True)
    gradient: Array = p * inner * (1.0 - p) if z.shape[1] == 1 else p * inner
    return loss, gradient
