"""Options that several verbs share, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from llpbench.errors import LLPBenchError, UsageError
from llpbench.labels import split_list

F = TypeVar("F", bound=Callable[..., Any])

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MEGABYTES = {"": 1.0, "mb": 1.0, "m": 1.0, "gb": 1024.0, "g": 1024.0, "tb": 1024.0**2, "kb": 1 / 1024}


class Names(click.ParamType[list[str]]):
    """A comma-separated list of registered names, completed by the shell."""

    name = "names"

    def __init__(self, shelf: str = "") -> None:
        self.shelf = shelf

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Cut the list at its commas."""
        del param, ctx
        return value if isinstance(value, list) else split_list(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that continue what is typed after the last comma."""
        del ctx, param
        from llpbench.registry import load_registry

        head, comma, last = incomplete.rpartition(",")
        try:
            entries = getattr(load_registry(), self.shelf) if self.shelf else ()
        except LLPBenchError:
            return []
        return [
            CompletionItem(head + comma + entry.spec.name, help=entry.spec.summary)
            for entry in entries
            if entry.spec.name.startswith(last)
        ]


class Numbers(click.ParamType[list[Any]]):
    """A comma-separated list of numbers."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Read every number, or say what a list looks like."""
        if isinstance(value, list):
            return value
        try:
            return [self.kind(text.strip()) for text in str(value).split(",") if text.strip()]
        except ValueError:
            wanted = "whole numbers" if self.kind is int else "numbers"
            self.fail(f"{value!r} is not a comma-separated list of {wanted}, e.g. 8,512.", param, ctx)


class Quantity(click.ParamType[float]):
    """A number with a unit, e.g. ``30m`` or ``8GB``."""

    def __init__(self, name: str, units: dict[str, float], example: str) -> None:
        self.name, self.units, self.example = name, units, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the amount, or say what one looks like."""
        try:
            return parse_quantity(str(value), self.units, self.example)
        except UsageError as error:
            self.fail(str(error), param, ctx)


def parse_quantity(text: str, units: dict[str, float], example: str) -> float:
    """A positive amount in the base unit."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    try:
        amount = float(match[1]) * units[match[2]] if match else 0.0
    except (KeyError, ValueError):
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise UsageError(f"{text!r} is not a positive amount such as {example}.")
    return amount


def parse_duration(text: str) -> float:
    """Seconds."""
    return parse_quantity(text, _SECONDS, "90, 30m or 2h")


def parse_memory(text: str) -> float:
    """MiB."""
    return parse_quantity(text, _MEGABYTES, "500MB or 8GB")


DURATION = Quantity("duration", _SECONDS, "90, 30m or 2h")
MEMORY = Quantity("memory", _MEGABYTES, "500MB or 8GB")


MECHANISM_HELP = (
    "How noise is sized: gaussian (the classic formula: no guarantee above epsilon 1) or analytic (the least valid "
    "noise at any epsilon).  [default: gaussian]"
)


def plugin_options(command: F) -> F:
    """``--plugin`` and ``--plugin-override``."""
    command = click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=click.Path(path_type=Path, dir_okay=False),
        help="A plugin in a single Python file; may be repeated.",
    )(command)
    return click.option(
        "--plugin-override",
        "override",
        multiple=True,
        metavar="NAME",
        help="Where two plugins claim NAME, the one loaded last wins instead of an error.",
    )(command)


def folder_argument(command: F) -> F:
    """The results folder, the newest one by default."""
    return click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))(command)
