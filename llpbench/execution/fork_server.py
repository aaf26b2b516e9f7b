"""A server that has the heavy imports done and forks one process per cell.

It imports, it never computes: no device, no thread pool is started before a fork, so each child is as good as a
fresh process but ready in a tenth of a second. Requests and events are JSON lines over a socket; when the other
end of the socket closes, the server kills its children and goes.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import os
import select
import signal
import socket
import sys
import warnings
from pathlib import Path

import msgspec

from llpbench.contracts.job import Job

PR_SET_PDEATHSIG = 1


class Request(msgspec.Struct):
    """Run a job on the given cores."""

    job: Job
    cores: list[int]


class Event(msgspec.Struct, omit_defaults=True):
    """A child was started (``code`` is None) or has ended (its exit code, negative for a signal)."""

    id: str
    pid: int
    code: int | None = None


def serve(connection: socket.socket, preload: list[str]) -> None:
    """Import ``preload``, then fork on request until the connection closes."""
    for name in preload:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")  # a cell that needs the module reports the failure itself
            importlib.import_module(name)
    from llpbench.execution.worker import shared_registry
    from llpbench.system.machine import machine_id

    machine_id()
    with contextlib.suppress(Exception):
        shared_registry((), ())
    gc.collect()
    gc.freeze()  # keep the collector off shared pages, so that children do not copy them

    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    children: dict[int, str] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([connection.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            for event in _reap(children):
                connection.sendall(msgspec.json.encode(event) + b"\n")
        if connection.fileno() in ready:
            data = connection.recv(1 << 16)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                request = msgspec.json.decode(line, type=Request)
                pid = _fork(request, connection, (wake_read, wake_write))
                children[pid] = request.job.cell.id
                connection.sendall(msgspec.json.encode(Event(request.job.cell.id, pid)) + b"\n")
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _reap(children: dict[int, str]) -> list[Event]:
    events = []
    for pid in list(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            events.append(Event(children.pop(pid), pid, os.waitstatus_to_exitcode(status)))
    return events


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
    """Run the cell with its output in its log file; remove the log when it is empty."""
    from llpbench.execution.worker import choose_backend, run_job
    from llpbench.results.store import Store

    log = Store(Path(job.out)).log_path(job.cell.id)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    faulthandler.enable()
    choose_backend(job)
    run_job(job)
    sys.stdout.flush()
    sys.stderr.flush()
    if log.stat().st_size == 0:
        log.unlink()
    return 0


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve on the socket whose file number is the first argument; preload the modules that follow."""
    die_with_parent()
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])


if __name__ == "__main__":
    main()
