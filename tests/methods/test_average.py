"""average: the pool of its members' odds, their weights, and the known rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from llpbench import Bags, HeldOut, QuietMonitor
from llpbench.experiment.rules import bag_cross_entropy
from llpbench.kit.problem import Problem
from llpbench_methods.average.method import Average
from llpbench_methods.average.pool import log_odds, pooled, probabilities


class Notes(QuietMonitor):
    """Keeps notes."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def note(self, name: str, value: float | str | bool) -> None:
        self.kept[name] = value


@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
def test_pool_is_the_weighted_geometric_mean_of_odds(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    members = rng.dirichlet(np.ones(classes), size=(3, 4)) * 0.999 + 0.001 / classes
    weights = rng.dirichlet(np.ones(3))
    product = np.prod(members ** weights[:, None, None], axis=0)
    wanted = product / product.sum(axis=1, keepdims=True)
    given_ = members[:, :, 1] if classes == 2 else members
    found = probabilities(pooled([log_odds(p) for p in given_], weights))
    assert_allclose(found, wanted[:, 1] if classes == 2 else wanted, rtol=1e-9)


def test_no_member_can_veto_the_others() -> None:
    certain, unsure = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    p = probabilities(pooled([log_odds(certain), log_odds(unsure)], np.array([0.5, 0.5])))
    assert np.all((p > 0.0) & (p < 1.0))
    assert p[0] < 0.5 < p[1]


def test_weights_are_the_likelihood_of_the_held_out_counts() -> None:
    problem, monitor = Problem(sizes=6), Notes()
    method = Average(members="quick").fit(problem.train, monitor=monitor, seed=1)
    held = problem.valid
    scores = [model.predict_scores(held.X) for model in method._models.values()]
    logs = np.array([-len(held.X) * bag_cross_entropy(HeldOut(p, p, held)) for p in scores])
    likelihood = np.exp(logs - logs.max())
    assert_allclose(method.weights_, likelihood / likelihood.sum(), rtol=1e-3)
    assert sorted(monitor.kept) == ["weight_bag-logistic", "weight_bp-count", "weight_mean-ridge"]


def test_weights_are_equal_on_request_and_without_held_out_bags() -> None:
    train = Problem(rows=48).train
    for method, bags in ((Average("quick", "equal"), train), (Average("quick"), replace(train, validation=None))):
        assert_allclose(method.fit(bags, monitor=QuietMonitor(), seed=1).weights_, 1.0 / 3.0)


def noisy(bags: Bags) -> Bags:
    counts = bags.counts + np.random.default_rng(0).normal(0.0, 2.0, bags.counts.shape)
    return replace(bags, counts=counts, count_sd=2.0)


@pytest.mark.parametrize(("classes", "noise"), [(2, False), (3, False), (2, True)])
def test_mean_prediction_is_the_known_rate(classes: int, noise: bool) -> None:
    bags = Problem(rows=96, classes=classes).train
    bags = noisy(bags) if noise else bags
    p = Average("quick").fit(bags, monitor=QuietMonitor(), seed=1).predict_scores(bags.X)
    assert_allclose(np.atleast_1d(p.mean(axis=0)), bags.prior, atol=1e-4)


def test_quick_members_do_not_train_themselves() -> None:
    state = Average("quick").fit(Problem(rows=96).train, monitor=QuietMonitor(), seed=1).state()
    assert state["bp-count/learner"] == "none"


def test_one_bag_gives_every_row_its_proportion() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    bags = Bags(X, np.array([0, 30]), np.array([[12.0]]))
    p = Average("quick").fit(bags, monitor=QuietMonitor(), seed=1).predict_scores(X)
    assert_allclose(p, 0.4, atol=1e-3)
