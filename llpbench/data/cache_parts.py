"""What the cache holds, by kind, and throwing a kind away. Nothing outside the cache folder is ever touched."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError, UnknownNameError
from llpbench.data.cache import COMPILED, cache_root

KINDS = {
    "data": "files that were fetched; they are fetched again when needed",
    "made": "features and tables made from data files; they are made again when needed",
    COMPILED: "machine code of methods; it is compiled again when needed",
    "checked": "which data files were found good; they are read again when needed",
}
"""The parts of the cache that llpbench makes, and what it costs to lose one."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One folder (or file) of the cache.

    Attributes:
        kind: its name.
        path: where it lies.
        meaning: what it holds; empty when llpbench (as it is now) does not use it.
        files: how many.
        bytes: how many they take together.
        link: whether it is a symbolic link, which is neither followed nor cleaned.
    """

    kind: str
    path: str
    meaning: str
    files: int
    bytes: int
    link: bool


def cache_parts(root: Path | None = None) -> list[Part]:
    """What is in the cache: the known kinds first, then whatever else lies there. Links are not followed."""
    root = cache_root() if root is None else root
    there = {entry.name for entry in os.scandir(root)} if root.is_dir() else set()
    return [_part(root / name) for name in (*KINDS, *sorted(there - set(KINDS)))]


def clean(kind: str, root: Path | None = None) -> Part:
    """Throw a kind away; returns what was there.

    Raises:
        UnknownNameError: it is no kind of the cache; only those are removed, whatever else lies in the folder.
        StoreError: it is a symbolic link (what it leads to is not the cache's), or cannot be removed.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of cache", kind, KINDS)
    root = cache_root() if root is None else root
    part = _part(root / kind)
    if part.link:
        raise StoreError(f"{part.path} is a symbolic link; it is left alone. Remove it, or what it leads to, by hand.")
    try:
        shutil.rmtree(part.path)  # removes links inside, never what they lead to
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot remove {part.path}: {error.strerror or error}.") from None
    return part


def _part(path: Path) -> Part:
    files = size = 0
    link = path.is_symlink()
    if not link:
        for status in _statuses(path):
            files, size = files + 1, size + status.st_size
    return Part(kind=path.name, path=str(path), meaning=KINDS.get(path.name, ""), files=files, bytes=size, link=link)


def _statuses(path: Path) -> list[os.stat_result]:
    """Of every regular file at or below a path; what vanishes meanwhile does not count."""
    paths = [Path(folder, name) for folder, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    found = []
    for file in paths:
        try:
            status = file.lstat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append(status)
    return found
