"""What each plugin provides: the registry by plugin instead of by name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import KINDS, Registry

_FURTHER = {
    "llpbench_commands": "commands",
    "llpbench_references": "published values",
    "llpbench_cell_finished": "is told about finished cells",
    "llpbench_run_finished": "is told about finished runs",
    "llpbench_published_results": "published results",
}
"""Hooks that register nothing, in words."""


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
