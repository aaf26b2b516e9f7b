"""Archives of arrays as bytes, for tests of what reads them: sound ones, and one that unpacks to far more."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np


def npz(**arrays: Any) -> bytes:
    """An ``.npz`` file."""
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def bomb(name: str, megabytes: int) -> bytes:
    """A small ``.npz`` file whose one member unpacks to so much."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{name}.npy", "w") as member:
        for _ in range(megabytes):
            member.write(bytes(1 << 20))
    return out.getvalue()
