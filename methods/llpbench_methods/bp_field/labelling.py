"""Graphs of several numbers of neighbours, and the weights of the terms of the Gibbs law."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags, FloatArray
from llpbench_methods.bp.labelling import Labelling, gibbs_law, infer, kernel_values, search_for, stable_bag_weights
from llpbench_methods.bp_field.params import FieldSettings
from llpbench_methods.inference import (
    Neighbours,
    SimilarityGraph,
    balance,
    engine_spec,
    graph_of_neighbours,
    lambda_of_noise,
    nearest,
    pair_lengths,
)

Floats = NDArray[np.float64]
CARRYING_GAIN = 1.1
"""The gain without a field: just above 1, so that the effect of a count does not decay along the graph."""
SMOOTHING_GAIN = 0.3
"""The gain with a field."""
LEAST_RATE = 0.01
"""Rates of a class nearer to 0 or 1 than this are taken as this, so that no weight grows without limit."""


class SimilarityGraphs:
    """Near rows joined, for any number of neighbours up to a largest one; pairs weigh `k(|x_i - x_j|)`.

    Neighbours are searched for and pairs measured once, for the largest number: the pairs of fewer neighbours are among
    them. With `length_scale = median` the kernel's length is the median Euclidean length of a graph's pairs, so that
    covariates of any scale (a network's embeddings) give the same range of similarities.

    Args:
        covariates: (n, d) what neighbours are near in.
        settings: the kernel, the search and what becomes of the weights.
        most: the largest number of neighbours.
        seed: which pairs `edges_kept` keeps.
        threads: cores for the search.
    """

    def __init__(
        self, covariates: FloatArray, settings: FieldSettings, most: int, *, seed: int, threads: int = 1
    ) -> None:
        X = np.asarray(covariates)
        self.settings, self.seed = settings, seed
        self.neighbours = nearest(X, most, settings.distance, search_for(len(X), settings), threads)
        self.edges = self._joined(most).edges
        self.lengths = pair_lengths(X, self.edges)

    def of(self, k: int) -> SimilarityGraph:
        """The graph of `k` neighbours."""
        graph = self._joined(k)
        place = np.searchsorted(_keys(self.edges, graph.n), _keys(graph.edges, graph.n))
        graph = replace(graph, similarity=kernel_values(self.lengths[place], self.settings))
        if self.settings.normalise:
            graph = balance(graph)
        kept = self.settings.edges_kept
        return graph.keep_share(kept, self.seed) if kept < 1.0 else graph

    def _joined(self, k: int) -> SimilarityGraph:
        few = Neighbours(self.neighbours.index[:, :k], self.neighbours.distance[:, :k])
        return graph_of_neighbours(few, delta_d=self.settings.delta_d, edge_rule=self.settings.edge_rule)


def similarity_weight(bags: Bags, settings: FieldSettings, *, field: bool = False) -> float:
    """`lambda_s`: as given, or what makes a row's opinion come back through its neighbours `gain` times as strong.

    Where a row's pulls add up to 1 and labels have rate `p`, a small change `x` of the log-odds of all neighbours
    changes the row's by `lambda_s 2 p (1 - p) x`. So `lambda_s = gain / (2 p (1 - p))` acts alike on frequent and on
    rare labels. With C classes in shares `pi` the factor is the matrix `2 lambda_s (diag(pi) - pi pi^T)`, and its
    largest eigenvalue `2 lambda_s mu` is made the gain; for equal shares `mu = 1 / C`.
    """
    if not isinstance(settings.lambda_s, str):
        return settings.lambda_s
    gain = settings.gain
    if isinstance(gain, str):
        gain = SMOOTHING_GAIN if field else CARRYING_GAIN
    shares = np.clip(np.asarray(bags.prior, dtype=np.float64), LEAST_RATE, 1.0 - LEAST_RATE)
    if bags.classes == 2:
        return gain / float(2.0 * shares[0] * (1.0 - shares[0]))
    shares = shares / shares.sum()
    return gain / float(2.0 * np.linalg.eigvalsh(np.diag(shares) - np.outer(shares, shares))[-1])


def bag_weights(bags: Bags, settings: FieldSettings) -> Floats:
    """`lambda_b` of every bag.

    A number holds for all. `auto` is 1, or the exact `1/(2 s^2)` of counts with known noise if that is less; for
    pairwise engines it is also at most what makes messages settle.
    """
    if not isinstance(settings.lambda_b, str):
        return np.full(len(bags), float(settings.lambda_b))
    weight = min(1.0, float(lambda_of_noise(bags.count_sd)))
    if engine_spec(settings.engine).counting:
        return np.full(len(bags), weight)
    return np.minimum(weight, stable_bag_weights(bags.sizes, settings.damping))


def label_marginals(
    graph: SimilarityGraph,
    bags: Bags,
    settings: FieldSettings,
    *,
    fields: Floats | None = None,
    strength: float = 1.0,
    threads: int = 1,
) -> Labelling:
    """Run belief propagation.

    Args:
        graph: similar rows.
        bags: bags and counts.
        settings: the weights of the terms and the engine.
        fields: prior log-odds of the rows, or (n, C) log-probabilities.
        strength: what multiplies the weight of the similarity term.
        threads: cores to use.
    """
    weight = strength * similarity_weight(bags, settings, field=fields is not None)
    model = gibbs_law(graph, bags, settings, lambda_b=bag_weights(bags, settings), lambda_s=weight, fields=fields)
    return infer(model, settings, damping=_damping(settings), threads=threads)


def _damping(settings: FieldSettings) -> float | Literal["auto"]:
    """Counting factors have no bag clique that could oscillate: their messages converge fastest without damping."""
    counted = engine_spec(settings.engine).counting and settings.mode == "sum"
    return 0.0 if settings.damping == "auto" and counted else settings.damping


def _keys(edges: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """One number for each pair, in the order of the pairs."""
    return np.asarray(edges[:, 0] * n + edges[:, 1])
