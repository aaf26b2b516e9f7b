"""Names for what is kept on the disk: digests of all that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

KeyPart = str | bytes | bool | int | float | None | np.ndarray[Any, Any]
SHORT = 16
"""Digits of a short digest."""


def short_digest(content: bytes) -> str:
    """The first digits of the SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()[:SHORT]


def settings_text(settings: DataclassInstance) -> str:
    """The names and values of a dataclass's fields, as one part of a key."""
    return repr(sorted(asdict(settings).items()))


def content_key(parts: Sequence[KeyPart]) -> str:
    """A name for everything in ``parts``: type, length and contents of each, so that no two lists share one."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            if part.dtype.hasobject:
                raise TypeError(f"arrays of dtype {part.dtype} cannot be part of a key")
            head = f"array {part.dtype.str} {part.shape}"
            raw = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
        else:
            head, raw = type(part).__name__, memoryview(part if isinstance(part, bytes) else repr(part).encode())
        digest.update(f"{head} {raw.nbytes}\n".encode())
        digest.update(raw)
    return digest.hexdigest()[:32]
