"""Arrays that are costly to make (embeddings, sampled tables): made once, kept on the disk, mapped into memory.

Cells of a grid start together, each in its own process, and ask for the same features. The first makes them,
the others wait for its lock and then read. The operating system frees the lock of a process that ends, so a killed
process does not block the next one. Where the file system has no locks, features may be made more than once.

A file ends with the SHA-256 of all before it, which every reader compares: features that rotted on the disk, or that
somebody edited, are made again instead of being fitted on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from llpbench import cache_root, lock_if_possible, whole_file
from llpbench_datasets.keys import KeyPart, content_key

Array = np.ndarray[Any, Any]
_MARK = b"\nsha256 of the above: "
_TAIL = len(_MARK) + 32
"""Bytes after the array: the mark, and the digest."""


def cached_array(key_parts: Sequence[KeyPart], compute: Callable[[], Array], *, folder: Path | None = None) -> Array:
    """The array that ``compute`` gives, read-only; from the disk if any process made it before.

    A file that cannot be read, or is not what was written, is made again. A folder that cannot be written only costs
    time: the array is then made and handed over without being kept.

    Args:
        key_parts: all that the array depends on: names, options, a version of the code, the input arrays
            themselves. Equal parts in equal order, equal array.
        compute: makes the array. Called at most once at a time for a key, over all processes of the machine.
        folder: where arrays are kept; ``made/features`` in the cache folder when not given.

    Returns:
        The array, mapped from its file: it costs memory only where it is read, and processes share it.
    """
    folder = cache_root() / "made" / "features" if folder is None else folder
    path = folder / f"{content_key(key_parts)}.npy"
    kept = _read(path)
    if kept is not None:
        return kept
    with lock_if_possible(path.with_suffix(".lock")) as locked:
        if locked:
            for part in folder.glob(f".{path.name}.*.tmp"):  # left by processes that were killed
                part.unlink(missing_ok=True)
        kept = _read(path)  # another process may have been faster
        if kept is not None:
            return kept
        made = np.ascontiguousarray(compute())
        if made.dtype.hasobject:
            raise TypeError(f"only plain arrays can be kept, not dtype {made.dtype}")
        try:
            _write(path, made)
        except OSError:
            kept = None
        else:
            kept = _read(path)
    if kept is not None:
        return kept
    made.setflags(write=False)
    return made


def _read(path: Path) -> Array | None:
    """The array of a file whose digest is right; None when there is none."""
    try:
        if not path.is_file():
            return None
        raw = np.memmap(path, np.uint8, "r")
        if bytes(raw[-_TAIL:]) != _MARK + hashlib.sha256(raw[:-_TAIL].data).digest():
            return None
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None


class _Digesting:
    """A file that keeps the digest of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self.file.write(data)


def _write(path: Path, array: Array) -> None:
    """Whole or not at all, and without a second copy in memory."""
    with whole_file(path) as file:
        digesting = _Digesting(file)
        np.save(digesting, array, allow_pickle=False)
        file.write(_MARK + digesting.digest.digest())
