"""Seeds derived from named axes: equal axes give equal randomness."""

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
    """A generator that cannot be reproduced without the labels, for noise that a method must not be able to remove.

    With a seed of named axes only, a method could draw the same noise and compute exact counts. The seed is the hash of
    the axes *and the labels* (256 bits), so the noise reveals no label, and a cell has the same noise everywhere.
    """
    digest = hashlib.sha256(json.dumps([purpose, axes], sort_keys=True, default=str).encode())
    for part in labels:
        digest.update(np.ascontiguousarray(part, np.int64).tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))
