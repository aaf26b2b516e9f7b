"""What widens the interval of a total: an effect beyond chance, and the variance and the doubt of the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llpbench.contracts.data import FloatArray

_SURE = 2.58
_LEAST_BAGS = 10


def slope_beyond_chance(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """What the slope of a weighted regression exceeds chance by; 0 if it is not significant."""
    if len(x) < _LEAST_BAGS:
        return 0.0
    x, y = (values - np.average(values, weights=weights) for values in (x, y))
    total = float((weights * x * x).sum())
    if total <= 1e-12 * float(weights.sum()):
        return 0.0
    slope = float((weights * x * y).sum()) / total
    spread = max(float((weights * (y - slope * x) ** 2).sum()) / (len(x) - 2), 1.0)
    error = float(np.sqrt(spread / total))
    return max(abs(slope) - error, 0.0) if abs(slope) > _SURE * error else 0.0


def quantile(level: float, chance: FloatArray, model: FloatArray, cuts: int) -> FloatArray:
    """Half-width of an interval in standard deviations: Student's t, since few splits estimate the model's part.

    The degrees of freedom are those of Welch and Satterthwaite, ``cuts (V + M)² / M²``, with ``V`` known.

    Args:
        level: level of the interval.
        chance: variance by chance.
        model: estimated variance of the model.
        cuts: number of splits that it was estimated from.
    """
    from scipy.stats import t

    doubt = model / np.maximum(chance + model, 1e-300)
    freedom = max(cuts, 1) / np.maximum(doubt, 1e-6) ** 2
    return np.asarray(t.ppf(0.5 + level / 2.0, freedom))


def model_variance(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Variance of a total due to the model: the mean of ``(A − B)² / 4`` over splits into halves."""
    return np.asarray(np.mean([(first - second) ** 2 / 4.0 for first, second in pairs], axis=0))
