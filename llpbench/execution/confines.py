"""What a method's process may read and write: its own folders only, and neither results nor data.

A method that could write elsewhere could change how the next cell is judged: the code of the harness, cached data, or a
module in the working directory. Machine code that a method compiles and keeps is loaded by later processes, so methods
of each origin have a cache of their own, and processes outside of the sandbox use none of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from llpbench.contracts.job import Job
from llpbench.data.cache import CACHE_VARIABLE, METHODS, cache_root
from llpbench.results.store import is_results_folder
from llpbench.system.environment import DATA

SCRATCH = "llpbench-cell-"
"""Prefix of the names of private folders of cells."""
_HOME = "home"
_FOLDERS_OF_A_USER = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def out_of_reach(job: Job) -> tuple[str, ...]:
    """What a method cannot read: results, which hold labels of test rows, data files, and folders of other cells."""
    data = [cache_root(), *(Path(folder).expanduser() for folder in (job.data or DATA.value,) if folder)]
    own = [Path(folder) for folder in (job.out, *job.locked)]
    results = [*own, *(other for folder in own if folder.is_dir() for other in _beside(folder))]
    private = [other for folder in (Path(job.scratch), Path(job.out).parent) for other in _of_other_cells(folder)]
    return tuple(dict.fromkeys(map(str, [*results, *private, *data])))


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


def method_cache(job: Job) -> str:
    """The cache of the methods of this origin: the only part of llpbench's cache that its processes can access."""
    folder = cache_root() / METHODS / (job.method.origin or "unknown")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def move_home(scratch: str, cache: str) -> None:
    """Move temporary files, caches and settings of this process to where it can write: its private folder, its cache.

    The settings of Keras stay where they are, since they may have been read before a fork.
    """
    home = Path(scratch, _HOME)
    os.environ[CACHE_VARIABLE] = cache
    with contextlib.suppress(RuntimeError):  # the user has no home folder
        os.environ.setdefault("KERAS_HOME", str(Path("~/.keras").expanduser()))
    for name in _FOLDERS_OF_A_USER:
        os.environ.pop(name, None)
    home.mkdir(exist_ok=True)
    os.environ["HOME"] = str(home)
    os.environ["TMPDIR"] = scratch
