"""The engines: acceptance values, agreement with brute force and with each other, symmetries, extremes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from llpbench_methods.inference import (
    GibbsModel,
    OscillationWarning,
    PottsModel,
    SimilarityGraph,
    build_graph,
    canonical_edges,
    gibbs_model,
    marginals,
    nearest,
    one_hot,
    potts_model,
)
from llpbench_methods.inference.engines import count_potts
from llpbench_methods.inference.messages import Mode

PAIRWISE = ["reference", "jax", "pairwise", "pgmax"]
QUICK_PAIRWISE = ["reference", "pairwise"]
COUNTING = ["reference-count", "count"]
SINGLE = {"jax", "pairwise", "pgmax"}
NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def close(engine: str) -> float:
    """Allowed difference in p: 1e-6 between float64 engines (we ask more), 1e-4 for float32 (we ask more)."""
    return 1e-5 if engine in SINGLE else 1e-9


def run(model: GibbsModel | PottsModel, engine: str, **options: object) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OscillationWarning)
        result = marginals(model, engine, **options)  # type: ignore[arg-type]
    assert not np.isnan(result.beliefs).any()
    assert not np.isnan(result.log_odds).any()
    return result.beliefs


def random_model(
    seed: int,
    n: int = 40,
    n_bags: int = 6,
    lambda_b: float = 0.15,
    lambda_s: float = 0.5,
    k: int = 2,
    loose: bool = True,
) -> GibbsModel:
    """Uneven bags, an own lambda_b for each, edges inside and between bags, rows in no bag."""
    rng = np.random.default_rng(seed)
    graph = build_graph(rng.normal(size=(n, 3)), k, metric="euclidean")
    bag_of = rng.integers(-1 if loose else 0, n_bags, n)
    sizes = np.bincount(bag_of[bag_of >= 0], minlength=n_bags)
    return gibbs_model(
        graph,
        bag_of,
        rng.binomial(sizes, 0.3),
        lambda_b=lambda_b * np.exp(0.3 * rng.normal(size=n_bags)),
        lambda_s=lambda_s,
        fields=rng.normal(size=n),
    )


def enumerated(model: GibbsModel, mode: str = "sum") -> np.ndarray:
    y = np.array(list(itertools.product([0, 1], repeat=model.n)))
    log_weight = y @ model.fields + (y[:, model.edges[:, 0]] * y[:, model.edges[:, 1]]) @ model.couplings
    for b, lam in enumerate(model.lambda_b):
        s = y[:, model.bag_of == b].sum(1)
        if np.isinf(lam):
            log_weight = np.where(s == model.counts[b], log_weight, -np.inf)
        else:
            log_weight = log_weight - lam * (s - model.counts[b]) ** 2
    total = logsumexp if mode == "sum" else np.max
    odds = np.array([total(log_weight[y[:, i] == 1]) - total(log_weight[y[:, i] == 0]) for i in range(model.n)])
    return 0.5 * (1 + np.tanh(odds / 2))


def six_nodes(rule: str) -> GibbsModel:
    graph = SimilarityGraph(
        6,
        np.array([[0, 1], [0, 3], [2, 4], [4, 5]]),
        np.array([0.5, 0.9, 0.7, 0.8]),
        np.array([False, True, True, True]),
        np.array([True, True, False, True]),
        rule,
    )
    return gibbs_model(graph, [0, 0, 0, 1, 1, 1], [1, 2], lambda_b=0.4, lambda_s=0.3)


EXACT = {
    "union": [0.4335419995, 0.4242200749, 0.4415469497, 0.5548202740, 0.5720656196, 0.5792351392],
    "sum": [0.4405840178, 0.4233817711, 0.4415600637, 0.5409723357, 0.5833929326, 0.5899088562],
}
CLIQUE = {
    "union": [0.4340474582, 0.4249340316, 0.4419857667, 0.5546200022, 0.5717508812, 0.5787453706],
    "sum": [0.4410351953, 0.4241179663, 0.4419973388, 0.5412921442, 0.5838094962, 0.5901420460],
}
COUNT = [0.43527103, 0.42599735, 0.44013832, 0.55681086, 0.56938637, 0.57633417]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["union", "sum"])
def test_six_nodes(rule: str) -> None:
    model = six_nodes(rule)
    np.testing.assert_allclose(enumerated(model), EXACT[rule], atol=5e-11)
    for engine in PAIRWISE:
        tol = 1e-7 if engine in SINGLE else 1e-12
        found = run(model, engine, rounds=200, damping=0.5, tol=tol)
        np.testing.assert_allclose(found, CLIQUE[rule], atol=1e-6 if engine in SINGLE else 6e-11)
    if rule == "union":
        for engine in COUNTING:
            np.testing.assert_allclose(run(model, engine, rounds=200, damping=0.0, tol=1e-12), COUNT, atol=6e-9)


@pytest.mark.parametrize("engine", [*PAIRWISE, *COUNTING])
def test_chain_of_four_is_exact(engine: str) -> None:
    model = GibbsModel(
        np.array([0.3, -0.5, 0.2, 0.7]),
        np.array([[0, 1], [1, 2], [2, 3]]),
        np.array([1.2, -0.8, 0.5]),
        np.full(4, -1),
        np.zeros(0),
        np.zeros(0),
    )
    truth = [0.6908768233, 0.4788934650, 0.5425328384, 0.7226238957]
    np.testing.assert_allclose(enumerated(model), truth, atol=5e-11)
    found = run(model, engine, rounds=50, damping=0.0, tol=1e-12 if engine not in SINGLE else 1e-7)
    np.testing.assert_allclose(found, truth, atol=3e-7 if engine in SINGLE else 6e-11)


TABLE = [
    (8, 2, 0.4427, 0.33743646, 0.34870133, 0.061, 0.348701),
    (32, 8, 0.1659, 0.31950788, 0.32578167, 0.361, 0.325782),
    (128, 31, 0.3422, 0.25435623, 0.28230248, 0.883, None),
    (512, 123, 0.0796, 0.25345805, 0.25999166, 0.878, None),
    (1024, 246, 0.0576, 0.24955689, 0.25449333, 0.914, None),
    (2048, 492, 0.0184, 0.25448779, 0.25598437, 0.870, None),
    (8, 1, 10.0, 0.12501915, 0.43476246, 0.644, None),
]


@pytest.mark.parametrize(("size", "count", "lam", "exact", "fixed", "least", "half"), TABLE)
def test_symmetric_bags(
    size: int, count: int, lam: float, exact: float, fixed: float, least: float, half: float | None
) -> None:
    model = gibbs_model(None, np.zeros(size, dtype=int), [count], lambda_b=lam)
    np.testing.assert_allclose(run(model, "count"), exact, atol=5.1e-9)
    if size <= 128:
        # Started from equal messages the bag stays symmetric: the fixed point at the damping the slope asks for ...
        found = run(model, "reference", rounds=600, damping=least + 0.05, tol=1e-12)
        np.testing.assert_allclose(found, fixed, atol=1e-8)
        found = run(model, "pairwise", rounds=600, damping=least + 0.05, tol=1e-6)
        np.testing.assert_allclose(found, fixed, atol=1e-4)
    if half is not None:  # ... and where a damping of 1/2 suffices, the paper's setting reaches it
        np.testing.assert_allclose(run(model, "reference", rounds=100, damping=0.5, tol=0.0), half, atol=6e-7)
    else:
        with pytest.warns(OscillationWarning, match="stability index"):
            result = marginals(model, "pairwise", rounds=100, damping=0.5, tol=1e-4)
        assert not result.converged
        assert result.residuals[-1] > 1.0


@pytest.mark.slow
def test_published_oscillation_is_reproduced() -> None:
    model = gibbs_model(None, np.zeros(128, dtype=int), [31], lambda_b=0.3422)
    for rounds, phase in ((98, 2e-13), (99, 0.016), (100, 0.9996), (101, 2e-13)):
        for engine in ("reference", "pairwise", "pgmax"):
            mean = run(model, engine, rounds=rounds, damping=0.5, tol=0.0).mean()
            assert mean == pytest.approx(phase, rel=0.2 if phase < 1e-9 else 3e-3)
    np.testing.assert_allclose(run(model, "pairwise", rounds=400, damping=0.9, tol=1e-6), 0.2823, atol=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jax", "pairwise", "pgmax"])
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.3])
def test_pairwise_engines_agree_round_by_round(engine: str, damping: float) -> None:
    model = random_model(1, n=60, lambda_b=0.1)
    for rounds in (1, 3, 10):
        truth = run(model, "reference", rounds=rounds, damping=damping, tol=0.0)
        found = run(model, engine, rounds=rounds, damping=damping, tol=0.0)
        np.testing.assert_allclose(found, truth, atol=1e-5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.02, 0.3, 2.0, 9.0, 40.0]),
    st.sampled_from([0.0, 0.3, 5.0, 90.0, 1000.0]),
    st.sampled_from([0.0, 0.5, 0.25, 0.9]),
    st.sampled_from([0, 1024]),
    st.integers(1, 2),
)
def test_numba_rounds_equal_the_reference(
    seed: int, lambda_b: float, lambda_s: float, damping: float, lane_limit: int, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    n_bags = int(rng.integers(1, 30))
    model = random_model(seed, int(rng.integers(2, 90)), n_bags, lambda_b, lambda_s, k=1)
    truth = run(model, "reference", rounds=4, damping=damping, tol=0.0)
    found = run(model, "pairwise", rounds=4, damping=damping, tol=0.0, threads=threads, lane_limit=lane_limit)
    np.testing.assert_allclose(found, truth, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "bags", "lambda_b"), [(700, 2, 0.004), (700, 2, 0.5), (640, 32, 0.05), (640, 32, 6.0)]
)
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.8])
def test_long_products_of_messages(rows: int, bags: int, lambda_b: float, damping: float) -> None:
    """Large bags and strong couplings: products of messages far below the smallest float32 (and float64)."""
    model = random_model(5, rows, bags, lambda_b)
    truth = marginals_quietly(model, "reference", damping)
    for lane_limit in (0, 1024):
        found = marginals_quietly(model, "pairwise", damping, lane_limit=lane_limit)
        np.testing.assert_allclose(found.beliefs, truth.beliefs, atol=2e-4)
        np.testing.assert_allclose(found.residuals, truth.residuals, rtol=1e-3, atol=1e-3)


def marginals_quietly(model: GibbsModel, engine: str, damping: float, **options: object):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OscillationWarning)
        return marginals(model, engine, rounds=5, damping=damping, tol=0.0, **options)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1e-6, 0.2, 3.0, 1e6, np.inf]),
    st.sampled_from([0.0, 0.3, 5.0, 200.0, 1e4]),
    st.sampled_from([0.0, 0.5, 0.3]),
    st.sampled_from(["sum", "max"]),
    st.integers(1, 2),
)
def test_count_equals_its_reference(
    seed: int, lambda_b: float, lambda_s: float, damping: float, mode: str, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(seed, int(rng.integers(2, 60)), int(rng.integers(1, 10)), 1.0, lambda_s, k=1)
    model = replace(model, lambda_b=np.full(len(model.counts), lambda_b))
    truth = run(model, "reference-count", rounds=5, damping=damping, tol=0.0, mode=mode)
    found = run(model, "count", rounds=5, damping=damping, tol=0.0, mode=mode, threads=threads)
    np.testing.assert_allclose(found, truth, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 0.3, 4.0, 1e6, np.inf]), st.sampled_from(["sum", "max"]))
def test_count_without_edges_is_exact(seed: int, lambda_b: float, mode: str) -> None:
    rng = np.random.default_rng(seed)
    bag_of = rng.integers(-1, 3, 10)
    sizes = np.bincount(bag_of[bag_of >= 0], minlength=3)
    model = gibbs_model(None, bag_of, rng.binomial(sizes, 0.4), lambda_b=lambda_b, fields=3 * rng.normal(size=10))
    for engine in COUNTING:
        np.testing.assert_allclose(run(model, engine, mode=mode), enumerated(model, mode), atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["sum", "max"]))
def test_trees_are_exact(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    parent = [int(rng.integers(0, i)) for i in range(1, n)]
    edges, couplings = canonical_edges([[p, i] for i, p in enumerate(parent, 1)], rng.normal(0, 2, n - 1))
    model = GibbsModel(rng.normal(0, 2, n), edges, couplings, np.full(n, -1), np.zeros(0), np.zeros(0))
    truth = enumerated(model, mode)
    for engine in (*QUICK_PAIRWISE, *COUNTING):
        found = run(model, engine, rounds=n, damping=0.0, tol=0.0, mode=mode)
        np.testing.assert_allclose(found, truth, atol=1e-9)


@pytest.mark.parametrize("engine", ["jax", "pgmax"])
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_tree_by_the_jax_engines(engine: str, mode: str) -> None:
    rng = np.random.default_rng(8)
    edges, couplings = canonical_edges([[0, 1], [0, 2], [1, 3], [1, 4], [2, 5]], rng.normal(0, 2, 5))
    model = GibbsModel(rng.normal(size=6), edges, couplings, np.full(6, -1), np.zeros(0), np.zeros(0))
    found = run(model, engine, rounds=8, damping=0.0, tol=0.0, mode=mode)
    np.testing.assert_allclose(found, enumerated(model, mode), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_max_product_equals_pgmax_at_temperature_zero(damping: float) -> None:
    model = random_model(3, n=50, lambda_b=0.2)
    theirs = run(model, "pgmax", rounds=8, damping=damping, tol=0.0, mode="max")
    for engine in ("reference", "pairwise", "jax"):
        ours = run(model, engine, rounds=8, damping=damping, tol=0.0, mode="max")
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def flipped(model: GibbsModel) -> GibbsModel:
    """The law of `1 - y`."""
    into = np.bincount(model.edges.ravel(), np.repeat(model.couplings, 2), minlength=model.n)
    return replace(model, fields=-model.fields - into, counts=model.bags.sizes - model.counts)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 2.0]))
def test_flipping_all_labels(seed: int, lambda_b: float) -> None:
    model = random_model(seed, lambda_b=lambda_b)
    for engine in COUNTING:
        p = run(model, engine, rounds=6, damping=0.2, tol=0.0)
        np.testing.assert_allclose(run(flipped(model), engine, rounds=6, damping=0.2, tol=0.0), 1 - p, atol=1e-8)
    # Zero messages are not a symmetric start for the cliques, so there the fixed points are compared.
    weak = replace(model, lambda_b=0.1 * model.lambda_b / lambda_b)
    for engine in QUICK_PAIRWISE:
        options = {"rounds": 400, "damping": 0.5, "tol": 1e-9 if engine == "reference" else 2e-6}
        np.testing.assert_allclose(run(flipped(weak), engine, **options), 1 - run(weak, engine, **options), atol=1e-4)


def test_printed_field_breaks_the_flip() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    bag_of, counts = np.arange(12) // 4, np.array([1, 2, 1])

    def both(potentials: str) -> float:
        p, q = (
            run(gibbs_model(build_graph(X, 2), bag_of, c, lambda_b=0.1, potentials=potentials), "count", tol=1e-10)
            for c in (counts, 4 - counts)
        )
        return float(np.abs(p + q - 1).max())

    assert both("exact") < 1e-8
    assert both("printed") > 0.05


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_rows_and_bags_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(seed)
    rows, bags = rng.permutation(model.n), rng.permutation(len(model.counts))
    place, new_bag = np.argsort(rows), np.append(np.argsort(bags), -1)
    edges, couplings = canonical_edges(place[model.edges], model.couplings)
    shuffled = GibbsModel(
        model.fields[rows], edges, couplings, new_bag[model.bag_of[rows]], model.counts[bags], model.lambda_b[bags]
    )
    for engine in (*QUICK_PAIRWISE, *COUNTING):
        p = run(model, engine, rounds=6, damping=0.5, tol=0.0)
        np.testing.assert_allclose(run(shuffled, engine, rounds=6, damping=0.5, tol=0.0), p[rows], atol=close(engine))


@pytest.mark.parametrize("engine", [*PAIRWISE, *COUNTING])
def test_single_rows_as_bags(engine: str) -> None:
    rng = np.random.default_rng(0)
    counts, lam, fields = rng.integers(0, 2, 6), rng.random(6), rng.normal(size=6)
    model = gibbs_model(None, np.arange(6), counts, lambda_b=lam, fields=fields)
    truth = 1 / (1 + np.exp(-fields - lam * (2 * counts - 1)))
    np.testing.assert_allclose(run(model, engine, damping=0.0, rounds=3), truth, atol=1e-6)


@pytest.mark.parametrize("engine", COUNTING)
def test_counts_of_zero_and_of_all_rows(engine: str) -> None:
    graph = build_graph(np.random.default_rng(0).normal(size=(12, 2)), 2)
    model = gibbs_model(graph, np.arange(12) // 4, [0, 4, 2], lambda_b=np.inf, fields=np.linspace(-3, 3, 12))
    p = run(model, engine, rounds=50, damping=0.3)
    assert (p[:4] == 0.0).all()
    assert (p[4:8] == 1.0).all()
    np.testing.assert_allclose(p[8:].sum(), 2.0, atol=1e-5)
    free = gibbs_model(None, np.arange(12) // 4, [1, 2, 3], lambda_b=np.inf)
    np.testing.assert_allclose(run(free, engine), np.repeat([0.25, 0.5, 0.75], 4), rtol=1e-12)
    np.testing.assert_allclose(run(replace(free, lambda_b=np.zeros(3)), engine), 0.5)
    with pytest.raises(ValueError, match="use engine='count'"):
        marginals(free, "pairwise")


@pytest.mark.parametrize("engine", [*QUICK_PAIRWISE, *COUNTING])
def test_infinitely_strong_edge_makes_its_ends_equal(engine: str) -> None:
    graph = SimilarityGraph(4, np.array([[0, 2]]), np.ones(1), np.array([True]), np.array([True]))
    model = gibbs_model(graph, [0, 0, 1, 1], [0, 2], lambda_b=0.2, lambda_s=1e6, fields=[0.5, 0.1, -1.5, 0.3])
    p = run(model, engine, rounds=200, damping=0.5, tol=1e-10)
    assert abs(p[0] - p[2]) < 1e-6
    np.testing.assert_allclose(p, enumerated(model), atol=0.02)


@pytest.mark.parametrize("engine", [*PAIRWISE, *COUNTING])
def test_empty_edge_set_and_no_rounds(engine: str) -> None:
    model = GibbsModel(np.array([0.5, -0.5]), NO_EDGES, np.zeros(0), np.full(2, -1), np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(run(model, engine, damping=0.0, rounds=5), 1 / (1 + np.exp([-0.5, 0.5])), atol=1e-6)
    result = marginals(model, engine, rounds=0, damping=0.0)
    assert result.rounds == 0
    assert not result.converged


@pytest.mark.slow
def test_one_giant_bag() -> None:
    rng = np.random.default_rng(0)
    graph = build_graph(rng.normal(size=(1500, 2)), 1, metric="euclidean")
    model = gibbs_model(graph, np.zeros(1500, dtype=int), [400], lambda_b=0.002, fields=rng.normal(size=1500))
    truth = run(model, "reference", rounds=6, damping=0.5, tol=0.0)
    np.testing.assert_allclose(run(model, "pairwise", rounds=6, damping=0.5, tol=0.0), truth, atol=1e-5)
    counted = run(model, "reference-count", rounds=3, damping=0.0, tol=0.0)
    np.testing.assert_allclose(run(model, "count", rounds=3, damping=0.0, tol=0.0), counted, atol=1e-9)
    hard = replace(model, lambda_b=np.array([np.inf]))
    np.testing.assert_allclose(run(hard, "count", rounds=100, tol=1e-9).sum(), 400, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
    st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    st.sampled_from([0.0, 0.5, 0.7]),
    st.sampled_from(["sum", "max"]),
)
def test_no_nan_for_any_finite_input(
    seed: int, lambda_b: float, lambda_s: float, field: float, damping: float, mode: str
) -> None:
    model = random_model(seed, 24, 4, lambda_b, lambda_s)
    model = replace(model, fields=model.fields + field * np.random.default_rng(seed).choice([-1, 0, 1], 24))
    for engine in (*QUICK_PAIRWISE, *COUNTING):
        p = run(model, engine, rounds=5, damping=damping, tol=0.0, mode=mode)
        assert ((p >= 0) & (p <= 1)).all()
    if np.isfinite(lambda_b):
        noisy = replace(model, counts=model.counts + 7.3)
        run(noisy, "count", rounds=3, damping=damping, mode=mode)
    hard = replace(model, lambda_b=np.full(4, np.inf))
    run(hard, "count", rounds=5, damping=damping, mode=mode)


@pytest.mark.parametrize("mode", ["sum", "max"])
def test_no_nan_in_float32_either(mode: str) -> None:
    model = random_model(4, 24, 4)
    for lambda_b, lambda_s, field in itertools.product([1e-6, 1e6], [1.0, 1e6], [0.0, 1e6]):
        extreme = replace(
            model,
            lambda_b=np.full(4, lambda_b),
            couplings=model.couplings * lambda_s,
            fields=model.fields * max(1.0, field),
        )
        p = run(extreme, "jax", rounds=5, damping=0.5, tol=0.0, mode=mode)
        assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.parametrize("field", [1e3, -1e3])
@pytest.mark.parametrize("engine", [*PAIRWISE, *COUNTING])
def test_fields_of_a_thousand(engine: str, field: float) -> None:
    model = random_model(2, 12, 3, 0.2)
    model = replace(model, fields=model.fields + np.where(np.arange(12) < 4, field, 0.0))
    p = run(model, engine, rounds=60, damping=0.5, tol=1e-6)
    np.testing.assert_allclose(p[:4], 1.0 if field > 0 else 0.0, atol=1e-12)
    np.testing.assert_allclose(p, enumerated(model), atol=0.05)


@pytest.mark.parametrize(
    ("lambda_b", "clique_at_least", "count_at_most"),
    [(0.44, 0.005, 0.0015), (3.0, 0.35, 0.003), (20.0, 0.35, 0.003)],
)
def test_counting_is_near_the_truth_where_cliques_are_not(
    lambda_b: float, clique_at_least: float, count_at_most: float
) -> None:
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graph = build_graph(rng.normal(size=(16, 5)), 1, metric="euclidean")
        model = gibbs_model(graph, rng.permutation(16) // 8, [2, 3], lambda_b=lambda_b, lambda_s=0.5)
        truth = enumerated(model)
        errors.append(
            [
                np.abs(run(model, "pairwise", rounds=100, damping=0.5, tol=0.0) - truth).mean(),
                np.abs(run(model, "count", tol=1e-9) - truth).mean(),
            ]
        )
    clique, count = np.mean(errors, axis=0)
    assert clique > clique_at_least
    assert count < count_at_most


def test_unknown_names_and_values_are_rejected() -> None:
    model = six_nodes("union")
    with pytest.raises(ValueError, match="unknown engine 'loopy'"):
        marginals(model, "loopy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown mode"):
        marginals(model, "count", mode="mean")  # type: ignore[arg-type]
    for damping in (1.0, -0.1):
        with pytest.raises(ValueError, match="damping"):
            marginals(model, "count", damping=damping)


def random_potts(seed: int, lambda_b: float, n: int = 24, classes: int = 3, spread: float = 1.0) -> PottsModel:
    rng = np.random.default_rng(seed)
    graph = build_graph(rng.normal(size=(n, 2)), 2)
    bag_of = rng.integers(0, 4, n)
    counts = np.zeros((4, classes))
    np.add.at(counts, (bag_of, rng.integers(0, classes, n)), 1)
    fields = spread * rng.normal(size=(n, classes))
    return potts_model(graph, bag_of, counts, lambda_b=lambda_b, lambda_s=0.4, fields=fields)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 0.3, 10.0, 1e6, np.inf]),
    st.sampled_from(["sum", "max"]),
    st.integers(2, 4),
)
def test_multiclass_count_equals_its_reference(seed: int, lambda_b: float, mode: str, classes: int) -> None:
    model = random_potts(seed, lambda_b, classes=classes)
    truth = run(model, "reference-count", rounds=5, damping=0.3, tol=0.0, mode=mode)
    found = run(model, "count", rounds=5, damping=0.3, tol=0.0, mode=mode)
    np.testing.assert_allclose(found, truth, atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-9)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("lambda_b", [0.0, 0.3, 10.0, np.inf])
def test_both_forms_of_the_multiclass_engine_agree(lambda_b: float, damping: float) -> None:
    model = random_potts(3, lambda_b, classes=4)
    layout = count_potts._PottsLayout(model)
    forms = [count_potts.PottsInOdds(model, layout), count_potts.PottsInLogs(model, layout, "sum")]
    fast, slow = (form.advance(20, damping, 0.0) for form in forms)
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    fast, slow = (np.exp(form.log_odds()) for form in forms)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_form_of_the_multiclass_engine_suits_the_model() -> None:
    def form(mode: Mode = "sum", **kwargs: float) -> type:
        return type(count_potts.start_potts(random_potts(0, **{"lambda_b": 1.0, **kwargs}), mode))

    assert form() is form(lambda_b=np.inf) is count_potts.PottsInOdds
    assert form("max") is form(lambda_b=1e6) is form(spread=1e3) is count_potts.PottsInLogs


def test_multiclass_count_is_near_the_truth() -> None:
    rng = np.random.default_rng(0)
    n, classes = 8, 3
    graph = build_graph(rng.normal(size=(n, 2)), 1)
    counts = np.array([[2, 1, 1], [0, 1, 3]])
    fields = rng.normal(size=(n, classes))
    model = potts_model(graph, np.arange(n) // 4, counts, lambda_b=0.5, lambda_s=0.3, fields=fields)
    x = np.array(list(itertools.product(range(classes), repeat=n)))
    log_weight = fields[np.arange(n), x].sum(1)
    for (i, j), w in zip(model.edges, model.weights, strict=True):
        log_weight = log_weight - 2 * w * (x[:, i] != x[:, j])
    for b in range(2):
        for c in range(classes):
            log_weight = log_weight - 0.5 * ((x[:, 4 * b : 4 * b + 4] == c).sum(1) - counts[b, c]) ** 2
    p = np.exp(log_weight - logsumexp(log_weight))
    truth = np.stack([((x == c) * p[:, None]).sum(0) for c in range(classes)], axis=1)
    assert np.abs(run(model, "count", tol=1e-9) - truth).mean() < 0.02
    assert np.abs(0 * truth + 1 / 3 - truth).mean() > 0.1


@pytest.mark.parametrize("engine", ["jax", "pairwise", "pgmax"])
def test_multiclass_by_indicators(engine: str) -> None:
    model = random_potts(1, 0.1, n=16)
    truth = run(one_hot(model), "reference", rounds=6, damping=0.5, tol=0.0).reshape(16, 3)
    np.testing.assert_allclose(run(model, engine, rounds=6, damping=0.5, tol=0.0), truth, atol=1e-5)


@pytest.mark.slow
def test_second_process_does_not_compile_again(tmp_path: Path) -> None:
    script = (
        "import numpy as np\n"
        "from llpbench_methods.inference.compiled.edges import edges_in_logs as f\n"
        "i, x = np.zeros(1, np.int32), np.zeros(1)\n"
        "f(i, i, x, x, x, x, 0.5, False, x)\n"
        "print(sum(f.stats.cache_misses.values()), sum(f.stats.cache_hits.values()))"
    )
    environment = {**os.environ, "LLPBENCH_CACHE": str(tmp_path)}
    seen = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert [line.split() for line in seen] == [["1", "0"], ["0", "1"]]


def test_lattice_neighbours_reach_the_model() -> None:
    X = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2).astype(float)
    assert (nearest(X, 1, "euclidean").distance == 1.0).all()
    graph = build_graph(X, 1, metric="euclidean")
    model = gibbs_model(graph, np.arange(16) // 4, [1, 2, 3, 4], lambda_b=1.0)
    assert marginals(model).converged
