"""``plugins``: installed plugins and what each provides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import plugin_options
from llpbench.cli.printing import print_json, say

if TYPE_CHECKING:
    from llpbench.plugins.overview import PluginFacts


@click.command("plugins", short_help="List installed plugins, what each provides, and which are broken.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def plugins_(as_json: bool, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """List every plugin with its package (or file), what it provides, and the plugins that cannot be loaded.

    Disable installed plugins with LLPBENCH_BLOCK=NAME, or load only some with LLPBENCH_PLUGINS=NAME,NAME.
    """
    from llpbench.cli.listing import report_troubles
    from llpbench.plugins.overview import plugin_facts
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    facts = plugin_facts(registry)
    if as_json:
        broken = [{"name": b.name, "distribution": b.distribution, "error": b.error} for b in registry.broken]
        print_json({"plugins": facts, "broken": broken, "conflicts": registry.conflicts})
        return
    by_origin: dict[str, list[PluginFacts]] = {}
    for plugin in facts:
        origin = f"{plugin.distribution} {plugin.version}" if plugin.distribution else plugin.file
        by_origin.setdefault(origin, []).append(plugin)
    width = max(len(plugin.name) for plugin in facts) + 2
    for origin, found in by_origin.items():
        say(origin, bold=True)
        for plugin in found:
            say(f"  {plugin.name:<{width}}{_words(plugin)}")
    report_troubles(registry)


def _words(plugin: PluginFacts) -> str:
    return "; ".join([*(f"{kind}: {', '.join(names)}" for kind, names in plugin.brings.items()), *plugin.also])
