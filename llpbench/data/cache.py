"""The cache folder: where it is, and which files are known to be good."""

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
COMPILED = "compiled"
"""The part of the cache for machine code that methods compile; a method's process may write to no other part of it."""


def cache_root() -> Path:
    """The cache folder: ``LLPBENCH_CACHE``, else the platform's place for caches. It need not exist yet.

    What datasets keep in it (``data``, ``made``, ``checked``) a method's process may only read; what a method compiles
    goes to its folder ``compiled``.
    """
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
    """What lies at a path, compared with what should.

    Attributes:
        state: ``"ok"``, ``"missing"``, or ``"wrong"`` (other contents, not a file, unreadable).
        detail: one line that says what was found; empty when it is the file asked for.
    """

    state: Literal["ok", "missing", "wrong"]
    detail: str = ""


def inspect_file(path: Path, sha256: str, size: int, *, rehash: bool = False) -> Finding:
    """Compare the file at ``path`` with the expected checksum and size.

    A file that was found good leaves a stamp in the cache (its size, times and checksum), so that the next
    cell need not read gigabytes again. After any change to the file the stamp no longer counts.

    Args:
        path: the file.
        sha256: expected checksum.
        size: expected number of bytes.
        rehash: read the contents even if a stamp says that they are good.
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
        return Finding("missing", "not there")
    except OSError as error:
        return Finding("wrong", f"cannot be read: {error.strerror or error}")
    if found != sha256 or status.st_size != size:
        return Finding("wrong", f"sha256 {found} ({status.st_size:,} bytes)")
    _stamp(path, key)
    return Finding("ok")


def _stamp_path(path: Path) -> Path:
    return cache_root() / "checked" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]


def _stamped(path: Path, key: str) -> bool:
    try:
        return _stamp_path(path).read_text(encoding="utf-8", errors="replace") == key
    except OSError:
        return False


def _stamp(path: Path, key: str) -> None:
    with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
        write_atomically(_stamp_path(path), key.encode("utf-8", errors="replace"))
