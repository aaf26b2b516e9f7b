"""The search space: the declared parameters of a method, except budgets and fixed parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import MethodSpec, Param, Scalar

Ranges = Mapping[str, Any]
"""The values to search for each parameter: a list of choices, the two ends of a numeric range, or both in one list.
The name of a method maps to such a table for this method only."""

NUMBER = "a number"
"""Choice that stands for a number, for a parameter that is a choice or a number."""


def is_among(value: Scalar, words: Iterable[Scalar]) -> bool:
    """Whether a value is one of the choices, of the same type."""
    return any(value == word and type(value) is type(word) for word in words)


@dataclass(frozen=True)
class Dimension:
    """One parameter of the search space: choices, a numeric range, or both.

    With both, a choice or ``NUMBER`` is drawn first, and then the number if needed.
    """

    name: str
    words: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    integer: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it has a numeric range."""
        return self.low is not None and self.high is not None

    @property
    def number_name(self) -> str:
        """Name of the number in a study; the parameter's name if there are no choices."""
        return f"{self.name} ({NUMBER})" if self.words else self.name

    def holds(self, value: Scalar) -> bool:
        """Whether ``value`` can be drawn."""
        if is_among(value, self.words):
            return True
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.low is not None and self.high is not None and self.low <= float(value or 0) <= self.high

    def describe(self) -> str:
        """A description for the published history."""
        parts = [str(word) for word in self.words]
        if self.numeric:
            parts.append(
                f"{'whole numbers' if self.integer else 'numbers'} from {self.low:g} to {self.high:g}"
                f"{' on a log scale' if self.log else ''}"
            )
        return " or ".join(parts)

    def start(self, value: Scalar) -> dict[str, Scalar]:
        """The values that represent ``value`` in a study."""
        if not self.words:
            return {self.name: value}
        if is_among(value, self.words):
            return {self.name: value}
        return {self.name: NUMBER, self.number_name: value}

    def suggest(self, trial: Any) -> Scalar:
        """Draw a value in a trial of a study."""
        if self.words:
            options = (*self.words, NUMBER) if self.numeric else self.words
            word: Scalar = trial.suggest_categorical(self.name, options)
            if not (self.numeric and word == NUMBER):
                return word
        assert self.low is not None
        assert self.high is not None
        if self.integer:
            return int(trial.suggest_int(self.number_name, int(self.low), int(self.high), log=self.log))
        return float(trial.suggest_float(self.number_name, self.low, self.high, log=self.log))


def search_space(spec: MethodSpec, fixed: Iterable[str] = ()) -> tuple[Dimension, ...]:
    """The dimensions of a method: declared parameters with more than one value.

    Excluded are parameters with ``tune=False`` or ``omit_default``, fixed parameters, and ``patience``, which is a
    budget.
    """
    left_out = {"patience", *fixed}
    found = (_dimension(p) for p in spec.params if p.tune and not p.omit_default and p.name not in left_out)
    return tuple(d for d in found if d is not None)


def _dimension(p: Param) -> Dimension | None:
    words = (False, True) if p.kind == "bool" and not p.choices else p.choices
    if p.default is None and None not in words:
        words = (None, *words)
    if p.numeric and p.low is not None and p.high is not None and p.low < p.high:
        log = p.log and p.low >= (1 if p.kind == "int" else 5e-324)
        return Dimension(p.name, words, p.low, p.high, log, p.kind == "int")
    return Dimension(p.name, words) if len(words) > 1 else None


def ranges_of(ranges: Ranges, method: str) -> dict[str, list[Scalar]]:
    """The ranges of one method: those for all methods, overridden by its own."""
    general = {name: values for name, values in ranges.items() if not isinstance(values, Mapping)}
    own = ranges.get(method, {})
    return {**general, **own} if isinstance(own, Mapping) else general


def check_ranges(ranges: Ranges, methods: Iterable[MethodSpec]) -> None:
    """Reject ranges of unknown methods and parameters."""
    spaces = {method.name: {d.name for d in search_space(method)} for method in methods}
    for name, values in ranges.items():
        if isinstance(values, Mapping):
            if name not in spaces:
                raise UnknownNameError("method in ranges", name, spaces)
            for parameter in values:
                if parameter not in spaces[name]:
                    raise UnknownNameError(f"parameter of {name} in ranges", parameter, spaces[name])
        elif not any(name in space for space in spaces.values()):
            raise UnknownNameError("parameter in ranges", name, set().union(*spaces.values()))


def narrowed(
    space: Iterable[Dimension], ranges: Mapping[str, list[Scalar]], start: Mapping[str, Scalar]
) -> tuple[Dimension, ...]:
    """Restrict a space to the given ranges; without ranges it is unchanged.

    Args:
        space: the declared space.
        ranges: choices, the two ends of a numeric range, or both, for each parameter to search.
        start: the parameters of the first trial, which must be within the ranges.
    """
    if not ranges:
        return tuple(space)
    return tuple(_narrow(d, ranges[d.name], start[d.name]) for d in space if d.name in ranges)


def _narrow(dimension: Dimension, values: Any, start: Scalar) -> Dimension:
    name, wide = dimension.name, dimension.describe()
    listed = list(values) if isinstance(values, list | tuple) else [values]
    if None in dimension.words and "none" not in dimension.words:  # a TOML file has no other way to write it
        listed = [None if value == "none" else value for value in listed]
    words = tuple(v for v in listed if is_among(v, dimension.words))
    ends = [v for v in listed if not is_among(v, words) and isinstance(v, int | float) and not isinstance(v, bool)]
    if len(words) + len(ends) < len(listed) or len(ends) not in (0, 2) or not listed:
        raise UsageError(f"invalid range {listed} of {name}: expected choices or two ends within {wide}.")
    found = Dimension(name, words)
    if ends:
        low, high = sorted(map(float, ends))
        if dimension.low is None or dimension.high is None or not dimension.low <= low < high <= dimension.high:
            raise UsageError(f"the range {listed} of {name} must be within {wide}.")
        found = replace(dimension, words=words, low=low, high=high)
    if not found.holds(start):
        raise UsageError(
            f"the range {listed} of {name} must contain {start!r}, its value in the first trial (the defaults of the "
            "method)."
        )
    return found


def start_values(space: Iterable[Dimension], values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The values that represent the given parameters in a study."""
    return {key: value for d in space for key, value in d.start(values[d.name]).items()}


def space_digest(space: Iterable[Dimension]) -> str:
    """A digest of the space, eight digits; another space is another study."""
    return hashlib.sha256(msgspec.json.encode([msgspec.to_builtins(d) for d in space])).hexdigest()[:8]
