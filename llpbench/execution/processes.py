"""Process trees: children that end with their parent, adopted orphans, killing and measuring a whole tree."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection
from typing import NoReturn

import psutil

from llpbench.execution.kernel import prctl

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ROUNDS = 50
SHOW_STACKS = signal.SIGUSR1
"""Makes the process of a method print the stacks of its threads."""


def fork(function: Callable[[], object]) -> int:
    """Call a function in a forked child with a process group of its own; returns the child's process id.

    The child ends with the exit code that Python would give it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backends warn of forks after threads; none runs where this is called
        pid = os.fork()
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    if not pid:
        _run_and_exit(function)
    return pid


def _run_and_exit(function: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        function()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, int):
            code = end.code & 0xFF
        elif end.code is None:
            code = 0
        else:
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def print_to(path: str | os.PathLike[str], flags: int = 0) -> None:
    """Send standard output and errors of this process to a file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)


def die_with_parent() -> None:
    """Have this process killed when its parent dies: by the kernel (Linux) or, within a second, by a thread."""
    if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux), so that they can be found and killed."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(pid: int) -> list[psutil.Process]:
    """All processes below one; empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def children() -> set[int]:
    """The processes that this one started or adopted."""
    return {process.pid for process in psutil.Process().children()}


def end_tree(pid: int) -> None:
    """Kill a process with its group and all its descendants, also those that left the group."""
    below = descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for process in below:
        with contextlib.suppress(psutil.Error):
            process.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def show_stacks(judge: int) -> None:
    """Make the method of a cell print where it is. Its judge is stopped first, and must be killed afterwards."""
    with contextlib.suppress(psutil.Error, OSError):
        process = psutil.Process(judge)
        process.suspend()
        for method in process.children():
            method.send_signal(SHOW_STACKS)


def end_children(keep: Collection[int] = ()) -> None:
    """Kill the children of this process, except ``keep``, with all their descendants, until none is left."""
    for _ in range(_ROUNDS):
        left = children().difference(keep)
        for pid in left:
            end_tree(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if not left:
            return
        time.sleep(0.02)


def memory_mb(pid: int) -> float:
    """Resident memory of a cell in MiB: the larger of its judge and of all processes below it; 0 if it has ended.

    Not their sum: both are forked from one server and share its pages, which would count twice.
    """
    try:
        judge = psutil.Process(pid)
    except psutil.Error:
        return 0.0
    return max(_resident(judge), sum(map(_resident, descendants(pid))))


def _resident(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return float(process.memory_info().rss) / 2**20
    return 0.0
