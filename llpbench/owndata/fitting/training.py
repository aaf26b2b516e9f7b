"""Fit a method on bags and keep the model of its best report under the rule ``bags``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.contracts.errors import MethodError, Skip, UsageError
from llpbench.contracts.protocols import Method, Predict
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.contracts.state import HOW_TO, is_restorable
from llpbench.experiment.fit_cell import fit_method
from llpbench.experiment.judge import Best, patience_of
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules


@dataclass
class BagMonitor(HarnessMonitor):
    """The harness's monitor with the rule ``bags`` alone: the other rules need labels of rows, and there are none.

    Keeps the method as it was at the best report, so that what predicts in the end is what was chosen.

    Attributes:
        method: the method that is watched.
        kept: its state at the best report, or a copy of the method; None when neither was possible.
    """

    method: Any = None
    kept: Any = None

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """As in the harness; a report that is the best of all stages is kept."""
        improved = super().report(predict, stage=stage)
        if self.winner(self.rules[0]).report == len(self.history) - 1:
            with self.clock.phase("report"):
                self.kept = self._copy_of_model()
        return improved

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Nothing to compare them with."""

    def _copy_of_model(self) -> Any:
        try:
            if is_restorable(self.method):
                return {name: copy.copy(value) for name, value in self.method.state().items()}
            return copy.deepcopy(self.method)
        except Exception:  # a method may report before its state is complete; its last model may still be the best
            return None


def fit_and_choose(spec: MethodSpec, settings: Mapping[str, Scalar], train: Bags, seed: int) -> tuple[Any, BagMonitor]:
    """Fit a method; returns the model of its best report, and the monitor that watched it."""
    assert train.validation is not None
    method: Method = spec.load()(**settings)
    monitor = BagMonitor(
        rules=[rule for rule in make_rules(train.validation, np.zeros(0, np.int64)) if rule.name == "bags"],
        valid=train.validation,
        test_rows=train.validation.X,
        train_labels=np.zeros(0, np.int64),
        classes=train.classes,
        score_kind=spec.scores,
        patience=patience_of(settings),
        method=method,
    )
    try:
        fit_method(method, train, monitor, seed)
    except Skip as skip:
        raise UsageError(f"{spec.name} declines these bags: {skip}") from None
    best = monitor.winner(monitor.rules[0])
    if _gives_scores_of(method, train.validation, best):
        return method, monitor
    kept = monitor.kept
    if isinstance(kept, dict) and is_restorable(method):
        kept = spec.load()(**settings).restore(kept)
    if kept is None or not _gives_scores_of(kept, train.validation, best):
        raise MethodError(
            f"{spec.name}: the model after fit is not that of its best report, which could not be kept; {HOW_TO}."
        )
    return kept, monitor


def _gives_scores_of(method: Any, held: Bags, best: Best) -> bool:
    """Whether a model gives the scores of the best report."""
    assert best.scores is not None
    scores = np.asarray(method.predict_scores(held.X), np.float64)
    reach = 1e-6 * (1.0 + float(np.abs(best.scores).max(initial=0.0)))
    return scores.shape == best.scores.shape and bool((np.abs(scores - best.scores) <= reach).all())
