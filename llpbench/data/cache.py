"""The cache: where it is, which files are known to be valid, what it holds, and how to clean it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from llpbench.contracts.errors import StoreError, UnknownNameError
from llpbench.system.environment import CACHE
from llpbench.system.files import write_atomically

CACHE_VARIABLE = CACHE.name
COMPILED = "compiled"
"""The folder of the cache for machine code that methods compile; a method's process can write to no other."""
KINDS = {
    "data": "downloaded files; they are fetched again when needed",
    "made": "features and tables made from data files; they are computed again when needed",
    COMPILED: "machine code of methods; it is compiled again when needed",
    "checked": "which data files are verified; they are read again when needed",
}
"""The folders of the cache, and what it costs to lose each."""


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


class CacheFolder(msgspec.Struct, frozen=True, kw_only=True):
    """One folder (or file) of the cache: its number of files, and their size.

    ``meaning`` is empty if this version of llpbench does not use it. A symbolic ``link`` is neither followed nor
    cleaned.
    """

    kind: str
    path: str
    meaning: str
    files: int
    bytes: int
    link: bool


def cache_folders(root: Path | None = None) -> list[CacheFolder]:
    """The contents of the cache: the known folders first, then anything else in it. Links are not followed."""
    root = cache_root() if root is None else root
    there = {entry.name for entry in os.scandir(root)} if root.is_dir() else set()
    return [_folder(root / name) for name in (*KINDS, *sorted(there - set(KINDS)))]


def clean(kind: str, root: Path | None = None) -> CacheFolder:
    """Delete one folder of the cache; returns what was there.

    Raises:
        UnknownNameError: it is not one of ``KINDS``.
        StoreError: it is a symbolic link, or cannot be removed.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of cache", kind, KINDS)
    folder = _folder((cache_root() if root is None else root) / kind)
    if folder.link:
        raise StoreError(f"{folder.path} is a symbolic link and is not removed. Remove it or its target by hand.")
    try:
        shutil.rmtree(folder.path)  # removes links inside, never their targets
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot remove {folder.path}: {error.strerror or error}.") from None
    return folder


def _folder(path: Path) -> CacheFolder:
    link = path.is_symlink()
    sizes = [] if link else _sizes(path)
    meaning = KINDS.get(path.name, "")
    return CacheFolder(kind=path.name, path=str(path), meaning=meaning, files=len(sizes), bytes=sum(sizes), link=link)


def _sizes(path: Path) -> list[int]:
    """The sizes of all regular files at or below a path; files that vanish meanwhile do not count."""
    paths = [Path(folder, name) for folder, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    found = []
    for file in paths:
        with contextlib.suppress(OSError):
            status = file.lstat()
            found += [status.st_size] if stat.S_ISREG(status.st_mode) else []
    return found
