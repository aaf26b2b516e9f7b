"""A results folder that goes away ends a run, and is not made again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_runner import FAULTY, llpbench_process
from helpers import make_plan, make_result

from llpbench.contracts.errors import StoreError
from llpbench.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder with a result."""
    store = Store(tmp_path / "run")
    store.plan([make_plan()], "llpbench run", "0.1.0")
    store.write(make_result())
    return store


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
