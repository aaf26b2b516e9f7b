"""A cell of the grid and its result: what is run, what came out, and how both are written down."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, get_args

import msgspec

from llpbench.specs import Scalar

Status = Literal["ok", "skipped", "pruned", "failed", "timeout", "memory", "crashed"]
STATUSES: tuple[Status, ...] = get_args(Status)
FAILURES: tuple[Status, ...] = ("failed", "timeout", "memory", "crashed")
RULES = ("bags", "instances")


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fit: a method with all its parameters on one draw of bags of a dataset.

    Its id is the hash of its content, so equal cells are run once. Fields at their defaults do not enter the
    hash: a field added later leaves old ids as they are. A cell with ``tuning`` is a trial of a search: it is judged on
    held-back data alone, and its test rows are dropped unread.
    """

    dataset: str
    method: str
    bag_size: int
    seed: int
    dataset_options: dict[str, Scalar] = {}
    params: dict[str, Scalar] = {}
    scheme: str = "random"
    scheme_options: dict[str, Scalar] = {}
    noise: str = "none"
    delta: float = 1e-5
    mechanism: str = "gaussian"
    feature_noise: float = 0.0
    backend: str = ""
    preset: str = ""
    tuning: bool = False

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the sha256 of the cell's sorted JSON."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]


USUAL = Cell(dataset="", method="", bag_size=1, seed=0)
"""A cell whose conditions are all at their defaults, to tell what is unusual about another."""


class Selected(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one selection rule chose: the report, its value under the rule, and the metrics on test rows."""

    report: int
    stage: str = ""
    value: float | None = None
    metrics: dict[str, float | None] = {}


class CellResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of a cell. A result without a number always says why.

    Attributes:
        label: the method as the user named it, with the parameters that differ from the defaults.
        selected: for each selection rule, the chosen report with its test metrics.
        stages: the same for each stage of a fit that has several (``iteration-1``, ``iteration-2``).
        phases: seconds by phase; ``other`` is what no phase names. Scoring reports is ``report_seconds``.
        history: for each report, its value under every rule.
        pseudo_labels: AUROC of the pseudo-labels against the training labels, by stage.
        count_sd: standard deviation of the noise that was added to each count.
        tuning_seconds: what the search for the cell's parameters took, when they were searched for.
    """

    id: str
    cell: Cell
    status: Status
    label: str = ""
    dataset_label: str = ""
    oracle: bool = False
    reason: str = ""
    selected: dict[str, Selected] = {}
    stages: dict[str, dict[str, Selected]] = {}
    history: list[dict[str, float | None]] = []
    pseudo_labels: dict[str, float | None] = {}
    notes: dict[str, float | str | bool | None] = {}
    phases: dict[str, float] = {}
    data_seconds: float = 0.0
    fit_seconds: float = 0.0
    report_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    tuning_seconds: float = 0.0
    count_sd: float = 0.0
    rows: dict[str, int] = {}
    bags: dict[str, int] = {}
    seeds: dict[str, int] = {}
    limits: dict[str, float] = {}
    versions: dict[str, str] = {}
    machine: str = ""
    started: str = ""
    traceback: str = ""


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """When to give up a trial: ``bounds[r]`` is what the best of its reports 0 to r must reach under the rule.

    Reports beyond the list are held to its last bound; None sets none.
    """

    rule: str
    bounds: tuple[float | None, ...]

    def bound(self, report: int) -> float | None:
        """What the best of reports 0 to ``report`` must reach."""
        return self.bounds[min(report, len(self.bounds) - 1)] if self.bounds else None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a worker process needs to run one cell, wherever it is."""

    cell: Cell
    label: str
    dataset_label: str
    out: str
    data: str = ""
    offline: bool = False
    plugins: tuple[str, ...] = ()
    override: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    threads: int = 1
    timeout: float = 3600.0
    memory_mb: float = 8192.0
    resources: dict[str, float] = {}
    predictions: bool = True
    prune: Prune | None = None
    tuning_seconds: float = 0.0


class Damaged(Exception):  # noqa: N818 - a state of a file, not a failure of the program
    """A result file that is truncated, was edited by hand, or is not a result at all."""


def encode_result(result: CellResult) -> bytes:
    """A result as indented JSON, sealed with the digest of its content."""
    body = _canonical(msgspec.json.decode(msgspec.json.encode(result), type=CellResult))
    sealed = b'{"digest":"' + _digest(body).encode() + b'","result":' + body + b"}"
    return msgspec.json.format(sealed, indent=1) + b"\n"


def decode_result(data: bytes) -> CellResult:
    """Read a sealed result, or raise ``Damaged`` with what is wrong with it."""
    try:
        outer: dict[str, Any] = msgspec.json.decode(data)
        body = outer["result"]
        result = msgspec.convert(body, CellResult)
    except (msgspec.MsgspecError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise Damaged(f"not a readable result ({error})") from None
    if outer.get("digest") != _digest(_canonical(result)):
        raise Damaged("its content does not match its digest (edited by hand?)")
    if result.id != result.cell.id:
        raise Damaged("its id is not the id of its cell")
    return result


def _canonical(result: CellResult) -> bytes:
    """The bytes that are sealed: sorted keys, numbers in the type the field declares."""
    return msgspec.json.encode(result, order="deterministic")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
