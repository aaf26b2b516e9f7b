"""The code in the documentation runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import llpbench, table

ROOT = Path(__file__).resolve().parents[2]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_plugins_of_the_page_run(tmp_path: Path) -> None:
    method, dataset = python_blocks(ROOT / "docs" / "plugins.md")[:2]
    (tmp_path / "mymethod.py").write_text(method)
    (tmp_path / "two_moons.py").write_text(dataset)
    done = llpbench(
        "run", "--plugin", "mymethod.py", "--plugin", "two_moons.py", "--methods", "mymethod,mymethod[penalty=0.01]",
        "--datasets", "two-moons", "--bags", "4", "--seeds", "2", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(row["mean"] > 80 for row in table(tmp_path / "out"))


def test_the_readme_method_is_small_and_runs(tmp_path: Path) -> None:
    code = next(block for block in python_blocks(ROOT / "README.md") if block.startswith("# mymethod.py"))
    assert len([line for line in code.splitlines() if line.strip()]) < 30
    (tmp_path / "mymethod.py").write_text(code)
    done = llpbench(
        "run", "--plugin", "mymethod.py", "--methods", "mymethod", "--datasets", "synthetic", "--bags", "8",
        "--seeds", "1", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(row["mean"] > 70 for row in table(tmp_path / "out"))


def test_the_readme_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    code = next(block for block in python_blocks(ROOT / "README.md") if "llpbench.run" in block)
    cheap = '"mean-ridge", bags=[8, 32], datasets="synthetic[rows=600]", seeds=1'
    small = code.replace('"bp,dllp", bags=[8, 512]', cheap)
    assert small != code
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(small, "README.md", "exec"), names)
    assert len(names["results"].cells) == 4  # type: ignore[attr-defined]


def test_the_readme_fit_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(block for block in python_blocks(ROOT / "README.md") if "llpbench.fit" in block)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert (tmp_path / "penguins.llp").exists()
