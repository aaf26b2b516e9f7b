"""What a method's process may read and write: it writes to its own folder only and cannot read results.

A method that could write elsewhere could change how the next cell is judged: the code of the harness, cached data, or a
module in the working directory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from llpbench.contracts.job import Job
from llpbench.data.cache import CACHE_VARIABLE, COMPILED, cache_root
from llpbench.results.store import is_results_folder

SCRATCH = "llpbench-cell-"
"""Prefix of the names of private folders of cells."""
_HOME = "home"
_FOLDERS_OF_A_USER = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def out_of_reach(job: Job) -> tuple[str, ...]:
    """Folders a method cannot read: results folders, which hold labels of test rows, and folders of other cells."""
    own = [Path(folder) for folder in (job.out, *job.locked)]
    results = [*own, *(other for folder in own for other in _beside(folder))]
    private = [other for folder in (Path(job.scratch), Path(job.out).parent) for other in _of_other_cells(folder)]
    return tuple(dict.fromkeys(map(str, [*results, *private])))


def _beside(folder: Path) -> Iterator[Path]:
    """The results folders beside a folder, and the folders that cannot be listed."""
    entries: list[Path] = []
    with contextlib.suppress(OSError):
        entries = list(folder.resolve().parent.iterdir())
    yield from filter(_may_hold_results, entries)


def _may_hold_results(folder: Path) -> bool:
    try:
        return is_results_folder(folder)
    except OSError:  # a folder of another user
        return True


def _of_other_cells(folder: Path) -> Iterator[Path]:
    """All private folders beside a private one, present and future; ``lock_away`` leaves out the cell's own."""
    folder = folder.resolve()
    if folder.name.startswith(SCRATCH):
        yield folder.parent / f"{SCRATCH}*"


def to_be_written(job: Job) -> tuple[str, ...]:
    """Folders that a method can write to: its private folder and the part of the cache for machine code."""
    compiled = cache_root() / COMPILED
    with contextlib.suppress(OSError):
        compiled.mkdir(parents=True, exist_ok=True)
    return (job.scratch, str(compiled))


def move_home(scratch: str) -> None:
    """Move temporary files, caches and settings of this process into its private folder, the only one it can write to.

    llpbench's cache stays where it is, and so do the settings of Keras, which may have been read before a fork.
    """
    home = Path(scratch, _HOME)
    os.environ[CACHE_VARIABLE] = str(cache_root())
    with contextlib.suppress(RuntimeError):  # the user has no home folder
        os.environ.setdefault("KERAS_HOME", str(Path("~/.keras").expanduser()))
    for name in _FOLDERS_OF_A_USER:
        os.environ.pop(name, None)
    home.mkdir(exist_ok=True)
    os.environ["HOME"] = str(home)
    os.environ["TMPDIR"] = scratch
