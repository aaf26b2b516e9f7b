"""Test set-up: where the data lies, and a cache of the session's own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if "LLPBENCH_DATA" not in os.environ and _SHARED.is_dir():
    os.environ["LLPBENCH_DATA"] = str(_SHARED)
if "LLPBENCH_CACHE" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="llpbench-test-cache-")
    os.environ["LLPBENCH_CACHE"] = _CACHE.name
os.environ.setdefault("KERAS_BACKEND", "jax")
