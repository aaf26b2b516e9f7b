"""What the baselines computed on each engine: one process for each, started when first asked for."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ENGINES = ("jax", "tensorflow", "torch")
PROBE = Path(__file__).with_name("baselines_probe.py")

each_engine = pytest.mark.parametrize("engine", ENGINES)


@cache
def figures(engine: str) -> dict[str, Any]:
    """The figures of one engine; skips the test when it is not installed."""
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        env = {
            **os.environ,
            "KERAS_BACKEND": engine,
            "PYTHONPATH": os.pathsep.join([str(PROBE.parent), *filter(None, sys.path)]),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, str(PROBE), str(out)]
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-4000:]
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def close(value: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
