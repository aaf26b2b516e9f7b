"""Weights of trained encoders: shipped with the package for the default settings, kept in the cache for others."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from llpbench import cache_root, write_atomically
from llpbench_datasets.feature_cache import Array
from llpbench_datasets.simclr.settings import SimclrSettings

SHIPPED = Path(__file__).with_name("weights")


def find(settings: SimclrSettings) -> Path | None:
    """The file that holds weights trained with these settings: one of the cache before a shipped one."""
    places = (_made() / _name(settings), SHIPPED / _name(settings))
    return next((path for path in places if path.is_file()), None)


def make(images: Array, settings: SimclrSettings, say: Callable[[str], None]) -> Path:
    """Train, and keep the weights in the cache; returns their file."""
    from llpbench_datasets.simclr.train import train

    path = _made() / _name(settings)
    trained = train(images, settings, path.with_suffix(".checkpoint.npz"), say)
    write_atomically(path, pack(trained, settings))
    return path


def pack(weights: list[Array], settings: SimclrSettings) -> bytes:
    """Kernels as float16, vectors (of normalisation) as float32, and the settings as JSON; no pickles."""
    arrays = {f"w{i:03d}": w.astype(np.float16 if w.ndim > 1 else np.float32) for i, w in enumerate(weights)}
    buffer = io.BytesIO()
    head = np.frombuffer(json.dumps(asdict(settings)).encode(), np.uint8)
    np.savez_compressed(buffer, allow_pickle=False, settings=head, **arrays)
    return buffer.getvalue()


def unpack(contents: bytes) -> list[Array]:
    """The weights as float32, in the encoder's order."""
    with np.load(io.BytesIO(contents), allow_pickle=False) as stored:
        return [stored[name].astype(np.float32) for name in sorted(stored.files) if name != "settings"]


def _made() -> Path:
    return cache_root() / "made" / "simclr"


def _name(settings: SimclrSettings) -> str:
    return f"{settings.network}-{settings.key}.npz"
