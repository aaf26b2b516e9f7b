"""``cache``: what it holds, and cleaning it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from pathlib import Path

import click
import msgspec

from llpbench.cli.printing import print_json, say
from llpbench.cli.results import plural
from llpbench.contracts.errors import StoreError, UnknownNameError, UsageError
from llpbench.data.cache import COMPILED, METHODS, cache_root
from llpbench.system.quantities import format_bytes

KINDS = {
    "data": "downloaded files; they are fetched again when needed",
    "made": "features and tables made from data files; they are computed again when needed",
    METHODS: "machine code of methods in cells, by plugin; it is compiled again when needed",
    COMPILED: "machine code of methods outside of cells; it is compiled again when needed",
    "checked": "which data files are verified; they are read again when needed",
}
"""The folders of the cache, and what it costs to lose each."""


@click.group(invoke_without_command=True, short_help="Show what the cache holds; clean it.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def cache(ctx: click.Context, as_json: bool) -> None:
    """List the folders of the cache with their sizes. Everything in it can be fetched or computed again.

    \b
    llpbench cache                   show what it holds
    llpbench cache clean methods     delete one folder
    """  # noqa: D301
    if ctx.invoked_subcommand is not None:
        return
    folders = cache_folders()
    if as_json:
        print_json({"folder": str(cache_root()), "parts": folders})
        return
    say(str(cache_root()), bold=True)
    width = max(len(folder.kind) for folder in folders) + 2
    for folder in folders:
        meaning = folder.meaning or "not used by this version"
        size = f"{format_bytes(folder.bytes):>10}  {plural(folder.files, 'file'):>12}"
        say(f"  {folder.kind:<{width}}{size}  {meaning}")
    say(f"  {'total':<{width}}{format_bytes(sum(folder.bytes for folder in folders)):>10}")


@cache.command(short_help="Delete one folder of the cache.")
@click.argument("kind")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def clean(kind: str, yes: bool) -> None:
    """Delete one KIND of cached files: data, made, methods, compiled or checked. Asks first unless --yes is given.

    Only that folder of the cache is removed, and symbolic links are never followed. Do not clean `data` or `made` while
    a run reads them.
    """
    folder = next((folder for folder in cache_folders() if folder.kind == kind and kind in KINDS), None)
    if folder is None:
        raise UnknownNameError("kind of cache", kind, KINDS)
    what = f"{folder.path} ({plural(folder.files, 'file')}, {format_bytes(folder.bytes)})"
    if not folder.files:
        say(f"{folder.path}: nothing there")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{what} would be removed; add --yes to confirm without a terminal.")
        click.confirm(f"Remove {what}?", abort=True)
    clean_cache(kind)
    say(f"removed {what}")


class CacheFolder(msgspec.Struct, frozen=True, kw_only=True):
    """One folder (or file) of the cache: its number of files, and their size.

    ``meaning`` is empty if this version of llpbench does not use it.
    """

    kind: str
    path: str
    meaning: str
    files: int
    bytes: int


def cache_folders(root: Path | None = None) -> list[CacheFolder]:
    """The contents of the cache: the known folders first, then anything else in it. Links are not followed."""
    root = cache_root() if root is None else root
    there = {entry.name for entry in os.scandir(root)} if root.is_dir() else set()
    return [_folder(root / name) for name in (*KINDS, *sorted(there - set(KINDS)))]


def clean_cache(kind: str, root: Path | None = None) -> CacheFolder:
    """Delete one folder of the cache; returns what was there.

    Raises:
        UnknownNameError: it is not one of ``KINDS``.
        StoreError: it cannot be removed, or is a symbolic link.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of cache", kind, KINDS)
    folder = _folder((cache_root() if root is None else root) / kind)
    try:
        shutil.rmtree(folder.path)  # removes links inside, never their targets
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot remove {folder.path}: {error.strerror or error}.") from None
    return folder


def _folder(path: Path) -> CacheFolder:
    sizes = _sizes(path)
    return CacheFolder(
        kind=path.name, path=str(path), meaning=KINDS.get(path.name, ""), files=len(sizes), bytes=sum(sizes)
    )


def _sizes(path: Path) -> list[int]:
    """The sizes of all regular files at or below a path; files that vanish meanwhile do not count."""
    paths = [Path(folder, name) for folder, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    found = []
    for file in paths:
        with contextlib.suppress(OSError):
            status = file.lstat()
            found += [status.st_size] if stat.S_ISREG(status.st_mode) else []
    return found
