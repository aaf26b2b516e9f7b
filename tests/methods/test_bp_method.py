"""`bp`: pseudo-labels, the weights of bags and pairs, and the method as a whole."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Bags, QuietMonitor, UsageError
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules
from llpbench_methods.bp.labelling import bag_weights, gibbs_law, label, similarity_graph
from llpbench_methods.bp.method import BP
from llpbench_methods.bp.params import NETWORK, BPSettings, bp_params
from llpbench_methods.bp.preset import paper, released
from llpbench_methods.bp.pseudo import bag_thresholds, fill_counts, pseudo_labels, rate_threshold, top_count
from llpbench_methods.inference import build_graph, gibbs_model, marginals
from llpbench_methods.inference.diagnostics import damping_limit, stability_index
from llpbench_methods.nets.params import NetworkSettings


def graph_of(X, settings, seed=0):
    return similarity_graph(X, settings, seed=seed)


def law_of(graph, bags, settings):
    return gibbs_law(graph, bags, settings, lambda_b=bag_weights(bags, settings), lambda_s=settings.lambda_s)


def bags_with(sizes, counts, classes=2, X=None, count_sd=0.0):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.asarray(counts, float)
    X = np.zeros((offsets[-1], 2), np.float32) if X is None else X
    return Bags(X, offsets, counts.reshape(len(sizes), -1), classes, count_sd)


def clouds(sizes=(8,) * 60, classes=2, seed=0, dim=4):
    """Rows of well separated classes in bags, and their labels."""
    rng = np.random.default_rng(seed)
    n = int(np.sum(sizes))
    y = rng.choice(classes, size=n, p=np.arange(1, classes + 1)[::-1] / np.arange(1, classes + 1).sum())
    X = (rng.normal(size=(n, dim)) + 3.0 * np.eye(dim)[y]).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(np.eye(classes)[y], offsets[:-1], axis=0)
    return Bags(X, offsets, counts[:, 1:] if classes == 2 else counts, classes), y


class Watcher(QuietMonitor):
    def __init__(self):
        self.stages, self.pseudo, self.notes, self.phases = [], {}, {}, []

    def report(self, predict, *, stage=""):
        self.stages.append(stage)
        return True

    def pseudo_labels(self, probabilities, *, stage=""):
        self.pseudo[stage] = probabilities

    def note(self, name, value):
        self.notes[name] = value

    def phase(self, name):
        self.phases.append(name)
        return super().phase(name)


# Pseudo-labels.


@given(st.data())
@quick
def test_top_count_takes_exactly_the_count(data):
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    counts = [data.draw(st.floats(-5, size + 5)) for size in sizes]
    n = sum(sizes)
    scores = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=n, max_size=n)))
    bags = bags_with(sizes, counts)
    label = top_count(scores, bags)
    for b, size in enumerate(sizes):
        part = slice(bags.offsets[b], bags.offsets[b + 1])
        assert label[part].sum() == min(max(round(counts[b]), 0), size)
        taken, left = scores[part][label[part] == 1], scores[part][label[part] == 0]
        assert taken.size == 0 or left.size == 0 or taken.min() >= left.max()
        for value in np.unique(scores[part]):  # of equals, the earlier rows
            assert (np.diff(label[part][scores[part] == value]) <= 0).all()


def test_infinite_scores_are_ranked_correctly():
    bags = bags_with([4], [2])
    np.testing.assert_array_equal(top_count(np.array([0.0, np.inf, -np.inf, 1.0]), bags), [0, 1, 0, 1])


def test_threshold_is_strict_and_soft_labels_are_the_marginals():
    bags, p = bags_with([3], [1]), np.array([0.2, 0.5, 0.7])
    odds = np.log(p / (1 - p))
    found = pseudo_labels(p, odds, bags, tau=0.5, labels="hard")
    np.testing.assert_array_equal(found.targets, [0, 0, 1])
    np.testing.assert_array_equal(found.weights, 1)
    np.testing.assert_array_equal(pseudo_labels(p, odds, bags, tau=0.5, labels="soft").targets, p)


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=1, max_size=12), st.floats(0, 1))
@quick
def test_rate_threshold_gives_the_nearest_share(scores, rate):
    values = np.array(scores)
    share = np.mean(values > rate_threshold(values, rate))
    possible = [np.mean(values > cut) for cut in [-np.inf, *values]]
    assert abs(share - rate) == pytest.approx(min(abs(other - rate) for other in possible))


def test_rate_labels_the_known_share_of_all_rows():
    bags, p = bags_with([4, 4], [0, 2]), np.array([0.9, 0.1, 0.2, 0.3, 0.8, 0.4, 0.3, 0.1])
    found = pseudo_labels(p, np.log(p / (1 - p)), bags, tau="rate", labels="weighted")
    np.testing.assert_array_equal(found.targets, [1, 0, 0, 0, 1, 0, 0, 0])
    raw = np.abs(p - 0.4)
    np.testing.assert_allclose(found.weights, raw / raw.mean())


def test_weights_are_distances_from_the_threshold():
    bags, p = bags_with([4, 2, 2], [1, 0, 2]), np.array([0.9, 0.1, 0.5, 0.2, 0.2, 0.4, 0.6, 0.8])
    odds = np.log(p / (1 - p))
    found = pseudo_labels(p, odds, bags, tau=0.3, labels="weighted")
    raw = np.abs(p - 0.3)
    np.testing.assert_allclose(found.weights, raw / raw.mean())
    np.testing.assert_allclose(bag_thresholds(p, bags), [0.7, 0.7, 0.3])
    found = pseudo_labels(p, odds, bags, tau="top-count", labels="weighted")
    np.testing.assert_array_equal(found.targets, [1, 0, 0, 0, 0, 0, 1, 1])
    raw = np.abs(p - np.array([0.7] * 6 + [0.3] * 2))
    np.testing.assert_allclose(found.weights, raw / raw.mean())
    even = pseudo_labels(np.full(8, 0.3), np.zeros(8), bags, tau=0.3, labels="weighted")
    np.testing.assert_array_equal(even.weights, 1)


@given(st.integers(0, 10_000))
@quick
def test_filling_counts_holds_them_and_is_top_count_for_two(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 4)
    counts = np.stack([rng.multinomial(size, rng.dirichlet(np.ones(3))) for size in sizes])
    bags = bags_with(sizes, counts, classes=3)
    label = fill_counts(rng.random((sizes.sum(), 3)), bags)
    for b in range(4):
        part = label[bags.offsets[b] : bags.offsets[b + 1]]
        np.testing.assert_array_equal(np.bincount(part, minlength=3), counts[b])
    p = rng.random(sizes.sum())
    two = bags_with(sizes, counts[:, :1])
    other = bags_with(sizes, np.column_stack([sizes - counts[:, 0], counts[:, 0]]), classes=3)
    room = replace(other, classes=3, counts=np.column_stack([other.counts, np.zeros(4)]))
    scores = np.column_stack([1 - p, p, np.full(len(p), -1.0)])
    np.testing.assert_array_equal(fill_counts(scores, room), top_count(p, two))


def test_many_classes_take_the_likeliest_and_their_lead_as_weight():
    bags = bags_with([2], [[1, 1, 0]], classes=3)
    p = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    hard = pseudo_labels(p, np.log(p), bags, tau=0.5, labels="weighted")
    np.testing.assert_array_equal(hard.targets, [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(hard.weights, np.array([0.2, 0.3]) / 0.25)
    counted = pseudo_labels(p, np.log(p), bags, tau="top-count", labels="hard")
    np.testing.assert_array_equal(counted.targets, [[0, 1, 0], [1, 0, 0]])
    soft = pseudo_labels(2 * p, np.log(p), bags, tau=0.5, labels="soft")
    np.testing.assert_allclose(soft.targets, p)


# The law of the labels.


@pytest.mark.parametrize("size", [2, 8, 128, 2048])
@pytest.mark.parametrize("damping", ["auto", 0.0, 0.5, 0.9])
def test_auto_weight_is_safe_for_cliques_of_any_size(size, damping):
    bags = bags_with([size] * 3, [0, size // 2, size])
    settings = BPSettings(damping=damping, k=1)
    graph = graph_of(np.random.default_rng(0).normal(size=(3 * size, 2)), settings)
    held = damping_limit(0.5 if damping == "auto" else damping)
    assert (stability_index(law_of(graph, bags, settings)) <= 0.8 * held + 1e-9).all()
    assert (bag_weights(bags, settings) <= 1.0).all()
    assert (bag_weights(bags, replace(settings, lambda_b=7.0)) == 7.0).all()


def test_settings_reach_the_graph():
    X = np.random.default_rng(0).normal(size=(400, 3))
    base = BPSettings(k=4, edge_rule="union", length_scale="median")
    graph = graph_of(X, base)
    gap = np.linalg.norm(X[graph.edges[:, 0]] - X[graph.edges[:, 1]], axis=1)
    np.testing.assert_allclose(graph.similarity, np.exp(-gap / np.median(gap)), rtol=1e-6)
    rbf = graph_of(X, replace(base, kernel="rbf", length_scale=2.0))
    np.testing.assert_allclose(rbf.similarity, np.exp(-(gap**2) / 8), rtol=1e-6)
    kept = graph_of(X, replace(base, edges_kept=0.25))
    assert len(kept.edges) == round(0.25 * len(graph.edges))
    assert len(graph_of(X, replace(base, edges_kept=0.0)).edges) == 0
    assert len(graph_of(X, replace(base, delta_d=1e-3)).edges) < len(graph.edges)
    twice = graph_of(X, replace(base, edge_rule="sum"))
    assert twice.weights.sum() > graph.weights.sum()
    euclidean = graph_of(X, replace(base, distance="euclidean"))
    assert not np.array_equal(euclidean.edges, graph.edges)


def test_released_edge_filter_drops_choices_of_fuller_bags():
    bags, _ = clouds()
    settings = BPSettings(k=3)
    graph = graph_of(bags.X, settings)
    every = law_of(graph, bags, settings)
    some = law_of(graph, bags, replace(settings, edge_filter_max_count=1.0))
    assert 0 < len(some.edges) < len(every.edges)


def test_oscillation_is_returned_as_a_warning_text():
    bags, _ = clouds(sizes=(128,) * 4)
    settings = BPSettings(lambda_b=5.0, rounds=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = label(graph_of(bags.X, settings), bags, settings)
    assert "oscillation" in found.warning
    assert not found.marginals.converged


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pairwise", "jax", "reference"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_engine_separates_clouds(engine, classes):
    bags, y = clouds(sizes=(8,) * 20, classes=classes)
    settings = BPSettings(engine=engine, lambda_s=0.5, k=10, length_scale="median")
    found = label(graph_of(bags.X, settings), bags, settings)
    labels = pseudo_labels(found.marginals.beliefs, found.marginals.log_odds, bags, tau="top-count", labels="hard")
    guess = labels.targets if classes == 2 else labels.targets.argmax(axis=1)
    assert (guess == y).mean() > 0.85
    assert not found.warning


# The method.


def test_iterations_are_stages_with_notes_and_phases():
    bags, y = clouds()
    monitor = Watcher()
    fitted = BP(iterations=3, epochs=40, lambda_s=0.5, k=10).fit(bags, monitor=monitor, seed=1)
    assert monitor.stages == [f"iteration-{i}" for i in (1, 2, 3) for _ in range(40)]
    assert set(monitor.pseudo) == {"iteration-1", "iteration-2", "iteration-3"}
    assert set(monitor.phases) == {"network", "graph", "bp"}
    for stage in monitor.pseudo:
        assert {"pairs", "rounds", "converged", "damping", "stability", "residual"} <= {
            name.removeprefix(f"{stage} bp ") for name in monitor.notes if name.startswith(stage)
        }
    assert (((fitted.predict_scores(bags.X) > 0.5) == y).mean()) > 0.85


def test_fit_depends_on_its_seed():
    bags, _ = clouds()
    one, other = (
        BP(epochs=2, edges_kept=0.5).fit(bags, monitor=QuietMonitor(), seed=s).predict_scores(bags.X) for s in (1, 2)
    )
    assert not np.array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "params"),
    [
        (2, {"labels": "soft"}),
        (3, {"labels": "weighted", "tau": 0.4}),
        (2, {"pooling": "attention", "agg_reduction": "mean"}),
        (3, {"mode": "max", "kernel": "rbf", "distance": "euclidean"}),
        (2, {"instance_head": "direct", "edge_rule": "union"}),
        (3, {"edges_kept": 0.0, "lambda_a": 0.0}),
        (2, {"search": "approximate", "delta_d": 0.01}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_every_ablation_runs(params, classes):
    bags, _ = clouds(sizes=(5, 9, 1, 20, 7, 8, 3), classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = BP(epochs=2, **params).fit(bags, monitor=QuietMonitor(), seed=0)
    scores = fitted.predict_scores(bags.X)
    assert scores.shape == ((53,) if classes == 2 else (53, 3))
    assert np.isfinite(scores).all()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pairwise", "jax", "reference"])
def test_pseudo_labels_of_every_engine_are_valid_for_three_classes(engine):
    """Engines over pairs have a marginal for each class by itself: those of a row need not add up to 1."""
    bags, y = clouds(sizes=(5, 9, 1, 20, 7, 8, 3), classes=3)
    judge = HarnessMonitor(make_rules(bags, y), bags, y, test_rows=None, classes=3, score_kind=spec().scores)
    BP(epochs=1, iterations=1, engine=engine, lambda_s=0.5, k=5).fit(
        replace(bags, validation=bags), monitor=judge, seed=0
    )
    assert judge.pseudo["iteration-1"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("counts", [[9.7, -3.2, 4.1], [0, 0, 0], [8, 8, 8]])
def test_counts_out_of_range_give_finite_scores(counts):
    X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    bags = bags_with([8, 8, 8], counts, X=X, count_sd=0.0 if counts[0] in (0, 8) else 4.8)
    scores = BP(epochs=2, k=2).fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(X)
    assert np.isfinite(scores).all()


# What it says about itself.


def spec():
    (found,) = importlib.import_module("llpbench_methods.bp").llpbench_methods()
    return found


def test_parameters_are_the_settings():
    declared = {p.name: p.default for p in bp_params()}
    assert declared == {**vars(BPSettings()), **vars(NETWORK)}
    assert {f.name for f in fields(NetworkSettings)} < set(declared)
    assert all(p.doc for p in bp_params())
    method = BP(**spec().resolve({}))
    assert (method.settings, method.network) == (BPSettings(), NETWORK)
    assert spec().resolve({"lambda_b": 0.3, "tau": 0.5})["tau"] == 0.5
    for wrong in ({"lambda_b": "much"}, {"tau": 2.0}, {"iterations": 4}, {"k": 31}, {"pooling": "max"}):
        with pytest.raises(UsageError):
            spec().resolve(wrong)


# The paper's elements.


def test_default_has_only_elements_of_the_paper():
    """Pairs in bags and between neighbours, sum-product, a threshold, hard labels, two iterations."""
    default = BPSettings()
    assert (default.engine, default.mode, default.labels, default.iterations) == ("pairwise", "sum", "hard", 2)
    assert (default.pooling, default.edge_rule) == ("mean", "sum")
    own = {"gain", "normalise", "relaxed", "ensemble", "covariates", "tempered"}
    assert own.isdisjoint(p.name for p in bp_params())
    (engine,) = (p for p in bp_params() if p.name == "engine")
    assert {"count", "reference-count"}.isdisjoint(engine.choices)


@pytest.mark.parametrize("values", [paper("adult", 8), paper("marketing", 128), paper("cifar-s", 128)])
def test_marginals_are_those_of_the_stated_law(values):
    """The same numbers as the library's own steps give."""
    known = {name: value for name, value in values.items() if name in vars(BPSettings())}
    settings = replace(BPSettings(**known), rounds=10)
    bags, _ = clouds(sizes=(8,) * 40)
    found = label(graph_of(bags.X, settings), bags, settings).marginals
    graph = build_graph(bags.X, settings.k, delta_d=settings.delta_d, edge_rule="sum")
    law = gibbs_model(graph, bags.bag_of, bags.counts[:, 0], lambda_b=settings.lambda_b, lambda_s=settings.lambda_s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = marginals(law, "pairwise", rounds=10, damping=0.5)
    np.testing.assert_array_equal(found.log_odds, plain.log_odds)


def test_released_preset_has_no_bag_loss_and_filters_pairs():
    resolved = spec().resolve(released("anything", 17))
    assert (resolved["lambda_a"], resolved["edge_filter_max_count"], resolved["edge_rule"]) == (0.0, 1.0, "union")
