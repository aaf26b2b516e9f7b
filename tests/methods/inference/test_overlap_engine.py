"""Belief propagation over counts of overlapping bags: enumeration, today's engine, decoding and the prior's scale."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from llpbench_methods.inference import (
    OscillationWarning,
    OverlapModel,
    SimilarityGraph,
    bag_posterior,
    gibbs_model,
    marginals,
    overlapping_marginals,
)
from llpbench_methods.shared.incidence import sparse_incidence
from llpbench_methods.shared.prior_scale import rescaled

Floats = np.ndarray
SEEDS = st.integers(0, 9999)


def model_of(
    fields: Floats, groupings: list[list[list[int]]], counts: list[float], lam: Floats | float
) -> OverlapModel:
    bags = [bag for grouping in groupings for bag in grouping]
    grouping_of = np.repeat(np.arange(len(groupings)), [len(grouping) for grouping in groupings])
    offsets = np.cumsum([0, *map(len, bags)])
    weights = np.broadcast_to(np.asarray(lam, np.float64), (len(bags),)).copy()
    return OverlapModel(fields, np.concatenate(bags), offsets, grouping_of, np.array(counts, np.float64), weights)


def enumerated(model: OverlapModel) -> Floats:
    """Exact marginals by all labellings."""
    n = len(model.fields)
    labels = np.array(list(product([0, 1], repeat=n)), np.float64)
    logs = labels @ model.fields
    for b, (first, last) in enumerate(zip(model.offsets, model.offsets[1:], strict=False)):
        gap = (labels[:, model.members[first:last]].sum(axis=1) - model.counts[b]) ** 2
        logs += np.where(gap > 0, -np.inf, 0.0) if np.isinf(model.lambda_b[b]) else -model.lambda_b[b] * gap
    weights = np.exp(logs - logs.max())
    return np.asarray(weights @ labels / weights.sum())


@quick
@given(seed=SEEDS, hard=st.booleans())
def test_marginals_of_a_tree_of_bags_are_exact(seed: int, hard: bool) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 9)
    disjoint, links = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[2, 3], [5, 6]]
    counts = [int(truth[bag].sum()) for bag in (*disjoint, *links)]
    noisy = counts if hard else [count + rng.normal() for count in counts]
    model = model_of(rng.normal(size=9), [disjoint, links], noisy, np.inf if hard else rng.uniform(0.1, 2.0, 5))
    found = overlapping_marginals(model, tol=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.beliefs, enumerated(model), atol=1e-6)


@quick
@given(seed=SEEDS)
def test_marginals_of_a_loopy_graph_are_close_to_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    groupings = [np.split(rng.permutation(n), 3) for _ in range(2)]
    truth = rng.integers(0, 2, n)
    lists = [[bag.tolist() for bag in grouping] for grouping in groupings]
    counts = [float(truth[bag].sum() + rng.normal()) for grouping in lists for bag in grouping]
    model = model_of(rng.normal(size=n), lists, counts, 0.5)
    found = overlapping_marginals(model)
    assert found.converged
    assert np.abs(found.beliefs - enumerated(model)).mean() < 0.05


@quick
@given(seed=SEEDS, size=st.sampled_from([3, 20, 150]), noise=st.sampled_from([np.inf, 0.3]))
def test_one_grouping_gives_the_exact_posterior(seed: int, size: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    fields, order = rng.normal(size=2 * size), rng.permutation(2 * size)
    counts = np.array([rng.integers(0, size + 1), rng.integers(0, size + 1)], np.float64)
    model = OverlapModel(fields, order, np.array([0, size, 2 * size]), np.zeros(2, int), counts, np.full(2, noise))
    wanted = np.empty(2 * size)
    wanted[order] = bag_posterior(fields[order], [0, size, 2 * size], counts, noise)
    np.testing.assert_allclose(overlapping_marginals(model).beliefs, wanted, atol=1e-12)


def test_pairs_and_one_grouping_give_the_marginals_of_the_count_engine() -> None:
    rng = np.random.default_rng(0)
    n, bag_of = 24, np.repeat(np.arange(4), 6)
    pairs = np.array([[i, i + 1] for i in range(n - 1)])
    both = np.ones(len(pairs), bool)
    graph = SimilarityGraph(n, pairs, rng.uniform(0.2, 1.0, len(pairs)), both, both)
    fields, counts = rng.normal(size=n), np.array([2.0, 3.0, 1.0, 4.0])
    gibbs = gibbs_model(graph, bag_of, counts, lambda_b=0.4, lambda_s=0.3, fields=fields)
    model = OverlapModel(
        fields, np.arange(n), np.arange(0, 25, 6), np.zeros(4, int), counts, np.full(4, 0.4), graph, 0.3
    )
    wanted = marginals(gibbs, "count", tol=1e-9)
    np.testing.assert_allclose(overlapping_marginals(model, tol=1e-9).beliefs, wanted.beliefs, atol=1e-6)


# -- decoding ----------------------------------------------------------------------------------------------------------


def dealt(size: int, times: int, n: int = 2048, seed: int = 0) -> tuple[OverlapModel, Floats, Floats]:
    """Rows dealt several times into bags of one size, with exact counts; their labels and true log-odds."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1.5, 2.0, n)
    labels = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
    orders = [rng.permutation(n) for _ in range(times)]
    members, bags = np.concatenate(orders), n // size * times
    counts = labels[members].reshape(bags, size).sum(axis=1)
    grouping_of = np.repeat(np.arange(times), n // size)
    offsets = np.arange(0, len(members) + 1, size)
    return OverlapModel(odds, members, offsets, grouping_of, counts, np.full(bags, np.inf)), labels, odds


def with_fields(model: OverlapModel, fields: Floats) -> OverlapModel:
    facts: dict[str, Any] = {name: getattr(model, name) for name in ("members", "offsets", "grouping_of", "counts")}
    return OverlapModel(fields, **facts, lambda_b=model.lambda_b)


@pytest.mark.parametrize(("size", "times", "features"), [(8, 3, True), (32, 12, True), (8, 4, False)])
def test_enough_counts_reveal_every_label(size: int, times: int, features: bool) -> None:
    model, labels, _ = dealt(size, times)
    given_ = model if features else with_fields(model, np.full(len(labels), -1.0))
    found = overlapping_marginals(given_)
    assert found.converged
    np.testing.assert_array_equal(found.beliefs > 0.5, labels)


def test_few_counts_do_not_reveal_labels() -> None:
    model, labels, _ = dealt(8, 1)
    found = overlapping_marginals(with_fields(model, np.full(len(labels), -1.0)))
    assert ((found.beliefs > 0.5) == labels).mean() < 0.9


@pytest.mark.parametrize(("size", "n"), [(512, 4096), (2048, 8192)])
def test_more_counts_never_hurt_a_shrunken_prior(size: int, n: int) -> None:
    quality = []
    for times in (0, 4, 16):
        model, labels, odds = dealt(size, max(times, 1), n, seed=3)
        rng = np.random.default_rng(4)
        shrunken = 0.2 * (odds + rng.normal(0, 1.5, n))
        if not times:
            quality.append(roc_auc_score(labels, shrunken))
            continue
        incidence = sparse_incidence(model.members, model.offsets, n)
        fields, scale = rescaled(shrunken, incidence, model.counts, np.zeros(len(model.counts)), float(labels.mean()))
        assert scale > 1.0
        quality.append(roc_auc_score(labels, overlapping_marginals(with_fields(model, fields)).log_odds))
    assert quality[0] - 1e-3 <= quality[1] <= quality[2] + 1e-3
    assert quality[2] > quality[0]


@pytest.mark.parametrize("factor", [0.25, 1.0, 2.8])
def test_scale_is_that_of_the_labels(factor: float) -> None:
    model, labels, odds = dealt(16, 4, 8192)
    incidence = sparse_incidence(model.members, model.offsets, len(odds))
    nothing = np.zeros(len(model.counts))
    fields, scale = rescaled(odds / factor, incidence, model.counts, nothing, float(labels.mean()))
    assert scale == pytest.approx(factor if factor >= 0.35 else 0.35, rel=0.45)
    assert 1 / (1 + np.exp(-fields)).mean() == pytest.approx(1 / (1 + np.exp(-fields)).mean())
    assert (1 / (1 + np.exp(-fields))).mean() == pytest.approx(labels.mean(), abs=1e-4)


def test_messages_that_do_not_settle_are_reported() -> None:
    model, labels, _ = dealt(8, 3)
    with pytest.warns(OscillationWarning, match="did not settle"):
        found = overlapping_marginals(with_fields(model, np.full(len(labels), -1.0)), rounds=2)
    assert not found.converged
    assert found.residuals[-1] > 1e-3


def test_certain_counts_give_finite_certain_beliefs() -> None:
    model = model_of(np.zeros(4), [[[0, 1], [2, 3]], [[0, 2], [1, 3]]], [2, 0, 1, 1], np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = overlapping_marginals(model)
    np.testing.assert_allclose(found.beliefs, [1, 1, 0, 0], atol=1e-9)
    assert np.isfinite(found.log_odds).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"members": np.array([0, 0, 2, 3])}, "in two bags of one grouping"),
        ({"members": np.array([0, 1, 2, 9])}, "does not exist"),
        ({"counts": np.array([3.0, 0.0])}, "between 0 and the bag size"),
        ({"counts": np.array([np.nan, 0.0])}, "must be finite"),
        ({"offsets": np.array([0, 4, 4])}, "leave no bag empty"),
        ({"grouping_of": np.array([1, 0])}, "in the order of their groupings"),
    ],
)
def test_invalid_models_are_rejected(change: dict[str, Any], said: str) -> None:
    facts: dict[str, Any] = {
        "fields": np.zeros(4),
        "members": np.arange(4),
        "offsets": np.array([0, 2, 4]),
        "grouping_of": np.zeros(2, int),
        "counts": np.array([1.0, 1.0]),
        "lambda_b": np.full(2, np.inf),
    }
    with pytest.raises(ValueError, match=said):
        OverlapModel(**{**facts, **change})
