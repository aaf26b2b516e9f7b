"""Metrics: labels and scores in, one number out. Chance is what a constant score gets."""

from __future__ import annotations

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray

_EPS = 1e-7


def auroc(labels: IntArray, scores: FloatArray) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative), ties count half.

    Several classes: the mean over classes of one-against-the-rest (macro). NaN when a class is absent.
    """
    if scores.ndim == 1:
        return _binary_auroc(labels == 1, scores)
    return float(np.mean([_binary_auroc(labels == c, scores[:, c]) for c in range(scores.shape[1])]))


def _binary_auroc(positive: np.ndarray, scores: FloatArray) -> float:
    from scipy.stats import rankdata

    n_pos = int(positive.sum())
    n_neg = len(positive) - n_pos
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    rank_sum = float(rankdata(scores)[positive].sum())
    return (rank_sum - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)


def average_precision(labels: IntArray, scores: FloatArray) -> float:
    """Mean precision over the positives in order of score; macro average for several classes."""
    from sklearn.metrics import average_precision_score

    if scores.ndim == 1:
        return float(average_precision_score(labels == 1, scores)) if (labels == 1).any() else float("nan")
    classes = range(scores.shape[1])
    return float(np.mean([average_precision(np.asarray(labels == c, dtype=int), scores[:, c]) for c in classes]))


def accuracy(labels: IntArray, probabilities: FloatArray) -> float:
    """Share of rows whose most probable class is the true one."""
    predicted = probabilities > 0.5 if probabilities.ndim == 1 else probabilities.argmax(axis=1)
    return float(np.mean(predicted == labels))


def log_loss(labels: IntArray, probabilities: FloatArray) -> float:
    """Mean of -log P(true class), probabilities kept 1e-7 away from 0 and 1."""
    if probabilities.ndim == 1:
        of_true = np.where(labels == 1, probabilities, 1.0 - probabilities)
    else:
        of_true = probabilities[np.arange(len(labels)), labels]
    return float(-np.mean(np.log(np.clip(of_true.astype(np.float64), _EPS, 1.0 - _EPS))))


def kind_of_scores(scores: FloatArray) -> str:
    """``probability`` when all values lie in [0, 1] (and rows sum to one for several classes), else ``logit``."""
    inside = bool(((scores >= 0) & (scores <= 1)).all())
    sums = scores.ndim == 1 or bool(np.allclose(scores.sum(axis=1), 1.0, atol=1e-3))
    return "probability" if inside and sums else "logit"


def to_probabilities(scores: FloatArray, kind: str) -> FloatArray:
    """Scores as probabilities: as they are, or through the logistic function / softmax when they are log-odds.

    ``auto`` decides by ``kind_of_scores``. The map is monotone, so rankings stay.
    """
    from scipy.special import expit, softmax

    scores = scores.astype(np.float64)
    if (kind_of_scores(scores) if kind == "auto" else kind) == "probability":
        return scores
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))
