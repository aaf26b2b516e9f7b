"""The board: everything a leaderboard page or a program needs to know, as plain data.

Numbers are in the unit of a table (shares in percent) and rounded, so that the same results give the same bytes.
Dictionaries are keyed by text, because that is what JSON has: noise ``"none"``, bag ``"512"``.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from llpbench.board.schema.overall import About, BlockCoverage, DatasetAbout, MethodAbout, Overall, SuiteAbout
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.specs import Scalar

SCHEMA = 4


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """How a metric is read: its title without the unit, which end wins, and the decimals that are shown."""

    name: str
    title: str
    higher: bool
    percent: bool
    digits: int = 2
    measured_on: str = "test rows"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A selection rule: what its values are (``title``), what it does (``summary``) and which end wins."""

    name: str
    title: str = ""
    summary: str = ""
    higher: bool = True


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over seeds: of a bound (``method`` says which), or as published elsewhere."""

    mean: float | None
    sd: float | None = None
    seeds: int = 0
    method: str = ""
    note: str = ""


class Score(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A method in one setting: one metric under one selection rule.

    Attributes:
        mean: over seeds, with ``sd`` (n - 1; None for one seed) and ``values`` in the order of the seeds.
        note: how many seeds are behind it where that is not usual in its column, or which where they were picked.
        shared: the mean that is compared: over the seeds that the compared methods of its column share. None when the
            method lacks some of these and is not compared. ``shared_sd`` is of these seeds, where they are not all.
        at_all_noises: over the seeds that the method has at every noise level of its bag size, for a chart that is
            read from level to level; there where these are not the seeds of ``mean``. Its ``note`` names them.
        best: best of its column by ``shared``; ``second`` likewise.
        separated: of the best, whether it is separated from the second; of any other, whether it is separated from
            the best, corrected for the number of rivals. None when that cannot be judged: one seed, missing seeds, or
            a metric without replicates.
    """

    mean: float | None
    sd: float | None
    seeds: int
    values: list[float]
    note: str = ""
    shared: float | None = None
    shared_sd: float | None = None
    at_all_noises: Mean | None = None
    best: bool = False
    second: bool = False
    separated: bool | None = None


class Seconds(msgspec.Struct, frozen=True, kw_only=True):
    """Mean seconds of a fit and of its phases, and of the search for its parameters where there was one."""

    fit: float
    phases: dict[str, float]
    tuning: float = 0.0


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What a publication reports for the same setting, and the rule it selected by."""

    mean: float | None
    sd: float | None
    rule: str
    source: str = ""
    note: str = ""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a row's ``of`` cells were made again and came out as published, and how many did not (``doubted``).

    ``latest`` is the day of the newest of these verifications.
    """

    cells: int
    doubted: int
    of: int
    latest: str


class BoardEntry(msgspec.Struct, kw_only=True):
    """A method in one setting, over its seeds.

    Attributes:
        status: ``ok``, ``partial`` (some seeds have no number), ``skipped``, ``failed`` or ``missing``.
        reason: why there is no number, or why seeds are missing.
        scores: by metric, then by selection rule.
        paper: what a publication reports, by metric.
        seed_ids: ids of the cells, in the order of the seeds; ``seeds`` are these.
        command: what re-makes all seeds; ``llpbench rerun ID`` re-makes one.
        verified: ids of the cells that were made again and came out as published; not there when there is none.
    """

    status: str
    reason: str = ""
    scores: dict[str, dict[str, Score]] = {}
    seconds: Seconds | None = None
    memory_mb: float | None = None
    pseudo: dict[str, float] = {}
    params: dict[str, Scalar] = {}
    seed_ids: list[str] = []
    seeds: list[int] = []
    machine: str = ""
    command: str = ""
    paper: dict[str, Published] = {}
    verified: list[str] | UnsetType = UNSET


class BoardRow(msgspec.Struct, kw_only=True):
    """A method with its settings: one line of a table. ``cells`` is keyed by noise, then by bag size.

    ``unreleased`` says that cells of it were made by an editable install: code that has no release. ``verified`` is
    there when some of its cells were made again by a reviewer. ``whose`` is ``yours`` or ``published`` on the page of
    a results folder that has a leaderboard beside it.
    """

    method: str
    name: str
    summary: str
    oracle: bool = False
    control: bool = False
    origin: str = ""
    unreleased: bool = False
    whose: str = ""
    cells: dict[str, dict[str, BoardEntry]] = {}
    verified: Verified | UnsetType = UNSET


class PaperRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a publication reports for a method of its own naming, by bag size."""

    method: str
    metric: str
    cells: dict[str, Mean]
    noise: str = "none"
    rule: str = "instances"
    source: str = ""
    name: str = ""


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """Mean rank (1 is best) and share of pairwise comparisons won, over cells that all compared methods have.

    ``mean_rank`` is None for a method that was left out because it lacks cells that the others have.
    """

    method: str
    mean_rank: float | None
    win_rate: float | None
    cells: int


class BestClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The best of a column against the second, with a 95 % interval of the difference; ``text`` says it in words.

    ``p`` is the p-value of no difference, corrected for the ``rivals`` that the best was compared with; ``seeds`` are
    those that all compared methods share.
    """

    metric: str
    rule: str
    bag: int = 0
    noise: str = "none"
    best: str
    second: str
    difference: float
    low: float | None
    high: float | None
    separated: bool | None
    text: str
    basis: str = ""
    p: float | None = None
    rivals: int = 1
    seeds: list[int] = []


class ProtocolLine(msgspec.Struct, frozen=True, kw_only=True):
    """A method in the block of a publication's protocol: a text and a mark (best, second or none) in each column."""

    method: str
    texts: list[str]
    marks: list[str]


class ProtocolTable(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of that block: methods down, ways of tuning and selecting across, the published value among them."""

    title: str
    columns: list[str]
    lines: list[ProtocolLine]
    notes: list[str] = []


class BoardDataset(msgspec.Struct, kw_only=True):
    """All results on one dataset (with its options and bag scheme).

    ``base`` is its registered name and ``block`` the part it belongs to (noise on counts is always ``privacy``).
    ``self_sized`` says how bags are formed that have no size (their bag size is 0). ``metrics`` are those with a number
    here. ``bounds`` and ``ranks`` are keyed by metric, then by rule; ``pareto`` by
    metric, rule and bag size. Where every bag size has test rows of its own, ``bounds`` is empty and ``bag_bounds`` has
    them by metric, bag size and rule. ``cards`` are the bag cards by bag size, where results have any. ``protocol`` is
    there where parameters were searched: the same method tuned by each rule, as published elsewhere, and as it is.
    """

    name: str
    title: str
    task: str
    metrics: list[str]
    bags: list[int]
    noises: list[str]
    epsilons: dict[str, float | None]
    bounds: dict[str, dict[str, Mean]]
    rows: list[BoardRow]
    paper: list[PaperRow]
    ranks: dict[str, dict[str, list[Rank]]]
    pareto: dict[str, dict[str, dict[str, list[str]]]]
    claims: list[BestClaim]
    base: str = ""
    block: str = "random"
    self_sized: str = ""
    bag_bounds: dict[str, dict[str, dict[str, Mean]]] | UnsetType = UNSET
    cards: dict[str, BagCard] | UnsetType = UNSET
    protocol: list[ProtocolTable] | UnsetType = UNSET


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that made results, and the versions it made them with."""

    cpu: str = ""
    cores: int = 0
    ram: float = 0.0
    os: str = ""
    python: str = ""
    versions: dict[str, str] = {}


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that has no number, or not all of its seeds."""

    dataset: str
    method: str
    noise: str
    bag: int
    status: str
    reason: str


class Board(msgspec.Struct, kw_only=True):
    """A leaderboard. ``built`` is the date of the newest result, not of the building.

    ``overall`` are the standings over all datasets, ``coverage`` says how much of each block there is, ``suites``
    how much of each suite; ``methods`` and ``sources`` are what methods and datasets say of themselves, by
    registered name.
    """

    schema: int
    protocol: int = 1
    title: str
    metrics: list[Metric]
    rules: list[Rule]
    datasets: list[BoardDataset]
    machines: dict[str, Machine]
    built: str
    missing: list[Missing]
    overall: list[Overall] = []
    coverage: list[BlockCoverage] = []
    suites: dict[str, SuiteAbout] = {}
    methods: dict[str, MethodAbout] = {}
    sources: dict[str, DatasetAbout] = {}
    about: About = About()


def encode_board(board: Board) -> bytes:
    """A board as indented JSON: the same bytes for the same board."""
    return msgspec.json.format(msgspec.json.encode(board), indent=1) + b"\n"
