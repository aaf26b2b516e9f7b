"""count-nll: the likelihood of counts against enumeration and against the counting factor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench import Bags
from llpbench_methods.count_nll.method import bag_effect_scales, usable_counts
from llpbench_methods.inference import effect_log_likelihood
from llpbench_methods.inference.counting import bag_posterior, count_log_likelihood

OFFSETS = [0, 50, 51, 64]
COUNTS = np.array([20.0, 1.0, 0.0])
NOISY = np.array([18.7, -1.4, 15.2])


@pytest.mark.slow
@each_backend
def test_known_values(backend):
    got = figures(backend)["losses.count_nll"]
    close(got["law"], [0.01645026, 0.17117578, 0.40982478, 0.32882422, 0.07372496])
    close(got["one"][0], 1.7650642809)
    close(got["one"][1][:4], [0.23358763, 0.40389843, 0.46401462, 0.17069716])


@pytest.mark.slow
@each_backend
@pytest.mark.parametrize(("case", "counts", "sd"), [("hard", COUNTS, 0.0), ("noisy", NOISY, 1.5)])
def test_likelihood_and_gradient_are_those_of_the_counting_factor(backend, case, counts, sd):
    got = figures(backend)["losses.count_nll"]
    z = np.array(got["z"])
    penalty = 1 / (2 * sd**2) if sd else np.inf
    value, gradient = got[case]
    close(value, -count_log_likelihood(z, OFFSETS, counts, penalty), 1e-5)
    close(gradient, 1 / (1 + np.exp(-z)) - bag_posterior(z, OFFSETS, counts, penalty), 1e-5)


@pytest.mark.slow
@each_backend
def test_large_bags_are_gaussian(backend):
    got = figures(backend)["losses.count_nll"]
    z = np.array(got["z"])
    p = 1 / (1 + np.exp(-z))
    bags = np.split(p, OFFSETS[1:-1])
    mean, variance = np.array([b.sum() for b in bags]), np.array([(b * (1 - b)).sum() for b in bags])

    def gaussian(counts, v):
        return 0.5 * (counts - mean) ** 2 / v + 0.5 * np.log(v)

    hard = np.array(got["hard"][0])
    close(got["mixed"][0], np.where([True, False, False], gaussian(COUNTS, variance), hard), 1e-5)
    close(got["gaussian_noisy"][0], gaussian(NOISY, variance + 1.5**2), 1e-5)
    assert abs(gaussian(COUNTS, variance)[0] + 0.5 * np.log(2 * np.pi) - hard[0]) < 0.1
    close(got["mixed"][1][50:], got["hard"][1][50:], 1e-6)


@pytest.mark.slow
@each_backend
@pytest.mark.parametrize(("case", "counts", "sd"), [("effect", COUNTS, 0.0), ("effect_noisy", NOISY, 1.5)])
def test_bag_effect_is_integrated_out(backend, case, counts, sd):
    got = figures(backend)["losses.count_nll"]
    z = np.array(got["z"])
    penalty = 1 / (2 * sd**2) if sd else np.inf

    def wanted(z):
        return effect_log_likelihood(z, OFFSETS, counts, penalty, tau=0.7, nodes=31)

    value, gradient = got[case]
    close(value, -wanted(z), 1e-4)
    step = 1e-4 * np.eye(len(z))
    slopes = [(wanted(z + e) - wanted(z - e)).sum() / 2e-4 for e in step[[0, 20, 50, 55]]]
    close(np.array(gradient)[[0, 20, 50, 55]], -np.array(slopes), 1e-3)


@pytest.mark.slow
@each_backend
def test_without_an_effect_the_loss_is_the_plain_one(backend):
    got = figures(backend)["losses.count_nll"]
    close(got["tiny_effect"][0], got["hard"][0], 1e-4)
    z = np.array(got["z"])
    p = 1 / (1 + np.exp(-z))
    bags = np.split(p, OFFSETS[1:-1])
    mean, variance = np.array([b.sum() for b in bags]), np.array([(b * (1 - b)).sum() for b in bags])
    v = variance + 1.5**2 + (0.7 * variance) ** 2
    close(got["gaussian_effect"][0], 0.5 * (NOISY - mean) ** 2 / v + 0.5 * np.log(v), 1e-5)


def test_effect_is_estimated_by_evidence_and_zero_for_random_bags():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)).astype(np.float32)
    offsets, u = 50 * np.arange(81), np.repeat(0.8 * rng.normal(size=80), 50)
    for effect in (0.0, 1.0):
        y = rng.random(4000) < 1 / (1 + np.exp(1.0 - X[:, 0] - effect * u))
        counts = np.add.reduceat(y.astype(float), offsets[:-1])
        (tau,) = bag_effect_scales(Bags(X, offsets, counts[:, None]))
        assert tau == 0.0 if effect == 0.0 else 0.5 < tau / 0.8 < 1.2
        pictures = X.reshape(-1, 1, 1, 3) * np.ones((1, 2, 2, 1), np.float32)
        several = bag_effect_scales(Bags(pictures, offsets, np.column_stack([50 - counts, counts, 0 * counts]), 3))
        assert several[2] == 0.0
        assert several[1] == pytest.approx(tau, rel=1e-3)


@pytest.mark.slow
@each_backend
def test_certain_wrong_predictions_have_finite_loss(backend):
    value, gradient = figures(backend)["losses.count_nll"]["extreme"]
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


@pytest.mark.slow
@each_backend
def test_several_classes_add_up(backend):
    got = figures(backend)["losses.count_nll"]
    z = np.array(got["z3"])
    q = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    expected = 0.0
    for c, count in enumerate((2, 1, 1)):
        ways = [y for y in itertools.product((0, 1), repeat=4) if sum(y) == count]
        expected -= np.log(sum(np.prod(np.where(y, q[:, c], 1 - q[:, c])) for y in ways))
    close(got["multiclass"], [expected], 1e-5)


def test_counts_are_whole_and_possible_unless_noise_is_known():
    given = np.array([[-1.2], [2.4], [9.0]])
    X, offsets = np.zeros((12, 1), np.float32), np.array([0, 4, 8, 12])
    close(usable_counts(Bags(X, offsets, given)), [[0], [2], [4]])
    close(usable_counts(Bags(X, offsets, given, count_sd=1.0)), given)
