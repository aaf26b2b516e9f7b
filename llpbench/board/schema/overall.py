"""Types of the board: standings over all datasets, descriptions of methods and datasets."""

from __future__ import annotations

import msgspec

from llpbench.contracts.specs import Scalar
from llpbench.plugins.fingerprint import OWN


class OverallRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A ranked method over all cells of a block.

    Attributes:
        rank: mean rank, with the ends of its 95 % interval.
        tied: whether it is not separated from the first, corrected for all pairs; None for the first, and for metrics
            without a test.
        p: the corrected p-value.
        wins: mean share of cells won against the other ranked methods, where cells weigh as in mean ranks.
        scaled: mean of its numbers where the best control is 0 and the bound is 1; None without either.
        seconds: median seconds of a fit, on the machine that made most cells.
        bags: mean rank at each bag size of ``Overall.bags``; None without cells.
        failed: how many of the cells failed or were declined.
    """

    method: str
    rank: float
    low: float | None = None
    high: float | None = None
    tied: bool | None = None
    p: float | None = None
    wins: float | None = None
    scaled: float | None = None
    seconds: float | None = None
    bags: list[float | None] = []
    failed: int = 0


class Variant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A method with other settings than its defaults, and the share of shared cells in which it beats them."""

    method: str
    of: str
    cells: int
    wins: float | None = None
    scaled: float | None = None


class Overall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Standings over the cells of a block (``all``, or a part) by one metric under one rule, the best first.

    Attributes:
        datasets, columns, cells, seeds: what the ranks rest on; a column is a dataset with its bags and noise.
        column_seeds: the fewest and the most seeds of a column.
        bags: the bag sizes that have cells; 0 stands for bags that size themselves. ``bag_datasets`` says how many
            datasets have each.
        bars: ranks (from, to) of methods without significant differences: the bars of a critical-difference diagram.
        shares: for each ranked method the shares of cells in which it beats each of them, in percent (main metric);
            cells weigh as in mean ranks.
        unranked: methods that are not ranked, with the number of missing cells.
    """

    block: str
    metric: str
    rule: str
    datasets: int
    columns: int
    cells: int
    seeds: list[int]
    rows: list[OverallRow]
    column_seeds: tuple[int, int] = (0, 0)
    bags: list[int] = []
    bag_datasets: list[int] = []
    bars: list[tuple[int, int]] = []
    shares: list[list[float | None]] = []
    variants: list[Variant] = []
    unranked: dict[str, int] = {}
    machine: str = ""


class BlockCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Coverage of a block by methods at their defaults; ``text`` is a summary."""

    block: str
    methods: int
    columns: int
    cells: int
    numbers: int
    text: str


class SuiteAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Coverage of a suite: ``parts`` has a line for each part; ``state`` is draft or published."""

    title: str = ""
    state: str = ""
    parts: tuple[str, ...] = ()


class ParamAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A parameter with its default and what it means."""

    name: str
    default: Scalar = None
    doc: str = ""


class MethodAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Description of a method; ``origin`` is the distribution that provides it."""

    summary: str = ""
    origin: str = ""
    citation: str = ""
    paper: str = ""
    code: str = ""
    params: tuple[ParamAbout, ...] = ()
    oracle: bool = False
    control: bool = False

    @property
    def comes_along(self) -> bool:
        """Whether llpbench provides it."""
        return self.origin.partition(" ")[0] in ("", OWN)


class DatasetAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Description of a dataset; ``origin`` is the distribution that provides it."""

    summary: str = ""
    origin: str = ""
    citation: str = ""
    homepage: str = ""
    licence: str = ""
    split: str = ""
    rows: int | None = None
    columns: int | str | None = None
    classes: int | None = None
    balance: tuple[float, ...] = ()
    images: bool = False
    task: str = "binary"


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Citation, links, files next to the page, first steps and glossary."""

    version: str = ""
    citation: str = ""
    links: dict[str, str] = {}
    files: dict[str, str] = {}
    steps: tuple[tuple[str, str], ...] = ()
    words: dict[str, str] = {}
