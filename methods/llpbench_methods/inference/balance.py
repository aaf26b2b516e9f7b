"""Equal pull: scale the similarities of a graph so that those of every row add up to 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.graph import SimilarityGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
STEPS = 500
"""Most steps; graphs of ten neighbours need about fifty."""


def weight_matrix(graph: SimilarityGraph) -> csr_array:
    """The symmetric `(n, n)` matrix of the weights `m_ij k_ij`."""
    from scipy.sparse import csr_array

    left, right = graph.edges.T
    rows, columns = np.concatenate([left, right]), np.concatenate([right, left])
    return csr_array((np.tile(graph.weights, 2), (rows, columns)), shape=(graph.n, graph.n))


def balance(graph: SimilarityGraph, *, tol: float = 1e-6, steps: int = STEPS) -> SimilarityGraph:
    """Similarities `d_i d_j k_ij` whose weights add up to 1 at every row (symmetric Sinkhorn scaling).

    Without this a row is pulled towards its neighbours in proportion to the total weight `W_i` of its pairs, and as
    most neighbours carry the more frequent label, well-connected rows drift to that label: marginals then rank rows by
    their number of neighbours. Dividing by `sqrt(W_i W_j)` once is half of the way; the step

        s_i = d_i sum_j m_ij k_ij d_j,    d_i <- d_i / sqrt(s_i)

    is repeated until every `s_i` is 1 to `tol`. Rows without a pair keep none. Where no such `d` exists (a row that is
    the only neighbour of several others, as with one neighbour each; more generally a bipartite part with unequal
    sides) the steps go on to their limit, in which what one side has too little the other has too much: a star of `m`
    rows has `1/sqrt(m)` at its tips and `sqrt(m)` in its middle.
    """
    matrix = weight_matrix(graph)
    total = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    joined = total > 0.0
    scale = np.where(joined, 1.0 / np.sqrt(np.where(joined, total, 1.0)), 0.0)
    for _ in range(steps):
        pull = np.where(joined, scale * (matrix @ scale), 1.0)
        if np.abs(pull - 1.0).max(initial=0.0) <= tol:
            break
        scale = scale / np.sqrt(pull)
    left, right = graph.edges.T
    return replace(graph, similarity=graph.similarity * scale[left] * scale[right])
