"""The statistics behind ``fit``'s verdict: spread of proportions, slopes, agreement of halves; against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from llpbench.contracts.data import Bags, read_only
from llpbench.experiment.bag_card import pearson_spread
from llpbench.experiment.count_laws import all_classes
from llpbench.owndata.fitting import cut_in_halves
from llpbench.owndata.judging.assessment import (
    UnseenBags,
    agreement,
    assess,
    calibration_points,
    interval_of_mean,
)
from llpbench.owndata.judging.facts import is_random, make_own_card
from llpbench.owndata.judging.predictor import Predictor, softmax
from llpbench.owndata.judging.shrinkage import (
    SLOPES,
    JudgedBags,
    join,
    make_shrinkage,
    predict_bags,
    weigh_slopes,
)
from llpbench.owndata.judging.spread import (
    bag_log_likelihood,
    chance_variance,
    class_shares,
    intraclass_correlation,
    within_variance,
)


class Linear:
    """A method whose log-odds are given: ``X @ weights``."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def predict_scores(self, X: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-X @ self.weights))


def draw_bags(
    bags: int, size: int, weights: np.ndarray, *, effect: float = 0.0, seed: int = 0, spread: float = 0.0
) -> Bags:
    """Bags of rows with log-odds ``X @ weights + u_b``; ``spread`` moves the mean of the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(bags, size, len(weights)))
    X[:, :, 0] += spread * rng.normal(size=(bags, 1))
    logits = X @ weights + effect * rng.normal(size=(bags, 1))
    y = rng.random((bags, size)) < 1.0 / (1.0 + np.exp(-logits))
    return Bags(
        X=read_only(X.reshape(bags * size, -1).astype(np.float32)),
        offsets=read_only(np.arange(bags + 1) * size),
        counts=read_only(y.sum(axis=1)[:, None].astype(np.float64)),
    )


@quick
@given(st.integers(2, 12), st.integers(2, 30), st.floats(0.0, 2.0), st.integers(0, 1000))
def test_both_bag_cards_have_the_same_spread_of_two_classes(bags: int, size: int, effect: float, seed: int) -> None:
    drawn = draw_bags(bags, size, np.array([1.0, -1.0]), effect=effect, seed=seed)
    of_labels = pearson_spread(all_classes(drawn.proportions), drawn.sizes)
    if of_labels is not None:  # None: all rows of one class
        assert make_own_card(drawn).spread == pytest.approx(of_labels)


def unseen(weights: np.ndarray, bags: Bags, seed_bags: Bags | None = None) -> UnseenBags:
    return UnseenBags.of(Predictor("linear", Linear(weights), 2), seed_bags or bags, bags)


TRUE = np.array([1.0, -0.5, 0.0])


def test_intraclass_correlation_is_that_of_the_draw() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 200, 4000)
    for phi in (0.0, 0.05, 0.3):
        rates = rng.beta(0.3 * (1 / phi - 1), 0.7 * (1 / phi - 1), 4000) if phi else np.full(4000, 0.3)
        alpha = (rng.binomial(sizes, rates) / sizes)[:, None]
        found = intraclass_correlation(all_classes(alpha), np.array([0.7, 0.3]), sizes)
        assert abs(found - phi) < 0.01 + 0.05 * phi


def test_noise_in_counts_is_not_taken_for_spread() -> None:
    rng = np.random.default_rng(1)
    sizes = np.full(3000, 50)
    alpha = ((rng.binomial(50, 0.3, 3000) + rng.normal(0, 8, 3000)) / 50)[:, None]
    shares = np.array([0.7, 0.3])
    assert intraclass_correlation(all_classes(alpha), shares, sizes) > 0.08
    assert intraclass_correlation(all_classes(alpha), shares, sizes, 8.0) < 0.01


@given(st.integers(2, 5), st.integers(1, 6), st.floats(0, 1), st.integers(0, 99))
@quick
def test_likelihood_is_a_sum_of_normal_densities(classes: int, bags: int, phi: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    known, means = (rng.dirichlet(np.ones(classes), bags) for _ in range(2))
    shares = rng.dirichlet(np.ones(classes))
    within = rng.random((bags, classes)) + 0.01
    found = bag_log_likelihood(known, means, within, shares, phi)
    for b in range(bags):
        sd = np.sqrt(within[b] + phi * shares * (1 - shares))
        wanted = norm.logpdf(known[b], means[b], sd).sum() * (classes - 1) / classes
        assert found[b] == pytest.approx(wanted)


def test_variance_within_a_bag_is_that_of_drawn_labels() -> None:
    rng = np.random.default_rng(0)
    bags = draw_bags(3, 40, TRUE)
    p = rng.random((120, 2))
    p /= p.sum(axis=1, keepdims=True)
    draws = rng.random((20_000, 120)) < p[:, 1]
    means = draws.reshape(20_000, 3, 40).mean(axis=2)
    np.testing.assert_allclose(within_variance(p, bags)[:, 1], means.var(axis=0) + 1 / 12 / 1600, rtol=0.05)


@given(st.floats(0, 1), st.integers(2, 4), st.integers(0, 50))
@quick
def test_shrunk_model_has_the_known_level(slope: float, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(60, classes)) * 3
    shares = rng.dirichlet(np.ones(classes) * 3) * 0.9 + 0.1 / classes
    made = make_shrinkage(slope, logits, shares)
    p = softmax(made.logits(logits))
    np.testing.assert_allclose(p.mean(axis=0), shares, atol=1e-6)
    constant = softmax(make_shrinkage(0.0, logits, shares).logits(logits))
    np.testing.assert_allclose(constant, np.tile(shares, (60, 1)), atol=1e-6)
    # between the constant and the model: log-odds of two classes are those of the model, times the slope
    given, kept = logits[:, 1] - logits[:, 0], np.log(p[:, 1]) - np.log(p[:, 0])
    np.testing.assert_allclose(kept - kept[0], slope * (given - given[0]), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_correct_model_is_not_shrunk(seed: int) -> None:
    bags = draw_bags(200, 30, TRUE, seed=seed)
    evidence = weigh_slopes(unseen(TRUE, bags).at(SLOPES), 0.0)
    assert evidence.slope > 0.9
    assert evidence.z > 5
    assert evidence.is_decided
    assert evidence.gains().mean() > 0.05


@pytest.mark.parametrize("seed", range(3))
def test_overconfident_model_is_shrunk(seed: int) -> None:
    bags = draw_bags(400, 30, TRUE, seed=seed)
    assert 0.2 < weigh_slopes(unseen(3 * TRUE, bags).at(SLOPES), 0.0).slope < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_uninformative_model_is_shrunk_to_a_constant(seed: int) -> None:
    wrong = np.array([0.0, 0.0, 3.0])
    bags = draw_bags(300, 30, TRUE, effect=0.8, seed=seed)
    evidence = weigh_slopes(unseen(wrong, bags).at(SLOPES), 0.1)
    assert evidence.slope < 0.1
    assert evidence.z < 2.5
    assert evidence.gains().mean() < 0.01


def test_gain_of_a_bag_is_computed_without_the_bag() -> None:
    """Each bag's gain is the log of its mean likelihood under slopes weighed by the other bags: by brute force."""
    judged = unseen(2 * TRUE, draw_bags(12, 20, TRUE)).at(SLOPES)
    evidence = weigh_slopes(judged, 0.0)
    prior = np.array([1.0, *[1 / (len(SLOPES) - 2)] * (len(SLOPES) - 2), 1.0]) / 3
    for b, gain in enumerate(evidence.gains()):
        others = np.delete(evidence.likelihood, b, axis=1).sum(axis=1) - evidence.penalty
        weights = prior * np.exp(others - others.max())
        own = np.exp(evidence.likelihood[:, b])
        assert gain == pytest.approx(np.log(weights @ own / weights.sum()) - evidence.likelihood[0, b])


def test_join_concatenates_bags() -> None:
    bags = draw_bags(6, 10, TRUE)
    whole = predict_bags(*_logits(bags), bags)
    twice = join([whole, whole])
    assert len(twice) == 12
    assert np.array_equal(twice.means[:, :6], whole.means)
    assert np.array_equal(twice.known[6:], whole.known)


def _logits(bags: Bags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    logits = Predictor("linear", Linear(TRUE), 2).logits(bags.X)
    return logits, class_shares(bags), logits


# -- halves ------------------------------------------------------------------------------------------------------------


def test_agreement_of_equal_halves_is_one() -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 8)).astype(np.float32)
    bags = draw_bags(4, 5, np.zeros(8))

    def halves(a: np.ndarray, b: np.ndarray) -> tuple[UnseenBags, UnseenBags]:
        return unseen(a, bags), unseen(b, bags)

    same, other = np.eye(8)[0], np.eye(8)[1]
    assert agreement([halves(same, same)], rows) == pytest.approx(1.0)
    assert agreement([halves(same, other)], rows) < 0.06
    assert agreement([halves(same, -same)], rows) == 0.0
    assert agreement([halves(same + other, same - other)], rows) < 0.06
    both = agreement([halves(np.array([2.0, 1, 0, 0, 0, 0, 0, 0]), np.array([2.0, 0, 1, 0, 0, 0, 0, 0]))], rows)
    assert both == pytest.approx((1.6 / 1.8) ** 2, abs=0.05)  # 4 parts found by both, one made up by each
    assert agreement([halves(np.zeros(8), np.zeros(8))], rows) == 0.0


@given(st.integers(2, 40), st.integers(0, 99))
@quick
def test_halves_are_halves_of_like_proportions(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    proportions = rng.random((n + 5, 1))
    chosen = np.sort(rng.permutation(n + 5)[:n])
    first, second = cut_in_halves(chosen, proportions, rng)
    assert sorted([*first, *second]) == chosen.tolist()
    assert abs(len(first) - len(second)) <= 2
    assert min(len(first), len(second)) >= 1
    # neighbours in order are apart: the halves' sums differ by at most the range of the proportions, twice
    if n % 2 == 0:
        gap = abs(proportions[first].sum() - proportions[second].sum())
        assert gap <= float(np.ptp(proportions[chosen])) + 1e-9


def test_many_random_bags_need_no_halves() -> None:
    asked: list[int] = []

    def halve(number: int) -> tuple[UnseenBags, UnseenBags] | None:
        asked.append(number)
        return None

    many = draw_bags(200, 20, TRUE)
    facts, _ = assess(unseen(TRUE, many), many, halve, None, 0)
    assert asked == []
    assert facts.score.better
    assert facts.warnings == ()
    few = draw_bags(8, 20, TRUE)
    assert "only 8 bags" in " ".join(assess(unseen(TRUE, few), few, halve, None, 0)[0].warnings)
    assert asked == [0, 1, 2]
    assess(unseen(TRUE, few), few, halve, 0, 0)
    assert asked == [0, 1, 2]


def test_inside_bags_only_what_halves_agree_on_is_kept() -> None:
    """Bags tell the first feature by its means; the third is made up, another way in each half."""
    bags = draw_bags(80, 40, TRUE, spread=2.0)
    made_up = np.array([0.0, 0.0, 4.0])
    halves = (unseen(TRUE + made_up, bags), unseen(TRUE - made_up, bags))
    score = assess(unseen(TRUE + made_up, bags), bags, lambda _: halves, None, 0)[0].score
    assert score.agreement == pytest.approx(0.0, abs=0.25)
    assert score.slope <= score.agreement
    sound = (unseen(TRUE, bags), unseen(TRUE, bags))
    kept = assess(unseen(TRUE, bags), bags, lambda _: sound, None, 0)[0].score
    assert kept.agreement == pytest.approx(1.0)
    assert kept.slope > 0.9


# -- the bag card ------------------------------------------------------------------------------------------------------


def test_card_distinguishes_random_bags() -> None:
    random = make_own_card(draw_bags(400, 25, TRUE))
    assert random.spread == pytest.approx(1.0, abs=0.1)
    assert random.mean_spread == pytest.approx(1.0, abs=0.1)
    assert random.sizes == (25,) * 5
    assert is_random(random)
    wide = make_own_card(draw_bags(400, 25, TRUE, effect=1.0))
    assert wide.spread > 1.5
    assert wide.mean_spread == pytest.approx(1.0, abs=0.1)
    assert not is_random(wide)
    moved = make_own_card(draw_bags(400, 25, np.zeros(3), spread=1.0))
    assert moved.mean_spread > 1.5
    assert not is_random(moved)


def test_spread_of_means_is_the_ratio_of_variances() -> None:
    bags = draw_bags(5, 7, TRUE, spread=1.0)
    X = np.asarray(bags.X, float).reshape(5, 7, 3)
    between = 7 * X.mean(axis=1).var(axis=0, ddof=1).sum()
    within = X.var(axis=1, ddof=1).mean(axis=0).sum()
    assert make_own_card(bags).mean_spread == pytest.approx(np.sqrt(between / within))
    chance = chance_variance(class_shares(bags), bags.sizes)
    assert chance.shape == (5, 2)


def test_intervals_and_points_are_of_the_bags() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 400)
    low, high = interval_of_mean(values, 0)
    half = 1.645 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)
    means = np.linspace(0, 1, 101)
    both = np.column_stack([1 - means, means])
    judged = JudgedBags(both, np.ones(101), both, both[None], both[None])
    points = calibration_points(judged, most=10)
    assert len(points) == 10
    assert sum(point.bags for point in points) == 101
    assert {point.label for point in points} == {1}
    for point in points:
        assert point.predicted == pytest.approx(point.known)
