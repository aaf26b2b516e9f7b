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
    OscillationWarning,
    PottsModel,
    SimilarityGraph,
    build_graph,
    damping_limit,
    engine_spec,
    gibbs_model,
    lambda_of_noise,
    marginals,
    matern,
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


@dataclass(frozen=True)
class Labelling:
    """Marginals, and the warning of the engine about them (empty if there is none)."""

    marginals: Marginals
    warning: str = ""


def similarity_graph(covariates: FloatArray, settings: BPSettings, *, seed: int, threads: int = 1) -> SimilarityGraph:
    """Join near rows; pairs weigh `k(|x_i - x_j|)`.

    With `length_scale = median` the kernel's length is the median Euclidean length of the pairs, so that covariates of
    any scale (a network's embeddings) give the same range of similarities.
    """
    scale = settings.length_scale
    length = 1.0 if isinstance(scale, str) else scale
    graph = build_graph(
        covariates,
        settings.k,
        metric=settings.distance,
        delta_d=settings.delta_d,
        kernel=settings.kernel,
        nu=settings.nu,
        length_scale=length,
        gamma=0.5 / length**2,
        edge_rule=settings.edge_rule,
        search=_search(settings.search, len(covariates)),
        threads=threads,
    )
    if scale == "median":
        graph = replace(graph, similarity=_by_median(pair_lengths(covariates, graph.edges), settings))
    if settings.normalise:
        graph = normalise_weights(graph)
    return graph.keep_share(settings.edges_kept, seed) if settings.edges_kept < 1.0 else graph


def normalise_weights(graph: SimilarityGraph) -> SimilarityGraph:
    """Similarities `k_ij / sqrt(W_i W_j)`, `W_i = sum_j m_ij k_ij` the total weight of a row's pairs.

    Without this a row is pulled towards its neighbours in proportion to `W_i`, and as most neighbours carry the more
    frequent label, well-connected rows drift to that label: marginals then rank rows by their number of neighbours.
    """
    total = _per_row(graph.edges[:, 0], graph) + _per_row(graph.edges[:, 1], graph)
    scale = np.sqrt(total[graph.edges[:, 0]] * total[graph.edges[:, 1]])
    return replace(graph, similarity=graph.similarity / np.where(scale > 0.0, scale, 1.0))


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


def gibbs_law(graph: SimilarityGraph, bags: Bags, settings: BPSettings) -> GibbsModel | PottsModel:
    """The law of the labels: binary, or one C-state label per row."""
    weights = bag_weights(bags, settings)
    if bags.classes == 2:
        return gibbs_model(
            graph,
            bags.bag_of,
            bags.counts[:, 0],
            lambda_b=weights,
            lambda_s=settings.lambda_s,
            edge_filter_max_count=settings.edge_filter_max_count,
        )
    return potts_model(
        graph, bags.bag_of, bags.counts, lambda_b=weights, lambda_s=settings.lambda_s, lambda_o=settings.lambda_o
    )


def label_marginals(graph: SimilarityGraph, bags: Bags, settings: BPSettings, *, threads: int = 1) -> Labelling:
    """Run belief propagation; a warning of oscillation is caught and returned as text."""
    model = gibbs_law(graph, bags, settings)
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


def _per_row(rows: NDArray[Any], graph: SimilarityGraph) -> Floats:
    return np.bincount(rows, weights=graph.weights, minlength=graph.n).astype(np.float64)


def _by_median(lengths: Floats, settings: BPSettings) -> Floats:
    positive = lengths[lengths > 0]
    length = float(np.median(positive)) if len(positive) else 1.0
    if settings.kernel == "rbf":
        return rbf(lengths, 0.5 / length**2)
    return matern(lengths, settings.nu, length)
