"""Selection rules: which report is better, and what each of them looks at."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import bags_of, make_part, quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax

from llpbench import Bags, RuleSpec
from llpbench.contracts.data import HeldOut
from llpbench.contracts.errors import PluginError
from llpbench.experiment.rules import (
    SelectionRule,
    bag_cross_entropy,
    bag_error,
    bag_means,
    make_rules,
    weighted_cross_entropy,
)
from llpbench.plugins.builtin import llpbench_selection_rules


def cross_entropy(probabilities: np.ndarray, bags: Bags) -> float:
    return bag_cross_entropy(HeldOut(probabilities, probabilities, bags))


HIGHER = SelectionRule("h", lambda p, s: 0.0, higher_is_better=True)
LOWER = SelectionRule("l", lambda p, s: 0.0, higher_is_better=False)
NAN = float("nan")


def small_bags(counts: list[list[float]], sizes: list[int], classes: int = 2) -> Bags:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(np.zeros((sum(sizes), 1), np.float32), offsets, np.array(counts, dtype=float), classes=classes)


def test_better_means_strictly_better_and_nan_never_wins() -> None:
    assert HIGHER.better(2.0, 1.0)
    assert not HIGHER.better(1.0, 1.0)
    assert not LOWER.better(2.0, 1.0)
    assert LOWER.better(0.5, 1.0)
    for rule in (HIGHER, LOWER):
        assert rule.better(NAN, None)  # anything beats nothing
        assert not rule.better(NAN, 1.0)
        assert not rule.better(NAN, NAN)
        assert rule.better(1.0, NAN)


def test_bag_means_are_means_over_uneven_bags() -> None:
    bags = small_bags([[1], [1]], [1, 3])
    np.testing.assert_allclose(bag_means(np.array([0.4, 0.0, 0.3, 0.6]), bags), [[0.4], [0.3]])


def test_cross_entropy_of_bags_by_hand() -> None:
    """Three of eight positives; the mean of the predictions is that already, so nothing is shifted."""
    bags = small_bags([[1], [2]], [2, 6])
    p = np.array([0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.1])
    assert p.mean() == pytest.approx(3 / 8)
    first, second = np.log(0.45) / 2 + np.log(0.55) / 2, np.log(0.35) / 3 + 2 * np.log(0.65) / 3
    assert cross_entropy(p, bags) == pytest.approx(-(2 * first + 6 * second) / 8)
    assert bag_error(p, bags) == pytest.approx((0.05 + abs(0.35 - 1 / 3)) / 2)


def by_a_loop(p: np.ndarray, bags: Bags) -> float:
    """The rule written down row by row: root finding by scipy, bags one after the other."""
    rate = float(bags.counts.sum() / bags.sizes.sum())
    shift = brentq(lambda t: float(expit(logit(p) + t).mean()) - rate, -50, 50, xtol=1e-13)
    total = 0.0
    for b in range(len(bags)):
        rows = [float(expit(logit(p[i]) + shift)) for i in range(bags.offsets[b], bags.offsets[b + 1])]
        mean, share = sum(rows) / len(rows), float(bags.counts[b, 0]) / len(rows)
        total -= len(rows) * (share * np.log(mean) + (1 - share) * np.log(1 - mean))
    return float(total / bags.sizes.sum())


uneven = st.lists(st.integers(1, 12), min_size=2, max_size=10)


@quick
@given(uneven, st.integers(0, 999))
def test_bags_weigh_by_their_size_and_levels_agree_with_a_plain_loop(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = np.array([[rng.integers(0, n + 1)] for n in sizes], float)
    counts[0, 0] = min(max(counts[0, 0], 0.5), sizes[0] - 0.5)  # not all rows of one class
    bags, p = small_bags(counts.tolist(), sizes), expit(rng.normal(0, 2, sum(sizes)))
    assert cross_entropy(p, bags) == pytest.approx(by_a_loop(p, bags), rel=1e-9)


@quick
@given(st.integers(0, 999), st.floats(-25, 25))
def test_level_of_predictions_does_not_matter(seed: int, constant: float) -> None:
    bags, _ = bags_of(make_part(60, seed=seed), 7, seed=seed)
    z = np.random.default_rng(seed).normal(0, 2, 60)
    wanted = bag_cross_entropy(HeldOut(z, expit(z), bags))
    moved = z + constant
    assert bag_cross_entropy(HeldOut(moved, expit(moved), bags)) == pytest.approx(wanted, rel=1e-9)
    if constant < 5:  # as probabilities: near 1 digits are lost
        assert cross_entropy(expit(moved), bags) == pytest.approx(wanted, rel=1e-6)


@quick
@given(st.integers(0, 999))
def test_level_of_classes_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(7, np.full(4, 0.25), size=8)
    bags = small_bags(counts.tolist(), [7] * 8, classes=4)
    z, constants = rng.normal(0, 2, (56, 4)), rng.normal(0, 5, 4)
    wanted = bag_cross_entropy(HeldOut(z, softmax(z, axis=1), bags))
    moved = z + constants
    assert bag_cross_entropy(HeldOut(moved, softmax(moved, axis=1), bags)) == pytest.approx(wanted, rel=1e-7)


@quick
@given(st.integers(0, 999))
def test_predictions_at_the_known_rate_are_unchanged(seed: int) -> None:
    bags, _ = bags_of(make_part(60, seed=seed), 7, seed=seed)
    rate = float(bags.counts.sum()) / 60
    if not 0 < rate < 1:
        return
    z = np.random.default_rng(seed).normal(0, 2, 60)
    p = expit(z + brentq(lambda t: float(expit(z + t).mean()) - rate, -50, 50, xtol=1e-14))
    means = bag_means(p, bags)
    assert cross_entropy(p, bags) == pytest.approx(
        weighted_cross_entropy(means, bags.clipped_proportions, bags.sizes), rel=1e-9
    )


def test_good_order_at_a_wrong_level_is_preferred() -> None:
    """The model that ranks rows well predicts too much; the one that knows nothing has the right mean."""
    bags = small_bags([[4], [0], [3], [1]], [4, 4, 4, 4])
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0])
    ranks_well, knows_nothing = expit(4.0 * labels + 6.0), np.full(16, 0.5)
    assert cross_entropy(ranks_well, bags) < cross_entropy(knows_nothing, bags)
    old = [
        weighted_cross_entropy(bag_means(p, bags), bags.proportions, np.ones(4)) for p in (ranks_well, knows_nothing)
    ]
    assert old[0] > old[1]  # what version 1 of the rule said


@pytest.mark.parametrize("counts", [[[0], [0]], [[4], [4]], [[-3.0], [-1.5]], [[7.0], [9.5]]])
def test_counts_of_zero_or_all_rows_give_a_finite_value(counts: list[list[float]]) -> None:
    bags = small_bags(counts, [4, 4])
    for p in (np.full(8, 0.2), np.linspace(0, 1, 8), np.zeros(8), np.ones(8)):
        assert np.isfinite(cross_entropy(p, bags))


def test_rule_bags_has_version_two() -> None:
    versions = {spec.name: spec.version for spec in llpbench_selection_rules()}
    assert versions == {"bags": 2, "bags-cv": 1, "instances": 1, "counts": 1}
    with pytest.raises(PluginError, match="version"):
        RuleSpec(name="mine", factory="a:b", version=0)


def test_two_classes_as_one_column_or_as_two_give_the_same() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(12)
    one = small_bags([[2], [1], [4]], [4, 4, 4])
    both = small_bags([[2, 2], [3, 1], [0, 4]], [4, 4, 4], classes=3)  # no special case for several classes
    assert cross_entropy(np.stack([1 - p, p], axis=1), both) == pytest.approx(cross_entropy(p, one))


@quick
@given(st.integers(0, 999))
def test_true_means_have_the_least_cross_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bags, _ = bags_of(make_part(60, seed=seed), 10, seed=seed)
    perfect = bags.proportions[bags.bag_of, 0]
    other = np.clip(perfect + rng.normal(0, 0.3, len(perfect)), 0, 1)
    assert cross_entropy(perfect, bags) <= cross_entropy(other, bags) + 1e-9
    assert bag_error(perfect, bags) == pytest.approx(0, abs=1e-12)


def test_noise_on_counts_leaves_a_finite_value() -> None:
    bags = small_bags([[-3.0], [9.5]], [4, 4])
    assert np.isfinite(cross_entropy(np.array([0.0] * 4 + [1.0] * 4), bags))


def test_only_rule_instances_uses_labels() -> None:
    bags, labels = bags_of(make_part(60), 10)
    rng = np.random.default_rng(0)
    p = rng.random(60)
    by_bags, by_instances, by_counts = make_rules(bags, labels)
    other_bags, other_instances, other_counts = make_rules(bags, 1 - labels)
    assert [by_bags.name, by_instances.name, by_counts.name] == ["bags", "instances", "counts"]
    assert (by_bags.higher_is_better, by_instances.higher_is_better, by_counts.higher_is_better) == (False, True, True)
    assert by_bags.value(p, p) == other_bags.value(p, p)
    assert by_counts.value(p, p) == other_counts.value(p, p)
    assert by_instances.value(p, p) == pytest.approx(1 - other_instances.value(p, p))
