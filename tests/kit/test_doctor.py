"""``doctor``: what does not work is found before a cell needs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_runner import llpbench, llpbench_process
from plugin_install import with_module

from llpbench.execution import sandbox
from llpbench.kit import diagnosis
from llpbench.plugins.registry import load_registry


def report(*arguments: str, cwd: Path, **environment: str) -> dict[str, object]:
    done = llpbench("doctor", "--json", *arguments, cwd=cwd, **environment)
    content: dict[str, object] = json.loads(done.stdout)
    assert done.returncode == (1 if content["problems"] else 0)
    return content


def test_json_equals_the_printed_report(tmp_path: Path) -> None:
    content = report("--no-imports", cwd=tmp_path)
    assert content["problems"] == []
    assert content["requirements"]
    (plugin,) = content["plugins"]
    assert plugin["plugin"] == "built-in"
    assert {"adult", "criteo"} <= {item["name"] for item in content["data"]}
    printed = llpbench("doctor", "--no-imports", cwd=tmp_path).stdout
    for item in content["packages"]:
        assert item["name"] in printed


def test_requirement_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ["numpy>=999", "scipy>=1", "no-such-package>=1; extra == 'x'", "absent>=2", "jax<0; extra == 'jax'"]
    monkeypatch.setattr(diagnosis, "requires", lambda name: needs)
    problems: list[str] = []
    found = {item["name"]: item["ok"] for item in diagnosis.check_requirements(problems)}
    assert found == {"numpy": False, "scipy": True, "absent": False, "jax": False}
    assert len(problems) == 3
    assert "numpy>=999 is required, " in problems[0]
    assert 'not installed: pip install "absent>=2"' in problems[1]


def test_doctor_reports_files_that_cannot_be_fetched(tmp_path: Path) -> None:
    for name in ("empty", "cache"):
        (tmp_path / name).mkdir()
    places = {"LLPBENCH_DATA": str(tmp_path / "empty"), "LLPBENCH_CACHE": str(tmp_path / "cache")}
    content = report("--no-imports", cwd=tmp_path, **places)
    data = {item["name"]: item for item in content["data"]}
    assert data["criteo"]["state"] == "cannot be fetched"
    assert "it has no source" in next(iter(data["criteo"]["cannot_be_fetched"].values()))
    assert data["adult"]["state"] == "to be fetched on first use"
    assert data["adult"]["to_fetch_bytes"] > 10**6
    offline = report("--no-imports", cwd=tmp_path, LLPBENCH_OFFLINE="1", **places)
    adult = next(item for item in offline["data"] if item["name"] == "adult")
    assert set(adult["cannot_be_fetched"].values()) == {"LLPBENCH_OFFLINE is set"}


def test_import_that_fails_or_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "falls.py").write_text("raise OSError('libwhatever.so: \\x1b not found')\n")
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert diagnosis.try_import("json") == ""
    assert diagnosis.try_import("falls") == "OSError: libwhatever.so: ? not found"
    assert "No module named" in diagnosis.try_import("no_such_module")
    assert diagnosis.try_import("hangs", 0.5) == "not done within 0.5 seconds"


@pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")
def test_doctor_tests_locking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[str] = []
    assert diagnosis.check_sandbox(problems).startswith("Landlock version")
    assert not problems
    inside = [sys.executable, str(Path(__file__).parents[1] / "support" / "attacks" / "nested.py"), sys.executable]
    monkeypatch.setattr(diagnosis, "python_command", lambda: inside)
    assert diagnosis.check_sandbox(problems).startswith("not sandboxed")
    (problem,) = problems
    assert problem.startswith("no method can run: the method's process could not enter its sandbox")


@pytest.mark.slow
def test_modules_of_a_plugin_are_imported(tmp_path: Path) -> None:
    environment = with_module(tmp_path, "pkg", "")
    (tmp_path / "pkg.py").unlink()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text(
        "from llpbench import hookimpl\n@hookimpl\ndef llpbench_methods():\n    return []\n"
    )
    (tmp_path / "pkg" / "engine.py").write_text("1 / 0\n")
    (tmp_path / "pkg" / "extra.py").write_text("import no_such_library\n")
    done = llpbench_process("doctor", "--json", cwd=tmp_path, LLPBENCH_PLUGINS="pkg", **environment)
    content = json.loads(done.stdout)
    assert done.returncode == 1
    assert content["problems"] == ["pkg.engine cannot be imported: ZeroDivisionError: division by zero"]
    (item,) = content["modules"]
    assert item["absent"] == {"pkg.extra": "no_such_library"}
    assert {"plugin": "pkg", "from": "pkg 1.0"}.items() <= content["plugins"][1].items()


@pytest.mark.slow
def test_all_built_in_modules_import_here(tmp_path: Path) -> None:
    content = report(cwd=tmp_path)
    assert content["problems"] == []
    found = {item["package"]: item for item in content["modules"]}
    assert found["llpbench_methods"]["fine"] > 50  # engines of belief propagation among them
    assert all(item["state"] == "imports" for item in content["packages"] if item["version"])


def test_diagnosis_names_each_step_before_it_runs() -> None:
    steps: list[str] = []
    diagnosis.diagnose(load_registry(), imports=False, on_step=steps.append)
    assert steps[0] == "the sandbox of a method's process"
    assert steps[-1] == "data files"
