"""mean-ridge: evidence and posterior against brute force, and its behaviour in odd settings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from llpbench import Bags, QuietMonitor, Skip
from llpbench_methods.mean_ridge.method import MeanRidge, best_scale
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.mean_regression import (
    average_weights,
    decompose,
    noise_variances,
    regression,
    smoothed_rate,
)
from llpbench_methods.shared.spectrum import principal_components


def setting(n_bags, d, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_bags, d)) @ np.diag(np.linspace(0.2, 2, d))
    variances = rng.uniform(0.01, 0.1, n_bags)
    proportions = 0.3 + rng.normal(size=n_bags) * 0.2
    factor = rng.normal(size=(d, rank or d)) * 0.5
    return means, proportions, variances, factor


@pytest.mark.parametrize(
    ("n_bags", "d", "rank"), [(30, 4, 4), (5, 12, 12), (5, 12, 3), (4, 4, 4), (2, 1, 1), (6, 5, 5)]
)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_evidence_is_the_normal_density_with_the_intercept_integrated_out(n_bags, d, rank, scale):
    means, y, v, factor = setting(n_bags, d, rank=rank)
    ours = decompose(regression(means, y, v), factor).log_evidence(scale)[0]
    # A flat prior on the intercept: the density of n - 1 contrasts that are orthogonal to the constant
    # (their Jacobian is 1/sqrt(n), which the flat prior's unit scale turns into -log(n)/2).
    contrasts = np.linalg.svd(np.ones((1, n_bags)))[2][1:]
    F = means @ factor
    covariance = contrasts @ (np.diag(v) + scale * F @ F.T) @ contrasts.T
    expected = multivariate_normal(np.zeros(n_bags - 1), covariance).logpdf(contrasts @ y)
    assert ours == pytest.approx(expected - 0.5 * np.log(n_bags), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("n_bags", "d"), [(30, 4), (5, 12), (2, 3)])
def test_posterior_is_dense_bayesian_regression(n_bags, d):
    means, y, v, factor = setting(n_bags, d)
    scale = 0.7
    found = decompose(regression(means, y, v), factor).posterior(scale)
    # Direct: precisions of weights and of a flat intercept in one Gaussian model.
    design = np.column_stack([np.ones(n_bags), means])
    precision = design.T @ (design / v[:, None])
    precision[1:, 1:] += np.linalg.inv(scale * factor @ factor.T)
    covariance = np.linalg.inv(precision)
    mean = covariance @ design.T @ (y / v)
    X = np.random.default_rng(1).normal(size=(7, d))
    wide = np.column_stack([np.ones(7), X])
    np.testing.assert_allclose(found.weights, mean[1:], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.intercept + found.offset(X), wide @ mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.variance(X), np.sum(wide @ covariance * wide, axis=1), rtol=1e-7)


def test_average_over_priors_weighs_posteriors_by_evidence():
    means, y, v, factor = setting(12, 5)
    problem, scales = regression(means, y, v), np.array([0.01, 0.3, 5.0])
    factors = [factor, np.eye(5)]
    seen = [(decompose(problem, one), scale) for one in factors for scale in scales]
    evidence = np.exp([one.log_evidence(scale)[0] for one, scale in seen])
    weights = np.array([one.posterior(scale).weights for one, scale in seen])
    np.testing.assert_allclose(average_weights(problem, factors, scales), evidence @ weights / evidence.sum())


def test_more_bags_than_features_change_nothing_but_the_cost():
    means, y, v, _ = setting(40, 3)
    rows = regression(means, y, v).rows
    assert rows.shape == (3, 3)
    assert regression(means[:3], y[:3], v[:3]).rows.shape == (3, 3)


def test_prior_is_a_power_of_the_covariance():
    X = np.random.default_rng(0).normal(size=(500, 4)) @ np.diag([3.0, 1, 0.5, 0.1])
    spectrum = principal_components(X)
    C = np.cov(X.T, bias=True)
    for gamma, power in [(1.0, np.eye(4)), (2.0, C), (0.0, np.linalg.inv(C))]:
        L = spectrum.prior_factor(gamma)
        covariance = L @ L.T
        np.testing.assert_allclose(covariance / covariance[0, 0], power / power[0, 0], atol=1e-8)
        assert np.trace(C @ covariance) == pytest.approx(1.0)  # unit variance of a random row


def test_constant_and_repeated_features_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2)).astype(np.float32)
    X = np.column_stack([x, np.full(100, 7, np.float32), x[:, 0]])
    assert len(principal_components(X).variances) == 2
    wide = rng.normal(size=(5, 20))
    assert len(principal_components(wide).variances) == 4
    assert len(principal_components(np.ones((6, 2), np.float32)).variances) == 0


def test_bag_means_and_noise():
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.testing.assert_allclose(bag_means(X, np.array([0, 1, 6])), [[0, 1], [6, 7]])
    np.testing.assert_allclose(noise_variances(np.array([1, 4]), 0.25, 2.0), [0.1875 + 4, 0.046875 + 0.25])


def bagged(n=2000, d=6, size=20, seed=0, classes=2, uneven=False, count_sd=0.0, validation=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    truth = np.random.default_rng(99).normal(size=(d, classes))
    y = np.argmax(X @ truth + rng.gumbel(size=(n, classes)), axis=1)
    if uneven:
        cuts = np.sort(rng.choice(np.arange(1, n), n // size - 1, replace=False))
        offsets = np.concatenate([[0], cuts, [n]])
    else:
        offsets = np.append(np.arange(0, n, size), n)
    counts = np.add.reduceat(np.eye(classes)[y], offsets[:-1], axis=0)
    counts = counts + rng.normal(size=counts.shape) * count_sd
    held_out = bagged(n, d, size, seed + 1, classes)[0] if validation else None
    for array in (X, offsets, counts):
        array.setflags(write=False)
    return Bags(X, offsets, counts[:, 1:] if classes == 2 else counts, classes, count_sd, validation=held_out), y


class Once(QuietMonitor):
    def __init__(self):
        self.reports, self.notes = 0, {}

    def report(self, predict, *, stage=""):
        self.reports += 1
        return True

    def note(self, name, value):
        self.notes[name] = value


def auc(y, score):
    rank = np.argsort(np.argsort(score)) + 1
    n1, n0 = (y == 1).sum(), (y == 0).sum()
    return (rank[y == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)


@pytest.mark.parametrize("choice", ["evidence", "validation"])
@pytest.mark.parametrize("uneven", [False, True])
def test_learns_from_bags(uneven, choice):
    bags, y = bagged(uneven=uneven, validation=True)
    monitor = Once()
    method = MeanRidge(choice=choice).fit(bags, monitor=monitor, seed=0)
    scores = method.predict_scores(bags.X)
    assert monitor.reports == 1
    assert 0 <= monitor.notes["gamma"] <= 3
    assert scores.shape == (len(bags.X),)
    assert auc(y, scores) > 0.85
    assert ((scores > 0) & (scores < 1)).all()
    assert len(np.unique(scores)) == len(scores)  # a monotone link ties nothing


def test_multiclass_is_one_against_the_rest():
    bags, y = bagged(classes=4, size=10)
    method = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0)
    scores = method.predict_scores(bags.X)
    assert scores.shape == (len(bags.X), 4)
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    assert np.mean(scores.argmax(axis=1) == y) > np.bincount(y).max() / len(y) + 0.1


def test_two_classes_as_multiclass_give_the_binary_scores():
    bags, _ = bagged()
    counts = np.column_stack([bags.sizes - bags.counts[:, 0], bags.counts[:, 0]])
    both = MeanRidge().fit(Bags(bags.X, bags.offsets, counts, classes=3), monitor=QuietMonitor(), seed=0)
    one = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0)
    np.testing.assert_allclose(both.predict_scores(bags.X)[:, 1], one.predict_scores(bags.X), atol=1e-3)


def test_fixed_penalty_and_gamma_are_ridge_regression():
    bags, _ = bagged()
    penalty = 3.0
    found = MeanRidge(penalty=penalty, gamma=1.0).fit(bags, monitor=QuietMonitor(), seed=0)
    means = bag_means(bags.X, bags.offsets)
    centre, share = bags.X.mean(axis=0, dtype=np.float64), bags.counts.sum() / bags.sizes.sum()
    A = means - centre
    left = A.T @ (bags.sizes[:, None] * A) + penalty * np.eye(A.shape[1])
    weights = np.linalg.solve(left, A.T @ (bags.sizes * (bags.proportions[:, 0] - share)))
    np.testing.assert_allclose(found.choices_[0].posterior.weights, weights, rtol=1e-3)
    assert MeanRidge(gamma=2.0).fit(bags, monitor=QuietMonitor(), seed=0).choices_[0].gamma == 2.0


def test_known_count_noise_widens_the_posterior():
    quiet, _ = bagged()
    loud = Bags(quiet.X, quiet.offsets, quiet.counts, count_sd=10.0)
    fixed = {"penalty": 1.0, "gamma": 1.0}
    calm = MeanRidge(**fixed).fit(quiet, monitor=QuietMonitor(), seed=0)
    tense = MeanRidge(**fixed).fit(loud, monitor=QuietMonitor(), seed=0)
    variances = [fitted.choices_[0].posterior.variance(quiet.X) for fitted in (tense, calm)]
    assert (variances[0] > variances[1]).all()
    assert np.linalg.norm(tense.choices_[0].posterior.weights) < np.linalg.norm(calm.choices_[0].posterior.weights)


def test_fewer_bags_leave_more_variance():
    few, _ = bagged(n=200)
    many, _ = bagged(n=4000)
    fixed = {"penalty": 1.0, "gamma": 1.0}
    fits = [MeanRidge(**fixed).fit(bags, monitor=QuietMonitor(), seed=0) for bags in (few, many)]
    little, much = (fitted.choices_[0].posterior.variance(few.X).mean() for fitted in fits)
    assert little > 2 * much


ODD = {
    "two bags": {"n": 40, "size": 20},
    "one bag": {"n": 20, "size": 20},
    "one feature": {"d": 1},
    "bags of one row": {"n": 300, "size": 1},
    "more features than bags": {"n": 200, "d": 50, "size": 20},
    "more features than rows": {"n": 30, "d": 60, "size": 5},
    "counts outside the bag": {"count_sd": 30.0},
}


@pytest.mark.parametrize("options", ODD.values(), ids=ODD)
@pytest.mark.parametrize("classes", [2, 3])
def test_odd_settings_give_finite_scores(options, classes):
    bags, _ = bagged(classes=classes, **options)
    method = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0)
    assert np.isfinite(method.predict_scores(bags.X)).all()


@pytest.mark.parametrize("fill", ["constant", "zero counts", "full counts", "wide", "tiny"])
def test_degenerate_data_give_finite_scores(fill):
    bags, _ = bagged(n=200)
    X, counts = bags.X, bags.counts
    if fill == "constant":
        X = np.ones_like(X)
    elif fill == "zero counts":
        counts = np.zeros_like(counts)
    elif fill == "full counts":
        counts = bags.sizes[:, None].astype(float)
    else:
        X = X * np.float32(1e12 if fill == "wide" else 1e-12)
    scores = MeanRidge().fit(Bags(X, bags.offsets, counts), monitor=QuietMonitor(), seed=0).predict_scores(X)
    assert np.isfinite(scores).all()
    if fill in ("wide", "tiny"):
        plain = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(bags.X)
        np.testing.assert_allclose(scores, plain, rtol=1e-2)


def test_validation_choice_without_validation_bags_is_declined():
    bags, _ = bagged()
    with pytest.raises(Skip, match="validation"):
        MeanRidge(choice="validation").fit(bags, monitor=QuietMonitor(), seed=0)


def test_rate_never_touches_the_ends():
    assert 0 < smoothed_rate(np.zeros((3, 1)), 30) < smoothed_rate(np.full((3, 1), 50.0), 30) < 1


@settings(max_examples=30, deadline=None)
@given(st.floats(-8, 5))
def test_best_scale_finds_the_top_between_grid_points(top):
    grid = np.logspace(-6, 3, 46)
    scale, value = best_scale(lambda s: -((np.log10(s) - top) ** 2), grid)
    assert np.log10(scale) == pytest.approx(np.clip(top, -6, 3), abs=1e-3)
    assert value == pytest.approx(-((np.log10(scale) - top) ** 2))
