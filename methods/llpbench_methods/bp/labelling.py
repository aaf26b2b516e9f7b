"""One round of labelling: covariates to similarity graph, graph and bag counts to marginals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags, FloatArray
from llpbench_methods.bp.params import BPSettings
from llpbench_methods.inference import (
    GibbsModel,
    Marginals,
    Neighbours,
    OscillationWarning,
    PottsModel,
    SimilarityGraph,
    balance,
    damping_limit,
    engine_spec,
    gibbs_model,
    graph_of_neighbours,
    lambda_of_noise,
    marginals,
    matern,
    nearest,
    pair_lengths,
    potts_model,
    rbf,
)
from llpbench_methods.inference.neighbours import Search

Floats = NDArray[np.float64]
EXACT_ROWS = 20_000
"""Most rows whose neighbours `search = auto` finds by comparing all pairs."""
SAFETY = 0.8
"""Share of the stability limit that `lambda_b = auto` uses."""
CARRYING_GAIN = 1.1
"""The gain where neighbours must carry what counts say: just above 1, where it does not die out."""
SMOOTHING_GAIN = 0.3
"""The gain where a field has carried it already."""
LEAST_RATE = 0.01
"""Rates of a class nearer to 0 or 1 than this are taken as this, so that no weight grows without limit."""


@dataclass(frozen=True)
class Labelling:
    """Marginals, and the warning of the engine about them (empty if there is none)."""

    marginals: Marginals
    warning: str = ""


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

    def __init__(self, covariates: FloatArray, settings: BPSettings, most: int, *, seed: int, threads: int = 1) -> None:
        X = np.asarray(covariates)
        self.settings, self.seed = settings, seed
        self.neighbours = nearest(X, most, settings.distance, _search(settings.search, len(X)), threads)
        self.edges = self._joined(most).edges
        self.lengths = pair_lengths(X, self.edges)

    def of(self, k: int) -> SimilarityGraph:
        """The graph of `k` neighbours."""
        graph = self._joined(k)
        place = np.searchsorted(_keys(self.edges, graph.n), _keys(graph.edges, graph.n))
        graph = replace(graph, similarity=_similarity(self.lengths[place], self.settings))
        if self.settings.normalise:
            graph = balance(graph)
        kept = self.settings.edges_kept
        return graph.keep_share(kept, self.seed) if kept < 1.0 else graph

    def _joined(self, k: int) -> SimilarityGraph:
        few = Neighbours(self.neighbours.index[:, :k], self.neighbours.distance[:, :k])
        return graph_of_neighbours(few, delta_d=self.settings.delta_d, edge_rule=self.settings.edge_rule)


def similarity_weight(bags: Bags, settings: BPSettings, *, field: bool = False) -> float:
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


def bag_weights(bags: Bags, settings: BPSettings) -> Floats:
    """`lambda_b` of every bag.

    A number holds for all. `auto` is 1, or the exact `1/(2 s^2)` of counts with known noise if that is less. Pairwise
    engines also need `g = 2 lambda_b (B - 1) p (1 - p)` below `(1 + d)/(1 - d)` to settle; as `p (1 - p) <= 1/4`,
    `lambda_b <= 2 * 0.8 (1 + d)/(1 - d) / (B - 1)` is safe whatever the marginals (`damping = auto` starts from the
    damping that `lambda_b` asks for, so `d = 0.5` is meant then).
    """
    if not isinstance(settings.lambda_b, str):
        return np.full(len(bags), float(settings.lambda_b))
    weight = min(1.0, float(lambda_of_noise(bags.count_sd)))
    if engine_spec(settings.engine).counting:
        return np.full(len(bags), weight)
    damping = 0.5 if isinstance(settings.damping, str) else settings.damping
    return np.minimum(weight, 2.0 * SAFETY * damping_limit(damping) / np.maximum(bags.sizes - 1, 1))


def gibbs_law(
    graph: SimilarityGraph, bags: Bags, settings: BPSettings, *, fields: Floats | None = None, strength: float = 1.0
) -> GibbsModel | PottsModel:
    """The law of the labels: binary, or one C-state label per row.

    Args:
        graph: similar rows.
        bags: bags and counts.
        settings: the weights of the terms.
        fields: prior log-odds of the rows, or (n, C) log-probabilities.
        strength: what multiplies the weight of the similarity term.
    """
    shared: dict[str, Any] = {
        "lambda_b": bag_weights(bags, settings),
        "lambda_s": strength * similarity_weight(bags, settings, field=fields is not None),
        "fields": fields,
    }
    if bags.classes == 2:
        counts, most = bags.counts[:, 0], settings.edge_filter_max_count
        return gibbs_model(graph, bags.bag_of, counts, edge_filter_max_count=most, **shared)
    return potts_model(graph, bags.bag_of, bags.counts, lambda_o=settings.lambda_o, **shared)


def label_marginals(
    graph: SimilarityGraph,
    bags: Bags,
    settings: BPSettings,
    *,
    fields: Floats | None = None,
    strength: float = 1.0,
    threads: int = 1,
) -> Labelling:
    """Run belief propagation; a warning of oscillation is caught and returned as text. Arguments as of `gibbs_law`."""
    model = gibbs_law(graph, bags, settings, fields=fields, strength=strength)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OscillationWarning)
        found = marginals(
            model,
            settings.engine,
            rounds=settings.rounds,
            damping=_damping(settings),
            mode=settings.mode,
            threads=threads,
        )
    said = [w for w in caught if issubclass(w.category, OscillationWarning)]
    for other in caught:
        if other not in said:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return Labelling(found, str(said[-1].message) if said else "")


def _search(asked: Search, rows: int) -> Search:
    if asked == "auto":
        return "exact" if rows <= EXACT_ROWS else "approximate"
    return asked


def _damping(settings: BPSettings) -> float | Literal["auto"]:
    """Counting factors have no bag clique that could oscillate: their messages converge fastest without damping."""
    counted = engine_spec(settings.engine).counting and settings.mode == "sum"
    return 0.0 if settings.damping == "auto" and counted else settings.damping


def _keys(edges: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """One number for each pair, in the order of the pairs."""
    return np.asarray(edges[:, 0] * n + edges[:, 1])


def _similarity(lengths: Floats, settings: BPSettings) -> Floats:
    """Kernel values of pairs of these lengths."""
    length = settings.length_scale
    if isinstance(length, str):
        positive = lengths[lengths > 0]
        length = float(np.median(positive)) if len(positive) else 1.0
    if settings.kernel == "rbf":
        return rbf(lengths, 0.5 / length**2)
    return matern(lengths, settings.nu, length)
