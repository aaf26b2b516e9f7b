"""From the scores of a fitted method to probabilities.

Scores that are not probabilities are calibrated by the proportions of bags, without labels of rows:
``p = softmax(a z + b)`` (for two classes ``σ(a z + b)``), where ``z`` are the scores in units of their standard
deviation over the training rows. The shift ``b`` makes the mean prediction over all rows equal to the share of each
class over all bags. The slope ``a > 0`` maximises, with that shift,

    Σ_b w_b Σ_c α_bc log p̄_bc − ½ (log a)²

over the held-out bags: ``α`` is a bag's proportion, ``p̄`` its mean prediction, ``w_b`` its size (less if its count is
noisy). The second term keeps ``a`` near 1 if there are few held-out bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray, read_only
from llpbench.contracts.errors import MethodError
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.rules import bag_means

_REACH = 5.0
_EPS = 1e-12
_TINY = 1e-16


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map ``log-probabilities = a (s − centre) / scale + shift``, up to a constant for each row.

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
        return np.asarray(self.slope * _standard(scores, self.centre, self.scale) + np.array(self.shift))


def calibrate(scores: FloatArray, train: Bags, held_out_scores: FloatArray, held_out: Bags) -> Calibration:
    """Fit the calibration.

    Args:
        scores: (n,) or (n, C) scores of the training rows, in the order of their bags.
        train: the training bags.
        held_out_scores: scores of the held-out rows.
        held_out: the held-out bags.
    """
    from scipy.optimize import minimize_scalar

    everything = np.concatenate([scores, held_out_scores]).astype(np.float64)
    centre, scale = float(everything.mean()), float(everything.std())
    scale = scale if np.isfinite(scale) and scale > 0 else 1.0
    z, z_held_out = _standard(everything, centre, scale), _standard(held_out_scores, centre, scale)
    shares = _shares(train, held_out)
    target = all_classes(held_out.clipped_proportions)
    spread = held_out.sizes * float(np.mean(shares * (1.0 - shares)))
    weights = held_out.sizes * spread / (spread + held_out.count_sd**2)

    def loss(log_slope: float) -> float:
        slope = float(np.exp(log_slope))
        means = bag_means(softmax(slope * z_held_out + _shift(z, slope, shares)), held_out)
        gain = (target * np.log(np.clip(means, _EPS, 1.0))).sum(axis=1)
        return -float(weights @ gain) + 0.5 * log_slope**2

    found = minimize_scalar(loss, bounds=(-_REACH, _REACH), method="bounded")
    slope = float(np.exp(found.x))
    return Calibration(centre, scale, slope, tuple(map(float, _shift(z, slope, shares))))


def _shares(train: Bags, held_out: Bags) -> FloatArray:
    """(C,) share of each class over all bags, kept away from 0 and 1."""
    counts = all_classes(train.clipped_proportions) * train.sizes[:, None]
    more = all_classes(held_out.clipped_proportions) * held_out.sizes[:, None]
    total = counts.sum(axis=0) + more.sum(axis=0) + 0.5
    shares: FloatArray = total / total.sum()
    return shares


def _standard(scores: FloatArray, centre: float, scale: float) -> FloatArray:
    """(n, C) standardised scores of all classes; a score of class 1 alone is compared with 0."""
    z = (scores.astype(np.float64) - centre) / scale
    return np.column_stack([np.zeros(len(z)), z]) if z.ndim == 1 else z


def _shift(z: FloatArray, slope: float, shares: FloatArray, rounds: int = 200) -> FloatArray:
    """The shift at which the mean prediction is ``shares``: iterative scaling, ``b_c += log share_c − log p̄_c``."""
    shift = np.log(shares) - slope * z.mean(axis=0)
    for _ in range(rounds):
        mean = softmax(slope * z + shift).mean(axis=0)
        step = np.log(shares) - np.log(np.maximum(mean, 1e-300))
        shift = shift + step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(shift - shift[0])


def softmax(logits: FloatArray) -> FloatArray:
    """(n, C) probabilities of (n, C) logits."""
    from scipy.special import softmax as of_rows

    return np.asarray(of_rows(logits, axis=1))


@dataclass(frozen=True)
class Predictor:
    """A fitted method and the map from its scores to probabilities.

    Attributes:
        name: the method's name.
        method: the fitted method.
        classes: number of classes.
        calibration: from scores to logits; None if scores are probabilities.
    """

    name: str
    method: Any
    classes: int
    calibration: Calibration | None = None

    def scores(self, features: FloatArray) -> FloatArray:
        """The method's scores; raises ``MethodError`` if they have the wrong shape or are not finite."""
        scores = np.asarray(self.method.predict_scores(read_only(features)))
        n = len(features)
        wanted = (n,) if self.classes == 2 else (n, self.classes)
        if scores.shape != wanted:
            raise MethodError(f"{self.name}: expected scores of shape {wanted} for {n} rows, got {scores.shape}.")
        if not np.isfinite(scores).all():
            raise MethodError(f"{self.name} returned scores that are NaN or infinite.")
        return scores.astype(np.float64)

    def logits(self, features: FloatArray) -> FloatArray:
        """(n, C) logarithms of the classes' probabilities, up to a constant for each row."""
        scores = self.scores(features)
        if self.calibration is not None:
            return self.calibration.logits(scores)
        return np.log(np.maximum(self._normalised(scores), _TINY))

    def probabilities(self, features: FloatArray) -> FloatArray:
        """(n, C) probabilities without shrinkage."""
        if self.calibration is None:
            return self._normalised(self.scores(features))
        return softmax(self.logits(features))

    def _normalised(self, p: FloatArray) -> FloatArray:
        """(n, C) probabilities that add up to one, from (n,) of class 1 or (n, C)."""
        p = np.clip(p, 0.0, 1.0)
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), _TINY))
