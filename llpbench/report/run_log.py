"""The log of a results folder: what ran when, in plain lines that outlive the terminal.

``run.log`` lies beside the manifest. Every run on the folder appends to it: the command and the versions, each cell as
it ends, notes and warnings, how the run ended. Nothing depends on it, so a log that cannot be written is not an error.
When it exceeds ``MOST_BYTES``, its older half is removed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections import Counter
from pathlib import Path

from llpbench import __version__
from llpbench.contracts.errors import printable
from llpbench.contracts.result import CellResult
from llpbench.contracts.view import View
from llpbench.report.progress import describe_result, duration, stamp
from llpbench.results.metric_style import MetricStyle
from llpbench.system.files import write_atomically

NAME = "run.log"
MOST_BYTES = 4 << 20


class RunLog(View):
    """A text file that a run is written to as it happens; several processes may append at once."""

    def __init__(self, folder: Path, metric: MetricStyle | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.path, self.metric, self.most_bytes = folder / NAME, metric, most_bytes
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()

    def start(self, command: object) -> None:
        """Write the command and the versions."""
        self.write(f"start: {command}")
        self.write(f"llpbench {__version__}, Python {platform.python_version()}, {platform.platform()}")

    def begin(self, total: int, kept: int) -> None:
        """Write how much there is to do."""
        self.write(f"{total} cells, {kept} already done")

    def finished(self, result: CellResult) -> None:
        """Write how the cell ended."""
        self._counts[result.status] += 1
        self.write(f"{result.id} {describe_result(result, self.metric)}")

    def warn(self, message: str) -> None:
        """Write the warning."""
        self.write(f"warning: {message}")

    def note(self, message: str) -> None:
        """Write the sentence."""
        self.write(message)

    def end(self) -> None:
        """Write how the run ended."""
        counts = ", ".join(f"{n} {status}" for status, n in self._counts.items()) or "no cell was run"
        self.write(f"end: {counts}, after {duration(time.monotonic() - self._began)}")

    def write(self, text: str) -> None:
        """Append a text with the time and the process before each of its lines; what fails is left out."""
        lines = [line for line in printable(text, lines=True).splitlines() if line.strip()]
        head = f"{stamp()} [{os.getpid()}]"
        data = "".join(f"{head} {line}\n" for line in lines).encode(errors="replace")
        with contextlib.suppress(OSError):
            if self._append(data) > self.most_bytes:
                self._shorten()

    def _append(self, data: bytes) -> int:
        """Append, and give the size."""
        with self.path.open("ab") as file:
            file.write(data)
            return file.tell()

    def _shorten(self) -> None:
        """Keep the newer half, from the beginning of a line."""
        tail = self.path.read_bytes()[-self.most_bytes // 2 :]
        write_atomically(self.path, b"(older lines were dropped)\n" + tail.partition(b"\n")[2])
