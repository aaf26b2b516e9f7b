"""``cache``: what it holds, and making room."""

from __future__ import annotations

import sys

import click
import msgspec

from llpbench.cli.printing import say
from llpbench.cli.results import plural


@click.group(invoke_without_command=True, short_help="What the cache holds; throw a part of it away.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def cache(ctx: click.Context, as_json: bool) -> None:
    """List the parts of the cache with their sizes. Everything in it can be fetched or made again.

    \b
    llpbench cache                   what it holds
    llpbench cache clean compiled    throw one part away
    """  # noqa: D301
    if ctx.invoked_subcommand is not None:
        return
    from llpbench.data.cache import cache_root
    from llpbench.data.cache_parts import cache_parts
    from llpbench.system.quantities import format_bytes

    parts = cache_parts()
    if as_json:
        content = {"folder": str(cache_root()), "parts": parts}
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    say(str(cache_root()), bold=True)
    width = max(len(part.kind) for part in parts) + 2
    for part in parts:
        meaning = "a symbolic link, not looked into" if part.link else part.meaning or "not used by this version"
        size = f"{format_bytes(part.bytes):>10}  {plural(part.files, 'file'):>12}"
        say(f"  {part.kind:<{width}}{size}  {meaning}")
    say(f"  {'together':<{width}}{format_bytes(sum(part.bytes for part in parts)):>10}")


@cache.command(short_help="Throw a part of the cache away.")
@click.argument("kind")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def clean(kind: str, yes: bool) -> None:
    """Throw one KIND away: data, made, compiled or checked. Asks first, unless --yes is given.

    Only that folder of the cache is removed; symbolic links are never followed. Do not clean `data` or `made` while
    cells run that read them.
    """
    from llpbench.contracts.errors import UnknownNameError, UsageError
    from llpbench.data.cache_parts import KINDS, cache_parts
    from llpbench.data.cache_parts import clean as clean_part
    from llpbench.system.quantities import format_bytes

    part = next((part for part in cache_parts() if part.kind == kind and kind in KINDS), None)
    if part is None:
        raise UnknownNameError("kind of cache", kind, KINDS)
    what = f"{part.path} ({plural(part.files, 'file')}, {format_bytes(part.bytes)})"
    if not (part.files or part.link):
        say(f"{part.path}: nothing there")
        return
    if not (yes or part.link):
        if not sys.stdin.isatty():
            raise UsageError(f"{what} would be removed; nobody is here to be asked, so add --yes.")
        click.confirm(f"Remove {what}?", abort=True)
    clean_part(kind)
    say(f"removed {what}")
