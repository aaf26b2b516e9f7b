"""From planned cells to jobs: which cells are to run, and what each process is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.provenance import Provenance, count_reasons
from llpbench.results.sealing import Damaged
from llpbench.results.store import Store

Rerun = Literal["missing", "failed", "stale", "all"]
"""Which cells to run: those without a result, also the failed ones, also those of other versions, all."""


@dataclass(frozen=True)
class Limits:
    """What each cell is given: the same for all, whatever else runs."""

    threads: int = 1
    timeout: float = 3600.0
    memory_mb: float = 8192.0


@dataclass(frozen=True)
class Context:
    """Where cells find data and plugins."""

    data: str = ""
    offline: bool = False
    plugins: tuple[str, ...] = ()
    override: tuple[str, ...] = ()
    predictions: bool = True


def wanted_cells(
    planned: Iterable[Planned],
    store: Store,
    registry: Registry,
    rerun: Rerun,
    warn: Callable[[str], None],
    note: Callable[[str], None] | None = None,
) -> tuple[list[Planned], list[CellResult]]:
    """Split a plan into cells to run and results to keep, by the rerun rule.

    Damaged files are always run again, and so are results that would stand for something else today (another protocol,
    another version of a rule, other code of a plugin that is not released): ``note`` is told how many, and why.
    """
    run: list[Planned] = []
    kept: list[CellResult] = []
    outdated: list[str] = []
    provenance = Provenance(registry)
    for plan in planned:
        try:
            result = store.read(plan.cell.id)
        except Damaged as damage:
            warn(f"{store.result_path(plan.cell.id)}: {damage}; the cell is run again")
            result = None
        if result is None or rerun == "all" or (rerun == "failed" and result.status in FAILURES):
            run.append(plan)
        elif reason := provenance.outdated(result):
            outdated.append(reason)
            run.append(plan)
        elif rerun == "stale" and provenance.stale(result):
            run.append(plan)
        else:
            kept.append(result)
    for sentence in count_reasons(outdated):
        (note or warn)(sentence)
    return run, kept


def make_jobs(
    planned: Iterable[Planned], store: Store, registry: Registry, limits: Limits, context: Context
) -> list[Job]:
    """Jobs for cells. Cells of one backend share what is imported for them beforehand."""
    planned = list(planned)
    preload: dict[str, set[str]] = {}
    for plan in planned:
        spec = registry.methods[plan.cell.method]
        keras = ("keras",) if plan.cell.backend else ()
        preload.setdefault(plan.cell.backend, set()).update(keras, spec.preload)
    provenance = Provenance(registry, context.plugins)
    return [
        Job(
            cell=plan.cell,
            method_name=plan.method_name,
            dataset_name=plan.dataset_name,
            out=str(store.root.resolve()),
            data=context.data,
            offline=context.offline,
            plugins=context.plugins,
            override=context.override,
            judge_plugins=provenance.judge_files(plan.cell),
            method=method_facts(registry, plan.cell.method),
            code=provenance.code(plan.cell),
            origins=provenance.origins(plan.cell),
            requires=provenance.requires(plan.cell),
            preload=tuple(sorted(preload[plan.cell.backend])),
            threads=limits.threads,
            timeout=limits.timeout,
            memory_mb=limits.memory_mb,
            resources=dict(registry.methods[plan.cell.method].resources),
            predictions=context.predictions,
            tuning_seconds=plan.tuning_seconds,
        )
        for plan in planned
    ]


def method_facts(registry: Registry, name: str) -> MethodFacts:
    """What the judge of a cell knows of its method."""
    spec = registry.methods[name]
    return MethodFacts(scores=spec.scores, oracle=spec.oracle, tasks=spec.tasks, inputs=spec.inputs)
