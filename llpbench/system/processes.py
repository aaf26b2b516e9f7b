"""Processes that belong together: how they start, end with the parent, take in orphans, end as a whole tree."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import site
import sys
import time

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ROUNDS = 50


def python() -> list[str]:
    """How to start another Python like this one, which takes no module from the working directory.

    Nor one from the user's own packages, unless this process has them too: llpbench or a plugin may be installed there.
    """
    return [sys.executable, "-P", *([] if site.getusersitepackages() in sys.path else ["-s"])]


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux), so that they can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(pid: int) -> list[psutil.Process]:
    """All processes under one; none when it is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


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


def end_descendants() -> None:
    """Kill all that is under this process, again until nothing is left, and take their exit codes."""
    for _ in range(_ROUNDS):
        below = descendants(os.getpid())
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
        reap_all()
        if not below:
            return
        time.sleep(0.02)


def reap_all() -> None:
    """Take the exit codes of all children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def memory_mb(pid: int) -> float:
    """Resident memory in MiB of a cell: its judge, or all other processes together, whichever is more; 0 when gone.

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


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            zero = ctypes.c_ulong(0)
            ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)
