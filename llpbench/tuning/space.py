"""What is searched: the declared parameters of a method, but for budgets and for what the user fixed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import MethodSpec, Param, Scalar

Ranges = Mapping[str, Any]
"""What is searched of each parameter: words to choose from, the two ends of a range of numbers, or both in one list.
Under the name of a method stands a table of the same form for this method alone."""

NUMBER = "a number"
"""Stands, among the words of a parameter that takes words or numbers, for a number."""


def is_among(value: Scalar, words: Iterable[Scalar]) -> bool:
    """Whether a value is one of the words; true is not 1."""
    return any(value == word and type(value) is type(word) for word in words)


@dataclass(frozen=True)
class Dimension:
    """One searched parameter: words to choose from, a range of numbers, or both.

    With both, a word or ``NUMBER`` is drawn first, and the number only when it is called for.
    """

    name: str
    words: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    integer: bool = False

    @property
    def numeric(self) -> bool:
        """Whether there is a range."""
        return self.low is not None and self.high is not None

    @property
    def number_name(self) -> str:
        """What the number is called in a study; the parameter's own name where there are no words."""
        return f"{self.name} ({NUMBER})" if self.words else self.name

    def holds(self, value: Scalar) -> bool:
        """Whether ``value`` can be drawn."""
        if is_among(value, self.words):
            return True
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.low is not None and self.high is not None and self.low <= float(value or 0) <= self.high

    def describe(self) -> str:
        """The dimension in words, for the published history."""
        parts = [str(word) for word in self.words]
        if self.numeric:
            parts.append(
                f"{'whole numbers' if self.integer else 'numbers'} from {self.low:g} to {self.high:g}"
                f"{' on a log scale' if self.log else ''}"
            )
        return " or ".join(parts)

    def start(self, value: Scalar) -> dict[str, Scalar]:
        """How a study writes ``value``."""
        if not self.words:
            return {self.name: value}
        if is_among(value, self.words):
            return {self.name: value}
        return {self.name: NUMBER, self.number_name: value}

    def suggest(self, trial: Any) -> Scalar:
        """A value drawn by the trial of a study."""
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
    """The dimensions of a method: declared parameters that have something to choose.

    Left out are parameters that declare ``tune=False`` or ``omit_default``, or that the user fixed, and ``patience``,
    which the harness reads as a budget.
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
    """What is searched of one method: the ranges for all methods, and over them its own."""
    general = {name: values for name, values in ranges.items() if not isinstance(values, Mapping)}
    own = ranges.get(method, {})
    return {**general, **own} if isinstance(own, Mapping) else general


def check_ranges(ranges: Ranges, methods: Iterable[MethodSpec]) -> None:
    """Refuse ranges for what nobody searches: a name that is mistyped would go unnoticed."""
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
    """The dimensions that ``ranges`` name, within these ranges; the others are not searched. All as they are without.

    Args:
        space: what the method declares.
        ranges: for each parameter a list of words, of the two ends of a range, or of both.
        start: the parameters of the first trial, which must lie within the ranges.
    """
    if not ranges:
        return tuple(space)
    return tuple(_narrow(d, ranges[d.name], start[d.name]) for d in space if d.name in ranges)


def _narrow(dimension: Dimension, values: Any, start: Scalar) -> Dimension:
    name, wide = dimension.name, dimension.describe()
    listed = list(values) if isinstance(values, list | tuple) else [values]
    words = tuple(v for v in listed if is_among(v, dimension.words))
    ends = [v for v in listed if not is_among(v, words) and isinstance(v, int | float) and not isinstance(v, bool)]
    if len(words) + len(ends) < len(listed) or len(ends) not in (0, 2) or not listed:
        raise UsageError(f"the range {listed} of {name}: give words, or two ends, of what it may be: {wide}.")
    found = Dimension(name, words)
    if ends:
        low, high = sorted(map(float, ends))
        if dimension.low is None or dimension.high is None or not dimension.low <= low < high <= dimension.high:
            raise UsageError(f"the range {listed} of {name} does not lie within what it may be: {wide}.")
        found = replace(dimension, words=words, low=low, high=high)
    if not found.holds(start):
        raise UsageError(
            f"the range {listed} of {name} does not hold {start!r}, its value in the first trial, which is always the "
            "method as it is."
        )
    return found


def start_values(space: Iterable[Dimension], values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """How a study writes the given parameters: those of its first trial."""
    return {key: value for d in space for key, value in d.start(values[d.name]).items()}


def space_digest(space: Iterable[Dimension]) -> str:
    """Eight digits that change with the space: a study of another space is another study."""
    return hashlib.sha256(msgspec.json.encode([msgspec.to_builtins(d) for d in space])).hexdigest()[:8]
