"""``llpbench new`` writes a package that passes the kit at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import llpbench


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["method", "dataset", "metric", "scheme", "rule"])
def test_new_plugin_works_and_its_tests_pass(tmp_path: Path, kind: str) -> None:
    name = f"fresh-{kind}"
    done = llpbench("new", kind, name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / f"llpbench-{name}"
    assert not [path for path in folder.rglob("*.*") if re.search(r"{[a-z_]+}", path.read_text())]
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(site), str(folder)], check=True, capture_output=True)
    for line in done.stdout.splitlines()[2:]:  # the commands that it prints
        words = [w.replace("synthetic", "synthetic[rows=600]").replace("dllp", "dllp[epochs=2]") for w in line.split()]
        few = ["--bags", "8", "--seeds", "1"] if words[1] == "run" else []
        tried = llpbench(*words[1:], *few, cwd=tmp_path, PYTHONPATH=str(site))
        assert tried.returncode == 0, tried.stdout + tried.stderr
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout


def test_new_rejects_bad_names_and_full_folders(tmp_path: Path) -> None:
    assert "lower-case words" in llpbench("new", "method", "My_Method", cwd=tmp_path).stderr
    (tmp_path / "llpbench-mine").mkdir()
    (tmp_path / "llpbench-mine" / "work.py").write_text("precious")
    done = llpbench("new", "method", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert (tmp_path / "llpbench-mine" / "work.py").read_text() == "precious"


def test_new_rejects_a_name_that_is_taken(tmp_path: Path) -> None:
    """Such a package would clash with the other one as soon as it is installed."""
    taken = {"method": "mean-ridge", "dataset": "synthetic", "metric": "auroc", "scheme": "random", "rule": "bags"}
    for kind, name in taken.items():
        done = llpbench("new", kind, name, cwd=tmp_path)
        assert done.returncode == 2
        assert f"the {kind} '{name}' already exists (llpbench" in done.stderr
    assert llpbench("new", "dataset", "mean-ridge", cwd=tmp_path).returncode == 0  # a dataset is no method


def test_new_reports_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for out, words in (("file", "is a file"), ("file/inside", "cannot write file/inside")):
        done = llpbench("new", "method", "mine", "--out", out, cwd=tmp_path)
        assert done.returncode != 0
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_new_prints_a_command_that_can_be_pasted(tmp_path: Path) -> None:
    done = llpbench("new", "method", "mine", "--out", "my work/mine", cwd=tmp_path)
    assert "pip install -e 'my work/mine'" in done.stdout
