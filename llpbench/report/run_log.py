"""The log of a results folder: what ran when, in plain lines that outlive the terminal.

``run.log`` lies beside the manifest. Every run on the folder appends to it: the command and the versions, each cell as
it ends, notes and warnings, how the run ended. It is there to be read; nothing depends on it, so a log that cannot be
written is no error. It never grows beyond ``MOST_BYTES``: then its older half goes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench import __version__
from llpbench.contracts.errors import printable
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult
from llpbench.report.progress import describe_result, duration, stamp
from llpbench.results.metric_style import MetricStyle
from llpbench.system.files import write_atomically

if TYPE_CHECKING:
    from llpbench.execution.driver import View

NAME = "run.log"
MOST_BYTES = 4 << 20


class RunLog:
    """A text file that lines are appended to; several processes may do so at once."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path, self.most_bytes = folder / NAME, most_bytes

    def write(self, text: str) -> None:
        """Append a text with the time and the process before each of its lines; what fails is left out."""
        lines = [line for line in printable(text, lines=True).splitlines() if line.strip()]
        head = f"{stamp()} [{os.getpid()}]"
        data = "".join(f"{head} {line}\n" for line in lines).encode(errors="replace")
        with contextlib.suppress(OSError):
            if self._append(data) > self.most_bytes:
                self._shorten()

    def _append(self, data: bytes) -> int:
        """Append, and give the size; a link, a pipe or a device in its place is refused without waiting."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY"):
            flags |= getattr(os, name, 0)
        handle = os.open(self.path, flags, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("not a regular file")
            os.write(handle, data)
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def _shorten(self) -> None:
        """Keep the newer half, from the beginning of a line."""
        tail = self.path.read_bytes()[-self.most_bytes // 2 :]
        write_atomically(self.path, b"(older lines were dropped)\n" + tail.partition(b"\n")[2])


class LoggedView:
    """Passes all on to another view, and writes it to the log of the folder."""

    def __init__(self, view: View, folder: Path, metric: MetricStyle, command: str) -> None:
        self.view, self.log, self.metric = view, RunLog(folder), metric
        self.shows_progress = bool(getattr(view, "shows_progress", True))
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._ended = False
        self.log.write(f"start: {command}")
        self.log.write(f"llpbench {__version__}, Python {platform.python_version()}, {platform.platform()}")

    def begin(self, total: int, kept: int) -> None:
        """Write how much there is to do."""
        self.log.write(f"{total} cells, {kept} already done")
        self.view.begin(total, kept)

    def started(self, job: Job) -> None:
        """Pass it on."""
        self.view.started(job)

    def finished(self, result: CellResult) -> None:
        """Write how the cell ended."""
        self._counts[result.status] += 1
        self.log.write(f"{result.id} {describe_result(result, self.metric)}")
        self.view.finished(result)

    def warn(self, message: str) -> None:
        """Write the warning."""
        self.log.write(f"warning: {message}")
        self.view.warn(message)

    def note(self, message: str) -> None:
        """Write the sentence."""
        self.log.write(message)
        self.view.note(message)

    def end(self) -> None:
        """Write how the run ended, once."""
        self.view.end()
        if not self._ended:
            self._ended = True
            counts = ", ".join(f"{n} {status}" for status, n in self._counts.items()) or "no cell was run"
            self.log.write(f"end: {counts}, after {duration(time.monotonic() - self._began)}")
