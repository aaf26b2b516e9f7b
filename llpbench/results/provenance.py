"""Which software a result depends on, and whether a result is stale."""

from __future__ import annotations

from llpbench.contracts.result import CellResult
from llpbench.system.machine import versions


def recorded_versions(method, dataset=None, backend=""):  # interim
    """Versions of the harness, the numeric libraries, the backend and the plugins of a cell."""
    if dataset is None:
        return dict(versions(*(("keras", method.cell.backend) if method.cell.backend else ())))
    network = ("keras", backend) if backend else ()
    plugins = [p.distribution for p in (method.plugin, dataset.plugin) if not p.builtin]
    return dict(versions(*network, *plugins))


def is_stale(result: CellResult, now: dict[str, str]) -> bool:
    """Whether a result was made by other versions than those installed now."""
    return bool(result.versions) and result.versions != now


def recorded_code(job):  # interim
    return dict(job.code)


def numeric_flags():  # interim
    return {}
