"""Calls of the Linux kernel that Python's standard library does not have. Elsewhere they fail."""

from __future__ import annotations

import contextlib
import ctypes
import sys

LINUX = sys.platform == "linux"
"""Whether the parts that need Linux are used: forked cells, the sandbox, signals when a parent ends."""


def syscall(number: int, *arguments: object) -> int:
    """The result of a system call; -1 if it failed or the system has none."""
    if LINUX:
        with contextlib.suppress(OSError, AttributeError):
            return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))
    return -1


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process; whether that succeeded."""
    if LINUX:
        with contextlib.suppress(OSError, AttributeError):
            zero = ctypes.c_ulong(0)
            return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)) == 0
    return False
