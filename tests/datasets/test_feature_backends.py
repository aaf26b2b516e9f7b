"""MET and SimCLR give the same features on every backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import features_probe
import pytest
from helpers import PATIENCE
from numpy.testing import assert_allclose

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ours() -> dict[str, object]:
    return features_probe.figures()


@pytest.mark.parametrize("backend", ["torch", "tensorflow"])
def test_features_agree_with_those_of_jax(tmp_path: Path, ours: dict[str, object], backend: str) -> None:
    pytest.importorskip(backend)
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_ENABLE_ONEDNN_OPTS": "0"}
    command = [sys.executable, features_probe.__file__, str(tmp_path / "out.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    theirs = json.loads((tmp_path / "out.json").read_text())
    assert (ours["backend"], theirs["backend"]) == ("jax", backend)
    assert_allclose(theirs["met"], ours["met"], rtol=1e-2, atol=1e-3)
    assert_allclose(theirs["simclr"], ours["simclr"], rtol=1e-3, atol=1e-4)
