"""Reading a file of a results folder: a regular file of a sensible size, or an error that says what it is.

A results folder may come from anywhere. A pipe would make the reader wait for ever, a device would fill its memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

RESULT_BYTES = 64 << 20
MANIFEST_BYTES = 1 << 30
OTHER_BYTES = 4 << 30


def read_regular(path: Path, most: int = RESULT_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, is no regular file, or holds more than ``most`` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(f"too large ({size:,} bytes)")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"too large (more than {most:,} bytes)")
    return data


def open_regular(path: Path, *, links: bool = True) -> BinaryIO:
    """Open a regular file for reading; anything else raises an error without blocking.

    Args:
        path: where it lies.
        links: whether a symbolic link to a file will do.

    Raises:
        OSError: it cannot be opened or is no regular file.
    """
    flags = ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", *(() if links else ("O_NOFOLLOW",)))
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise OSError(f"not a regular file but {_kind(mode)}")
    return os.fdopen(handle, "rb")


def is_odd(path: Path) -> bool:
    """Whether the path exists but is neither a file nor a link to one."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return path.is_symlink()


def _kind(mode: int) -> str:
    names = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in names if test(mode)), "a device")
