"""The registry of a run, loaded once per process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from llpbench.plugins.registry import Registry, load_registry


@lru_cache(maxsize=4)
def shared_registry(plugins: tuple[str, ...], override: tuple[str, ...]) -> Registry:
    """The registry of a run, loaded once per process; the fork server loads it for all its children."""
    return load_registry([Path(p) for p in plugins], override)
