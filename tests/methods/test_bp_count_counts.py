"""Posteriors, likelihoods and shifts of bp-count, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from llpbench import Bags
from llpbench_methods.bp_count.counts import (
    CountedBags,
    limit_fields,
    log_likelihood,
    posterior,
    probabilities,
)
from llpbench_methods.bp_count.neighbourhood import build_neighbourhood, restrict_graph
from llpbench_methods.inference import SimilarityGraph
from llpbench_methods.shared.counts import whole_counts
from llpbench_methods.shared.shares import shift_to_shares

FIELDS = np.random.default_rng(0).normal(size=(5, 1))
OFFSETS = np.array([0, 3, 5])


def _enumerate(fields, count, lam):
    """Posterior of every row of one bag and log-probability of the count, over all labellings."""
    total, mass = np.zeros(len(fields)), 0.0
    for labels in product([0, 1], repeat=len(fields)):
        y = np.array(labels)
        gap = y.sum() - count
        factor = (1.0 if gap == 0 else 0.0) if np.isinf(lam) else np.exp(-lam * gap**2)
        weight = factor * np.prod(np.where(y == 1, expit(fields), expit(-fields)))
        total += weight * y
        mass += weight
    return total / mass, np.log(mass)


@pytest.mark.parametrize(("lam", "counts"), [(np.inf, [1.0, 2.0]), (np.inf, [0.0, 1.0]), (0.7, [3.6, -0.4])])
def test_posterior_and_likelihood_by_enumeration(lam: float, counts: list[float]) -> None:
    bags = CountedBags(OFFSETS, np.array(counts)[:, None], lam)
    p, logs = posterior(FIELDS, bags), log_likelihood(FIELDS, bags)
    for b, (first, last) in enumerate([(0, 3), (3, 5)]):
        expected, mass = _enumerate(FIELDS[first:last, 0], counts[b], lam)
        np.testing.assert_allclose(p[first:last, 0], expected, atol=1e-9)
        assert logs[b] == pytest.approx(mass, abs=1e-9)


def test_neighbours_pull_labels_together() -> None:
    fields = np.array([[0.0], [2.0], [0.0], [-2.0]])
    bags = CountedBags(np.array([0, 4]), np.array([[2.0]]), np.inf)
    edges = np.array([[0, 1], [2, 3]])
    yes = np.ones(2, bool)
    graph = SimilarityGraph(4, edges, np.ones(2), yes, yes)
    alone, coupled = posterior(fields, bags), posterior(fields, bags, graph, 1.0)
    np.testing.assert_allclose(posterior(fields, bags, graph, 0.0), alone)
    assert alone[0, 0] == pytest.approx(alone[2, 0])
    assert coupled[0, 0] > alone[0, 0] + 0.1
    assert coupled[2, 0] < alone[2, 0] - 0.1


def test_neighbours_weigh_less_the_farther_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    bags = Bags(X, np.arange(0, 61, 6), np.full((10, 1), 3.0), 2)
    graph = build_neighbourhood(bags, 5)
    assert graph is not None
    distance = np.linalg.norm(X[graph.edges[:, 0]] - X[graph.edges[:, 1]], axis=1)
    np.testing.assert_allclose(graph.similarity, np.exp(-distance), rtol=1e-4)


def test_graph_among_some_rows_is_renumbered() -> None:
    edges = np.array([[0, 1], [0, 3], [1, 3], [2, 3]])
    yes = np.ones(4, bool)
    part = restrict_graph(SimilarityGraph(4, edges, np.array([1.0, 2.0, 3.0, 4.0]), yes, yes), np.array([3, 0, 2]))
    np.testing.assert_array_equal(part.edges, [[0, 1], [0, 2]])
    np.testing.assert_array_equal(part.similarity, [2.0, 4.0])


def test_several_classes_keep_counts_and_simplex() -> None:
    fields = np.random.default_rng(1).normal(size=(5, 3))
    bags = CountedBags(OFFSETS, np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 0.0]]), np.inf)
    p = posterior(fields, bags)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(p, OFFSETS[:-1]), bags.counts, atol=0.1)
    exact = np.zeros((3, 3))
    mass = 0.0
    for labels in product(range(3), repeat=3):
        if len(set(labels)) == 3:
            weight = np.exp(log_softmax(fields[:3], axis=1)[np.arange(3), labels].sum())
            exact += weight * np.eye(3)[list(labels)]
            mass += weight
    np.testing.assert_allclose(p[:3], exact / mass, atol=0.1)


def test_likelihood_of_several_classes_is_that_of_each_against_the_rest() -> None:
    fields = np.random.default_rng(1).normal(size=(5, 3))
    counts = np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    found = log_likelihood(fields, CountedBags(OFFSETS, counts, np.inf))
    p = softmax(fields, axis=1)
    odds = np.log(p / (1 - p))
    expected = sum(_enumerate(odds[:3, c], counts[0, c], np.inf)[1] for c in range(3))
    assert found[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("share", [0.0001, 0.2, 0.97])
def test_shift_brings_the_mean_to_the_share(share: float) -> None:
    theta = np.random.default_rng(0).normal(scale=5.0, size=(1000, 1))
    tau = shift_to_shares(theta, np.array([share]))
    assert expit(theta + tau).mean() == pytest.approx(share, rel=1e-4)


def test_shift_of_several_classes() -> None:
    fields = np.random.default_rng(0).normal(size=(300, 3))
    shares = np.array([0.7, 0.29, 0.01])
    shifted = probabilities(fields + shift_to_shares(fields, shares))
    np.testing.assert_allclose(shifted.mean(axis=0), shares, rtol=1e-3)


def test_taking_bags_takes_their_rows() -> None:
    bags = CountedBags(np.array([0, 2, 3, 7]), np.array([[1.0], [0.0], [3.0]]), np.inf)
    part, rows = bags.take(np.array([2, 0]))
    np.testing.assert_array_equal(rows, [3, 4, 5, 6, 0, 1])
    np.testing.assert_array_equal(part.offsets, [0, 4, 6])
    np.testing.assert_array_equal(part.counts, [[3.0], [1.0]])
    np.testing.assert_array_equal(part.bag_of, [0, 0, 0, 0, 1, 1])
    assert len(bags.take(np.array([], np.int64))[0]) == 0


def test_exact_counts_are_rounded_into_the_valid_range() -> None:
    def whole(counts: list[list[float]], size: int) -> np.ndarray:
        offsets, classes = size * np.arange(len(counts) + 1), max(2, len(counts[0]))
        return whole_counts(Bags(np.zeros((offsets[-1], 1), np.float32), offsets, np.array(counts), classes))

    np.testing.assert_array_equal(whole([[-1.2], [2.4], [9.0]], 3), [[0], [2], [3]])
    assert whole([[1.5, 1.5, 1.0]], 4).sum() == 4
    np.testing.assert_array_equal(whole([[2.6, 1.4, -5.0]], 4), [[3, 1, 0]])
    assert whole([[0.0, 0.0, 0.0]], 4).sum() == 4


def test_shares_never_reach_the_ends_and_noise_sets_the_factor() -> None:
    X = np.zeros((4, 1), np.float32)
    empty = CountedBags.of(Bags(X, np.array([0, 2, 4]), np.zeros((2, 1))))
    assert empty.lambda_b == np.inf
    assert 0 < empty.shares[0] < 0.2
    noisy = CountedBags.of(Bags(X, np.array([0, 2, 4]), np.array([[-3.5], [9.25]]), count_sd=2.0))
    assert noisy.lambda_b == pytest.approx(1 / 8)
    np.testing.assert_array_equal(noisy.counts, [[-3.5], [9.25]])


def test_fields_are_cut_to_a_finite_range() -> None:
    assert np.abs(limit_fields(np.array([[1e9], [-1e9]]))).max() < 20
    assert limit_fields(np.array([[0.0, 1e6]])).min() > -20
