"""Many cells, and a machine that fails under them: a full disk, data that vanish, a clock that jumps."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest
from cli_runner import FAULTY, llpbench, status
from helpers import PATIENCE, make_cell, make_plan, make_result

from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import run_jobs
from llpbench.plugins.registry import load_registry
from llpbench.results.sealing import encode_result
from llpbench.results.store import Store
from llpbench.system import files

ROOT = Path(__file__).resolve().parents[2]
COUNTED = Path(__file__).parents[1] / "support" / "faults" / "counted.py"
SMALL = "synthetic[rows=400;dim=4]"


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_memory_of_the_parent_does_not_grow_with_the_cells(tmp_path: Path) -> None:
    """The measurement of ``benchmarks/load.py``, on fewer cells."""
    load = module_at(ROOT / "benchmarks" / "load.py")
    _, samples = load.run_grid(tmp_path, 120)
    assert len(samples) > 3
    assert load.growth(samples) < 8  # MB; a parent that kept predictions or results would still grow here
    assert status(tmp_path / "out")["counts"] == {"ok": 120}


# -- a full disk -------------------------------------------------------------------------------------------------------

FILLING = """
import os
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="filling", factory="filling:Filling")]

class Filling:
    def fit(self, bags, *, monitor, seed):
        if bags.sizes[0] == 8 and os.environ.get("LLPBENCH_TEST_FILL"):
            handle = os.open(os.path.join(os.environ["LLPBENCH_CACHE"], "full"), os.O_WRONLY | os.O_CREAT)
            try:
                for size in (1 << 16, 1 << 12, 1):
                    try:
                        while True:
                            os.write(handle, bytes(size))
                    except OSError:
                        pass
            finally:
                os.close(handle)
        return self

    def predict_scores(self, X):
        return X[:, 0]
"""
DISK = """
set -e
mount -t tmpfs -o size=6m tmpfs disk
set +e
run() {{ "{python}" -m llpbench run --plugin filling.py --methods filling --datasets "{data}" --bags 4,8,16 \
    --seeds 1 --jobs 1 --out disk/out "$@"; }}
export LLPBENCH_CACHE=$PWD/disk/cache
LLPBENCH_TEST_FILL=1 run 2> first.err; echo $? > first.code
ls disk/out/cells > first.cells
rm $LLPBENCH_CACHE/methods/*/full
run 2> second.err; echo $? > second.code
"{python}" -m llpbench status disk/out --json > status.json
find disk/out -name '*.tmp' -o -name .room > left
umount disk
"""


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True).returncode == 0


@pytest.mark.slow
def test_full_disk_stops_the_run_and_loses_no_result(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("cannot mount a small file system here")
    (tmp_path / "filling.py").write_text(FILLING)
    (tmp_path / "disk").mkdir()
    script = DISK.format(python=sys.executable, data=SMALL)
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    words = (tmp_path / "first.err").read_text()
    assert (tmp_path / "first.code").read_text() == "2\n", words
    assert "error: cannot write results to disk/out: No space left on device" in words
    assert "repeat the command to run the missing cells" in words
    assert "Traceback" not in words
    kept = (tmp_path / "first.cells").read_text().split()
    assert len(kept) == 1  # bag 4; the cell that ran when the disk filled up is missing, not failed
    assert (tmp_path / "second.code").read_text() == "0\n", (tmp_path / "second.err").read_text()
    assert "3 cells, 1 already done" in (tmp_path / "second.err").read_text()
    assert json.loads((tmp_path / "status.json").read_text())["counts"] == {"ok": 3}
    assert (tmp_path / "left").read_text() == ""


class Scripted:
    """An executor of one slot whose cells end as they are told to."""

    def __init__(self, store: Store, ends: list[CellResult | None]) -> None:
        self.store, self.ends, self.done, self.closed = store, ends, [], False  # type: ignore[var-annotated]

    @property
    def slots(self) -> int:
        return 0 if self.done else 1

    def submit(self, job: Job) -> None:
        result = self.ends.pop(0)
        if result is not None:
            self.store.result_path(result.id).write_bytes(encode_result(result))
        self.done.append(Outcome(job, "finished" if result else "crashed", "" if result else "exit code 70"))

    def wait(self, seconds: float) -> list[Outcome]:
        done, self.done = self.done, []
        return done

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("left", ["nothing", "a failed result"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_cell_is_not_failed_by_a_disk_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, number: int
) -> None:
    cells = [make_cell(seed=seed) for seed in range(3)]
    store = Store(tmp_path / "run")
    store.plan([make_plan(cell) for cell in cells], "llpbench run", "0.1.0")
    failed = make_result(cells[1], status="failed", reason="OSError") if left != "nothing" else None
    executor = Scripted(store, [make_result(cells[0]), failed, None])

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", refuse)
    jobs = [Job(cell=cell, method_name="guess", dataset_name="toy", out=str(store.root)) for cell in cells]
    with pytest.raises(StoreError, match=f"{os.strerror(number)}. Finished cells are kept"):
        run_jobs(jobs, store, load_registry(), executor)
    assert [result.cell.seed for result in store.results()] == [0]
    assert executor.closed
    assert list((store.root / "claims").iterdir()) == []
    assert not [p for p in store.root.rglob("*") if p.name.endswith(".tmp") or p.name == ".room"]


def test_claim_on_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "run")
    store.plan([make_plan()], "llpbench run", "0.1.0")

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match=r"cannot claim cell .* No space left on device"):
        store.claim("0" * 16)


def started_and_one_cell_done(command: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A run in the background, as soon as its folder ``out`` holds a result."""
    process = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *command],
        cwd=cwd, env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while not list((cwd / "out" / "cells").glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_missing_data_folder_fails_cells_until_it_is_back(tmp_path: Path, counted: Path) -> None:
    data = tmp_path / "data" / "counted"
    data.mkdir(parents=True)
    (data / "table.bin").write_bytes(module_at(COUNTED).TABLE)
    command = ["run", "--plugin", str(COUNTED), "--methods", "counted[seconds=0.6]", "--datasets", "counted-file"]
    command += ["--bags", "4,8", "--seeds", "2", "--jobs", "1", "--data", str(tmp_path / "data"), "--out", "out"]
    environment = {"LLPBENCH_TEST_COUNTED": str(counted), "LLPBENCH_CACHE": str(tmp_path / "cache")}
    process = started_and_one_cell_done(command, tmp_path, environment)
    (tmp_path / "data").rename(tmp_path / "away")
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, errors
    found = status(tmp_path / "out")
    assert found["counts"].get("ok", 0) >= 1, found["troubles"]
    assert found["counts"]["failed"] == 4 - found["counts"]["ok"] >= 1
    words = f"--data names the data folder {tmp_path / 'data'}, which does not exist"
    assert all(words in trouble["reason"] for trouble in found["troubles"])
    (tmp_path / "away").rename(tmp_path / "data")
    done = llpbench(*command, "--rerun", "failed", cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert f"4 cells, {found['counts']['ok']} already done" in done.stderr


# -- a clock that jumps ------------------------------------------------------------------------------------------------

CLOCK = """
import os, time
seconds = float(os.environ["LLP_JUMP"])
truth = {name: getattr(time, name) for name in ("time", "time_ns", "gmtime", "localtime")}

def jump():
    return seconds if os.path.exists(os.environ["LLP_JUMPED"]) else 0.0

time.time = lambda: truth["time"]() + jump()
time.time_ns = lambda: truth["time_ns"]() + int(jump() * 1e9)
time.gmtime = lambda s=None: truth["gmtime"](time.time() if s is None else s)
time.localtime = lambda s=None: truth["localtime"](time.time() if s is None else s)
replace = os.replace

def replace_with_the_time_of_this_clock(source, target, **options):
    replace(source, target, **options)
    os.utime(target, (time.time(), time.time()))

os.replace = replace_with_the_time_of_this_clock
"""


@pytest.mark.slow
def test_jumping_clock_changes_no_limit_and_no_result(tmp_path: Path) -> None:
    """All processes of a run (parent, server, cells) see their wall clock and file times jump in the middle."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    environment = {"PYTHONPATH": path, "LLP_JUMP": "-86400", "LLP_JUMPED": str(tmp_path / "jumped")}
    command = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good,faulty-hang", "--datasets", SMALL]
    command += ["--bags", "4", "--seeds", "1", "--jobs", "1", "--timeout", "15", "--out", "out"]
    process = started_and_one_cell_done(command, tmp_path, environment)
    (tmp_path / "jumped").touch()
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, errors
    found = [json.loads(p.read_text())["result"] for p in (tmp_path / "out" / "cells").glob("*.json")]
    ends = sorted((r["cell"]["method"], r["status"]) for r in found)
    assert ends == [("faulty-good", "ok"), ("faulty-hang", "timeout")]
    stamps = sorted(datetime.fromisoformat(r["started"]) for r in found)
    assert (stamps[-1] - stamps[0]).total_seconds() > 80_000  # the jump was seen
    for result in found:
        spent = [value for name, value in result.items() if name.endswith("seconds")]
        assert all(0 <= seconds < 3600 for seconds in (*spent, *result.get("phases", {}).values()))
    assert all(r["wall_seconds"] >= 15 for r in found if r["status"] == "timeout")
    again = llpbench(*command, cwd=tmp_path, **environment)
    assert "2 cells, 2 already done" in again.stderr
