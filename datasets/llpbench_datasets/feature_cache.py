"""Arrays that are costly to make (embeddings, sampled tables): made once, kept on the disk, mapped into memory.

Cells of a grid start together, each in its own process, and ask for the same features. The first makes them,
the others wait for its lock and then read. The lock belongs to the operating system and dies with its holder, so
a killed process leaves nothing that blocks the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llpbench import cache_root, whole_file

try:
    import fcntl
except ImportError:  # a platform without POSIX locks: features may then be made more than once
    fcntl = None  # type: ignore[assignment]

Array = np.ndarray[Any, Any]
KeyPart = str | bytes | bool | int | float | None | Array


def cached_array(key_parts: Sequence[KeyPart], compute: Callable[[], Array], *, folder: Path | None = None) -> Array:
    """The array that ``compute`` gives, read-only; from the disk if it was made before, by whomever.

    A file that cannot be read is made again. A folder that cannot be written only costs time: the array is then
    made and handed over without being kept.

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
    with _lock(path.with_suffix(".lock")):
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


def content_key(parts: Sequence[KeyPart]) -> str:
    """A name for everything in ``parts``: type, length and contents of each, so that no two lists share one."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            if part.dtype.hasobject:
                raise TypeError(f"an array of dtype {part.dtype} has no contents to compare")
            head, raw = (
                f"array {part.dtype.str} {part.shape}",
                np.ascontiguousarray(part).reshape(-1).view(np.uint8).data,
            )
        else:
            head, raw = type(part).__name__, memoryview(part if isinstance(part, bytes) else repr(part).encode())
        digest.update(f"{head} {raw.nbytes}\n".encode())
        digest.update(raw)
    return digest.hexdigest()[:32]


def _read(path: Path) -> Array | None:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None


def _write(path: Path, array: Array) -> None:
    """Whole or not at all, and without a second copy in memory."""
    with whole_file(path) as file:
        np.save(file, array, allow_pickle=False)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold ``path`` for this process, waiting for whoever holds it now; without a lock where none can be had."""
    handle = _acquire(path)
    if handle is None:
        yield
        return
    try:
        for left in path.parent.glob(f".{path.stem}.npy.*.tmp"):  # whoever left these behind is gone
            left.unlink(missing_ok=True)
        yield
    finally:
        path.unlink(missing_ok=True)  # still held: the next one finds that its file is gone and opens anew
        os.close(handle)


def _acquire(path: Path) -> int | None:
    if fcntl is None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        return None
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_ino == path.stat().st_ino:
                return handle
        except FileNotFoundError:
            pass
        except OSError:
            os.close(handle)
            return None
        os.close(handle)
