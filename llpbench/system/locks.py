"""Locks between processes: a file that one process holds, released when its holder ends.

Locking is done by the package filelock, imported on first use: the import takes 50 ms, and most commands lock nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.contracts.errors import StoreError

if TYPE_CHECKING:
    from filelock import BaseFileLock


def _lock(path: Path) -> BaseFileLock:
    from filelock import FileLock

    return FileLock(path, thread_local=False, mode=0o644)


@contextlib.contextmanager
def file_lock(path: Path, *, seconds: float = -1.0, trouble: str = "") -> Iterator[None]:
    """Hold the lock file ``path``; waits until it is free.

    Args:
        path: the lock file; its folder is created if missing.
        seconds: how long to wait; forever by default.
        trouble: beginning of the error message if that was not enough.

    Raises:
        StoreError: another process held it for longer than ``seconds``.
    """
    from filelock import Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(path)
    try:
        lock.acquire(timeout=seconds, poll_interval=0.01)
    except Timeout:
        raise StoreError(f"{trouble or f'{path} is held by another process'} for more than {seconds:.0f} s.") from None
    try:
        yield
    finally:
        _let_go(lock, path)


@contextlib.contextmanager
def lock_if_possible(path: Path) -> Iterator[bool]:
    """Hold ``path`` like ``file_lock``; yields False, without a lock, if the file system has no locks."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(file_lock(path))
        except (OSError, NotImplementedError):
            yield False
        else:
            yield True


class Claim:
    """A lock that is acquired without waiting."""

    def __init__(self, path: Path, lock: BaseFileLock) -> None:
        self._path, self._lock = path, lock

    @classmethod
    def take(cls, path: Path) -> Claim | None:
        """Acquire the lock; None if another process holds it."""
        from filelock import Timeout

        lock = _lock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return cls(path, lock)

    def release(self) -> None:
        """Release the lock."""
        _let_go(self._lock, self._path)


def _let_go(lock: BaseFileLock, path: Path) -> None:
    """Remove the lock file while it is still held, then release it: a waiter sees that its file is gone and retries."""
    with contextlib.suppress(OSError):
        path.unlink()
    lock.release()
