"""A server that has the heavy imports done and forks the judge of each cell, which forks the method's process.

It only imports: no device and no thread pool is started before a fork, so a child behaves like a fresh process but is
ready in a tenth of a second. It never loads data, so no label is in the memory of what it forks. When the other end of
its connection closes, the server kills everything below it and exits.

``multiprocessing``'s forkserver has one environment for all children (a backend of Keras is chosen by the environment),
imports the user's ``__main__`` again in each child, and leaves the children of a killed child running.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import signal
import sys
import warnings
from importlib.metadata import distribution
from multiprocessing.connection import Connection, wait
from pathlib import Path

import msgspec

from llpbench.contracts.job import Job
from llpbench.execution.channel import FROM_THE_JUDGE, receive, send
from llpbench.execution.processes import adopt_orphans, die_with_parent, end_children, fork, print_to

_LIBRARIES = frozenset(
    ("numpy", "scipy", "pandas", "sklearn", "numba", "psutil", "keras", "jax", "jaxlib", "tensorflow", "torch")
)


class ForkRequest(msgspec.Struct):
    """Run a job on the given cores; events about it carry its number."""

    number: int
    job: Job
    cores: list[int]


class ForkEvent(msgspec.Struct, omit_defaults=True):
    """A cell was started (``code`` is None) or has ended (its exit code, negative for a signal)."""

    number: int
    pid: int
    code: int | None = None


def preloadable(modules: list[str]) -> list[str]:
    """The modules that the server imports: those of well-known libraries and those that ship with llpbench.

    Judges are forked from the server, so code of a third-party method must not be imported here.
    """
    shipped = {entry.module.partition(".")[0] for entry in distribution("llpbench").entry_points}
    return [module for module in modules if module.partition(".")[0] in _LIBRARIES | shipped]


def serve(connection: Connection, preload: list[str]) -> None:
    """Import the ``preloadable`` modules, then fork a judge for each request until the connection closes."""
    for name in preloadable(preload):
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")  # a cell that needs the module reports the failure itself
            importlib.import_module(name)
    _fill_caches()
    gc.collect()
    gc.freeze()  # keep the collector off shared pages, so that children do not copy them

    adopt_orphans()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    judges: dict[int, int] = {}
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            ready = wait([connection, wake_read])
            if wake_read in ready:
                os.read(wake_read, 4096)
                for event in _reap(judges):
                    send(connection, event)
            if connection in ready:
                request = receive(connection, ForkRequest, FROM_THE_JUDGE)
                pid = _fork(request, connection, (wake_read, wake_write))
                judges[pid] = request.number
                send(connection, ForkEvent(request.number, pid))
    end_children()


def _fill_caches() -> None:
    """Compute what every cell needs, once."""
    from llpbench.plugins.fingerprint import code_folders
    from llpbench.plugins.registry import shared_registry
    from llpbench.system.machine import machine_id

    machine_id()
    with contextlib.suppress(Exception):
        shared_registry((), ())
        code_folders()


def _reap(judges: dict[int, int]) -> list[ForkEvent]:
    """Events for the judges that have ended. What a killed judge left behind is now below this process: kill it."""
    events = []
    for pid in list(judges):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            events.append(ForkEvent(judges.pop(pid), pid, os.waitstatus_to_exitcode(status)))
    if any(event.code for event in events):
        end_children(keep=judges)
    return events


def _fork(request: ForkRequest, connection: Connection, wake: tuple[int, int]) -> int:
    def child() -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.close()
        for handle in wake:
            os.close(handle)
        die_with_parent()
        if request.cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, request.cores)
        run_judge(request.job)

    return fork(child)


def run_judge(job: Job) -> None:
    """Run the cell as its judge, whose output goes into the cell's log file."""
    from llpbench.execution.worker import run_as_process, trouble_reported
    from llpbench.results.store import Store

    with trouble_reported():
        print_to(Store(Path(job.out)).log_path(job.cell.id), os.O_TRUNC)
    faulthandler.enable()
    run_as_process(job, fork=True)


def main() -> None:
    """Serve the connection whose file descriptor is the first argument; preload the modules that follow."""
    die_with_parent()
    serve(Connection(int(sys.argv[1])), sys.argv[2:])


if __name__ == "__main__":
    main()
