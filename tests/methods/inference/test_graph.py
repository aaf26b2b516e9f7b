"""The similarity graph: neighbours, ties, kernels, edge rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.gaussian_process.kernels import Matern

from llpbench_methods.inference import build_graph, graph_of_neighbours, matern, nearest, rbf
from llpbench_methods.inference.neighbours import _Points, inverted_lists_search
from llpbench_methods.inference.similarity import matern_bessel


def brute_force(X: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    X = X.astype(float)
    if metric == "cosine":
        length = np.linalg.norm(X, axis=1)
        unit = X / np.where(length == 0, 1, length)[:, None]
        D = np.maximum(np.round(1 - unit @ unit.T, 12), 0) + 0.0
    else:
        D = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.fill_diagonal(D, np.inf)
    order = np.lexsort((np.broadcast_to(np.arange(len(X)), D.shape), D), axis=1)[:, :k]
    found = np.take_along_axis(D, order, 1)
    return order, found if metric == "cosine" else np.sqrt(found)


lattices = arrays(np.int64, st.tuples(st.integers(2, 60), st.integers(1, 3)), elements=st.integers(-2, 2))


@settings(max_examples=60, deadline=None)
@given(lattices, st.integers(1, 4), st.sampled_from(["cosine", "euclidean"]))
def test_ties_and_duplicates_go_to_the_lowest_index(X: np.ndarray, k: int, metric: str) -> None:
    k = min(k, len(X) - 1)
    found = nearest(X.astype(float), k, metric)
    index, distance = brute_force(X, k, metric)
    np.testing.assert_array_equal(found.index, index)
    np.testing.assert_allclose(found.distance, distance, atol=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_exact_search_equals_all_pairs_across_blocks(metric: str, shift: float) -> None:
    X = (np.random.default_rng(0).normal(size=(1100, 9)) + shift).astype(np.float32)
    found = nearest(X, 6, metric, threads=2)
    index, distance = brute_force(X, 6, metric)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-9, atol=1e-11)
    assert (found.index == index).mean() > 0.999  # the rest are ties of the brute force's own rounding


@settings(max_examples=60, deadline=None)
@given(lattices, st.sampled_from(["cosine", "euclidean"]))
def test_one_nearest_neighbour_graph_is_a_forest(X: np.ndarray, metric: str) -> None:
    graph = build_graph(X.astype(float), 1, metric=metric)
    matrix = coo_array((np.ones(len(graph.edges)), tuple(graph.edges.T)), shape=(len(X), len(X)))
    assert len(graph.edges) == len(X) - connected_components(matrix, directed=False)[0]


def test_graph_with_other_tie_breaking_would_not_be_a_forest() -> None:
    # Corners of a triangle at equal distances, each choosing the next one: the cycle the lowest index avoids.
    index = np.array([[1], [2], [0]])
    from llpbench_methods.inference import Neighbours

    assert len(graph_of_neighbours(Neighbours(index, np.ones((3, 1)))).edges) == 3
    equal = np.eye(3)
    assert len(build_graph(equal, 1, metric="euclidean").edges) == 2


def test_zero_rows_are_at_cosine_distance_one() -> None:
    found = nearest(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), 2, "cosine")
    np.testing.assert_allclose(found.distance, [[1, 1], [0, 1], [0, 1]])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_union_and_sum_rules(seed: int, k: int) -> None:
    X = np.random.default_rng(seed).normal(size=(25, 3))
    found = nearest(X, k, "euclidean")
    chosen = np.zeros((25, 25))
    chosen[np.arange(25)[:, None], found.index] = 1
    union = build_graph(X, k, metric="euclidean")
    both = build_graph(X, k, metric="euclidean", edge_rule="sum")
    i, j = union.edges.T
    assert (i < j).all()
    np.testing.assert_array_equal(union.edges, np.argwhere(np.triu(chosen + chosen.T)))
    np.testing.assert_allclose(union.multiplicity, 1.0)
    np.testing.assert_allclose(both.multiplicity, (chosen + chosen.T)[i, j])
    np.testing.assert_array_equal(union.forward, chosen[i, j] == 1)
    np.testing.assert_array_equal(union.backward, chosen[j, i] == 1)
    np.testing.assert_allclose(union.similarity, np.exp(-np.linalg.norm(X[i] - X[j], axis=1)))


def test_distance_cut_is_inclusive() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    assert build_graph(X, 1, metric="euclidean", delta_d=1.0).edges.tolist() == [[0, 1]]
    assert build_graph(X, 1, metric="euclidean", delta_d=2.0).edges.tolist() == [[0, 1], [1, 2]]
    assert len(build_graph(X, 1, metric="euclidean", delta_d=0.5).edges) == 0


def test_fraction_of_edges_kept() -> None:
    X = np.random.default_rng(1).normal(size=(200, 4))
    whole = build_graph(X, 3)
    part = build_graph(X, 3).keep_share(0.1, seed=5)
    again = build_graph(X, 3).keep_share(0.1, seed=5)
    assert len(part.edges) == round(0.1 * len(whole.edges))
    np.testing.assert_array_equal(part.edges, again.edges)
    assert {tuple(e) for e in part.edges} <= {tuple(e) for e in whole.edges}
    assert len(whole.keep_share(0.0, seed=0).edges) == 0
    with pytest.raises(ValueError, match="must be in"):
        whole.keep_share(1.5, seed=0)


def test_only_choices_of_allowed_rows() -> None:
    X = np.random.default_rng(2).normal(size=(40, 2))
    graph = build_graph(X, 2, edge_rule="sum")
    allowed = np.arange(40) < 20
    part = graph.from_rows(allowed)
    i, j = part.edges.T
    assert (part.forward <= allowed[i]).all()
    assert (part.backward <= allowed[j]).all()
    assert (part.forward | part.backward).all()
    assert 0 < len(part.edges) < len(graph.edges)


def test_matern_at_distance_one() -> None:
    np.testing.assert_allclose(
        [matern(1.0, nu) for nu in (0.5, 1.5, 2.5)], [0.3678794, 0.4833577, 0.5239941], atol=5e-8
    )


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_closed_forms_agree_with_the_bessel_form(nu: float) -> None:
    d = np.array([1e-8, 0.01, 0.3, 1.0, 4.0, 30.0, 600.0])
    np.testing.assert_allclose(matern(d, nu, 0.7), matern_bessel(np.sqrt(2 * nu) * d / 0.7, nu), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.9, 1.0, 1.7, 2.5, 4.0, 10.0])
def test_matern_agrees_with_scikit_learn(nu: float) -> None:
    d = np.array([0.0, 0.01, 0.3, 1.0, 2.5])
    theirs = Matern(length_scale=1.3, nu=nu)(d[:, None], np.zeros((1, 1)))[:, 0]
    np.testing.assert_allclose(matern(d, nu, 1.3), theirs, rtol=1e-6)


def test_matern_limits_have_no_nan() -> None:
    d = np.array([0.0, 1e-300, 1e-12, 1e-3, 1e3, 1e8, np.inf])
    for nu in (0.1, 0.5, 3.0, 50.0, 300.0, np.inf):
        k = matern(d, nu)
        assert np.isfinite(k).all()
        assert ((k >= 0) & (k <= 1)).all()
        assert k[0] == 1.0
        assert k[-1] == 0.0
        assert (np.diff(k) <= 1e-12).all()
    np.testing.assert_allclose(matern([0.5, 1.0], np.inf), rbf([0.5, 1.0], 0.5))
    np.testing.assert_allclose(matern([0.5, 1.0], 3000.0), rbf([0.5, 1.0], 0.5), rtol=1e-3)
    assert np.isfinite(special.kve(0.5, 1.0))


def test_rbf_kernel_in_the_graph() -> None:
    X = np.random.default_rng(3).normal(size=(20, 2))
    graph = build_graph(X, 2, kernel="rbf", gamma=0.7)
    gap = X[graph.edges[:, 0]] - X[graph.edges[:, 1]]
    np.testing.assert_allclose(graph.similarity, np.exp(-0.7 * (gap**2).sum(1)))


def test_approximate_search_finds_nearly_all_and_is_deterministic() -> None:
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(40, 12))[rng.integers(0, 40, 6000)] + 0.3 * rng.normal(size=(6000, 12))).astype(np.float32)
    points = _Points.of(X, "cosine")
    near = inverted_lists_search(points, 5, threads=2, lists=60, probes=12)
    again = inverted_lists_search(points, 5, threads=1, lists=60, probes=12)
    np.testing.assert_array_equal(near.index, again.index)
    true = nearest(X, 5, "cosine", search="exact")
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(near.index, true.index, strict=True)])
    assert recall > 0.97
    assert not (near.index == np.arange(6000)[:, None]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 1, "metric": "cityblock"}, "unknown metric"),
        ({"k": 1, "edge_rule": "max"}, "unknown edge_rule"),
        ({"k": 1, "nu": -1.0}, "nu must be"),
    ],
)
def test_invalid_settings_are_rejected(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_graph(np.eye(4), **options)
