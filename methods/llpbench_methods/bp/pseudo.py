"""From marginals to what a network learns: hard, soft or weighted pseudo-labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags, IntArray
from llpbench_methods.inference.messages import sigmoid
from llpbench_methods.shared.assignment import fitting_labels
from llpbench_methods.shared.counts import whole_counts

Floats = NDArray[np.floating[Any]]
Labels = Literal["hard", "soft", "weighted"]
Tau = float | Literal["rate", "top-count"]


@dataclass(frozen=True)
class PseudoLabels:
    """Targets of the training rows and how much each row counts.

    Attributes:
        targets: (n,) in [0, 1] for two classes, (n, C) with rows that sum to 1 for more.
        weights: (n,) of mean 1.
    """

    targets: Floats
    weights: Floats


def pseudo_labels(beliefs: Floats, log_odds: Floats, bags: Bags, *, tau: Tau, labels: Labels) -> PseudoLabels:
    """Turn marginals into targets.

    Args:
        beliefs: (n,) marginals of class 1, or (n, C).
        log_odds: the same on a scale where near-certain rows still differ: what `top-count` ranks by.
        bags: the bags, for their sizes and counts.
        tau: label 1 where `p > tau`; with more than two classes the likeliest class, whatever the number. `rate` is
            the threshold that labels the known share of all rows 1. `top-count` gives every bag as many rows of each
            class as its count says.
        labels: `hard`; `soft`, the marginals themselves; or `weighted`, hard ones weighted by how far the marginal is
            from deciding otherwise.
    """
    shares = beliefs if beliefs.ndim == 1 else beliefs / np.maximum(beliefs.sum(axis=1, keepdims=True), 1e-300)
    even = np.ones(len(beliefs))
    if labels == "soft":
        return PseudoLabels(shares, even)
    if beliefs.ndim == 1:
        if tau == "rate":
            cut = rate_threshold(log_odds, float(bags.prior[0]))
            hard, tau = threshold(log_odds, cut), float(sigmoid(np.asarray(cut)))
        else:
            hard = top_count(log_odds, bags) if tau == "top-count" else threshold(beliefs, tau)
        targets = hard.astype(np.float64)
    else:
        hard = fill_counts(log_odds, bags) if tau == "top-count" else np.argmax(log_odds, axis=1)
        targets = np.eye(beliefs.shape[1])[hard]
    if labels == "hard":
        return PseudoLabels(targets, even)
    return PseudoLabels(targets, _scale_to_mean_one(_decisiveness(shares, hard, bags, tau)))


def threshold(beliefs: Floats, tau: float) -> IntArray:
    """`1[p > tau]`."""
    return np.asarray(beliefs > tau).astype(np.int64)


def rate_threshold(scores: Floats, rate: float) -> float:
    """The threshold `t` for which the share of `scores > t` is nearest to `rate`; of two as near, the higher one."""
    values, counts = np.unique(scores, return_counts=True)
    above = np.append(len(scores), len(scores) - np.cumsum(counts))
    best = len(above) - 1 - int(np.argmin(np.abs(above[::-1] - rate * len(scores))))
    return float(values[best - 1]) if best > 0 else float(np.nextafter(values[0], -np.inf))


def top_count(scores: Floats, bags: Bags) -> IntArray:
    """Label 1 for the `c_b` highest scores of each bag; of equal scores the earlier row comes first."""
    return fitting_labels(scores, bags.offsets, whole_counts(bags))


def fill_counts(scores: Floats, bags: Bags) -> IntArray:
    """One class per row so that every bag holds its counts: the highest (row, class) score that still fits is taken.

    For two classes with scores `p` and `1 - p` this is `top_count`.
    """
    n, classes = scores.shape
    room = whole_counts(bags).tolist()
    label = [-1] * n
    bag_of = bags.bag_of.tolist()
    left = n
    for pair in np.argsort(-scores, axis=None, kind="stable").tolist():
        row, state = divmod(pair, classes)
        places = room[bag_of[row]]
        if label[row] < 0 and places[state] > 0:
            label[row] = state
            places[state] -= 1
            left -= 1
            if left == 0:
                break
    return np.asarray(label, dtype=np.int64)


def bag_thresholds(beliefs: Floats, bags: Bags) -> Floats:
    """The threshold that `top-count` amounts to in each bag: half-way between the last `p` taken and the next.

    Beyond the ends of a bag the marginals are taken as 1 and 0.
    """
    order = np.lexsort((-beliefs, bags.bag_of))
    ranked = beliefs[order]
    count = whole_counts(bags)[:, 0]
    start, last = np.asarray(bags.offsets[:-1]), len(beliefs) - 1
    taken = np.where(count > 0, ranked[np.maximum(start + count - 1, 0)], 1.0)
    following = np.where(count < bags.sizes, ranked[np.minimum(start + count, last)], 0.0)
    return np.asarray(0.5 * (taken + following))


def _decisiveness(shares: Floats, hard: IntArray, bags: Bags, tau: Tau) -> Floats:
    """`|p - tau|`; with more classes the lead (or lag) of the given class on the best other one."""
    if shares.ndim == 1:
        cut = tau if isinstance(tau, float) else bag_thresholds(shares, bags)[bags.bag_of]
        return np.asarray(np.abs(shares - cut))
    rows = np.arange(len(shares))
    others = shares.copy()
    others[rows, hard] = -np.inf
    return np.asarray(np.abs(shares[rows, hard] - others.max(axis=1)))


def _scale_to_mean_one(weights: Floats) -> Floats:
    mean = float(weights.mean())
    return weights / mean if mean > 0 else np.ones_like(weights)
