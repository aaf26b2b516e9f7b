"""What each plugin brings: the registry read by plugin instead of by name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Registry

KINDS = ("methods", "datasets", "metrics", "schemes", "rules", "executors")
"""The shelves of a registry, in the order in which they are listed."""

_FURTHER = {
    "llpbench_commands": "commands",
    "llpbench_references": "published values",
    "llpbench_cell_finished": "is told of finished cells",
}
"""Hooks that put nothing on a shelf, in words."""


class PluginFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that was loaded.

    Attributes:
        name: of its entry point, or of its file.
        distribution: the package that brings it; empty for a single file.
        version: of that package.
        file: where its code lies.
        brings: names by kind, e.g. ``{"methods": ["dllp"]}``; a name that another plugin took over is not there.
        also: what else it does, in words.
    """

    name: str
    distribution: str
    version: str
    file: str
    brings: dict[str, list[str]]
    also: list[str]


def plugin_facts(registry: Registry) -> list[PluginFacts]:
    """All loaded plugins in the order in which they were loaded, the built-in ones first."""
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
