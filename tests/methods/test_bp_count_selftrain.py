"""Rounds of self-training: what a chain may see, when a round stands, and what learners make of soft labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from llpbench import Column, QuietMonitor
from llpbench_methods.bp_count.counts import CountedBags, log_likelihood
from llpbench_methods.bp_count.learners import BoostedTrees, Network, bin_cuts, make_learner, soft_label_rows
from llpbench_methods.bp_count.linear import MeanRegression
from llpbench_methods.bp_count.neighbourhood import Similarity
from llpbench_methods.bp_count.selftrain import (
    MIXES,
    SLOPES,
    Chain,
    adopt,
    assign_folds,
    best_blend,
    gain_in_standard_errors,
    learn,
    make_chains,
    plain_posterior,
)
from llpbench_methods.inference import build_graph

COLUMNS = tuple(Column(f"x{i}", "numeric") for i in range(3))


def _data(n_bags: int = 40, size: int = 8, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_bags * size, 3)).astype(np.float32)
    y = rng.random(len(X)) < expit(3.0 * np.abs(X[:, 0]) + X[:, 1] - 3.0)
    offsets = np.arange(0, len(X) + 1, size)
    return X, offsets, np.add.reduceat(y.astype(float), offsets[:-1])[:, None]


def _two_rounds(counts, similarity: float) -> list[Chain]:
    """Fold chains after two adopted rounds; the blend is fixed, since choosing it is for all folds together."""
    X, offsets, _ = _data()
    bags = CountedBags(offsets, counts, np.inf)
    folds = assign_folds(bags.sizes, 2, np.random.default_rng(0))
    model = MeanRegression(X, offsets, COLUMNS, np.random.default_rng(0), draws=2)
    chains, _ = make_chains(bags, folds, X, lambda chosen: model.fit(chosen, counts[chosen], 0.0))
    labels = Similarity(similarity, build_graph(X, 3) if similarity else None)
    learner = BoostedTrees(X, COLUMNS, 5)
    for number in range(2):
        for chain in chains:
            learn(chain, learner, X, labels.posterior, number, QuietMonitor())
            adopt(chain, 0.75, 1.2)
    return chains


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.0, 0.3])
def test_no_count_of_a_fold_reaches_the_chain_it_judges(similarity: float) -> None:
    _, offsets, counts = _data()
    before = _two_rounds(counts, similarity)
    folds = assign_folds(np.diff(offsets), 2, np.random.default_rng(0))
    for k, fold in enumerate(folds):
        other = counts.copy()
        other[fold] = 8.0 - other[fold]
        after = _two_rounds(other, similarity)
        np.testing.assert_array_equal(after[k].current, before[k].current)
        assert not np.array_equal(after[1 - k].current, before[1 - k].current)


def test_folds_part_the_bags_evenly_in_size() -> None:
    sizes = np.array([1] * 10 + [100] * 11)
    folds = assign_folds(sizes, 2, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(21))
    assert [int((sizes[f] == 1).sum()) for f in folds] == [5, 5]
    assert len(assign_folds(np.ones(5, np.int64), 3, np.random.default_rng(0))) == 3


def test_gain_is_measured_in_standard_errors() -> None:
    old = np.zeros(4)
    new = np.array([1.0, 2.0, 3.0, 2.0])
    assert gain_in_standard_errors(new, old) == pytest.approx(2.0 / (np.std(new, ddof=1) / 2.0))
    assert gain_in_standard_errors(old, new) == 0.0
    assert gain_in_standard_errors(np.array([5.0]), np.array([0.0])) == 0.0
    assert gain_in_standard_errors(np.ones(3), np.zeros(3)) == np.inf


def _fixed_chain(values, learnt, bags: CountedBags) -> Chain:
    rows = np.arange(len(values))
    chain = Chain(bags, rows, bags, rows, lambda X: X, values, values)
    chain.learnt_values = learnt
    return chain


def test_blend_is_the_best_of_the_grid() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(scale=2.0, size=(4000, 1))
    y = rng.random(4000) < expit(truth[:, 0])
    offsets = np.arange(0, 4001, 4)
    bags = CountedBags(offsets, np.add.reduceat(y.astype(float), offsets[:-1])[:, None], np.inf)
    chain = _fixed_chain(rng.normal(size=(4000, 1)), truth / 1.5, bags)
    found = best_blend([chain], MIXES)
    assert (found.mix, found.slope) == (1.0, 1.5)
    np.testing.assert_allclose(found.likelihood, log_likelihood(chain.calibrated(truth, 1.0)[0], bags), rtol=1e-6)
    every = [best_blend([chain], MIXES, (s,)).likelihood.sum() for s in SLOPES]
    assert found.likelihood.sum() == pytest.approx(max(every))
    model = adopt(chain, 0.0, 0.7)
    np.testing.assert_allclose(model(chain.values), chain.current)
    assert expit(chain.current).mean() == pytest.approx(bags.shares[0], rel=1e-4)


def test_copies_of_soft_labels_have_their_cross_entropy() -> None:
    soft = np.array([[0.2], [1.0], [0.0], [0.7]])
    row, label, weight = soft_label_rows(soft)
    p = np.array([0.3, 0.6, 0.1, 0.9])
    expected = -np.sum(soft[:, 0] * np.log(p) + (1 - soft[:, 0]) * np.log(1 - p))
    assert -np.sum(weight * np.log(np.where(label == 1, p[row], 1 - p[row]))) == pytest.approx(expected)
    assert len(row) == 6
    assert len(soft_label_rows(np.array([[0.5, 0.5, 0.0]]))[0]) == 2


@pytest.mark.parametrize("n_fields", [1, 3])
def test_trees_learn_soft_labels_of_some_rows(n_fields: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).astype(np.float32)
    target = np.where(X[:, :1] > 0, 0.8, 0.3)
    if n_fields == 3:
        target = np.hstack([target, 0.9 - target, np.full((2000, 1), 0.1)])
    rows = np.arange(1000)
    spoiled = target.copy()
    spoiled[1000:] = 1.0 - spoiled[1000:]
    fields = BoostedTrees(X, COLUMNS, 40).fit(rows, spoiled, 0)(X)
    p = expit(fields) if n_fields == 1 else np.exp(fields)
    clear = np.abs(X[:, 0]) > 0.05
    np.testing.assert_allclose(p[clear], target[clear], atol=0.08)


def test_trees_of_one_label_and_of_a_missing_class() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    trees = BoostedTrees(X, COLUMNS, 5)
    rows = np.arange(200)
    assert (trees.fit(rows, np.zeros((200, 1)), 0)(X) < -10).all()
    assert (trees.fit(rows, np.ones((200, 1)), 0)(X) > 10).all()
    two = np.column_stack([np.zeros(200), X[:, 0] > 0, X[:, 0] <= 0]).astype(float)
    fields = trees.fit(rows, two, 0)(X)
    assert (fields[:, 0] < -10).all()
    assert (fields[:, 1:].argmax(axis=1) == (X[:, 0] <= 0)).mean() > 0.9
    only = np.tile([0.0, 1.0, 0.0], (200, 1))
    assert (trees.fit(rows, only, 0)(X).argmax(axis=1) == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_fields", [1, 3])
def test_network_learns_some_rows_and_is_the_network_it_trained(n_fields: int) -> None:
    rng = np.random.default_rng(0)
    X = (1000.0 + 50.0 * rng.normal(size=(600, 3))).astype(np.float32)
    sign = (X[:, :1] > 1000).astype(float)
    target = sign if n_fields == 1 else np.hstack([sign, 1 - sign, np.zeros_like(sign)])
    learner = Network(X, 6)
    fields = learner.fit(np.arange(300), target, 0)
    values = fields(X)
    guess = values[:, 0] > 0 if n_fields == 1 else values.argmax(axis=1) == 0
    assert (guess == (sign[:, 0] == 1)).mean() > 0.9
    standard = learner._X
    expected = learner._trainer.predict(standard).reshape(600, n_fields)
    if n_fields == 3:
        expected = expected - np.logaddexp.reduce(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(values, expected, atol=1e-3)
    np.testing.assert_array_equal(learner.fit(np.arange(300), target, 0)(X), values)


def test_bins_part_few_values_and_share_out_many() -> None:
    few = np.array([0.0, 0.0, 0.0, 0.0, 5.0, 9.0])
    np.testing.assert_array_equal(np.searchsorted(bin_cuts(few), few), [0, 0, 0, 0, 1, 2])
    many = np.random.default_rng(0).normal(size=5000)
    sizes = np.bincount(np.searchsorted(bin_cuts(many), many))
    assert len(sizes) == 200
    assert sizes.max() <= 27
    assert len(bin_cuts(np.ones(5))) == 0


def test_auto_takes_trees_for_tables_only() -> None:
    X = np.zeros((5, 3), np.float32)
    assert isinstance(make_learner("auto", X, COLUMNS, trees=1, epochs=1), BoostedTrees)
    assert isinstance(make_learner("auto", X, (), trees=1, epochs=1), Network)
    assert isinstance(make_learner("trees", X, (), trees=1, epochs=1), BoostedTrees)
    assert isinstance(make_learner("network", X, COLUMNS, trees=1, epochs=1), Network)


def test_plain_posterior_keeps_counts() -> None:
    _, offsets, counts = _data()
    bags = CountedBags(offsets, counts, np.inf)
    p = plain_posterior(np.random.default_rng(0).normal(size=(320, 1)), bags, np.arange(320))
    np.testing.assert_allclose(np.add.reduceat(p[:, 0], offsets[:-1]), counts[:, 0], atol=1e-9)
