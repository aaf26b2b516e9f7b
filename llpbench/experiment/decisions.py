"""From scores to decisions, using only what is known without labels: the overall rate of each class.

A threshold of one half does not suit LLP: if bags are large, or positives rare, honest probabilities stay below one
half and no row would ever be positive. Known is the overall rate ``r``, the (maybe noisy) counts of the training bags
over their rows. So the rows with the highest scores are positive, as many as the rate says. Only the order of the
scores matters, not their calibration. (docs/protocol.md compares this with a threshold on shifted logits.)

Several classes: the logits are shifted by one number for each class so that the mean prediction equals the known rates,
and the most probable class is chosen.
"""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.experiment.levelling import inner_rate, level, log_odds


def decide(scores: FloatArray, probabilities: FloatArray, rate: FloatArray) -> IntArray:
    """The class of each row.

    Args:
        scores: (n,) or (n, C) scores as the method gave them.
        probabilities: the same as probabilities.
        rate: (1,) known rate of class 1, or (C,) known shares of the classes.
    """
    if scores.ndim == 1:
        return (scores >= rate_threshold(scores, float(rate[0]))).astype(np.int64)
    levelled = level(log_odds(scores, probabilities), inner_rate(rate, len(scores)))
    return np.asarray(levelled.argmax(axis=1), dtype=np.int64)


def rate_threshold(scores: FloatArray, rate: float) -> float:
    """The lowest score of positive rows, so that their share is as close to ``rate`` as ties allow.

    Infinity if no positive row is closest; of two equally close thresholds the higher one.
    """
    values, sizes = np.unique(scores, return_counts=True)
    positive = np.append(np.cumsum(sizes[::-1])[::-1], 0)  # rows from each value on, and none
    nearest = np.abs(positive - rate * len(scores))
    cut = len(values) - int(np.argmin(nearest[::-1]))
    return float(values[cut]) if cut < len(values) else np.inf
