"""Standings over all datasets and what they rest on, as plain data: a part of the board (`schema.py`)."""

from __future__ import annotations

import msgspec


class OverallRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A ranked method over all cells of a block.

    Attributes:
        rank: mean rank, with the ends of its 95 % interval over sources and seeds; None with a single source.
        separated: whether it is separated from the first, corrected for all pairs; None for the first, and where
            nothing is tested.
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
    separated: bool | None = None
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
        sources, datasets, columns, cells, seeds: what the ranks rest on; a column is a dataset with its bags and noise,
            and datasets that share rows have one source.
        column_seeds: the fewest and the most seeds of a column.
        bags: the bag sizes that have cells; 0 stands for bags that size themselves. ``bag_sources`` says how many
            sources have each.
        untested: why methods are not tested, if this metric is but there are too few sources.
        bars: ranks (from, to) of methods without significant differences: the bars of a critical-difference diagram.
        shares: for each ranked method the shares of cells in which it beats each of them, in percent (main metric);
            cells weigh as in mean ranks.
        unranked: methods that are not ranked, with the number of missing cells.
    """

    block: str
    metric: str
    rule: str
    sources: int
    datasets: int
    columns: int
    cells: int
    seeds: list[int]
    rows: list[OverallRow]
    column_seeds: tuple[int, int] = (0, 0)
    bags: list[int] = []
    bag_sources: list[int] = []
    untested: str = ""
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
