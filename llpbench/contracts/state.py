"""How a method lets its fitted models be saved: two functions, plain values, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeGuard

import numpy as np

from llpbench.contracts.data import FloatArray

StateValue = np.ndarray[Any, Any] | np.generic | bool | int | float | str
State = Mapping[str, StateValue]


class Restorable(Protocol):
    """A method whose fitted state can be saved and restored.

    ``state`` may be called at every report, and after ``fit``; it gives all that ``predict_scores`` needs beside
    the declared parameters. ``restore`` is called on a fresh object of the same parameters and leaves it as
    ``fit`` would: ``predict_scores`` must then give the same scores, bit for bit.
    """

    def state(self) -> State:
        """The fitted state: arrays of numbers or booleans, numbers and texts by name."""
        ...

    def restore(self, state: State) -> Self:
        """Restore a state and return self; raise ``ValueError`` or ``KeyError`` for one that does not fit."""
        ...

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """As in ``Method``."""
        ...


def is_restorable(method: object) -> TypeGuard[Restorable]:
    """Whether a method has both functions."""
    return callable(getattr(method, "state", None)) and callable(getattr(method, "restore", None))


HOW_TO = "implement state() -> {name: array, number or text} and restore(state) -> self (see docs/writing-a-method.md)"
"""What a method without them has to do, for errors."""
