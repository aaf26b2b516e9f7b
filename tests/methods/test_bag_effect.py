"""The variance of the bag effect on proportions: found where there is one, exactly 0 where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from llpbench import Bags, QuietMonitor
from llpbench_methods.bp_count.counts import CountedBags, log_likelihood
from llpbench_methods.bp_count.linear import MeanRegression
from llpbench_methods.bp_count.method import BPCount
from llpbench_methods.bp_count.priors import average, group_family, log_evidence, spectrum_family
from llpbench_methods.mean_ridge.method import MeanRidge
from llpbench_methods.shared.bag_effect import CLEAR, choose_effect, effect_scale, excess_variance
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.mean_regression import decompose, noise_variances, regression
from llpbench_methods.shared.spectrum import principal_components


def simulated(tau: float, seed: int, n_bags: int = 80, size: int = 100, count_sd: float = 0.0) -> Bags:
    """Bags of rows with ``P(y = 1) = σ(θ(x) + u_b)``, sizes from half to one and a half of the given one."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(size // 2, size + size // 2, n_bags)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], 5)).astype(np.float32)
    u = np.repeat(tau * rng.normal(size=n_bags), sizes)
    y = rng.random(len(X)) < expit(X @ [1.0, -0.7, 0.5, 0.0, 0.0] - 1.0 + u)
    counts = np.add.reduceat(y.astype(float), offsets[:-1]) + count_sd * rng.normal(size=n_bags)
    return Bags(X, offsets, counts[:, None], count_sd=count_sd)


@pytest.mark.parametrize("effect", [0.0, 0.004, 0.1])
def test_evidence_with_an_effect_is_that_of_a_dense_gaussian_model(effect: float) -> None:
    """Proportions ~ N(a, s² M L Lᵀ Mᵀ + diag(p(1−p)/B + (sd/B)² + v)), the intercept's prior nearly flat."""
    bags = simulated(0.5, 0, n_bags=12, size=30, count_sd=1.5)
    means, y = bag_means(bags.X, bags.offsets), bags.proportions[:, 0]
    rate, scale = 0.3, 0.05
    factor = np.random.default_rng(1).normal(size=(5, 3))
    problem = regression(means, y, noise_variances(bags.sizes, rate, bags.count_sd, effect))
    found = decompose(problem, factor).log_evidence(scale)[0]
    noise = np.diag([rate * (1 - rate) / b + (1.5 / b) ** 2 + effect for b in bags.sizes])
    F = means @ factor
    flat = 1e6  # variance of the intercept's prior; N(a; 0, flat) has the density 1/sqrt(2π flat) where it matters
    covariance = noise + scale * F @ F.T + flat
    expected = multivariate_normal(np.zeros(len(y)), covariance).logpdf(y) + 0.5 * np.log(2 * np.pi * flat)
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("count_sd", [0.0, 3.0])
def test_random_bags_have_no_effect(count_sd: float) -> None:
    """At most one draw in twenty looks more spread than binomial; none has clear evidence."""
    suspected = 0
    for seed in range(20):
        bags = simulated(0.0, seed, count_sd=count_sd)
        rate = float(bags.prior[0])
        spread = excess_variance(bags.proportions[:, 0], noise_variances(bags.sizes, rate, count_sd))[1]
        suspected += spread > 2.0
        assert MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0).choices_[0].effect == 0.0
    assert suspected <= 3


@pytest.mark.parametrize("count_sd", [0.0, 3.0])
def test_simulated_effect_is_found_in_its_size(count_sd: float) -> None:
    tau = 0.6
    for seed in range(3):
        bags = simulated(tau, seed, count_sd=count_sd)
        chosen = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0).choices_[0]
        assert 0.5 * tau < effect_scale(chosen.effect, chosen.rate) < 1.5 * tau
        regressed = MeanRegression(bags.X, bags.offsets, (), np.random.default_rng(0), draws=4)
        field = regressed.fit(np.arange(len(bags)), np.asarray(bags.counts), count_sd)
        assert 0.5 * tau < effect_scale(field.effects[0], chosen.rate) < 1.5 * tau


def test_row_of_a_new_bag_is_as_uncertain_as_its_bag() -> None:
    """σ(θ/√(1 + πs²/8)) is the logistic curve averaged over a Gaussian law of variance s², to two hundredths."""
    bags = simulated(0.8, 1)
    method = MeanRidge().fit(bags, monitor=QuietMonitor(), seed=0)
    chosen = method.choices_[0]
    X, unit = bags.X[:50], chosen.rate * (1 - chosen.rate)
    spread = np.sqrt(chosen.posterior.variance(X) + chosen.effect) / unit
    draws = np.random.default_rng(0).normal(size=(20_000, 1))
    middle = chosen.posterior.offset(X) / unit
    level = np.log(chosen.rate / (1 - chosen.rate))
    # the level is known from all rows; what tempers is the offset's share, so compare at a level of 0
    averaged = expit(middle + draws * spread).mean(axis=0)
    tempered = expit(np.log(method.predict_scores(X) / (1 - method.predict_scores(X))) - level)
    np.testing.assert_allclose(tempered, averaged, atol=0.02)
    again = MeanRidge().restore(method.state())
    np.testing.assert_array_equal(again.predict_scores(X), method.predict_scores(X))


def test_effect_must_be_clear() -> None:
    spread, calm = np.array([0.0, 0.4, 0.8, 0.3]), np.full(4, 0.3)
    noise = np.full(4, 1e-3)
    slope = {"gain": CLEAR - 0.1}
    assert choose_effect(spread, noise, lambda v: slope["gain"] * (v > 0)) == 0.0
    slope["gain"] = CLEAR + 0.1
    assert choose_effect(spread, noise, lambda v: slope["gain"] * (v > 0)) > 0.0

    def never(v: float) -> float:
        raise AssertionError("bags that are not spread need no evidence")

    assert choose_effect(calm, noise, never) == 0.0


@pytest.mark.parametrize("top", [0.001, 0.02, 0.3])
def test_search_ends_within_a_step_of_the_top(top: float) -> None:
    proportions = np.array([0.1, 0.5, 0.3, 0.2, 0.6])
    found = choose_effect(proportions, np.full(5, 1e-4), lambda v: -200.0 if v == 0 else -(np.log(v / top) ** 2))
    assert abs(np.log2(found / top)) <= 0.5 + 1e-9


def test_one_bag_and_equal_bags_have_no_effect() -> None:
    assert excess_variance(np.array([0.3]), np.array([0.01]))[0] < 0.0
    for proportions in ([0.3], [0.3, 0.3, 0.3]):
        assert choose_effect(np.array(proportions), np.full(len(proportions), 0.01), lambda v: v) == 0.0


def test_short_evidence_is_that_of_the_average() -> None:
    bags = simulated(0.5, 2, n_bags=15, size=20)
    spectrum = principal_components(bags.X)
    families = [
        spectrum_family(spectrum, 5),
        group_family("B", np.ones(5), np.arange(5), 3, np.random.default_rng(0)),
    ]
    noise = noise_variances(bags.sizes, 0.3, 0.0, 0.01)
    problem = regression(bag_means(bags.X, bags.offsets), bags.proportions[:, 0], noise)
    terms = {"rate": 0.3, "dimensions": 14, "label_noise": 0.7}
    expected = average(problem, families, **terms).log_evidence
    assert log_evidence(problem, families, **terms) == pytest.approx(expected, abs=1e-9)
    assert len(families[1].thinned(3).variances) == 3


def test_judge_allows_for_the_bag_effect() -> None:
    rng = np.random.default_rng(0)
    fields = rng.normal(-1.0, 1.0, (3000, 1))
    offsets = 100 * np.arange(31)
    u = np.repeat(0.8 * rng.normal(size=30), 100)
    counts = np.add.reduceat((rng.random(3000) < expit(fields[:, 0] + u)).astype(float), offsets[:-1])[:, None]
    for lam in (np.inf, 0.5):
        bags = CountedBags(offsets, counts, lam)
        assert log_likelihood(fields, bags, effect=True).sum() > log_likelihood(fields, bags).sum() + 20.0
    calm = rng.binomial(100, 0.25, size=(30, 1)).astype(float)
    even = np.full((3000, 1), np.log(1 / 3))
    bags = CountedBags(offsets, calm, np.inf)
    assert log_likelihood(even, bags, effect=True).sum() == pytest.approx(log_likelihood(even, bags).sum(), abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 0.8])
def test_bp_count_integrates_the_effect_out_where_its_regression_finds_one(tau: float) -> None:
    class Notes(QuietMonitor):
        def __init__(self) -> None:
            self.found: dict[str, float] = {}

        def note(self, name: str, value: float | str | bool) -> None:
            self.found[name] = float(value)

    bags, monitor = simulated(tau, 7), Notes()
    method = BPCount(learner="trees", rounds=1, trees=5, draws=4).fit(bags, monitor=monitor, seed=0)
    assert (monitor.found["effect"] > 0.0) == (tau > 0.0)
    assert np.isfinite(method.predict_scores(bags.X)).all()
