"""Arrays in memory that another process maps, read-only, without a copy."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

_ALIGN = 64


class SharedArray(msgspec.Struct, frozen=True):
    """Type, shape and position of an array in shared memory."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


def share(arrays: Mapping[str, np.ndarray]) -> tuple[int, dict[str, SharedArray]]:
    """Copy arrays into shared memory; returns its file descriptor (closed by the caller) and the position of each."""
    places: dict[str, SharedArray] = {}
    end = 0
    for name, array in arrays.items():
        place = SharedArray(array.dtype.str, array.shape, -(-end // _ALIGN) * _ALIGN)
        places[name], end = place, place.offset + place.bytes
    handle = _anonymous_file()
    os.ftruncate(handle, max(end, 1))
    with mmap.mmap(handle, max(end, 1)) as memory:
        for name, place in places.items():
            target = _view(memory, place)
            target[...] = arrays[name]
            del target
    with contextlib.suppress(OSError, ImportError, AttributeError):
        import fcntl

        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)  # read-only from here on
    return handle, places


def attach(handle: int, places: Mapping[str, SharedArray]) -> dict[str, np.ndarray]:
    """The arrays of shared memory, read-only. The file descriptor may be closed afterwards."""
    size = max((place.offset + place.bytes for place in places.values()), default=0)
    memory = mmap.mmap(handle, max(size, 1), access=mmap.ACCESS_READ)
    return {name: _view(memory, place) for name, place in places.items()}


def _view(memory: mmap.mmap, place: SharedArray) -> np.ndarray:
    count = int(np.prod(place.shape, dtype=np.int64))
    flat: np.ndarray = np.frombuffer(memory, np.dtype(place.dtype), count, place.offset)
    return flat.reshape(place.shape)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("llpbench", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    handle, name = tempfile.mkstemp(prefix="llpbench-shared-")
    Path(name).unlink()
    return handle
