"""What a method's process is kept from: it may write to its own folder only, and may not read results.

A method that could write elsewhere would change how the next cell is judged: by code of the harness, by cached data, by
a module in the working directory.
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
"""What the names of private folders of cells begin with."""
_HOME = "home"
_FOLDERS_OF_A_USER = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def out_of_reach(job: Job) -> tuple[str, ...]:
    """The results folder of a cell and those beside it, which hold labels of test rows, and what other cells own."""
    own = [Path(folder) for folder in (job.out, *job.locked)]
    results = [*own, *(other for folder in own for other in _beside(folder))]
    private = [other for folder in (Path(job.scratch), Path(job.out).parent) for other in _of_other_cells(folder)]
    return tuple(dict.fromkeys(map(str, [*results, *private])))


def _beside(folder: Path) -> Iterator[Path]:
    """The results folders beside a folder, and those that cannot be looked into."""
    entries: list[Path] = []
    with contextlib.suppress(OSError):
        entries = list(folder.resolve().parent.iterdir())
    yield from filter(_may_hold_results, entries)


def _may_hold_results(folder: Path) -> bool:
    try:
        return is_results_folder(folder)
    except OSError:  # an entry that only others may look into
        return True


def _of_other_cells(folder: Path) -> Iterator[Path]:
    """All private folders beside a private one, also those yet to be made; ``lock_away`` spares what is the cell's."""
    folder = folder.resolve()
    if folder.name.startswith(SCRATCH):
        yield folder.parent / f"{SCRATCH}*"


def to_be_written(job: Job) -> tuple[str, ...]:
    """The private folder of the cell, and the part of the cache for machine code."""
    compiled = cache_root() / COMPILED
    with contextlib.suppress(OSError):
        compiled.mkdir(parents=True, exist_ok=True)
    return (job.scratch, str(compiled))


def move_home(scratch: str) -> None:
    """Let this process keep temporary files, caches and settings in its private folder: it can write nowhere else.

    llpbench's cache stays where it is, and so do the settings of Keras, which may have been read before a fork.
    """
    home = Path(scratch, _HOME)
    os.environ[CACHE_VARIABLE] = str(cache_root())
    with contextlib.suppress(RuntimeError):  # a user without a home
        os.environ.setdefault("KERAS_HOME", str(Path("~/.keras").expanduser()))
    for name in _FOLDERS_OF_A_USER:
        os.environ.pop(name, None)
    home.mkdir(exist_ok=True)
    os.environ["HOME"] = str(home)
    os.environ["TMPDIR"] = scratch
