"""Files in folders of plugins' top-level packages: run files in ``runs``, suites in ``suites``."""

from __future__ import annotations

import sys
from pathlib import Path

from llpbench.contracts.errors import PluginError
from llpbench.plugins.registry import Registry


def shipped_files(registry: Registry, folder: str) -> dict[str, Path]:
    """The TOML files in a folder of that name, by their stems.

    Raises:
        PluginError: two packages ship files of one name.
    """
    found: dict[str, Path] = {}
    for plugin in registry.plugins:
        package = sys.modules.get(plugin.module.__name__.partition(".")[0])
        for root in getattr(package, "__path__", ()):
            for path in sorted(Path(root, folder).glob("*.toml")):
                if found.setdefault(path.stem, path) != path:
                    raise PluginError(
                        f"{path.stem!r} is shipped twice: {found[path.stem]} and {path}. Uninstall one of the "
                        "packages, or name the file itself."
                    )
    return found
