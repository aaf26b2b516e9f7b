"""Damaged files in a results folder affect only their own cell, and a folder that goes away ends a run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cli_runner import FAULTY, llpbench, llpbench_process, status
from helpers import make_cell, make_plan, make_result

from llpbench.cluster.merge import merge
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PROTOCOL
from llpbench.execution.jobs import wanted_cells
from llpbench.plugins.registry import load_registry
from llpbench.results.store import Store

DAMAGED = {"empty": b"", "zeros": bytes(5000), "not a dict": b"[1]", "latin": b"\xff\xfe"}


def damage(path: Path, kind: str) -> None:
    """Replace a file by a folder, or by contents that are no result."""
    path.unlink()
    if kind == "folder":
        (path / "inside").mkdir(parents=True)
    else:
        path.write_bytes(DAMAGED[kind])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder with three cells that have results."""
    return filled(tmp_path / "run")


def filled(root: Path) -> Store:
    store = Store(root)
    cells = [make_cell(method="mean-ridge", dataset="synthetic", seed=seed) for seed in range(3)]
    store.plan([make_plan(cell) for cell in cells], "llpbench run", "0.1.0")
    for cell in cells:
        store.write(make_result(cell, protocol=PROTOCOL))
    return store


def path_of(store: Store, seed: int) -> Path:
    return store.result_path(make_cell(method="mean-ridge", dataset="synthetic", seed=seed).id)


@pytest.mark.parametrize("kind", [*DAMAGED, "folder"])
def test_damaged_result_affects_one_cell(store: Store, tmp_path: Path, kind: str) -> None:
    damage(path_of(store, 1), kind)
    said = status(store.root)
    assert said["counts"] == {"ok": 2, "damaged": 1}
    (trouble,) = said["troubles"]
    assert trouble["status"] == "damaged"
    assert trouble["reason"]
    shown = llpbench("table", str(store.root), "--format", "json", cwd=tmp_path)
    assert shown.returncode == 0
    assert str(path_of(store, 1)) in shown.stderr
    warned: list[str] = []
    run, kept = wanted_cells(store.manifest().planned.values(), store, load_registry(), "missing", warned.append)
    assert [plan.cell.seed for plan in run] == [1]
    assert len(kept) == 2
    assert "the cell is run again" in warned[0]


@pytest.mark.parametrize("kind", DAMAGED)
def test_merge_replaces_damaged_results(tmp_path: Path, kind: str) -> None:
    odd, sound = filled(tmp_path / "odd"), filled(tmp_path / "sound")
    damage(path_of(odd, 1), kind)
    merge([odd.root, sound.root], tmp_path / "out")
    assert len(Store(tmp_path / "out").results()) == 3
    merge([odd.root, sound.root], odd.root)
    assert len(odd.results()) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_result_without_read_permission_is_damaged(store: Store) -> None:
    path_of(store, 1).chmod(0)
    assert status(store.root)["counts"] == {"ok": 2, "damaged": 1}


# -- a folder that goes away -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "replaced", "all"])
def test_missing_cells_folder_is_an_error(store: Store, how: str) -> None:
    store.check_there()
    if how == "replaced":
        (store.root / "cells").rename(store.root / "elsewhere")
        (store.root / "cells").mkdir()
    else:
        shutil.rmtree(store.root if how == "all" else store.root / "cells")
    for attempt in (store.check_there, store.check_room, lambda: store.write(make_result())):
        with pytest.raises(StoreError, match="removed or moved during the run"):
            attempt()
    assert how == "replaced" or not (store.root / "cells").exists()


def test_worker_does_not_recreate_the_folder(store: Store) -> None:
    shutil.rmtree(store.root / "cells")
    with pytest.raises(StoreError, match="is gone"):
        Store(store.root).write(make_result())  # as a cell's process: it never planned
    assert not (store.root / "cells").exists()


@pytest.mark.slow
def test_run_ends_with_an_error_if_the_cells_folder_vanishes(tmp_path: Path) -> None:
    plugin = tmp_path / "thief.py"
    plugin.write_text(
        "import shutil\nfrom llpbench import hookimpl\n\n@hookimpl\ndef llpbench_cell_finished(result):\n"
        "    shutil.rmtree('out/cells', ignore_errors=True)\n"
    )
    arguments = ["--methods", "faulty-good", "--datasets", "synthetic[rows=600]", "--bags", "8", "--seeds", "3"]
    arguments += ["--plugin", str(FAULTY), "--plugin", "thief.py", "--out", "out", "--quiet", "--jobs", "1"]
    done = llpbench_process("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "removed or moved during the run" in done.stderr
    assert "Traceback" not in done.stderr
