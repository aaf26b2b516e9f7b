"""One round of labelling: covariates to similarity graph, graph and bag counts to marginals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llpbench import Bags, FloatArray, Skip
from llpbench_methods.bp.params import BPSettings
from llpbench_methods.inference import (
    GibbsModel,
    Marginals,
    OscillationWarning,
    OverlapModel,
    PottsModel,
    SimilarityGraph,
    damping_limit,
    gibbs_model,
    graph_of_neighbours,
    lambda_of_noise,
    marginals,
    matern,
    nearest,
    overlapping_marginals,
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
    """Join every row to its `k` nearest; a pair weighs `k(|x_i - x_j|)`.

    Args:
        covariates: (n, d) what neighbours are near in.
        settings: the search and the kernel.
        seed: which pairs `edges_kept` keeps.
        threads: cores for the search.
    """
    X = np.asarray(covariates)
    found = nearest(X, settings.k, settings.distance, search_for(len(X), settings), threads)
    graph = graph_of_neighbours(found, delta_d=settings.delta_d, edge_rule=settings.edge_rule)
    graph = replace(graph, similarity=kernel_values(pair_lengths(X, graph.edges), settings))
    return graph.keep_share(settings.edges_kept, seed) if settings.edges_kept < 1.0 else graph


def search_for(rows: int, settings: BPSettings) -> Search:
    """The search to use: the requested one; `auto` is exact up to `EXACT_ROWS` rows."""
    if settings.search == "auto":
        return "exact" if rows <= EXACT_ROWS else "approximate"
    return settings.search


def kernel_values(lengths: Floats, settings: BPSettings) -> Floats:
    """Similarities of pairs of these Euclidean lengths.

    With `length_scale = median` the kernel's length is the median of `lengths`, so that covariates of any scale (a
    network's embeddings) give the same range of similarities.
    """
    length = settings.length_scale
    if isinstance(length, str):
        positive = lengths[lengths > 0]
        length = float(np.median(positive)) if len(positive) else 1.0
    if settings.kernel == "rbf":
        return rbf(lengths, 0.5 / length**2)
    return matern(lengths, settings.nu, length)


def stable_bag_weights(sizes: ArrayLike, damping: float | Literal["auto"]) -> Floats:
    """The largest `lambda_b` of each bag with which messages of pairs settle, with some margin.

    They settle if `g = 2 lambda_b (B - 1) p (1 - p)` is below `(1 + d) / (1 - d)`. As `p (1 - p) <= 1/4`,
    `lambda_b <= 2 * 0.8 (1 + d) / (1 - d) / (B - 1)` is safe for any marginals (`damping = auto` starts from the
    damping that `lambda_b` needs, so it is computed for `d = 0.5`).
    """
    limit = damping_limit(0.5 if isinstance(damping, str) else damping)
    return np.asarray(2.0 * SAFETY * limit / np.maximum(np.asarray(sizes) - 1, 1))


def bag_weights(bags: Bags, settings: BPSettings) -> Floats:
    """`lambda_b` of every bag: the given number, or 1 where messages of pairs settle with it and less elsewhere."""
    if not isinstance(settings.lambda_b, str):
        return np.full(len(bags), float(settings.lambda_b))
    return np.minimum(1.0, stable_bag_weights(bags.sizes, settings.damping))


def gibbs_law(
    graph: SimilarityGraph,
    bags: Bags,
    settings: BPSettings,
    *,
    lambda_b: Floats,
    lambda_s: float,
    fields: Floats | None = None,
) -> GibbsModel | PottsModel:
    """The law of the labels: binary, or one C-state label per row.

    Args:
        graph: similar rows.
        bags: bags and counts.
        settings: `lambda_o` and `edge_filter_max_count`.
        lambda_b: weight of the bag term, one per bag.
        lambda_s: weight of the similarity term.
        fields: prior log-odds of the rows, or (n, C) log-probabilities; none in the paper.
    """
    shared: dict[str, Any] = {"lambda_b": lambda_b, "lambda_s": lambda_s, "fields": fields}
    if bags.classes == 2:
        counts, most = bags.counts[:, 0], settings.edge_filter_max_count
        return gibbs_model(graph, bags.bag_of, counts, edge_filter_max_count=most, **shared)
    return potts_model(graph, bags.bag_of, bags.counts, lambda_o=settings.lambda_o, **shared)


def infer(
    model: GibbsModel | PottsModel,
    settings: BPSettings,
    *,
    damping: float | Literal["auto"],
    threads: int = 1,
) -> Labelling:
    """Run belief propagation; a warning of oscillation is caught and returned as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OscillationWarning)
        found = marginals(
            model, settings.engine, rounds=settings.rounds, damping=damping, mode=settings.mode, threads=threads
        )
    said = [w for w in caught if issubclass(w.category, OscillationWarning)]
    for other in caught:
        if other not in said:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return Labelling(found, str(said[-1].message) if said else "")


def label(graph: SimilarityGraph, bags: Bags, settings: BPSettings, *, threads: int = 1) -> Labelling:
    """Marginals of the Gibbs law of a similarity graph and bag counts."""
    assert not isinstance(settings.lambda_s, str)
    if bags.overlap is not None:
        return label_overlapping(graph, bags, settings)
    model = gibbs_law(graph, bags, settings, lambda_b=bag_weights(bags, settings), lambda_s=settings.lambda_s)
    return infer(model, settings, damping=settings.damping, threads=threads)


def label_overlapping(graph: SimilarityGraph, bags: Bags, settings: BPSettings) -> Labelling:
    """Marginals of the law of a similarity graph and of counts of several groupings, one counting factor per bag.

    Pairs inside bags, the paper's form of a bag term, are not used here; several classes are taken each against the
    rest. With `lambda_b = auto` a factor has the weight 1, or less if its count is noisy.

    Raises:
        Skip: a setting that is for a single grouping.
    """
    if settings.mode != "sum" or settings.edge_filter_max_count is not None:
        raise Skip("mode=max and edge_filter_max_count need a single grouping of the rows")
    given = 1.0 if isinstance(settings.lambda_b, str) else float(settings.lambda_b)
    lambda_b = np.minimum(given, lambda_of_noise(bags.count_sds))
    assert not isinstance(settings.lambda_s, str)
    found, warned = [], ""
    for column in np.asarray(bags.counts, np.float64).T:
        model = OverlapModel(
            np.zeros(len(bags.X)),
            bags.members,
            bags.offsets,
            bags.grouping_of,
            column,
            lambda_b,
            graph,
            settings.lambda_s,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OscillationWarning)
            found.append(overlapping_marginals(model, rounds=settings.rounds, damping=settings.damping))
        warned = str(caught[-1].message) if caught else warned
    if len(found) == 1:
        return Labelling(found[0], warned)
    beliefs = np.stack([one.beliefs for one in found], axis=1)
    last = max(found, key=lambda one: float(one.residuals[-1]))
    share = beliefs / np.maximum(beliefs.sum(axis=1, keepdims=True), 1e-300)
    return Labelling(replace(last, beliefs=share, log_odds=np.log(np.maximum(share, 1e-300))), warned)
