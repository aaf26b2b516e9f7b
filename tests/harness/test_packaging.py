"""The wheel holds what the tree holds, and nothing that should not be importable."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"llpbench": ROOT, "llpbench_methods": ROOT / "methods", "llpbench_datasets": ROOT / "datasets"}


@pytest.mark.slow
def test_the_wheel_equals_the_tree(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc", "*.nbi", "*.nbc")
    for name in ("llpbench", "methods", "datasets"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    tree = {
        path.relative_to(base).as_posix()
        for package, base in PACKAGES.items()
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == tree


def test_the_folders_of_plugins_are_not_packages() -> None:
    assert not (ROOT / "methods" / "__init__.py").exists()
    assert not (ROOT / "datasets" / "__init__.py").exists()


def test_every_entry_point_names_a_module_of_the_tree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, module in project["entry-points"]["llpbench"].items():
        base = PACKAGES[module.partition(".")[0]]
        assert (base / module.replace(".", "/") / "__init__.py").is_file(), name


def test_torch_is_pinned_to_the_version_with_a_cpu_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["torch"] == ["torch==2.13.0"]
