"""Figures that each backend computed: one process per backend, whatever the number of test processes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llpbench import write_atomically

BACKENDS = ("jax", "tensorflow", "torch")
PROBE = Path(__file__).with_name("backend_probe.py")
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())

each_backend = pytest.mark.parametrize("backend", BACKENDS)


def installed(backend: str) -> bool:
    return importlib.util.find_spec(backend) is not None


@cache
def figures(backend: str) -> dict[str, Any]:
    """The figures of one backend. While another test process computes them, this one computes those of the next."""
    if not installed(backend):
        pytest.skip(f"{backend} is not installed")
    out = place(backend)
    while not out.exists():
        for name in (backend, *filter(installed, BACKENDS)):
            if claim(name):
                compute(name)
                break
        else:
            time.sleep(0.2)
    found: dict[str, Any] = json.loads(out.read_text())
    assert "error" not in found, found["error"]
    return found


def place(backend: str) -> Path:
    """Where all test processes of this run look for a backend's figures."""
    folder = Path(os.environ["LLPBENCH_CACHE"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"figures-{RUN}-{backend}.json"


def claim(backend: str) -> bool:
    """Whether this process is the first to want the backend's figures."""
    try:
        place(backend).with_suffix(".claim").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def compute(backend: str) -> None:
    out = place(backend)
    draft = out.with_suffix(".draft")
    run = run_probe(backend, draft)
    text = draft.read_text() if run.returncode == 0 else json.dumps({"error": run.stderr[-4000:]})
    write_atomically(out, text.encode())


def run_probe(backend: str, out: Path, *parts: str) -> subprocess.CompletedProcess[str]:
    """Compute all figures of a backend, or the given parts of them, in a process of its own."""
    env = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "LLPBENCH_CACHE": str(compile_cache()),
        "PYTHONPATH": os.pathsep.join([str(PROBE.parent), *filter(None, sys.path)]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(PROBE), str(out), *parts]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def compile_cache() -> Path:
    """Where probes keep compiled code, and nothing else does."""
    return place("all").with_suffix(".cache")


def close(value: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
