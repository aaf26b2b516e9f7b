"""A server that has the heavy imports done and forks the judge of each cell, which forks the method's process.

It imports, it never computes: no device, no thread pool is started before a fork, so each child is as good as a
fresh process but ready in a tenth of a second. It never loads data, so no label is in what it forks. Requests and
events are JSON lines over a socket; when the other end of the socket closes, the server kills all below it and goes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import warnings
from pathlib import Path

import msgspec
import psutil

from llpbench.contracts.job import Job
from llpbench.system.processes import adopt_orphans, die_with_parent, end_descendants, end_tree

PRELOADED = (
    *("llpbench", "llpbench_methods", "llpbench_datasets"),
    *("numpy", "scipy", "pandas", "sklearn", "numba", "psutil", "keras", "jax", "jaxlib", "tensorflow", "torch"),
)
"""The packages that are imported here. Judges are forked from here: no module of somebody's method may be in them."""
_SWEEP, _SWEEP_PAUSE = 5.0, 0.1  # seconds in which orphans of a killed cell are looked for, and between two looks


class Request(msgspec.Struct):
    """Run a job on the given cores; events about it carry its number."""

    number: int
    job: Job
    cores: list[int]


class Event(msgspec.Struct, omit_defaults=True):
    """A cell was started (``code`` is None) or has ended (its exit code, negative for a signal)."""

    number: int
    pid: int
    code: int | None = None


def serve(connection: socket.socket, preload: list[str]) -> None:
    """Import those modules of ``preload`` that are of well-known packages, then fork until the connection closes."""
    for name in [module for module in preload if module.partition(".")[0] in PRELOADED]:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")  # a cell that needs the module reports the failure itself
            importlib.import_module(name)
    from llpbench.execution.registries import shared_registry
    from llpbench.plugins.fingerprint import code_folders
    from llpbench.system.machine import machine_id

    machine_id()
    with contextlib.suppress(Exception):
        shared_registry((), ())
        code_folders()
    gc.collect()
    gc.freeze()  # keep the collector off shared pages, so that children do not copy them

    adopt_orphans()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    children: dict[int, int] = {}
    sweep_until = 0.0
    pending = b""
    while True:
        sweeping = time.monotonic() < sweep_until
        ready, _, _ = select.select([connection.fileno(), wake_read], [], [], _SWEEP_PAUSE if sweeping else None)
        if sweeping:
            _end_orphans(children)
        if wake_read in ready:
            os.read(wake_read, 4096)
            for event in _reap(children):
                connection.sendall(msgspec.json.encode(event) + b"\n")
                sweep_until = time.monotonic() + _SWEEP if event.code else sweep_until
        if connection.fileno() in ready:
            data = connection.recv(1 << 16)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                request = msgspec.json.decode(line, type=Request)
                pid = _fork(request, connection, (wake_read, wake_write))
                children[pid] = request.number
                connection.sendall(msgspec.json.encode(Event(request.number, pid)) + b"\n")
    end_descendants()


def _reap(children: dict[int, int]) -> list[Event]:
    events = []
    for pid in list(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            events.append(Event(children.pop(pid), pid, os.waitstatus_to_exitcode(status)))
    return events


def _end_orphans(children: dict[int, int]) -> None:
    """End what a killed judge left behind: children of this process that are no judges."""
    for process in psutil.Process().children():
        if process.pid not in children:
            end_tree(process.pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _fork(request: Request, connection: socket.socket, wake: tuple[int, int]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backends warn of forks after threads; none is running here
        pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    code = 70
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        connection.close()
        for handle in wake:
            os.close(handle)
        die_with_parent()
        if request.cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, request.cores)
        code = run_in_child(request.job)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def run_in_child(job: Job) -> int:
    """Run the cell as its judge, whose output goes into the cell's log file."""
    from llpbench.execution.worker import run_as_process
    from llpbench.results.store import Store

    handle = os.open(Store(Path(job.out)).log_path(job.cell.id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    faulthandler.enable()
    run_as_process(job, fork=True)
    return 0


def main() -> None:
    """Serve on the socket whose file number is the first argument; preload the modules that follow."""
    die_with_parent()
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])


if __name__ == "__main__":
    main()
