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


def f1(labels: IntArray, decisions: IntArray) -> float:
    """``2 TP / (2 TP + FP + FN)`` of class 1; several classes: the mean over classes (``macro_f1``).

    0 when no row is, or is taken for, class 1 in a table that has such rows; NaN when neither holds.
    """
    if max(labels.max(initial=0), decisions.max(initial=0)) > 1:
        return macro_f1(labels, decisions)
    return _f1_of(labels == 1, decisions == 1)


def macro_f1(labels: IntArray, decisions: IntArray) -> float:
    """The mean F1 over classes; classes without rows and without decisions are left out."""
    classes = np.union1d(labels, decisions)
    return float(np.mean([_f1_of(labels == c, decisions == c) for c in classes])) if len(classes) else float("nan")


def _f1_of(there: np.ndarray, said: np.ndarray) -> float:
    total = int(there.sum()) + int(said.sum())
    return 2.0 * int((there & said).sum()) / total if total else float("nan")


def balanced_accuracy(labels: IntArray, decisions: IntArray) -> float:
    """The mean recall over the classes that have rows."""
    return float(np.mean([np.mean(decisions[labels == c] == c) for c in np.unique(labels)])) if len(labels) else np.nan


def brier(labels: IntArray, probabilities: FloatArray) -> float:
    """Mean squared error ``(p_i − y_i)²`` of the probability of class 1.

    Several classes: the mean over rows of ``Σ_c (p_ic − [y_i = c])²`` (from 0 to 2).
    """
    p = probabilities.astype(np.float64)
    if p.ndim == 1:
        return float(np.mean((p - (labels == 1)) ** 2))
    return float(np.mean(((p - np.eye(p.shape[1])[labels]) ** 2).sum(axis=1)))


ECE_BINS = 15


def expected_calibration_error(labels: IntArray, probabilities: FloatArray) -> float:
    """``Σ_k n_k / n |mean p − mean y|`` over 15 bins of equal width, ``[0, 1/15), ..., [14/15, 1]``.

    Two classes: ``p`` is the probability of class 1 and ``y`` whether the row is of it. Several: ``p`` is the largest
    probability of the row and ``y`` whether that class is right.
    """
    p = probabilities.astype(np.float64)
    right = labels == (1 if p.ndim == 1 else p.argmax(axis=1))
    p = p if p.ndim == 1 else p.max(axis=1)
    place = np.clip((p * ECE_BINS).astype(np.int64), 0, ECE_BINS - 1)
    gaps = np.bincount(place, p - right, minlength=ECE_BINS)
    return float(np.abs(gaps).sum() / len(p)) if len(p) else float("nan")


def share_error(shares: FloatArray, means: FloatArray) -> float:
    """Mean absolute difference between true shares of bags and the mean predictions of their rows."""
    return float(np.mean(np.abs(shares - means))) if len(shares) else float("nan")


def kind_of_scores(scores: FloatArray) -> str:
    """``probability`` when all values lie in [0, 1] (and rows sum to one for several classes), else ``logit``."""
    inside = bool(((scores >= 0) & (scores <= 1)).all())
    return "probability" if inside and rows_add_up(scores) else "logit"


def rows_add_up(scores: FloatArray) -> bool:
    """Whether scores of several classes, (..., C), add up to 1 in every row; those of two classes have one column."""
    return scores.ndim == 1 or bool(np.allclose(scores.sum(axis=-1), 1.0, atol=1e-3))


def to_probabilities(scores: FloatArray, kind: str) -> FloatArray:
    """Scores as probabilities: as they are, or through the logistic function / softmax when they are log-odds.

    ``auto`` decides by ``kind_of_scores``. The map is monotone, so rankings stay.
    """
    from scipy.special import expit, softmax

    scores = scores.astype(np.float64)
    if (kind_of_scores(scores) if kind == "auto" else kind) == "probability":
        return scores
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))
