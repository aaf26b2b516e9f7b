"""Selection rules: how the best report of a fit is chosen. A rule is always named next to a number.

``bags``       cross-entropy of the mean prediction on held-back bags, after the logits were shifted so that the mean
               over all held-back rows is the known rate: what a user of LLP has. Version 2.
``instances``  AUROC on the labels of the held-back rows: what the paper did. It gives every method labels it was
               not supposed to have.
``counts``     likelihood of the held-back counts, a bag effect integrated out (``count_likelihood.py``); on request.

Rules are registered like methods (hook ``llpbench_selection_rules``); here are the built-in ones, and what binds a rule
to held-back data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.held_back import HeldBack
from llpbench.contracts.specs import RuleSpec
from llpbench.experiment.levelling import inner_rate, level, log_odds
from llpbench.experiment.metrics import auroc
from llpbench.plugins.builtin import llpbench_selection_rules

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


def bag_cross_entropy(held: HeldBack) -> float:
    """``−Σ_b B_b Σ_c α_bc log p̄_bc / Σ_b B_b`` on held-back bags, of predictions brought to the known rate.

    First all logits are shifted by one number (one for each class, if there are several), so that the mean prediction
    of the held-back rows is the rate that their counts give: a model whose level alone is off is not thrown away. Then
    ``p̄_b`` is the mean prediction of bag ``b``, ``α_b`` its proportion (forced onto the simplex where noise took it
    off) and ``B_b`` its size.
    """
    bags = held.bags
    rate = inner_rate(bags.prior, len(bags.X))
    p = level(log_odds(held.scores, held.probabilities), rate)
    return weighted_cross_entropy(bag_means(p, bags), bags.clipped_proportions, bags.sizes)


def weighted_cross_entropy(means: FloatArray, shares: FloatArray, weights: FloatArray | IntArray) -> float:
    """Weighted mean over bags of ``−Σ_c α_c log m_c``; one column is the rate of class 1 of two."""
    means = np.clip(means, _EPS, 1.0 - _EPS)
    if means.shape[1] == 1:
        means, shares = np.hstack([1.0 - means, means]), np.hstack([1.0 - shares, shares])
    return float(-np.average((shares * np.log(means)).sum(axis=1), weights=weights))


def instance_auroc(held: HeldBack) -> float:
    """AUROC of the scores against the labels of the held-back rows."""
    assert held.labels is not None
    return auroc(held.labels, held.scores)


def bag_error(probabilities: FloatArray, bags: Bags) -> float:
    """Mean absolute difference between predicted and given proportions of bags."""
    return float(np.mean(np.abs(bag_means(probabilities, bags) - bags.proportions)))


def make_rules(bags: Bags, labels: IntArray, specs: Iterable[RuleSpec] | None = None) -> list[SelectionRule]:
    """Rules bound to held-back bags; labels of rows reach those rules only that declare ``uses_labels``.

    Args:
        bags: the held-back bags.
        labels: labels of their rows.
        specs: the rules; the built-in ones by default.
    """
    return [_bind(spec, bags, labels if spec.uses_labels else None) for spec in specs or llpbench_selection_rules()]


def _bind(spec: RuleSpec, bags: Bags, labels: IntArray | None) -> SelectionRule:
    value: Callable[[HeldBack], float] = spec.load()

    def of_report(probabilities: FloatArray, scores: FloatArray) -> float:
        return float(value(HeldBack(scores, probabilities, bags, labels)))

    return SelectionRule(spec.name, of_report, spec.higher_is_better)
