"""Turn scores into probabilities by means of the bags' proportions: no label of a row is needed.

Scores that are not probabilities go through ``p = softmax(a z + b)`` (for two classes ``σ(a z + b)``), ``z`` being
the scores in units of their standard deviation over the training rows. The shift ``b`` makes the mean prediction
over all rows the share of each class over all bags. The slope ``a > 0`` maximises, with that shift,

    Σ_b w_b Σ_c α_bc log p̄_bc − ½ (log a)²

over the held-back bags, which the method has not learned from: ``α`` is a bag's proportion, ``p̄`` its mean
prediction, ``w_b`` its size (less when its count is noisy). The second term keeps ``a`` near 1 when these bags are
too few.
"""

from __future__ import annotations

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.rules import bag_means

_REACH = 5.0
_EPS = 1e-12


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map ``log-probabilities = a (s − centre) / scale + shift``, up to a constant of each row.

    Attributes:
        centre: mean score.
        scale: standard deviation of the scores.
        slope: ``a``.
        shift: one number for each class (the first is 0 for two classes).
    """

    centre: float
    scale: float
    slope: float
    shift: tuple[float, ...]

    def logits(self, scores: FloatArray) -> FloatArray:
        """(n, C) logits of the classes."""
        return _logits(_standard(scores, self.centre, self.scale), self.slope, np.array(self.shift))


def calibrate(scores: FloatArray, train: Bags, held_scores: FloatArray, held: Bags) -> Calibration:
    """Fit the map on the scores of training rows and of held-back rows, in the order of their bags.

    Args:
        scores: (n,) or (n, C) scores of the training rows.
        train: the training bags.
        held_scores: scores of the held-back rows.
        held: the held-back bags.
    """
    from scipy.optimize import minimize_scalar

    everything = np.concatenate([scores, held_scores]).astype(np.float64)
    centre, scale = float(everything.mean()), float(everything.std())
    scale = scale if np.isfinite(scale) and scale > 0 else 1.0
    z, z_held = _standard(everything, centre, scale), _standard(held_scores, centre, scale)
    shares = _shares(train, held)
    target = all_classes(held.clipped_proportions)
    spread = held.sizes * float(np.mean(shares * (1.0 - shares)))
    weights = held.sizes * spread / (spread + held.count_sd**2)

    def loss(log_slope: float) -> float:
        slope = float(np.exp(log_slope))
        means = bag_means(_softmax(_logits(z_held, slope, _shift(z, slope, shares))), held)
        gain = (target * np.log(np.clip(means, _EPS, 1.0))).sum(axis=1)
        return -float(weights @ gain) + 0.5 * log_slope**2

    found = minimize_scalar(loss, bounds=(-_REACH, _REACH), method="bounded")
    slope = float(np.exp(found.x))
    return Calibration(centre, scale, slope, tuple(map(float, _shift(z, slope, shares))))


def _shares(train: Bags, held: Bags) -> FloatArray:
    """(C,) share of each class over all bags, kept off 0 and 1."""
    counts = all_classes(train.clipped_proportions) * train.sizes[:, None]
    more = all_classes(held.clipped_proportions) * held.sizes[:, None]
    total = counts.sum(axis=0) + more.sum(axis=0) + 0.5
    shares: FloatArray = total / total.sum()
    return shares


def _standard(scores: FloatArray, centre: float, scale: float) -> FloatArray:
    """(n, C) scores of all classes; a score of class 1 alone stands against 0."""
    z = (scores.astype(np.float64) - centre) / scale
    return np.column_stack([np.zeros(len(z)), z]) if z.ndim == 1 else z


def _logits(z: FloatArray, slope: float, shift: FloatArray) -> FloatArray:
    logits: FloatArray = slope * z + shift
    return logits


def _softmax(logits: FloatArray) -> FloatArray:
    from scipy.special import softmax

    return np.asarray(softmax(logits, axis=1))


def _shift(z: FloatArray, slope: float, shares: FloatArray, rounds: int = 200) -> FloatArray:
    """The shift at which the mean prediction is ``shares``: iterative scaling, ``b_c += log share_c − log p̄_c``."""
    shift = np.log(shares) - slope * z.mean(axis=0)
    for _ in range(rounds):
        mean = _softmax(_logits(z, slope, shift)).mean(axis=0)
        step = np.log(shares) - np.log(np.maximum(mean, 1e-300))
        shift = shift + step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(shift - shift[0])
