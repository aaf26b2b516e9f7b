"""Two ways to start a cell's process: fork it from a prepared server (Linux), or start Python anew.

A server is kept for each backend, because a backend is chosen by the environment before it is imported. All three
backends were found to train correctly after a fork from a server that started no device; where fork is not to be
had or not safe (macOS, Windows), cells are spawned, and ``doctor`` says so.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from llpbench.contracts.errors import printable
from llpbench.contracts.job import Job
from llpbench.execution.fork_server import Event, Request
from llpbench.results.store import Store
from llpbench.system.processes import end_tree, python

log = logging.getLogger("llpbench")
FORK_IS_SAFE = sys.platform == "linux"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_ANSWER = 10.0  # seconds for a request to be taken by a server's socket
_TRIES = 3  # servers that may end under a cell before it is given up
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
    """The environment of a cell: its backend, and as many threads as it was given."""
    environment = dict(os.environ)
    environment.update({name: str(job.threads) for name in _THREAD_VARIABLES})
    environment["TF_CPP_MIN_LOG_LEVEL"] = environment.get("TF_CPP_MIN_LOG_LEVEL", "2")
    environment["TF_ENABLE_ONEDNN_OPTS"] = "0"  # the same sums in the same order on every run
    environment["PYTHONHASHSEED"] = "0"
    if job.cell.backend:
        environment["KERAS_BACKEND"] = job.cell.backend
    return environment


class _Server:
    """One fork server and the cells it was asked for."""

    def __init__(self, job: Job, preload: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        command = [*python(), "-m", "llpbench.execution.fork_server", str(theirs.fileno()), *preload]
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self.process = subprocess.Popen(
            command,
            env=cell_environment(job),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._words,
            start_new_session=True,
        )
        theirs.close()
        self.connection = ours
        self.connection.settimeout(_ANSWER)
        self.pids: dict[int, int | None] = {}
        self._pending = b""
        self._gone = False

    def start(self, request: Request) -> None:
        """Ask for a cell."""
        self.pids[request.number] = None
        try:
            self.connection.sendall(msgspec.json.encode(request) + b"\n")
        except OSError:
            self._gone = True

    def ended(self) -> list[tuple[int, int]]:
        """Exit codes that have arrived."""
        codes = []
        while not self._gone and select.select([self.connection], [], [], 0)[0]:
            try:
                data = self.connection.recv(1 << 16)
            except OSError:
                data = b""
            self._gone = not data
            *lines, self._pending = (self._pending + data).split(b"\n")
            for line in lines:
                event = msgspec.json.decode(line, type=Event)
                if event.code is None:
                    self.pids[event.number] = event.pid
                elif self.pids.pop(event.number, None) is not None:
                    codes.append((event.number, event.code))
        return codes

    @property
    def well(self) -> bool:
        """Whether it runs: not ended, not stopped by a signal."""
        if self._gone or self.process.poll() is not None:
            return False
        try:
            return psutil.Process(self.process.pid).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

    def close(self, seconds: float = 5.0) -> str:
        """End it with all its cells; returns the last words it printed."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        if self.process.poll() is None:
            end_tree(self.process.pid)
            self.process.wait()
        for pid in self.pids.values():
            if pid is not None:
                end_tree(pid)
        with self._words:
            self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - 400))
            return self._words.read().decode(errors="replace").strip()


@dataclass
class _Asked:
    """A cell, the server it was asked of, and how often."""

    request: Request
    server: _Server
    tries: int = 1


class ForkLauncher:
    """Cells forked from a server per backend. A server that ends or is stopped is replaced, its cells start again."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, int, tuple[str, ...]], _Server] = {}
        self._asked: dict[int, _Asked] = {}
        self._lost: list[tuple[int, int]] = []
        self._numbers = itertools.count(1)

    def start(self, job: Job, cores: list[int]) -> int:
        """Fork a cell from the server of its backend (started on first use)."""
        request = Request(next(self._numbers), job, cores)
        server = self._server_for(job)
        self._asked[request.number] = _Asked(request, server)
        server.start(request)
        return request.number

    def _server_for(self, job: Job) -> _Server:
        key = (job.cell.backend, job.threads, job.preload)
        if key not in self._servers:
            self._servers[key] = _Server(job, (*_PRELOAD, *job.preload))
        return self._servers[key]

    def pid(self, number: int) -> int | None:
        """The process of a cell; None while its server has not forked it."""
        asked = self._asked.get(number)
        return asked.server.pids.get(number) if asked else None

    def drop(self, number: int) -> None:
        """Give up a cell that its server does not start: the server is replaced."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            self._lost.append((number, -signal.SIGKILL))
            asked.server.pids.pop(number, None)
            self._replace(asked.server)

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Exit codes from all servers."""
        lost, self._lost = self._lost, []
        sockets = [s.connection for s in self._servers.values()]
        if sockets and not lost:
            select.select(sockets, [], [], seconds)
        codes = [pair for server in self._servers.values() for pair in server.ended()]
        for number, _ in codes:
            self._asked.pop(number, None)
        for server in [s for s in self._servers.values() if not s.well]:
            self._replace(server)
        return lost + codes

    def _replace(self, server: _Server) -> None:
        """End a server; its cells are not to blame and start again, unless several servers ended under them."""
        self._servers = {key: other for key, other in self._servers.items() if other is not server}
        words = server.close(seconds=0.0)
        numbers = [number for number, asked in self._asked.items() if asked.server is server]
        if numbers:
            log.warning("a fork server ended%s; its cells start again", f" ({printable(words)})" if words else "")
        for number in numbers:
            asked = self._asked[number]
            if asked.tries >= _TRIES:
                del self._asked[number]
                self._lost.append((number, -signal.SIGKILL))
                continue
            asked.server, asked.tries = self._server_for(asked.request.job), asked.tries + 1
            asked.server.start(asked.request)

    def close(self) -> None:
        """End all servers."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        self._asked.clear()


class SpawnLauncher:
    """Cells as fresh Python processes: slower to start, works everywhere. A cell's number is its process id."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, job: Job, cores: list[int]) -> int:
        """Start ``python -m llpbench.execution.worker`` with the job on its standard input."""
        printed = Store(Path(job.out)).log_path(job.cell.id)
        with printed.open("wb") as output:
            process = subprocess.Popen(
                [*python(), "-X", "faulthandler", "-m", "llpbench.execution.worker"],
                env=cell_environment(job),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        # From outside, not by code between fork and exec: that would fork a parent that may be full of threads.
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
        """Never needed: a cell has its process from the start."""

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Exit codes of processes that are gone."""
        deadline = time.monotonic() + seconds
        while True:
            done = [(pid, p.returncode) for pid, p in self._processes.items() if p.poll() is not None]
            if done or time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        for pid, _ in done:
            del self._processes[pid]
        return done

    def close(self) -> None:
        """Kill what still runs."""
        for pid, process in self._processes.items():
            end_tree(pid)
            process.wait()
        self._processes.clear()
