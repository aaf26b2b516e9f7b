"""``cache``: what it holds, and cleaning it."""

from __future__ import annotations

import sys

import click

from llpbench.cli.printing import print_json, say
from llpbench.cli.results import plural


@click.group(invoke_without_command=True, short_help="Show what the cache holds; clean it.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def cache(ctx: click.Context, as_json: bool) -> None:
    """List the folders of the cache with their sizes. Everything in it can be fetched or computed again.

    \b
    llpbench cache                   show what it holds
    llpbench cache clean compiled    delete one folder
    """  # noqa: D301
    if ctx.invoked_subcommand is not None:
        return
    from llpbench.data.cache import cache_folders, cache_root
    from llpbench.system.quantities import format_bytes

    folders = cache_folders()
    if as_json:
        print_json({"folder": str(cache_root()), "parts": folders})
        return
    say(str(cache_root()), bold=True)
    width = max(len(folder.kind) for folder in folders) + 2
    for folder in folders:
        meaning = "a symbolic link, not followed" if folder.link else folder.meaning or "not used by this version"
        size = f"{format_bytes(folder.bytes):>10}  {plural(folder.files, 'file'):>12}"
        say(f"  {folder.kind:<{width}}{size}  {meaning}")
    say(f"  {'total':<{width}}{format_bytes(sum(folder.bytes for folder in folders)):>10}")


@cache.command(short_help="Delete one folder of the cache.")
@click.argument("kind")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def clean(kind: str, yes: bool) -> None:
    """Delete one KIND of cached files: data, made, compiled or checked. Asks for confirmation unless --yes is given.

    Only that folder of the cache is removed, and symbolic links are never followed. Do not clean `data` or `made` while
    a run reads them.
    """
    from llpbench.contracts.errors import UnknownNameError, UsageError
    from llpbench.data.cache import KINDS, cache_folders
    from llpbench.data.cache import clean as clean_folder
    from llpbench.system.quantities import format_bytes

    folder = next((folder for folder in cache_folders() if folder.kind == kind and kind in KINDS), None)
    if folder is None:
        raise UnknownNameError("kind of cache", kind, KINDS)
    what = f"{folder.path} ({plural(folder.files, 'file')}, {format_bytes(folder.bytes)})"
    if not (folder.files or folder.link):
        say(f"{folder.path}: nothing there")
        return
    if not (yes or folder.link):
        if not sys.stdin.isatty():
            raise UsageError(f"{what} would be removed; add --yes to confirm without a terminal.")
        click.confirm(f"Remove {what}?", abort=True)
    clean_folder(kind)
    say(f"removed {what}")
