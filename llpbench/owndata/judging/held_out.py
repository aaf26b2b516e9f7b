"""Likelihood of the counts of held-out bags given predictions for their rows; no label is needed.

The count of a bag of ``B`` rows with predictions ``p_i`` has the mean ``m = Σ p_i`` and the variance

    s² = Σ p_i (1 − p_i) + B (B − 1) v + count_sd²

``v`` is the covariance of two rows of a bag that no feature explains (the day, the clinic): 0 for random bags. It is
one number for all bags of a method, the maximum-likelihood estimate, so that the score depends on where a method's
means lie and not on how confident it is. The likelihood of a count ``c`` is the mass of a normal distribution of that
mean and variance between ``c − ½`` and ``c + ½``, truncated to ``−½`` to ``B + ½`` (not if counts are noisy). For ``C``
classes the log-likelihoods of all classes' counts are added and multiplied by ``(C − 1) / C``, which for two classes is
that of one of them. (``experiment/count_laws.py`` compares this with the rule ``counts`` and with ``fit``.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.experiment.count_laws import all_classes, log_mass, over_classes

_LEAST_VARIANCE = 0.01
_SMALLEST, _LARGEST = 1e-9, 0.25


@dataclass(frozen=True)
class HeldOutCounts:
    """Counts of held-out bags, and the model's predictions for their rows, summed over each bag.

    Attributes:
        counts: (bags, C) known counts.
        means: (bags, C) sums of the predicted probabilities.
        variances: (bags, C) ``Σ p (1 − p)``.
        sizes: (bags,) rows of each bag.
        count_sd: standard deviation of the noise in the counts, or (bags,) of each.
    """

    counts: FloatArray
    means: FloatArray
    variances: FloatArray
    sizes: FloatArray
    count_sd: float | FloatArray = 0.0

    def errors(self) -> FloatArray:
        """(bags,) error of the proportions: the mean over classes of ``|m − c| / B``."""
        return np.asarray(np.abs(self.means - self.counts).mean(axis=1) / self.sizes)

    def log_likelihoods(self, spread: float | None = None) -> FloatArray:
        """(bags,) log-likelihood of each bag's counts.

        Args:
            spread: ``v``; estimated from the bags by default.
        """
        v = best_spread(self) if spread is None else spread
        variance = (
            self.variances + (self.sizes * (self.sizes - 1.0) * v)[:, None] + np.reshape(self.count_sd, (-1, 1)) ** 2
        )
        top = None if np.any(self.count_sd) else self.sizes[:, None]
        logs = log_mass(self.counts, self.means, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)), top)
        return over_classes(logs)


def sum_predictions(
    probabilities: FloatArray, numbers: IntArray, counts: FloatArray, sizes: IntArray, count_sd: float | FloatArray
) -> HeldOutCounts:
    """Sum the predictions of rows over their bags.

    Args:
        probabilities: (n, C) predictions.
        numbers: (n,) bag of each row.
        counts: (bags, C), or (bags, 1) counts of class 1 of two.
        sizes: (bags,) rows of each bag.
        count_sd: standard deviation of the noise in the counts, or (bags,) of each.
    """
    n = len(sizes)
    whole = all_classes(counts, sizes[:, None])

    def over_bags(values: FloatArray) -> FloatArray:
        return np.stack([np.bincount(numbers, column, n).astype(np.float64) for column in values.T], axis=1)

    means, variances = over_bags(probabilities), over_bags(probabilities * (1.0 - probabilities))
    return HeldOutCounts(whole, means, variances, sizes.astype(np.float64), count_sd)


def best_spread(held: HeldOutCounts) -> float:
    """The maximum-likelihood estimate of ``v``; 0 if no larger value is better."""
    from scipy.optimize import minimize_scalar

    def loss(log_v: float) -> float:
        return -float(held.log_likelihoods(float(np.exp(log_v))).sum())

    found = minimize_scalar(loss, bounds=(np.log(_SMALLEST), np.log(_LARGEST)), method="bounded")
    none = -float(held.log_likelihoods(0.0).sum())
    return float(np.exp(found.x)) if found.fun < none else 0.0
