"""A CIFAR-10 of 60 images: the same files, layouts and checks, made for a test."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from llpbench import DataFile, DatasetSpec
from llpbench.data.store import DataStore
from llpbench_datasets import cifar

NAMES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
EACH = 10


def python_batch(images: np.ndarray, labels: np.ndarray, *, kind: bytes = b"u1", extra: bytes = b"") -> bytes:
    """The bytes that Python 2 and numpy of 2009 would have pickled, opcode by opcode."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    raw = images.reshape(len(labels), -1).tobytes()
    shape = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in (len(labels), images[0].size)) + b"t"
    dtype = b"cnumpy\ndtype\n" + text(kind) + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN"
    dtype += 2 * (b"J" + struct.pack("<i", -1)) + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels.tolist()) + b"e"
    items = text(b"batch_label") + text(b"a test") + text(b"labels") + listed + text(b"data") + array + extra
    return b"\x80\x02}(" + items + b"u."


def binary_batch(images: np.ndarray, labels: np.ndarray) -> bytes:
    """One record for each image, written the long way."""
    return b"".join(bytes([int(y)]) + image.tobytes() for image, y in zip(images, labels, strict=True))


def draw(seed: int = 0, n: int = EACH) -> tuple[np.ndarray, np.ndarray]:
    """Smooth random images whose colour depends on their class."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(n) % 10
    coarse = rng.integers(0, 200, (n, 3, 8, 8))
    coarse[:, 0] += 5 * labels[:, None, None]
    images = np.kron(coarse, np.ones((1, 1, 4, 4), int)) + rng.integers(0, 6, (n, 3, 32, 32))
    return images.clip(0, 255).astype(np.uint8), labels.astype(np.uint8)


@dataclasses.dataclass(frozen=True)
class Tiny:
    """The files in both layouts, and what they hold."""

    python: Path
    binary: Path
    images: np.ndarray
    labels: np.ndarray

    def store(self, name: str = "cifar10", root: Path | None = None) -> DataStore:
        return DataStore(self.spec(name), root or self.python)

    @staticmethod
    def spec(name: str = "cifar10") -> DatasetSpec:
        (spec,) = (s for s in cifar.llpbench_datasets() if s.name == name)
        return spec


def make_tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """Write both layouts, and make the registered datasets expect these files instead of the real ones."""
    files, parts = [], []
    for seed, (name, real) in enumerate(zip(NAMES, cifar.FILES, strict=True)):
        images, labels = draw(seed)
        parts.append((images, labels))
        forms = []
        for root, path, body in (
            ("py", real.path, python_batch(images, labels)),
            ("bin", real.forms[0].path, binary_batch(images, labels)),
        ):
            assert name in path
            target = folder / root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
            forms.append(DataFile(path, hashlib.sha256(body).hexdigest(), len(body)))
        files.append(dataclasses.replace(forms[0], forms=(forms[1],)))
    monkeypatch.setattr(cifar, "FILES", tuple(files))
    for name in ("CIFAR_B", "CIFAR_S", "CIFAR10"):
        monkeypatch.setattr(cifar, name, dataclasses.replace(getattr(cifar, name), files=tuple(files)))
    images, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Tiny(folder / "py", folder / "bin", images, labels)
