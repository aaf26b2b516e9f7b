"""The results folders below a folder: progress, dates and commands."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError, printable
from llpbench.results.store import Store

_DEEPEST = 4


class FolderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A results folder; ``done`` counts planned cells with a result, and ``trouble`` says why it cannot be read."""

    name: str
    path: str
    done: int = 0
    planned: int = 0
    created: str = ""
    changed: str = ""
    commands: list[str] = []
    trouble: str = ""


def list_results(base: Path) -> list[FolderFacts]:
    """All results folders at or below ``base``, the one changed last at the end. Results are counted, not read.

    Raises:
        StoreError: the folder does not exist.
    """
    if not base.is_dir():
        raise StoreError(f"there is no folder {base}. Start with: llpbench run --methods mean-ridge --bags 8")
    return sorted((_facts(folder, base) for folder in _folders(base)), key=lambda facts: (facts.changed, facts.name))


def _folders(base: Path) -> list[Path]:
    """Folders with a manifest, without nested ones; links are not followed."""
    found = []
    for text, inner, files in os.walk(base):
        folder = Path(text)
        if "manifest.json" in files:
            found.append(folder)
        if "manifest.json" in files or len(folder.relative_to(base).parts) >= _DEEPEST:
            inner.clear()
    return found


def _facts(folder: Path, base: Path) -> FolderFacts:
    name = folder.relative_to(base).as_posix() if folder != base else folder.resolve().name
    store = Store(folder)
    changed = _changed(store)
    try:
        manifest = store.manifest()
    except StoreError as error:
        return FolderFacts(name=printable(name), path=str(folder), changed=changed, trouble=str(error))
    try:
        there = {entry.name.removesuffix(".json") for entry in os.scandir(folder / "cells")}
    except OSError:
        there = set()
    return FolderFacts(
        name=printable(name),
        path=str(folder),
        done=len(there & set(manifest.planned)),
        planned=len(manifest.planned),
        created=printable(manifest.created),
        changed=changed,
        commands=[printable(str(command)) for command in manifest.commands],
    )


def _changed(store: Store) -> str:
    times = [path.stat().st_mtime for path in (store.manifest_path, store.root / "cells") if path.exists()]
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(times, default=0.0)))
