"""Running the command line: in this process where no process is the point, in one of its own where it is."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FAULTY = Path(__file__).parent / "faults" / "faulty.py"
_ROOT = Path(__file__).resolve().parents[2]
_SUPPORT = Path(__file__).resolve().parent
_TEMPORARY = Path(tempfile.gettempdir())
Completed = subprocess.CompletedProcess[str]


def llpbench(*arguments: str, cwd: Path, **environment: str) -> Completed:
    """Run the command line and return what it printed and its exit code.

    An environment that names Python packages (``PYTHONPATH``) needs a process of its own, since entry points are looked
    up once; everything else runs here, which saves a second of imports each time.
    """
    if "PYTHONPATH" in environment:
        return llpbench_process(*arguments, cwd=cwd, **environment)
    from llpbench.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    alone, warnings = _as_if_alone(["llpbench", *arguments], cwd, environment), logging.StreamHandler(err)
    logging.getLogger("llpbench").addHandler(warnings)
    with alone, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(arguments))
            code: Any = 0
        except SystemExit as end:
            code = end.code
        finally:
            logging.getLogger("llpbench").removeHandler(warnings)
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Completed(list(arguments), int(code or 0), printed, said)


@contextlib.contextmanager
def _as_if_alone(argv: list[str], cwd: Path, environment: dict[str, str]) -> Iterator[None]:
    """Set what a process has of its own, and put it back: arguments, folder, environment, modules, signals."""
    before_argv, before_cwd, before_environment = sys.argv, Path.cwd(), dict(os.environ)
    before_term = signal.getsignal(signal.SIGTERM)
    _forget_plugin_files()
    sys.argv = argv
    os.chdir(cwd)
    os.environ.update({"NO_COLOR": "1", **environment})
    try:
        yield
    finally:
        sys.argv = before_argv
        os.chdir(before_cwd)
        os.environ.clear()
        os.environ.update(before_environment)
        signal.signal(signal.SIGTERM, before_term)
        _forget_plugin_files()
        importlib.invalidate_caches()


def _forget_plugin_files() -> None:
    """Unload plugins in single files of this or an earlier test: the next may have another of the same name."""
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        of_tests = _SUPPORT in file.parents and file.parent != _SUPPORT
        of_a_test = _TEMPORARY in file.parents and not {_ROOT, Path(sys.prefix), Path(sys.base_prefix)} & {
            *file.parents
        }
        if "." not in name and (of_tests or of_a_test):
            del sys.modules[name]


def llpbench_process(*arguments: str, cwd: Path, timeout: float = 1800, **environment: str) -> Completed:
    """Run ``python -m llpbench`` in a process of its own; the timeout only ends what would never end."""
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
