"""A fitted method as something that gives log-probabilities of all classes, whatever its scores are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench.contracts.data import FloatArray, read_only
from llpbench.contracts.errors import MethodError
from llpbench.owndata.judging.calibration import Calibration

_TINY = 1e-16


@dataclass(frozen=True)
class Predictor:
    """A fitted method and the map from its scores to probabilities.

    Attributes:
        name: the method's name.
        method: the fitted method.
        classes: number of classes.
        calibration: from scores to logits; None where scores are probabilities already.
    """

    name: str
    method: Any
    classes: int
    calibration: Calibration | None = None

    def scores(self, features: FloatArray) -> FloatArray:
        """The method's scores, of the right shape and finite.

        Raises:
            MethodError: they are not.
        """
        scores = np.asarray(self.method.predict_scores(read_only(features)))
        n = len(features)
        wanted = (n,) if self.classes == 2 else (n, self.classes)
        if scores.shape != wanted:
            raise MethodError(f"{self.name} gave scores of shape {scores.shape} for {n} rows; expected {wanted}.")
        if not np.isfinite(scores).all():
            raise MethodError(f"{self.name} gave scores that are NaN or infinite.")
        return scores.astype(np.float64)

    def logits(self, features: FloatArray) -> FloatArray:
        """(n, C) logarithms of the classes' probabilities, up to a constant of each row."""
        scores = self.scores(features)
        if self.calibration is not None:
            return self.calibration.logits(scores)
        return np.log(np.maximum(self._shares(scores), _TINY))

    def probabilities(self, features: FloatArray) -> FloatArray:
        """(n, C) probabilities as the method gives them, without a shrinkage."""
        from scipy.special import softmax

        if self.calibration is None:
            return self._shares(self.scores(features))
        return np.asarray(softmax(self.logits(features), axis=1))

    def _shares(self, p: FloatArray) -> FloatArray:
        """Probabilities that add up to one, from (n,) of class 1 or (n, C)."""
        p = np.clip(p, 0.0, 1.0)
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), _TINY))
