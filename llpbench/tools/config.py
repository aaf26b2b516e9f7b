"""``config``: folders and environment variables."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli.printing import print_json, say


@click.command(short_help="Show the folders and environment variables that llpbench uses.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def config(as_json: bool) -> None:
    """Show the folders that commands use here, and every environment variable that llpbench reads, with its value."""
    from llpbench import __version__
    from llpbench.data.cache import cache_root
    from llpbench.system.environment import CACHE, DATA, VARIABLES

    folders = [
        ("data", Path(DATA.value).expanduser().absolute() if DATA.value else None, f"--data DIR or {DATA.name}"),
        ("cache", cache_root(), CACHE.name),
        ("results", Path("results").absolute(), "llpbench run --out DIR"),
        ("searches", Path("tuned").absolute(), "llpbench tune --out DIR"),
    ]
    if as_json:
        shown = [
            {"name": name, "path": str(path or ""), "exists": path is not None and path.is_dir(), "change": change}
            for name, path, change in folders
        ]
        variables = [{"name": v.name, "value": v.value, "meaning": v.meaning} for v in VARIABLES]
        print_json({"version": __version__, "folders": shown, "variables": variables})
        return
    say("folders", bold=True)
    for name, path, change in folders:
        state = "" if path is None or path.is_dir() else "  (does not exist yet)"
        say(f"  {name:<10}{path or 'none: files go to the cache'}{state}")
        say(f"  {'':<10}change it with {change}", dim=True)
    say("environment", bold=True)
    for variable in VARIABLES:
        say(f"  {variable.name:<18}{'not set' if variable.value is None else f'= {variable.value}'}")
        say(f"  {'':<18}{variable.meaning}", dim=True)
