"""The protocols of methods and of the monitor that the harness gives them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from llpbench.contracts.data import Bags, FloatArray

Predict = Callable[[FloatArray], FloatArray]


class Monitor(Protocol):
    """How a method reports its progress without seeing labels.

    The judge of a cell scores each report on held-out rows by every selection rule and keeps, for each rule, the test
    scores of its best report. A stage closes after ``patience`` reports without improvement under the rule ``bags``;
    all rules select among the same reports. No answer depends on a label of a row.
    """

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the model as it is now. Call it after every epoch, or once.

        Args:
            predict: the method's ``predict_scores`` (or any function of the same form). It is called for the held-out
                and for the test rows, on every report.
            stage: short name of a part of the fit with its own patience and its own result (``"iteration-1"``).

        Returns:
            Whether this is the best report of the stage under the rule ``bags``, which uses no labels. A method that
            restores its best weights restores these.
        """
        ...

    @property
    def should_stop(self) -> bool:
        """True after ``patience`` reports of this stage without improvement under the rule ``bags``."""
        ...

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Measure a part of the fit; the result has the seconds of each phase (nested ones count once, inside)."""
        ...

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Report pseudo-labels of the training rows (in the order of ``Bags.X``); their quality is recorded.

        (n,) of class 1, or (n, C): each class is evaluated by its own column, so rows need not sum to 1.
        """
        ...

    def note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit (rounds used, chosen penalty) in the result."""
        ...


class Method(Protocol):
    """A method: a plain class without a base class.

    ``__init__`` stores the declared parameters. ``fit`` sees bags, never labels. An *oracle* (declared in its spec) is
    also given ``labels=`` in ``fit``.
    """

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> Method:
        """Learn from bags and return self."""
        ...

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Scores of new rows: (n,) for two classes (any monotone score of class 1), (n, C) for more."""
        ...


class QuietMonitor:
    """A monitor that records nothing and never stops a fit, to use a method without the harness."""

    should_stop = False

    def report(self, predict: Predict, *, stage: str = "") -> bool:  # noqa: ARG002
        """Accept the report; every report counts as an improvement, so that the last model is kept."""
        return True

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Time nothing."""
        from contextlib import nullcontext

        return nullcontext()

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Ignore pseudo-labels."""

    def note(self, name: str, value: float | str | bool) -> None:
        """Ignore notes."""
