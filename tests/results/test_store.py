"""The results folder: whole files or none, damage is seen, and several runs may share it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import PATIENCE, make_cell, make_plan, make_result

from llpbench.contracts.errors import StoreError
from llpbench.contracts.job import Job
from llpbench.execution.worker import run_job
from llpbench.plugins.registry import load_registry
from llpbench.results.request import Request
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store, newest_store
from llpbench.system import files
from llpbench.system.files import write_atomically


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "run")
    store.plan([make_plan(make_cell(seed=s)) for s in range(3)], "llpbench run --methods guess", "0.1.0")
    return store


# -- files -------------------------------------------------------------------------------------------------------------


def test_file_is_written_whole_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "file.json"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(*((files.os, "fsync") if failing == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_is_tried_again_after_a_transient_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.ESTALE, "Stale file handle")] * 2
    replace = Path.replace

    def fail_twice(self: Path, target: Path) -> Path:
        if failures:
            raise failures.pop()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_twice)
    write_atomically(tmp_path / "file.json", b"new")
    assert (tmp_path / "file.json").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_writes_are_atomic_for_readers(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    bodies = {bytes([65 + i]) * 200_000 for i in range(2)}
    write_atomically(path, min(bodies))
    script = """
import sys
from pathlib import Path
from llpbench.system.files import write_atomically
for i in range(60):
    write_atomically(Path(sys.argv[1]), bytes([65 + i % 2]) * 200_000)
"""
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)])
    looks = 0
    while writer.poll() is None:
        assert path.read_bytes() in bodies
        looks += 1
    assert writer.returncode == 0
    assert looks > 5


# -- the manifest ------------------------------------------------------------------------------------------------------


def test_manifest_is_written_first_with_the_request(store: Store) -> None:
    manifest = store.manifest()
    assert manifest.commands == ["llpbench run --methods guess"]
    assert [p.cell.seed for p in manifest.planned.values()] == [0, 1, 2]
    assert all(cell_id == p.cell.id for cell_id, p in manifest.planned.items())
    assert list((store.root / "cells").iterdir()) == []
    assert store.results() == []


def test_second_plan_extends_the_first(store: Store) -> None:
    more = [make_plan(make_cell(seed=s)) for s in (2, 3)]
    store.plan(more, "llpbench run --methods guess --seeds 4", "0.1.0")
    store.plan(more, "llpbench run --methods guess --seeds 4", "0.1.0")
    manifest = store.manifest()
    assert [p.cell.seed for p in manifest.planned.values()] == [0, 1, 2, 3]
    assert len(manifest.commands) == 2


def test_commands_are_kept_in_order(store: Store) -> None:
    for command in ("llpbench run B", "llpbench run --methods guess"):
        manifest = store.plan([], command, "0.1.0")
    assert manifest.commands == store.manifest().commands == ["llpbench run B", "llpbench run --methods guess"]


def test_concurrent_plans_merge(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from llpbench.contracts.cell import Cell
from llpbench.experiment.plan import Planned
from llpbench.results.store import Store
who = int(sys.argv[2])
for i in range(8):
    cell = Cell(dataset="toy", method="guess", bag_size=8, seed=100 * who + i)
    Store(Path(sys.argv[1])).plan([Planned(cell=cell, method_name="guess", dataset_name="toy")], f"run {who}", "0.1.0")
"""
    runs = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(who)]) for who in range(3)]
    assert [run.wait(PATIENCE) for run in runs] == [0, 0, 0]
    manifest = Store(tmp_path).manifest()
    assert {p.cell.seed for p in manifest.planned.values()} == {100 * w + i for w in range(3) for i in range(8)}
    assert sorted(manifest.commands) == ["run 0", "run 1", "run 2"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"created": "now"}', b'{"created":"","version":"","planed":{}}']
)
def test_damaged_manifest_is_an_error_that_names_it(store: Store, content: bytes) -> None:
    store.manifest_path.write_bytes(content)
    with pytest.raises(StoreError, match=r"manifest\.json cannot be read"):
        store.manifest()


def test_open_rejects_folders_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a results folder"):
        Store(tmp_path).manifest()


def test_unwritable_folder_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write results to .*--out"):
        Store(tmp_path / "file" / "run").plan([make_plan()], "run", "0.1.0")


def test_newest_folder_is_the_one_changed_last(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results under"):
        newest_store(tmp_path)
    for name, age in (("b", 100), ("a", 0), ("c", 200)):
        Store(tmp_path / name).plan([make_plan()], "run", "0.1.0")
        then = time.time() - age
        os.utime(tmp_path / name / "manifest.json", (then, then))
    assert newest_store(tmp_path).root.name == "a"


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_plan_with_its_labels(store: Store) -> None:
    for seed in (2, 0):
        store.write(make_result(make_cell(seed=seed), method_name="as it was called then"))
    assert [r.cell.seed for r in store.results()] == [0, 2]
    assert {r.method_name for r in store.results()} == {"guess"}
    assert store.read(make_cell(seed=1).id) is None


def test_result_is_decoded_once_until_its_file_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    monkeypatch.setattr(
        "llpbench.results.store.decode_result", lambda data: decoded.append(data) or decode_result(data)
    )
    store.write(make_result(make_cell(seed=0), 0.5))
    first = store.read(make_cell(seed=0).id)
    assert first is not None
    first.reason = "changed by a reader"
    assert store.results()[0].reason == ""
    assert len(decoded) == 1
    store.write(make_result(make_cell(seed=0), 0.75))
    assert store.results()[0].selected["bags"].metrics["auroc"] == 0.75
    store.result_path(first.id).unlink()
    assert store.read(first.id) is None
    assert len(decoded) == 2


def test_requests_are_kept_as_data_beside_texts_of_older_folders(store: Store) -> None:
    request = Request(verb="run", settings={"methods": ["guess"], "bags": [8], "offline": True})
    store.plan([], request, "0.1.0")
    assert store.manifest().commands == ["llpbench run --methods guess", request]


def test_unplanned_result_is_ignored(store: Store) -> None:
    store.write(make_result(make_cell(seed=77)))
    assert store.results() == []


def test_damaged_files_are_reported_and_the_rest_is_read(store: Store) -> None:
    for seed in range(3):
        store.write(make_result(make_cell(seed=seed)))
    torn, edited = (store.result_path(make_cell(seed=s).id) for s in (0, 1))
    torn.write_bytes(torn.read_bytes()[:200])
    edited.write_text(edited.read_text().replace('"auroc": 0.5', '"auroc": 0.99'))
    damage: dict[Path, str] = {}
    assert [r.cell.seed for r in store.results(damage.__setitem__)] == [2]
    assert set(damage) == {torn, edited}
    assert "not a readable result" in damage[torn]
    assert "digest" in damage[edited]
    assert [r.cell.seed for r in store.results()] == [2]
    with pytest.raises(Damaged):
        store.read(make_cell(seed=0).id)


def test_file_under_a_wrong_name_is_damaged(store: Store) -> None:
    store.write(make_result(make_cell(seed=0)))
    wrong = make_cell(seed=1).id
    store.result_path(make_cell(seed=0).id).rename(store.result_path(wrong))
    with pytest.raises(Damaged, match="it holds the result of cell"):
        store.read(wrong)


def test_folder_in_place_of_a_result_is_damaged(store: Store) -> None:
    cell_id = make_cell(seed=0).id
    store.result_path(cell_id).mkdir()
    with pytest.raises(Damaged):
        store.read(cell_id)
    with pytest.raises(StoreError, match=cell_id):
        store.write(make_result(make_cell(seed=0)))


def test_machine_is_described_once(store: Store) -> None:
    store.write_machine("m1", {"cpu": "first"})
    store.write_machine("m1", {"cpu": "second"})
    assert "first" in (store.root / "machines" / "m1.json").read_text()


# -- claims ------------------------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from llpbench.results.store import Store
claim = Store(Path(sys.argv[1])).claim("cell")
print("held" if claim else "refused", flush=True)
time.sleep(60 if claim else 0)
"""


def holder(store: Store) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", HOLD, str(store.root)], stdout=subprocess.PIPE, text=True)


def test_claim_is_exclusive_across_processes_and_released_on_death(store: Store) -> None:
    first = holder(store)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        assert store.claim("cell") is None
        second = holder(store)
        assert second.communicate(timeout=PATIENCE)[0] == "refused\n"
        other = store.claim("another")
        assert other is not None
        other.release()
    finally:
        first.kill()
        first.communicate(timeout=PATIENCE)
    claim = store.claim("cell")  # the system gave it back
    assert claim is not None
    claim.release()


def test_claim_is_exclusive_within_a_process_and_leaves_no_file(store: Store) -> None:
    first = store.claim("cell")
    assert first is not None
    assert store.claim("cell") is None
    first.release()
    assert list((store.root / "claims").iterdir()) == []
    second = store.claim("cell")
    assert second is not None
    second.release()


def test_many_processes_never_hold_one_claim_together(store: Store) -> None:
    script = """
import os, sys, time
from pathlib import Path
from llpbench.results.store import Store
store, inside, done = Store(Path(sys.argv[1])), Path(sys.argv[1]) / "inside", 0
deadline = time.monotonic() + 600
while done < 25 and time.monotonic() < deadline:
    claim = store.claim("cell")
    if claim is None:
        continue
    handle = os.open(inside, os.O_CREAT | os.O_EXCL)  # fails if somebody else is inside
    os.close(handle)
    inside.unlink()
    claim.release()
    done += 1
sys.exit(0 if done == 25 else 3)
"""
    runs = [subprocess.Popen([sys.executable, "-c", script, str(store.root)]) for _ in range(3)]
    assert [run.wait(PATIENCE) for run in runs] == [0, 0, 0]


def test_rerun_without_predictions_removes_earlier_scores(tmp_path: Path) -> None:
    registry, store = load_registry(), Store(tmp_path)
    options = registry.datasets["synthetic"].resolve({"rows": 600, "dim": 3})
    params = registry.methods["mean-ridge"].resolve({})
    cell = make_cell(dataset="synthetic", dataset_options=options, method="mean-ridge", params=params, bag_size=4)
    store.plan([make_plan(cell)], "llpbench run", "0.1.0")
    store.predictions_path(cell.id).write_bytes(b"of the earlier result")
    job = Job(cell=cell, method_name="", dataset_name="", out=str(tmp_path), predictions=False)
    assert run_job(job).status == "ok"
    assert not store.predictions_path(cell.id).exists()
