"""Selection rules: how the best report of a fit is chosen. A rule is always named next to a number.

``bags``       cross-entropy of the mean prediction on held-back bags, after the logits were shifted so that the mean
               over all held-back rows is the known rate. It needs counts and no label. Version 2.
``bags-cv``    the same on k folds over all bags: the number of reports is chosen by fits that each left a part of the
               bags out (``folds.py``). For cells with folds.
``instances``  AUROC on the labels of the held-back rows: what the paper did. It gives every method labels it was
               not supposed to have.
``counts``     likelihood of the held-back counts, a bag effect integrated out (``count_likelihood.py``); on request.

Rules are registered like methods (hook ``llpbench_selection_rules``); here are the built-in ones, and what binds a rule
to held-back data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.held_back import HeldBack
from llpbench.contracts.specs import RuleSpec
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.levelling import inner_rate, level, log_odds
from llpbench.experiment.metrics import auroc
from llpbench.plugins.builtin import llpbench_selection_rules

_EPS = 1e-7


Place = tuple[str, int]
"""Where a report stands in a fit: its stage, and how many reports of that stage came before it."""


@dataclass(frozen=True)
class SelectionRule:
    """A rule: ``value(probabilities, scores)`` of the held-back rows, and which end is better.

    A cross-validated rule has its values from other fits: ``of_place`` holds them by the place of a report.
    """

    name: str
    value: Callable[[FloatArray, FloatArray], float]
    higher_is_better: bool
    of_place: Mapping[Place, float] | None = None

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
    means, shares = all_classes(means), all_classes(shares)
    return float(-np.average((shares * np.log(means)).sum(axis=1), weights=weights))


def instance_auroc(held: HeldBack) -> float:
    """AUROC of the scores against the labels of the held-back rows."""
    assert held.labels is not None
    return auroc(held.labels, held.scores)


def bag_error(probabilities: FloatArray, bags: Bags) -> float:
    """Mean absolute difference between predicted and given proportions of bags."""
    return float(np.mean(np.abs(bag_means(probabilities, bags) - bags.proportions)))


def make_rules(
    bags: Bags,
    labels: IntArray,
    specs: Iterable[RuleSpec] | None = None,
    cross_validated: Mapping[str, Mapping[Place, float]] | None = None,
) -> list[SelectionRule]:
    """Rules bound to held-back bags; labels of rows reach those rules only that declare ``uses_labels``.

    Args:
        bags: the held-back bags.
        labels: labels of their rows.
        specs: the rules; the built-in ones by default.
        cross_validated: by name, the values of cross-validated rules; those without values are not applied.
    """
    of_place = cross_validated or {}
    return [
        replace(bind(spec, bags, labels if spec.uses_labels else None), of_place=of_place.get(spec.name))
        for spec in specs or llpbench_selection_rules()
        if not spec.cross_validated or spec.name in of_place
    ]


def bind(spec: RuleSpec, bags: Bags, labels: IntArray | None = None) -> SelectionRule:
    """A rule bound to held-back bags."""
    value: Callable[[HeldBack], float] = spec.load()

    def of_report(probabilities: FloatArray, scores: FloatArray) -> float:
        return float(value(HeldBack(scores, probabilities, bags, labels)))

    return SelectionRule(spec.name, of_report, spec.higher_is_better)
