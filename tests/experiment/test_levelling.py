"""Predictions brought to a known rate: the shift is the right one, whatever the scores look like."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import bags_of, make_part, quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax

from llpbench.experiment.levelling import binary_shift, class_shifts, inner_rate, level, log_odds
from llpbench.experiment.metrics import to_probabilities
from llpbench.experiment.rules import make_rules

rates = st.floats(1e-5, 1 - 1e-5)
seeds = st.integers(0, 10_000)


@quick
@given(seeds, rates, st.floats(0.01, 40), st.floats(-60, 60))
def test_shift_is_the_root_that_scipy_finds(seed: int, rate: float, spread: float, centre: float) -> None:
    z = np.random.default_rng(seed).normal(centre, spread, 200)
    wanted = brentq(lambda t: float(expit(z + t).mean()) - rate, *_around(z, rate), xtol=1e-12, rtol=1e-14)
    found = binary_shift(z, rate)
    assert expit(z + found).mean() == pytest.approx(rate, rel=1e-8)
    # where no row lies near the threshold the mean is flat, and the root is known less well
    slope = float((expit(z + found) * expit(-z - found)).mean())
    assert found == pytest.approx(wanted, abs=1e-8 + 1e-12 / max(slope, 1e-12))


def _around(z: np.ndarray, rate: float) -> tuple[float, float]:
    return float(logit(rate) - z.max() - 1), float(logit(rate) - z.min() + 1)


@quick
@given(seeds, st.integers(3, 6), st.floats(0.01, 20))
def test_several_classes_get_the_given_shares(seed: int, classes: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    z, shares = rng.normal(0, spread, (150, classes)), rng.dirichlet(np.ones(classes) * 2)
    shares = inner_rate(shares, 150)
    np.testing.assert_allclose(level(z, shares).mean(axis=0), shares, atol=1e-7)


def test_two_classes_as_columns_get_the_shift_of_one_column() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 3, 300)
    one = level(z, np.array([0.2]))
    both = level(np.stack([np.zeros(300), z], axis=1), np.array([0.8, 0.2]))
    np.testing.assert_allclose(both[:, 1], one, atol=1e-8)


ODD = {
    "all equal": np.zeros(40),
    "all saturated high": np.ones(40),
    "all saturated low": np.zeros(40),
    "zeros and ones": np.repeat([0.0, 1.0], [30, 10]),
    "one row of its own": np.append(np.zeros(39), 1.0),
    "single precision": np.float32(expit(np.linspace(-90, 90, 40))),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("rate", [0.0, 1.0, 0.25, 0.3, 1e-9])
def test_saturated_probabilities_and_rates_at_the_ends_are_levelled_too(name: str, rate: float) -> None:
    p = ODD[name] if name != "all equal" else np.full(40, 0.3)
    wanted = inner_rate(np.array([rate]), len(p))
    assert 0 < wanted[0] < 1
    levelled = level(log_odds(p, p), wanted)
    assert np.isfinite(levelled).all()
    assert levelled.mean() == pytest.approx(wanted[0], rel=1e-6)
    order = np.argsort(p, kind="stable")
    assert (np.diff(levelled[order]) >= 0).all()  # the order of the rows stays


@pytest.mark.parametrize("shares", [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
def test_saturated_predictions_of_several_classes_are_levelled_too(shares: list[float]) -> None:
    p = np.eye(3)[np.random.default_rng(0).integers(0, 3, 60)]
    wanted = inner_rate(np.array(shares), 60)
    assert wanted.sum() == pytest.approx(1)
    np.testing.assert_allclose(level(log_odds(p, p), wanted).mean(axis=0), wanted, atol=1e-6)


def test_log_odds_accept_probabilities_and_logits() -> None:
    z = np.linspace(-30, 30, 50)
    logits = log_odds(z, to_probabilities(z, "auto"))
    np.testing.assert_array_equal(logits, z)  # no detour: confident rows keep their order
    np.testing.assert_allclose(log_odds(expit(z), to_probabilities(expit(z), "auto")), z, atol=1e-2)
    inside = np.linspace(0.1, 0.9, 50)  # log-odds that could be probabilities, from a method that declares logits
    np.testing.assert_array_equal(log_odds(inside, to_probabilities(inside, "logit")), inside)
    many = np.random.default_rng(0).normal(0, 2, (20, 4))
    for given_scores in (many, softmax(many, axis=1)):
        read = log_odds(given_scores, to_probabilities(given_scores, "auto"))
        np.testing.assert_allclose(softmax(read, axis=1), softmax(many, axis=1))


def test_shift_of_extreme_logits_is_found_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rows must take milliseconds: the number of passes over them is what costs."""
    import scipy.special

    calls = 0

    def counted(values: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.asarray(expit(values))

    monkeypatch.setattr(scipy.special, "expit", counted)
    rng = np.random.default_rng(0)
    for z, rate in [(rng.normal(0, 3, 1000), 0.1), (rng.normal(-500, 1, 1000), 0.9), (np.zeros(1000), 0.3)]:
        calls = 0
        binary_shift(z, rate)
        assert calls <= 2 * 12
    calls = 0
    binary_shift(np.where(rng.random(1000) < 0.3, 40.0, -700.0), 0.25)
    assert calls <= 2 * 70


def test_shares_of_extreme_logits_are_reached() -> None:
    z = np.random.default_rng(0).normal(0, 100, (500, 5))
    wanted = inner_rate(np.array([0.0, 1.0, 0.0, 0.0, 0.0]), 500)
    assert np.abs(softmax(z + class_shifts(z, wanted), axis=1).mean(axis=0) - wanted).max() < 1e-6


@pytest.mark.parametrize("size", [1e3, 1e30, 1e150, 1.7e308])
@pytest.mark.parametrize("classes", [2, 3])
def test_huge_scores_have_finite_values(size: float, classes: int) -> None:
    """A fit that ran away is a poor report, not a failure of the judge."""
    bags, labels = bags_of(make_part(60, classes), 6, classes)
    scores = np.random.default_rng(0).choice([-size, 0.0, size], 60 if classes == 2 else (60, classes))
    with np.errstate(over="ignore"):
        probabilities = to_probabilities(scores, "logit")
    assert np.isfinite(make_rules(bags, labels)[0].value(probabilities, scores))
