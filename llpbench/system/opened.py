"""Which files this process opened for reading, so that a result can name what it depends on.

Python tells an audit hook of every file that it opens, and of the modules that it imports. Files that a library opens
by itself (HDF5, say), and those that child processes open, are not seen. A hook cannot be removed again: this one is
installed on first use, and its cost is about 0.1 microseconds for each audit event.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST = 100
"""Files of one cell that are recorded."""
_MOST_SEEN = 20_000
_SYSTEM = ("/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sys", "/usr", "/var/lib", "/Library", "/System")
_PACKAGES = re.compile(r"/(site|dist)-packages/|\.(dist|egg)-info/")
_seen: dict[str, None] | None = None


def watch_files() -> None:
    """Forget what was opened so far, and remember what is opened from now on."""
    global _seen
    if _seen is None:
        sys.addaudithook(_hook)
    _seen = {}


def opened_files(code: Iterable[Path]) -> list[str]:
    """The files that were opened since ``watch_files``; of a compiled module, its source.

    Those of the system and of installed libraries are left out, and those in the folders of ``code``.
    """
    system = (*_system_folders(), *(str(path) if path.is_file() else f"{path}{os.sep}" for path in code))
    found = dict.fromkeys(map(_source, _seen or ()))
    own = (path for path in found if not (path.startswith(system) or _PACKAGES.search(path)))
    return [path for path in own if path.isprintable()][:MOST]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or _seen is None or len(_seen) >= _MOST_SEEN:
        return
    path, _, flags = arguments
    if isinstance(path, str | bytes | os.PathLike) and not flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        with contextlib.suppress(Exception):  # an exception here would be one of the code that opens the file
            _seen[os.path.abspath(os.fsdecode(path))] = None  # noqa: PTH100 - a link may be changed


def _source(path: str) -> str:
    if path.endswith(".pyc"):
        with contextlib.suppress(ValueError, NotImplementedError):
            return importlib.util.source_from_cache(path)
    return path


def _system_folders() -> tuple[str, ...]:
    """Prefixes of paths that belong to the system and to Python."""
    folders = {*_SYSTEM, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    folders |= {str(Path(folder).resolve()) for folder in folders}
    return tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in folders)
