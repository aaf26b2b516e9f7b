"""The watchdog of one cell: wall time and resident memory of its whole process tree.

Resident memory, not address space: a backend reserves many times what it uses.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job


@dataclass
class Watched:
    """A running cell. ``check`` kills it when it breaks a limit and remembers which."""

    job: Job
    pid: int
    started: float = field(default_factory=time.monotonic)
    peak_mb: float = 0.0
    broken: tuple[str, str] | None = None

    def check(self) -> None:
        """Look at time and memory once."""
        if self.broken is not None:
            return
        self.peak_mb = max(self.peak_mb, tree_memory_mb(self.pid))
        elapsed = time.monotonic() - self.started
        if elapsed > self.job.timeout:
            self.stop("timeout", f"stopped after {elapsed:.0f} s (--timeout {self.job.timeout:g})")
        elif self.peak_mb > self.job.memory_mb:
            limit = self.job.memory_mb
            self.stop("memory", f"stopped at {self.peak_mb:.0f} MB resident (--memory {limit:.0f}MB)")

    def stop(self, status: str, reason: str) -> None:
        """Kill the cell's process group, for the reason given."""
        self.broken = (status, reason)
        kill_group(self.pid)

    def outcome(self, returncode: int, log: Path) -> Outcome:
        """What happened, once the process is gone. ``returncode`` is negative for a signal."""
        seconds = time.monotonic() - self.started
        if self.broken is not None:
            status, reason = self.broken
        elif returncode == 0:
            status, reason = "finished", ""
        else:
            status, reason = "crashed", _describe_exit(returncode) + _end_of_log(log)
        return Outcome(self.job, status, reason, seconds, self.peak_mb)  # type: ignore[arg-type]


def tree_memory_mb(pid: int) -> float:
    """Resident memory of a process and all its descendants in MiB; 0 when it is gone."""
    total = 0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
    return float(total) / 2**20


def kill_group(pid: int) -> None:
    """Kill a process group (and the process itself, should it not lead one)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _describe_exit(returncode: int) -> str:
    if returncode >= 0:
        return f"the process exited with code {returncode} and left no result"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    hint = " (by the system for want of memory, or by hand)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"


def _end_of_log(log: Path) -> str:
    """The end of what the cell printed, on one line."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    if not lines:
        return ""
    fatal = [i for i, line in enumerate(lines) if line.startswith("Fatal Python error")]
    words = " | ".join(lines[fatal[-1] : fatal[-1] + 6] if fatal else lines[-3:])
    return f"; it last printed: {words[:400]}"
