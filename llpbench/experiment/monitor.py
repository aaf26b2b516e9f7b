"""The monitor of a method: it measures phases, and passes reports to a judge.

``HarnessMonitor`` has the judge in the same process, for ``fit``, the kit and ``run --debug``. In a cell the judge is
another process, and the method's monitor sends messages to it (``execution/method_process.py``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.errors import MethodError
from llpbench.contracts.protocols import Method, Monitor, Predict
from llpbench.experiment.judge import Judge


class PhaseClock:
    """Seconds by phase. Exactly one phase runs at any time; an inner phase pauses its outer one."""

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
        """Stop the clock and return the seconds by phase."""
        self._charge()
        return dict(self.seconds)

    def own_phase(self, name: str) -> AbstractContextManager[None]:
        """A phase of a method, whose name must not be one of the harness's own."""
        if name in ("report", "other", "predict"):
            raise MethodError(f"the phase name {name!r} is reserved; choose another name")
        return self.phase(name)


class MethodView:
    """The monitor that a method is given for one fit.

    Args:
        monitor: the monitor behind it.
        unrolled_from: the bags that were unrolled for the method, if they were: a row's pseudo-labels are averaged.
    """

    def __init__(self, monitor: Monitor, unrolled_from: Bags | None = None) -> None:
        self._monitor, self._unrolled_from = monitor, unrolled_from
        self.reported = False

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the model as it is now."""
        self.reported = True
        return self._monitor.report(predict, stage=stage)

    @property
    def should_stop(self) -> bool:
        """True when the current stage is closed."""
        return self._monitor.should_stop

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Charge the time inside to ``name``."""
        return self._monitor.phase(name)

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Report pseudo-labels of the training rows."""
        if self._unrolled_from is not None:
            probabilities = mean_of_entries(np.asarray(probabilities), self._unrolled_from)
        self._monitor.pseudo_labels(probabilities, stage=stage)

    def note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit."""
        self._monitor.note(name, value)


def fit_method(
    method: Method, bags: Bags, monitor: Monitor, seed: int, *, overlapping: bool = False, **oracle: IntArray
) -> Method:
    """Fit a method on bags in the form that it takes, and report the fitted model if the method never did.

    Rows are unrolled for training only: predictions are for each row once.

    Args:
        method: the method.
        bags: the bags.
        monitor: the monitor, which the method sees through a ``MethodView``.
        seed: seed of the method.
        overlapping: whether the method takes several groupings as they are, as its spec declares.
        oracle: ``labels`` of the rows, for a bound.
    """
    given = bags if overlapping else bags.unrolled
    view = MethodView(monitor, None if given is bags else bags)
    fitted: Method | None = method.fit(given, monitor=view, seed=seed, **oracle)
    if fitted is None:
        raise MethodError("fit must return the fitted method (return self), got None")
    if not view.reported:
        monitor.report(fitted.predict_scores)
    return fitted


def mean_of_entries(values: FloatArray, bags: Bags) -> FloatArray:
    """(n, ...) mean of the values (entries, ...) of each row; values of another length are returned as they are."""
    if len(values) != len(bags.members):
        return values  # the judge rejects them
    order = np.argsort(bags.members, kind="stable")
    counts = np.bincount(bags.members, minlength=len(bags.X))
    sums = np.add.reduceat(values[order].astype(np.float64), np.cumsum(counts) - counts, axis=0)
    return np.asarray(sums / counts.reshape(-1, *[1] * (values.ndim - 1)))


@dataclass
class HarnessMonitor(Judge):
    """A judge that a method in the same process reports to (see ``protocols.Monitor``).

    ``test_rows`` are None if they are not to be predicted.
    """

    tests: int | None = field(default=None, init=False)
    test_rows: FloatArray | None = None
    clock: PhaseClock = field(default_factory=PhaseClock)
    _stage: str = ""

    def __post_init__(self) -> None:
        self.tests = None if self.test_rows is None else len(self.test_rows)

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the model on held-out and test rows."""
        with self.clock.phase("report"):
            self._stage = stage
            valid_scores = predict(self.valid.X)
            test_scores = None if self.test_rows is None else predict(self.test_rows)
            answer = self.take_report(valid_scores, test_scores, stage)
            self.finish_report()
            return answer.improved

    @property
    def should_stop(self) -> bool:
        """True when the current stage is closed."""
        return self._stage in self.stages and self.stages[self._stage].closed

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Charge the time inside to ``name``."""
        return self.clock.own_phase(name)

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Record the AUROC of pseudo-labels against the training labels."""
        with self.clock.phase("report"):
            self.take_pseudo_labels(probabilities, stage)

    def note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit."""
        self.take_note(name, value)
