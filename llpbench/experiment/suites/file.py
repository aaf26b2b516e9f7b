"""The file of a suite: its contents, and how it is found and read. Nothing here needs numpy.

::

    name = "mine-2026.1"               # the name of the file
    version = "2026.1"
    title = "..."
    citation = "..."
    published = "2026-12-01"           # the day from which nothing in it changes; omitted in a draft
    protocol = 2
    backend = "jax"
    methods = ["dllp", "mean-ridge"]   # in the order of tables

    [parts.random]
    title = "Random bags"

    [[parts.random.blocks]]            # every combination of these; all methods of the suite if none are named
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
"""The folder of a plugin's package with its suites."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")

Values = dict[str, bool | int | float | str]
"""Frozen values of parameters; TOML has no null, so ``"none"`` stands for it."""
SomeTexts = Annotated[list[str], msgspec.Meta(min_length=1)]


class Block(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A grid of a suite: every combination of its axes.

    Attributes:
        datasets: with options in brackets, as on the command line.
        seeds: a number of seeds, a list, or a range as text (``"5-9"``).
        methods: all methods of the suite if empty.
        bags: sizes; empty if the schemes size their bags themselves.
        average: whether tables show the mean over its datasets, in one column with its title.
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


class SuitePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Blocks that belong together and can be run separately: ``--suite NAME/PART``."""

    title: str
    blocks: Annotated[list[Block], msgspec.Meta(min_length=1)]


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The defaults of all parameters, and the versions of selection rules, when the suite was frozen by ``by``."""

    by: str = ""
    rules: dict[str, int] = {}
    methods: dict[str, Values] = {}
    datasets: dict[str, Values] = {}
    schemes: dict[str, Values] = {}


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a suite file.

    Attributes:
        published: the day from which nothing in it changes; empty for a draft.
        protocol: version of the evaluation protocol of its numbers.
        methods: its methods in the order of tables: those that are ranked, controls and bounds.
    """

    name: str
    version: str
    title: str
    citation: str
    protocol: int
    methods: SomeTexts
    parts: dict[str, SuitePart]
    published: str = ""
    backend: str = "jax"
    frozen: Frozen = Frozen()

    def part_names(self, part: str = "") -> list[str]:
        """The part of that name, or all parts; an unknown one is an error."""
        if part and part not in self.parts:
            raise UnknownNameError(f"part of suite {self.name}:", part, self.parts)
        return [part] if part else list(self.parts)

    def blocks(self, part: str = "") -> list[tuple[str, Block]]:
        """The blocks of a part, or of all parts, each with the name of its part."""
        return [(name, block) for name in self.part_names(part) for block in self.parts[name].blocks]

    @property
    def state(self) -> str:
        """Whether it is published or a draft, in words."""
        return f"published {self.published}" if self.published else "a draft: it may still change"


def suite_files(registry: Registry) -> dict[str, Path]:
    """The suites of plugins (``suites/*.toml`` in their top-level packages), by name."""
    return shipped_files(registry, FOLDER)


def find_suite(text: str, registry: Registry) -> tuple[Suite, str]:
    """The suite and the part that ``NAME``, ``NAME/PART``, ``FILE.toml`` or ``FILE.toml/PART`` names.

    Raises:
        UsageError: the suite or its part does not exist, or its file is invalid.
    """
    head, _, part = text.rpartition("/")
    if text.endswith(".toml"):
        path, part = Path(text), ""
    elif head.endswith(".toml"):
        path = Path(head)
    else:
        name, _, part = text.partition("/")
        known = suite_files(registry)
        if name not in known:
            raise UnknownNameError("suite", name or text, known, " Name a file of your own with its suffix, .toml.")
        path = known[name]
    suite = read_suite(path)
    suite.part_names(part)
    return suite, part


def read_suite(path: Path) -> Suite:
    """The suite in a file, validated as far as possible without the installed plugins."""
    try:
        suite = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Suite)
    except FileNotFoundError:
        raise UsageError(f"suite {path}: no such file.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"suite {path}: {error}") from None
    if suite.name != path.stem or not _NAME.match(suite.name):
        raise UsageError(
            f"suite {path}: its name must be that of the file, in lower-case letters, digits, '-', '_' and '.', "
            f"got {suite.name!r}."
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
