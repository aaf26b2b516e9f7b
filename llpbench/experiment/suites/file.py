"""The file of a suite: what it holds, how it is found and read. Nothing here needs numpy.

::

    name = "mine-2026.1"               # the name of the file
    version = "2026.1"
    title = "..."
    citation = "..."
    published = "2026-12-01"           # the day from which nothing in it changes; left out in a draft
    protocol = 2
    backend = "jax"
    methods = ["dllp", "mean-ridge"]   # in the order of tables

    [parts.random]
    title = "Random bags"

    [[parts.random.blocks]]            # every combination of these; without methods: all of the suite
    datasets = ["adult"]
    bags = [8, 512]
    seeds = 3

    [frozen]                           # written by ``llpbench suite freeze FILE``
    by = "llpbench 0.1.0"
    [frozen.rules]
    bags = 2
    [frozen.methods.dllp]
    lr = 0.001
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from llpbench.contracts.cell import USUAL, SplitBy
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.plugins.options import parse_options
from llpbench.plugins.registry import Registry
from llpbench.plugins.shipped import shipped_files

FOLDER = "suites"
"""Where packages of plugins keep their suites."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")

Values = dict[str, bool | int | float | str]
"""Frozen values of parameters; TOML has no null, so ``"none"`` stands for it."""
SomeTexts = Annotated[list[str], msgspec.Meta(min_length=1)]


class Block(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A grid of a suite: every combination of its axes.

    Attributes:
        title: what it is, in a few words.
        datasets: with options in brackets, as on the command line.
        seeds: how many, which, or a range as text (``"5-9"``).
        methods: those that run here; none are named where all methods of the suite do.
        bags: sizes; none where the schemes size their bags themselves.
        average: tables show the mean over its datasets, in one column under its title.
    """

    datasets: SomeTexts
    seeds: int | list[int] | str
    title: str = ""
    methods: list[str] = []
    bags: list[int] = []
    schemes: list[str] = msgspec.field(default_factory=lambda: [USUAL.scheme])
    split: SplitBy = USUAL.split
    noise: list[str] = msgspec.field(default_factory=lambda: [USUAL.noise])
    delta: float = USUAL.delta
    mechanism: str = USUAL.mechanism
    average: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Blocks that belong together, and can be run alone: ``--suite NAME/PART``."""

    title: str
    blocks: Annotated[list[Block], msgspec.Meta(min_length=1)]


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was registered when the suite was frozen: all values of parameters, and versions of selection rules.

    Attributes:
        by: the version of llpbench that had these values.
        rules: version of each selection rule.
        methods: all parameters of each method, at the defaults of that day; likewise ``datasets`` and ``schemes``.
    """

    by: str = ""
    rules: dict[str, int] = {}
    methods: dict[str, Values] = {}
    datasets: dict[str, Values] = {}
    schemes: dict[str, Values] = {}


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite as its file states it.

    Attributes:
        published: the day from which nothing in it changes; empty for a draft.
        protocol: version of the protocol its numbers are made under.
        backend: of the networks.
        methods: its methods in the order of tables: those that are ranked, controls and bounds.
    """

    name: str
    version: str
    title: str
    citation: str
    protocol: int
    methods: SomeTexts
    parts: dict[str, Part]
    published: str = ""
    backend: str = "jax"
    frozen: Frozen = Frozen()

    def part_names(self, part: str = "") -> list[str]:
        """The part of that name, or all; an unknown one is an error that lists them."""
        if part and part not in self.parts:
            raise UnknownNameError(f"part of suite {self.name}:", part, self.parts)
        return [part] if part else list(self.parts)

    def blocks(self, part: str = "") -> list[tuple[str, Block]]:
        """The blocks of a part, or of all, each with the name of its part."""
        return [(name, block) for name in self.part_names(part) for block in self.parts[name].blocks]

    @property
    def state(self) -> str:
        """Whether it may still change, in words."""
        return f"published {self.published}" if self.published else "a draft: it may still change"


def suite_files(registry: Registry) -> dict[str, Path]:
    """The suites that plugins ship (``suites/*.toml`` in their top-level packages), by name."""
    return shipped_files(registry, FOLDER)


def find_suite(text: str, registry: Registry) -> tuple[Suite, str]:
    """A suite and the part of it that ``NAME``, ``NAME/PART``, ``FILE.toml`` or ``FILE.toml/PART`` names.

    Raises:
        UsageError: there is none of that name, it has no such part, or its file is not sound.
    """
    path, part = _file_and_part(text)
    if path is None:
        name, _, part = text.partition("/")
        known = suite_files(registry)
        if name not in known:
            raise UnknownNameError("suite", name or text, known, " A file of your own is named with its ending, .toml.")
        path = known[name]
    suite = read_suite(path)
    suite.part_names(part)
    return suite, part


def _file_and_part(text: str) -> tuple[Path | None, str]:
    """The file that a text names, with the part behind it; None where it names none."""
    if text.endswith(".toml"):
        return Path(text), ""
    head, _, part = text.rpartition("/")
    return (Path(head), part) if head.endswith(".toml") else (None, "")


def read_suite(path: Path) -> Suite:
    """The suite in a file, checked for all that can be told without what is installed."""
    try:
        suite = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Suite)
    except FileNotFoundError:
        raise UsageError(f"suite {path}: no such file.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"suite {path}: {error}") from None
    if suite.name != path.stem or not _NAME.match(suite.name):
        raise UsageError(
            f"suite {path}: its name is {suite.name!r}; it must be that of the file, in lower-case letters, digits, "
            "'-', '_' and '.'."
        )
    if not suite.parts:
        raise UsageError(f"suite {path}: it has no parts.")
    for part, block in suite.blocks():
        for text in block.methods:
            if text not in suite.methods:
                raise UnknownNameError(f"method of suite {suite.name} (in part {part}):", text, suite.methods)
    return suite


def base_name(text: str) -> str:
    """The registered name in a name with options."""
    return parse_options(text)[0]
