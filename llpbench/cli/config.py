"""``config``: where things go, and what the environment says."""

from __future__ import annotations

import click
import msgspec

from llpbench.cli.printing import say


@click.command(short_help="Where data, cache and results go; environment variables.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def config(as_json: bool) -> None:
    """Print the folders that commands use here, and every environment variable that llpbench reads, with its value."""
    from llpbench import __version__
    from llpbench.data.places import places
    from llpbench.system.environment import VARIABLES

    folders = places()
    if as_json:
        variables = [{"name": v.name, "value": v.value, "meaning": v.meaning} for v in VARIABLES]
        content = {"version": __version__, "folders": folders, "variables": variables}
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    say("folders", bold=True)
    for place in folders:
        state = "" if place.exists or not place.path else "  (not there yet)"
        say(f"  {place.name:<10}{place.path or 'none: files go to the cache'}{state}")
        say(f"  {'':<10}another one: {place.change}", dim=True)
    say("environment", bold=True)
    for variable in VARIABLES:
        shown = "not set" if variable.value is None else f"= {variable.value}"
        say(f"  {variable.name:<18}{shown}")
        say(f"  {'':<18}{variable.meaning}", dim=True)
