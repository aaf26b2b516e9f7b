"""``llpbench_cell_finished`` in use: the example plugin that keeps every cell in MLflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_runner import FAULTY, llpbench
from helpers import PATIENCE
from plugin_install import SOURCES, with_plugins

pytestmark = pytest.mark.slow

READ = """
import json
from mlflow import MlflowClient
client = MlflowClient()
experiment = client.get_experiment_by_name("llpbench")
runs = client.search_runs([experiment.experiment_id])
print(json.dumps([[r.info.status, r.data.params, r.data.metrics, r.data.tags] for r in runs]))
"""


def test_the_example_is_short() -> None:
    lines = (SOURCES / "mlflow" / "llp_mlflow" / "__init__.py").read_text().splitlines()
    assert len(lines) < 40


@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed (pip install mlflow-skinny)")
def test_cells_become_mlflow_runs(tmp_path: Path) -> None:
    environment = {
        **with_plugins("mlflow"),
        "MLFLOW_TRACKING_URI": (tmp_path / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",  # newer versions want a database; a folder of files is enough here
        "LLPBENCH_PLUGINS": "mlflow,synthetic",
    }
    done = llpbench(
        "run", "--plugin", str(FAULTY), "--methods", "faulty-good[seconds=0.25],faulty-raise", "--bags", "8",
        "--datasets", "synthetic[rows=400;dim=4]", "--seeds", "2", "--out", "out", cwd=tmp_path, **environment,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "failed on a finished cell" not in done.stderr
    read = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert read.returncode == 0, read.stderr
    runs = {
        tags["llpbench.id"]: (state, params, metrics, tags) for state, params, metrics, tags in json.loads(read.stdout)
    }
    results = [json.loads(p.read_text())["result"] for p in (tmp_path / "out" / "cells").glob("*.json")]
    assert len(results) == 4
    assert set(runs) == {result["id"] for result in results}
    for result in results:
        state, params, metrics, tags = runs[result["id"]]
        assert params["method"] == result["cell"]["method"]
        assert (params["bag_size"], params["seed"]) == ("8", str(result["cell"]["seed"]))
        assert tags["llpbench.status"] == result["status"]
        if result["status"] == "ok":
            assert state == "FINISHED"
            assert params["seconds"] == "0.25"
            assert metrics["bags.auroc"] == result["selected"]["bags"]["metrics"]["auroc"]
            assert metrics["instances.log_loss"] == result["selected"]["instances"]["metrics"]["log_loss"]
        else:
            assert state == "FAILED"
            assert tags["llpbench.reason"] == "ValueError: the method is unhappy"
            assert not any(name.startswith("bags.") for name in metrics)
