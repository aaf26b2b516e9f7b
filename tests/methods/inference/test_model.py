"""The Gibbs law: its potentials are those of the energy, checked by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench_methods import bp, inference
from llpbench_methods.inference import (
    GibbsModel,
    SimilarityGraph,
    build_graph,
    canonical_edges,
    gibbs_model,
    lambda_of_noise,
    one_hot,
    potts_model,
)
from llpbench_methods.inference.engines.reference import all_pairs


def six_nodes(rule: str = "union") -> SimilarityGraph:
    """N(0)=3, N(1)=0, N(2)=4, N(3)=0, N(4)=5, N(5)=4."""
    return SimilarityGraph(
        6,
        np.array([[0, 1], [0, 3], [2, 4], [4, 5]]),
        np.array([0.5, 0.9, 0.7, 0.8]),
        np.array([False, True, True, True]),
        np.array([True, True, False, True]),
        rule,
    )


def all_labels(n: int, states: int = 2) -> np.ndarray:
    return np.array(list(itertools.product(range(states), repeat=n)))


@pytest.mark.parametrize(
    ("rule", "h", "J"),
    [
        ("union", [-0.02, 0.25, 0.19, 0.93, 0.75, 0.96], [-0.5, 0.54, 0.42, -0.32]),
        ("sum", [-0.29, 0.25, 0.19, 0.66, 0.51, 0.72], [-0.5, 1.08, 0.42, 0.16]),
    ],
)
def test_six_node_potentials(rule: str, h: list[float], J: list[float]) -> None:
    model = gibbs_model(six_nodes(rule), [0, 0, 0, 1, 1, 1], [1, 2], lambda_b=0.4, lambda_s=0.3)
    np.testing.assert_allclose(model.clique_fields(), h, atol=1e-15)
    np.testing.assert_allclose(model.merged_couplings(), J, atol=1e-15)
    pairs, couplings = all_pairs(model)
    table = {tuple(p): c for p, c in zip(pairs.tolist(), couplings, strict=True)}
    assert table[0, 2] == table[1, 2] == table[3, 4] == table[3, 5] == -0.8
    assert len(table) == 8  # six bag pairs, two of them edges too, and two edges between bags


def test_printed_fields_only_on_request() -> None:
    printed = gibbs_model(six_nodes(), [0, 0, 0, 1, 1, 1], [1, 2], lambda_b=0.4, lambda_s=0.3, potentials="printed")
    np.testing.assert_allclose(printed.clique_fields(), [0.13, 0.25, 0.19, 0.93, 0.96, 0.96], atol=1e-15)
    exact = gibbs_model(six_nodes("sum"), [0, 0, 0, 1, 1, 1], [1, 2], lambda_b=0.4, lambda_s=0.3)
    np.testing.assert_allclose(printed.couplings, exact.couplings)
    with pytest.raises(ValueError, match="potentials"):
        gibbs_model(six_nodes(), [0, 0, 0, 1, 1, 1], [1, 2], lambda_b=0.4, potentials="other")


def log_law_of(model: GibbsModel, y: np.ndarray) -> np.ndarray:
    pairs, couplings = all_pairs(model)
    log_weight = y @ model.clique_fields() + (y[:, pairs[:, 0]] * y[:, pairs[:, 1]]) @ couplings
    return log_weight - np.logaddexp.reduce(log_weight)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(["union", "sum"]))
def test_pairwise_form_is_the_stated_energy(seed: int, rule: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 2))
    graph = build_graph(X, 2, edge_rule=rule)
    bag_of = rng.integers(0, 3, 7)
    counts, lam, lambda_s, prior = rng.integers(0, 4, 3), rng.random(3), rng.random(), rng.normal(size=7)
    y = all_labels(7)
    energy = -y @ prior
    for b in range(3):
        energy = energy + lam[b] * (y[:, bag_of == b].sum(1) - counts[b]) ** 2
    chosen = np.zeros((7, 7))
    near = inference.nearest(X, 2).index
    chosen[np.arange(7)[:, None], near] = 1
    for i in range(7):
        for j in range(i + 1, 7):
            m = chosen[i, j] + chosen[j, i]
            m = min(m, 1) if rule == "union" else m
            energy = energy + lambda_s * m * np.exp(-np.linalg.norm(X[i] - X[j])) * (y[:, i] - y[:, j]) ** 2
    truth = -energy - np.logaddexp.reduce(-energy)
    model = gibbs_model(graph, bag_of, counts, lambda_b=lam, lambda_s=lambda_s, fields=prior)
    np.testing.assert_allclose(log_law_of(model, y), truth, atol=1e-10)


def test_one_hot_potentials_are_the_multiclass_energy() -> None:
    rng = np.random.default_rng(0)
    n, classes = 3, 3
    graph = build_graph(rng.normal(size=(n, 2)), 1)
    counts = np.array([[1, 1, 0], [0, 0, 1]])
    model = potts_model(graph, [0, 0, 1], counts, lambda_b=[0.3, 0.7], lambda_s=0.4, lambda_o=0.9)
    binary = one_hot(model)
    y = all_labels(n * classes)
    cube = y.reshape(-1, n, classes)
    energy = 0.9 * ((cube.sum(2) - 1) ** 2).sum(1)
    for (i, j), w in zip(graph.edges, graph.weights, strict=True):
        energy = energy + 0.4 * w * ((cube[:, i] - cube[:, j]) ** 2).sum(1)
    for b, rows in enumerate(([0, 1], [2])):
        energy = energy + [0.3, 0.7][b] * ((cube[:, rows].sum(1) - counts[b]) ** 2).sum(1)
    truth = np.exp(-energy - np.logaddexp.reduce(-energy))
    assert 0.5 * np.abs(np.exp(log_law_of(binary, y)) - truth).sum() < 1e-14


def test_edge_filter_keeps_choices_of_rows_with_small_counts() -> None:
    X = np.random.default_rng(1).normal(size=(12, 2))
    graph = build_graph(X, 2)
    bag_of = np.arange(12) // 4
    model = gibbs_model(graph, bag_of, [0, 1, 3], lambda_b=1.0, edge_filter_max_count=1)
    kept = graph.from_rows(bag_of < 2)
    np.testing.assert_array_equal(model.edges, kept.edges)
    assert len(model.edges) < len(graph.edges)


def test_known_noise_sets_the_weight() -> None:
    np.testing.assert_allclose(lambda_of_noise([0.5, 1.0, 4.8448]), [2.0, 0.5, 0.5 / 4.8448**2])
    assert np.isinf(lambda_of_noise(0.0))


def test_repeated_pairs_become_one_factor() -> None:
    edges, couplings = canonical_edges([[3, 1], [1, 3], [0, 2]], [0.5, 0.25, 1.0])
    assert edges.tolist() == [[0, 2], [1, 3]]
    assert couplings.tolist() == [1.0, 0.75]
    empty, none = canonical_edges(np.zeros((0, 2)), [])
    assert empty.shape == (0, 2)
    assert none.shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": np.array([[1, 0]])}, "i < j"),
        ({"edges": np.array([[0, 9]])}, "does not exist"),
        ({"bag_of": np.array([0, 0, 5])}, "bag that does not exist"),
        ({"fields": np.array([0.0, np.nan, 0.0])}, "fields must be finite"),
        ({"lambda_b": np.array([-1.0])}, "negative"),
        ({"lambda_b": np.array([np.inf]), "counts": np.array([1.5])}, "whole numbers"),
        ({"lambda_b": np.array([np.inf]), "counts": np.array([4.0])}, "whole numbers"),
        ({"counts": np.array([1.0, 2.0])}, "one number per bag"),
    ],
)
def test_invalid_models_are_rejected(change: dict, message: str) -> None:
    good = {
        "fields": np.zeros(3),
        "edges": np.array([[0, 1]]),
        "couplings": np.array([0.5]),
        "bag_of": np.zeros(3, dtype=np.int64),
        "counts": np.array([1.0]),
        "lambda_b": np.array([1.0]),
    }
    GibbsModel(**good)
    with pytest.raises(ValueError, match=message):
        GibbsModel(**{**good, **change})


def test_package_offers_its_names_lazily() -> None:
    assert "llpbench_methods" in dir(bp)  # where the plugin manager looks for hooks
    for name in inference.__all__:
        assert getattr(inference, name) is not None
    with pytest.raises(AttributeError):
        _ = inference.nothing_of_the_kind
