"""The judge and its monitor: each rule keeps its own best of the same reports, no label leaks, the clock is fair."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import psutil
import pytest
from helpers import bags_of, make_part, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import MethodError, QuietMonitor
from llpbench.contracts.specs import Scalar
from llpbench.experiment import judge
from llpbench.experiment.monitor import HarnessMonitor, MethodView, PhaseClock
from llpbench.experiment.rules import SelectionRule, make_rules

VALID, TEST = 24, 10


def scripted(patience: int = 2, **values: Sequence[float]) -> HarnessMonitor:
    """A monitor whose rules give prescribed values, report after report (higher is better)."""

    def rule(name: str) -> SelectionRule:
        script = iter(values[name])
        return SelectionRule(name, lambda _p, _s: next(script), higher_is_better=True)

    bags, labels = bags_of(make_part(VALID), 6)
    rules = [rule(name) for name in values]
    return HarnessMonitor(
        rules, bags, labels, test_rows=make_part(TEST).X, classes=2, score_kind="logit", patience=patience
    )


def scoring(number: float) -> Callable[[np.ndarray], np.ndarray]:
    """A model that can be recognised by its scores."""
    return lambda X: np.full(len(X), float(number))


def feed(monitor: HarnessMonitor, reports: int, stage: str = "", start: int = 0) -> list[bool]:
    return [monitor.report(scoring(start + i), stage=stage) for i in range(reports)]


def chosen(monitor: HarnessMonitor, name: str) -> tuple[int, float]:
    (rule,) = [r for r in monitor.rules if r.name == name]
    best = monitor.winner(rule)
    assert best.scores is not None
    return best.report, float(best.scores[0])


# -- selection ---------------------------------------------------------------------------------------------------------


def test_each_rule_keeps_the_test_scores_of_its_own_best_report() -> None:
    monitor = scripted(patience=9, bags=[1, 3, 2, 0], instances=[1, 0, 2, 3])
    feed(monitor, 4)
    assert chosen(monitor, "bags") == (1, 1.0)
    assert chosen(monitor, "instances") == (3, 3.0)
    assert monitor.history == [{"bags": b, "instances": i} for b, i in ((1, 1), (3, 0), (2, 2), (0, 3))]


@quick
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("fdiq")), min_size=1, max_size=12))
def test_judge_allocates_memory_independent_of_labels(script: list[tuple[int, int, str]]) -> None:
    monitor = scripted(patience=99, bags=[b for b, _, _ in script], instances=[i for _, i, _ in script])
    places = set()
    for number, (_, _, dtype) in enumerate(script):
        monitor.report(lambda X, n=number, d=dtype: np.full(len(X), n, d))
        for rule in monitor.rules:
            scores = monitor.winner(rule).scores
            assert scores is not None
            places.add((rule.name, scores.__array_interface__["data"][0]))
    assert len(places) == 2  # one place for each rule, however often it found a better report
    for position, name in enumerate(("bags", "instances")):
        values = [line[position] for line in script]
        best = values.index(max(values))
        assert chosen(monitor, name) == (best, float(best))
        (rule,) = [r for r in monitor.rules if r.name == name]
        scores = monitor.winner(rule).scores
        assert scores is not None
        assert scores.dtype == np.dtype(script[best][2])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory that Linux shows")
@pytest.mark.parametrize("keep", [True, False])
def test_judge_allocates_memory_before_the_first_report(keep: bool) -> None:
    """Memory that came with the first report a rule keeps would tell from outside that it kept it."""
    numbers = 4_000_000
    scores, process = np.ones(numbers), psutil.Process()
    buffer = judge.ScoreBuffer(numbers)
    before = process.memory_info().rss
    buffer.write(scores, keep=keep)
    assert process.memory_info().rss - before < scores.nbytes / 4


def test_report_returns_only_whether_rule_bags_improved() -> None:
    monitor = scripted(patience=9, bags=[1, 0, 2, 2], instances=[1, 2, 1, 3])
    assert feed(monitor, 4) == [True, False, True, False]


def test_stage_closes_by_patience_under_rule_bags_for_all_rules() -> None:
    monitor = scripted(patience=2, bags=[5, 1, 1, 9, 9], instances=[1, 2, 3, 4, 5])
    feed(monitor, 5)
    assert chosen(monitor, "bags") == (0, 0.0)  # the nine came after it had closed
    assert chosen(monitor, "instances") == (2, 2.0)  # among the same reports
    assert monitor.should_stop
    assert len(monitor.history) == 5


def test_report_work_is_independent_of_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the time until the next call is answered would tell whether labels liked the report."""
    calls: list[int] = []

    def counted(*_: object) -> float:
        calls.append(1)
        return 0.0

    monkeypatch.setattr(judge, "bag_error", counted)
    for instances in ([1, 2, 3, 4], [1, 0, 0, 0]):
        feed(scripted(patience=9, bags=[4, 3, 2, 1], instances=instances), 4)
    assert len(calls) == 8  # once for each report, also for those that no rule keeps


def test_other_rules_do_not_close_stages() -> None:
    monitor = scripted(patience=2, bags=[1, 2, 3, 4, 5], instances=[5, 1, 1, 1, 9])
    feed(monitor, 5)
    assert not monitor.should_stop
    assert chosen(monitor, "instances") == (4, 4.0)


def test_reports_stages_and_notes_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_REPORTS", "MOST_STAGES", "MOST_NOTES"):
        monkeypatch.setattr(judge, name, 3)
    monitor = scripted(patience=9, bags=[1] * 9)
    feed(monitor, 3)
    with pytest.raises(MethodError, match="may report at most 3 times"):
        feed(monitor, 1)
    monitor = scripted(patience=9, bags=[1] * 9)
    for stage in "abc":
        monitor.note(stage, 1.0)
    with pytest.raises(MethodError, match="3 notes"):
        monitor.note("d", 1.0)
    monitor.note("a", 2.0)
    for stage in "ab":
        feed(monitor, 1, stage)
    monkeypatch.setattr(judge, "MOST_STAGES", 2)
    with pytest.raises(MethodError, match="2 stages"):
        feed(monitor, 1, "c")


@pytest.mark.parametrize("stage", [3, None, b"one", "x" * 101, "a\x1b[2Jb", "a\nb"])
def test_stage_rejects_invalid_names(stage: object) -> None:
    monitor = scripted(bags=[1])
    with pytest.raises(MethodError, match="the stage"):
        monitor.report(scoring(0), stage=stage)  # type: ignore[arg-type]
    with pytest.raises(MethodError, match="the stage"):
        monitor.pseudo_labels(np.zeros(VALID), stage=stage)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [(3, 1.0), ("a", object()), ("a", "x" * 1001), ("a", "\x1b[2J"), ("a", [1])]
)
def test_note_rejects_invalid_values(name: str, value: float) -> None:
    with pytest.raises(MethodError, match="note"):
        scripted(bags=[]).note(name, value)


@quick
@given(st.none() | st.booleans() | st.integers(-3, 50) | st.floats() | st.text(max_size=4))
def test_patience_is_a_positive_integer_or_the_default(given: Scalar) -> None:
    whole = type(given) is int and given > 0
    assert judge.patience_of({"patience": given}) == (given if whole else judge.USUAL_PATIENCE)
    assert judge.patience_of({}) == judge.USUAL_PATIENCE == 20


def test_improvement_renews_the_patience() -> None:
    monitor = scripted(patience=2, bags=[1, 0, 2, 0, 3, 0, 0])
    feed(monitor, 6)
    assert not monitor.should_stop
    monitor.report(scoring(6))
    assert monitor.should_stop
    assert chosen(monitor, "bags") == (4, 4.0)


@quick
@given(
    bags=st.lists(st.integers(0, 6), min_size=1, max_size=25),
    instances=st.lists(st.lists(st.integers(0, 6), min_size=25, max_size=25), min_size=2, max_size=2),
    patience=st.integers(1, 4),
)
def test_rule_bags_is_independent_of_instance_labels(
    bags: list[int], instances: list[list[int]], patience: int
) -> None:
    """Neither what bags selects nor how long a method runs that obeys should_stop."""
    outcomes, lengths = [], []
    for other in instances:
        monitor = scripted(patience=patience, bags=[float(b) for b in bags], instances=[float(i) for i in other])
        for i in range(len(bags)):
            monitor.report(scoring(i))
            if monitor.should_stop:
                break
        outcomes.append(chosen(monitor, "bags"))
        lengths.append(len(monitor.history))
    assert outcomes[0] == outcomes[1]
    assert lengths[0] == lengths[1]
    # ... and it is what plain early stopping on the bags' values alone would give.
    best, waited = 0, 0
    for i, value in enumerate(bags):
        if i and value <= bags[best]:
            waited += 1
            if waited == patience:
                break
        else:
            best, waited = i, 0
    assert outcomes[0] == (best, float(best))


def test_stage_has_a_fresh_patience_and_a_result_of_its_own() -> None:
    monitor = scripted(patience=1, bags=[5, 1, 4, 6, 0])
    feed(monitor, 2, stage="one")
    assert monitor.should_stop
    assert monitor.report(scoring(2), stage="two")
    assert not monitor.should_stop
    feed(monitor, 2, stage="two", start=3)
    assert monitor.should_stop
    assert [monitor.stages[s].best["bags"].report for s in ("one", "two")] == [0, 3]
    assert monitor.stage_starts == {"one": 0, "two": 2}
    winner = monitor.winner(monitor.rules[0])
    assert (winner.stage, winner.report) == ("two", 3)


def test_earlier_stage_wins_ties() -> None:
    monitor = scripted(bags=[5, 5])
    feed(monitor, 1, stage="one")
    feed(monitor, 1, stage="two")
    assert monitor.winner(monitor.rules[0]).stage == "one"


def test_rule_without_a_value_keeps_the_first_report() -> None:
    nan = float("nan")
    monitor = scripted(patience=5, bags=[nan, nan, 0.1, nan])
    feed(monitor, 2)
    assert chosen(monitor, "bags") == (0, 0.0)
    feed(monitor, 2, start=2)
    assert chosen(monitor, "bags") == (2, 2.0)
    assert monitor.history[0] == {"bags": None}  # JSON has no NaN


def test_held_out_and_test_rows_are_scored_on_every_report() -> None:
    """Which rows a method is asked about must not tell it whether a rule improved."""
    monitor = scripted(patience=9, bags=[2, 1, 3])
    seen: list[int] = []

    def predict(X: np.ndarray) -> np.ndarray:
        seen.append(len(X))
        return np.zeros(len(X))

    for _ in range(3):
        monitor.report(predict)
    assert seen == [VALID, TEST] * 3


def test_kept_scores_are_copies() -> None:
    monitor = scripted(patience=9, bags=[2, 1])
    buffer = np.zeros(VALID)

    def predict(X: np.ndarray) -> np.ndarray:
        buffer[:] += 1
        return buffer[: len(X)]

    monitor.report(predict)
    kept = chosen(monitor, "bags")
    monitor.report(predict)
    assert chosen(monitor, "bags") == kept


# -- what a method may not do ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.zeros((VALID, 1)), r"shape \(24, 1\) for 24 rows; expected \(24,\)"),
        (np.zeros(VALID - 1), r"shape \(23,\)"),
        (np.zeros((VALID, 2)), r"expected \(24,\)"),
        (np.float64(0.5), r"shape \(\)"),
        (np.full(VALID, np.nan), r"24 NaN or infinite values \(of 24\)"),
        (np.r_[np.zeros(VALID - 1), np.inf], r"1 NaN or infinite values \(of 24\)"),
        (np.array(["a"] * VALID), "must return numbers"),
        (np.zeros(VALID, dtype=bool), "numbers, got bool"),
        (np.zeros(VALID, dtype=complex), "numbers, got complex128"),
    ],
)
def test_report_rejects_invalid_scores(scores: np.ndarray, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        scripted(bags=[1]).report(lambda X: scores)


def test_probabilities_of_several_classes_add_up() -> None:
    bags, labels = bags_of(make_part(VALID, 3), 6, classes=3)
    p = np.random.default_rng(0).dirichlet(np.ones(3), VALID)
    monitor = HarnessMonitor(
        make_rules(bags, labels), bags, labels, test_rows=make_part(TEST).X, classes=3, score_kind="probability"
    )
    assert monitor.report(lambda X: p[: len(X)])
    with pytest.raises(MethodError, match="must sum to 1"):
        monitor.report(lambda X: 1 - 1e-6 * (1 - p[: len(X)]))  # log loss 0, the order of classes as it was


def test_several_classes_need_a_column_each() -> None:
    bags, labels = bags_of(make_part(VALID, 3), 6, classes=3)
    monitor = HarnessMonitor(make_rules(bags, labels), bags, labels, test_rows=make_part(TEST).X, classes=3)
    with pytest.raises(MethodError, match=r"expected \(24, 3\)"):
        monitor.report(lambda X: np.zeros(len(X)))
    assert monitor.report(lambda X: np.full((len(X), 3), 1 / 3))


def test_undeclared_scores_outside_0_to_1_void_earlier_reports() -> None:
    """Zeros look like probabilities; once a score leaves [0, 1] all were log-odds, and earlier reports are void."""
    monitor = scripted(bags=[1, 5, 4])
    monitor.score_kind = "auto"
    monitor.report(scoring(0.0))
    assert chosen(monitor, "bags") == (0, 0.0)
    monitor.report(scoring(-3.0))
    assert monitor.score_kind == "logit"
    assert chosen(monitor, "bags") == (1, -3.0)
    monitor.report(scoring(0.5))
    assert monitor.score_kind == "logit"


def test_declared_probabilities_are_checked() -> None:
    monitor = scripted(bags=[1, 1])
    monitor.score_kind = "probability"
    with pytest.raises(MethodError, match=r"must be in \[0, 1\]"):
        monitor.report(scoring(1.5))
    monitor.report(scoring(1.0 + 1e-7))  # rounding is forgiven


@pytest.mark.parametrize("name", ["report", "other", "predict"])
def test_phase_rejects_reserved_names(name: str) -> None:
    with pytest.raises(MethodError, match="is reserved"):
        scripted(bags=[]).phase(name)


def test_pseudo_labels_are_judged_and_checked() -> None:
    monitor = scripted(bags=[])
    monitor.pseudo_labels(monitor.train_labels.astype(float), stage="one")
    monitor.pseudo_labels(np.zeros(VALID))
    assert monitor.pseudo == {"one": 1.0, "all": 0.5}
    with pytest.raises(MethodError):
        monitor.pseudo_labels(np.zeros(VALID + 1))


def test_pseudo_labels_of_several_classes_need_not_add_up() -> None:
    bags, labels = bags_of(make_part(VALID, 3), 6, classes=3)
    rules = make_rules(bags, labels)
    monitor = HarnessMonitor(rules, bags, labels, test_rows=None, classes=3, score_kind="probability")
    monitor.pseudo_labels(0.9 * np.eye(3)[labels])
    assert monitor.pseudo == {"all": 1.0}
    with pytest.raises(MethodError, match=r"must be in \[0, 1\]"):
        monitor.pseudo_labels(2.0 * np.eye(3)[labels])


def test_notes_are_json_values() -> None:
    monitor = scripted(bags=[])
    for name, value in (("rounds", np.int64(3)), ("loss", float("inf")), ("way", "short"), ("done", True)):
        monitor.note(name, value)  # type: ignore[arg-type]
    assert monitor.notes == {"rounds": 3.0, "loss": None, "way": "short", "done": True}


# -- what a method may see ---------------------------------------------------------------------------------------------


def test_view_forwards_to_the_monitor() -> None:
    monitor = scripted(patience=1, bags=[1, 0])
    view = MethodView(monitor)
    assert view.report(scoring(0), stage="s") is True
    assert view.report(scoring(1), stage="s") is False
    assert view.should_stop is True
    with view.phase("work"):
        view.note("a", 1.0)
        view.pseudo_labels(np.zeros(VALID), stage="s")
    assert monitor.notes == {"a": 1.0}
    assert monitor.pseudo == {"s": 0.5}
    assert "work" in monitor.clock.seconds


def test_quiet_monitor_has_the_same_surface() -> None:
    quiet = QuietMonitor()
    assert quiet.report(scoring(0), stage="s") is True
    with quiet.phase("any"):
        quiet.note("a", 1.0)
        quiet.pseudo_labels(np.zeros(3))
    assert quiet.should_stop is False


# -- the clock ---------------------------------------------------------------------------------------------------------


class Ticks:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    ticks = Ticks()
    monkeypatch.setattr(time, "perf_counter", ticks)
    return ticks


def test_nested_phases_count_once_inside(ticks: Ticks) -> None:
    clock = PhaseClock()
    ticks.now = 1
    with clock.phase("outer"):
        ticks.now = 3
        with clock.phase("inner"):
            ticks.now = 8
        ticks.now = 10
        with clock.phase("inner"):
            ticks.now = 11
    ticks.now = 15
    assert clock.stop() == {"other": 5, "outer": 4, "inner": 6}


def test_phase_ends_though_its_content_fails(ticks: Ticks) -> None:
    clock = PhaseClock()

    def fail() -> None:
        ticks.now = 2
        raise RuntimeError

    with pytest.raises(RuntimeError), clock.phase("risky"):
        fail()
    ticks.now = 5
    assert clock.stop() == {"other": 3, "risky": 2}


def test_scoring_time_is_not_charged_to_the_method(ticks: Ticks) -> None:
    monitor = scripted(patience=9, bags=[1, 0, 2])

    def slow(X: np.ndarray) -> np.ndarray:
        ticks.now += 10
        return np.zeros(len(X))

    for _ in range(3):
        with monitor.phase("network"):
            ticks.now += 1
            monitor.report(slow)
            ticks.now += 1
    ticks.now += 4
    assert monitor.clock.stop() == {"network": 6, "report": 60, "other": 4}
