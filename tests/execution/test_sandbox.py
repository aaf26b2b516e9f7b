"""What a process in the sandbox can still do, tried by one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import make_plan

from llpbench.contracts.cell import Cell
from llpbench.contracts.job import Job
from llpbench.execution import confines, sandbox
from llpbench.execution.jobs import make_jobs
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import load_registry
from llpbench.results.store import Store, is_results_folder

pytestmark = pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")
SCRIPT = """
import json, socket, sys
from pathlib import Path
from llpbench.execution.sandbox import lock_away

root = Path(sys.argv[1])
server = socket.create_server(("127.0.0.1", 0))
paths = {name: [root / p for p in places] for name, places in json.loads(sys.argv[2]).items()}
assert lock_away(paths["locked"], readable=paths["readable"], writable=paths["writable"])

def can(what, *arguments):
    try:
        return what(*arguments) or True
    except OSError:
        return False

found = {}
for file in sorted(json.loads(sys.argv[3])):
    path = root / file
    read, write, new = can(path.read_bytes), can(path.write_bytes, b"x"), can((path.parent / "new").write_bytes, b"x")
    found[file] = "".join(letter for letter, done in zip("rwn", (read, write, new)) if done)
found["connect"] = bool(can(lambda: socket.create_connection(server.getsockname()).close()))
print(json.dumps(found))
"""
FILES = ("results/cell", "results/cache/file", "scratch/file", "scratch/results/cell", "other/file", "mine")


def tried(root: Path, **paths: tuple[str, ...]) -> dict[str, str]:
    """What was possible with each file: ``r`` read, ``w`` write, ``n`` create a new one beside it."""
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("y")
    asked = {"locked": (), "readable": (), "writable": (), **paths}
    command = [sys.executable, "-c", SCRIPT, str(root), json.dumps(asked), json.dumps(FILES)]
    found: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def test_locked_and_writable_folders_get_their_rights(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("results",), writable=("scratch", "results/cache"))
    assert found["results/cell"] == ""
    assert found["results/cache/file"] == found["scratch/file"] == found["scratch/results/cell"] == "rwn"
    assert found["other/file"] == found["mine"] == "r"
    assert not found["connect"]


def test_nothing_is_writable_by_default(tmp_path: Path) -> None:
    assert {letters for file, letters in tried(tmp_path).items() if file in FILES} == {"r"}


def test_locked_folder_inside_a_writable_one_stays_locked(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("scratch/results",), writable=("scratch",))
    assert found["scratch/results/cell"] == ""
    assert found["scratch/file"] == "rw"  # and nothing new on the way to it


def test_readable_path_inside_a_locked_one_can_be_read(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("", "scratch/results"), readable=("results/cache", "scratch", "mine"))
    assert found["results/cache/file"] == found["scratch/file"] == found["mine"] == "r"
    assert found["results/cell"] == found["scratch/results/cell"] == found["other/file"] == ""


def test_file_can_be_locked(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("scratch/file",))
    assert found["scratch/file"] == ""
    assert found["scratch/results/cell"] == found["mine"] == "r"


def test_star_locks_all_entries_with_the_prefix(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("o*", "scr*", "res*", "results/c*"), writable=("scratch",))
    assert found["other/file"] == found["results/cell"] == found["results/cache/file"] == ""
    assert found["scratch/file"] == found["scratch/results/cell"] == "rwn"  # what is writable is spared
    assert found["mine"] == "r"


def test_star_leaves_out_folders_that_contain_a_locked_one(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("scr*", "scratch/results"))
    assert found["scratch/file"] == "r"
    assert found["scratch/results/cell"] == ""


def test_unreadable_folder_beside_the_results_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("mine", "closed", "other", "one-more")
    for name in names:
        (tmp_path / name / "cells").mkdir(parents=True)
        (tmp_path / name / "manifest.json").touch()

    def look(folder: Path) -> bool:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return is_results_folder(folder)

    monkeypatch.setattr(confines, "is_results_folder", look)
    cell = Cell(dataset="any", method="any", bag_size=1, seed=0)
    job = Job(cell=cell, method_name="", dataset_name="", out=str(tmp_path / "mine"))
    monkeypatch.setenv("LLPBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    assert set(confines.out_of_reach(job)) == {str(tmp_path / name) for name in (*names, "data", "cache")}


def locked_files(tmp_path: Path, dataset: str, **options: str) -> set[Path]:
    registry = load_registry()
    cell = Cell(dataset=dataset, dataset_options=options, method="mean-ridge", bag_size=1, seed=0)
    settings = RunSettings(methods="mean-ridge", data=str(tmp_path / "data"))
    (job,) = make_jobs([make_plan(cell)], Store(tmp_path / "out"), registry, settings)
    return {Path(path).resolve() for path in confines.out_of_reach(job)}


def test_files_that_a_dataset_is_read_from_are_locked(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table = tmp_path / "table.csv"
    assert table in locked_files(tmp_path, "csv", path=f"{table}#0123456789abcdef", label="y")
    assert table not in locked_files(tmp_path, "adult")
    link = tmp_path / "data" / load_registry().datasets["adult"].files[0].path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(table)
    assert {table, tmp_path / "data"} <= locked_files(tmp_path, "adult")


WITHIN = """
import multiprocessing, os, subprocess, sys, threading
from pathlib import Path
from llpbench.execution.sandbox import lock_away

assert lock_away([])
multiprocessing.Lock()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
subprocess.run([sys.executable, "-c", ""], stdout=subprocess.DEVNULL, check=True)
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
Path(f"/proc/self/task/{thread.native_id}/comm").write_text("named")
Path("/dev/null").write_bytes(b"x")
"""


def test_libraries_keep_semaphores_pools_subprocesses_and_thread_names(tmp_path: Path) -> None:
    """Graphics cards do not start if their threads cannot be named."""
    subprocess.run([sys.executable, "-c", WITHIN], check=True, cwd=tmp_path)


THREADED = """
import threading
from llpbench.contracts.errors import LLPBenchError
from llpbench.execution.sandbox import lock_away

threading.Thread(target=threading.Event().wait, daemon=True).start()
try:
    lock_away([])
except LLPBenchError as error:
    print(error)
"""
LIGHT = "import sys; import llpbench.execution.method_start; print('numpy' in sys.modules)"


def test_process_with_threads_cannot_enter_the_sandbox() -> None:
    done = subprocess.run([sys.executable, "-c", THREADED], check=True, capture_output=True, text=True)
    assert "could not enter its sandbox: it has 2 threads" in done.stdout


def test_method_start_does_not_import_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
