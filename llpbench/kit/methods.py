"""What is demanded of a method. The first line of each docstring is the demand as ``llpbench check`` prints it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
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
from llpbench.experiment.monitor import HarnessMonitor, MethodView
from llpbench.kit.problem import Problem, classes_of
from llpbench.kit.real_cell import hearings
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import Entry, Registry
from llpbench.system.machine import python_command

HEAVY = ("torch", "jax", "tensorflow", "keras", "pandas", "sklearn", "numba", "scipy")
_BRIEF: dict[str, Scalar] = {"epochs": 5, "patience": 3}


def make(spec: MethodSpec, *, brief: bool = True) -> Method:
    """The method at its defaults, with few epochs where it has any."""
    names = {p.name for p in spec.params}
    method: Method = spec.load()(**spec.resolve({k: v for k, v in _BRIEF.items() if brief and k in names}))
    return method


def fit(spec: MethodSpec, problem: Problem, monitor: HarnessMonitor | None = None, *, brief: bool = True) -> Method:
    """Fit as the harness does, labels for a bound only."""
    watched = monitor or problem.monitor(spec)
    oracle: dict[str, Any] = {"labels": problem.train_labels} if spec.oracle else {}
    fitted = make(spec, brief=brief).fit(problem.train, monitor=MethodView(watched), seed=1, **oracle)
    assert fitted is not None, "fit returned None; it must return self"
    if not watched.history:
        watched.report(fitted.predict_scores)
    return fitted


def scores_on(spec: MethodSpec, problem: Problem) -> FloatArray:
    """Fit, and the test scores that the ``bags`` rule selects (shape and finiteness are checked on the way)."""
    monitor = problem.monitor(spec)
    fit(spec, problem, monitor)
    scores = monitor.winner(monitor.rules[0]).scores
    assert scores is not None
    return scores


def listing_is_light(entry: Entry[MethodSpec], registry: Registry) -> None:
    """Listing the plugin imports nothing heavy."""
    del registry
    if entry.plugin.distribution.endswith(".py"):
        load = f"import runpy; runpy.run_path({entry.plugin.distribution!r})"
    else:
        load = f"import {entry.plugin.module.__name__}"
    code = f"import sys; {load}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([*python_command(), "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split(), f"importing the plugin imports {', '.join(done.stdout.split())}"


def parameters_round_trip(entry: Entry[MethodSpec], registry: Registry) -> None:
    """Every parameter's default can be typed and read back, and the constructor takes all of them."""
    del registry
    for p in entry.spec.params:
        typed = format_scalar(p.default)
        assert p.parse(typed) == p.default, f"{p.name}={typed} reads back as {p.parse(typed)!r}"
    entry.spec.load()(**entry.spec.resolve({}))


def labels_cannot_leak(entry: Entry[MethodSpec], registry: Registry) -> None:
    """In a real cell, labels shuffled inside bags leave the scores selected by the bags rule equal bit for bit."""
    del registry
    if entry.spec.oracle:
        raise Skip("it is a bound and is given labels by declaration")
    first, second = hearings(entry)
    assert np.array_equal(first.scores, second.scores), "scores changed though every count stayed the same"


def answers_tell_no_label(entry: Entry[MethodSpec], registry: Registry) -> None:
    """In a real cell, labels shuffled inside bags change no answer to a report, and nothing it is asked for."""
    del registry
    if entry.spec.oracle:
        raise Skip("it is a bound and is given labels by declaration")
    first, second = hearings(entry)
    assert first.judge.heard == second.judge.heard, "a report was answered otherwise"
    asked = [[test is not None for _, test in hearing.judge.sent] for hearing in (first, second)]
    assert all(asked[0]), "a report came without scores of the test rows"
    assert asked[0] == asked[1]


def stops_alike_whatever_the_labels(entry: Entry[MethodSpec], registry: Registry) -> None:
    """In a real cell, it stops at the same report whatever the labels inside bags are, and not long after it should."""
    del registry
    if entry.spec.oracle:
        raise Skip("it is a bound and is given labels by declaration")
    first, second = hearings(entry)
    assert len(first.judge.heard) == len(second.judge.heard), "it stopped at another report"
    late = sum(stop for _, _, stop in first.judge.heard)
    stages = len(first.judge.stages)
    assert late <= 3 * stages, f"{late} reports of {stages} stages came when the judge had said stop"


def same_seed_same_scores(entry: Entry[MethodSpec], registry: Registry) -> None:
    """Two fits with the same seed give the same scores, bit for bit."""
    del registry
    problem = Problem(classes=classes_of(entry.spec))
    assert np.array_equal(scores_on(entry.spec, problem), scores_on(entry.spec, problem)), "scores differ"


def bags_of_one_row(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works at bag size 1."""
    del registry
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), sizes=1, rows=60))


def uneven_bags(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works on bags of different sizes."""
    del registry
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), sizes=[1, 9, 2, 14, 5, 3, 7, 11, 4, 4], rows=120))


def two_bags(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works with two bags."""
    del registry
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), sizes=[20, 20], rows=80))


def constant_features(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works when a feature is constant, and when all are."""
    del registry
    for keep in (1.0, 0.0):
        mask = np.array([keep, 0.0, keep, keep], dtype=np.float32)
        scores_on(entry.spec, Problem(classes=classes_of(entry.spec), shape=lambda X, m=mask: X * m))  # type: ignore[misc]


def one_feature(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works with a single feature."""
    del registry
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), dim=1))


def all_zero_counts(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works when no training row has class 1."""
    del registry
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), constant_label=0))


def wide_float_ranges(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It gives finite scores for features of very different scales."""
    del registry
    scale = np.array([1e-6, 1.0, 1e3, 1e5], dtype=np.float32)
    scores_on(entry.spec, Problem(classes=classes_of(entry.spec), shape=lambda X: X * scale))


def noisy_counts(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It works with noisy counts, also outside [0, bag size]."""
    del registry
    problem = Problem(classes=classes_of(entry.spec))
    rng = np.random.default_rng(3)

    def noisy(bags: Bags) -> Bags:
        return replace(bags, counts=read_only(bags.counts + rng.normal(0, 5, bags.counts.shape)), count_sd=5.0)

    problem.valid = noisy(problem.valid)
    problem.train = replace(noisy(problem.train), validation=problem.valid)
    scores_on(entry.spec, problem)


def input_is_left_alone(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It never changes its input."""
    del registry
    problem = Problem(classes=classes_of(entry.spec))
    bags, test = problem.train, problem.test_rows
    before = [array.copy() for array in (bags.X, bags.counts, bags.offsets, test)]
    for array in (bags.X, bags.counts, bags.offsets, test):
        array.setflags(write=True)
    fit(entry.spec, problem)
    changed = [not np.array_equal(a, b) for a, b in zip(before, (bags.X, bags.counts, bags.offsets, test), strict=True)]
    assert not any(changed), "fit or predict_scores wrote into its input"


def state_round_trips(entry: Entry[MethodSpec], registry: Registry) -> None:
    """A model that can be saved predicts the same, bit for bit, when it is taken up again."""
    del registry
    problem = Problem(classes=classes_of(entry.spec))
    fitted = fit(entry.spec, problem)
    if not is_restorable(fitted):
        raise Skip("it has no state() and restore(), so its models cannot be saved")
    arrays, scalars = plain_state(entry.spec.name, fitted.state())
    restored = make(entry.spec)
    assert is_restorable(restored)
    again = restored.restore({**arrays, **scalars}).predict_scores(problem.test_rows)
    assert np.array_equal(again, fitted.predict_scores(problem.test_rows)), "scores changed"


def every_declared_task_runs(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It runs every task it declares, with scores of the right shape."""
    del registry
    for task in entry.spec.tasks:
        problem = Problem(classes=2 if task == "binary" else 3)
        scores = scores_on(entry.spec, problem)
        to_probabilities(scores, entry.spec.scores)


def learns(entry: Entry[MethodSpec], registry: Registry) -> None:
    """It beats a constant by a clear margin on an easy problem (AUROC above 0.75)."""
    del registry
    problem = Problem(classes=classes_of(entry.spec), rows=1200, sizes=4, separation=2.5)
    monitor = problem.monitor(entry.spec, patience=USUAL_PATIENCE)
    fit(entry.spec, problem, monitor, brief=False)
    scores = monitor.winner(monitor.rules[0]).scores
    assert scores is not None
    reached = auroc(problem.test_labels, scores)
    assert reached > 0.75, f"AUROC {reached:.3f} on a problem whose best is above 0.95"


def honours_should_stop(entry: Entry[MethodSpec], registry: Registry) -> None:
    """A method that reports more than once stops when the monitor says so."""
    del registry
    spec = entry.spec
    problem = Problem(classes=classes_of(spec))
    patient, hasty = (_never_improving(problem.monitor(spec), patience) for patience in (4, 1))
    fit(spec, problem, patient, brief=False)
    if len(patient.history) <= 3 * max(len(patient.stages), 1):
        raise Skip(f"it reports {len(patient.history)} times only")
    fit(spec, problem, hasty, brief=False)
    per_stage = len(hasty.history) / max(len(hasty.stages), 1)
    assert per_stage <= 3, f"{per_stage:.0f} reports for each stage after the monitor said stop at the second"


def _never_improving(monitor: HarnessMonitor, patience: int) -> HarnessMonitor:
    monitor.rules = [replace(rule, value=lambda *_: 0.0) for rule in monitor.rules]
    monitor.patience = patience
    return monitor


CHECKS = (
    listing_is_light,
    parameters_round_trip,
    labels_cannot_leak,
    answers_tell_no_label,
    stops_alike_whatever_the_labels,
    same_seed_same_scores,
    bags_of_one_row,
    uneven_bags,
    two_bags,
    constant_features,
    one_feature,
    all_zero_counts,
    wide_float_ranges,
    noisy_counts,
    input_is_left_alone,
    state_round_trips,
    every_declared_task_runs,
    learns,
    honours_should_stop,
)
