"""Saving fitted models: two functions of a method, with plain values and without pickle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeGuard

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import MethodError

StateValue = np.ndarray[Any, Any] | np.generic | bool | int | float | str
State = Mapping[str, StateValue]


class Restorable(Protocol):
    """A method whose fitted state can be saved and restored.

    ``state`` may be called at every report and after ``fit``. It returns everything that ``predict_scores`` needs
    besides the declared parameters. ``restore`` is called on a new object with the same parameters, whose
    ``predict_scores`` must then return the same scores, bit for bit.
    """

    def state(self) -> State:
        """The fitted state: arrays of numbers or booleans, numbers and texts, by name."""
        ...

    def restore(self, state: State) -> Self:
        """Restore a state and return self; raise ``ValueError`` or ``KeyError`` for an invalid one."""
        ...

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """As in ``Method``."""
        ...


def is_restorable(method: object) -> TypeGuard[Restorable]:
    """Whether a method has both functions."""
    return callable(getattr(method, "state", None)) and callable(getattr(method, "restore", None))


HOW_TO = "implement state() -> {name: array, number or text} and restore(state) -> self (see docs/writing-a-method.md)"
"""What to add to a method without them, for error messages."""

ARRAY_KINDS = "biuf"
"""Kinds of arrays that can be saved: booleans, integers and floats."""


def plain_state(method: str, state: State) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """The arrays and the scalars of a method's state.

    Raises:
        MethodError: a value cannot be saved.
    """
    if not isinstance(state, Mapping):
        raise MethodError(f"{method}: state() must return a mapping, not {type(state).__name__}.")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    scalars: dict[str, Any] = {}
    for name, value in state.items():
        wrong = f"{method}: state() gives {name!r} as {type(value).__name__}"
        if not isinstance(name, str) or name == "__metadata__":
            raise MethodError(f"{method}: the names in state() must be texts, not {name!r}.")
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            if array.dtype.kind not in ARRAY_KINDS or array.dtype.itemsize > 8:
                raise MethodError(f"{wrong} of {array.dtype}; arrays must hold booleans or numbers of up to 64 bits.")
            arrays[name] = array
        elif isinstance(value, bool | str) or (isinstance(value, int | float) and _fits(value)):
            scalars[name] = value
        else:
            raise MethodError(f"{wrong}; values must be arrays, finite numbers (integers below 2^63) or texts.")
    return arrays, scalars


def _fits(value: float) -> bool:
    return -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
