"""Seeds derived from named axes, so that equal axes give equal randomness and nothing else does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import numpy as np

from llpbench.contracts.data import IntArray


def derive_seed(purpose: str, **axes: object) -> int:
    """A 31-bit seed that depends on the purpose and the named axes alone (not on their order).

    All methods see the same bags because the ``bags`` seed has no ``method`` axis.
    """
    text = json.dumps([purpose, axes], sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def secret_rng(purpose: str, labels: Iterable[IntArray], **axes: object) -> np.random.Generator:
    """Randomness that only who has the labels can draw again: for noise that a method must not be able to take off.

    A seed of named axes alone would not do. A method knows the axes of its cell, could draw the same noise, and would
    have exact counts. All 256 bits of a hash of the axes *and the labels* are used; nothing of a label can be read from
    the noise, and the same cell has the same noise wherever it is made.
    """
    digest = hashlib.sha256(json.dumps([purpose, axes], sort_keys=True, default=str).encode())
    for part in labels:
        digest.update(np.ascontiguousarray(part, np.int64).tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))
