"""Known noise of the counts is part of the likelihood of bp-count and count-nll."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from llpbench import Bags, QuietMonitor
from llpbench.experiment.privacy import count_noise_sd


def count_law(p: np.ndarray) -> np.ndarray:
    """The Poisson-binomial law of a sum of independent labels, one row after the other."""
    law = np.ones(1)
    for rate in p:
        law = np.convolve(law, [1.0 - rate, rate])
    return law


def log_density(p: np.ndarray, count: float, sd: float) -> float:
    """``log Σ_s P(S = s) N(count; s, sd²)``: what a noisy count has as its density."""
    law = count_law(p)
    return float(np.log(np.sum(law * norm.pdf(count, loc=np.arange(len(law)), scale=sd))))


SIZES = (1, 4, 9)
NOISY_BAGS = st.tuples(
    st.lists(st.floats(-3, 3), min_size=sum(SIZES), max_size=sum(SIZES)),
    st.lists(st.floats(-6, 14), min_size=3, max_size=3),
    st.sampled_from([0.3, 1.0, 10.0]),
)


def bags_with(counts: list[float], sd: float) -> Bags:
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    return Bags(np.zeros((sum(SIZES), 1), np.float32), offsets, np.array(counts)[:, None], count_sd=sd)


def expected_densities(fields: np.ndarray, bags: Bags) -> np.ndarray:
    rates = np.split(1.0 / (1.0 + np.exp(-fields)), bags.offsets[1:-1])
    return np.array([log_density(p, float(c), bags.count_sd) for p, c in zip(rates, bags.counts[:, 0], strict=True)])


@quick
@given(NOISY_BAGS)
def test_bp_count_weighs_counts_by_their_noise(case: tuple[list[float], list[float], float]) -> None:
    from llpbench_methods.bp_count.counts import CountedBags, log_likelihood, posterior

    fields, counts, epsilon = np.array(case[0]), case[1], case[2]
    bags = bags_with(counts, count_noise_sd(epsilon, 1e-5))
    counted = CountedBags.of(bags)
    assert counted.lambda_b == pytest.approx(1.0 / (2.0 * bags.count_sd**2), rel=1e-12)
    np.testing.assert_array_equal(counted.counts, bags.counts)  # as they are: not rounded, not clipped
    wanted = expected_densities(fields, bags) + np.log(np.sqrt(2 * np.pi) * bags.count_sd)
    np.testing.assert_allclose(log_likelihood(fields[:, None], counted), wanted, rtol=1e-7, atol=1e-7)

    got = posterior(fields[:, None], counted)[:, 0]
    p = 1.0 / (1.0 + np.exp(-fields))
    for b in range(3):
        first, last = bags.offsets[b], bags.offsets[b + 1]
        for i in range(first, last):
            others = np.delete(p[first:last], i - first)
            with_one = np.concatenate([others, [1.0]])
            evidence = log_density(p[first:last], counts[b], bags.count_sd)
            wanted_p = p[i] * np.exp(log_density(with_one, counts[b], bags.count_sd) - evidence)
            assert got[i] == pytest.approx(wanted_p, abs=1e-8)


@pytest.mark.slow
def test_count_nll_has_the_density_of_noisy_counts_as_its_loss() -> None:
    from llpbench_methods.count_nll import loss, method

    rng = np.random.default_rng(0)
    for epsilon in (0.3, 1.0, 10.0):
        sd = count_noise_sd(epsilon, 1e-5)
        bags = bags_with([-sd, 5.0 + sd, 8.3], sd)
        fields = rng.normal(size=sum(SIZES)).astype(np.float32)
        position = np.arange(sum(SIZES)) - bags.offsets[bags.bag_of]
        losses = loss.count_losses(
            fields, bags.bag_of, position, np.asarray(bags.sizes), method.usable_counts(bags).astype(np.float32),
            exact_rows=9, gaussian=False, noise_sd=bags.count_sd,
        )  # fmt: skip
        wanted = -expected_densities(fields.astype(float), bags) - np.log(np.sqrt(2 * np.pi) * sd)
        np.testing.assert_allclose(np.asarray(losses), wanted, rtol=2e-5, atol=2e-5)


def test_count_nll_passes_the_noise_to_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench_methods.count_nll import method

    seen: list[tuple[float, int, bool]] = []

    def spy(
        *arguments: object, exact_rows: int, gaussian: bool, noise_sd: float, tau: tuple[float, ...], **others: object
    ) -> object:
        seen.append((noise_sd, exact_rows, gaussian))
        assert tau == (0.0,)
        return real(*arguments, exact_rows=exact_rows, gaussian=gaussian, noise_sd=noise_sd, tau=tau, **others)

    real = method.count_losses
    monkeypatch.setattr(method, "count_losses", spy)
    sd = count_noise_sd(0.3, 1e-5, "analytic")
    method.CountNLL(epochs=1).fit(bags_with([-sd, 5.0 + sd, 8.3], sd), monitor=QuietMonitor(), seed=0)
    assert set(seen) == {(sd, max(SIZES), False)}
