"""The one loop behind ``run``, ``tune`` and ``rerun``: work in, jobs to an executor, every result onto the disk.

What differs between the verbs is where jobs come from (``Work``): the cells of a grid, or the trials of searches. What
is the same is here: a cell is claimed before it runs, so several processes may share a results folder; a result that
somebody else wrote meanwhile is taken over; and whatever happens, executor and claims are given back.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Executor, Outcome
from llpbench.contracts.job import Job
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.view import View, notify
from llpbench.execution.settle import settle
from llpbench.plugins.registry import Registry
from llpbench.results.provenance import Provenance
from llpbench.results.store import Stamp, Store
from llpbench.system.locks import Claim

_WAIT = 0.5  # seconds to wait for a running cell before looking for new work
_MOST_TRIES = 3  # of a cell whose harness fails
_PAUSE = 0.2  # seconds between two looks when all that is left runs elsewhere


@dataclass(frozen=True)
class Task:
    """A job to run, and the stamp of its result file when it was decided to run it."""

    job: Job
    before: Stamp


class Work(Protocol):
    """Where jobs come from."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to do, here or elsewhere. Work that sets ``stopped`` ends at once."""
        ...

    def next(self) -> Task | None:
        """A task to start now; None when there is none at the moment."""
        ...

    def put_back(self, task: Task) -> None:
        """Take back a task whose cell another process (or another task) is running; it is asked for again."""
        ...

    def finished(self, task: Task, result: CellResult) -> None:
        """The cell of a task has a result."""
        ...


class Driver:
    """Drives work through an executor until it is over."""

    def __init__(self, store: Store, registry: Registry, executor: Executor, views: Sequence[View]) -> None:
        self.store, self.registry, self.executor, self.views = store, registry, executor, views
        self._running: dict[str, tuple[Task, Claim]] = {}
        self._tries: Counter[str] = Counter()

    def run(self, work: Work) -> None:
        """Run until the work is over; stops what runs and gives all claims back when interrupted."""
        try:
            while (self._running or not work.over) and not getattr(work, "stopped", False):
                self._start_all(work)
                outcomes = self.executor.wait(_WAIT if self._running else 0.0)
                for outcome in outcomes:
                    self._finish(work, outcome)
                if not (outcomes or self._running or work.over):
                    time.sleep(_PAUSE)
        finally:
            self.executor.close()
            for _, claim in self._running.values():
                claim.release()

    def _start_all(self, work: Work) -> None:
        """Start tasks while there are slots; those whose cell is claimed elsewhere are put back for the next time."""
        claimed_elsewhere = []
        while self.executor.slots > 0 and (task := work.next()) is not None:
            if not self._start(work, task):
                claimed_elsewhere.append(task)
        for task in claimed_elsewhere:
            work.put_back(task)

    def _start(self, work: Work, task: Task) -> bool:
        """Start a task, or take over the result that somebody else made of it; False when its cell is claimed."""
        cell_id = task.job.cell.id
        self.store.check_there()
        claim = self.store.claim(cell_id)
        if claim is None:
            return False
        made = self._made_elsewhere(task)
        if made is not None:
            claim.release()
            self._record(work, task, made)
            return True
        self._running[cell_id] = (task, claim)
        notify(self.views, "started", task.job)
        self.executor.submit(task.job)
        return True

    def _made_elsewhere(self, task: Task) -> CellResult | None:
        """The sound result that somebody else wrote since the task was made, if it is what a run would make now."""
        if self.store.stamp(task.job.cell.id) == task.before:
            return None
        result = self.store.sound(task.job.cell.id)
        current = result is not None and Provenance(self.registry).current(result)
        return result if current else None

    def _finish(self, work: Work, outcome: Outcome) -> None:
        task, claim = self._running[outcome.job.cell.id]
        self.store.check_there()
        result = settle(self.store, outcome, task.before)
        del self._running[outcome.job.cell.id]
        claim.release()
        if result is None:
            self._try_again(work, task, outcome.reason)
        else:
            self._record(work, task, result)

    def _try_again(self, work: Work, task: Task, reason: str) -> None:
        """Run a cell again whose harness failed; it stays missing if that happens too often."""
        cell_id = task.job.cell.id
        self._tries[cell_id] += 1
        if self._tries[cell_id] >= _MOST_TRIES:
            raise StoreError(
                f"cell {cell_id} could not be run ({_MOST_TRIES} tries): {reason}. Finished cells are kept; repeat the "
                "command to run the missing cells."
            )
        notify(self.views, "warn", f"cell {cell_id} is run again: {reason}")
        work.put_back(task)

    def _record(self, work: Work, task: Task, result: CellResult) -> None:
        notify(self.views, "finished", result)
        self.registry.cell_finished(result.cell, result)
        work.finished(task, result)


@dataclass
class Cells:
    """Work that is known beforehand: the cells of a grid, in their order.

    Attributes:
        counts: how many cells ended with each status.
        exitfirst: stop at the first cell that fails; those that run then are stopped, and run again next time.
    """

    tasks: deque[Task]
    counts: dict[str, int] = field(default_factory=dict)
    exitfirst: bool = False

    @classmethod
    def of(cls, jobs: Iterable[Job], store: Store, *, exitfirst: bool = False) -> Cells:
        """The work of running these jobs."""
        tasks = deque(Task(job, store.stamp(job.cell.id)) for job in jobs)
        return cls(tasks, exitfirst=exitfirst)

    @property
    def stopped(self) -> bool:
        """Whether the run is to end before its work is done."""
        return self.exitfirst and self.failed > 0

    @property
    def over(self) -> bool:
        """Whether every cell has been handed out."""
        return not self.tasks

    @property
    def failed(self) -> int:
        """Cells that have no number though they should."""
        return sum(self.counts.get(status, 0) for status in FAILURES)

    def next(self) -> Task | None:
        """The next cell."""
        return self.tasks.popleft() if self.tasks else None

    def put_back(self, task: Task) -> None:
        """Try it again after all others."""
        self.tasks.append(task)

    def finished(self, task: Task, result: CellResult) -> None:
        """Count the cell."""
        del task
        self.counts[result.status] = self.counts.get(result.status, 0) + 1


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    registry: Registry,
    executor: Executor,
    views: Sequence[View] = (),
    *,
    exitfirst: bool = False,
) -> Cells:
    """Run jobs until each has a result, or one failed (``exitfirst``); returns how they ended."""
    cells = Cells.of(jobs, store, exitfirst=exitfirst)
    Driver(store, registry, executor, views).run(cells)
    return cells
