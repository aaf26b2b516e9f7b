"""The result of a cell: numbers by selection rule, seconds by phase, or why there is no number."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import Cell

Status = Literal["ok", "skipped", "pruned", "failed", "timeout", "memory", "crashed"]
STATUSES: tuple[Status, ...] = get_args(Status)
FAILURES: tuple[Status, ...] = ("failed", "timeout", "memory", "crashed")
PROTOCOL = 2
"""Version of the evaluation protocol (docs/protocol.md); numbers of different versions are not compared."""


class Selected(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a selection rule selected: the report, its value under the rule, and the metrics on test rows."""

    report: int
    stage: str = ""
    value: float | None = None
    metrics: dict[str, float | None] = {}


class CellResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of a cell. A result without a number always has a reason.

    Attributes:
        method_name: the method with the parameters that differ from the defaults; ``label`` in files.
        dataset_name: the dataset with its options and unusual conditions; ``dataset_label`` in files.
        selected: for each selection rule, the selected report with its test metrics.
        stages: the same for each stage of a fit with several (``iteration-1``, ``iteration-2``).
        phases: seconds by phase; ``other`` is the rest. Scoring reports is ``report_seconds``.
        history: for each report, its value under every rule.
        stage_starts: of a fit with several stages, the first report of each (from 0).
        pseudo_labels: AUROC of the pseudo-labels against the training labels, by stage.
        count_sd: standard deviation of the noise added to each count.
        tuning_seconds: duration of the search for the cell's parameters, if there was one.
        folds_seconds: duration of the further fits of cross-validated rules.
        protocol: version of the protocol; files of version 1 do not have it.
        rules: version of each selection rule.
        code: fingerprint of the code by part (``method``, ``dataset``, ``harness``).
        flags: settings of the process that can change the last bits of a number (threads, flags of a backend).
        digests: of the data it was evaluated on (``test_labels``, ``test_bags``, ``features``).
        rate: the known overall rate for decisions: of class 1, or of every class.
        card: description of its training bags, computed from labels, so no method gets it. None for a bound and in old
            results.
        groupings: if there are several groupings of its rows, the card of each by name; ``card`` is that of all bags.
        failed_at: for a failure, the last line in the plugin's own file (``file:line: code``).
    """

    id: str
    cell: Cell
    status: Status
    method_name: str = msgspec.field(default="", name="label")
    dataset_name: str = msgspec.field(default="", name="dataset_label")
    oracle: bool = False
    reason: str = ""
    selected: dict[str, Selected] = {}
    stages: dict[str, dict[str, Selected]] = {}
    history: list[dict[str, float | None]] = []
    stage_starts: dict[str, int] = {}
    pseudo_labels: dict[str, float | None] = {}
    notes: dict[str, float | str | bool | None] = {}
    phases: dict[str, float] = {}
    data_seconds: float = 0.0
    fit_seconds: float = 0.0
    report_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    tuning_seconds: float = 0.0
    folds_seconds: float = 0.0
    count_sd: float = 0.0
    rows: dict[str, int] = {}
    bags: dict[str, int] = {}
    seeds: dict[str, int] = {}
    limits: dict[str, float] = {}
    versions: dict[str, str] = {}
    machine: str = ""
    started: str = ""
    traceback: str = ""
    failed_at: str = ""
    protocol: int = 1
    rules: dict[str, int] = {}
    code: dict[str, str] = {}
    flags: dict[str, str] = {}
    digests: dict[str, str] = {}
    rate: list[float] = []
    groupings: dict[str, BagCard] = {}
    card: BagCard | None = None
