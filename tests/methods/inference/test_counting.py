"""The counting factor: messages, posteriors and likelihoods against enumeration and against tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench_methods.inference import bag_posterior, count_log_likelihood, counting_messages
from llpbench_methods.inference.compiled.counts_by_fourier import fourier_messages, workspace
from llpbench_methods.inference.compiled.counts_in_logs import windowed_messages
from llpbench_methods.inference.counting import fill_messages
from llpbench_methods.inference.engines.reference_count import bag_messages
from llpbench_methods.inference.messages import sigmoid

LAMBDAS = [1e-6, 1e-3, 0.05, 0.29, 0.31, 1.0, 5.0, 50.0, 200.0, 1e6, np.inf]


def relative_error(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.where(a == b, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(b))).max())


def enumerate_bag(theta: np.ndarray, count: float, lam: float) -> tuple[np.ndarray, float]:
    """Posterior of each member and the log-likelihood, by all label vectors."""
    y = np.array(list(itertools.product([0, 1], repeat=len(theta))))
    log_p = y @ theta - np.logaddexp(0, theta).sum()
    s = y.sum(1)
    log_p = log_p + (np.where(s == count, 0.0, -np.inf) if np.isinf(lam) else -lam * (s - count) ** 2)
    total = np.logaddexp.reduce(log_p)
    return np.exp(log_p - total) @ y, float(total)


@st.composite
def bags(draw: st.DrawFn, largest: int = 60) -> tuple[np.ndarray, float, float]:
    size = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    spread = draw(st.sampled_from([0.0, 0.5, 2.0, 10.0, 50.0, 500.0]))
    theta = rng.normal(0.5 * spread * rng.normal(), spread, size) if spread else np.zeros(size)
    lam = draw(st.sampled_from(LAMBDAS))
    count = float(draw(st.integers(0, size)))
    if np.isfinite(lam) and draw(st.booleans()):
        count += 3.0 * rng.normal()
    return theta, count, lam


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(bags(), st.sampled_from(["sum", "max"]))
def test_messages_agree_with_dynamic_programming(bag: tuple[np.ndarray, float, float], mode: str) -> None:
    theta, count, lam = bag
    ours = counting_messages(theta, [0, len(theta)], [count], lam, mode)
    assert not np.isnan(ours).any()
    assert relative_error(ours, bag_messages(theta, count, lam, mode)) < 1e-9


@settings(max_examples=100, deadline=None)
@given(bags(largest=9))
def test_posterior_and_likelihood_by_enumeration(bag: tuple[np.ndarray, float, float]) -> None:
    theta, count, lam = bag
    posterior, log_likelihood = enumerate_bag(theta, count, lam)
    offsets = [0, len(theta)]
    np.testing.assert_allclose(bag_posterior(theta, offsets, [count], lam), posterior, atol=1e-9)
    ours = count_log_likelihood(theta, offsets, [count], lam)[0]
    assert abs(ours - log_likelihood) <= 1e-9 * max(1.0, abs(log_likelihood))


@pytest.mark.parametrize("size", [130, 500])
@pytest.mark.parametrize("lam", LAMBDAS)
def test_large_bags(size: int, lam: float) -> None:
    rng = np.random.default_rng(size)
    for spread in (1.0, 30.0):
        theta = rng.normal(-1.0, 1.0, size) * spread
        count = float(rng.integers(1, size))
        ours = counting_messages(theta, [0, size], [count], lam)
        assert relative_error(ours, bag_messages(theta, count, lam)) < 1e-9


@settings(max_examples=60, deadline=None)
@given(bags())
def test_slow_path_is_correct_alone(bag: tuple[np.ndarray, float, float]) -> None:
    theta, count, lam = bag
    if len(theta) < 2 or (np.isinf(lam) and count in (0.0, len(theta))):
        return
    out = np.empty(len(theta))
    windowed_messages(theta, count, lam, out)
    assert relative_error(out, bag_messages(theta, count, lam)) < 1e-9


def test_ordinary_bags_take_the_fast_path_and_extreme_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 2049, 64)
    counts = np.full(32, 16.0)

    def slow_bags(theta: np.ndarray, lam: float) -> int:
        mu, mass = np.empty(2048), np.empty(32)
        return fill_messages(theta, offsets, counts, np.full(32, lam), False, workspace(64), np.zeros(32), mu, mass)

    assert all(slow_bags(rng.normal(0, 2, 2048), lam) == 0 for lam in LAMBDAS if lam < 1e6)
    assert slow_bags(rng.normal(0, 2, 2048), np.inf) == 0
    assert slow_bags(rng.normal(0, 1e4, 2048), 1.0) == 32


def test_fast_path_reports_lost_precision() -> None:
    odds = np.exp(np.array([60.0, 55.0, -50.0, -70.0]))
    good, _, _ = fourier_messages(odds, 2.0, np.inf, 0.0, workspace(4), np.empty(4))
    assert not good


def test_result_is_independent_of_the_initial_tilt() -> None:
    rng = np.random.default_rng(3)
    odds, out, again = np.exp(rng.normal(size=40)), np.empty(40), np.empty(40)
    assert fourier_messages(odds, 11.0, 0.7, 0.0, workspace(40), out)[0]
    assert fourier_messages(odds, 11.0, 0.7, -1.9, workspace(40), again)[0]
    np.testing.assert_allclose(out, again, rtol=1e-10)


@settings(max_examples=50, deadline=None)
@given(bags(), st.integers(0, 1000))
def test_flipping_labels_and_permuting_members(bag: tuple[np.ndarray, float, float], seed: int) -> None:
    theta, count, lam = bag
    size = len(theta)
    mu = counting_messages(theta, [0, size], [count], lam)
    flipped = counting_messages(-theta, [0, size], [size - count], lam)
    assert relative_error(-flipped, mu) < 1e-9
    order = np.random.default_rng(seed).permutation(size)
    assert relative_error(counting_messages(theta[order], [0, size], [count], lam), mu[order]) < 1e-9


@settings(max_examples=60, deadline=None)
@given(bags(), st.floats(-20.0, 20.0))
def test_hard_count_posteriors_ignore_a_common_shift(bag: tuple[np.ndarray, float, float], shift: float) -> None:
    """What all rows of a bag share cancels, given their sum: a bag effect changes no posterior."""
    theta, count, _ = bag
    count, offsets = float(np.clip(np.round(count), 0, len(theta))), [0, len(theta)]
    shifted = bag_posterior(theta + shift, offsets, [count], np.inf)
    np.testing.assert_allclose(shifted, bag_posterior(theta, offsets, [count], np.inf), atol=1e-9)


def test_soft_count_posteriors_depend_on_a_common_shift() -> None:
    theta = np.random.default_rng(5).normal(size=20)
    gap = bag_posterior(theta + 1.0, [0, 20], [7.0], 0.1) - bag_posterior(theta, [0, 20], [7.0], 0.1)
    assert np.abs(gap).max() > 0.01


def test_hard_counts_are_met_exactly() -> None:
    rng = np.random.default_rng(1)
    sizes = np.array([1, 1, 8, 31, 128, 1000, 5])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.array([0, 1, 3, 31, 0, 417, 2])
    theta = rng.normal(0, 3, offsets[-1])
    p = bag_posterior(theta, offsets, counts)
    np.testing.assert_allclose(np.add.reduceat(p, offsets[:-1]), counts, atol=1e-9)
    assert (p[offsets[3] : offsets[4]] == 1.0).all()
    assert (p[offsets[4] : offsets[5]] == 0.0).all()


def test_uninformative_counts_leave_the_prior() -> None:
    np.testing.assert_array_equal(counting_messages(np.ones(5), [0, 5], [2.0], 0.0), 0.0)
    np.testing.assert_allclose(bag_posterior(np.zeros(8), [0, 8], [3.0], np.inf), 3 / 8, rtol=1e-12)


def test_large_lambda_tends_to_the_hard_count() -> None:
    theta = np.random.default_rng(2).normal(size=20)
    soft = counting_messages(theta, [0, 20], [7.0], 1e6)
    np.testing.assert_allclose(soft, counting_messages(theta, [0, 20], [7.0], np.inf), rtol=1e-12)


def test_gradient_of_the_likelihood_is_posterior_minus_prior() -> None:
    rng = np.random.default_rng(4)
    theta = rng.normal(size=12)
    for lam in (0.4, np.inf):
        step = 1e-5
        numeric = [
            (
                count_log_likelihood(theta + step * e, [0, 12], [4.0], lam)[0]
                - count_log_likelihood(theta - step * e, [0, 12], [4.0], lam)[0]
            )
            / (2 * step)
            for e in np.eye(12)
        ]
        np.testing.assert_allclose(bag_posterior(theta, [0, 12], [4.0], lam) - sigmoid(theta), numeric, atol=1e-8)


def test_empty_bags_and_wrong_input() -> None:
    p = bag_posterior([0.3, -0.2], [0, 0, 2, 2], [0, 1, 0])
    np.testing.assert_allclose(p.sum(), 1.0)
    for theta, offsets, counts, lam, message in (
        ([0.0, 0.0], [0, 1], [1], 1.0, "offsets"),
        ([0.0, np.nan], [0, 2], [1], 1.0, "finite"),
        ([0.0, 0.0], [0, 2], [3], np.inf, "hard counts"),
        ([0.0, 0.0], [0, 2], [1], -1.0, "negative"),
    ):
        with pytest.raises(ValueError, match=message):
            counting_messages(theta, offsets, counts, lam)
