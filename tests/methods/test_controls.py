"""The controls: the best single column, random labels, counts shuffled among bags, and a method without its pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backends import close

import llpbench
from llpbench import Bags, QuietMonitor, Skip, UnknownNameError, UsageError, method_spec
from llpbench.contracts.cell import Cell
from llpbench.experiment.fit_cell import method_seed
from llpbench_methods.best_feature.method import BestFeature, class_slopes, offsets_for
from llpbench_methods.no_pairs.method import NoPairs
from llpbench_methods.random_labels.method import random_labels
from llpbench_methods.shuffled_counts.method import ShuffledCounts, shuffle_counts


def table(n_bags=40, size=20, classes=2, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_bags * size, d)).astype(np.float32)
    y = np.clip(np.rint(X[:, 1] + (classes - 1) / 2 + 0.3 * rng.normal(size=len(X))), 0, classes - 1).astype(int)
    offsets = np.arange(n_bags + 1) * size
    counts = np.add.reduceat(np.eye(classes)[y], offsets[:-1], axis=0)
    return Bags(X, offsets, counts[:, 1:] if classes == 2 else counts, classes), y


class Picky(QuietMonitor):
    """Scores reports on rows with labels, as the harness does."""

    def __init__(self, X, y):
        self.X, self.y, self.seen, self.notes = X, y, [], {}

    def report(self, predict, *, stage=""):
        p = predict(self.X)
        value = np.corrcoef(p if p.ndim == 1 else p @ np.arange(p.shape[1]), self.y)[0, 1] if np.ptp(p) > 0 else 0.0
        self.seen.append(0.0 if np.isnan(value) else value)
        return self.seen[-1] == max(self.seen)

    def note(self, name, value):
        self.notes[name] = value


@pytest.mark.parametrize("classes", [2, 3])
def test_best_column_is_found_and_turned_the_right_way(classes):
    bags, y = table(classes=classes)
    monitor = Picky(bags.X, y)
    method = BestFeature().fit(bags, monitor=monitor, seed=0)
    assert monitor.notes["column"] == 1
    assert len(monitor.seen) == 1 + 2 * 4
    p = method.predict_scores(bags.X)
    assert p.shape == ((800,) if classes == 2 else (800, 3))
    score = p if classes == 2 else p[:, 2]
    assert np.corrcoef(score, bags.X[:, 1])[0, 1] > 0.8
    mean = p.mean() if classes == 2 else p.mean(axis=0)
    close(mean, bags.prior[0] if classes == 2 else bags.prior, 0.02)


def test_best_feature_may_use_one_sign():
    bags, y = table()
    monitor = Picky(bags.X, y)
    BestFeature(signs="bags").fit(bags, monitor=monitor, seed=0)
    assert len(monitor.seen) == 1 + 4
    assert max(monitor.seen) > 0.5


@pytest.mark.parametrize("case", ["constant", "one_bag", "no_positives", "single_rows", "outside"])
def test_degenerate_tables_give_finite_scores(case):
    bags, y = table(n_bags=6, size=5)
    X, offsets, counts = bags.X, bags.offsets, bags.counts
    if case == "constant":
        X = np.ones_like(X)
    if case == "one_bag":
        offsets, counts = np.array([0, 30]), np.array([[12.0]])
    if case == "no_positives":
        counts = np.zeros_like(counts)
    if case == "single_rows":
        offsets, counts = np.arange(31), y[:, None].astype(float)
    if case == "outside":
        counts = counts + np.array([[-9.0], [9.0], [0.3], [0.0], [-0.2], [30.0]])
    odd = Bags(X, offsets, counts)
    p = BestFeature().fit(odd, monitor=QuietMonitor(), seed=0).predict_scores(X)
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    labels = random_labels(odd, np.random.default_rng(0))
    assert labels.shape == (30,)


def test_slopes_are_those_of_the_regression():
    means, sizes = np.array([0.0, 1.0, 2.0]), np.array([1, 1, 1])
    shares = np.column_stack([1 - 0.1 * means, 0.1 * means])
    prior = np.array([0.9, 0.1])
    slopes = class_slopes(means, shares, sizes, prior)
    close(slopes[1] - slopes[0], 0.1 / (0.9 * 0.1))
    close(prior @ slopes, 0.0)
    close(class_slopes(np.ones(3), shares, sizes, prior), 0.0)
    x = np.linspace(-1, 1, 50)
    u = offsets_for(x, slopes, prior)
    p = 1 / (1 + np.exp(-(u[1] - u[0] + (slopes[1] - slopes[0]) * x)))
    close(p.mean(), 0.1, 1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_random_labels_fit_the_counts(classes):
    bags, _ = table(classes=classes)
    labels = random_labels(bags, np.random.default_rng(0))
    got = np.add.reduceat(np.eye(classes)[labels], bags.offsets[:-1], axis=0)
    close(got[:, 1:] if classes == 2 else got, bags.counts)
    again = random_labels(bags, np.random.default_rng(0))
    other = random_labels(bags, np.random.default_rng(1))
    assert (labels == again).all()
    assert (labels != other).any()
    assert abs(np.corrcoef(labels, bags.X[:, 0])[0, 1]) < 0.15


def counted(sizes, counts, classes=2, sd=0.0, validation=None):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = np.random.default_rng(7).normal(size=(offsets[-1], 3)).astype(np.float32)
    return Bags(X, offsets, np.array(counts, float).reshape(len(sizes), -1), classes, sd, validation=validation)


def test_counts_are_permuted_among_bags_of_equal_size():
    rng = np.random.default_rng(0)
    sizes = np.array([4] * 30 + [9] * 20)
    bags = counted(sizes, rng.binomial(sizes, 0.4), validation=counted([5] * 12, rng.binomial(5, 0.4, 12)))
    shuffled = shuffle_counts(bags, np.random.default_rng(1))
    assert shuffled.X is bags.X
    for before, after in ((bags, shuffled), (bags.validation, shuffled.validation)):
        np.testing.assert_array_equal(after.sizes, before.sizes)
        assert not np.array_equal(after.counts, before.counts)
        for size in np.unique(before.sizes):
            of_size = before.sizes == size
            assert sorted(after.counts[of_size, 0]) == sorted(before.counts[of_size, 0])
    np.testing.assert_array_equal(shuffle_counts(bags, np.random.default_rng(1)).counts, shuffled.counts)


@pytest.mark.parametrize("sd", [0.0, 2.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_bag_of_a_size_of_its_own_takes_the_share_of_another(classes, sd):
    rng = np.random.default_rng(0)
    sizes = np.array([8] * 5 + [3, 20])
    labels = [rng.multinomial(n, np.full(classes, 1 / classes)) for n in sizes]
    counts = np.array(labels, float)[:, 1:] if classes == 2 else np.array(labels, float)
    bags = counted(sizes, counts + rng.normal(0, sd, counts.shape) if sd else counts, classes, sd)
    seen = set()
    for seed in range(40):
        got = shuffle_counts(bags, np.random.default_rng(seed)).counts
        if sd == 0:
            np.testing.assert_array_equal(got, np.rint(got))
            assert (got >= 0).all()
            assert (got <= sizes[:, None]).all()
            if classes > 2:
                np.testing.assert_array_equal(got.sum(axis=1), sizes)
        else:
            assert min(np.abs(got[6] / 20 - bags.proportions[b]).max() for b in range(6)) < 1e-12
        seen.add(tuple(got[6]))
    assert len(seen) > 2  # not always the same lender


def test_one_bag_alone_keeps_its_count():
    np.testing.assert_array_equal(shuffle_counts(counted([6], [2]), np.random.default_rng(0)).counts, [[2]])


@pytest.mark.parametrize("name", ["mean-ridge", "dllp"])
def test_shuffled_counts_equals_the_method_on_shuffled_bags(name):
    bags, _ = table(n_bags=12, size=20)
    by_hand = replace(bags, counts=bags.counts[np.lexsort((np.random.default_rng([5, 1]).random(12),))])
    spec = method_spec(name)
    wanted = spec.load()(**spec.resolve({})).fit(by_hand, monitor=QuietMonitor(), seed=5).predict_scores(bags.X)
    control = ShuffledCounts(method=name).fit(bags, monitor=QuietMonitor(), seed=5)
    np.testing.assert_array_equal(control.predict_scores(bags.X), wanted)


def test_shuffled_counts_rejects_methods_it_cannot_run():
    for name in ("supervised", "shuffled-counts"):
        with pytest.raises(UsageError, match="learns from counts"):
            ShuffledCounts(method=name)
    with pytest.raises(UnknownNameError, match="mean-ridge"):
        ShuffledCounts(method="mean-rigde")
    images = Bags(np.zeros((8, 4, 4, 3), np.float32), np.array([0, 4, 8]), np.array([[1.0], [2.0]]))
    with pytest.raises(Skip, match="features only"):
        ShuffledCounts(method="mean-ridge").fit(images, monitor=QuietMonitor(), seed=0)


OWN_METHOD = """
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="own-means", factory=f"{__name__}:Means")]

class Means:
    def fit(self, bags, *, monitor, seed):
        shares = (bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0)
        self.w = (shares * bags.X).mean(axis=0)
        return self
    def predict_scores(self, X):
        return X @ self.w
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_shuffled_counts_runs_a_method_of_a_plugin_file(tmp_path, start):
    file = tmp_path / f"means_for_{start}.py"
    file.write_text(OWN_METHOD)
    where = {"datasets": "synthetic[rows=2000]", "bags": 8, "seeds": 1, "plugins": [file], "progress": False}
    results = llpbench.run("shuffled-counts[method=own-means]", out=tmp_path / "out", start=start, **where)
    assert [(r.status, r.reason) for r in results.results] == [("ok", "")]
    before = results.results[0].code["method own-means"]
    file.write_text(OWN_METHOD + "# edited\n")
    again = llpbench.run("shuffled-counts[method=own-means]", out=tmp_path / "out", start=start, **where)
    assert again.results[0].code["method own-means"] != before
    with pytest.raises(UnknownNameError, match="own-means"):
        llpbench.run("shuffled-counts[method=own-mean]", out=tmp_path / "out", **where)


def test_shuffled_counts_learn_nothing():
    """On bags whose counts say a lot, the shuffled ones say nothing: scores do not follow the labels."""
    reached = []
    for seed in range(6):
        bags, y = table(n_bags=60, size=6, seed=seed)
        scores = ShuffledCounts(method="mean-ridge").fit(bags, monitor=QuietMonitor(), seed=seed).predict_scores(bags.X)
        true = method_spec("mean-ridge")
        learned = true.load()(**true.resolve({})).fit(bags, monitor=QuietMonitor(), seed=seed).predict_scores(bags.X)
        assert np.corrcoef(learned, y)[0, 1] > 0.6
        reached.append(np.corrcoef(scores, y)[0, 1])
    assert abs(np.nanmean(reached)) < 0.4


SHORT = {"epochs": 2, "iterations": 1, "rounds": 10}


@pytest.mark.parametrize(
    ("name", "without"), [("bp", {"edges_kept": 0.0}), pytest.param("bp-field", {"gain": 0.01}, marks=pytest.mark.slow)]
)
def test_no_pairs_equals_the_method_with_pairs_off(name, without, monkeypatch):
    bags, y = table(n_bags=12, size=20)
    spec, monitor = method_spec(name), Picky(bags.X, y)
    complete = type(spec).complete
    monkeypatch.setattr(type(spec), "complete", lambda self, given: complete(self, {**SHORT, **given}))
    control = NoPairs(method=name).fit(bags, monitor=monitor, seed=5)
    assert (monitor.notes["iteration-1 bp pairs"] == 0) == (name == "bp")

    def scores_of(params):
        method = spec.load()(**spec.resolve(params)).fit(bags, monitor=Picky(bags.X, y), seed=5)
        return method.predict_scores(bags.X)

    np.testing.assert_array_equal(control.predict_scores(bags.X), scores_of(without))


def test_no_pairs_has_the_seed_of_the_method_it_runs():
    at = {"dataset": "adult", "bag_size": 8, "seed": 1}
    control = Cell(method="no-pairs", params={"method": "bp", "patience": 20}, **at)
    assert method_seed(control, method_spec("no-pairs").seed_name) == method_seed(Cell(method="bp", **at))


def test_no_pairs_rejects_methods_without_the_preset():
    with pytest.raises(UsageError, match=r"cannot run 'dllp'.*no-pairs.*bp-field"):
        NoPairs(method="dllp")
    for name in ("supervised", "shuffled-counts", "no-pairs"):
        with pytest.raises(UsageError, match="learns from counts"):
            NoPairs(method=name)
