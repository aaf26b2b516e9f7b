"""Cells that misbehave and runs that are interrupted: a fault costs one cell, and no result is lost."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from cli_runner import FAULTY, llpbench, status, table
from helpers import PATIENCE, make_cell, make_plan, make_result

from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.execution.launch import Launcher
from llpbench.execution.settle import settle
from llpbench.execution.watch import Watched
from llpbench.results.store import Store

SMALL = "synthetic[rows=400;dim=4]"
RUN = ["run", "--plugin", str(FAULTY)]
ONE = ["--datasets", SMALL, "--bags", "8", "--seeds", "1"]
EXPECTED = {
    "faulty-good": ("ok", ""),
    "faulty-raise": ("failed", "ValueError: the method is unhappy"),
    "faulty-hang": ("timeout", "--timeout 2"),
    "faulty-leak": ("memory", "MB of resident memory"),
    "faulty-segfault": ("crashed", "SIGSEGV"),
    "faulty-killed": ("crashed", "SIGKILL"),
    "faulty-exit": ("crashed", "exited with code 7"),
    "faulty-sysexit": ("crashed", "exited with code 3"),
    "faulty-skip": ("skipped", "not today"),
    "faulty-nan": ("failed", "NaN or infinite"),
    "faulty-shape": ("failed", "expected (40,)"),
    "faulty-mutate": ("failed", "read-only"),
    "faulty-nothing": ("failed", "return self"),
}


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A run in the background."""
    command = [sys.executable, "-m", "llpbench", *arguments]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def cells(folder: Path) -> dict[str, int]:
    """Result files and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")}


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_every_ending_has_a_status_and_reason(tmp_path: Path, start: str) -> None:
    command = [*RUN, *ONE, "--start", start, "--memory", "900MB", "--out", "out", "--methods"]
    others = ",".join(EXPECTED.keys() - {"faulty-hang"})
    for methods, limit in ((others, ()), ("faulty-hang", ("--timeout", "2"))):  # only one cell may time out
        done = llpbench(*command, methods, *limit, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
    results = [json.loads(p.read_text())["result"] for p in (tmp_path / "out" / "cells").glob("*.json")]
    ends = {r["cell"]["method"]: (r["status"], r.get("reason", "")) for r in results}
    assert set(ends) == set(EXPECTED)
    for method, (wanted, words) in EXPECTED.items():
        assert ends[method][0] == wanted, (method, ends[method])
        assert words in ends[method][1], (method, ends[method])
    row = {r["method"]: r for r in table(tmp_path / "out") if r["rule"] == "bags"}
    assert row["faulty-good"]["mean"] is not None
    assert all(row[m]["mean"] is None and row[m]["status"] == s for m, (s, _) in EXPECTED.items() if s != "ok")
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_failed_and_damaged_cells_run_again(tmp_path: Path) -> None:
    """Failed ones on request, damaged ones always."""
    command = [*RUN, "--methods", "faulty-good,faulty-raise", *ONE, "--seeds", "3", "--out", "out"]
    out = tmp_path / "out"
    assert llpbench(*command, cwd=tmp_path).returncode == 1
    good, before = table(out), cells(out)
    assert llpbench(*command, cwd=tmp_path).returncode == 1
    assert cells(out) == before
    assert llpbench(*command, "--rerun", "failed", cwd=tmp_path).returncode == 1
    assert sum(when != before[name] for name, when in cells(out).items()) == 3

    ok = [path for path in sorted((out / "cells").glob("*.json")) if '"status": "ok"' in path.read_text()]
    ok[0].write_bytes(ok[0].read_bytes()[:200])
    ok[1].write_text(ok[1].read_text().replace('"auroc": 0.', '"auroc": 0.9'))
    ok[2].write_text("[1, 2]")
    found = status(out)
    assert found["counts"] == {"failed": 3, "damaged": 3}
    assert any("edited by hand" in trouble["reason"] for trouble in found["troubles"])
    assert llpbench(*command, cwd=tmp_path).stderr.count("the cell is run again") == 3
    assert table(out) == good


def test_dataset_that_breaks_its_contract_fails_its_cells(tmp_path: Path) -> None:
    datasets = "faulty-nan,faulty-labels,faulty-ragged,faulty-tiny"
    command = [*RUN, "--methods", "faulty-good", "--datasets", datasets, "--bags", "201", "--seeds", "1"]
    assert llpbench(*command, "--out", "out", cwd=tmp_path).returncode == 1
    reasons = " ".join(trouble["reason"] for trouble in status(tmp_path / "out")["troubles"])
    for words in ("1 values that are NaN", "integers from 0 to 1", "9 labels", "bag size 201 is larger than the 200"):
        assert words in reasons


def grid(out: str) -> list[str]:
    methods = ["--methods", "faulty-slow[seconds=0.6],faulty-good", "--datasets", SMALL]
    return [*RUN, *methods, "--bags", "4,8", "--seeds", "2", "--out", out]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The table of a run of ``grid`` without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    assert llpbench(*grid("out"), cwd=folder).returncode == 0
    return table(folder / "out")


@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_and_continued_run_equals_an_uninterrupted_one(
    tmp_path: Path, whole: list[dict[str, Any]], stop: signal.Signals
) -> None:
    out = tmp_path / "out"
    run = started(tmp_path, *grid("out"), "--jobs", "1")
    until(lambda: cells(out), "no cell was finished")
    run.send_signal(stop)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert "the same command goes on" in errors
    kept = cells(out)
    assert 1 <= len(kept) < 8
    assert status(out)["counts"].get("missing") == 8 - len(kept)
    assert llpbench(*grid("out"), cwd=tmp_path).returncode == 0
    assert kept.items() <= cells(out).items()
    assert table(out) == whole


@pytest.mark.slow
def test_two_runs_on_one_folder_share_the_work(tmp_path: Path, whole: list[dict[str, Any]]) -> None:
    runs = [started(tmp_path, *grid("shared")) for _ in range(2)]
    errors = [run.communicate(timeout=PATIENCE)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    assert status(tmp_path / "shared")["counts"] == {"ok": 8}
    assert table(tmp_path / "shared") == whole
    assert not list((tmp_path / "shared" / "claims").iterdir())


def test_killed_run_leaves_no_processes(tmp_path: Path) -> None:
    run = started(tmp_path, *RUN, "--methods", "faulty-hang", *ONE, "--out", "out")
    family: list[psutil.Process] = []

    def all_started() -> bool:
        family[:] = psutil.Process(run.pid).children(recursive=True)
        return len(family) >= 3  # the fork server, the judge and the method

    until(all_started, "the cell did not start")
    run.kill()
    run.communicate()
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive


@pytest.mark.slow
def test_killed_fork_server_is_replaced_and_its_cells_restart(tmp_path: Path, whole: list[dict[str, Any]]) -> None:
    run = started(tmp_path, *grid("out"))
    servers: list[psutil.Process] = []

    def has_server() -> bool:  # Python starts another process for a moment, to ask for the name of the processor
        with contextlib.suppress(psutil.Error):
            children = psutil.Process(run.pid).children()
            servers[:] = [child for child in children if "llpbench.execution.fork_server" in child.cmdline()]
        return bool(servers)

    until(has_server, "there is no fork server")
    servers[0].kill()
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, errors
    assert "Traceback" not in errors
    assert "restarting its cells" in errors
    assert table(tmp_path / "out") == whole


@pytest.mark.slow
def test_run_survives_kills_of_any_of_its_processes(tmp_path: Path) -> None:
    """One kill of each kind; ``benchmarks/fault_loop.py`` does thirty."""
    script = Path(__file__).parents[2] / "benchmarks" / "fault_loop.py"
    command = [sys.executable, str(script), "--kills", "5", "--cells", "12", "--seed", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal byte for byte" in done.stdout


STALE = """
import errno, pathlib

moved, replace = pathlib.Path({counts!r}), pathlib.Path.replace

def fail_at_first(self, target):
    \"\"\"A rename of a result fails as often as it is tried in one process, then it works.\"\"\"
    if self.parent.name == "cells":
        with moved.open("a") as file:
            file.write("x")
        if len(moved.read_text()) <= 4:
            raise OSError(errno.ESTALE, "Stale file handle")
    return replace(self, target)

pathlib.Path.replace = fail_at_first
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_cell_whose_result_cannot_be_written_is_run_again(tmp_path: Path, start: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(STALE.format(counts=str(tmp_path / "counts")))
    command = [*RUN, "--methods", "faulty-good", *ONE, "--seeds", "2", "--start", start, "--jobs", "1", "--out", "out"]
    done = llpbench(*command, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert "is run again: the harness failed" in done.stderr
    assert "Stale file handle" in done.stderr
    assert status(tmp_path / "out")["counts"] == {"ok": 2}


def test_unwritable_results_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = llpbench("run", "--methods", "mean-ridge", "--datasets", SMALL, "--out", "file/out", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write results to file/out" in done.stderr
    assert "--out" in done.stderr


def test_result_is_kept_if_its_process_was_killed_after_writing_it(tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "out"), make_cell()
    store.plan([make_plan(cell)], "llpbench run", "0.1.0")
    store.keep_predictions(cell.id, b"scores")
    store.write(make_result(cell))
    job = Job(cell=cell, method_name="", dataset_name="", out=str(store.root))
    killed = Outcome(job, "crashed", "the process was killed by SIGKILL")
    assert settle(store, killed, before="").status == "ok"
    assert store.predictions_path(cell.id).exists()
    unchanged = store.stamp(cell.id)  # the file is that of an earlier run
    assert settle(store, killed, before=unchanged).status == "crashed"
    assert not store.predictions_path(cell.id).exists()


@pytest.mark.parametrize(("error", "stays"), [(KeyboardInterrupt(), True), (OSError("no more processes"), False)])
def test_interrupt_at_the_start_keeps_the_folder_of_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, stays: bool
) -> None:
    """The cell may have started when the interrupt came; without its folder it would crash before it is stopped."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders: list[Path] = []

    class Interrupted:
        def start(self, job: Job, cores: list[int]) -> int:
            folders.append(Path(job.scratch))
            raise error

    job = Job(cell=make_cell(), method_name="a", dataset_name="toy", out=str(tmp_path / "out"))
    with pytest.raises(type(error)):
        Watched.begin(job, cast("Launcher", Interrupted()), [])
    assert [folder.is_dir() for folder in folders] == [stays]


HANGS = """
import faulthandler, sys, time
from llpbench.execution.processes import SHOW_STACKS
faulthandler.register(SHOW_STACKS)
def wait():
    print("ready", flush=True)
    time.sleep(3600)
wait()
"""
JUDGE = """
import subprocess, sys
subprocess.run([sys.executable, sys.argv[1]], stdout=open(sys.argv[2], "wb"), stderr=subprocess.STDOUT)
"""


def test_timeout_prints_the_stacks_of_the_method_and_names_its_line(tmp_path: Path) -> None:
    log = tmp_path / "method.log"
    (tmp_path / "hangs.py").write_text(HANGS)
    command = [sys.executable, "-c", JUDGE, tmp_path / "hangs.py", log]
    judge = subprocess.Popen(command, process_group=0)

    class Started:
        def pid(self, number: int) -> int:
            return judge.pid

    job = Job(cell=make_cell(), method_name="a", dataset_name="toy", out=str(tmp_path / "out"), timeout=1e9)
    watched = Watched(job, cast("Launcher", Started()), 1, tmp_path)
    try:
        until(lambda: log.is_file() and "ready" in log.read_text(), "the method does not start")
        watched.check()
        assert watched.broken is None
        watched.started -= 2e9
        watched.check()
    finally:
        judge.kill()
        judge.wait()
    assert watched.broken is not None
    assert watched.broken[1].endswith("(--timeout 1e+09); it was at hangs.py:7 in wait")
    assert 'hangs.py", line 8 in <module>' in log.read_text()
