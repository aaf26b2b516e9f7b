"""A metric, a selection rule, an executor and an engine of belief propagation are one entry each.

All four come from one plugin file and are seen wherever their kind is seen: results, progress, tables, tuning. Each
command has a process of its own, because an engine is there for good once its plugin is loaded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Completed
from cli_runner import llpbench_process as llpbench

pytestmark = pytest.mark.slow
PLUGIN = Path(__file__).parents[1] / "support" / "entries" / "one_of_each.py"
WITH = ("--plugin", str(PLUGIN))
GRID = (
    "--methods",
    "bp-field[engine=my-engine;iterations=1;epochs=2],mean-ridge",
    "--datasets",
    "synthetic[rows=500;dim=4]",
)


def read_table(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = llpbench("table", "out", "--format", "json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Completed]:
    folder = tmp_path_factory.mktemp("run")
    where = ("--executor", f"here[marker={folder / 'marker.txt'}]", "--out", "out")
    done = llpbench("run", *WITH, *GRID, "--bags", "8", "--seeds", "2", "--metric", "my_brier", *where, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_plugin_engine_and_executor_run_the_cells(ran: tuple[Path, Completed]) -> None:
    folder, _ = ran
    lines = (folder / "marker.txt").read_text().splitlines()
    assert sorted(lines) == ["bp-field my-engine"] * 2 + ["mean-ridge "] * 2
    without = llpbench("run", *GRID, "--bags", "8", "--dry-run", cwd=folder)
    assert without.returncode == 2
    assert "my-engine" in without.stderr


def test_plugin_metric_and_rule_are_in_results_and_table(ran: tuple[Path, Completed]) -> None:
    folder, done = ran
    for path in (folder / "out" / "cells").glob("*.json"):
        result = json.loads(path.read_text())["result"]
        assert list(result["selected"]) == ["bags", "counts", "instances", "worst-bag"]
        assert 0 < result["selected"]["worst-bag"]["metrics"]["my_brier"] < 0.5
        assert result["selected"]["worst-bag"]["value"] == min(report["worst-bag"] for report in result["history"])
    assert done.stderr.count("  Brier 0.") == 4  # progress, a line for each cell
    assert "Brier · selection rule: bags, instances, worst-bag (equal)" in done.stdout
    rows = read_table(folder, *WITH, "--metric", "my_brier", "--rule", "all")
    assert {(row["method"].partition("[")[0], row["rule"]) for row in rows} == {
        (method, rule) for method in ("bp-field", "mean-ridge") for rule in ("bags", "instances", "worst-bag")
    }
    assert all(0 < row["mean"] < 0.5 for row in rows)
    asked = read_table(folder, *WITH, "--rule", "counts")  # a rule on request
    assert {row["rule"] for row in asked} == {"counts"}
    assert all(row["status"] == "ok" for row in asked)


def test_tune_accepts_a_rule_of_a_plugin(tmp_path: Path) -> None:
    tune = ("tune", *WITH, "--methods", "mean-ridge", "--datasets", "synthetic[rows=500;dim=4]", "--bags", "8")
    done = llpbench(*tune, "--trials", "3", "--rule", "worst-bag", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["rule"] == "worst-bag"
    assert row["tuned"] <= row["default"]


def test_without_the_plugin_the_results_stay_readable(ran: tuple[Path, Completed]) -> None:
    folder, _ = ran
    rows = read_table(folder)
    assert {row["rule"] for row in rows} == {"bags", "instances"}
    assert all(row["metric"] == "auroc" and row["status"] == "ok" for row in rows)
