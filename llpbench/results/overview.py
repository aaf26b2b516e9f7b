"""The results folders below a folder, each in one line: how far it is, when, and the command that made it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError, printable
from llpbench.results.store import Store

_DEEPEST = 4


class FolderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A results folder.

    Attributes:
        name: its path below the folder that was looked at.
        path: where it lies.
        done: planned cells that have a result, with or without a number.
        planned: cells that were asked for.
        created: when the first command began.
        changed: when the last result or command was written.
        commands: what was typed.
        trouble: why it cannot be read; empty when it can.
    """

    name: str
    path: str
    done: int = 0
    planned: int = 0
    created: str = ""
    changed: str = ""
    commands: list[str] = []
    trouble: str = ""


def list_results(base: Path) -> list[FolderFacts]:
    """All results folders at or below ``base``, the one changed last at the end.

    Results are counted, not read: ``llpbench status`` says of one folder how its cells ended.

    Raises:
        StoreError: there is no such folder.
    """
    if not base.is_dir():
        raise StoreError(f"there is no folder {base}. Start with: llpbench run --methods mean-ridge --bags 8")
    return sorted((_facts(folder, base) for folder in _folders(base)), key=lambda facts: (facts.changed, facts.name))


def _folders(base: Path) -> list[Path]:
    """Folders with a manifest; those inside one of them are its own, and links are not followed."""
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
        commands=[printable(command) for command in manifest.commands],
    )


def _changed(store: Store) -> str:
    times = [path.stat().st_mtime for path in (store.manifest_path, store.root / "cells") if path.exists()]
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(times, default=0.0)))
