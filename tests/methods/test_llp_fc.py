"""LLP-FC: groups, transition matrices, and the forward-corrected loss."""

from __future__ import annotations

import numpy as np
import pytest
from backends import close, each_backend, figures
from scipy.optimize import minimize

from llpbench import Bags, QuietMonitor, Skip
from llpbench_methods.llp_fc.groups import form_groups, noisy_priors, row_weights, transition_matrices
from llpbench_methods.llp_fc.method import LLPFC

GAMMA = np.array([[[0.2, 0.8], [0.6, 0.4]]])


@pytest.mark.slow
@each_backend
def test_loss_has_the_known_values(backend):
    got = figures(backend)["losses.llp_fc"]
    close(got["pair"], [1.1711829815, 0.3710636814])
    close(got["soft"], got["pair"])
    close(got["weighted"], (1.1711829815 + 3 * 0.3710636814) / 4)
    close(got["confident"], [-np.log(0.4), -np.log(0.1)])


@pytest.mark.slow
@each_backend
def test_pure_bags_give_cross_entropy_and_equal_bags_no_gradient(backend):
    got = figures(backend)["losses.llp_fc"]
    close(got["pure"], got["pure_numpy"])
    close(got["flat"][0], np.log(2))
    close(got["flat"][1], 0.0, 1e-7)


def test_transition_matrices():
    a = noisy_priors(GAMMA, np.array([0.5, 0.5]), "approx")
    close(a, [[0.25, 0.75]])
    T = transition_matrices(GAMMA, a)
    close(T, [[[0.1, 0.4], [0.9, 0.6]]])
    close(T[0] @ [0.3, 0.7], [0.31, 0.69])
    even = transition_matrices(GAMMA, noisy_priors(GAMMA, np.array([0.5, 0.5]), "uniform"))
    close(even[0], [[0.25, 2 / 3], [0.75, 1 / 3]])
    close(even[0] @ [0.3, 0.7], [0.5416667, 0.4583333], 1e-6)
    close(transition_matrices(np.eye(3)[None], np.full((1, 3), 1 / 3)), np.eye(3)[None])
    close(transition_matrices(np.array([[[0.6, 0.4]] * 2]), np.full((1, 2), 0.5)), np.full((1, 2, 2), 0.5))


def test_published_weights_are_an_option():
    other = np.array([[[0.9, 0.1], [0.7, 0.3]]])
    close(noisy_priors(GAMMA, np.array([0.5, 0.5]), "approx_official"), [[0.5, 0.5]])
    close(noisy_priors(other, np.array([0.76, 0.24]), "approx_official"), [[0.6299, 0.3701]], 1e-3)
    close(noisy_priors(other, np.array([0.76, 0.24]), "approx"), [[0.3, 0.7]])


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("kind", ["approx", "approx_official"])
def test_priors_of_several_classes_solve_their_problem(classes, kind):
    rng = np.random.default_rng(classes)
    Gamma, target = rng.dirichlet(np.ones(classes), (6, classes)), rng.dirichlet(np.ones(classes))
    found = noisy_priors(Gamma, target, kind)
    close(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    for G, a in zip(Gamma, found, strict=True):
        A = G if kind == "approx_official" else G.T
        best = minimize(
            lambda x, A=A: np.sum((A @ x - target) ** 2),
            np.full(classes, 1 / classes),
            bounds=[(0, 1)] * classes,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert np.sum((A @ a - target) ** 2) <= best.fun + 1e-6


def test_equal_bags_get_equal_weights():
    close(noisy_priors(np.array([[[0.6, 0.4]] * 2]), np.array([0.5, 0.5]), "approx"), [[0.5, 0.5]])
    close(noisy_priors(np.full((1, 3, 3), 1 / 3), np.array([0.2, 0.3, 0.5]), "approx"), [[1 / 3] * 3], 1e-3)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", ["uniform", "approx", "approx_official"])
def test_groups_have_one_bag_per_class(classes, kind):
    rng = np.random.default_rng(0)
    n = 100 * classes + 1
    shares = rng.dirichlet(np.ones(classes) * 0.3, n)
    shares[rng.random(n) < 0.3] = np.eye(classes)[0]
    sizes = rng.integers(1, 50, n)
    groups = form_groups(shares, sizes, shares.mean(0), rng, noisy_prior=kind)
    assert groups.bags.shape == (100, classes)
    assert len(np.unique(groups.bags)) == 100 * classes
    close(groups.transitions.sum(axis=1), 1.0, 1e-9)
    assert (groups.transitions >= 0).all()
    close(groups.weights.sum(axis=1), 1.0, 1e-9)


def test_weights_make_up_for_uneven_bags():
    close(row_weights(np.array([[0.25, 0.75]]), np.array([[8, 8]])), [[0.25, 0.75]])
    close(row_weights(np.array([[0.5, 0.5]]), np.array([[10, 30]])), [[0.75, 0.25]])


def test_model_of_noisy_labels_is_that_of_the_weighted_group():
    rng = np.random.default_rng(1)
    law = rng.dirichlet(np.ones(4), 2)  # P(x | y)
    Gamma, a = rng.dirichlet(np.ones(2), (1, 2)), np.array([[0.3, 0.7]])
    implied = Gamma[0].T @ a[0]
    joint = a[0][:, None] * (Gamma[0] @ law)  # P(place, x)
    clean = implied[:, None] * law / (implied @ law)  # P(y | x) under the group's class shares
    T = transition_matrices(Gamma, a)[0]
    close(T @ clean, joint / joint.sum(axis=0), 1e-12)


def test_groups_without_a_class_do_not_fail():
    rng = np.random.default_rng(0)
    positives = rng.binomial(8, 0.1, 400) / 8
    shares = np.column_stack([1 - positives, positives])
    for kind in ("uniform", "approx", "approx_official"):
        groups = form_groups(shares, np.full(400, 8), shares.mean(0), rng, noisy_prior=kind)
        assert np.isfinite(groups.transitions).all()
        empty = shares[groups.bags][:, :, 1].sum(axis=1) == 0
        assert empty.any()
        close(groups.transitions[empty][:, :, 1], groups.transitions[empty][:, :, 0])


def test_informative_groups_weigh_more():
    shares = np.array([[1.0, 0.0], [0.0, 1.0]])
    same = np.full((2, 2), 0.5)
    given = (np.array([4, 4]), np.array([0.5, 0.5]), np.random.default_rng(0))
    close(form_groups(shares, *given, informative=True).weights, 0.5)
    close(form_groups(same, *given, informative=True).weights, 0.0)


def test_fewer_bags_than_classes_is_declined():
    bags = Bags(np.zeros((4, 2), np.float32), np.array([0, 4]), np.array([[1.0]]))
    with pytest.raises(Skip, match="2 classes, got 1 bags"):
        LLPFC().fit(bags, monitor=QuietMonitor(), seed=0)
