"""Locks between processes: a file that one process holds, and that is free again the moment it dies."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from llpbench.contracts.errors import StoreError

try:
    import fcntl
except ImportError:  # a platform without POSIX locks: runs are then not shared between processes
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def held(path: Path, trouble: str, seconds: float) -> Iterator[None]:
    """Hold the lock file ``path``, waiting for whoever holds it now; ``trouble`` is said when that takes too long."""
    deadline = time.monotonic() + seconds
    while (claim := Claim.take(path)) is None:
        if time.monotonic() > deadline:
            raise StoreError(f"{trouble} for more than {seconds:.0f} s.")
        time.sleep(0.01)
    try:
        yield
    finally:
        claim.release()


class Claim:
    """An exclusive lock on a file; the system releases it when the process dies, so none is ever left behind."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def take(cls, path: Path) -> Claim | None:
        """The claim, or None when somebody else has it."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return None
            # The previous owner removes its file while it holds the lock: make sure this one is still the file.
            try:
                current = path.stat().st_ino
            except FileNotFoundError:
                current = -1
            if current != os.fstat(handle).st_ino:
                os.close(handle)
                return None
        return cls(path, handle)

    def release(self) -> None:
        """Give the claim back."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._handle)
