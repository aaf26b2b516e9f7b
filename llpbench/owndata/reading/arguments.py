"""Numbers that a user gives to ``fit`` and its like, checked: what is no such number is refused by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from llpbench.contracts.errors import UsageError


def as_python(value: Any) -> Any:
    """A value of numpy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def read_whole(value: Any, name: str, least: int | None = None) -> int:
    """A whole number, also one of numpy, as Python's own, so that it can be written to a file.

    Args:
        value: what was given.
        name: the argument's name.
        least: the least that it may be.

    Raises:
        UsageError: it is no whole number, or too small.
    """
    number = as_python(value)
    whole = isinstance(number, int | float) and math.isfinite(number) and number == int(number)
    if not whole or (least is not None and number < least):
        asked = "a whole number" if least is None else f"{least} or more" if least else "0, 1, 2, ..."
        raise UsageError(f"{name} must be {asked}, not {_shown(value)}.")
    return int(number)


def read_count_sd(value: Any) -> float:
    """The standard deviation of the counts' noise: one number, the same for all bags.

    Raises:
        UsageError: it is none.
    """
    number = as_python(value)
    if not isinstance(number, int | float) or not 0.0 <= number < math.inf:
        hint = " It is one number for all bags." if hasattr(value, "__len__") and not isinstance(value, str) else ""
        raise UsageError(f"count_sd must be a standard deviation, not {_shown(value)}.{hint}")
    return float(number)


def is_share(value: Any) -> bool:
    """Whether a value is a number between 0 and 1, neither of them included."""
    number = as_python(value)
    return isinstance(number, int | float) and 0.0 < number < 1.0


def _shown(value: Any) -> str:
    """A value in an error message: tables and other long ones by their type."""
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"
