"""Declare a setting once: as an option of the command line, an argument of a Python call and a key of a run file.

::

    class RunSettings(Settings):
        bags: Integers = Integers("Bag sizes.", [8, 512], short="b")

``run --bags 8,512``, ``run(bags=8)`` and ``bags = [8, 512]`` in a run file are all read by ``Integers``, and
``settings.bags`` is a ``list[int]``. Type checkers know both: a setting is a descriptor, and ``takes`` gives a function
the arguments of a class of settings.
"""

from __future__ import annotations

import copy
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar, dataclass_transform, get_args, get_origin, overload

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.plugins.options import format_scalar, split_list
from llpbench.system.quantities import parse_duration, parse_memory, shown

Given = TypeVar("Given")
Kept = TypeVar("Kept")
P = ParamSpec("P")
R = TypeVar("R")

MOST_SEEDS = 100_000
_MOST_DIGITS = 9  # of a seed that is written as text
_SEEDS = re.compile(rf"\s*(\d{{1,{_MOST_DIGITS}}})\s*(?:-\s*(\d{{1,{_MOST_DIGITS}}})\s*)?")


class SettingField(Generic[Given, Kept]):
    """One setting: what users may give, what is kept of it, its default and its help text.

    Attributes:
        help: one or two sentences, the same for the command line and for Python.
        default: the value where none is given.
        short: one-letter flag.
        shown: the default in words, where its value says too little.
        flags: the option on the command line, where it is not ``--name``; empty for settings of Python alone.
        repeated: whether the option is given once for each value.
        names: the registry's shelf that shell completion takes names from.
        choices: all possible values.
        rare: whether ``--help`` leaves it to ``--help-all``.
        grid: whether it defines cells; other settings say how cells are run and shown.
    """

    metavar: ClassVar[str] = "TEXT"
    wanted: ClassVar[str] = "a text"
    from_text: ClassVar[Any] = None
    name = ""

    def __init__(
        self,
        help: str,  # noqa: A002 - as in click
        default: Kept,
        *,
        short: str = "",
        shown: str = "",
        flags: str | None = None,
        repeated: bool = False,
        names: str = "",
        choices: Sequence[str] = (),
        grid: bool = False,
        rare: bool = False,
    ) -> None:
        self.help, self.default, self.short, self.flags = help, default, short, flags
        self.names, self.choices, self.grid, self.repeated, self.rare = names, tuple(choices), grid, repeated, rare
        self.shown = shown or _words(default)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.flags = f"--{name.replace('_', '-')}" if self.flags is None else self.flags

    @overload
    def __get__(self, settings: None, owner: type) -> Self: ...
    @overload
    def __get__(self, settings: object, owner: type) -> Kept: ...
    def __get__(self, settings: object, owner: type) -> Any:
        return self if settings is None else settings.__dict__[self.name]

    def __set__(self, settings: object, value: Given) -> None:
        raise AttributeError(f"settings cannot be changed; use replace({self.name}=...)")

    @classmethod
    def types(cls) -> tuple[Any, Any]:
        """The types of what is given and of what is kept."""
        given, kept = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        return (str | None, str) if isinstance(kept, TypeVar) else (given, kept)

    def read(self, value: Given) -> Kept:
        """Parse and check a value.

        Raises:
            UsageError: it is not a value of this setting.
        """
        kept = self.types()[1]
        parsed = plain(value)
        if isinstance(parsed, str) and self.from_text is not None:
            parsed = self.from_text(parsed)
        elif get_origin(kept) is list and not isinstance(parsed, list):
            parsed = [parsed]
        if self.choices and parsed not in (*self.choices, self.default):
            raise UnknownNameError(self.name, str(parsed), self.choices)
        try:
            read: Kept = msgspec.convert(parsed, kept)
        except msgspec.ValidationError:
            raise UsageError(f"{self.name}: expected {self.wanted}, got {shown(value)}.") from None
        return read


def _numbers(kind: type[int] | type[float], wanted: str) -> Callable[[str], Any]:
    def numbers(text: str) -> Any:
        try:
            return [kind(part.strip()) for part in text.split(",") if part.strip()]
        except ValueError:
            raise UsageError(f"{text!r} is not a comma-separated list of {wanted}, e.g. 8,512.") from None

    return staticmethod(numbers)


class Names(SettingField[str | Sequence[Any] | Any | None, list[str]]):
    """Several names, options in brackets: ``"bp,dllp[lr=1e-3;1e-2]"`` or a list; Python calls may pass objects."""

    metavar, from_text, wanted = "NAMES", staticmethod(split_list), "a text or a list of texts"


class Integers(SettingField[int | str | Sequence[int] | None, list[int]]):
    """One or several whole numbers."""

    metavar, from_text, wanted = "NUMBERS", _numbers(int, "whole numbers"), "a whole number or a list of them"


class Floats(SettingField[float | str | Sequence[float] | None, list[float]]):
    """One or several numbers."""

    metavar, from_text, wanted = "NUMBERS", _numbers(float, "numbers"), "a number or a list of numbers"


class Seeds(SettingField[int | str | Sequence[int] | None, int | list[int]]):
    """How many seeds (``3``), or which (``[3, 4]``, ``"0,1,2"``, ``"3-5"``)."""

    metavar, wanted = "SEEDS", "a number of seeds (3), a list ([3, 4]) or a range ('3-5')"

    def read(self, value: int | str | Sequence[int] | None) -> int | list[int]:
        """Read a number, a list or a range."""
        given = plain(value)
        seeds = super().read(parse_seeds(given) if isinstance(given, str | list) else given)
        if not seeds or (isinstance(seeds, int) and seeds < 1):
            raise UsageError(f"--seeds {value}: at least one seed is needed (3 runs seeds 0, 1, 2).")
        return seeds


class Text(SettingField[str | None, str]):
    """A text."""


class Location(SettingField[str | Path | None, str]):
    """A path, or the name of something that has one."""

    wanted = "a path"


class Folder(Location):
    """The path of a folder."""

    metavar = "DIRECTORY"


class FilePaths(SettingField[str | Path | Sequence[str | Path] | None, list[str]]):
    """The path of a file, or several."""

    wanted = "a path or a list of paths"


class Choice(SettingField[Kept | None, Kept]):
    """One of ``choices``."""


class Whole(SettingField[int | None, int]):
    """A whole number."""

    metavar, wanted = "INTEGER", "a whole number"


class Number(SettingField[float | None, float]):
    """A number."""

    metavar, wanted = "FLOAT", "a number"


class _Amount(SettingField[float | str | None, float]):
    def read(self, value: float | str | None) -> float:
        """Read an amount, which is positive, or the default."""
        amount = super().read(value)
        if not 0 < amount < float("inf") and amount != self.default:
            raise UsageError(f"{self.name}: expected {self.wanted}, got {shown(value)}.")
        return amount


class Duration(_Amount):
    """Seconds, or a text such as ``"30m"``."""

    metavar, from_text, wanted = "DURATION", staticmethod(parse_duration), "seconds or a text such as '30m'"


class Memory(_Amount):
    """MiB, or a text such as ``"8GB"``."""

    metavar, from_text, wanted = "MEMORY", staticmethod(parse_memory), "megabytes or a text such as '8GB'"


class Switch(SettingField[bool | None, bool]):
    """Yes or no."""

    wanted = "true or false"


class KeyValues(SettingField[Mapping[str, Any] | None, dict[str, Any]]):
    """Values by name; not on the command line."""

    wanted = "values by name"


@dataclass_transform(kw_only_default=True)
class Settings:
    """Values of declared settings. One that is None, or not given, has its default."""

    def __init_subclass__(cls, kw_only: bool = True) -> None:
        del kw_only  # for type checkers

    def __init__(self, *args: Any, **given: Any) -> None:
        known = self.declared()
        given |= dict(zip(known, args, strict=False))
        refuse_unknown(given, "setting", known)
        for name, setting in known.items():
            value = given.get(name)
            self.__dict__[name] = copy.copy(setting.default) if value is None else setting.read(value)
        self.__dict__ |= self.derived({name for name in known if given.get(name) is not None})

    def derived(self, given: set[str]) -> dict[str, Any]:
        """Values that depend on other settings; checks of several settings together belong here, too.

        Args:
            given: names of the settings that were given.
        """
        del given
        return {}

    @classmethod
    def declared(cls) -> dict[str, SettingField[Any, Any]]:
        """The settings of this class by name, in the order of their declaration."""
        classes = reversed(cls.__mro__)
        return {name: value for c in classes for name, value in vars(c).items() if isinstance(value, SettingField)}

    def replace(self, **changes: Any) -> Self:
        """A copy with other values."""
        return type(self)(**{**self.__dict__, **changes})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        changed = {n: v for n, v in vars(self).items() if v != self.declared()[n].default}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


def refuse_unknown(given: Iterable[str], kind: str, known: Iterable[str]) -> None:
    """Raise an error for a name that no setting has."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def takes(settings: Callable[P, Settings]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function ``f(**given)`` the arguments of a class of settings: signature, types and documentation."""
    assert isinstance(settings, type)
    declared: dict[str, SettingField[Any, Any]] = settings.declared()  # type: ignore[attr-defined]

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] + [inspect.Parameter.KEYWORD_ONLY] * len(declared)
        parameters = [
            inspect.Parameter(name, kind, default=None, annotation=setting.types()[0])
            for (name, setting), kind in zip(declared.items(), kinds, strict=False)
        ]
        returns = function.__annotations__.get("return")
        function.__signature__ = inspect.Signature(parameters, return_annotation=returns)  # type: ignore[attr-defined]
        lines = [_wrapped(f"{setting.name}: {described(setting)}") for setting in declared.values()]
        before, returns_line, after = inspect.cleandoc(function.__doc__ or "").partition("Returns:")
        function.__doc__ = "\n".join([f"{before}Args:", *lines, "", f"{returns_line}{after}"])
        return function

    return decorate


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, initial_indent=" " * 4, subsequent_indent=" " * 8)


def described(setting: SettingField[Any, Any]) -> str:
    """The help text of a setting and its default."""
    return f"{setting.help}  [default: {setting.shown}]" if setting.shown else setting.help


def plain(value: Any) -> Any:
    """A value as JSON would hold it: paths as texts, sequences as lists, mappings as dictionaries."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def given_settings(values: Mapping[str, Any], settings: type[Settings]) -> dict[str, Any]:
    """The settings that were given, as plain data, in the order of their declaration.

    None and the empty tuple stand for settings that were not given; ``progress`` is not data.
    """
    names = dict.fromkeys(name for name in (*settings.declared(), *values) if name in values and name != "progress")
    return {name: plain(values[name]) for name in names if values[name] is not None and values[name] != ()}


def _words(default: Any) -> str:
    if isinstance(default, list):
        return ",".join(map(format_scalar, default))
    return "" if default is None or isinstance(default, bool | Mapping) else format_scalar(default)


def listed_seeds(seeds: int | list[int]) -> list[int]:
    """The seeds as a list; a number stands for the first seeds.

    Raises:
        UsageError: the number is so large that a single seed must be meant.
    """
    if not isinstance(seeds, int):
        return seeds
    if seeds > MOST_SEEDS:
        one = f"{seeds}-{seeds}" if len(str(seeds)) <= _MOST_DIGITS else f"[{seeds}] in a run file or a call"
        raise UsageError(f"--seeds {seeds} is a number of seeds; for this single seed write {one}.")
    return list(range(seeds))


def parse_seeds(given: str | int | list[int]) -> int | list[int]:
    """Parse seeds: a number of seeds (``3``), a list (``0,1,2``) or a range (``3-5``).

    The first seeds are always returned as a number, so that ``0-2`` and ``3`` are the same request.
    """
    if isinstance(given, int):
        return given
    seeds: list[int] = []
    for part in given.split(",") if isinstance(given, str) else given:
        match = _SEEDS.fullmatch(part) if isinstance(part, str) else None
        if isinstance(part, int) and not isinstance(part, bool):
            seeds.append(part)
        elif match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            if not 0 <= last - first < MOST_SEEDS:
                raise UsageError(f"--seeds {part}: a range must be increasing and have at most {MOST_SEEDS:,} seeds.")
            seeds += range(first, last + 1)
        elif str(part).strip():
            raise UsageError(f"seeds {given!r}: expected a number (3: seeds 0, 1, 2), a list (0,1,2) or a range (3-5).")
    if isinstance(given, str) and given.strip().isdecimal():
        return int(given)
    seeds = list(dict.fromkeys(seeds))
    return len(seeds) if seeds and seeds == list(range(len(seeds))) else seeds
