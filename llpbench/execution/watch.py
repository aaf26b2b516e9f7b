"""The watchdog of one cell: wall time and resident memory of its processes, its log and its private folder.

The limit is on resident memory, not on address space: a backend reserves many times what it uses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import psutil

from llpbench.contracts.errors import printable, where_it_was
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.execution.confines import SCRATCH
from llpbench.execution.processes import end_tree, memory_mb, show_stacks

if TYPE_CHECKING:
    from llpbench.execution.launch import Launcher

TROUBLE = 75
"""Exit code of a judge that could not do its part, as where its result cannot be written (``EX_TEMPFAIL``)."""
_STACK_SECONDS = 1.0  # that a method has to print its stacks
_OLD = 24 * 3600.0  # seconds after which a scratch folder whose run is gone is removed
_LOG_HEAD, _LOG_TAIL = 256 << 10, 256 << 10  # bytes of a log that are kept


@dataclass
class Watched:
    """A running cell. ``check`` kills it if it exceeds a limit and records which one."""

    job: Job
    launcher: Launcher
    number: int
    scratch: Path
    pid: int | None = None
    started: float = field(default_factory=time.monotonic)
    peak_mb: float = 0.0
    broken: tuple[str, str] | None = None

    @classmethod
    def begin(cls, job: Job, launcher: Launcher, cores: list[int]) -> Watched:
        """Start a cell with a private folder for its method."""
        scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
        try:
            number = launcher.start(msgspec.structs.replace(job, scratch=str(scratch)), cores)
        except Exception:  # not an interrupt: the cell may have started already, and would crash without its folder
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return cls(job, launcher, number, scratch)

    def check(self) -> None:
        """Check time and memory once. The clock of a restarted cell starts again."""
        if self.broken is not None:
            return
        pid = self.launcher.pid(self.number)
        if pid != self.pid:
            self.pid, self.started = pid, time.monotonic()
        if pid is not None:
            self.peak_mb = max(self.peak_mb, memory_mb(pid))
        elapsed = time.monotonic() - self.started
        if elapsed > self.job.timeout:
            where = self._where_it_is()
            self.stop(
                "timeout", f"stopped after {elapsed:.0f} s, over the limit (--timeout {self.job.timeout:g}){where}"
            )
        elif self.peak_mb > self.job.memory_mb:
            used, limit = f"{self.peak_mb:.0f} MB", f"--memory {self.job.memory_mb:.0f}MB"
            self.stop("memory", f"stopped at {used} of resident memory, over the limit ({limit})")

    def _where_it_is(self) -> str:
        """Let the method print its stacks to its log; returns the line of the user's code, if it names one."""
        log = self.scratch / "method.log"
        if self.pid is None or not log.is_file():
            return ""
        before = log.stat().st_size
        show_stacks(self.pid)
        printed, last = b"", None
        deadline = time.monotonic() + _STACK_SECONDS
        while time.monotonic() < deadline and (not printed or printed != last):  # until it prints no more
            time.sleep(0.05)
            with contextlib.suppress(OSError), _open_regular(log) as file:
                file.seek(before)
                printed, last = file.read(_LOG_TAIL), printed
        where = where_it_was(printed.decode(errors="replace"))
        return f"; it was at {where}" if where else ""

    def stop(self, status: str, reason: str) -> None:
        """Kill the cell's processes, for the reason given."""
        self.broken = (status, reason)
        pid = self.launcher.pid(self.number)
        if pid is None:
            self.launcher.drop(self.number)
        else:
            end_tree(pid)

    def outcome(self, returncode: int, log: Path) -> Outcome:
        """How the cell ended, called once its process is gone. ``returncode`` is negative for a signal."""
        seconds = time.monotonic() - self.started
        trouble = "the harness failed" + end_of_log(log) if returncode == TROUBLE else ""
        self.clean(log)
        if self.broken is not None:
            status, reason = self.broken
        elif returncode == 0:
            status, reason = "finished", ""
        elif trouble:
            status, reason = "trouble", trouble
        else:
            status, reason = "crashed", describe_exit(returncode) + end_of_log(log)
        return Outcome(self.job, status, reason, seconds, self.peak_mb)  # type: ignore[arg-type]

    def clean(self, log: Path) -> None:
        """Append the method's output, truncated if long, to the judge's log; remove the private folder."""
        keep_log(self.scratch / "method.log", log)
        shutil.rmtree(self.scratch, ignore_errors=True)


def keep_log(printed: Path, log: Path) -> None:
    """Append a method's output to a log: its beginning and its end if it is long. Remove an empty log."""
    with contextlib.suppress(OSError), _open_regular(printed) as file, log.open("ab") as target:
        size = os.fstat(file.fileno()).st_size
        target.write(file.read(_LOG_HEAD))
        if size > _LOG_HEAD + _LOG_TAIL:
            target.write(b"\n[... %d bytes omitted ...]\n" % (size - _LOG_HEAD - _LOG_TAIL))
        file.seek(max(_LOG_HEAD, size - _LOG_TAIL))
        target.write(file.read(_LOG_TAIL))
    with contextlib.suppress(OSError):
        if log.stat().st_size == 0:
            log.unlink()


def remove_old_scratch() -> None:
    """Remove private folders of runs that were killed more than a day ago."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*-*"):
        with contextlib.suppress(OSError, ValueError):
            status, pid = folder.lstat(), int(folder.name.removeprefix(SCRATCH).partition("-")[0])
            mine = status.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
            if mine and time.time() - status.st_mtime > _OLD and not psutil.pid_exists(pid):
                shutil.rmtree(folder, ignore_errors=True)


def describe_exit(returncode: int) -> str:
    """How a process ended that wrote no result, in words."""
    if returncode >= 0:
        return f"the process exited with code {returncode} before it had a result"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    hint = " (out of memory, or by hand)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"


def end_of_log(log: Path) -> str:
    """The end of a cell's output, on one line."""
    try:
        with _open_regular(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_TAIL))
            text = file.read(_LOG_TAIL).decode(errors="replace")
    except OSError:
        return ""
    lines = [printable(line.strip()) for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    fatal = [i for i, line in enumerate(lines) if line.startswith("Fatal Python error")]
    text = " | ".join(lines[fatal[-1] : fatal[-1] + 6] if fatal else lines[-3:])
    return f"; its last output was: {text[:400]}"


def _open_regular(log: Path) -> BinaryIO:
    """Open a log that a method may have replaced by a link or a pipe: ``OSError``, without waiting, if it did."""
    handle = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{log} is not a regular file")
    return os.fdopen(handle, "rb")
