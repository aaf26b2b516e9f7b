"""Selection rules: how the best report of a fit is chosen. A rule is always named next to a number.

``bags``       cross-entropy of the mean prediction on held-back bags: what a real user has.
``instances``  AUROC on the labels of the held-back rows: what the paper did. It gives every method labels it was
               not supposed to have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.experiment.metrics import auroc

_EPS = 1e-7


@dataclass(frozen=True)
class SelectionRule:
    """A rule: ``value(probabilities, scores)`` of the held-back rows, and which end is better."""

    name: str
    value: Callable[[FloatArray, FloatArray], float]
    higher_is_better: bool

    def better(self, value: float, best: float | None) -> bool:
        """Whether ``value`` beats the best so far (NaN never does, anything beats nothing)."""
        if best is None:
            return True
        if np.isnan(value) or np.isnan(best):
            return bool(np.isnan(best) and not np.isnan(value))
        return value > best if self.higher_is_better else value < best


def bag_means(probabilities: FloatArray, bags: Bags) -> FloatArray:
    """(bags, 1 or C) mean predicted probability of each bag."""
    columns = probabilities.reshape(len(probabilities), -1)
    return np.add.reduceat(columns, bags.offsets[:-1], axis=0) / bags.sizes[:, None]


def bag_cross_entropy(probabilities: FloatArray, bags: Bags) -> float:
    """Mean over bags of ``-sum_c alpha_c log mean_i p_ic`` (proportions clipped to the simplex)."""
    means = np.clip(bag_means(probabilities, bags), _EPS, 1.0 - _EPS)
    target = bags.clipped_proportions
    if bags.classes == 2:
        means = np.hstack([1.0 - means, means])
        target = np.hstack([1.0 - target, target])
    return float(-np.mean((target * np.log(means)).sum(axis=1)))


def bag_error(probabilities: FloatArray, bags: Bags) -> float:
    """Mean absolute difference between predicted and given proportions of bags."""
    return float(np.mean(np.abs(bag_means(probabilities, bags) - bags.proportions)))


def make_rules(bags: Bags, labels: IntArray) -> list[SelectionRule]:
    """The rules in force, bound to the held-back bags and (for ``instances`` alone) to their rows' labels."""
    return [
        SelectionRule("bags", lambda probabilities, _scores: bag_cross_entropy(probabilities, bags), False),
        SelectionRule("instances", lambda _probabilities, scores: auroc(labels, scores), True),
    ]
