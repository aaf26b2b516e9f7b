"""bag-logistic: its loss against the definition, its gradient against differences, and what it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import bags_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from llpbench import Bags, Part
from llpbench.experiment.metrics import auroc, log_loss
from llpbench_methods.bag_logistic.loss import bag_effect, bag_loss, worth_in_rows
from llpbench_methods.bag_logistic.method import BagLogistic


class Quiet:
    """A monitor that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: dict[str, object] = {}
        self.reports = 0

    def phase(self, name: str):  # type: ignore[no-untyped-def]
        from contextlib import nullcontext

        return nullcontext(name)

    def note(self, name: str, value: object) -> None:
        self.notes[name] = value

    def report(self, predict: object) -> bool:
        self.reports += 1
        return True


def problem(seed: int, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=5)
    outputs = 1 if classes == 2 else classes
    z = rng.normal(0, 2, size=(int(sizes.sum()), outputs))
    proportions = rng.uniform(size=(5, 1)) if classes == 2 else rng.dirichlet(np.ones(classes), size=5)
    return z, np.concatenate([[0], np.cumsum(sizes)]), proportions, rng.uniform(0.5, 9, size=5)


@given(st.integers(0, 10_000), st.sampled_from([2, 3, 5]))
def test_loss_is_the_cross_entropy_of_bag_means(seed: int, classes: int) -> None:
    z, offsets, proportions, worth = problem(seed, classes)
    expected = 0.0
    for b, alpha in enumerate(proportions):
        rows = z[offsets[b] : offsets[b + 1]]
        mean = expit(rows).mean(axis=0) if classes == 2 else softmax(rows, axis=1).mean(axis=0)
        pairs = (
            [(alpha[0], mean[0]), (1 - alpha[0], 1 - mean[0])] if classes == 2 else list(zip(alpha, mean, strict=True))
        )
        expected -= worth[b] * sum(a * np.log(m) for a, m in pairs)
    assert_allclose(bag_loss(z, offsets, proportions, worth)[0], expected, rtol=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
def test_gradient_is_that_of_the_loss(seed: int, classes: int) -> None:
    z, offsets, proportions, worth = problem(seed, classes)
    gradient = bag_loss(z, offsets, proportions, worth)[1]
    direction = np.random.default_rng(seed + 1).normal(size=z.shape)
    up, down = (bag_loss(z + h * direction, offsets, proportions, worth)[0] for h in (1e-5, -1e-5))
    assert_allclose((gradient * direction).sum(), (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


def test_noisy_count_is_worth_fewer_rows() -> None:
    sizes = np.array([10, 1000])
    assert_array_equal(worth_in_rows(sizes, np.array([0.3]), 0.0), sizes)
    noisy = worth_in_rows(sizes, np.array([0.3]), 5.0)
    assert_allclose(noisy, sizes / (1 + 25 / (sizes * 0.21)))
    assert noisy[0] / 10 < noisy[1] / 1000 < 1


def test_effect_bounds_what_a_bag_is_worth() -> None:
    worth = worth_in_rows(np.array([10, 10**9]), np.array([0.5]), 0.0, 0.01)
    assert_allclose(worth, [0.25 / (0.025 + 0.01), 25.0])


@given(st.integers(0, 10_000))
def test_bag_effect_is_zero_for_chance_and_found_if_present(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate, sizes = np.array([0.3]), rng.integers(200, 2000, size=60)
    chance = (rng.binomial(sizes, 0.3) / sizes - 0.3)[:, None]
    if (sizes @ chance[:, 0] ** 2) / 0.21 < 90:  # all but one draw in two hundred
        assert bag_effect(chance, sizes.astype(float), rate) == 0.0
    moved = np.clip(0.3 + rng.normal(0, 0.1, size=60), 0, 1)
    errors = (rng.binomial(sizes, moved) / sizes - 0.3)[:, None]
    assert bag_effect(errors, sizes.astype(float), rate) == pytest.approx(0.01, rel=0.9)


def moving_bags(seed: int) -> tuple[Bags, Part]:
    """Sixty bags of rows with a weak signal, each moved as a whole by an effect that no feature shows."""
    rng = np.random.default_rng(seed)
    parts: list[Bags] = []
    for bags in (60, 20):
        X = rng.normal(size=(bags * 100, 40)).astype(np.float32) + 0.15 * rng.normal(size=(bags, 1, 40)).repeat(
            100, axis=1
        ).reshape(-1, 40).astype(np.float32)
        moved = np.repeat(rng.normal(0, 0.6, size=bags), 100)
        y = rng.random(len(X)) < expit(0.7 * X[:, 0] - 1 + moved)
        counts = y.reshape(bags, 100).sum(axis=1, keepdims=True).astype(float)
        parts.append(Bags(X, np.arange(0, bags * 100 + 1, 100), counts))
    X = rng.normal(size=(4000, 40)).astype(np.float32)
    test = Part(X, (rng.random(4000) < expit(0.7 * X[:, 0] - 1 + rng.normal(0, 0.6, size=4000))).astype(int))
    return replace(parts[0], validation=parts[1]), test


def test_bag_effect_is_seen_on_validation_bags() -> None:
    bags, test = moving_bags(3)
    monitor = Quiet()
    found = BagLogistic().fit(bags, monitor=monitor, seed=0)  # type: ignore[arg-type]
    blind = BagLogistic(effect=0.0).fit(bags, monitor=Quiet(), seed=0)  # type: ignore[arg-type]
    assert 0.002 < float(str(monitor.notes["effect"])) < 0.1
    assert log_loss(test.y, found.predict_scores(test.X)) < log_loss(test.y, blind.predict_scores(test.X)) - 0.01


def shifted_bags(seed: int, classes: int = 2) -> tuple[Bags, Part]:
    """Six large bags whose class shares differ, of rows that are linear in the class."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * np.eye(classes, 8)
    parts, counts = [], []
    for _ in range(6):
        y = rng.choice(classes, size=400, p=rng.dirichlet(np.ones(classes)))
        parts.append((centres[y] + rng.normal(size=(400, 8))).astype(np.float32))
        counts.append([(y == 1).sum()] if classes == 2 else np.bincount(y, minlength=classes))
    y = rng.integers(classes, size=2000)
    test = Part((centres[y] + rng.normal(size=(2000, 8))).astype(np.float32), y)
    bags = Bags(np.concatenate(parts), np.arange(0, 2401, 400), np.array(counts, float), classes=classes)
    return bags, test


@pytest.mark.parametrize("classes", [2, 3])
def test_learns_from_a_few_large_bags(classes: int) -> None:
    bags, test = shifted_bags(0, classes)
    monitor = Quiet()
    method = BagLogistic().fit(bags, monitor=monitor, seed=0)  # type: ignore[arg-type]
    assert monitor.reports == 1
    assert auroc(test.y, method.predict_scores(test.X)) > 0.9
    again = BagLogistic().fit(bags, monitor=Quiet(), seed=5)  # type: ignore[arg-type]
    assert_array_equal(again.predict_scores(test.X), method.predict_scores(test.X))  # nothing is drawn
    restored = BagLogistic().restore(method.state())
    assert_array_equal(restored.predict_scores(test.X), method.predict_scores(test.X))


def test_without_signal_scores_are_constant() -> None:
    """Bags of equal proportions that differ in their rows: nothing to learn but the rate."""
    bags, test = shifted_bags(1)
    level = Bags(bags.X, bags.offsets, np.full((6, 1), 100.0))
    scores = BagLogistic(penalty=1e5).fit(level, monitor=Quiet(), seed=0).predict_scores(test.X)  # type: ignore[arg-type]
    assert_allclose(scores, 0.25, atol=0.01)


def test_large_penalty_leaves_the_rate_alone() -> None:
    part = Part(np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32), np.arange(300) % 3 // 2)
    bags, _ = bags_of(part, 50)
    scores = BagLogistic(penalty=1e6).fit(bags, monitor=Quiet(), seed=0).predict_scores(part.X)  # type: ignore[arg-type]
    assert_allclose(scores, 1 / 3, atol=1e-3)
