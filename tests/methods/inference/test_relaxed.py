"""The relaxed field: the solve against dense algebra, what held-out bags say of it, and its edge cases."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench_methods.inference import (
    Observed,
    SimilarityGraph,
    balance,
    build_graph,
    field_on_trend,
    relaxed_field,
    weight_matrix,
)
from llpbench_methods.inference.relaxed import (
    EXPLAINED,
    LENGTHS,
    PROBES,
    conjugate_gradients,
    probabilities_of,
    solve_fields,
    walk_coefficients,
    walk_prior,
)


def dense_prior(graph: SimilarityGraph) -> np.ndarray:
    """The prior by its definition: powers of the lazy walk, each over its mean diagonal (by the same random signs)."""
    walk = 0.5 * (np.eye(graph.n) + weight_matrix(balance(graph)).toarray())
    powers = [np.linalg.matrix_power(walk, t) for t in LENGTHS]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (graph.n, PROBES))
    return np.mean([power / (signs * (power @ signs)).mean() for power in powers], axis=0)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 2.0]), st.integers(1, 3))
@quick
def test_solve_is_gaussian_conditioning(seed: int, sd: float, fields: int) -> None:
    rng = np.random.default_rng(seed)
    graph = build_graph(rng.normal(size=(40, 2)), 4, metric="euclidean")
    bag_of = rng.integers(-1, 6, 40)
    sizes = np.bincount(bag_of[bag_of >= 0], minlength=6)
    counts = rng.uniform(0, 1, (6, fields)) * sizes[:, None] * 0.5
    seen = Observed(bag_of, counts, sd)
    prior = walk_prior(graph)
    kept = rng.random((6, fields)) < 0.8
    found = solve_fields(prior, seen, 0.4, kept, tolerance=1e-6)
    K = dense_prior(graph)
    A = np.stack([(bag_of == b).astype(float) for b in range(6)])
    for c in range(fields):
        rate = counts[:, c].sum() / sizes.sum()
        v = rate * (1 - rate)
        use = kept[:, c] & (sizes > 0)
        noise = np.diag((0.6 * v * sizes + sd**2)[use])
        covariance = 0.4 * v * A[use] @ K @ A[use].T + noise
        expected = 0.4 * v * K @ A[use].T @ np.linalg.solve(covariance, (counts[:, c] - sizes * rate)[use])
        np.testing.assert_allclose(found[:, c], expected, atol=2e-3 * max(np.abs(expected).max(), 1e-3))


@given(st.integers(1, 300), st.sampled_from([1e-3, 1e-6, 1e-9]))
@quick
def test_walk_is_a_short_series_of_chebyshev_polynomials(length: int, tail: float) -> None:
    coefficients = walk_coefficients(length, tail)
    s = np.linspace(-1.0, 1.0, 201)
    found = np.polynomial.chebyshev.chebval(s, coefficients)
    np.testing.assert_allclose(found, ((1 + s) / 2) ** length, atol=tail)
    assert len(coefficients) <= min(length + 1, 2 + 4.5 * np.sqrt(length) * np.sqrt(np.log10(1 / tail) / 9))


@pytest.mark.parametrize("shape", ["star", "isolated", "cloud"])
def test_prior_is_that_of_the_walks(shape: str) -> None:
    rng = np.random.default_rng(2)
    if shape == "cloud":
        graph = build_graph(rng.normal(size=(60, 2)), 5, metric="euclidean")
    else:  # a star has no equal pulls; rows without a pair only ever stay
        edges = np.array([[0, i] for i in range(1, 8)]) if shape == "star" else np.array([[0, 1], [1, 2], [0, 2]])
        mutual = np.ones(len(edges), dtype=bool)
        graph = SimilarityGraph(8, edges, np.ones(len(edges)), mutual, mutual)
    np.testing.assert_allclose(walk_prior(graph)(np.eye(graph.n)), dense_prior(graph), rtol=1e-3, atol=2e-4)


def test_conjugate_gradients_solve_each_column() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(30, 10))
    matrix, right = np.eye(30) + half @ half.T, rng.normal(size=(30, 4))
    right[:, 2] = 0.0
    found = conjugate_gradients(lambda x: matrix @ x, right, 1e-9)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), atol=1e-7)
    np.testing.assert_array_equal(found[:, 2], 0.0)


def test_prior_has_unit_variance_and_is_symmetric() -> None:
    graph = build_graph(np.random.default_rng(1).normal(size=(400, 3)), 8)
    prior = walk_prior(graph)
    K = prior(np.eye(400))
    np.testing.assert_allclose(K, K.T, atol=1e-5)
    assert np.diag(K).mean() == pytest.approx(1.0, abs=0.15)
    assert np.linalg.eigvalsh(K).min() > -1e-4


def two_clouds(bags: int, size: int, seed: int, classes: int = 2) -> tuple[SimilarityGraph, np.ndarray, np.ndarray]:
    """A graph of rows around as many centres as classes, the bag of each row, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, bags * size, p=np.array([0.7, *[0.3 / (classes - 1)] * (classes - 1)]))
    X = rng.normal(size=(bags * size, classes)) + 4.0 * np.eye(classes)[y]
    return build_graph(X, 8, metric="euclidean"), np.repeat(np.arange(bags), size), y


def counts_of(bag_of: np.ndarray, y: np.ndarray, classes: int) -> np.ndarray:
    return np.stack([np.bincount(bag_of, y == c) for c in range(classes)], axis=1)


@pytest.mark.parametrize("sd", [0.0, 1.5])
def test_held_out_bags_distinguish_counts_from_permuted_ones(sd: float) -> None:
    graph, bag_of, y = two_clouds(60, 30, seed=0)
    rng = np.random.default_rng(0)
    counts = counts_of(bag_of, y, 2)[:, 1:] + sd * rng.normal(size=(60, 1))
    found = relaxed_field(graph, Observed(bag_of, counts, sd))
    p = found.probabilities[:, 0]
    assert found.gain > 10.0
    assert p[y == 1].mean() > p[y == 0].mean() + 0.2
    chance = [relaxed_field(graph, Observed(bag_of, rng.permutation(counts), sd)).gain for _ in range(8)]
    assert max(chance) < 3.0


@pytest.mark.parametrize("classes", [2, 3])
def test_field_on_a_constant_trend_is_the_relaxed_field(classes: int) -> None:
    graph, bag_of, y = two_clouds(12, 10, seed=2, classes=classes)
    counts = counts_of(bag_of, y, classes)[:, -1 if classes == 2 else 0 :]
    seen = Observed(bag_of, counts.astype(float))
    found = field_on_trend(graph, seen, lambda _: np.tile(seen.rates, (len(y), 1)), seed=4)
    expected = relaxed_field(graph, seen, seed=4).probabilities
    np.testing.assert_allclose(probabilities_of(found.values - seen.rates, seen.rates), expected, rtol=1e-6)
    np.testing.assert_allclose(found.trend, np.tile(seen.rates, (len(y), 1)))


def test_gain_over_a_trend_is_that_of_gaussian_counts() -> None:
    """Two folds of one bag each: the other bag is predicted by trend and field of the first."""
    graph, bag_of, y = two_clouds(2, 10, seed=3)
    seen = Observed(bag_of, counts_of(bag_of, y, 2)[:, 1:].astype(float), 0.5)
    slope = np.linspace(-0.1, 0.1, 20)[:, None]

    def trend(kept: np.ndarray) -> np.ndarray:
        return 0.3 + slope * (1 + kept @ [1, 2])

    found = field_on_trend(graph, seen, trend, seed=0)
    expected = 0.0
    for held in (0, 1):
        kept = np.arange(2) != held
        base = trend(kept)
        both = base + solve_fields(walk_prior(graph), seen, EXPLAINED, kept[:, None], trend=base)
        variance = 10 * seen.rates[0] * (1 - seen.rates[0]) + 0.25
        misses = [float(seen.counts[held, 0] - values[bag_of == held].sum()) for values in (base, both)]
        expected += (misses[0] ** 2 - misses[1] ** 2) / (2 * variance)
    assert found.gain == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_several_classes_have_a_field_each() -> None:
    graph, bag_of, y = two_clouds(60, 20, seed=1, classes=3)
    found = relaxed_field(graph, Observed(bag_of, counts_of(bag_of, y, 3)))
    assert found.probabilities.shape == (1200, 3)
    assert found.gain > 10.0
    assert np.mean((found.probabilities / found.probabilities.mean(axis=0)).argmax(axis=1) == y) > 0.8


@pytest.mark.parametrize("counts", [[0, 0, 0], [4, 4, 4], [4, 0, 2], [9.5, -3.0, 1.0]])
def test_relaxed_labels_stay_in_range_for_any_counts(counts: list[float]) -> None:
    graph = build_graph(np.random.default_rng(0).normal(size=(12, 2)), 2)
    sd = 3.0 if counts[0] == 9.5 else 0.0
    found = relaxed_field(graph, Observed(np.repeat([0, 1, 2], 4), np.array(counts, float)[:, None], sd))
    assert np.isfinite(found.gain)
    assert ((found.probabilities > 0) & (found.probabilities < 1)).all()


def test_one_bag_and_rows_without_bags_or_pairs() -> None:
    none = np.zeros(0)
    graph = SimilarityGraph(5, np.zeros((0, 2), np.int64), none, none.astype(bool), none.astype(bool))
    found = relaxed_field(graph, Observed(np.array([0, 0, -1, 0, -1]), np.array([[1.0]])))
    np.testing.assert_allclose(found.probabilities, 1 / 3, atol=1e-6)


def test_probabilities_are_inside_the_unit_interval() -> None:
    p = probabilities_of(np.array([[-1.0], [0.0], [2.0]]), np.array([0.2]))
    np.testing.assert_allclose(p[:, 0], [0.01, 0.2, 0.96])
