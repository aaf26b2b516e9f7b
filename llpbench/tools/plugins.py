"""``plugins``: installed plugins and what each provides."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from llpbench.cli.listing import report_troubles
from llpbench.cli.options import plugin_options
from llpbench.cli.printing import print_json, say
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import KINDS, Registry, load_registry

_FURTHER = {
    "llpbench_commands": "commands",
    "llpbench_references": "published values",
    "llpbench_cell_finished": "is notified of finished cells",
    "llpbench_run_finished": "is notified of finished runs",
    "llpbench_published_results": "published results",
    "llpbench_table_kinds": "kinds of tables",
    "llpbench_suite_tables": "tables of suites",
    "llpbench_joint_posterior": "probabilities of rows given overlapping counts",
}
"""Hooks that register nothing, in words."""


@click.command("plugins", short_help="List installed plugins, what each provides, and which are broken.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def plugins_(as_json: bool, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """List every plugin with its package (or file), what it provides, and the plugins that cannot be loaded.

    Disable installed plugins with LLPBENCH_BLOCK=NAME, or load only some with LLPBENCH_PLUGINS=NAME,NAME.
    """
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


class PluginFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded plugin: its entry point or file, its package (empty for a single file), and what it provides.

    ``brings`` has names by kind, e.g. ``{"methods": ["dllp"]}``, without those that another plugin has overridden;
    ``also`` lists its other hooks, in words.
    """

    name: str
    distribution: str
    version: str
    file: str
    brings: dict[str, list[str]]
    also: list[str]


def plugin_facts(registry: Registry) -> list[PluginFacts]:
    """All plugins in the order in which they were loaded, the built-in ones first."""
    return [_facts(plugin, registry) for plugin in registry.plugins]


def _facts(plugin: Plugin, registry: Registry) -> PluginFacts:
    brings = {kind: [e.spec.name for e in getattr(registry, kind) if e.plugin is plugin] for kind in KINDS}
    hooks = {caller.name for caller in registry.manager.get_hookcallers(plugin.module) or ()}
    return PluginFacts(
        name=plugin.name,
        distribution="" if plugin.from_file else plugin.distribution,
        version=plugin.version,
        file=str(Path(getattr(plugin.module, "__file__", None) or "")),
        brings={kind: names for kind, names in brings.items() if names},
        also=[words for hook, words in _FURTHER.items() if hook in hooks],
    )
