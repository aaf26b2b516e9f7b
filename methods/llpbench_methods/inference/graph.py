"""The similarity graph: undirected edges between near rows, each with its kernel value and multiplicity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.neighbours import Metric, Neighbours, Search, nearest
from llpbench_methods.inference.similarity import matern, rbf

EdgeRule = Literal["union", "sum"]
Kernel = Literal["matern", "rbf"]


@dataclass(frozen=True)
class SimilarityGraph:
    """Unordered pairs of near rows.

    Attributes:
        n: number of rows.
        edges: `(E, 2)`, `i < j`, sorted, each pair once.
        similarity: kernel value `k_ij`.
        forward: whether `j` is a neighbour of `i` (the first column's own choice).
        backward: whether `i` is a neighbour of `j`.
        edge_rule: `union` gives a mutual pair the weight `k_ij`, `sum` gives it `2 k_ij`.
    """

    n: int
    edges: NDArray[np.int64]
    similarity: NDArray[np.float64]
    forward: NDArray[np.bool_]
    backward: NDArray[np.bool_]
    edge_rule: EdgeRule = "union"

    @property
    def multiplicity(self) -> NDArray[np.float64]:
        """The factor `m_ij` of each pair: 1, or 2 for a mutual pair under `sum`."""
        if self.edge_rule == "union":
            return np.ones(len(self.edges))
        return self.forward.astype(np.float64) + self.backward

    @property
    def weights(self) -> NDArray[np.float64]:
        """`m_ij k_ij`, what lambda_s multiplies in the energy."""
        return self.multiplicity * self.similarity

    def keep(self, chosen: NDArray[np.bool_]) -> SimilarityGraph:
        """The graph with only the chosen pairs."""
        return replace(
            self,
            edges=self.edges[chosen],
            similarity=self.similarity[chosen],
            forward=self.forward[chosen],
            backward=self.backward[chosen],
        )

    def keep_share(self, share: float, seed: int) -> SimilarityGraph:
        """The graph with a share of its pairs, drawn at random (the ablation of the similarity term)."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"the share of pairs to keep must be in [0, 1], got {share}")
        kept = np.zeros(len(self.edges), dtype=bool)
        kept[: round(share * len(kept))] = True
        return self.keep(np.random.default_rng(seed).permutation(kept))

    def from_rows(self, allowed: NDArray[np.bool_]) -> SimilarityGraph:
        """Keep only the choices made by allowed rows (a pair survives if either end's own choice does)."""
        forward = self.forward & allowed[self.edges[:, 0]]
        backward = self.backward & allowed[self.edges[:, 1]]
        return replace(self, forward=forward, backward=backward).keep(forward | backward)


def build_graph(
    X: NDArray[np.floating],
    k: int,
    *,
    metric: Metric = "cosine",
    delta_d: float | None = None,
    kernel: Kernel = "matern",
    nu: float = 0.5,
    length_scale: float = 1.0,
    gamma: float = 1.0,
    edge_rule: EdgeRule = "union",
    search: Search = "auto",
    threads: int = 1,
) -> SimilarityGraph:
    """Join every row to its `k` nearest and weigh the pairs by a kernel of their Euclidean distance.

    Args:
        X: covariates, one row per instance.
        k: neighbours each row chooses.
        metric: what "nearest" and the cut `delta_d` mean.
        delta_d: a neighbour farther than this is dropped; `None` keeps all.
        kernel: `matern` (with `nu`, `length_scale`) or `rbf` (with `gamma`).
        nu: smoothness of the Matérn kernel.
        length_scale: length of the Matérn kernel.
        gamma: inverse squared length of the RBF kernel.
        edge_rule: what a mutual pair weighs, see `SimilarityGraph`.
        search: exact or approximate neighbours, see `nearest`.
        threads: cores for the search.
    """
    X = np.asarray(X)
    graph = graph_of_neighbours(nearest(X, k, metric, search, threads), delta_d=delta_d, edge_rule=edge_rule)
    distance = pair_lengths(X, graph.edges)
    similarity = rbf(distance, gamma) if kernel == "rbf" else matern(distance, nu, length_scale)
    return replace(graph, similarity=similarity)


def graph_of_neighbours(
    neighbours: Neighbours, *, delta_d: float | None = None, edge_rule: EdgeRule = "union"
) -> SimilarityGraph:
    """Turn directed choices into unordered pairs, all of similarity 1."""
    if edge_rule not in ("union", "sum"):
        raise ValueError(f"unknown edge_rule {edge_rule!r}: choose 'union' or 'sum'")
    n, k = neighbours.index.shape
    chosen = neighbours.index >= 0
    if delta_d is not None:
        chosen &= neighbours.distance <= delta_d
    source = np.repeat(np.arange(n), k)[chosen.ravel()]
    target = neighbours.index.ravel()[chosen.ravel()]
    low, high = np.minimum(source, target), np.maximum(source, target)
    key, place = np.unique(low * n + high, return_inverse=True)
    forward = np.zeros(len(key), dtype=bool)
    backward = np.zeros(len(key), dtype=bool)
    forward[place[source == low]] = True
    backward[place[source == high]] = True
    edges = np.stack([key // n, key % n], axis=1)
    return SimilarityGraph(n, edges, np.ones(len(key)), forward, backward, edge_rule)


def pair_lengths(X: NDArray[np.floating], edges: NDArray[np.int64], block: int = 65536) -> NDArray[np.float64]:
    """Euclidean length of each pair of rows."""
    distance = np.empty(len(edges))
    for start in range(0, len(edges), block):
        pair = edges[start : start + block]
        gap = X[pair[:, 0]].astype(np.float64) - X[pair[:, 1]]
        distance[start : start + block] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return distance
