"""The prior of the rows that `relaxed` asks for: real-valued labels, smooth along the graph, that explain counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from llpbench import Bags
from llpbench_methods.bp_field.params import FieldSettings
from llpbench_methods.bp_field.trend import LinearTrend
from llpbench_methods.inference import Observed, SimilarityGraph, field_on_trend, relaxed_field
from llpbench_methods.inference.relaxed import FOLDS

Floats = NDArray[np.float64]
CLEAR = 3.0
"""Nats (20 to 1) by which held-out bags must contradict the field before `auto` declines it, or prefer it before
`evidence` accepts it ..."""
ERRORS = 2.0
"""... and standard errors of that gain, because how bags are dealt into folds moves it by one."""

MOST = 12.0
"""Log-odds of trend and field are at most this far from those of the rate."""

FEWER_FOLDS = 2
"""Folds over the bags for more than two classes, where every fold is as many solves as there are classes."""


@dataclass(frozen=True)
class Field:
    """A prior of the rows and its gain on held-out bags.

    Attributes:
        potentials: (n,) log-odds, or (n, C) log-probabilities; None without a prior.
        gain: nats gained on held-out bags; None where no field was asked for.
        accepted: whether the potentials contain a field.
    """

    potentials: Floats | None = None
    gain: float | None = None
    accepted: bool = False

    @property
    def declined(self) -> bool:
        """Whether the potentials are the regression alone."""
        return self.potentials is not None and not self.accepted


def find_field(graph: SimilarityGraph, bags: Bags, settings: FieldSettings, *, seed: int) -> Field:
    """The prior of the rows.

    `evidence` starts from a regression on bag means and adds the field of what the regression leaves of the counts if
    held-out bags clearly prefer it. `auto` uses a field without regression unless held-out bags are clearly against
    it, and then no prior at all; `on` always uses that field.
    """
    if settings.relaxed == "off":
        return Field()
    seen = Observed(np.asarray(bags.bag_of), np.asarray(bags.counts, dtype=np.float64), bags.count_sd)
    folds = FOLDS if bags.classes == 2 else FEWER_FOLDS
    if settings.relaxed == "evidence":
        fitted = field_on_trend(graph, seen, LinearTrend(bags), folds=folds, seed=seed)
        accepted = fitted.gain > max(CLEAR, ERRORS * fitted.error)
        return Field(linear_potentials(fitted.values if accepted else fitted.trend, seen.rates), fitted.gain, accepted)
    found = relaxed_field(graph, seen, folds=folds, seed=seed)
    if settings.relaxed == "auto" and found.gain < -max(CLEAR, ERRORS * found.error):
        return Field(None, found.gain)
    return Field(_potentials(found.probabilities), found.gain, accepted=True)


def linear_potentials(values: Floats, rates: Floats) -> Floats:
    """Log-odds (n,) or log-probabilities (n, C) that are linear in probabilities which may be outside of [0, 1].

    They have the value and slope of the logistic curve (softmax) at the rates, so the order of rows is kept.
    """
    if values.shape[1] == 1:
        p = rates[0]
        return np.asarray(np.log(p / (1.0 - p)) + np.clip((values[:, 0] - p) / (p * (1.0 - p)), -MOST, MOST))
    return np.asarray(log_softmax(np.log(rates) + np.clip((values - rates) / rates, -MOST, MOST), axis=1))


def _potentials(p: Floats) -> Floats:
    """(n,) log-odds of two classes, (n, C) log-probabilities of several, from probabilities (n, 1) or (n, C)."""
    if p.shape[1] == 1:
        return np.asarray(np.log(p[:, 0] / (1.0 - p[:, 0])))
    return np.asarray(np.log(p / p.sum(axis=1, keepdims=True)))
