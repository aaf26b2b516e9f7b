"""Two ways to start a cell's process: fork it from a prepared server (Linux), or start a new Python.

There is a server for each backend, because a backend is chosen by the environment before it is imported. All three
backends train correctly after a fork from a server that started no device. Where forking is not available or not safe
(macOS, Windows), cells are spawned; ``doctor`` shows which of the two is used.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import msgspec
import psutil

from llpbench.contracts.errors import printable
from llpbench.contracts.job import Job
from llpbench.execution.channel import InvalidMessage, connection_pair, receive, send
from llpbench.execution.fork_server import ForkEvent, ForkRequest
from llpbench.execution.kernel import LINUX
from llpbench.execution.processes import end_tree
from llpbench.results.store import Store
from llpbench.system.machine import python_command

log = logging.getLogger("llpbench")
FORK_IS_SAFE = LINUX
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_MOST_STARTS = 3  # servers that may end under a cell before the cell counts as crashed
_PRELOAD = (
    "numpy",
    "psutil",
    "scipy.special",
    "scipy.stats",
    "sklearn.metrics",
    "pandas",
    "llpbench.execution.worker",
    "llpbench.execution.method_start",
    "llpbench.execution.method_main",
    "llpbench.data.store",
)


def cell_environment(job: Job) -> dict[str, str]:
    """The environment variables of a cell: its backend and its number of threads."""
    environment = dict(os.environ)
    environment.update({name: str(job.threads) for name in _THREAD_VARIABLES})
    environment["TF_CPP_MIN_LOG_LEVEL"] = environment.get("TF_CPP_MIN_LOG_LEVEL", "2")
    environment["TF_ENABLE_ONEDNN_OPTS"] = "0"  # the same sums in the same order on every run
    environment["PYTHONHASHSEED"] = "0"
    if job.cell.backend:
        environment["KERAS_BACKEND"] = job.cell.backend
    return environment


class _ForkServer:
    """A fork server's process and the connection to it."""

    def __init__(self, job: Job) -> None:
        self.connection, theirs = connection_pair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        arguments = [str(theirs.fileno()), *_PRELOAD, *job.preload]
        with theirs:
            self.process = subprocess.Popen(
                [*python_command(), "-m", "llpbench.execution.fork_server", *arguments],
                env=cell_environment(job),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._output,
                start_new_session=True,
            )
        self._closed = False

    def request(self, request: ForkRequest) -> None:
        """Ask for a cell."""
        try:
            send(self.connection, request)
        except OSError:
            self._closed = True

    def events(self) -> list[ForkEvent]:
        """The events that have arrived."""
        events = []
        try:
            while not self._closed and self.connection.poll():
                events.append(receive(self.connection, ForkEvent))
        except (EOFError, OSError, InvalidMessage):
            self._closed = True
        return events

    @property
    def alive(self) -> bool:
        """Whether it runs: neither ended nor stopped by a signal."""
        if self._closed or self.process.poll() is not None:
            return False
        try:
            return psutil.Process(self.process.pid).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

    def close(self, seconds: float = 5.0) -> str:
        """End it with all its cells; returns the end of what it printed."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        if self.process.poll() is None:
            end_tree(self.process.pid)
            self.process.wait()
        with self._output:
            self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - 400))
            return self._output.read().decode(errors="replace").strip()


@dataclass
class _ForkedCell:
    """A cell, its server and, once forked, its process."""

    job: Job
    cores: list[int]
    server: _ForkServer
    pid: int | None = None
    starts: int = 1


class ForkLauncher:
    """Cells forked from a server per backend. If a server ends or is stopped, it is replaced and its cells restart."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, int, tuple[str, ...]], _ForkServer] = {}
        self._cells: dict[int, _ForkedCell] = {}
        self._lost: list[tuple[int, int]] = []
        self._numbers = itertools.count(1)

    def start(self, job: Job, cores: list[int]) -> int:
        """Fork a cell from the server of its backend, which is started on first use."""
        number = next(self._numbers)
        cell = _ForkedCell(job, cores, self._server_for(job))
        self._cells[number] = cell
        cell.server.request(ForkRequest(number, job, cores))
        return number

    def _server_for(self, job: Job) -> _ForkServer:
        key = (job.cell.backend, job.threads, job.preload)
        if key not in self._servers:
            self._servers[key] = _ForkServer(job)
        return self._servers[key]

    def pid(self, number: int) -> int | None:
        """The process of a cell; None until its server has forked it."""
        cell = self._cells.get(number)
        return cell.pid if cell else None

    def drop(self, number: int) -> None:
        """Give up a cell that its server does not start: the server is replaced."""
        cell = self._cells.pop(number, None)
        if cell is not None:
            self._lost.append((number, -signal.SIGKILL))
            self._replace(cell.server)

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Numbers and exit codes of cells that have ended; waits up to ``seconds`` for the first."""
        codes, self._lost = self._lost, []
        if self._servers and not codes:
            wait([server.connection for server in self._servers.values()], seconds)
        for server in list(self._servers.values()):
            for event in server.events():
                if event.code is not None:
                    if self._cells.pop(event.number, None):
                        codes.append((event.number, event.code))
                elif event.number in self._cells:
                    self._cells[event.number].pid = event.pid
            if not server.alive:
                self._replace(server)
        return codes

    def _replace(self, server: _ForkServer) -> None:
        """End a server and restart its cells, except those that several servers ended under."""
        self._servers = {key: other for key, other in self._servers.items() if other is not server}
        printed = server.close(seconds=0.0)
        cells = {number: cell for number, cell in self._cells.items() if cell.server is server}
        if cells:
            log.warning("a fork server ended%s; restarting its cells", f" ({printable(printed)})" if printed else "")
        for number, cell in cells.items():
            if cell.pid is not None:
                end_tree(cell.pid)
            if cell.starts >= _MOST_STARTS:
                del self._cells[number]
                self._lost.append((number, -signal.SIGKILL))
                continue
            cell.server, cell.pid, cell.starts = self._server_for(cell.job), None, cell.starts + 1
            cell.server.request(ForkRequest(number, cell.job, cell.cores))

    def close(self) -> None:
        """End all servers and cells."""
        for server in self._servers.values():
            server.close()
        for cell in self._cells.values():
            if cell.pid is not None:
                end_tree(cell.pid)
        self._servers.clear()
        self._cells.clear()


class SpawnLauncher:
    """Cells as new Python processes: slower to start, works everywhere. A cell's number is its process id."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, job: Job, cores: list[int]) -> int:
        """Start ``python -m llpbench.execution.worker`` with the job on its standard input."""
        with Store(Path(job.out)).log_path(job.cell.id).open("wb") as output:
            process = subprocess.Popen(
                [*python_command(), "-X", "faulthandler", "-m", "llpbench.execution.worker"],
                env=cell_environment(job),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        # From outside, not by code between fork and exec: that would fork a parent that may have many threads.
        with contextlib.suppress(ProcessLookupError):
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cores)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(job))
            process.stdin.close()
        self._processes[process.pid] = process
        return process.pid

    def pid(self, number: int) -> int | None:
        """The process of a cell."""
        return number

    def drop(self, number: int) -> None:
        """Never called: a cell has its process from the start."""

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Numbers and exit codes of cells that have ended; waits up to ``seconds`` for the first."""
        deadline = time.monotonic() + seconds
        while True:
            codes = [(pid, p.returncode) for pid, p in self._processes.items() if p.poll() is not None]
            if codes or time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        for pid, _ in codes:
            del self._processes[pid]
        return codes

    def close(self) -> None:
        """Kill all cells that still run."""
        for pid, process in self._processes.items():
            end_tree(pid)
            process.wait()
        self._processes.clear()


Launcher = ForkLauncher | SpawnLauncher
"""Starts cells and reports when they end."""


def make_launcher(start: str) -> Launcher:
    """The launcher for ``fork`` or ``spawn``; where neither is given, the one that suits the system."""
    start = start or ("fork" if FORK_IS_SAFE else "spawn")
    return ForkLauncher() if start == "fork" else SpawnLauncher()
