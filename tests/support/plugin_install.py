"""The example plugins of ``tests/plugins``, installed by pip as anyone would, and put on the path of a process."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "packages"
NAMES = sorted(path.parent.name for path in SOURCES.glob("*/pyproject.toml"))


@cache
def _base() -> Path:
    base = Path(tempfile.mkdtemp(prefix="llpbench-test-plugins-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    return base


@cache
def _installed() -> Path:
    """All plugins in one folder, built from copies (a build leaves files in its source folder); once per session."""
    target, sources = _base() / "all", _base() / "sources"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    done = subprocess.run([*command, *(str(sources / name) for name in NAMES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@cache
def site(*names: str) -> Path:
    """A folder in which exactly these plugins are installed."""
    folder = _base() / "+".join(names)
    folder.mkdir()
    for name in names:
        module = name.replace("-", "_")
        found = [_installed() / f"llp_{module}", *_installed().glob(f"llpbench_{module}-*.dist-info")]
        assert len(found) == 2, f"{name} was not installed as expected: {found}"
        for path in found:
            (folder / path.name).symlink_to(path)
    return folder


def with_plugins(*names: str) -> dict[str, str]:
    """What to add to the environment of a process so that it finds these plugins."""
    return {"PYTHONPATH": _joined(site(*names))}


def with_module(folder: Path, name: str, source: str) -> dict[str, str]:
    """The same for a plugin that is only source text: a module and the metadata an installer would write."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[llpbench]\n{name} = {module}\n")
    (info / "RECORD").write_text(f"{module}.py,,\n")
    return {"PYTHONPATH": _joined(folder)}


def _joined(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
