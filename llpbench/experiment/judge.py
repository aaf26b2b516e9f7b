"""The judge of a fit: it has the labels, receives scores and applies the selection rules.

Its answers depend on bags only.

It needs neither features nor the method, so in a cell it runs in its own process (``execution/worker.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.errors import MethodError
from llpbench.contracts.job import Prune
from llpbench.contracts.specs import DEFAULT_RULE, Scalar
from llpbench.experiment.metrics import auroc, kind_of_scores, rows_add_up, to_probabilities
from llpbench.experiment.rules import ReportPlace, SelectionRule, bag_error

USUAL_PATIENCE = 20
"""Reports without improvement after which a stage closes, unless the method has a parameter ``patience``."""
MOST_REPORTS = 2000
MOST_STAGES = 50
MOST_NOTES = 200
LONGEST_NAME, _LONGEST_NOTE = 100, 1000
_LARGEST_NUMBER = 8  # bytes of a score


def patience_of(params: Mapping[str, Scalar]) -> int:
    """The patience of a fit: its parameter ``patience`` if that is a positive integer, or the default."""
    given = params.get("patience")
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else USUAL_PATIENCE


@dataclass
class Best:
    """The best report of one rule in one stage."""

    value: float | None = None
    report: int = -1
    stage: str = ""
    scores: FloatArray | None = None
    bag_error: float = float("nan")


class ScoreBuffer:
    """Memory for the test scores of one rule's best report, allocated once and written at every report.

    The memory use of a process can be observed from outside, so it must not depend on whether a rule that uses labels
    prefers a report. Both buffers are filled at once, because the system allocates memory when it is first written.
    """

    def __init__(self, numbers: int) -> None:
        self._kept, self._unused = np.full(numbers, 0.0), np.full(numbers, 0.0)

    def write(self, scores: FloatArray, *, keep: bool) -> FloatArray:
        """Write the scores, replacing the earlier ones if they are to be kept; returns the copy in their own dtype."""
        copy = (self._kept if keep else self._unused).view(np.uint8)[: scores.nbytes].view(scores.dtype)
        copy[:] = scores.ravel()
        return copy.reshape(scores.shape)


@dataclass
class Stage:
    """A part of the fit: the best report of each rule, and the number of reports since ``bags`` last improved.

    After ``patience`` reports without improvement under ``bags``, the stage is closed for all rules.
    """

    best: dict[str, Best]
    buffers: dict[str, ScoreBuffer]
    waited: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer to a report. It depends on the held-out bags and the method's own scores, never on a label."""

    improved: bool
    stop: bool


@dataclass(frozen=True)
class Lag:
    """A trial that lags behind under one rule: its best value, and the limit it should have reached."""

    rule: str
    value: float
    limit: float


class Pruned(BaseException):
    """Ends the fit of a trial that lags behind earlier ones. Not an ``Exception``, so that methods do not catch it."""

    def __init__(self, report: int, lags: Sequence[Lag]) -> None:
        self.rule = pruned_by(lag.rule for lag in lags)
        words = (f"under rule {lag.rule} is {lag.value:.6g}, worse than {lag.limit:.6g}" for lag in lags)
        super().__init__(f"at report {report} its best value {' and '.join(words)}, the median of finished trials")


def pruned_by(rules: Iterable[str]) -> str:
    """The rules that pruned a trial, as its result names them."""
    return " and ".join(rules)


@dataclass(frozen=True)
class _Pending:
    """A report that ``bags`` has judged and the other rules have not yet."""

    number: int
    place: ReportPlace
    stage: Stage
    counts: bool
    scores: FloatArray
    probabilities: FloatArray
    test_scores: FloatArray | None
    bag_error: float


@dataclass
class Judge:
    """Judges the reports of one fit.

    Attributes:
        rules: the selection rules, bound to held-out data; one of them is ``bags``.
        valid: the held-out bags.
        tests: number of test rows; None during tuning, when they are not predicted.
        train_labels: labels of the training rows in their order, to evaluate pseudo-labels.
        score_kind: how to interpret the method's scores.
        patience: reports without improvement under ``bags`` after which a stage closes.
        prune: for a trial, the values to reach; the trial is pruned if it lags behind under all of them.
        history: for each report, its value under every rule.
        places: for each report, its place in the fit.
    """

    rules: list[SelectionRule]
    valid: Bags
    tests: int | None
    train_labels: IntArray
    classes: int
    score_kind: str = "auto"
    patience: int = USUAL_PATIENCE
    prune: tuple[Prune, ...] = ()
    stages: dict[str, Stage] = field(default_factory=dict)
    history: list[dict[str, float | None]] = field(default_factory=list)
    places: list[ReportPlace] = field(default_factory=list)
    pseudo: dict[str, float | None] = field(default_factory=dict)
    notes: dict[str, float | str | bool | None] = field(default_factory=dict)
    _pending: _Pending | None = None

    def take_report(self, valid_scores: FloatArray, test_scores: FloatArray | None, stage: str = "") -> Answer:
        """Judge a report by ``bags`` and answer; ``finish_report`` must follow and judges it by the other rules.

        In this order, neither the answer nor its time can depend on a label. ``finish_report`` does the same work
        whatever it finds, because a method could time how soon its next call is answered.

        Raises:
            MethodError: the scores break the contract, or there are too many reports or stages.
        """
        stage = checked_name(stage, "stage")
        number = len(self.history)
        if number >= MOST_REPORTS:
            raise MethodError(f"a fit may report at most {MOST_REPORTS:,} times; report every few steps only")
        if stage not in self.stages and len(self.stages) >= MOST_STAGES:
            raise MethodError(f"a fit may have at most {MOST_STAGES} stages; do not start one with every report")
        scores = self._checked_report(valid_scores, len(self.valid.X))
        if self.tests is not None:
            if test_scores is None:
                raise MethodError("a report must include the scores of the test rows")
            test_scores = self._checked_report(test_scores, self.tests)
        if self.score_kind == "auto" and kind_of_scores(scores) == "logit":
            self.score_kind = "logit"
            self.stages.clear()  # earlier reports were read as probabilities: not comparable
        probabilities = to_probabilities(scores, self.score_kind)
        track = self.stages[stage] if stage in self.stages else self._open(stage)
        place = (stage, sum(earlier == stage for earlier, _ in self.places))
        error = bag_error(probabilities, self.valid)
        report = _Pending(number, place, track, not track.closed, scores, probabilities, test_scores, error)
        self.history.append({})
        self.places.append(place)
        self._pending = report
        improved = self._judge(self.rule(DEFAULT_RULE), report)
        track.waited = 0 if improved else track.waited + 1
        track.closed = track.closed or track.waited >= self.patience
        return Answer(improved, track.closed)

    def finish_report(self) -> None:
        """Judge the report that was just answered by the rules other than ``bags``.

        Raises:
            Pruned: the trial lags behind earlier trials.
        """
        report, self._pending = self._pending, None
        assert report is not None
        for rule in self.rules:
            if rule.name != DEFAULT_RULE:
                self._judge(rule, report)
        self._give_up_if_behind(report.number)

    def _judge(self, rule: SelectionRule, report: _Pending) -> bool:
        """Record the value of a report under a rule, and keep the report if it is the best of its stage."""
        if rule.by_place is None:
            value = rule.value(report.probabilities, report.scores)
        else:
            value = rule.by_place.get(report.place, float("nan"))
        self.history[report.number][rule.name] = finite(value)
        best = report.stage.best
        improved = report.counts and rule.better(value, best[rule.name].value)
        kept = None
        if report.test_scores is not None:
            kept = report.stage.buffers[rule.name].write(report.test_scores, keep=improved)
        found = Best(value, report.number, report.place[0], kept, report.bag_error)
        best[rule.name] = found if improved else best[rule.name]
        return improved

    def _open(self, name: str) -> Stage:
        numbers = (self.tests or 0) * (1 if self.classes == 2 else self.classes)
        names = [rule.name for rule in self.rules]
        self.stages[name] = Stage({name: Best() for name in names}, {name: ScoreBuffer(numbers) for name in names})
        return self.stages[name]

    def _give_up_if_behind(self, number: int) -> None:
        """End a trial whose best report so far is worse than the limit for this report under every rule named."""
        lags = []
        for prune in self.prune:
            limit, rule = prune.limit(number), self.rule(prune.rule)
            value = self.winner(rule).value
            if limit is None or value is None or not rule.better(limit, value):
                return
            lags.append(Lag(rule.name, value, limit))
        if lags:
            raise Pruned(number, lags)

    def take_pseudo_labels(self, probabilities: FloatArray, stage: str = "") -> None:
        """Record the AUROC of pseudo-labels against the training labels; there is no answer.

        Each class is evaluated by its own column, so the columns of a row need not sum to 1.
        """
        name = checked_name(stage, "stage") or "all"
        if name not in self.pseudo and len(self.pseudo) >= MOST_STAGES:
            raise MethodError(f"a fit may have pseudo-labels of at most {MOST_STAGES} stages")
        scores = self._checked(np.asarray(probabilities), len(self.train_labels))
        self.pseudo[name] = finite(auroc(self.train_labels, scores))

    def take_note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit."""
        name, value = checked_note(name, value)
        if name not in self.notes and len(self.notes) >= MOST_NOTES:
            raise MethodError(f"a fit may record at most {MOST_NOTES} notes; {name!r} is one too many")
        self.notes[name] = value if isinstance(value, str | bool) else finite(value)

    @property
    def stage_starts(self) -> dict[str, int]:
        """The first report of each stage; empty if there is only one."""
        found = {stage: number for number, (stage, place) in enumerate(self.places) if place == 0}
        return found if len(found) > 1 else {}

    def rule(self, name: str) -> SelectionRule:
        """The rule of that name."""
        return next(rule for rule in self.rules if rule.name == name)

    def winner(self, rule: SelectionRule) -> Best:
        """The best report of a rule over all stages (the earlier one of a tie)."""
        winner = Best()
        for track in self.stages.values():
            best = track.best[rule.name]
            if best.value is not None and rule.better(best.value, winner.value):
                winner = best
        return winner

    def _checked(self, scores: FloatArray, n: int) -> FloatArray:
        """A copy of valid scores; an error that the method's author can act on otherwise."""
        scores = np.array(scores)  # a copy: the method may reuse its buffer
        wanted = (n,) if self.classes == 2 else (n, self.classes)
        if scores.shape != wanted:
            raise MethodError(f"predict_scores returned shape {scores.shape} for {n} rows; expected {wanted}")
        if scores.dtype.kind not in "iuf":
            raise MethodError(f"predict_scores must return numbers, got {scores.dtype}")
        scores = scores if scores.dtype.itemsize <= _LARGEST_NUMBER else scores.astype(np.float64)
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            raise MethodError(f"predict_scores returned {bad} NaN or infinite values (of {scores.size})")
        if self.score_kind == "probability" and ((scores < -1e-6) | (scores > 1 + 1e-6)).any():
            raise MethodError("predict_scores must be in [0, 1], because the method declares scores='probability'")
        return scores

    def _checked_report(self, scores: FloatArray, n: int) -> FloatArray:
        """Scores of a report; probabilities of a row must sum to 1."""
        scores = self._checked(scores, n)
        if self.score_kind == "probability" and not rows_add_up(scores):
            raise MethodError("rows of predict_scores must sum to 1, because the method declares scores='probability'")
        return scores


def checked_name(name: object, what: str) -> str:
    """The name of a stage or a note; an error unless it is short printable text."""
    if not isinstance(name, str):
        raise MethodError(f"the {what} must be text, not {type(name).__name__}")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise MethodError(f"the {what} {name[:40]!r} must be printable text of at most {LONGEST_NAME} characters")
    return name


def checked_note(name: object, value: object) -> tuple[str, float | str | bool]:
    """A note as a result can hold it: a number, a bool, or short printable text."""
    name = checked_name(name, "name of a note")
    if isinstance(value, bool | np.bool_):
        return name, bool(value)
    if isinstance(value, str):
        if len(value) > _LONGEST_NOTE or not value.replace("\n", " ").isprintable():
            raise MethodError(f"the note {name!r} must be printable text of at most {_LONGEST_NOTE} characters")
        return name, value
    try:
        return name, float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise MethodError(f"the note {name!r} must be a number or text, not {type(value).__name__}") from None


def finite(value: float) -> float | None:
    """The number as JSON can hold it: None if it is NaN or infinite."""
    return float(value) if np.isfinite(value) else None
