"""The two sides of a fit: what a method is, and how the harness watches it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from llpbench.contracts.data import Bags, FloatArray

Predict = Callable[[FloatArray], FloatArray]


class Monitor(Protocol):
    """How a method is watched without being shown labels.

    The judge of a cell scores each report on held-back rows by every selection rule in force and keeps, for each rule,
    the test scores of its best report. A stage closes when it has seen ``patience`` reports without improvement under
    the rule ``bags``; all rules choose among the same reports. Nothing that comes back depends on a label of a row.
    """

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the model as it is now. Call it after every epoch, or once.

        Args:
            predict: the method's ``predict_scores`` (or any function of the same form). It is called for the held-back
                and for the test rows, on every report.
            stage: name (short, printable) of a part of the fit with a fresh patience and a result of its own
                (``"iteration-1"``).

        Returns:
            Whether this is the best report of the stage under the ``bags`` rule, the one that uses no label of
            any row: a method that restores its best weights restores these.
        """
        ...

    @property
    def should_stop(self) -> bool:
        """True when the rule ``bags`` has been without improvement for ``patience`` reports of this stage."""
        ...

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Name a part of the run; the result holds the seconds of each phase (nested ones count once, inside)."""
        ...

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Hand over pseudo-labels of the training rows (in the order of ``Bags.X``); their quality is recorded.

        (n,) of class 1, or (n, C): each class by its own column, so rows need not add up to 1.
        """
        ...

    def note(self, name: str, value: float | str | bool) -> None:
        """Record a fact about the fit (rounds used, chosen penalty) in the result."""
        ...


class Method(Protocol):
    """A method: a plain class, no base class needed.

    ``__init__`` stores the declared parameters. ``fit`` sees bags, never labels. An *oracle* (declared in its
    spec) is also given ``labels=`` in ``fit``.
    """

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> Method:
        """Learn from bags and return self."""
        ...

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Scores of new rows: (n,) for two classes (any monotone score of class 1), (n, C) for more."""
        ...


class QuietMonitor:
    """A monitor that watches nothing and never stops a fit: for using a method without the harness."""

    should_stop = False

    def report(self, predict: Predict, *, stage: str = "") -> bool:  # noqa: ARG002
        """Accept the report; every one counts as an improvement, so the last model stands."""
        return True

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Time nothing."""
        from contextlib import nullcontext

        return nullcontext()

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Ignore pseudo-labels."""

    def note(self, name: str, value: float | str | bool) -> None:
        """Ignore notes."""
