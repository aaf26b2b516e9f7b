"""Labels of rows given prior log-odds and the counts of overlapping bags: the prior's scale, then messages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench import IntArray
from llpbench_methods.inference.graph import SimilarityGraph
from llpbench_methods.inference.messages import sigmoid
from llpbench_methods.inference.overlap import OverlapModel, overlapping_marginals
from llpbench_methods.inference.propagation import OscillationWarning
from llpbench_methods.shared.incidence import sparse_incidence
from llpbench_methods.shared.prior_scale import rescaled, scaled

Floats = NDArray[np.float64]

LARGEST_FIELD = 12.0
"""Log-odds beyond this are cut: no learner is that sure, and a wrong certainty would make a bag's likelihood 0."""


@dataclass(frozen=True)
class Decoded:
    """Posterior of rows in overlapping bags.

    Attributes:
        prior: (n, 1) or (n, C) probabilities by the scaled prior alone.
        probabilities: (n, 1) or (n, C) given all counts.
        converged: whether the messages settled (of every class).
        scale: the factor on the log-odds (several classes: of the last).
    """

    prior: Floats
    probabilities: Floats
    converged: bool
    scale: float


def decode(
    log_odds: Floats,
    members: IntArray,
    offsets: IntArray,
    grouping_of: IntArray,
    counts: Floats,
    lambda_b: Floats,
    rates: Floats,
    graph: SimilarityGraph | None = None,
    lambda_s: float = 0.0,
    scale: float | None = None,
) -> Decoded:
    """Posterior by belief propagation over the counts of all groupings; several classes each against the rest.

    Args:
        log_odds: (n, 1) prior log-odds of class 1, or (n, C) of each class against the rest.
        members: (entries,) rows, bag after bag.
        offsets: (bags + 1,) where bags begin.
        grouping_of: (bags,) ascending number of each bag's grouping.
        counts: (bags, 1) or (bags, C).
        lambda_b: (bags,) weights of the counts; `inf` for exact ones.
        rates: (1,) or (C,) known rates.
        graph: similar rows, or None.
        lambda_s: weight of the similarity term.
        scale: the factor on the log-odds; by default the one that makes these counts most likely, which is too large
            if the log-odds were fitted to the same noisy counts.
    """
    incidence = sparse_incidence(members, offsets, len(log_odds))
    count_sd = np.sqrt(0.5 / lambda_b)
    priors, columns, converged, used = [], [], True, 1.0
    for c in range(log_odds.shape[1]):
        rate = float(rates[c])
        if scale is None:
            theta, used = rescaled(log_odds[:, c], incidence, counts[:, c], count_sd, rate)
        else:
            theta, used = scaled(log_odds[:, c], scale, rate), scale
        theta = np.clip(theta, -LARGEST_FIELD, LARGEST_FIELD)
        model = OverlapModel(theta, members, offsets, grouping_of, counts[:, c], lambda_b, graph, lambda_s)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OscillationWarning)
            found = overlapping_marginals(model)
        priors.append(sigmoid(theta))
        columns.append(found.beliefs)
        converged = converged and found.converged
    return Decoded(_joined(priors), _joined(columns), converged, used)


def _joined(columns: list[Floats]) -> Floats:
    p = np.stack(columns, axis=1)
    return p if p.shape[1] == 1 else np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300))
