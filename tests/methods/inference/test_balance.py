"""Equal pull: every row's weights add up to 1, where such a scaling exists."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench_methods.inference import SimilarityGraph, balance, build_graph, weight_matrix


def graph_of(n: int, pairs: list[tuple[int, int]], similarity: list[float] | None = None) -> SimilarityGraph:
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    values = np.ones(len(edges)) if similarity is None else np.array(similarity)
    yes = np.ones(len(edges), dtype=bool)
    return SimilarityGraph(n, edges, values, yes, yes)


def pulls(graph: SimilarityGraph) -> np.ndarray:
    return np.asarray(weight_matrix(graph).sum(axis=1))


@given(st.integers(0, 10_000), st.sampled_from(["union", "sum"]), st.sampled_from([0.0, 1.0]))
@quick
def test_all_rows_are_pulled_alike(seed: int, rule: str, skew: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    X[:, 0] = np.exp(skew * X[:, 0])
    graph = build_graph(X, 6, metric="euclidean", edge_rule=rule)
    scaled = balance(graph, steps=5000)
    np.testing.assert_allclose(pulls(scaled), 1.0, atol=1e-6)
    # It is a scaling d_i d_j k_ij: around every closed path of four pairs the alternating product of ratios is 1.
    ratio = weight_matrix(scaled).toarray() / np.where(
        weight_matrix(graph).toarray() > 0, weight_matrix(graph).toarray(), 1
    )
    linked = ratio > 0
    for a, b in graph.edges[:20]:
        for c in np.flatnonzero(linked[b]):
            for d in np.flatnonzero(linked[a] & linked[c]):
                assert ratio[a, b] * ratio[c, d] == pytest.approx(ratio[b, c] * ratio[a, d], rel=1e-9)


def test_isolated_rows_have_no_weight_and_a_single_pair_has_weight_one() -> None:
    scaled = balance(graph_of(5, [(1, 3)], [0.01]))
    np.testing.assert_allclose(pulls(scaled), [0, 1, 0, 1, 0], atol=1e-6)
    nothing = balance(graph_of(3, []))
    assert len(nothing.edges) == 0
    assert nothing.n == 3


def test_star_graph_stays_unbalanced() -> None:
    tips = 4
    scaled = balance(graph_of(tips + 1, [(0, i) for i in range(1, tips + 1)]))
    np.testing.assert_allclose(pulls(scaled), [np.sqrt(tips), *[1 / np.sqrt(tips)] * tips], rtol=1e-9)


def test_bipartite_part_stays_finite_and_balances_if_its_sides_are_equal() -> None:
    even = balance(graph_of(4, [(0, 2), (0, 3), (1, 2), (1, 3)], [0.9, 0.1, 0.3, 0.5]))
    np.testing.assert_allclose(pulls(even), 1.0, atol=1e-6)
    odd = balance(graph_of(5, [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)], [0.9, 0.1, 0.3, 0.5, 0.2, 0.7]))
    np.testing.assert_allclose(pulls(odd), [1.5**0.5] * 2 + [1.5**-0.5] * 3, rtol=1e-4)


def test_large_graph_is_balanced_in_the_steps_it_has() -> None:
    X = np.random.default_rng(0).normal(size=(1500, 6))
    assert np.std(pulls(build_graph(X, 10))) > 0.3
    np.testing.assert_allclose(pulls(balance(build_graph(X, 10))), 1.0, atol=1e-6)
