"""The interface of executors: they receive jobs and return outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from llpbench.contracts.job import Job


@dataclass(frozen=True)
class Outcome:
    """How a cell's process ended. The result itself is the file the process wrote.

    ``finished`` means the process ended by itself with exit code 0; the others say what ended it. ``trouble`` is a
    failure of the harness or its machine, not of the cell, which is run again. ``machine`` is the id of the machine
    when it is not this one.
    """

    job: Job
    status: Literal["finished", "timeout", "memory", "crashed", "trouble"]
    reason: str = ""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    machine: str = ""


@dataclass(frozen=True)
class ExecutorSettings:
    """Settings that every executor receives, besides its own options.

    Attributes:
        jobs: cells at once; 0 leaves it to the executor.
        threads: threads (and cores) of each cell.
        start: how a cell's process starts, ``"fork"`` or ``"spawn"``; empty leaves it to the executor.
    """

    jobs: int = 0
    threads: int = 1
    start: str = ""


class Executor(Protocol):
    """Runs jobs, several at once.

    One whose cells run on other machines may set ``remote = True``: data files are then not fetched beforehand.
    """

    @property
    def slots(self) -> int:
        """How many more jobs it would take now."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job; call it only while there are free slots."""
        ...

    def wait(self, seconds: float) -> list[Outcome]:
        """The jobs that ended since the last call; waits up to ``seconds`` for the first."""
        ...

    def close(self) -> None:
        """Stop everything that still runs and free what was started."""
        ...
