"""What a method's process is kept from: results it may neither read nor write, code and data it may only read.

A method that could write to the code of the harness or to cached data would change how the next cell is judged.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from llpbench.contracts.job import Job
from llpbench.datafiles.cache import COMPILED, cache_root
from llpbench.datafiles.fetch import DATA_VARIABLE
from llpbench.plugins.fingerprint import code_folders
from llpbench.results.store import is_results_folder


def out_of_reach(job: Job) -> tuple[str, ...]:
    """The results folder of a cell and all results folders beside it: they hold labels of test rows, too."""
    own = [Path(folder) for folder in (job.out, *job.locked)]
    return tuple(dict.fromkeys(map(str, [*own, *(other for folder in own for other in _beside(folder))])))


def _beside(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from (other for other in folder.resolve().parent.iterdir() if is_results_folder(other))


def to_be_read(job: Job) -> tuple[str, ...]:
    """Python with its packages, the code of all plugins, data files, and what datasets keep in the cache."""
    paths = sysconfig.get_paths()
    code = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts") if name in paths}
    code |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    data = [job.data or os.environ.get(DATA_VARIABLE, "")]
    with contextlib.suppress(OSError):
        (cache_root() / COMPILED).mkdir(parents=True, exist_ok=True)
        data += [str(part) for part in cache_root().iterdir() if part.name != COMPILED]
    found = [*code, *map(str, code_folders()), *job.plugins, *data]
    return tuple(sorted(path for path in dict.fromkeys(found) if path and Path(path).exists()))
