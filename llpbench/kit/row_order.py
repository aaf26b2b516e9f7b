"""Whether the order of rows predicts their labels, by an exact test.

A predictor of a row's class from its place and from the classes of earlier rows gives the whole sequence a probability.
In shuffled rows, every order of the same labels is equally likely, so the ratio of the two probabilities has a mean of
at most 1, whatever the predictor: by Markov's inequality it exceeds 1/a in at most a share a of shuffled sequences, for
any number of rows and any class rates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln, logsumexp

from llpbench.contracts.data import IntArray

FALSE_ALARMS = 1e-6
"""The largest share of shuffled sequences in which an order is found."""
_LONGEST = 128
"""The longest period and lag, and the largest number of parts of equal length."""
_MOST_STATES = 1024


def predictive_order(labels: IntArray, classes: int) -> str:
    """What predicts the labels of rows in this order, in words; empty if nothing does.

    Args:
        labels: (n,) classes from 0 to ``classes`` - 1.
        classes: number of classes.
    """
    evidence, words = weigh_order(labels, classes)
    return words if evidence > -np.log(FALSE_ALARMS) else ""


def weigh_order(labels: IntArray, classes: int) -> tuple[float, str]:
    """The logarithm of the ratio of the two probabilities, and the best predictor in words."""
    predictors = _predictors(labels, classes)
    found = [(weight + _log_probability(state, labels, classes), words) for words, weight, state in predictors]
    total = logsumexp([value for value, _ in found])
    return float(total) + _log_orders(np.bincount(labels, minlength=classes)), max(found)[1]


def _predictors(labels: IntArray, classes: int) -> Iterator[tuple[str, float, IntArray]]:
    """Simple predictors: words, the logarithm of their weight in the mixture, and the state each row is predicted from.

    A state depends on the place of a row and the labels before it only. The weights sum to at most 1.
    """
    place = np.arange(len(labels))
    for k in range(2, min(_LONGEST, len(labels)) + 1):
        weight = -np.log(4.0 * k * (k - 1))
        yield f"the place of a row (the rows in {k} parts of equal length)", weight, place * k // len(labels)
        yield f"the row number modulo {k}", weight, place % k
        yield f"the label {k} rows before", weight, _before(labels, k)
    recent = np.zeros(len(labels), dtype=np.int64)
    for k in range(1, 1 + int(np.log(_MOST_STATES) / np.log(classes))):
        recent = recent * classes + _before(labels, k)
        words = "the label of the row before" if k == 1 else f"the labels of the {k} rows before"
        yield words, -np.log(4.0 * k * (k + 1)), recent


def _before(labels: IntArray, k: int) -> IntArray:
    return np.concatenate([np.zeros(k, dtype=np.int64), labels[:-k]])[: len(labels)]


def _log_probability(state: IntArray, labels: IntArray, classes: int) -> float:
    """Log-probability of the labels, each predicted by the frequencies of the classes after the same state so far."""
    counts = np.bincount(state * classes + labels)
    counts = np.pad(counts, (0, -len(counts) % classes)).reshape(-1, classes)
    each = gammaln(counts + 0.5).sum(axis=1) - gammaln(counts.sum(axis=1) + 0.5 * classes)
    empty = classes * gammaln(0.5) - gammaln(0.5 * classes)
    return float((each - empty).sum())


def _log_orders(counts: IntArray) -> float:
    """The logarithm of the number of orders of labels with these counts."""
    return float(gammaln(counts.sum() + 1.0) - gammaln(counts + 1.0).sum())
