"""A run: which cells are wanted, handing them to an executor, and seeing every result onto the disk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Executor, Outcome
from llpbench.contracts.job import Job
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.provenance import is_stale, recorded_versions
from llpbench.results.sealing import Damaged
from llpbench.results.store import Store
from llpbench.system.locks import Claim

Rerun = Literal["missing", "failed", "stale", "all"]


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


class View(Protocol):
    """Somebody who watches a run."""

    def begin(self, total: int, kept: int) -> None:
        """The run starts: ``total`` cells are wanted, ``kept`` of them are there already."""
        ...

    def started(self, job: Job) -> None:
        """A cell was started."""
        ...

    def finished(self, result: CellResult) -> None:
        """A cell has a result."""
        ...

    def warn(self, message: str) -> None:
        """Something the user should know, the run goes on."""
        ...

    def end(self) -> None:
        """The run is over, or was interrupted."""
        ...


@dataclass
class Summary:
    """How a run ended: the number of cells by status."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, status: str) -> None:
        """Count one cell."""
        self.counts[status] = self.counts.get(status, 0) + 1

    @property
    def failed(self) -> int:
        """Cells that have no number though they should."""
        return sum(self.counts.get(status, 0) for status in FAILURES)


def wanted_cells(
    planned: Iterable[Planned], store: Store, registry: Registry, rerun: Rerun, warn: View
) -> tuple[list[Planned], list[CellResult]]:
    """Split a plan into cells to run and results to keep, by the rerun rule. Damaged files are always re-run."""
    run: list[Planned] = []
    kept: list[CellResult] = []
    for plan in planned:
        try:
            result = store.read(plan.cell.id)
        except Damaged as damage:
            warn.warn(f"{store.result_path(plan.cell.id)}: {damage}; the cell is run again")
            result = None
        if result is None or _again(result, plan, registry, rerun):
            run.append(plan)
        else:
            kept.append(result)
    return run, kept


def _again(result: CellResult, plan: Planned, registry: Registry, rerun: Rerun) -> bool:
    if rerun == "stale":
        method = registry.methods.entry(plan.cell.method)
        dataset = registry.datasets.entry(plan.cell.dataset)
        return is_stale(result, recorded_versions(method, dataset, plan.cell.backend))
    return rerun == "all" or (rerun == "failed" and result.status in FAILURES)


def make_jobs(
    planned: Iterable[Planned], store: Store, registry: Registry, limits: Limits, context: Context
) -> list[Job]:
    """Jobs for cells. Cells of one engine share what is imported for them beforehand."""
    planned = list(planned)
    preload: dict[str, set[str]] = {}
    for plan in planned:
        spec = registry.methods[plan.cell.method]
        engine = ("keras",) if plan.cell.backend else ()
        preload.setdefault(plan.cell.backend, set()).update(engine, spec.preload)
    return [
        Job(
            cell=plan.cell,
            label=plan.label,
            dataset_label=plan.dataset_label,
            out=str(store.root.resolve()),
            data=context.data,
            offline=context.offline,
            plugins=context.plugins,
            override=context.override,
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


class Run:
    """Drives jobs through an executor. Cells that another run holds are left to it and picked up when done."""

    def __init__(self, store: Store, registry: Registry, executor: Executor, view: View) -> None:
        self.store, self.registry, self.executor, self.view = store, registry, executor, view
        self.summary = Summary()
        self._claims: dict[str, Claim] = {}
        self._before: Mapping[str, tuple[int, int]] = {}

    def go(self, jobs: list[Job]) -> Summary:
        """Run all jobs; returns when each has a result."""
        waiting = deque(jobs)
        elsewhere: deque[Job] = deque()
        self._before = {job.cell.id: stamp(self.store.result_path(job.cell.id)) for job in jobs}
        running = 0
        try:
            while waiting or elsewhere or running:
                while waiting and self.executor.slots > 0:
                    running += self._start(waiting.popleft(), elsewhere)
                outcomes = self.executor.wait(0.5 if running else 0.0)
                for outcome in outcomes:
                    running -= 1
                    self._finish(outcome)
                if not outcomes and not running and elsewhere:
                    time.sleep(0.2)
                if elsewhere and not waiting:
                    waiting, elsewhere = elsewhere, deque()
        finally:
            self.executor.close()
            for claim in self._claims.values():
                claim.release()
        return self.summary

    def _start(self, job: Job, elsewhere: deque[Job]) -> bool:
        cell_id = job.cell.id
        claim = self.store.claim(cell_id)
        if claim is None:
            elsewhere.append(job)
            return False
        made = self._made_elsewhere(cell_id)
        if made is not None:
            claim.release()
            self._record(made)
            return False
        self._claims[cell_id] = claim
        self.view.started(job)
        self.executor.submit(job)
        return True

    def _made_elsewhere(self, cell_id: str) -> CellResult | None:
        """The sound result that somebody else wrote since this run began, if any."""
        if stamp(self.store.result_path(cell_id)) == self._before[cell_id]:
            return None
        try:
            return self.store.read(cell_id)
        except Damaged:
            return None

    def _finish(self, outcome: Outcome) -> None:
        job = outcome.job
        try:
            result = settle(self.store, outcome, self._before[job.cell.id])
        except Damaged as damage:
            result = unreadable(outcome, damage)
        self._claims.pop(job.cell.id).release()
        self._record(result)

    def _record(self, result: CellResult) -> None:
        self.summary.add(result.status)
        self.view.finished(result)
        self.registry.cell_finished(result.cell, result)


def stamp(path: Path) -> tuple[int, int]:
    """What tells a file from the one written before it, whatever the clock did since; zeros when it is not there."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def settle(store: Store, outcome: Outcome, before: tuple[int, int]) -> CellResult:
    """The result of a cell that ended: its own, or one that says how it ended without.

    A full disk is no fault of a cell: one that failed for it stays missing.

    Args:
        store: where results are.
        outcome: how the cell's process ended.
        before: ``stamp`` of its result file when it was started.

    Raises:
        StoreError: there is no room for results.
        Damaged: the result file cannot be read.
    """
    path = store.result_path(outcome.job.cell.id)
    if outcome.status != "finished" or stamp(path) == before:
        store.check_room()
        result = _without_result(outcome)
        store.write(result)
        return result
    read = store.read(outcome.job.cell.id)
    assert read is not None
    if read.status in FAILURES:
        _blame_the_disk_first(store, path)
    return read


def unreadable(outcome: Outcome, damage: Damaged) -> CellResult:
    """The result of a cell whose own is damaged."""
    from llpbench.execution.worker import blank_result

    return blank_result(outcome.job, "crashed", f"its result file is damaged: {damage}")


def _without_result(outcome: Outcome) -> CellResult:
    from llpbench.execution.worker import blank_result

    status = "crashed" if outcome.status == "finished" else outcome.status
    result = blank_result(outcome.job, status, outcome.reason or "the process ended without a result")
    result.wall_seconds, result.peak_memory_mb = outcome.seconds, outcome.peak_memory_mb
    result.machine = outcome.machine or result.machine
    return result


def _blame_the_disk_first(store: Store, result: Path) -> None:
    """When there is no room for results, a cell that failed is not guilty: take its result back and stop."""
    try:
        store.check_room()
    except StoreError:
        result.unlink(missing_ok=True)
        raise
