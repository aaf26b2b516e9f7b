"""Unreadable files in a results folder affect only their own cell."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import FAULTY, llpbench, llpbench_process, status
from helpers import make_cell, make_plan, make_result

from llpbench.cluster.merge import merge
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PROTOCOL
from llpbench.execution.jobs import wanted_cells
from llpbench.plugins.registry import load_registry
from llpbench.results.reading import read_regular
from llpbench.results.sealing import MOST_NOTES, Damaged, decode_result, encode_result
from llpbench.results.store import Store

DEEP = b'{"digest":"0","result":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
ODD = ("pipe", "zeros", "nul", "deep", "deep result", "folder", "nowhere", "huge", "not a dict", "latin")


def put(path: Path, kind: str) -> None:
    """Put something at a path that is no sound result."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        (path / "inside").mkdir(parents=True)
    elif kind == "nowhere":
        path.symlink_to("/no/such/file")
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(10 << 30)  # a hole: it takes no room
    else:
        nested = b'{"digest":"0","result":{"id":"a","notes":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}"
        contents = {"nul": bytes(5000), "deep": DEEP, "deep result": nested, "not a dict": b"[1]", "latin": b"\xff\xfe"}
        path.write_bytes(contents[kind])


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


@pytest.mark.parametrize("kind", ODD)
def test_unreadable_result_affects_one_cell(store: Store, tmp_path: Path, kind: str) -> None:
    put(path_of(store, 1), kind)
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


@pytest.mark.parametrize("kind", ODD)
def test_merge_skips_unreadable_results_and_run_overwrites_them(tmp_path: Path, kind: str) -> None:
    odd, sound = filled(tmp_path / "odd"), filled(tmp_path / "sound")
    put(path_of(odd, 1), kind)
    merge([odd.root, sound.root], tmp_path / "out")
    assert len(Store(tmp_path / "out").results()) == 3
    merge([odd.root, sound.root], odd.root)
    assert len(odd.results()) == 3


@pytest.mark.parametrize("kind", ["pipe", "folder", "zeros", "nowhere"])
def test_obstacles_in_place_of_a_result_are_moved(store: Store, kind: str) -> None:
    cell = make_cell(method="mean-ridge", dataset="synthetic", seed=1)
    for path in (store.result_path(cell.id), store.log_path(cell.id), store.predictions_path(cell.id)):
        put(path, kind)
    store.make_way(cell.id)
    store.write(make_result(cell))
    assert store.read(cell.id) is not None
    assert not os.path.lexists(store.log_path(cell.id))
    assert len(list((store.root / "conflicts").iterdir())) == 3


@pytest.mark.parametrize("kind", ["pipe", "zeros", "deep", "folder"])
def test_unreadable_manifest_is_an_error(store: Store, tmp_path: Path, kind: str) -> None:
    put(store.manifest_path, kind)
    done = llpbench("status", str(store.root), cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["planned"].update(x=content["planned"].popitem()[1]),
            "16 hexadecimal digits",
        ),
        (lambda content: content["commands"].append({"verb": "run", "settings": {"plugins": 3}}), "must be a list"),
    ],
)
def test_foreign_value_in_a_manifest_is_an_error(
    store: Store, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    content = json.loads(store.manifest_path.read_text())
    change(content)
    store.manifest_path.write_text(json.dumps(content))
    done = llpbench("status", str(store.root), cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_result_without_read_permission_is_damaged(store: Store) -> None:
    path_of(store, 1).chmod(0)
    assert status(store.root)["counts"] == {"ok": 2, "damaged": 1}


def test_result_behind_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link") == b"x" * 10
    with pytest.raises(OSError, match="too large"):
        read_regular(tmp_path / "link", 9)


def test_long_texts_of_a_result_are_truncated() -> None:
    notes = {f"note {i}" + "k" * 1000: "v" * 5000 for i in range(MOST_NOTES + 3)}
    result = make_result(reason="r" * 10**6, traceback="t" * 10**6 + "the end", failed_at="f" * 10**5, notes=notes)
    data = encode_result(result)
    assert len(data) < 500_000
    read = decode_result(data)
    assert read.reason.startswith("rrr")
    assert read.reason.endswith("more characters)")
    assert read.traceback.endswith("the end")
    assert read.notes["notes_left_out"] == 3
    assert len(read.notes) == MOST_NOTES + 1


def test_result_of_usual_size_is_not_truncated() -> None:
    result = make_result(reason="why", notes={"a": "b", "c": 1.0, "d": None})
    assert decode_result(encode_result(result)) == result


def test_deeply_nested_json_counts_as_damaged() -> None:
    with pytest.raises(Damaged, match="not a readable result"):
        decode_result(DEEP)


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
