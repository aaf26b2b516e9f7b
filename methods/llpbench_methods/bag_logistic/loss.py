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

from llpbench import IntArray

Array = NDArray[np.floating[Any]]
_LEAST = 1e-9
"""Mean predictions are kept this far from 0."""


def worth_in_rows(sizes: IntArray, rate: Array, count_sd: float) -> Array:
    """Rows of an exact bag that would tell as much of a rate as a noisy count does, ``B / (1 + s² / (B r (1 − r)))``.

    Args:
        sizes: (bags,) rows of each bag.
        rate: shares of the classes over all bags; the one nearest to a half counts.
        count_sd: standard deviation ``s`` of the noise on counts.
    """
    spread = max(float(np.max(rate * (1.0 - rate))), 1e-6)
    worth: Array = sizes / (1.0 + count_sd**2 / (sizes * spread))
    return worth


def bag_loss(z: Array, offsets: IntArray, proportions: Array, worth: Array) -> tuple[float, Array]:
    """The loss of logits and its gradient.

    Args:
        z: (n, 1) logits of class 1 or (n, C) of every class, bag after bag.
        offsets: (bags + 1,) where bags begin.
        proportions: (bags, 1) or (bags, C), in [0, 1].
        worth: (bags,) weights of the bags.
    """
    sizes = np.diff(offsets)
    p = expit(z) if z.shape[1] == 1 else softmax(z, axis=1)
    mean = np.add.reduceat(p, offsets[:-1], axis=0) / sizes[:, None]
    mean = np.clip(mean, _LEAST, 1.0 - _LEAST)
    loss = -float(worth @ (proportions * np.log(mean)).sum(axis=1))
    slope = -proportions / mean
    if z.shape[1] == 1:
        loss -= float(worth @ ((1.0 - proportions) * np.log1p(-mean)).sum(axis=1))
        slope = slope + (1.0 - proportions) / (1.0 - mean)
    of_rows = np.repeat(slope * (worth / sizes)[:, None], sizes, axis=0)
    inner = of_rows if z.shape[1] == 1 else of_rows - (p * of_rows).sum(axis=1, keepdims=True)
    gradient: Array = p * inner * (1.0 - p) if z.shape[1] == 1 else p * inner
    return loss, gradient
