"""Selection rules: how the best report of a fit is chosen.

``bags``       cross-entropy of the mean prediction on held-out bags, after a shift of the logits that makes the mean
               over all held-out rows the known rate. It needs counts and no label. Version 2.
``bags-cv``    the same by cross-validation over bags (``folds.py``), for cells with folds.
``instances``  AUROC on the labels of the held-out rows, as in the paper.
``counts``     likelihood of the held-out counts with a bag effect integrated out (``count_likelihood.py``); on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, HeldOut, IntArray
from llpbench.contracts.specs import RuleSpec
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.levelling import inner_rate, level, log_odds
from llpbench.experiment.metrics import auroc
from llpbench.plugins.builtin import llpbench_selection_rules

_EPS = 1e-7

ReportPlace = tuple[str, int]
"""The place of a report in a fit: its stage, and the number of earlier reports of that stage."""


@dataclass(frozen=True)
class SelectionRule:
    """A rule bound to held-out data: ``value(probabilities, scores)`` of the held-out rows.

    The values of a cross-validated rule come from other fits: ``by_place`` has them by the place of a report.
    """

    name: str
    value: Callable[[FloatArray, FloatArray], float]
    higher_is_better: bool
    by_place: Mapping[ReportPlace, float] | None = None

    def better(self, value: float, best: float | None) -> bool:
        """Whether ``value`` is better than the best so far (None: there is none yet); NaN never is."""
        if best is None:
            return True
        if np.isnan(value) or np.isnan(best):
            return bool(np.isnan(best) and not np.isnan(value))
        return value > best if self.higher_is_better else value < best


def bag_means(probabilities: FloatArray, bags: Bags) -> FloatArray:
    """(bags, 1 or C) mean predicted probability of each bag."""
    columns = bags.entries(probabilities.reshape(len(probabilities), -1))
    return np.add.reduceat(columns, bags.offsets[:-1], axis=0) / bags.sizes[:, None]


def bag_weights(bags: Bags) -> FloatArray | IntArray:
    """(bags,) sizes; with several groupings as shares of their grouping's, so that groupings weigh the same."""
    if bags.overlap is None:
        return bags.sizes
    return np.asarray(bags.sizes / np.bincount(bags.grouping_of, bags.sizes)[bags.grouping_of])


def bag_cross_entropy(held: HeldOut) -> float:
    """``−Σ_b B_b Σ_c α_bc log p̄_bc / Σ_b B_b`` on held-out bags, for predictions shifted to the known rate.

    First all logits are shifted by one number (one for each class, if there are several), so that the mean prediction
    of the held-out rows is the rate that their counts give. Then ``p̄_b`` is the mean prediction of bag ``b``, ``α_b``
    its proportion (projected to the simplex if it is noisy) and ``B_b`` its size. Several groupings weigh the same.
    """
    bags = held.bags
    rate = inner_rate(bags.prior, len(bags.X))
    p = level(log_odds(held.scores, held.probabilities), rate)
    return weighted_cross_entropy(bag_means(p, bags), bags.clipped_proportions, bag_weights(bags))


def weighted_cross_entropy(means: FloatArray, shares: FloatArray, weights: FloatArray | IntArray) -> float:
    """Weighted mean over bags of ``−Σ_c α_c log m_c``; one column is the rate of class 1 of two."""
    means = np.clip(means, _EPS, 1.0 - _EPS)
    means, shares = all_classes(means), all_classes(shares)
    return float(-np.average((shares * np.log(means)).sum(axis=1), weights=weights))


def instance_auroc(held: HeldOut) -> float:
    """AUROC of the scores against the labels of the held-out rows."""
    assert held.labels is not None
    return auroc(held.labels, held.scores)


def bag_error(probabilities: FloatArray, bags: Bags) -> float:
    """Mean absolute difference between predicted and given proportions of bags."""
    return float(np.mean(np.abs(bag_means(probabilities, bags) - bags.proportions)))


def make_rules(
    bags: Bags,
    labels: IntArray,
    specs: Iterable[RuleSpec] | None = None,
    cross_validated: Mapping[str, Mapping[ReportPlace, float]] | None = None,
) -> list[SelectionRule]:
    """Rules bound to held-out bags; only rules that declare ``uses_labels`` are given the labels of rows.

    ``specs`` are the built-in rules by default. ``cross_validated`` has the values of cross-validated rules by name;
    those without values are not applied.
    """
    values = cross_validated or {}
    return [
        replace(bind(spec, bags, labels if spec.uses_labels else None), by_place=values.get(spec.name))
        for spec in specs or llpbench_selection_rules()
        if not spec.cross_validated or spec.name in values
    ]


def bind(spec: RuleSpec, bags: Bags, labels: IntArray | None = None) -> SelectionRule:
    """A rule bound to held-out bags."""
    value: Callable[[HeldOut], float] = spec.load()

    def of_report(probabilities: FloatArray, scores: FloatArray) -> float:
        return float(value(HeldOut(scores, probabilities, bags, labels)))

    return SelectionRule(spec.name, of_report, spec.higher_is_better)
