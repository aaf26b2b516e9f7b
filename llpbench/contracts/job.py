"""A job: a cell and all that a process needs to run it, wherever it is."""

from __future__ import annotations

import msgspec

from llpbench.contracts.cell import Cell
from llpbench.contracts.specs import MethodSpec


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """When to give up a trial: ``limits[r]`` is what the best of its reports 0 to r must reach under the rule.

    Reports beyond the list are held to its last limit; None sets none.
    """

    rule: str
    limits: tuple[float | None, ...]

    def limit(self, report: int) -> float | None:
        """What the best of reports 0 to ``report`` must reach."""
        return self.limits[min(report, len(self.limits) - 1)] if self.limits else None


class MethodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge of a cell must know about its method, so that it never loads the method's code.

    Attributes:
        scores: how its scores are to be read.
        oracle: whether it is given labels of training rows (a bound).
        tasks, inputs: what it is for.
        seed_name: the name that its seeds are derived from; empty for its own.
        overlapping: whether it takes several groupings as they are; otherwise bags are unrolled for it.
        origin: the plugin that provides it, as a name of a folder; methods of one origin share compiled code.
    """

    scores: str = "auto"
    oracle: bool = False
    tasks: tuple[str, ...] = ("binary",)
    inputs: tuple[str, ...] = ("features",)
    seed_name: str = ""
    overlapping: bool = False
    origin: str = ""

    @classmethod
    def of(cls, spec: MethodSpec, origin: str) -> MethodFacts:
        """The facts of a method."""
        given = {name: getattr(spec, name) for name in cls.__struct_fields__ if name != "origin"}
        return cls(**given, origin=origin)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the processes of one cell need, wherever they run.

    Attributes:
        out: the results folder; the method's process is kept from it.
        locked: further folders and files that the method's process is kept from.
        scratch: a private folder of the cell for its method; empty to have one made.
        plugins: single-file plugins that the method's process loads.
        judge_plugins: those of them that the judge needs (they bring its dataset, rules or metrics); None
            for all.
        method: what the judge knows of the method.
        code: fingerprints of the code of the cell, by part, as they were when it was planned.
        requires: distributions and modules whose versions go into the result.
        prune: what a trial must reach; it is given up where it lags under all of these rules.
        origins: where each part of ``code`` comes from (``distribution:plugin``, ``file:NAME``), to look at it again.
    """

    cell: Cell
    method_name: str
    dataset_name: str
    out: str
    locked: tuple[str, ...] = ()
    scratch: str = ""
    data: str = ""
    offline: bool = False
    plugins: tuple[str, ...] = ()
    override: tuple[str, ...] = ()
    judge_plugins: tuple[str, ...] | None = None
    method: MethodFacts = MethodFacts()
    code: dict[str, str] = {}
    requires: tuple[str, ...] = ()
    origins: dict[str, str] = {}
    preload: tuple[str, ...] = ()
    threads: int = 1
    timeout: float = 3600.0
    memory_mb: float = 8192.0
    resources: dict[str, float] = {}
    predictions: bool = True
    prune: tuple[Prune, ...] = ()
    tuning_seconds: float = 0.0
