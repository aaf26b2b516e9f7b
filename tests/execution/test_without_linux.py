"""Cells without what only Linux has: they are spawned, without a sandbox, and have the same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runner import FAULTY, llpbench_process

HIDE = """
import multiprocessing.reduction
import os
import llpbench.execution.kernel

llpbench.execution.kernel.LINUX = False
multiprocessing.reduction.ACKNOWLEDGE = True  # how macOS passes file descriptors
for name in ("memfd_create", "sched_getaffinity", "sched_setaffinity", "O_PATH"):
    if hasattr(os, name):
        delattr(os, name)
"""
FACTS = ("status", "selected", "history", "reason")


@pytest.fixture
def hidden(tmp_path: Path) -> dict[str, str]:
    """An environment in which every Python that starts hides the parts of Linux."""
    folder = tmp_path / "hide"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDE)
    return {"PYTHONPATH": str(folder)}


def results(folder: Path) -> dict[str, Any]:
    found = [json.loads(path.read_text())["result"] for path in (folder / "cells").glob("*.json")]
    return {r["cell"]["method"]: {name: r.get(name) for name in FACTS} for r in found}


@pytest.mark.slow
def test_cells_have_the_same_results(tmp_path: Path, hidden: dict[str, str]) -> None:
    grid = ["run", "--plugin", str(FAULTY), "-m", "mean-ridge,mean-map,faulty-raise", "-d", "synthetic[rows=400]"]
    for out, environment in (("here", {}), ("hidden", hidden)):
        done = llpbench_process(*grid, "-b", "8", "-s", "1", "-o", out, cwd=tmp_path, **environment)
        assert done.returncode == 1, done.stderr  # of faulty-raise
    assert results(tmp_path / "hidden") == results(tmp_path / "here")
    assert {r["status"] for r in results(tmp_path / "hidden").values()} == {"ok", "failed"}


@pytest.mark.slow
def test_cell_over_its_time_is_stopped_and_says_where_it_was(tmp_path: Path, hidden: dict[str, str]) -> None:
    grid = ["run", "--plugin", str(FAULTY), "-m", "faulty-hang", "-d", "synthetic[rows=400]", "--timeout", "3"]
    done = llpbench_process(*grid, "-b", "8", "-s", "1", "-o", "out", cwd=tmp_path, **hidden)
    assert done.returncode == 1, done.stderr
    (found,) = results(tmp_path / "out").values()
    assert found["status"] == "timeout"
    assert "it was at faulty.py" in found["reason"]


@pytest.mark.slow
def test_doctor_says_what_is_missing(tmp_path: Path, hidden: dict[str, str]) -> None:
    done = llpbench_process("doctor", "--no-imports", "--json", cwd=tmp_path, **hidden)
    report = json.loads(done.stdout)
    assert report["cells"]["start"] == "spawn"
    assert "not available" in report["method_process"]
    assert "Linux" in report["method_process"]
    assert report["machine"]["usable_cores"] == os.cpu_count()


def test_process_ends_with_its_parent(hidden: dict[str, str]) -> None:
    child = "from llpbench.execution.processes import die_with_parent; die_with_parent(); print('up'); input()"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-u', '-c', {child!r}]); input()"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **hidden},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == b""  # it ends when the child does, which still holds its standard input
        process.stdin.close()
