"""Checks of a method. ``llpbench check`` prints the first line of each docstring."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.contracts.errors import Skip
from llpbench.contracts.protocols import Method
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.contracts.state import is_restorable, plain_state
from llpbench.experiment.bags import read_only
from llpbench.experiment.judge import USUAL_PATIENCE
from llpbench.experiment.metrics import auroc, to_probabilities
from llpbench.experiment.monitor import HarnessMonitor, fit_method
from llpbench.kit.problem import Problem, classes_of
from llpbench.kit.real_cell import RecordingJudge, run_with_and_without_labels
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import Entry
from llpbench.system.machine import python_command

HEAVY = ("torch", "jax", "tensorflow", "keras", "pandas", "sklearn", "numba", "scipy")
_BRIEF: dict[str, Scalar] = {"epochs": 5, "patience": 3}
_UNEVEN = (1, 9, 2, 14, 5, 3, 7, 11, 4, 4)


def make(spec: MethodSpec, *, brief: bool = True) -> Method:
    """The method at its defaults; with few epochs if ``brief`` and it has that parameter."""
    names = {p.name for p in spec.params}
    method: Method = spec.load()(**spec.resolve({k: v for k, v in _BRIEF.items() if brief and k in names}))
    return method


def fit(spec: MethodSpec, problem: Problem, monitor: HarnessMonitor | None = None, *, brief: bool = True) -> Method:
    """Fit as the harness does; only an oracle gets labels."""
    watched = monitor or problem.monitor(spec)
    oracle: dict[str, Any] = {"labels": problem.train_labels} if spec.oracle else {}
    return fit_method(make(spec, brief=brief), problem.train, watched, 1, overlapping=spec.overlapping, **oracle)


def fit_and_select(spec: MethodSpec, problem: Problem, monitor: HarnessMonitor | None = None, **how: Any) -> FloatArray:
    """Fit, and return the test scores that the rule ``bags`` selects; the monitor checks their shape and values."""
    watched = monitor or problem.monitor(spec)
    fit(spec, problem, watched, **how)
    return _selected(watched)


def _selected(monitor: HarnessMonitor) -> FloatArray:
    scores = monitor.winner(monitor.rules[0]).scores
    assert scores is not None
    return scores


@dataclass(frozen=True)
class PlainFit:
    """A fit on the plain problem, for the checks that only look at it."""

    problem: Problem
    method: Method
    scores: FloatArray


@lru_cache(maxsize=1)
def plain_fit(entry: Entry[MethodSpec]) -> PlainFit:
    """Fit a method on the plain problem, once for all checks."""
    problem = Problem(classes=classes_of(entry.spec))
    monitor = problem.monitor(entry.spec)
    method = fit(entry.spec, problem, monitor)
    return PlainFit(problem, method, _selected(monitor))


def listing_is_light(entry: Entry[Any]) -> None:
    """Importing the plugin imports no heavy package."""
    if entry.plugin.distribution.endswith(".py"):
        load = f"import runpy; runpy.run_path({entry.plugin.distribution!r})"
    else:
        load = f"import {entry.plugin.module.__name__}"
    code = f"import sys; {load}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([*python_command(), "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split(), f"importing the plugin imports {', '.join(done.stdout.split())}"


def parameters_round_trip(entry: Entry[MethodSpec]) -> None:
    """Each parameter's default can be typed and parsed back, and the constructor accepts all parameters."""
    for p in entry.spec.params:
        typed = format_scalar(p.default)
        assert p.parse(typed) == p.default, f"{p.name}={typed} is parsed as {p.parse(typed)!r}"
    entry.spec.load()(**entry.spec.resolve({}))


def fits(entry: Entry[MethodSpec]) -> None:
    """It fits a plain problem and predicts valid scores; the checks below need this."""
    plain_fit(entry)


def labels_cannot_leak(entry: Entry[MethodSpec]) -> None:
    """In a real cell, labels shuffled inside bags leave the scores selected by the bags rule bit-equal."""
    first, second = _real_cells(entry)
    equal = np.array_equal(first.selected_scores(), second.selected_scores())
    assert equal, "scores changed although every count stayed the same"


def answers_tell_no_label(entry: Entry[MethodSpec]) -> None:
    """In a real cell, labels shuffled inside bags change neither the answers to reports nor when the method stops."""
    first, second = _real_cells(entry)
    assert len(first.answers) == len(second.answers), "it stopped at another report"
    assert first.answers == second.answers, "a report got another answer"
    assert all(first.with_test), "a report came without scores of the test rows"
    assert first.with_test == second.with_test


def _real_cells(entry: Entry[MethodSpec]) -> tuple[RecordingJudge, RecordingJudge]:
    if entry.spec.oracle:
        raise Skip("it is an oracle, which is given labels")
    return run_with_and_without_labels(entry)


def same_seed_same_scores(entry: Entry[MethodSpec]) -> None:
    """Two fits with the same seed give the same scores, bit for bit."""
    plain = plain_fit(entry)
    assert np.array_equal(plain.scores, fit_and_select(entry.spec, plain.problem)), "scores differ"


def bags_of_one_row(entry: Entry[MethodSpec]) -> None:
    """It works with bags of one row."""
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), sizes=1))


def uneven_bags(entry: Entry[MethodSpec]) -> None:
    """It works with bags of different sizes."""
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), sizes=_UNEVEN))


def two_bags(entry: Entry[MethodSpec]) -> None:
    """It works with two bags."""
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), sizes=(120, 120)))


def constant_features(entry: Entry[MethodSpec]) -> None:
    """It works if one feature is constant, and if all are."""
    for keep in (1.0, 0.0):
        mask = np.array([keep, 0.0, keep, keep], dtype=np.float32)
        problem = Problem(classes=classes_of(entry.spec), shape=lambda X, m=mask: X * m)  # type: ignore[misc]
        fit_and_select(entry.spec, problem)


def one_feature(entry: Entry[MethodSpec]) -> None:
    """It works with a single feature."""
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), dim=1))


def all_zero_counts(entry: Entry[MethodSpec]) -> None:
    """It works if no training row has class 1."""
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), constant_label=0))


def wide_float_ranges(entry: Entry[MethodSpec]) -> None:
    """It gives finite scores for features of very different scales."""
    scale = np.array([1e-6, 1.0, 1e3, 1e5], dtype=np.float32)
    fit_and_select(entry.spec, Problem(classes=classes_of(entry.spec), shape=lambda X: X * scale))


def noisy_counts(entry: Entry[MethodSpec]) -> None:
    """It works with noisy counts, including counts below 0 or above the bag size."""
    problem = Problem(classes=classes_of(entry.spec))
    rng = np.random.default_rng(3)

    def noisy(bags: Bags) -> Bags:
        return replace(bags, counts=read_only(bags.counts + rng.normal(0, 5, bags.counts.shape)), count_sd=5.0)

    problem.valid = noisy(problem.valid)
    problem.train = replace(noisy(problem.train), validation=problem.valid)
    fit_and_select(entry.spec, problem)


def several_groupings(entry: Entry[MethodSpec]) -> None:
    """A method that declares ``overlapping`` works with several groupings, one of which covers only some rows."""
    if not entry.spec.overlapping:
        raise Skip("it does not declare overlapping: the harness unrolls several groupings for it")
    problem = Problem(classes=classes_of(entry.spec))
    problem.overlap((6, 40, 9), covered=(1.0, 1.0, 0.5))
    fit_and_select(entry.spec, problem)


def input_is_left_alone(entry: Entry[MethodSpec]) -> None:
    """It does not modify its input."""
    problem = Problem(classes=classes_of(entry.spec))
    bags, test = problem.train, problem.test_rows
    before = [array.copy() for array in (bags.X, bags.counts, bags.offsets, test)]
    for array in (bags.X, bags.counts, bags.offsets, test):
        array.setflags(write=True)
    fit(entry.spec, problem)
    changed = [not np.array_equal(a, b) for a, b in zip(before, (bags.X, bags.counts, bags.offsets, test), strict=True)]
    assert not any(changed), "fit or predict_scores modified its input"


def state_round_trips(entry: Entry[MethodSpec]) -> None:
    """A method that can be saved predicts the same, bit for bit, after it is restored."""
    plain = plain_fit(entry)
    if not is_restorable(plain.method):
        raise Skip("it has no state() and restore(), so its models cannot be saved")
    arrays, scalars = plain_state(entry.spec.name, plain.method.state())
    restored = make(entry.spec)
    assert is_restorable(restored)
    rows = plain.problem.test_rows
    again = restored.restore({**arrays, **scalars}).predict_scores(rows)
    assert np.array_equal(again, plain.method.predict_scores(rows)), "scores changed"


def every_declared_task_runs(entry: Entry[MethodSpec]) -> None:
    """It runs every task that it declares, with scores of the right shape."""
    for task in entry.spec.tasks:
        classes = 2 if task == "binary" else 3
        shared = classes == classes_of(entry.spec)
        scores = plain_fit(entry).scores if shared else fit_and_select(entry.spec, Problem(classes=classes))
        to_probabilities(scores, entry.spec.scores)


def learns(entry: Entry[MethodSpec]) -> None:
    """It is clearly better than a constant on an easy problem (AUROC above 0.75)."""
    problem = Problem(classes=classes_of(entry.spec), rows=1200, sizes=4, separation=2.5)
    scores = fit_and_select(entry.spec, problem, problem.monitor(entry.spec, USUAL_PATIENCE), brief=False)
    reached = auroc(problem.test_labels, scores)
    assert reached > 0.75, f"AUROC {reached:.3f} on a problem where 0.95 can be reached"


def honours_should_stop(entry: Entry[MethodSpec]) -> None:
    """A method that reports more than once stops when the monitor says so."""
    spec = entry.spec
    problem = Problem(classes=classes_of(spec))
    patient, hasty = (_never_improving(problem.monitor(spec), patience) for patience in (4, 1))
    fit(spec, problem, patient, brief=False)
    if len(patient.history) <= 3 * max(len(patient.stages), 1):
        raise Skip(f"it makes only {len(patient.history)} report{'s' if len(patient.history) > 1 else ''}")
    fit(spec, problem, hasty, brief=False)
    per_stage = len(hasty.history) / max(len(hasty.stages), 1)
    assert per_stage <= 3, f"{per_stage:.0f} reports in each stage, although the monitor said stop at the second"


def _never_improving(monitor: HarnessMonitor, patience: int) -> HarnessMonitor:
    monitor.rules = [replace(rule, value=lambda *_: 0.0) for rule in monitor.rules]
    monitor.patience = patience
    return monitor


BASIC = fits
"""The checks after this one are skipped if it fails."""
CHECKS = (
    listing_is_light,
    parameters_round_trip,
    fits,
    labels_cannot_leak,
    answers_tell_no_label,
    same_seed_same_scores,
    bags_of_one_row,
    uneven_bags,
    two_bags,
    constant_features,
    one_feature,
    all_zero_counts,
    wide_float_ranges,
    noisy_counts,
    several_groupings,
    input_is_left_alone,
    state_round_trips,
    every_declared_task_runs,
    learns,
    honours_should_stop,
)
