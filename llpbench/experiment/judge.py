"""The judge of a fit: holds labels, takes scores, applies the selection rules. What it answers depends on bags alone.

It needs no features and no method, so in a cell it has a process of its own (``execution/worker.py``).
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
from llpbench.experiment.rules import Place, SelectionRule, bag_error

USUAL_PATIENCE = 20
"""Reports without improvement after which a stage closes, unless the method's parameters say otherwise."""
MOST_REPORTS = 2000
MOST_STAGES = 50
MOST_NOTES = 200
LONGEST_NAME, _LONGEST_NOTE = 100, 1000
_LARGEST_NUMBER = 8  # bytes of a score


def patience_of(params: Mapping[str, Scalar]) -> int:
    """The patience of a fit: its parameter ``patience`` where that is a whole number above 0, or the usual one."""
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


class Room:
    """Memory for the test scores of one rule's best report, taken once and written at every report.

    How much memory a process has can be seen from outside: what it does for a report that a rule on labels likes and
    for one that it does not must be the same. Both places are written to at once: the system gives out memory when it
    is first written to, not when it is asked for.
    """

    def __init__(self, numbers: int) -> None:
        self._kept, self._unused = np.full(numbers, 0.0), np.full(numbers, 0.0)

    def write(self, scores: FloatArray, *, keep: bool) -> FloatArray:
        """Write the scores, over the ones before if they are to be kept; what was written, in their own dtype."""
        place = (self._kept if keep else self._unused).view(np.uint8)[: scores.nbytes].view(scores.dtype)
        place[:] = scores.ravel()
        return place.reshape(scores.shape)


@dataclass
class Stage:
    """A part of the fit: the best report of each rule, and how long the rule ``bags`` has waited for a better one.

    Once ``bags`` has waited for ``patience`` reports the stage is closed, for all rules: they choose among the same
    reports.
    """

    best: dict[str, Best]
    rooms: dict[str, Room]
    waited: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Answer:
    """What a method is told about its report: a function of the held-back bags and its own scores, of no label."""

    improved: bool
    stop: bool


@dataclass(frozen=True)
class Lag:
    """How far a trial lags behind under one rule: the best value it has, and what it should have reached."""

    rule: str
    value: float
    limit: float


class Pruned(BaseException):
    """Ends the fit of a trial that lags behind the trials before it; not an error, and not for a method to catch."""

    def __init__(self, report: int, lags: Sequence[Lag]) -> None:
        self.rule = pruned_by(lag.rule for lag in lags)
        words = (f"under rule {lag.rule} is {lag.value:.6g}, worse than {lag.limit:.6g}" for lag in lags)
        super().__init__(f"at report {report} its best value {' and '.join(words)}, the median of finished trials")


def pruned_by(rules: Iterable[str]) -> str:
    """What a result says of the rules that gave it up."""
    return " and ".join(rules)


@dataclass(frozen=True)
class _Pending:
    """A report that ``bags`` has judged and the other rules have not."""

    number: int
    place: Place
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
        rules: the selection rules in force, bound to held-back data; one of them is ``bags``.
        valid: the held-back bags; of their rows only the order matters.
        tests: number of test rows; None while tuning, when nothing is predicted for them.
        train_labels: labels of the training rows in bag order, to judge pseudo-labels.
        score_kind: how the method's scores are to be read.
        patience: reports without improvement under ``bags`` after which a stage closes.
        prune: what a trial's reports must reach, when it is one; it is given up where it lags under all rules named.
        history: for each report, its value under every rule.
        places: for each report, where it stands in the fit.
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
    places: list[Place] = field(default_factory=list)
    pseudo: dict[str, float | None] = field(default_factory=dict)
    notes: dict[str, float | str | bool | None] = field(default_factory=dict)
    _pending: _Pending | None = None

    def take_report(self, valid_scores: FloatArray, test_scores: FloatArray | None, stage: str = "") -> Answer:
        """Judge a report by ``bags`` and answer; ``finish_report`` must follow, and judges it by the other rules.

        In this order, so that neither the answer nor the time until it comes can depend on a label. What is left to
        ``finish_report`` is the same work whatever it finds: a method could time how soon its next call is answered.

        Raises:
            MethodError: the scores break the contract, or there are too many reports or stages.
        """
        stage = checked_name(stage, "stage")
        number = len(self.history)
        if number >= MOST_REPORTS:
            raise MethodError(f"a fit may report {MOST_REPORTS:,} times; report every few steps, not every step")
        if stage not in self.stages and len(self.stages) >= MOST_STAGES:
            raise MethodError(f"a fit may have {MOST_STAGES} stages; the name of a stage must not change every report")
        scores = self._checked_report(valid_scores, int(self.valid.offsets[-1]))
        if self.tests is not None:
            if test_scores is None:
                raise MethodError("a report needs the scores of the test rows too")
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
            Pruned: the trial lags behind.
        """
        report, self._pending = self._pending, None
        assert report is not None
        for rule in self.rules:
            if rule.name != DEFAULT_RULE:
                self._judge(rule, report)
        self._give_up_if_behind(report.number)

    def _judge(self, rule: SelectionRule, report: _Pending) -> bool:
        """Note the value of a report under a rule, and keep the report if it is the best of its stage."""
        if rule.of_place is None:
            value = rule.value(report.probabilities, report.scores)
        else:
            value = rule.of_place.get(report.place, float("nan"))
        self.history[report.number][rule.name] = finite(value)
        best = report.stage.best
        improved = report.counts and rule.better(value, best[rule.name].value)
        kept = None
        if report.test_scores is not None:
            kept = report.stage.rooms[rule.name].write(report.test_scores, keep=improved)
        found = Best(value, report.number, report.place[0], kept, report.bag_error)
        best[rule.name] = found if improved else best[rule.name]
        return improved

    def _open(self, name: str) -> Stage:
        """Begin a stage."""
        numbers = (self.tests or 0) * (1 if self.classes == 2 else self.classes)
        names = [rule.name for rule in self.rules]
        self.stages[name] = Stage({name: Best() for name in names}, {name: Room(numbers) for name in names})
        return self.stages[name]

    def _give_up_if_behind(self, number: int) -> None:
        """End a trial whose best report so far is, under every rule in force, worse than the limit for this report."""
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
        """Record the AUROC of pseudo-labels against the training labels; nothing is answered.

        Each class is judged by its own column, so those of a row need not add up to 1: belief propagation over pairs
        has a marginal for each class by itself.
        """
        name = checked_name(stage, "stage") or "all"
        if name not in self.pseudo and len(self.pseudo) >= MOST_STAGES:
            raise MethodError(f"a fit may have pseudo-labels of {MOST_STAGES} stages")
        scores = self._checked(np.asarray(probabilities), len(self.train_labels))
        self.pseudo[name] = finite(auroc(self.train_labels, scores))

    def take_note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit."""
        name, value = checked_note(name, value)
        if name not in self.notes and len(self.notes) >= MOST_NOTES:
            raise MethodError(f"a fit may leave {MOST_NOTES} notes; {name!r} is one too many")
        self.notes[name] = value if isinstance(value, str | bool) else finite(value)

    def rule(self, name: str) -> SelectionRule:
        """The rule of that name."""
        return next(rule for rule in self.rules if rule.name == name)

    def winner(self, rule: SelectionRule) -> Best:
        """The best report of a rule over all stages (the earlier one when they tie)."""
        winner = Best()
        for track in self.stages.values():
            best = track.best[rule.name]
            if best.value is not None and rule.better(best.value, winner.value):
                winner = best
        return winner

    def _checked(self, scores: FloatArray, n: int) -> FloatArray:
        """Scores of the right shape, finite; otherwise a sentence the method's author can act on."""
        scores = np.array(scores)  # a copy: the method may use its buffer again
        wanted = (n,) if self.classes == 2 else (n, self.classes)
        if scores.shape != wanted:
            raise MethodError(f"predict_scores returned shape {scores.shape} for {n} rows; expected {wanted}")
        if scores.dtype.kind not in "iuf":
            raise MethodError(f"predict_scores returned {scores.dtype}, not numbers")
        scores = scores if scores.dtype.itemsize <= _LARGEST_NUMBER else scores.astype(np.float64)
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            raise MethodError(f"predict_scores returned {bad} values of {scores.size} that are NaN or infinite")
        if self.score_kind == "probability" and ((scores < -1e-6) | (scores > 1 + 1e-6)).any():
            raise MethodError("predict_scores left [0, 1] though the method declares scores='probability'")
        return scores

    def _checked_report(self, scores: FloatArray, n: int) -> FloatArray:
        """Scores of a report; where they are probabilities, those of a row must add up to 1 too."""
        scores = self._checked(scores, n)
        if self.score_kind == "probability" and not rows_add_up(scores):
            raise MethodError(
                "predict_scores returned rows that do not add up to 1 though the method declares scores='probability'"
            )
        return scores


def checked_name(name: object, what: str) -> str:
    """The name of a stage or a note, if it is one: printable text that is not long."""
    if not isinstance(name, str):
        raise MethodError(f"the {what} must be text, not {type(name).__name__}")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise MethodError(f"the {what} {name[:40]!r} must be printable text of at most {LONGEST_NAME} characters")
    return name


def checked_note(name: object, value: object) -> tuple[str, float | str | bool]:
    """A note as a result can hold it: a number, a truth value, or printable text that is not long."""
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
    """The number as JSON can hold it: None for NaN and infinities."""
    return float(value) if np.isfinite(value) else None
