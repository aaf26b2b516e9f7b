"""Parameters of methods, datasets, bag schemes and executors: their kinds, ranges and defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from llpbench.contracts.errors import PluginError, UnknownNameError, UsageError

Scalar = bool | int | float | str | None

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Param:
    """One parameter of a method, dataset or bag scheme: its default, its range and what it means.

    The kind (``bool``, ``int``, ``float``, ``str``) is that of the default unless given. ``choices`` lists
    admissible values; a numeric parameter may have word choices beside its range (``"auto"`` or a number).
    ``low``, ``high`` and ``log`` are the range that ``check`` enforces and that tuning searches; ``tune=False`` keeps
    tuning from a parameter that sets what a fit may cost or how it is computed, not what is learned.

    ``omit_default`` is for a parameter that comes after results were published: at its default it is no part of a cell,
    so that the ids of cells that never knew it stay, and searches leave it alone unless it is given. The implementation
    must have the same default.

    ``names_file`` is for a parameter whose value is the path of a file. A file of somebody's own is nothing that others
    can run, or should open: leaderboards take the default, and files that the dataset declares (``DatasetSpec.files``).

    ``names_method`` is for a parameter whose value is the name of another method, which the method runs.
    """

    name: str
    default: Scalar
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Scalar, ...] = ()
    doc: str = ""
    kind: Literal["bool", "int", "float", "str", ""] = ""
    tune: bool = True
    omit_default: bool = False
    names_file: bool = False
    names_method: bool = False

    def __post_init__(self) -> None:
        if not self.kind:
            kinds = {bool: "bool", int: "int", float: "float", str: "str"}
            kind = kinds.get(type(self.default), "str")
            if kind == "str" and (self.low is not None or self.high is not None):
                kind = "float"
            object.__setattr__(self, "kind", kind)
        try:
            self.check(self.default)
        except UsageError as error:
            raise PluginError(f"invalid default: {error}") from None

    @property
    def numeric(self) -> bool:
        """Whether values are numbers (a word choice may still be allowed beside them)."""
        return self.kind in ("int", "float")

    def parse(self, text: str) -> Scalar:
        """Read a value from the command line, or say what would be right."""
        for choice in self.choices:
            if text == str(choice):
                return choice
        if self.default is None and text.lower() in ("none", ""):
            return None
        if self.kind == "bool":
            if text.lower() in _TRUE:
                return True
            if text.lower() in _FALSE:
                return False
            raise UsageError(f"parameter {self.name!r} takes true or false, not {text!r}.")
        if self.numeric:
            return self.check(self._number(text))
        return self.check(text)

    def check(self, value: Scalar) -> Scalar:
        """Return ``value`` in the parameter's own type if it is admissible, or raise ``UsageError``."""
        if value is None and self.default is None:
            return None
        if value in self.choices and isinstance(value, bool) == (self.kind == "bool"):
            return value
        if self.kind == "bool":
            if isinstance(value, bool):
                return value
            raise UsageError(f"parameter {self.name!r} takes true or false, not {value!r}.")
        if self.numeric:
            return self._check_number(value)
        if self.choices:
            raise UnknownNameError(f"value of parameter {self.name!r}:", str(value), map(str, self.choices))
        if not isinstance(value, str):
            raise UsageError(f"parameter {self.name!r} takes text, not {value!r}.")
        return value

    def _number(self, text: str) -> float:
        try:
            return int(text) if text.strip("+-").isdecimal() else float(text)
        except ValueError:
            raise UsageError(f"parameter {self.name!r} takes {self.describe_range()}, not {text!r}.") from None

    def _check_number(self, value: Scalar) -> Scalar:
        wrong = UsageError(f"parameter {self.name!r} takes {self.describe_range()}, not {value!r}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not finite(value):
            raise wrong
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise wrong
        if self.kind == "float":
            return float(value)
        if isinstance(value, float) and not value.is_integer():
            raise wrong
        return int(value)

    def describe_range(self) -> str:
        """The admissible values in words, for help texts and errors."""
        words = ", ".join(str(c) for c in self.choices)
        if not self.numeric:
            return f"one of {words}" if words else {"bool": "true or false"}.get(self.kind, "text")
        noun = "an integer" if self.kind == "int" else "a number"
        if self.low is not None:
            noun += f" of at least {self.low:g}" if self.high is None else f" from {self.low:g} to {self.high:g}"
        elif self.high is not None:
            noun += f" of at most {self.high:g}"
        return f"{noun}, or one of {words}" if words else noun


def finite(value: float) -> bool:
    """Whether a number is one that JSON and a 64-bit float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
