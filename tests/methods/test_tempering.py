"""The monitor that tempers reports: right temperature, right model, and `bp-field` as it uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llpbench import Bags, QuietMonitor
from llpbench_methods.bp_field.method import BPField
from llpbench_methods.nets.tempering import Tempering
from llpbench_methods.shared.temperature import bag_temperature, tempered

NOTHING = np.zeros((0, 1), np.float32)


class Judge(QuietMonitor):
    """Calls the reports with the given numbers the best, and keeps the scores of all."""

    def __init__(self, best: set[int], X: np.ndarray, last: int = 99) -> None:
        self.best, self.X, self.last = best, X, last
        self.scores: list[np.ndarray] = []

    def report(self, predict: Any, *, stage: str = "") -> bool:
        self.scores.append(predict(self.X))
        return len(self.scores) - 1 in self.best

    @property
    def should_stop(self) -> bool:
        return len(self.scores) >= self.last


class Growing:
    """A trainer whose network is surer of the same ranks at every report."""

    factor = 1.0

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.factor * X[:, 0]


def bags_of_a_law(n: int = 4000, size: int = 8) -> Bags:
    """Rows whose only column is the log-odds of their label."""
    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    offsets = np.arange(0, n + 1, size)
    return Bags(z[:, None].astype(np.float32), offsets, np.add.reduceat(y, offsets[:-1], dtype=float)[:, None])


@pytest.mark.parametrize(("best", "kept"), [({0, 1}, 1), ({0}, 0), (set(), 0)])
def test_every_report_is_tempered_and_the_temperature_of_the_best_is_kept(best: set[int], kept: int) -> None:
    held_out, trainer = bags_of_a_law(), Growing()
    judge = Judge(best, held_out.X, last=3)
    watch = Tempering(trainer, held_out, judge)  # type: ignore[arg-type]
    wanted = []
    for factor in (2.0, 6.0, 4.0):
        trainer.factor = factor
        assert not watch.should_stop
        assert watch.report(lambda X: NOTHING, stage="s") is (len(wanted) in best)
        wanted.append(bag_temperature(trainer.predict(held_out.X), held_out))
        np.testing.assert_array_equal(judge.scores[-1], tempered(trainer.predict(held_out.X), wanted[-1]))
    assert watch.should_stop
    assert watch.best == wanted[kept]
    assert np.ptp(wanted) > 1.0


def test_without_held_out_bags_nothing_is_tempered() -> None:
    bags, trainer = bags_of_a_law(), Growing()
    judge = Judge({0}, bags.X)
    watch = Tempering(trainer, None, judge)  # type: ignore[arg-type]
    watch.report(lambda X: NOTHING)
    assert watch.best == 1.0
    np.testing.assert_array_equal(judge.scores[0], tempered(trainer.predict(bags.X), 1.0))


@pytest.mark.slow
def test_bp_field_keeps_the_model_it_reported() -> None:
    law = bags_of_a_law(n=400)
    X = np.column_stack([law.X, np.random.default_rng(1).normal(size=len(law.X))]).astype(np.float32)
    held_out = Bags(X, law.offsets, law.counts)
    bags = Bags(X, law.offsets, law.counts, validation=held_out)
    judge = Judge({1, 4}, X)
    fitted = BPField(iterations=2, epochs=3, tempered=True).fit(bags, monitor=judge, seed=0)
    assert fitted.temperature_ != 1.0
    np.testing.assert_array_equal(fitted.predict_scores(X), judge.scores[4])
    loaded = BPField(iterations=2, epochs=3, tempered=True).restore(fitted.state())
    np.testing.assert_array_equal(loaded.predict_scores(X), judge.scores[4])
    before = {name: value for name, value in fitted.state().items() if name != "temperature"}
    assert BPField().restore(before).temperature_ == 1.0

    plain = BPField(iterations=2, epochs=3).fit(bags, monitor=Judge({1, 4}, X), seed=0)
    assert plain.temperature_ == 1.0
    at = fitted.temperature_
    odds = fitted.trainer_.predict(X)
    np.testing.assert_allclose(tempered(odds, 1.0), plain.predict_scores(X))
    assert not np.allclose(tempered(odds, at), plain.predict_scores(X))
