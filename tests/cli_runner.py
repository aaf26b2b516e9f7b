"""Running the real command line in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FAULTY = Path(__file__).parent / "harness" / "faults" / "faulty.py"


def llpbench(*arguments: str, cwd: Path, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m llpbench`` and return what it printed and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "llpbench", *arguments],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def table(folder: Path, *arguments: str, **environment: str) -> list[dict[str, Any]]:
    """The rows of ``llpbench table --format json``."""
    done = llpbench("table", str(folder), "--format", "json", *arguments, cwd=folder.parent, **environment)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def status(folder: Path) -> dict[str, Any]:
    """What ``llpbench status --json`` says."""
    done = llpbench("status", str(folder), "--json", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content
