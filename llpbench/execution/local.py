"""The local executor: as many cells at once as cores allow, each on cores of its own, each watched."""

from __future__ import annotations

import time
from pathlib import Path

from llpbench.contracts.errors import UsageError
from llpbench.contracts.executor import ExecutorSettings, Outcome
from llpbench.contracts.job import Job
from llpbench.execution.launch import make_launcher
from llpbench.execution.watch import Watched, remove_old_scratch
from llpbench.results.store import Store
from llpbench.system.machine import usable_cores

_GLANCE = 0.1  # seconds between two looks at time and memory


def cells_at_once(jobs: int, threads: int) -> int:
    """How many cells of ``threads`` threads this machine runs at once: ``jobs``, or as many as it has cores for."""
    cores = len(usable_cores())
    if threads < 1 or threads > cores:
        raise UsageError(f"--threads {threads}: this machine has {cores} usable cores.")
    if jobs < 0:
        raise UsageError(f"--jobs {jobs}: give how many cells run at once, or 0 for as many as there are cores for.")
    jobs = jobs or max(1, cores // threads)
    if jobs * threads > cores:
        raise UsageError(
            f"--jobs {jobs} with --threads {threads} would need {jobs * threads} cores; "
            f"{cores} are usable. Lower one of the two."
        )
    return jobs


class LocalExecutor:
    """Cells as child processes of this machine.

    ``jobs`` times ``threads`` never exceeds the usable cores: two spinning thread pools on the same cores can be
    thirty times slower than one thread each.
    """

    def __init__(self, settings: ExecutorSettings) -> None:
        cores, threads = usable_cores(), settings.threads
        jobs = cells_at_once(settings.jobs, threads)
        self._free = [cores[i * threads : (i + 1) * threads] for i in range(jobs)]
        self._launcher = make_launcher(settings.start)
        self._running: dict[int, tuple[Watched, list[int]]] = {}
        remove_old_scratch()

    @property
    def slots(self) -> int:
        """How many more cells may start now."""
        return len(self._free)

    def submit(self, job: Job) -> None:
        """Start a cell on free cores."""
        cores = self._free.pop(0)
        try:
            watched = Watched.begin(job, self._launcher, cores)
        except BaseException:
            self._free.append(cores)
            raise
        self._running[watched.number] = (watched, cores)

    def wait(self, seconds: float) -> list[Outcome]:
        """Watch the running cells until one ends or the time is up."""
        deadline = time.monotonic() + seconds
        while True:
            glance = max(0.0, min(_GLANCE, deadline - time.monotonic()))
            ended = self._launcher.ended(glance)
            outcomes = [self._finish(number, code) for number, code in ended if number in self._running]
            if outcomes or time.monotonic() >= deadline:
                return outcomes
            for watched, _ in self._running.values():
                watched.check()

    def _finish(self, number: int, code: int) -> Outcome:
        watched, cores = self._running.pop(number)
        self._free.append(cores)
        return watched.outcome(code, _log_of(watched.job))

    def close(self) -> None:
        """Stop every cell and the servers."""
        for watched, _ in self._running.values():
            watched.stop("crashed", "the run was stopped")
        self._launcher.close()
        for watched, _ in self._running.values():
            watched.clean(_log_of(watched.job))
        self._running.clear()


def _log_of(job: Job) -> Path:
    return Store(Path(job.out)).log_path(job.cell.id)
