"""Methods that take several groupings as they are: bag-logistic, max-entropy, bp-count and bp."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit

from llpbench import Bags, Column, Overlap, QuietMonitor
from llpbench.contracts.data import Part
from llpbench.experiment.bags import gather_groupings
from llpbench.experiment.metrics import auroc
from llpbench_methods.bag_logistic.loss import bag_loss
from llpbench_methods.bag_logistic.method import BagLogistic
from llpbench_methods.bp.labelling import label_overlapping
from llpbench_methods.bp.params import BPSettings
from llpbench_methods.bp_count.counts import CountedBags, overlapping_posterior, posterior
from llpbench_methods.bp_count.method import BPCount
from llpbench_methods.inference import SimilarityGraph
from llpbench_methods.max_entropy.dual import solve_dual
from llpbench_methods.max_entropy.method import MaxEntropy
from llpbench_methods.shared.incidence import incidence_matrix

SEEDS = st.integers(0, 9999)


def people(n: int = 600, seed: int = 0, classes: int = 2) -> tuple[Bags, np.ndarray, np.ndarray]:
    """A table of two categories and a number, its one-way margins, and the labels of its rows."""
    rng = np.random.default_rng(seed)
    job, town, age = rng.integers(0, 4, n), rng.integers(0, 3, n), rng.normal(size=n)
    X = np.column_stack([np.eye(4)[job], np.eye(3)[town], age]).astype(np.float32)
    odds = np.array([-2.0, -1.0, 0.5, 2.0])[job] + np.array([-1.0, 0.0, 1.0])[town] + 1.5 * np.abs(age) - 1.0
    labels = (rng.random(n) < expit(odds)).astype(int)
    labels = labels if classes == 2 else labels + (rng.random(n) < 0.3)
    columns = (Column("job", "category", 4), Column("town", "category", 3), Column("age", "numeric"))
    groupings = {"job": job, "town": town, "age": np.digitize(age, [-1.0, 0.0, 1.0])}
    bags, y = gather_groupings(Part(X, labels), groupings, classes=classes, columns=columns, rng=rng)
    return bags, y, X


def several_draws(n: int, size: int, times: int, seed: int = 0) -> tuple[Bags, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    labels = (rng.random(n) < expit(X @ np.array([2.0, -1.0, 1.0, 0.0]))).astype(int)
    groupings = {str(k): rng.permutation(n) // size for k in range(times)}
    return gather_groupings(Part(X, labels), groupings, classes=2, columns=(), rng=rng)


@quick
@given(seed=SEEDS, classes=st.integers(2, 3))
def test_loss_of_overlapping_bags_is_that_of_unrolled_ones(seed: int, classes: int) -> None:
    bags, _, _ = people(40, seed, classes)
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(len(bags.X), 1 if classes == 2 else classes))
    worth = rng.uniform(1, 5, len(bags))
    known = (bags.offsets, bags.clipped_proportions, worth)
    loss, gradient = bag_loss(z, *known, incidence_matrix(bags))
    wanted, _ = bag_loss(z[bags.members], *known)
    assert loss == pytest.approx(wanted)
    numeric = approx_fprime(z.ravel(), lambda flat: bag_loss(flat.reshape(z.shape)[bags.members], *known)[0], 1e-6)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-3)


def test_bag_logistic_of_overlapping_bags_is_that_of_unrolled_ones() -> None:
    bags, _, X = people()
    direct, unrolled = (
        BagLogistic(effect=0.0, hats="no").fit(each, monitor=QuietMonitor(), seed=0) for each in (bags, bags.unrolled)
    )
    np.testing.assert_allclose(direct.predict_scores(X), unrolled.predict_scores(X), atol=2e-3)


def test_hat_functions_learn_what_bands_of_a_number_tell() -> None:
    bags, _, X = people(2000)
    age = bags.X[:, 7]
    bends = BagLogistic(effect=0.0).fit(bags, monitor=QuietMonitor(), seed=0)
    straight = BagLogistic(effect=0.0, hats="no").fit(bags, monitor=QuietMonitor(), seed=0)
    middle = np.abs(age) < 0.5
    gaps = [each.predict_scores(bags.X)[~middle].mean() - each.predict_scores(bags.X)[middle].mean()
            for each in (bends, straight)]  # fmt: skip
    assert gaps[0] > gaps[1] + 0.1
    restored = BagLogistic().restore(bends.state())
    np.testing.assert_array_equal(restored.predict_scores(X), bends.predict_scores(X))


@quick
@given(seed=SEEDS, sd=st.floats(0.3, 20.0))
def test_dual_is_minimised(seed: int, sd: float) -> None:
    bags, _, _ = people(60, seed)
    incidence, counts = incidence_matrix(bags), bags.counts[:, 0]
    found = solve_dual(incidence, counts, np.full(len(bags), sd), -0.5)
    assert found.converged

    def objective(theta: np.ndarray) -> Any:
        return np.logaddexp(0, incidence.T @ theta - 0.5).sum() - theta @ counts + 0.5 * sd**2 * theta @ theta

    best = minimize(objective, np.zeros(len(bags)), method="BFGS").fun
    assert objective(found.theta) <= best + 1e-4
    np.testing.assert_allclose(found.log_odds, incidence.T @ found.theta - 0.5)


def test_maximum_entropy_meets_every_count_within_its_noise() -> None:
    bags, _, _ = people()
    incidence, counts = incidence_matrix(bags), bags.counts[:, 0]
    exact = solve_dual(incidence, counts, np.full(len(bags), 1e-2), 0.0)
    np.testing.assert_allclose(incidence @ expit(exact.log_odds), counts, atol=0.01)
    loose = solve_dual(incidence, counts, np.full(len(bags), 30.0), 0.0)
    assert np.abs(incidence @ expit(loose.log_odds) - counts).max() > 1.0


def test_max_entropy_learns_rows_from_margins() -> None:
    bags, labels, _ = people(3000)
    fresh, fresh_labels, _ = people(3000, seed=1)
    fitted = MaxEntropy().fit(bags, monitor=QuietMonitor(), seed=0)
    bound = auroc(labels, BagLogistic(effect=0.0).fit(_single_rows(bags, labels), monitor=QuietMonitor(), seed=0)
                  .predict_scores(bags.X))  # fmt: skip
    assert auroc(fresh_labels, fitted.predict_scores(fresh.X)) > bound - 0.03


def _single_rows(bags: Bags, labels: np.ndarray) -> Bags:
    counts = labels[:, None].astype(float)
    return replace(bags, offsets=np.arange(len(labels) + 1), counts=counts, overlap=None)


def test_posterior_of_bp_count_recovers_labels_from_overlapping_counts() -> None:
    bags, labels = several_draws(800, 8, 4)
    counted = CountedBags.of(bags)
    found = overlapping_posterior(bags.X @ np.array([[2.0], [-1.0], [1.0], [0.0]]), counted)
    assert found.converged
    np.testing.assert_array_equal(found.probabilities[:, 0] > 0.5, labels)


class Recorder(QuietMonitor):
    """Keeps pseudo-labels and notes."""

    def __init__(self) -> None:
        self.labels: dict[str, np.ndarray] = {}
        self.notes: dict[str, Any] = {}

    def pseudo_labels(self, probabilities: Any, *, stage: str = "") -> None:
        self.labels[stage] = np.asarray(probabilities)

    def note(self, name: str, value: Any) -> None:
        self.notes[name] = value


@quick
@given(seed=SEEDS)
def test_bag_logistic_decodes_exact_and_noisy_counts_together(seed: int) -> None:
    """Nine rows in three exact bags, two noisy bags that join them: the posterior by enumeration."""
    rng = np.random.default_rng(seed)
    truth, sd = rng.integers(0, 2, 9), np.array([0.0, 0.0, 0.0, 0.7, 0.7])
    members = np.array([*range(9), 2, 3, 5, 6])
    offsets = np.array([0, 3, 6, 9, 11, 13])
    counts = np.add.reduceat(truth[members], offsets[:-1]) + sd * rng.normal(size=5)
    overlap = Overlap(members, np.array([0, 0, 0, 1, 1]), ("a", "b"), sd)
    bags = Bags(np.zeros((9, 1), np.float32), offsets, counts[:, None], count_sd=0.5, overlap=overlap)
    told = Recorder()
    BagLogistic(decode="yes").fit(bags, monitor=told, seed=0)
    labels = np.array(list(product([0, 1], repeat=9)))
    gap = np.add.reduceat(labels[:, members], offsets[:-1], axis=1) - counts
    logs = labels @ np.log(told.labels["prior"] / (1 - told.labels["prior"])) - (gap[:, 3:] ** 2).sum(axis=1) / 2 / 0.49
    weights = np.where((gap[:, :3] == 0).all(axis=1), np.exp(logs - logs.max()), 0.0)
    assert told.notes["bp converged"]
    np.testing.assert_allclose(told.labels["counts"], weights @ labels / weights.sum(), atol=2e-3)


def test_counted_bags_of_a_fold_keep_their_rows() -> None:
    bags, labels = several_draws(60, 6, 3)
    counted = CountedBags.of(bags)
    some, rows = counted.take(np.array([1, 12, 25]))
    assert some.members is not None
    np.testing.assert_array_equal(np.add.reduceat(labels[rows][some.members], some.offsets[:-1]), some.counts[:, 0])
    soft = posterior(np.zeros((len(rows), 1)), some)
    assert soft.shape == (len(rows), 1)


@pytest.mark.slow
def test_bp_count_gains_from_further_groupings() -> None:
    quality = []
    for times in (1, 3):
        bags, _ = several_draws(1600, 32, times)
        fresh, labels = several_draws(1600, 32, 2, seed=1)
        fitted = BPCount(rounds=1, trees=10, draws=10).fit(bags, monitor=QuietMonitor(), seed=0)
        quality.append(auroc(labels, fitted.predict_scores(fresh.X)))
    assert quality[1] > quality[0] - 0.005
    assert quality[1] > 0.85


@pytest.mark.parametrize("classes", [2, 3])
def test_marginals_of_bp_use_pairs_and_all_counts(classes: int) -> None:
    bags, _, _ = people(60, classes=classes)
    pairs = np.array([[0, 1]])
    graph = SimilarityGraph(len(bags.X), pairs, np.ones(1), np.ones(1, bool), np.ones(1, bool))
    free = label_overlapping(graph, bags, BPSettings(lambda_s=1e-4)).marginals.beliefs
    tied = label_overlapping(graph, bags, BPSettings(lambda_s=50.0)).marginals.beliefs
    assert np.abs(tied[0] - tied[1]).max() <= np.abs(free[0] - free[1]).max() + 1e-6
    assert np.abs(tied[0] - tied[1]).max() < 0.05
    expected = np.add.reduceat(bags.entries(free.reshape(len(free), -1)), bags.offsets[:-1])
    tolerance = 1.5 if classes == 2 else 6.0
    assert np.abs(expected - bags.counts).max() < tolerance
