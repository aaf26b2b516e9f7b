"""The board as plain data, for the page and for programs.

Numbers are in the unit of a table (shares in percent) and rounded. Keys of dictionaries are text, as in JSON: noise
``"none"``, bag ``"512"``.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from llpbench.board.content.facts import DatasetAbout, MethodAbout, SuiteAbout
from llpbench.board.standings import BlockCoverage, Overall
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.specs import Scalar


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Citation, links, files next to the page, first steps and glossary."""

    version: str = ""
    citation: str = ""
    links: dict[str, str] = {}
    files: dict[str, str] = {}
    steps: tuple[tuple[str, str], ...] = ()
    words: dict[str, str] = {}


SCHEMA = 5


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """How a metric is read: its title without the unit, whether higher is better, and the decimals to show."""

    name: str
    title: str
    higher: bool
    percent: bool
    digits: int = 2
    measured_on: str = "test rows"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A selection rule: what its values are (``title``), what it does, and whether higher values are better."""

    name: str
    title: str = ""
    summary: str = ""
    higher: bool = True


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over seeds: of a bound (``method``), or as published elsewhere."""

    mean: float | None
    sd: float | None = None
    seeds: int = 0
    method: str = ""
    note: str = ""


class Score(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A method in one setting: one metric under one selection rule.

    Attributes:
        mean: over seeds, with ``sd`` (n - 1; None for one seed) and ``values`` in the order of the seeds.
        note: the number of seeds if it is unusual in its column, or which seeds if they are not the first ones.
        shared: the mean that is compared, over the seeds that the methods of its column share. None if the method
            lacks some of these seeds and is not compared. ``shared_sd`` is over these seeds, if they are not all.
        at_all_noises: over the seeds that the method has at every noise level of its bag size, if these are not the
            seeds of ``mean``. Its ``note`` names them.
        worth: the labelled rows with which a bound has the same value, as text; empty if no bound was run with several.
        best: best of its column by ``shared``; ``second`` likewise.
        separated: whether the best is separated from the second, and any other from the best, corrected for the
            number of rivals. None with one seed, missing seeds, or a metric without replicates.
    """

    mean: float | None
    sd: float | None
    seeds: int
    values: list[float]
    note: str = ""
    shared: float | None = None
    shared_sd: float | None = None
    at_all_noises: Mean | None = None
    worth: str = ""
    best: bool = False
    second: bool = False
    separated: bool | None = None


class AsManyLabels(msgspec.Struct, frozen=True, kw_only=True):
    """What a bound reaches with as many labelled rows as a setting has training bags (``results.worth``).

    ``mean`` is None if the bound was not run with fewer and with more rows.
    """

    bound: str
    bags: int
    mean: float | None


class Seconds(msgspec.Struct, frozen=True, kw_only=True):
    """Mean seconds of a fit, of its phases, and of the search for its parameters."""

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
    """How many of a row's ``of`` cells were reproduced, and how many were not (``doubted``); ``latest`` is a date."""

    cells: int
    doubted: int
    of: int
    latest: str


class Aggregate(msgspec.Struct, kw_only=True):
    """A method in one setting, over its seeds.

    Attributes:
        status: ``ok``, ``partial`` (some seeds have no number), ``skipped``, ``failed`` or ``missing``.
        reason: why there is no number, or why seeds are missing.
        scores: by metric, then by selection rule.
        paper: what a publication reports, by metric.
        seed_ids: ids of the cells, in the order of the seeds; ``seeds`` are these.
        command: reproduces all seeds; ``llpbench rerun ID`` reproduces one.
        verified: ids of the cells that were reproduced; unset if there are none.
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
    cells: dict[str, dict[str, Aggregate]] = {}
    verified: Verified | UnsetType = UNSET

    @property
    def aggregates(self) -> list[Aggregate]:
        """Its numbers in all settings."""
        return [found for cells in self.cells.values() for found in cells.values()]


class PaperRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a publication reports for one of its methods, by bag size."""

    method: str
    metric: str
    cells: dict[str, Mean]
    noise: str = "none"
    rule: str = "instances"
    source: str = ""
    name: str = ""


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """Mean rank (1 is best) and share of pairwise comparisons won, over cells that all compared methods have.

    ``mean_rank`` is None for a method that is not ranked because of missing cells.
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
    """A method in a protocol table: a text and a mark (best, second or none) in each column."""

    method: str
    texts: list[str]
    marks: list[str]


class ProtocolTable(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: methods down; ways of tuning and selecting, and the published value, across."""

    title: str
    columns: list[str]
    lines: list[ProtocolLine]
    notes: list[str] = []


class BoardDataset(msgspec.Struct, kw_only=True):
    """All results on one dataset (with its options and bag scheme).

    Attributes:
        base: its registered name; ``label`` is its name with its bags in words.
        block: the part it belongs to (with noise on counts always ``privacy``).
        self_sized: the bag scheme, if bags have no fixed size (bag size 0).
        metrics: those with a number here.
        bounds, ranks: by metric, then by rule.
        pareto: by metric, rule and bag size.
        bag_bounds: by metric, bag size and rule if every bag size has its own test rows; ``bounds`` is then empty.
        as_many_labels: by metric, rule and bag size; unset without such a bound.
        cards: the bag cards by bag size; ``groupings`` those of several groupings, by their names.
        protocol: tables of tuned methods, where parameters were searched.
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
    label: str = ""
    block: str = "random"
    self_sized: str = ""
    bag_bounds: dict[str, dict[str, dict[str, Mean]]] | UnsetType = UNSET
    as_many_labels: dict[str, dict[str, dict[str, AsManyLabels]]] | UnsetType = UNSET
    cards: dict[str, BagCard] | UnsetType = UNSET
    groupings: dict[str, dict[str, BagCard]] | UnsetType = UNSET
    protocol: list[ProtocolTable] | UnsetType = UNSET


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine, and the versions of packages that results were made with."""

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


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The learning curve of one fit: its values on held-out data by selection rule, at some of its reports.

    Reports are counted from 1; ``selected`` has the report that each rule selected, ``starts`` the first report of
    each stage of a fit with several.
    """

    dataset: str
    method: str
    noise: str
    bag: int
    seed: int
    reports: list[int]
    values: dict[str, list[float | None]]
    selected: dict[str, int]
    starts: dict[str, int]


class Board(msgspec.Struct, kw_only=True):
    """A leaderboard. ``built`` is the date of the newest result, not of the building.

    ``overall`` are the standings over all datasets, ``coverage`` says how much of each block there is, ``suites``
    how much of each suite; ``methods`` and ``sources`` are what methods and datasets say of themselves, by
    registered name. ``curves`` are those of the page of a results folder; published cells have none.
    """

    schema: int
    protocol: int
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
    curves: list[Curve] | UnsetType = UNSET


def encode_board(board: Board) -> bytes:
    """A board as indented JSON: the same bytes for the same board."""
    return msgspec.json.format(msgspec.json.encode(board), indent=1) + b"\n"
