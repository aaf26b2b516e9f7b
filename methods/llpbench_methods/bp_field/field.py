"""The prior of the rows that `relaxed` asks for: real-valued labels, smooth along the graph, that explain counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags
from llpbench_methods.bp_field.params import FieldSettings
from llpbench_methods.inference import Observed, SimilarityGraph, relaxed_field
from llpbench_methods.inference.relaxed import FOLDS

Floats = NDArray[np.float64]
CLEAR = 3.0
"""Nats (20 to 1) by which held-out bags must prefer the rate alone before `auto` declines the field ..."""
ERRORS = 2.0
"""... and standard errors of that gain, because how bags are dealt into folds moves it by one."""

FEWER_FOLDS = 2
"""Folds over the bags for more than two classes, where every fold is as many solves as there are classes."""


@dataclass(frozen=True)
class Field:
    """A prior of the rows and what held-out bags say of it.

    Attributes:
        potentials: (n,) log-odds, or (n, C) log-probabilities; None where there is no field or it was declined.
        gain: nats gained on held-out bags; None where no field was asked for.
    """

    potentials: Floats | None = None
    gain: float | None = None


def find_field(graph: SimilarityGraph, bags: Bags, settings: FieldSettings, *, seed: int) -> Field:
    """The field of a graph, if it is asked for and (`relaxed = auto`) held-out bags are not clearly against it.

    Not "clearly for it": a score of bags says little where bags are few, and there the alternative, pairs that must
    carry the counts, is a gamble on which clusters freeze, while the field only fades.
    """
    if settings.relaxed == "off":
        return Field()
    seen = Observed(np.asarray(bags.bag_of), np.asarray(bags.counts, dtype=np.float64), bags.count_sd)
    found = relaxed_field(graph, seen, folds=FOLDS if bags.classes == 2 else FEWER_FOLDS, seed=seed)
    if settings.relaxed == "auto" and found.gain < -max(CLEAR, ERRORS * found.error):
        return Field(None, found.gain)
    p = found.probabilities
    if bags.classes == 2:
        return Field(np.log(p[:, 0] / (1.0 - p[:, 0])), found.gain)
    return Field(np.log(p / p.sum(axis=1, keepdims=True)), found.gain)
