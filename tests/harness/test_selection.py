"""Selection rules: which report is better, and what each of them looks at."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import bags_of, make_part, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Bags
from llpbench.contracts.held_back import HeldBack
from llpbench.experiment.rules import SelectionRule, bag_cross_entropy, bag_error, bag_means, make_rules


def cross_entropy(probabilities: np.ndarray, bags: Bags) -> float:
    return bag_cross_entropy(HeldBack(probabilities, probabilities, bags))


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


def test_the_cross_entropy_of_bags_by_hand() -> None:
    bags = small_bags([[1], [1]], [1, 4])
    p = np.array([0.8, 0.1, 0.2, 0.3, 0.4])
    wanted = -np.mean([np.log(0.8), 0.25 * np.log(0.25) + 0.75 * np.log(0.75)])
    assert cross_entropy(p, bags) == pytest.approx(wanted)
    assert bag_error(p, bags) == pytest.approx(0.1)


def test_two_classes_as_one_column_or_as_two_give_the_same() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(12)
    one = small_bags([[2], [1], [4]], [4, 4, 4])
    both = small_bags([[2, 2], [3, 1], [0, 4]], [4, 4, 4], classes=3)  # no special case for several classes
    assert cross_entropy(np.stack([1 - p, p], axis=1), both) == pytest.approx(cross_entropy(p, one))


@quick
@given(st.integers(0, 999))
def test_the_true_means_have_the_least_cross_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bags, _ = bags_of(make_part(60, seed=seed), 10, seed=seed)
    perfect = bags.proportions[bags.bag_of, 0]
    other = np.clip(perfect + rng.normal(0, 0.3, len(perfect)), 0, 1)
    assert cross_entropy(perfect, bags) <= cross_entropy(other, bags) + 1e-9
    assert bag_error(perfect, bags) == pytest.approx(0, abs=1e-12)


def test_noise_on_counts_leaves_a_finite_value() -> None:
    bags = small_bags([[-3.0], [9.5]], [4, 4])
    assert np.isfinite(cross_entropy(np.array([0.0] * 4 + [1.0] * 4), bags))


def test_only_the_instances_rule_looks_at_labels() -> None:
    bags, labels = bags_of(make_part(60), 10)
    rng = np.random.default_rng(0)
    p = rng.random(60)
    by_bags, by_instances = make_rules(bags, labels)
    other_bags, other_instances = make_rules(bags, 1 - labels)
    assert [by_bags.name, by_instances.name] == ["bags", "instances"]
    assert (by_bags.higher_is_better, by_instances.higher_is_better) == (False, True)
    assert by_bags.value(p, p) == other_bags.value(p, p)
    assert by_instances.value(p, p) == pytest.approx(1 - other_instances.value(p, p))
