"""From scores to decisions, by what is known without labels: how many rows of each class there are.

A threshold of one half asks more of a model than LLP can give it: where bags are large, or positives rare, honest
probabilities stay below one half and no row would ever be positive. What everyone has is the overall rate ``r``, the
known (maybe noisy) counts of the training bags over their rows. So the rows with the highest scores are positive, as
many as the rate says. Only the order of the scores matters, not their calibration. (Shifting all logits until their
mean prediction is ``r`` and cutting at one half was the other candidate; docs/protocol.md has both in numbers.)

Several classes: the logits are shifted by one number for each class, so that the mean prediction is the known rates,
and the most probable class is taken.
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
    """The score from which on rows are positive, so that their share is as near to ``rate`` as ties let it be.

    Rows of one score are decided alike. Infinity when no row at all comes nearest; of two as near the higher threshold.
    """
    values, sizes = np.unique(scores, return_counts=True)
    positive = np.append(np.cumsum(sizes[::-1])[::-1], 0)  # rows from each value on, and none
    nearest = np.abs(positive - rate * len(scores))
    cut = len(values) - int(np.argmin(nearest[::-1]))
    return float(values[cut]) if cut < len(values) else np.inf
