"""Read CIFAR-10's batches, in either of their two layouts, into the same arrays.

The *python* layout is a pickle of a dictionary; it is read by an unpickler that knows nothing but plain
containers and arrays of bytes, and only after the file's checksum was found right. The *binary* layout is one
record for each image: a byte for the label, then 3,072 bytes of pixels (red, green, blue; row by row).
"""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from llpbench import DatasetError
from llpbench_datasets.feature_cache import Array

SIDE = 32
PIXELS = 3 * SIDE * SIDE
CLASSES = 10


def read_batch(path: Path) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and labels (n,) of one file, both uint8; ``.bin`` is the binary layout.

    Raises:
        DatasetError: the file is not a batch of CIFAR-10, with what is wrong about it.
    """
    contents = path.read_bytes()
    try:
        pixels, labels = _from_binary(contents) if path.suffix == ".bin" else _from_pickle(contents)
    except ValueError as error:
        raise DatasetError(f"{path} is not a batch of CIFAR-10: {error}") from error
    return pixels.reshape(-1, 3, SIDE, SIDE), labels


def _from_binary(contents: bytes) -> tuple[Array, Array]:
    if not contents or len(contents) % (PIXELS + 1):
        raise ValueError(f"{len(contents):,} bytes are not whole records of {PIXELS + 1:,} bytes")
    records = np.frombuffer(contents, np.uint8).reshape(-1, PIXELS + 1)
    return _checked(records[:, 1:], records[:, 0])


def _from_pickle(contents: bytes) -> tuple[Array, Array]:
    try:
        batch = _Unpickler(io.BytesIO(contents), encoding="bytes").load()
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(str(error) or type(error).__name__) from error
    if not isinstance(batch, dict) or not isinstance(batch.get(b"data"), _Bytes):
        raise ValueError("expected a dictionary with an array named data")
    labels = batch.get(b"labels")
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < CLASSES for label in labels):
        raise ValueError(f"labels are not a list of integers from 0 to {CLASSES - 1}")
    return _checked(batch[b"data"].array(), np.array(labels, np.uint8))


def _checked(pixels: Array, labels: Array) -> tuple[Array, Array]:
    if pixels.shape != (len(labels), PIXELS) or not len(labels):
        raise ValueError(f"{len(labels)} labels and pixels of shape {pixels.shape}, not (n, {PIXELS:,})")
    if labels.max() >= CLASSES:
        raise ValueError(f"a label is {labels.max()}, more than {CLASSES - 1}")
    return np.ascontiguousarray(pixels), np.ascontiguousarray(labels)


class _Type:
    """Stands for numpy's ``dtype``: only unsigned bytes are known."""

    def __init__(self, name: object = None, *_: object) -> None:
        if name not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"arrays of type {name!r} are not expected")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and flags: a byte has none."""


class _Bytes:
    """Stands for numpy's ``ndarray``: a shape and raw bytes, checked against each other before use."""

    def __init__(self, *_: object) -> None:
        self.shape: tuple[int, ...] = ()
        self.raw = b""

    def __setstate__(self, state: Any) -> None:
        """Take ``(version, shape, dtype, column-major, bytes)``."""
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Type) or fortran or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array is not plain rows of bytes")
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(raw):
            raise pickle.UnpicklingError(f"an array of shape {shape} does not hold {len(raw):,} bytes")
        self.shape, self.raw = tuple(shape), raw

    def array(self) -> Array:
        """The array itself."""
        return np.frombuffer(self.raw, np.uint8).reshape(self.shape)


class _Unpickler(pickle.Unpickler):
    """Plain containers and arrays of bytes; every other name in a pickle is refused, and nothing is imported."""

    known: ClassVar[dict[str, Any]] = {
        "numpy.core.multiarray._reconstruct": _Bytes,
        "numpy._core.multiarray._reconstruct": _Bytes,
        "numpy.ndarray": _Bytes,
        "numpy.dtype": _Type,
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a global name, or a refusal."""
        try:
            return self.known[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(f"the pickle must contain arrays only, got {module}.{name}") from None
