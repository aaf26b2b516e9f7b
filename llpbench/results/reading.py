"""Reading a file of a results folder: a regular file of a sensible size, or an error that says what it is.

A results folder may come from anywhere. A pipe would make the reader wait for ever, a device would fill its memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

RESULT_BYTES = 64 << 20
MANIFEST_BYTES = 1 << 30
OTHER_BYTES = 4 << 30


def read_regular(path: Path, most: int = RESULT_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, is no regular file, or holds more than ``most`` bytes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(handle, "rb", closefd=True) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"not a regular file but {_kind(status.st_mode)}")
        if status.st_size > most:
            raise OSError(f"too large ({status.st_size:,} bytes)")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"too large (more than {most:,} bytes)")
    return data


def is_odd(path: Path) -> bool:
    """Whether something lies there that is neither a file nor a link to one."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return path.is_symlink()


def _kind(mode: int) -> str:
    names = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in names if test(mode)), "a device")
