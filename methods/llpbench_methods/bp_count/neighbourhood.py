"""The nearest-neighbour term: similar rows tend to share a label; validation bags choose its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags, Monitor
from llpbench_methods.bp_count.counts import CountedBags, log_likelihood, posterior
from llpbench_methods.bp_count.learners import Learner
from llpbench_methods.bp_count.selftrain import Chain, gain_in_standard_errors
from llpbench_methods.inference import SimilarityGraph, build_graph

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WEIGHTS = (0.05, 0.2)
MOST_ROWS = 100_000
LEAST_VALIDATION_BAGS = 50


@dataclass(frozen=True)
class Similarity:
    """A nearest-neighbour graph over all training rows and its weight; weight 0 needs no graph."""

    weight: float
    graph: SimilarityGraph | None = None

    def posterior(self, fields: Array, bags: CountedBags, rows: Ints) -> Array:
        """Posterior of the given rows; only pairs inside them count, so that no other bag's count reaches them."""
        if self.weight == 0.0 or self.graph is None:
            return posterior(fields, bags)
        return posterior(fields, bags, restrict_graph(self.graph, rows), self.weight)


def restrict_graph(graph: SimilarityGraph, rows: Ints) -> SimilarityGraph:
    """The graph among some rows, renumbered in their order."""
    if len(rows) == graph.n:
        return graph
    place = np.full(graph.n, -1, np.int64)
    place[rows] = np.arange(len(rows))
    edges = place[graph.edges]
    inside = (edges[:, 0] >= 0) & (edges[:, 1] >= 0)
    kept = graph.keep(inside)
    return SimilarityGraph(
        len(rows), np.sort(edges[inside], axis=1), kept.similarity, kept.forward, kept.backward, kept.edge_rule
    )


def choose_similarity(
    wanted: float | str,
    bags: Bags,
    whole: Chain,
    learner: Learner,
    *,
    neighbours: int,
    seed: int,
    monitor: Monitor,
) -> Similarity:
    """The given weight, or the one that validation bags choose.

    For each weight the learner is fitted once on the posteriors of all rows; a weight above 0 is taken when the
    likelihood of the validation bags' counts beats that of weight 0 by more than one standard error. It is 0
    without a test above 100,000 rows and with fewer than 50 validation bags, which are too few to decide.
    """
    if wanted != "auto":
        weight = float(wanted)
        with monitor.phase("graph"):
            return Similarity(weight, build_neighbourhood(bags, neighbours) if weight > 0.0 else None)
    valid = bags.validation
    if valid is None or len(valid) < LEAST_VALIDATION_BAGS or len(bags.X) > MOST_ROWS:
        return Similarity(0.0)
    held = CountedBags.of(valid)
    with monitor.phase("graph"):
        graph = build_neighbourhood(bags, neighbours)
    best, base, top = Similarity(0.0), None, -np.inf
    for weight in (0.0, *WEIGHTS):
        candidate = Similarity(weight, graph)
        with monitor.phase("counting"):
            soft = candidate.posterior(whole.current, whole.bags, whole.rows)
        with monitor.phase("learner"):
            fields = learner.fit(whole.rows, soft, seed)
            shift = whole.calibrated(fields(bags.X), 1.0)[1]
        with monitor.phase("counting"):
            likelihood = log_likelihood(fields(valid.X) + shift, held, effect=whole.effect)
        if base is None:
            base, top = likelihood, float(likelihood.sum())
        elif likelihood.sum() > top and gain_in_standard_errors(likelihood, base) > 1.0:
            best, top = candidate, float(likelihood.sum())
    return best


def build_neighbourhood(bags: Bags, neighbours: int) -> SimilarityGraph | None:
    """Each row and its nearest ones; none when there are too few rows.

    A pair at Euclidean distance d weighs ``exp(−d)``, which is about .2 for most pairs of a table. (Equal weights were
    tried on seeds 100 and 101: the test above takes one at bags of 8 only, and it is no better there.)
    """
    if len(bags.X) < 2:
        return None
    k = min(neighbours, len(bags.X) - 1)
    return build_graph(bags.X, k, metric="euclidean", search="approximate")
