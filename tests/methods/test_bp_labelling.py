"""How `bp` makes its marginals: the gain, the relaxed field, averaging over settings, and the paper's own inference."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from llpbench_methods.bp.ensemble import CERTAIN, Member, average, label_by_all, members_of
from llpbench_methods.bp.field import find_field

from llpbench import Bags
from llpbench_methods.bp.labelling import (
    CARRYING_GAIN,
    SMOOTHING_GAIN,
    SimilarityGraphs,
    gibbs_law,
    label_marginals,
    similarity_weight,
)
from llpbench_methods.bp.params import BPSettings
from llpbench_methods.bp.preset import paper, rows
from llpbench_methods.inference import build_graph, gibbs_model, marginals

SINGLE = BPSettings(relaxed="off", ensemble="off")


def graph_of(X, settings, seed=0):
    return SimilarityGraphs(X, settings, settings.k, seed=seed).of(settings.k)


def bags_of(X, y, size, classes=2, count_sd=0.0, rng=None):
    n = len(y) // size * size
    offsets = np.arange(0, n + 1, size)
    counts = np.add.reduceat(np.eye(classes)[y[:n]], offsets[:-1], axis=0)
    counts = counts[:, 1:] if classes == 2 else counts
    if count_sd:
        counts = counts + count_sd * rng.normal(size=counts.shape)
    return Bags(X[:n].astype(np.float32), offsets, counts, classes, count_sd)


def clouds(n=600, size=20, classes=2, seed=0, rate=0.3, count_sd=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=[1 - rate, *[rate / (classes - 1)] * (classes - 1)])
    X = rng.normal(size=(n, 4)) + 3.0 * np.eye(4)[y]
    return bags_of(X, y, size, classes, count_sd, rng), y


# The gain.


@given(st.floats(0.02, 0.98), st.floats(0.1, 2.0))
@quick
def test_gain_is_how_a_small_change_of_all_neighbours_comes_back(rate, gain):
    """Rows on a ring, all at the same log-odds: one undamped round multiplies a small common change by the gain."""
    n, shift = 12, 1e-4
    bags = Bags(np.zeros((n, 1), np.float32), np.array([0, n]), np.array([[rate * n]]))
    weight = similarity_weight(bags, BPSettings(gain=gain))
    assert weight == pytest.approx(gain / (2 * rate * (1 - rate)))
    # Many weak neighbours, so that a message is linear in its weight: pull 1 spread over 1000 pairs.
    w, odds = weight / 1000, np.log(rate / (1 - rate))
    message = np.logaddexp(odds + np.array([0, shift]) + 2 * w, 0) - np.logaddexp(odds + np.array([0, shift]), 0)
    assert 1000 * (message[1] - message[0]) / shift == pytest.approx(gain, rel=0.2)


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=6), st.floats(0.1, 2.0))
@quick
def test_gain_of_many_classes_is_the_largest_return(raw, gain):
    shares = np.array(raw) / np.sum(raw)
    shares = np.clip(shares, 0.02, 1)
    shares /= shares.sum()
    bags = Bags(np.zeros((1000, 1), np.float32), np.array([0, 1000]), 1000 * shares[None], len(shares))
    weight = similarity_weight(bags, BPSettings(gain=gain))
    returns = np.linalg.eigvals(2 * weight * (np.diag(shares) - np.outer(shares, shares)))
    assert np.abs(returns).max() == pytest.approx(gain)


def test_lambda_s_overrides_the_gain_and_auto_depends_on_the_field():
    bags, _ = clouds()
    assert similarity_weight(bags, BPSettings(lambda_s=3.0, gain=1.5)) == 3.0
    auto, fixed = BPSettings(), BPSettings(gain=CARRYING_GAIN)
    assert similarity_weight(bags, auto) == similarity_weight(bags, fixed)
    assert similarity_weight(bags, auto, field=True) == pytest.approx(
        similarity_weight(bags, fixed) * SMOOTHING_GAIN / CARRYING_GAIN
    )


@pytest.mark.parametrize("count", [0.0, 20.0])
def test_rate_of_zero_or_one_gives_a_finite_weight(count):
    bags = Bags(np.zeros((20, 1), np.float32), np.array([0, 20]), np.array([[count]]))
    assert np.isfinite(similarity_weight(bags, BPSettings()))


# Graphs of several numbers of neighbours.


def test_one_search_serves_all_numbers_of_neighbours():
    bags, _ = clouds()
    settings = BPSettings()
    many = SimilarityGraphs(bags.X, settings, 20, seed=0)
    for k in (5, 10, 20):
        alone = graph_of(bags.X, replace(settings, k=k))
        np.testing.assert_array_equal(many.of(k).edges, alone.edges)
        np.testing.assert_allclose(many.of(k).similarity, alone.similarity, rtol=1e-12)


# The relaxed field.


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("count_sd", [0.0, 1.0])
def test_field_is_a_prior_that_knows_the_labels(classes, count_sd):
    bags, y = clouds(classes=classes, count_sd=count_sd)
    graph = graph_of(bags.X, BPSettings())
    field = find_field(graph, bags, BPSettings(), seed=0)
    assert field.gain > 3.0
    assert field.potentials.shape == ((600,) if classes == 2 else (600, 3))
    found = label_marginals(graph, bags, BPSettings(), fields=field.potentials)
    beliefs = found.marginals.beliefs
    guess = beliefs > 0.5 if classes == 2 else beliefs.argmax(axis=1)
    assert np.mean(guess == y) > 0.85


def test_auto_omits_a_field_that_held_out_bags_contradict():
    rng = np.random.default_rng(0)
    bags, _ = clouds(n=2400, size=8)
    noise = replace(bags, counts=rng.permutation(bags.counts))
    graph = graph_of(bags.X, BPSettings())
    assert find_field(graph, bags, BPSettings(), seed=0).potentials is not None
    declined = find_field(graph, noise, BPSettings(), seed=0)
    assert declined.potentials is None
    assert declined.gain < -3.0
    assert find_field(graph, noise, BPSettings(relaxed="on"), seed=0).potentials is not None
    nothing = find_field(graph, bags, BPSettings(relaxed="off"), seed=0)
    assert (nothing.potentials, nothing.gain) == (None, None)


# Averaging.


def test_ensemble_members_by_setting():
    nine = members_of(BPSettings(), 2, field=False)
    assert sorted({member.k for member in nine}) == [5, 10, 20]
    assert len(nine) == 9
    assert members_of(BPSettings(), 2, field=True) == (Member(10),)
    assert len(members_of(BPSettings(ensemble="on"), 2, field=True)) == 9
    assert members_of(BPSettings(ensemble="off"), 2, field=False) == (Member(10),)
    assert members_of(BPSettings(ensemble="on"), 3, field=False) == (Member(10),)
    assert len(members_of(BPSettings(k=1), 2, field=False)) == 6  # of 1 and 2 neighbours


def test_single_member_is_the_single_run():
    bags, _ = clouds()
    graphs = SimilarityGraphs(bags.X, SINGLE, 10, seed=0)
    alone = label_marginals(graphs.of(10), bags, SINGLE).marginals
    one = label_by_all((Member(10),), graphs.of, bags, SINGLE).marginals
    np.testing.assert_array_equal(one.log_odds, alone.log_odds)
    assert one.rounds == alone.rounds


def test_average_clips_log_odds_and_reports_the_worst_residual():
    bags, _ = clouds()
    settings = replace(SINGLE, rounds=100)
    graphs = SimilarityGraphs(bags.X, settings, 10, seed=0)
    members = (Member(5), Member(10, 1.5))
    found = label_by_all(members, graphs.of, bags, settings).marginals
    short = replace(settings, rounds=20)
    runs = [label_marginals(graphs.of(m.k), bags, short, strength=m.strength).marginals for m in members]
    expected = np.mean([np.clip(run.log_odds, -CERTAIN, CERTAIN) for run in runs], axis=0)
    np.testing.assert_array_equal(found.log_odds, expected)
    np.testing.assert_allclose(found.beliefs, 1 / (1 + np.exp(-expected)))
    assert found.converged == all(run.converged for run in runs)
    assert found.rounds == sum(run.rounds for run in runs)
    same = average([label_marginals(graphs.of(5), bags, short)] * 3).marginals
    np.testing.assert_allclose(same.log_odds, np.clip(runs[0].log_odds, -CERTAIN, CERTAIN))


# The paper's inference.


@pytest.mark.parametrize(("dataset", "bag_size"), [("adult", 8), ("marketing", 128), ("cifar-s", 128)])
def test_preset_is_the_printed_law_on_the_plain_graph(dataset, bag_size):
    """No field, no average, no scaling: the same numbers as the library's own steps give."""
    assert (dataset, bag_size) in rows()
    values = paper(dataset, bag_size)
    known = {name: value for name, value in values.items() if name in vars(BPSettings())}
    settings = replace(BPSettings(**known), rounds=10)
    bags, _ = clouds(n=320, size=8)
    assert find_field(None, bags, settings, seed=0).potentials is None
    (member,) = members_of(settings, 2, field=False)
    graphs = SimilarityGraphs(bags.X, settings, settings.k, seed=0)
    found = label_by_all((member,), graphs.of, bags, settings).marginals
    graph = build_graph(bags.X, settings.k, delta_d=settings.delta_d)
    law = gibbs_model(graph, bags.bag_of, bags.counts[:, 0], lambda_b=settings.lambda_b, lambda_s=settings.lambda_s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = marginals(law, "pairwise", rounds=10, damping=0.5)
    np.testing.assert_array_equal(found.log_odds, plain.log_odds)


def test_fields_reach_the_law():
    bags, _ = clouds()
    graph = graph_of(bags.X, SINGLE)
    fields = np.linspace(-1, 1, 600)
    without, given_them = (
        gibbs_law(graph, bags, SINGLE),
        gibbs_law(graph, bags, replace(SINGLE, gain=1.1), fields=fields),
    )
    np.testing.assert_allclose(given_them.fields - without.fields, fields, atol=1e-12)
