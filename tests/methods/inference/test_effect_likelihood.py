"""The likelihood of a count with a bag effect integrated out, against brute-force integration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from llpbench_methods.inference import count_log_likelihood, effect_log_likelihood, fitted_tau


def by_brute_force(theta: np.ndarray, count: float, lam: float, tau: float, steps: int = 4001) -> float:
    """``log ∫ P(c | θ + u) N(u; 0, τ²) du`` by the trapezoid rule, the likelihood computed anew at each point."""
    u = np.linspace(-9.0 * tau, 9.0 * tau, steps)
    fields = (theta[None] + u[:, None]).ravel()
    logs = count_log_likelihood(fields, np.arange(steps + 1) * len(theta), np.full(steps, count), lam)
    logs = logs - 0.5 * (u / tau) ** 2 - 0.5 * np.log(2 * np.pi * tau**2)
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum() * (u[1] - u[0])))


@pytest.mark.parametrize("tau", [0.05, 0.4, 1.0, 2.0])
@pytest.mark.parametrize("lam", [np.inf, 0.1])
@pytest.mark.parametrize("size", [1, 8, 40])
def test_nodes_give_the_integral(size: int, lam: float, tau: float) -> None:
    rng = np.random.default_rng(size)
    theta = rng.normal(-1.0, 1.5, size)
    for count in {0.0, float(size // 2), float(size)}:
        found = effect_log_likelihood(theta, [0, size], [count], lam, tau)[0]
        wanted = by_brute_force(theta, count, lam, tau)
        assert found == pytest.approx(wanted, abs=1e-5 if tau <= 1.0 else 1e-3)
        assert effect_log_likelihood(theta, [0, size], [count], lam, tau, nodes=41)[0] == pytest.approx(
            wanted, abs=1e-5
        )


@pytest.mark.parametrize("lam", [np.inf, 0.3])
def test_without_an_effect_it_is_the_plain_likelihood_bit_for_bit(lam: float) -> None:
    rng = np.random.default_rng(0)
    theta, offsets, counts = rng.normal(size=60), [0, 10, 11, 60], [3.0, 1.0, 20.0]
    plain = count_log_likelihood(theta, offsets, counts, lam)
    np.testing.assert_array_equal(effect_log_likelihood(theta, offsets, counts, lam, 0.0), plain)
    np.testing.assert_allclose(effect_log_likelihood(theta, offsets, counts, lam, 1e-6), plain, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.sampled_from([0.1, 0.7, 2.0]), st.integers(0, 10**6))
def test_law_of_a_count_adds_up_to_one(size: int, tau: float, seed: int) -> None:
    theta = np.random.default_rng(seed).normal(-0.5, 2.0, size)
    every = np.arange(size + 1.0)
    logs = effect_log_likelihood(np.tile(theta, size + 1), size * np.arange(size + 2), every, np.inf, tau, nodes=31)
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-5)


def test_large_bags_far_from_their_mean() -> None:
    """A bag of 3,000 rows whose proportion is .8 where .25 is expected: few nodes still find the top."""
    theta = np.random.default_rng(1).normal(-1.2, 0.5, 3000)
    found = effect_log_likelihood(theta, [0, 3000], [2400.0], np.inf, 0.5)[0]
    assert found == pytest.approx(by_brute_force(theta, 2400.0, np.inf, 0.5), abs=1e-5)


@pytest.mark.parametrize("tau", [0.0, 0.6])
def test_effect_of_simulated_bags_is_found(tau: float) -> None:
    rng = np.random.default_rng(4)
    theta = rng.normal(-1.0, 1.0, (300, 100))
    counts = (rng.random(theta.shape) < expit(theta + tau * rng.normal(size=(300, 1)))).sum(axis=1).astype(float)
    found = fitted_tau(theta.ravel(), 100 * np.arange(301), counts)
    assert found <= 0.07 if tau == 0.0 else 0.45 < found < 0.75


def test_invalid_tau_is_rejected() -> None:
    for tau in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="tau"):
            effect_log_likelihood([0.0], [0, 1], [1.0], np.inf, tau)
