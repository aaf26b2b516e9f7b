"""Atomic writes of files, tried again where a file system fails now and then."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

TRANSIENT = frozenset((errno.ESTALE, errno.EIO, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT))
"""Errors of a shared file system that may be gone a moment later."""
_PAUSES = (0.05, 0.2, 0.8)  # seconds before a write is tried again


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file in the same folder (created if missing), renamed to ``path`` at the end.

    If anything fails, nothing is left behind and an existing file at ``path`` stays unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` atomically; a transient failure is tried again."""
    for pause in (*_PAUSES, None):
        try:
            with whole_file(path) as file:
                file.write(data)
        except OSError as error:
            if pause is None or error.errno not in TRANSIENT:
                raise
            time.sleep(pause)
        else:
            return


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON to ``path`` atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
