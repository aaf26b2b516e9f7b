"""Which code a plugin is, in one line that changes when the code does.

::

    file my.py sha256:0f3a...                       a plugin in a single file, or a file that a cell read
    editable my-plugins sha256:5e1c...              an editable install, or one made from a folder or a repository
    release my-plugins 1.2.0 sha256:77b0...         installed from an index

Digests are of all files of a package as they lie on the disk, so that an installed file that somebody edited shows too.
What a single file imports or reads is seen when a cell runs (``system.opened``), and becomes a part of the cell's code.
Nothing is imported here, and nothing is remembered between calls: code may be edited while a notebook is open.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points, packages_distributions
from importlib.util import find_spec
from pathlib import Path

from llpbench.plugins.loading import GROUP, Plugin

OWN = "llpbench"
"""The distribution of the harness and of the built-in methods and datasets."""
HARNESS = f"{OWN}:core"
"""Origin of the harness itself."""
_HARNESS_ROOMS = ("contracts", "system", "plugins", "data", "experiment", "results", "execution")
"""Folders of the harness that have a part in a number; the others ask for cells or show them."""
READ = "read "
"""How the name of a part of a cell's code begins that is a file which the cell read: ``read my.py:weights.json``."""
_DIGITS = 32


def origin_of(plugin: Plugin) -> str:
    """How a plugin is found again without loading it: ``distribution:plugin``, or ``file:NAME`` of a single file."""
    return f"file:{Path(plugin.distribution).name}" if plugin.from_file else f"{plugin.distribution}:{plugin.name}"


def fingerprint(origin: str, files: Iterable[str | Path] = ()) -> str:
    """The line that identifies the code of an origin as it is now; empty when it is not on this machine.

    Args:
        origin: as ``origin_of`` gives it.
        files: the single-file plugins of this run, among which a ``file:`` origin is looked for.
    """
    kind, _, name = origin.partition(":")
    if kind == "file":
        path = next((Path(file) for file in files if Path(file).name == name), None)
        return "" if path is None else _file_line(path)
    try:
        found = distribution(kind)
    except PackageNotFoundError:
        return ""
    digest = _digest(_sources(found, name))
    return f"editable {kind} {digest}" if _is_unreleased(found) else f"release {kind} {found.version} {digest}"


def is_own(line: str) -> bool:
    """Whether a line names code that ships with llpbench."""
    return line.split(" ")[:2] in (["editable", OWN], ["release", OWN])


def is_released(line: str) -> bool:
    """Whether a line names code that was installed from an index."""
    return line.startswith("release ")


def code_name(line: str) -> str:
    """The file or distribution that a fingerprint names."""
    return line.split(" ")[1] if line.count(" ") else line


def part_of(path: Path, files: Iterable[str | Path] = ()) -> str:
    """The part of a cell's code that is a file which the cell read.

    A file in the folder of one of the single-file plugins ``files`` is found beside that plugin, wherever it is.
    """
    for file in map(Path, files):
        folder = file.resolve().parent
        if path.is_relative_to(folder):
            return f"{READ}{file.name}:{path.relative_to(folder).as_posix()}"
    return f"{READ}{path}"


def line_of_part(part: str, files: Iterable[str | Path] = ()) -> str:
    """The line that identifies the content of such a file as it is now."""
    name = part.removeprefix(READ)
    for file in map(Path, files):
        if name.startswith(f"{file.name}:"):
            return _file_line(file.resolve().parent / name.removeprefix(f"{file.name}:"))
    return _file_line(Path(name))


def _file_line(path: Path) -> str:
    try:
        if path.is_file():  # a pipe would make this process wait
            with path.open("rb") as file:
                return f"file {path.name} sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:_DIGITS]}"
    except OSError:
        pass
    return f"file {path.name} unreadable"


def _is_unreleased(found: Distribution) -> bool:
    """Whether it came from a folder or a repository: there, one version may have many states.

    An installer notes that (PEP 610). Metadata that no installer wrote is that of a checkout on the path.
    """
    noted = json.loads(found.read_text("direct_url.json") or "{}")
    return found.read_text("RECORD") is None or "dir_info" in noted or "vcs_info" in noted


def _sources(found: Distribution, plugin: str) -> list[tuple[str, Path]]:
    """The files of a plugin with their names, in the order of the names.

    They are all of its distribution's packages. Of the built-in ones, which do not know one another, a plugin's own
    folder and the shared Python files count: editing one method leaves the results of the others as they are.
    """
    if found.name == OWN and plugin == "core":
        own_files = filter(_is_python, _files_of(OWN))
        return sorted((name, path) for name, path in own_files if name.split("/")[1] in _HARNESS_ROOMS)
    modules = {entry.name: entry.module for entry in found.entry_points if entry.group == GROUP}
    if found.name == OWN:
        own = modules.get(plugin, "")
        others = {name.replace(".", "/") + "/" for name in modules.values() if name != own}
        home = own.replace(".", "/") + "/"
        named = (pair for pair in _files_of(own.partition(".")[0]) if pair[0].startswith(home) or _is_python(pair))
        return sorted((name, path) for name, path in named if not name.startswith(tuple(others)))
    tops = {module.partition(".")[0] for module in modules.values()} | {
        *(found.read_text("top_level.txt") or "").split()
    }
    return sorted(pair for top in tops for pair in _files_of(top))


def _is_python(named: tuple[str, Path]) -> bool:
    return named[1].suffix == ".py"


def _files_of(top: str) -> Iterator[tuple[str, Path]]:
    """The files of a top-level package or module, found without importing it; hidden ones and caches are left out."""
    try:
        spec = find_spec(top) if top else None
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    for folder in spec.submodule_search_locations or ():
        root = Path(folder)
        for path in root.rglob("*"):
            inside = path.relative_to(root)
            if path.is_file() and not any(name == "__pycache__" or name.startswith(".") for name in inside.parts):
                yield f"{top}/{inside.as_posix()}", path
    if spec.submodule_search_locations is None and spec.origin and Path(spec.origin).is_file():
        yield f"{top}.py", Path(spec.origin)


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    total = hashlib.sha256()
    for name, path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{name} {content}\n".encode())
    return f"sha256:{total.hexdigest()[:_DIGITS]}"


@lru_cache(maxsize=1)
def code_folders() -> tuple[Path, ...]:
    """The folders and files with the code of llpbench and of every installed plugin; nothing is imported."""
    tops = {OWN, *(entry.module.partition(".")[0] for entry in entry_points(group=GROUP))}
    specs = [find_spec(top) for top in sorted(tops)]
    folders = [Path(f) for spec in specs if spec for f in spec.submodule_search_locations or [spec.origin or ""]]
    return tuple(folder for folder in folders if folder.exists())


def distribution_of(module: str) -> str:
    """The distribution that brings a module (``sklearn`` comes with ``scikit-learn``); the module when none does."""
    top = module.partition(".")[0]
    try:
        return distribution(top).name
    except PackageNotFoundError:
        return next(iter(_by_module().get(top, ())), top)


@lru_cache(maxsize=1)
def _by_module() -> dict[str, list[str]]:
    return dict(packages_distributions())
