"""bp-count from bags to scores: every odd shape of bags, the same answer for the same seed, and better than a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from llpbench import Bags, Column, FloatArray, Predict, QuietMonitor
from llpbench_methods.bp_count import BP_COUNT
from llpbench_methods.bp_count.method import BPCount

COLUMNS = (Column("x", "numeric"), Column("y", "numeric"), Column("c", "category", 3), Column("z", "numeric"))


class Watcher(QuietMonitor):
    """Keeps notes, reports and pseudo-labels."""

    def __init__(self) -> None:
        self.notes: dict[str, Any] = {}
        self.reports: list[Predict] = []
        self.scores: list[FloatArray] = []
        self.pseudo: dict[str, FloatArray] = {}
        self.rows = np.zeros((0, 6), np.float32)

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        self.scores.append(predict(self.rows))
        return True

    def note(self, name: str, value: float | str | bool) -> None:
        self.notes[name] = value

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        self.pseudo[stage] = probabilities


def rows(n: int, seed: int) -> tuple[FloatArray, np.ndarray]:
    """A table whose labels depend on the absolute value of a number and on a category."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 3))
    code = rng.integers(0, 3, n)
    X = np.column_stack([numbers[:, :2], np.eye(3)[code], numbers[:, 2]]).astype(np.float32)
    logit = 4.0 * np.abs(numbers[:, 0]) - 4.5 + 2.0 * numbers[:, 1] * (code - 1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)


def bags_of(X, y, sizes, *, classes: int = 2, count_sd: float = 0.0, columns=COLUMNS, validation=None) -> Bags:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    indicators = (y[:, None] == np.arange(classes)).astype(float) if classes > 2 else y[:, None].astype(float)
    counts = np.add.reduceat(indicators, offsets[:-1], axis=0)
    if count_sd:
        counts = counts + np.random.default_rng(0).normal(scale=count_sd, size=counts.shape)
    return Bags(X, offsets, counts, classes, count_sd, columns, validation)


def fitted(bags: Bags, **params: Any) -> tuple[BPCount, Watcher]:
    watcher = Watcher()
    watcher.rows = bags.X
    return BPCount(**{"trees": 20, "draws": 3, **params}).fit(bags, monitor=watcher, seed=5), watcher


@pytest.mark.slow
def test_self_training_learns_a_nonlinear_signal() -> None:
    X, y = rows(8000, 0)
    test, truth = rows(3000, 1)
    method, watcher = fitted(bags_of(X, y, np.full(1000, 8)), trees=30, rounds=3)
    scores = method.predict_scores(test)
    assert watcher.notes["accepted_rounds"] >= 1
    assert len(watcher.scores) == 1 + watcher.notes["accepted_rounds"]
    first, last = (roc_auc_score(y, s) for s in (watcher.scores[0], watcher.scores[-1]))
    assert last > first + 0.02
    assert roc_auc_score(truth, scores) > 0.85
    assert list(watcher.pseudo)[:2] == ["regression", "round-1"]
    for p in watcher.pseudo.values():
        np.testing.assert_allclose(
            np.add.reduceat(p, np.arange(0, 8000, 8)), bags_of(X, y, np.full(1000, 8)).counts[:, 0]
        )
    assert scores.mean() == pytest.approx(y.mean(), abs=0.03)


def test_no_round_is_accepted_without_signal() -> None:
    X, _ = rows(1200, 0)
    y = np.random.default_rng(9).integers(0, 2, 1200)
    _, watcher = fitted(bags_of(X, y, np.full(150, 8)), least_gain=3.0)
    assert watcher.notes["accepted_rounds"] == 0
    assert len(watcher.scores) == 1


def _check(scores: FloatArray, n: int, classes: int = 2) -> None:
    assert scores.shape == ((n,) if classes == 2 else (n, classes))
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert (scores <= 1).all()


ODD_SIZES = {
    "one bag": [50],
    "two bags": [30, 20],
    "ten bags": [30] * 10,
    "single rows": [1] * 200,
    "uneven": [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1, 1, 7],
}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ODD_SIZES.values(), ids=ODD_SIZES)
@pytest.mark.parametrize("count_sd", [0.0, 3.0])
def test_bags_of_every_shape(sizes: list[int], count_sd: float) -> None:
    X, y = rows(sum(sizes), 2)
    bags = bags_of(X, y, sizes, count_sd=count_sd)
    method, _ = fitted(bags, least_gain=0.0, rounds=1)
    _check(method.predict_scores(X), len(X))


@pytest.mark.parametrize("value", [0, 1])
def test_bags_of_one_label(value: int) -> None:
    X, _ = rows(80, 2)
    method, _ = fitted(bags_of(X, np.full(80, value), [8] * 10), least_gain=0.0, rounds=2)
    scores = method.predict_scores(X)
    _check(scores, 80)
    assert abs(scores.mean() - value) < 0.1


@pytest.mark.parametrize("columns", [COLUMNS, ()])
def test_constant_features_leave_the_rate(columns: tuple[Column, ...]) -> None:
    _, y = rows(80, 2)
    X = np.full((80, 6), 3.0, np.float32)
    method, _ = fitted(bags_of(X, y, [8] * 10, columns=columns), rounds=2, learner="trees")
    np.testing.assert_allclose(method.predict_scores(X), y.mean(), atol=0.02)


def test_one_feature() -> None:
    X, y = rows(400, 2)
    y = (X[:, 1] > 0.3).astype(int)
    one = np.ascontiguousarray(X[:, 1:2])
    method, _ = fitted(bags_of(one, y, [10] * 40, columns=(Column("y", "numeric"),)), rounds=1)
    assert roc_auc_score(y, method.predict_scores(one)) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("count_sd", [0.0, 1.0])
def test_several_classes(count_sd: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1600)
    X = (rng.normal(size=(1600, 4)) + 2.0 * np.eye(4)[y]).astype(np.float32)
    columns = tuple(Column(f"x{i}", "numeric") for i in range(4))
    bags = bags_of(X, y, [8] * 200, classes=3, count_sd=count_sd, columns=columns)
    method, _ = fitted(bags, least_gain=0.0, rounds=1)
    scores = method.predict_scores(X)
    _check(scores, 1600, 3)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert (scores.argmax(axis=1) == y).mean() > 0.75


@pytest.mark.slow
def test_features_without_columns() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(800, 20)) * np.arange(1, 21) ** -0.5).astype(np.float32)
    y = (X[:, 0] + X[:, 3] > 0.5).astype(int)
    method, watcher = fitted(bags_of(X, y, [8] * 100, columns=()), rounds=1, epochs=1)
    assert {"mass_A", "mass_E"} <= set(watcher.notes)
    assert roc_auc_score(y, method.predict_scores(X)) > 0.95


@pytest.mark.slow
def test_validation_bags_choose_the_weight_of_neighbours() -> None:
    """Labels that follow tight clusters, and no line: neighbours help, and the validation bags say so."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, size=(60, 2))
    label = rng.integers(0, 2, 60)
    code = rng.integers(0, 60, 2400)
    X = (centres[code] + 0.05 * rng.normal(size=(2400, 2))).astype(np.float32)
    columns = (Column("a", "numeric"), Column("b", "numeric"))
    valid = bags_of(X[1600:], label[code[1600:]], [8] * 100, columns=columns)
    bags = bags_of(X[:1600], label[code[:1600]], [8] * 200, columns=columns, validation=valid)
    _, watcher = fitted(bags, rounds=1)
    assert watcher.notes["similarity"] > 0.0
    noise = bags_of(X[:1600], rng.integers(0, 2, 1600), [8] * 200, columns=columns, validation=valid)
    _, fixed = fitted(noise, rounds=1, similarity=0.0)
    assert fixed.notes["similarity"] == 0.0


def test_parameters_are_those_of_the_class() -> None:
    method = BPCount(**BP_COUNT.resolve({}))
    plain = BPCount()
    assert vars(method) == vars(plain)
