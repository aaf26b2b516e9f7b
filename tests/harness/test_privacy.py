"""Noise on counts: the Gaussian mechanism with the paper's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import UsageError
from llpbench.privacy import add_count_noise, count_noise_sd, epsilon_of, noise_label


def test_the_standard_deviation_is_that_of_the_gaussian_mechanism() -> None:
    assert count_noise_sd(1.0, 1e-5) == pytest.approx(4.8448, abs=5e-5)
    assert count_noise_sd(10.0, 1e-5) == pytest.approx(0.48448, abs=5e-6)
    assert count_noise_sd(epsilon_of("high"), 1e-5) == count_noise_sd(1.0, 1e-5)
    assert count_noise_sd(epsilon_of("medium"), 1e-5) == count_noise_sd(10.0, 1e-5)
    assert count_noise_sd(epsilon_of("none"), 1e-5) == 0.0


@quick
@given(epsilon=st.floats(0.01, 100), delta=st.floats(1e-9, 0.5), size=st.integers(1, 4096))
def test_on_a_proportion_it_is_the_formula_of_the_design(epsilon: float, delta: float, size: int) -> None:
    wanted = math.sqrt(2 * math.log(1.25 / delta)) / (epsilon * size)
    assert count_noise_sd(epsilon, delta) / size == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="--delta"):
        count_noise_sd(1.0, delta)


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown noise mechanism 'laplace'"):
        count_noise_sd(1.0, 1e-5, "laplace")


@pytest.mark.parametrize(
    ("text", "label", "epsilon"),
    [
        ("none", "none", None),
        ("medium", "medium", 10.0),
        ("epsilon=10", "medium", 10.0),
        ("1.0", "high", 1.0),
        ("epsilon=3", "epsilon=3", 3.0),
        ("0.50", "epsilon=0.5", 0.5),
    ],
)
def test_levels_have_one_name_each(text: str, label: str, epsilon: float | None) -> None:
    assert noise_label(text) == label
    assert epsilon_of(text) == epsilon


@quick
@given(st.floats(min_value=1e-300, allow_infinity=False))
def test_a_level_keeps_its_epsilon_to_the_last_digit(epsilon: float) -> None:
    assert epsilon_of(noise_label(f"epsilon={epsilon!r}")) == epsilon


@pytest.mark.parametrize("text", ["", "loud", "0", "-1", "nan", "inf", "epsilon=", "epsilon=x"])
def test_other_levels_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="positive epsilon"):
        epsilon_of(text)


def test_noise_has_the_given_spread_is_seeded_and_leaves_the_counts_alone() -> None:
    counts = np.zeros((40_000, 1))
    noisy = add_count_noise(counts, 4.8448, np.random.default_rng(0))
    assert noisy.std() == pytest.approx(4.8448, rel=0.02)
    assert abs(noisy.mean()) < 0.1
    assert (noisy < 0).any()  # not clipped
    assert not counts.any()
    np.testing.assert_array_equal(noisy, add_count_noise(counts, 4.8448, np.random.default_rng(0)))
    assert add_count_noise(counts, 0.0, np.random.default_rng(0)) is counts
