"""Which software a result depends on, and whether a result is stale."""

from __future__ import annotations

from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import DatasetSpec, MethodSpec
from llpbench.plugins.registry import Entry
from llpbench.system.machine import versions


def recorded_versions(method: Entry[MethodSpec], dataset: Entry[DatasetSpec], backend: str) -> dict[str, str]:
    """Versions of the harness, the numeric libraries, the backend and the plugins of a cell."""
    of_backend = ("keras", backend) if backend else ()
    plugins = [p.distribution for p in (method.plugin, dataset.plugin) if not p.builtin]
    return dict(versions(*of_backend, *plugins))


def is_stale(result: CellResult, now: dict[str, str]) -> bool:
    """Whether a result was made by other versions than those installed now."""
    return bool(result.versions) and result.versions != now
