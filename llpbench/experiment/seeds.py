"""Seeds derived from named axes, so that equal axes give equal randomness and nothing else does."""

from __future__ import annotations

import hashlib
import json


def derive_seed(purpose: str, **axes: object) -> int:
    """A 31-bit seed that depends on the purpose and the named axes alone (not on their order).

    All methods see the same bags because the ``bags`` seed has no ``method`` axis.
    """
    text = json.dumps([purpose, axes], sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
