"""`bp-field`: the gain, the relaxed field, averaging over settings, and the method as a whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from llpbench import Bags, QuietMonitor
from llpbench.plugins.registry import load_registry
from llpbench_methods.bp_field.covariates import side_by_side
from llpbench_methods.bp_field.ensemble import CERTAIN, Member, average, label_by_all, members_of
from llpbench_methods.bp_field.field import Field, find_field, linear_potentials
from llpbench_methods.bp_field.labelling import (
    CARRYING_GAIN,
    SMOOTHING_GAIN,
    SimilarityGraphs,
    bag_weights,
    label_marginals,
    similarity_weight,
)
from llpbench_methods.bp_field.method import BPField
from llpbench_methods.bp_field.params import NETWORK, FieldSettings, field_params
from llpbench_methods.bp_field.trend import LinearTrend
from llpbench_methods.inference import Observed, relaxed_field

SINGLE = FieldSettings(relaxed="off", ensemble="off")


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
    weight = similarity_weight(bags, FieldSettings(gain=gain))
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
    weight = similarity_weight(bags, FieldSettings(gain=gain))
    returns = np.linalg.eigvals(2 * weight * (np.diag(shares) - np.outer(shares, shares)))
    assert np.abs(returns).max() == pytest.approx(gain)


def test_lambda_s_overrides_the_gain_and_auto_depends_on_the_field():
    bags, _ = clouds()
    assert similarity_weight(bags, FieldSettings(lambda_s=3.0, gain=1.5)) == 3.0
    auto, fixed = FieldSettings(), FieldSettings(gain=CARRYING_GAIN)
    assert similarity_weight(bags, auto) == similarity_weight(bags, fixed)
    assert similarity_weight(bags, auto, field=True) == pytest.approx(
        similarity_weight(bags, fixed) * SMOOTHING_GAIN / CARRYING_GAIN
    )


@pytest.mark.parametrize("count", [0.0, 20.0])
def test_rate_of_zero_or_one_gives_a_finite_weight(count):
    bags = Bags(np.zeros((20, 1), np.float32), np.array([0, 20]), np.array([[count]]))
    assert np.isfinite(similarity_weight(bags, FieldSettings()))


# Graphs of several numbers of neighbours.


def test_one_search_serves_all_numbers_of_neighbours():
    bags, _ = clouds()
    settings = FieldSettings()
    many = SimilarityGraphs(bags.X, settings, 20, seed=0)
    for k in (5, 10, 20):
        alone = graph_of(bags.X, replace(settings, k=k))
        np.testing.assert_array_equal(many.of(k).edges, alone.edges)
        np.testing.assert_allclose(many.of(k).similarity, alone.similarity, rtol=1e-12)


# The relaxed field.

OLD = FieldSettings(relaxed="auto")


@pytest.mark.parametrize("relaxed", ["evidence", "auto"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("count_sd", [0.0, 1.0])
def test_prior_knows_the_labels(classes, count_sd, relaxed):
    settings = FieldSettings(relaxed=relaxed)
    bags, y = clouds(classes=classes, count_sd=count_sd)
    graph = graph_of(bags.X, settings)
    field = find_field(graph, bags, settings, seed=0)
    assert field.potentials.shape == ((600,) if classes == 2 else (600, 3))
    found = label_marginals(graph, bags, settings, fields=field.potentials)
    beliefs = found.marginals.beliefs
    guess = beliefs > 0.5 if classes == 2 else beliefs.argmax(axis=1)
    assert np.mean(guess == y) > 0.85


def test_auto_omits_a_field_that_held_out_bags_contradict():
    rng = np.random.default_rng(0)
    bags, _ = clouds(n=2400, size=8)
    noise = replace(bags, counts=rng.permutation(bags.counts))
    graph = graph_of(bags.X, OLD)
    kept = find_field(graph, bags, OLD, seed=0)
    assert kept.potentials is not None
    assert kept.gain > 3.0
    declined = find_field(graph, noise, OLD, seed=0)
    assert declined.potentials is None
    assert declined.gain < -3.0
    assert find_field(graph, noise, FieldSettings(relaxed="on"), seed=0).potentials is not None
    nothing = find_field(graph, bags, FieldSettings(relaxed="off"), seed=0)
    assert (nothing.potentials, nothing.gain) == (None, None)


def test_auto_and_on_are_the_field_without_regression():
    bags, _ = clouds(n=240, size=12)
    graph = graph_of(bags.X, OLD)
    seen = Observed(np.asarray(bags.bag_of), np.asarray(bags.counts, np.float64))
    p = relaxed_field(graph, seen, seed=3).probabilities[:, 0]
    for relaxed in ("auto", "on"):
        found = find_field(graph, bags, FieldSettings(relaxed=relaxed), seed=3).potentials
        np.testing.assert_array_equal(found, np.log(p / (1.0 - p)))


def checkerboard(n, size, seed=0):
    """Labels that no linear function of the two features can tell apart: opposite corners are of one class."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return bags_of(X + 0.3 * rng.normal(size=X.shape), y, size), y


def test_evidence_accepts_a_field_that_explains_more_than_the_regression():
    bags, y = checkerboard(2400, 8)
    graph = graph_of(bags.X, FieldSettings())
    field = find_field(graph, bags, FieldSettings(), seed=0)
    assert field.accepted
    assert auroc(y, field.potentials) > 0.9
    assert auroc(y, linear_log_odds(bags)) < 0.7


@pytest.mark.parametrize("seed", range(3))
def test_evidence_declines_the_field_on_permuted_counts(seed):
    bags, y = checkerboard(2400, 8, seed)
    noise = replace(bags, counts=np.random.default_rng(seed).permutation(bags.counts))
    graph = graph_of(bags.X, FieldSettings())
    declined = find_field(graph, noise, FieldSettings(), seed=0)
    assert not declined.accepted
    np.testing.assert_array_equal(declined.potentials, linear_log_odds(noise))
    assert abs(auroc(y, declined.potentials) - 0.5) < 0.1


def test_few_large_bags_never_rank_rows_backwards():
    """Pseudo-labels of 20 bags of 100 rows whose labels are linear in one of four features."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 4)) * [3.0, 1.0, 1.0, 1.0]
        y = (X[:, 0] + rng.normal(size=2000) > 3.0).astype(int)
        bags = bags_of(X, y, 100)
        graph = graph_of(bags.X, FieldSettings())
        field = find_field(graph, bags, FieldSettings(), seed=seed)
        found = label_marginals(graph, bags, FieldSettings(), fields=field.potentials).marginals
        assert auroc(y, found.log_odds) > 0.6


@pytest.mark.parametrize(
    ("gain", "accepted", "used"), [("auto", True, "auto"), ("auto", False, 0.0), (0.4, False, 0.4)]
)
def test_pairs_are_left_out_where_the_field_is_declined(gain, accepted, used, monkeypatch):
    bags, _ = clouds(n=60)
    given = []

    class LabelledError(Exception):
        pass

    def label(members, graph_of, bags, settings, *, fields, threads):
        given.append(settings.gain)
        raise LabelledError

    monkeypatch.setattr("llpbench_methods.bp_field.method.label_by_all", label)
    field = Field(np.zeros(60), 0.0, accepted=accepted)
    monkeypatch.setattr("llpbench_methods.bp_field.method.find_field", lambda *_, **__: field)
    with pytest.raises(LabelledError):
        BPField(gain=gain)._label(bags.X, bags, QuietMonitor(), "iteration-1", 0)
    assert given == [used]


def linear_log_odds(bags):
    rates = Observed(bags.bag_of, bags.counts.astype(float)).rates
    return linear_potentials(LinearTrend(bags)(np.ones(len(bags), bool)), rates)


def auroc(y, scores):
    return mannwhitneyu(scores[y == 1], scores[y == 0]).statistic / (np.sum(y == 1) * np.sum(y == 0))


@pytest.mark.parametrize("columns", [1, 3])
def test_linear_potentials_have_value_and_slope_of_the_probabilities_at_the_rates(columns):
    rates = np.array([0.2, 0.5, 0.3])[:columns]
    step = 1e-5 * np.array([1.0, -2.0, 1.0])[:columns]
    rows = np.stack([rates, rates + step, rates + 100.0])
    found = linear_potentials(rows, rates)
    p = 1.0 / (1.0 + np.exp(-found[:, None])) if columns == 1 else np.exp(found)
    np.testing.assert_allclose(p[:2], rows[:2], atol=1e-8)
    assert np.isfinite(found).all()


def test_trend_uses_only_the_counts_of_the_marked_bags():
    bags, _ = clouds(classes=3)
    kept = np.arange(len(bags)) % 3 > 0
    other = np.where(kept[:, None], bags.counts, bags.counts[::-1])
    np.testing.assert_array_equal(LinearTrend(bags)(kept), LinearTrend(replace(bags, counts=other))(kept))
    one = np.arange(len(bags)) == 0
    assert np.ptp(LinearTrend(bags)(one), axis=0).max() == 0.0


# Averaging.


def test_ensemble_members_by_setting():
    nine = members_of(FieldSettings(), 2, field=False)
    assert sorted({member.k for member in nine}) == [5, 10, 20]
    assert len(nine) == 9
    assert members_of(FieldSettings(), 2, field=True) == (Member(10),)
    assert len(members_of(FieldSettings(ensemble="on"), 2, field=True)) == 9
    assert members_of(FieldSettings(ensemble="off"), 2, field=False) == (Member(10),)
    assert members_of(FieldSettings(ensemble="on"), 3, field=False) == (Member(10),)
    assert len(members_of(FieldSettings(k=1), 2, field=False)) == 6  # of 1 and 2 neighbours


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


# The weights of bags and pairs.


def test_auto_weight_of_bags_knows_engine_and_noise():
    bags = Bags(np.zeros((16, 1), np.float32), np.array([0, 8, 16]), np.array([[1.0], [2.0]]), count_sd=2.0)
    np.testing.assert_allclose(bag_weights(bags, FieldSettings()), 1 / 8)
    exact = replace(bags, count_sd=0.0)
    assert (bag_weights(exact, FieldSettings()) == 1.0).all()
    assert (bag_weights(exact, FieldSettings(engine="pairwise")) < 1.0).all()
    assert (bag_weights(exact, FieldSettings(lambda_b=7.0)) == 7.0).all()


def test_normalised_pairs_pull_all_rows_alike():
    graph = graph_of(np.random.default_rng(0).normal(size=(300, 3)), FieldSettings(k=5))
    total = np.bincount(graph.edges.ravel(), np.repeat(graph.weights, 2), minlength=300)
    np.testing.assert_allclose(total, 1.0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_features_and_embeddings_weigh_the_same_side_by_side(scale):
    rng = np.random.default_rng(0)
    features, embeddings = rng.normal(3.0, 1.0, (50, 4)), scale * rng.normal(-1.0, 2.0, (50, 7))
    both = side_by_side(features, embeddings).astype(np.float64)
    lengths = [np.mean(np.sum(part**2, axis=1)) for part in (both[:, :4], both[:, 4:])]
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-4)
    np.testing.assert_allclose(both.mean(axis=0), 0.0, atol=1e-5)


# The method.


def test_parameters_are_the_settings():
    declared = {p.name: p.default for p in field_params()}
    assert declared == {**vars(FieldSettings()), **vars(NETWORK)}
    method = BPField(**load_registry().methods["bp-field"].resolve({}))
    assert (method.settings, method.network) == (FieldSettings(), NETWORK)


def test_method_is_not_attributed_to_the_paper():
    spec = load_registry().methods["bp-field"]
    assert (spec.citation, spec.paper, spec.code) == ("", "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "params"),
    [
        (3, {"relaxed": "off", "covariates": "embeddings"}),
        (2, {"relaxed": "on", "ensemble": "on", "gain": 1.0}),
        (2, {"engine": "pairwise", "normalise": False, "tau": 0.4}),
        (3, {"labels": "weighted"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_every_variant_runs(params, classes):
    bags, _ = clouds(n=120, size=10, classes=classes)
    scores = BPField(epochs=2, **params).fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(bags.X)
    assert scores.shape == ((120,) if classes == 2 else (120, 3))
    assert np.isfinite(scores).all()
