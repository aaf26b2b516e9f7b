"""Cells that misbehave: each gets its own status and reason, and every other cell finishes."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import psutil
import pytest
from cli_runner import FAULTY, llpbench, status, table
from helpers import PATIENCE, make_cell

from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.execution.settle import settle
from llpbench.execution.watch import Launcher, Watched
from llpbench.results.store import Store

pytestmark = pytest.mark.slow

SMALL = "synthetic[rows=400;dim=4]"
EXPECTED = {
    "faulty-good": ("ok", ""),
    "faulty-raise": ("failed", "ValueError: the method is unhappy"),
    "faulty-hang": ("timeout", "--timeout 2"),
    "faulty-leak": ("memory", "MB resident"),
    "faulty-segfault": ("crashed", "SIGSEGV"),
    "faulty-killed": ("crashed", "SIGKILL"),
    "faulty-exit": ("crashed", "exited with code 7"),
    "faulty-skip": ("skipped", "not today"),
    "faulty-nan": ("failed", "NaN or infinite"),
    "faulty-shape": ("failed", "expected (40,)"),
    "faulty-mutate": ("failed", "read-only"),
    "faulty-nothing": ("failed", "return self"),
}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_every_way_to_end(tmp_path: Path, start: str) -> None:
    command = ["run", "--plugin", str(FAULTY), "--datasets", SMALL, "--bags", "8", "--seeds", "1", "--start", start]
    command += ["--memory", "900MB", "--out", "out", "--methods"]
    others = ",".join(EXPECTED.keys() - {"faulty-hang"})
    for methods, limit in ((others, ()), ("faulty-hang", ("--timeout", "2"))):  # a busy machine is no time-out
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


def test_failed_cells_run_again_only_on_request(tmp_path: Path) -> None:
    command = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good,faulty-raise", "--datasets", SMALL]
    command += ["--bags", "8", "--seeds", "1", "--out", "out"]
    assert llpbench(*command, cwd=tmp_path).returncode == 1
    cells = tmp_path / "out" / "cells"
    before = {p.name: p.stat().st_mtime_ns for p in cells.glob("*.json")}
    assert llpbench(*command, cwd=tmp_path).returncode == 1
    assert {p.name: p.stat().st_mtime_ns for p in cells.glob("*.json")} == before
    assert llpbench(*command, "--rerun", "failed", cwd=tmp_path).returncode == 1
    changed = {p.name for p in cells.glob("*.json") if p.stat().st_mtime_ns != before[p.name]}
    assert len(changed) == 1
    llpbench(*command, "--rerun", "all", cwd=tmp_path)
    assert all(p.stat().st_mtime_ns != before[p.name] for p in cells.glob("*.json"))


@pytest.mark.parametrize(
    ("dataset", "words"),
    [("faulty-nan", "1 values that are NaN"), ("faulty-labels", "integers from 0 to 1"), ("faulty-ragged", "9 labels")],
)
def test_a_dataset_that_breaks_its_contract(tmp_path: Path, dataset: str, words: str) -> None:
    done = llpbench(
        "run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", dataset, "--bags", "8",
        "--seeds", "1", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert words in status(tmp_path / "out")["troubles"][0]["reason"]


def test_a_bag_larger_than_the_training_rows(tmp_path: Path) -> None:
    done = llpbench(
        "run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", "faulty-tiny", "--bags", "201",
        "--seeds", "1", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "bag size 201 is larger than the 200 training rows" in status(tmp_path / "out")["troubles"][0]["reason"]


def _grid(out: str) -> list[str]:
    arguments = ["run", "--plugin", str(FAULTY), "--methods", "faulty-slow[seconds=0.6],faulty-good"]
    return [*arguments, "--datasets", SMALL, "--bags", "4,8,16", "--seeds", "2", "--out", out]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_continued_equals_uninterrupted(tmp_path: Path, stop: signal.Signals) -> None:
    assert llpbench(*_grid("whole"), cwd=tmp_path).returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *_grid("broken")], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    cells = tmp_path / "broken" / "cells"
    deadline = time.monotonic() + PATIENCE
    while len(list(cells.glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command goes on" in errors
    kept = {p.name: p.stat().st_mtime_ns for p in cells.glob("*.json")}
    assert 2 <= len(kept) < 12
    assert status(tmp_path / "broken")["counts"].get("missing") == 12 - len(kept)

    assert llpbench(*_grid("broken"), cwd=tmp_path).returncode == 0
    assert all((cells / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert table(tmp_path / "broken") == table(tmp_path / "whole")


def test_truncated_and_edited_results_are_reported_and_run_again(tmp_path: Path) -> None:
    command = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", SMALL, "--bags", "4,8"]
    command += ["--seeds", "2", "--out", "out"]
    assert llpbench(*command, cwd=tmp_path).returncode == 0
    good = table(tmp_path / "out")
    first, second, third, _ = sorted((tmp_path / "out" / "cells").glob("*.json"))
    first.write_bytes(first.read_bytes()[:200])
    second.write_text(second.read_text().replace('"auroc": 0.', '"auroc": 0.9'))
    third.write_text("[1, 2]")
    found = status(tmp_path / "out")
    assert found["counts"] == {"ok": 1, "damaged": 3}
    assert any("edited by hand" in trouble["reason"] for trouble in found["troubles"])
    done = llpbench(*command, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("the cell is run again") == 3
    assert table(tmp_path / "out") == good


def test_two_runs_on_one_folder_share_the_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "llpbench", *_grid("shared")]
    runs = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [run.communicate(timeout=PATIENCE)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    assert status(tmp_path / "shared")["counts"] == {"ok": 12}
    assert llpbench(*_grid("whole"), cwd=tmp_path).returncode == 0
    assert table(tmp_path / "shared") == table(tmp_path / "whole")
    assert not list((tmp_path / "shared" / "claims").iterdir())


def test_a_killed_run_leaves_no_orphans(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "llpbench", "run", "--plugin", str(FAULTY), "--methods", "faulty-hang",
         "--datasets", SMALL, "--bags", "8", "--seeds", "2", "--out", "out"],
        cwd=tmp_path, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    children: list[psutil.Process] = []
    while time.monotonic() < deadline and len(children) < 3:
        children = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.1)
    assert len(children) >= 3
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive


def test_results_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = llpbench("run", "--methods", "mean-ridge", "--datasets", SMALL, "--out", "file/out", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write results to file/out" in done.stderr
    assert "--out" in done.stderr


def _fork_servers(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return [p for p in psutil.Process(pid).children() if "llpbench.execution.fork_server" in p.cmdline()]
    return []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("when", ["while it imports", "while cells run"])
def test_a_fork_server_that_ends_or_is_stopped_is_replaced(tmp_path: Path, how: signal.Signals, when: str) -> None:
    """Its cells are not to blame: they run again, and nothing but a warning is seen of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *_grid("out")], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE
    struck = False
    while not struck and time.monotonic() < deadline and process.poll() is None:
        for server in _fork_servers(process.pid):
            with contextlib.suppress(psutil.Error):
                if when == "while it imports" or server.children():
                    server.send_signal(how)
                    struck = True
        time.sleep(0.01)
    _, errors = process.communicate(timeout=PATIENCE)
    assert struck
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "its cells start again" in errors
    assert status(tmp_path / "out")["counts"] == {"ok": 12}
    assert llpbench(*_grid("whole"), cwd=tmp_path).returncode == 0
    assert table(tmp_path / "out") == table(tmp_path / "whole")


def test_a_sound_result_stands_though_its_process_was_killed_afterwards(tmp_path: Path) -> None:
    command = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", SMALL, "--bags", "8"]
    assert llpbench(*command, "--seeds", "1", "--out", "out", cwd=tmp_path).returncode == 0
    store = Store(tmp_path / "out")
    (result,) = store.results()
    job = Job(cell=result.cell, method_name="", dataset_name="", out=str(store.root))
    killed = Outcome(job, "crashed", "the process was killed by SIGKILL")
    assert settle(store, killed, before=(0, 0, 0)).status == "ok"
    assert store.predictions_path(result.id).exists()
    assert (
        settle(store, killed, before=store.stamp(result.id)).status == "crashed"
    )  # the file is from before: it has no result
    assert not store.predictions_path(result.id).exists()


def test_a_run_is_killed_again_and_again(tmp_path: Path) -> None:
    """Whoever of its processes dies, the table comes out the same; the loop of thirty is in ``benchmarks``."""
    script = Path(__file__).parents[2] / "benchmarks" / "fault_loop.py"
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "6", "--seed", "1"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal byte for byte" in done.stdout


@pytest.mark.parametrize(("trouble", "stays"), [(KeyboardInterrupt(), True), (OSError("no more processes"), False)])
def test_an_interrupt_at_the_start_takes_no_folder_from_a_cell_that_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException, stays: bool
) -> None:
    """The cell was asked for when the interrupt came; without its folder it ended as crashed before it was stopped."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked: list[Path] = []

    class Interrupted:
        def start(self, job: Job, cores: list[int]) -> int:
            asked.append(Path(job.scratch))
            raise trouble

    job = Job(cell=make_cell(), method_name="a", dataset_name="toy", out=str(tmp_path / "out"))
    with pytest.raises(type(trouble)):
        Watched.begin(job, cast("Launcher", Interrupted()), [])
    assert [folder.is_dir() for folder in asked] == [stays]
