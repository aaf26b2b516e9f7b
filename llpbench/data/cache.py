"""The cache: where it is, and which files are known to be valid."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llpbench.system.environment import CACHE
from llpbench.system.files import write_atomically

CACHE_VARIABLE = CACHE.name
COMPILED, METHODS = "compiled", "methods"
"""Machine code that methods compiled outside of the sandbox, and the caches of processes inside, by origin."""


def cache_root() -> Path:
    """The cache folder: ``LLPBENCH_CACHE``, or the platform's folder for caches. It may not exist yet."""
    given = CACHE.value
    if given:
        return Path(given).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("llpbench")).expanduser()


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Finding:
    """Whether a path holds the expected file; ``detail`` says what was found otherwise, in one line."""

    state: Literal["ok", "missing", "wrong"]
    detail: str = ""


def inspect_file(path: Path, sha256: str, size: int, *, rehash: bool = False) -> Finding:
    """Compare the file at ``path`` with the expected checksum and size.

    A verified file leaves a stamp in the cache (its size, times and checksum), so that the next cell need not read
    gigabytes again. Any change to the file invalidates the stamp, and ``rehash`` ignores it.
    """
    try:
        status = path.stat()
        if not path.is_file():
            return Finding("wrong", "is not a regular file")
        key = f"{path.absolute()}\n{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n{sha256}\n"
        if status.st_size == size and not rehash and _stamped(path, key):
            return Finding("ok")
        found = file_sha256(path)
    except (FileNotFoundError, NotADirectoryError):
        return Finding("missing", "not found")
    except OSError as error:
        return Finding("wrong", f"cannot be read: {error.strerror or error}")
    if found != sha256 or status.st_size != size:
        return Finding("wrong", f"sha256 {found} ({status.st_size:,} bytes)")
    with contextlib.suppress(OSError):  # a read-only cache only costs time
        write_atomically(_stamp_path(path), key.encode("utf-8", errors="replace"))
    return Finding("ok")


def _stamp_path(path: Path) -> Path:
    return cache_root() / "checked" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]


def _stamped(path: Path, key: str) -> bool:
    try:
        return _stamp_path(path).read_text(encoding="utf-8", errors="replace") == key
    except OSError:
        return False
