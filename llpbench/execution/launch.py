"""Two ways to start a cell's process: fork it from a prepared server (Linux), or start Python anew.

A server is kept for each backend, because a backend is chosen by the environment before it is imported. All three
backends were found to train correctly after a fork from a server that started no device; where fork is not to be
had or not safe (macOS, Windows), cells are spawned, and ``doctor`` says so.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import msgspec

from llpbench.contracts.job import Job
from llpbench.execution.fork_server import Event, Request
from llpbench.results.store import Store

FORK_IS_SAFE = sys.platform == "linux"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PRELOAD = (
    "numpy",
    "scipy.special",
    "scipy.stats",
    "sklearn.metrics",
    "pandas",
    "llpbench.execution.worker",
    "llpbench.datafiles.store",
)


class Launcher(Protocol):
    """Starts cells and tells when their processes end."""

    def start(self, job: Job, cores: list[int]) -> int:
        """Start a cell on the given cores; returns its process id."""
        ...

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Pairs (process id, exit code) of processes that ended; waits up to ``seconds`` for one."""
        ...

    def close(self) -> None:
        """Stop what was started."""
        ...


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
    """One fork server and the cells it started."""

    def __init__(self, job: Job, preload: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "llpbench.execution.fork_server", str(theirs.fileno()), *preload]
        self.process = subprocess.Popen(
            command,
            env=cell_environment(job),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        self.connection = ours
        self.running: set[int] = set()
        self._started: dict[str, int] = {}
        self._pending = b""
        self._events: list[Event] = []

    def start(self, request: Request) -> int:
        """Ask for a cell and wait for its process id."""
        self.connection.sendall(msgspec.json.encode(request) + b"\n")
        cell_id = request.job.cell.id
        while cell_id not in self._started:
            self._receive()
        return self._started.pop(cell_id)

    def ended(self) -> list[tuple[int, int]]:
        """Exit codes that have arrived; if the server itself died, its cells are lost with it."""
        if select.select([self.connection], [], [], 0)[0]:
            try:
                self._receive()
            except ConnectionError:
                lost = [(pid, -9) for pid in self.running]
                self.running.clear()
                return lost
        events, self._events = self._events, []
        return [(event.pid, event.code) for event in events if event.code is not None]

    def _receive(self) -> None:
        data = self.connection.recv(1 << 16)
        if not data:
            words = self.process.stderr.read().decode(errors="replace").strip() if self.process.stderr else ""
            raise ConnectionError(f"the fork server ended: {words[-400:]}")
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            event = msgspec.json.decode(line, type=Event)
            if event.code is None:
                self.running.add(event.pid)
                self._started[event.id] = event.pid
            else:
                self.running.discard(event.pid)
                self._events.append(event)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """Hang up; the server kills its cells and ends."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


class ForkLauncher:
    """Cells forked from a server per backend."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, int, tuple[str, ...]], _Server] = {}

    def start(self, job: Job, cores: list[int]) -> int:
        """Fork a cell from the server of its backend (started on first use, and again should it have died)."""
        key = (job.cell.backend, job.threads, job.preload)
        server = self._servers.get(key)
        if server is None or not server.alive:
            if server is not None:
                server.close()
            server = self._servers[key] = _Server(job, (*_PRELOAD, *job.preload))
        return server.start(Request(job, cores))

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Exit codes from all servers."""
        sockets = [s.connection for s in self._servers.values()]
        if sockets:
            select.select(sockets, [], [], seconds)
        return [pair for server in self._servers.values() for pair in server.ended()]

    def close(self) -> None:
        """End all servers."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()


class SpawnLauncher:
    """Cells as fresh Python processes: slower to start, works everywhere."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, job: Job, cores: list[int]) -> int:
        """Start ``python -m llpbench.execution.worker`` with the job on its standard input."""
        log = Store(Path(job.out)).log_path(job.cell.id)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "llpbench.execution.worker"],
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

    def ended(self, seconds: float) -> list[tuple[int, int]]:
        """Exit codes of processes that are gone."""
        import time

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
        from llpbench.execution.watch import kill_group

        for pid, process in self._processes.items():
            kill_group(pid)
            process.wait()
        self._processes.clear()
