"""The harness's side of a fit: scores reports, keeps the best of each rule, keeps the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.errors import MethodError
from llpbench.contracts.job import Prune
from llpbench.contracts.protocols import Predict
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.metrics import auroc, kind_of_scores, to_probabilities
from llpbench.experiment.rules import SelectionRule, bag_error


class PhaseClock:
    """Seconds by phase. Exactly one phase runs at any time; an inner phase stops its outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack = ["other"]
        self._since = time.perf_counter()

    def _charge(self) -> None:
        now = time.perf_counter()
        name = self._stack[-1]
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge the time inside to ``name``."""
        self._charge()
        self._stack.append(name)
        try:
            yield
        finally:
            self._charge()
            self._stack.pop()

    def stop(self) -> dict[str, float]:
        """Charge what is open and return the seconds by phase."""
        self._charge()
        return dict(self.seconds)


@dataclass
class Best:
    """The best report of one rule in one stage; closed when ``patience`` reports have not improved on it."""

    value: float | None = None
    report: int = -1
    stage: str = ""
    scores: FloatArray | None = None
    bag_error: float = float("nan")
    waited: int = 0
    closed: bool = False


class Pruned(BaseException):
    """Ends the fit of a trial that lags behind the trials before it; not an error, and not for a method to catch."""

    def __init__(self, rule: str, report: int, value: float, limit: float) -> None:
        self.rule = rule
        super().__init__(
            f"at report {report} its best value under rule {rule} is {value:.6g}, "
            f"worse than {limit:.6g}, the median of finished trials"
        )


class MethodView:
    """The monitor as a method sees it: functions only. No attribute leads to a label or to held-back rows."""

    __slots__ = ("_stopped", "note", "phase", "pseudo_labels", "report")

    def __init__(self, monitor: HarnessMonitor) -> None:
        def report(predict: Predict, *, stage: str = "") -> bool:
            return monitor.report(predict, stage=stage)

        def phase(name: str) -> AbstractContextManager[None]:
            return monitor.phase(name)

        def pseudo_labels(probabilities: FloatArray, *, stage: str = "") -> None:
            monitor.pseudo_labels(probabilities, stage=stage)

        def note(name: str, value: float | str | bool) -> None:
            monitor.note(name, value)

        self.report, self.phase, self.pseudo_labels, self.note = report, phase, pseudo_labels, note

        def stopped() -> bool:
            return monitor.should_stop

        self._stopped = stopped

    @property
    def should_stop(self) -> bool:
        """True when every rule of the current stage is closed."""
        return self._stopped()


@dataclass
class HarnessMonitor:
    """Watches one fit (see ``protocols.Monitor``). Holds labels: a method is given ``MethodView``, never this.

    Attributes:
        rules: the selection rules in force, applied to held-back data.
        valid: the held-back bags.
        test_rows: test rows; None while tuning, when nothing is ever predicted for them.
        train_labels: labels of the training rows in bag order, to judge pseudo-labels.
        score_kind: how the method's scores are to be read.
        patience: reports without improvement after which a rule closes.
        prune: what a trial's reports must reach, when it is one.
    """

    rules: list[SelectionRule]
    valid: Bags
    test_rows: FloatArray | None
    train_labels: IntArray
    classes: int
    score_kind: str = "auto"
    patience: int = 20
    prune: Prune | None = None
    clock: PhaseClock = field(default_factory=PhaseClock)
    best: dict[str, dict[str, Best]] = field(default_factory=dict)
    history: list[dict[str, float | None]] = field(default_factory=list)
    pseudo: dict[str, float | None] = field(default_factory=dict)
    notes: dict[str, float | str | bool | None] = field(default_factory=dict)
    _stage: str = ""

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the model on held-back rows; for every open rule it improves, keep its test scores."""
        with self.clock.phase("report"):
            self._stage = stage
            scores = self._checked(predict(self.valid.X), len(self.valid.X))
            if self.score_kind == "auto" and kind_of_scores(scores) == "logit":
                self.score_kind = "logit"
                self.best.clear()  # earlier reports were read as probabilities: not comparable
            probabilities = to_probabilities(scores, self.score_kind)
            number = len(self.history)
            values = {rule.name: rule.value(probabilities, scores) for rule in self.rules}
            self.history.append({name: finite(value) for name, value in values.items()})
            improved = [rule for rule in self.rules if self._improves(rule, values[rule.name], stage)]
            if improved:
                test_scores = None
                if self.test_rows is not None:
                    test_scores = self._checked(predict(self.test_rows), len(self.test_rows))
                for rule in improved:
                    track = self.best[stage][rule.name]
                    track.value, track.report, track.waited = values[rule.name], number, 0
                    track.stage, track.scores = stage, test_scores
                    track.bag_error = bag_error(probabilities, self.valid)
            self._give_up_if_behind(number)
            return any(rule.name == DEFAULT_RULE for rule in improved)

    def _give_up_if_behind(self, number: int) -> None:
        """End a trial whose best report so far is worse than the limit for this many reports."""
        if self.prune is None:
            return
        limit = self.prune.limit(number)
        rule = next(rule for rule in self.rules if rule.name == self.prune.rule)
        value = self.winner(rule).value
        if limit is not None and value is not None and rule.better(limit, value):
            raise Pruned(rule.name, number, value, limit)

    def _improves(self, rule: SelectionRule, value: float, stage: str) -> bool:
        track = self.best.setdefault(stage, {}).setdefault(rule.name, Best())
        if track.closed:
            return False
        if rule.better(value, track.value):
            return True
        track.waited += 1
        track.closed = track.waited >= self.patience
        return False

    @property
    def should_stop(self) -> bool:
        """True when every rule of the current stage is closed."""
        tracks = self.best.get(self._stage, {})
        return bool(tracks) and all(t.closed for t in tracks.values())

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Charge the time inside to ``name``."""
        if name in ("report", "other"):
            raise MethodError(f"the phase name {name!r} is the harness's own; call yours otherwise")
        return self.clock.phase(name)

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Record the AUROC of pseudo-labels against the training labels."""
        with self.clock.phase("report"):
            scores = self._checked(np.asarray(probabilities), len(self.train_labels))
            self.pseudo[stage or "all"] = finite(auroc(self.train_labels, scores))

    def note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit."""
        if isinstance(value, str | bool):
            self.notes[name] = value
        else:
            self.notes[name] = finite(float(value))

    def winner(self, rule: SelectionRule) -> Best:
        """The best report of a rule over all stages (the earlier one when they tie)."""
        winner = Best()
        for tracks in self.best.values():
            track = tracks[rule.name]
            if track.value is not None and rule.better(track.value, winner.value):
                winner = track
        return winner

    def _checked(self, scores: FloatArray, n: int) -> FloatArray:
        """Scores of the right shape, finite; otherwise a sentence the method's author can act on."""
        scores = np.array(scores)  # a copy: the method may use its buffer again
        wanted = (n,) if self.classes == 2 else (n, self.classes)
        if scores.shape != wanted:
            raise MethodError(f"predict_scores returned shape {scores.shape} for {n} rows; expected {wanted}")
        if not np.issubdtype(scores.dtype, np.number):
            raise MethodError(f"predict_scores returned {scores.dtype}, not numbers")
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            raise MethodError(f"predict_scores returned {bad} values of {scores.size} that are NaN or infinite")
        if self.score_kind == "probability" and ((scores < -1e-6) | (scores > 1 + 1e-6)).any():
            raise MethodError("predict_scores left [0, 1] though the method declares scores='probability'")
        return scores


def finite(value: float) -> float | None:
    """The number as JSON can hold it: None for NaN and infinities."""
    return float(value) if np.isfinite(value) else None
