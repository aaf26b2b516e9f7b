"""The rule ``counts``: likelihood of held-out counts, against enumeration and brute-force integration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp
from scipy.stats import norm

from llpbench import Bags
from llpbench.contracts.data import HeldOut
from llpbench.experiment.count_likelihood import EXACT_ROWS, TAUS, count_log_laws, count_log_likelihood

SIZES = (5, 1, 4)


def bags_of(counts: list[float], sizes: tuple[int, ...] = SIZES, count_sd: float = 0.0) -> Bags:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = np.zeros((offsets[-1], 1), np.float32)
    return Bags(X, offsets, np.array(counts, float)[:, None], count_sd=count_sd)


def enumerated(p: np.ndarray, count: float, sd: float) -> float:
    """The density of a count by all labellings; a hard count when there is no noise."""
    total = 0.0
    for labels in itertools.product([0, 1], repeat=len(p)):
        y = np.array(labels)
        chance = float(np.prod(np.where(y == 1, p, 1 - p)))
        total += chance * (
            float(y.sum() == count)
            if sd == 0.0
            else float(np.exp(-0.5 * ((count - y.sum()) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)))
        )
    return float(np.log(total))


@pytest.mark.parametrize(("counts", "sd"), [([2, 1, 0], 0.0), ([5, 0, 3], 0.0), ([3.7, -1.2, 6.1], 1.5)])
def test_small_bags_use_the_exact_law(counts: list[float], sd: float) -> None:
    p = np.random.default_rng(0).random(sum(SIZES))
    bags = bags_of(counts, count_sd=sd)
    found = count_log_laws(p, bags, 0)[0]
    parts = np.split(p, bags.offsets[1:-1])
    np.testing.assert_allclose(found, [enumerated(q, c, sd) for q, c in zip(parts, counts, strict=True)], atol=1e-9)


@pytest.mark.parametrize("sd", [0.0, 1.5])
def test_bag_effect_is_integrated_out(sd: float) -> None:
    theta = np.random.default_rng(1).normal(-1.0, 1.0, sum(SIZES))
    counts = [3.0, 0.0, 4.0]
    bags = bags_of(counts, count_sd=sd)
    found = count_log_laws(expit(theta), bags, 0)
    for row, tau in zip(found[1:], TAUS[1:], strict=True):
        u = np.linspace(-6 * tau, 6 * tau, 81)
        for b, part in enumerate(np.split(theta, bags.offsets[1:-1])):
            logs = [enumerated(expit(part + shift), counts[b], sd) for shift in u]
            wanted = logsumexp(np.array(logs) + norm.logpdf(u, 0, tau)) + np.log(u[1] - u[0])
            assert row[b] == pytest.approx(wanted, abs=2e-3)


def test_large_bags_are_gaussian_and_near_to_exact() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.6, EXACT_ROWS)
    count = 20.0
    exact = count_log_laws(p, bags_of([count], (EXACT_ROWS,)), 0)
    larger = np.append(p, 1e-12)  # one row more that changes nothing but the way it is computed
    gaussian = count_log_laws(larger, bags_of([count], (EXACT_ROWS + 1,)), 0)
    np.testing.assert_allclose(gaussian[:4], exact[:4], atol=0.03)
    both = count_log_laws(np.concatenate([p, larger]), bags_of([count, count], (EXACT_ROWS, EXACT_ROWS + 1)), 0)
    np.testing.assert_allclose(both, np.hstack([exact, gaussian]), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-5.0, 5.0))
def test_rule_counts_ignores_the_level_of_predictions(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=24)
    bags = bags_of([float(c) for c in rng.integers(0, 9, 3)], (8, 8, 8))
    values = [count_log_likelihood(HeldOut(s, expit(s), bags)) for s in (z, z + shift)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_model_that_explains_the_bags_wins_also_where_they_have_an_effect() -> None:
    rng = np.random.default_rng(3)
    z = np.repeat(rng.normal(0, 1.0, 200), 40) + rng.normal(0, 0.5, 8000)
    u = np.repeat(rng.normal(0, 0.6, 200), 40)
    y = rng.random(8000) < expit(z - 1.0 + u)
    bags = bags_of(list(y.reshape(200, 40).sum(axis=1)), (40,) * 200)
    nothing = np.zeros(8000)
    good, constant = (count_log_likelihood(HeldOut(s, expit(s), bags)) for s in (z, nothing))
    assert good > constant + 0.1
    binomial = count_log_laws(np.full(8000, y.mean()), bags, 0, np.zeros(1)).mean()
    assert constant > binomial + 1.0


def test_several_classes_and_certain_predictions_give_finite_values() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 12)
    counts = np.array([[2.0, 1, 1], [0, 4, 0], [1.4, 0.2, 2.9]])
    bags = Bags(np.zeros((12, 1), np.float32), 4 * np.arange(4), counts, classes=3)
    assert np.isfinite(count_log_likelihood(HeldOut(p, p, bags)))
    sure = (np.arange(10) < 6).astype(float)
    assert np.isfinite(count_log_likelihood(HeldOut(sure, sure, bags_of([0.0, 1.0, 4.0]))))
