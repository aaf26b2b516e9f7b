"""The machine and the software that a cell runs on."""

from __future__ import annotations

import hashlib
import os
import platform
import site
import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_CORE = ("llpbench", "numpy", "scipy", "scikit-learn", "pandas", "numba")


def python_command() -> list[str]:
    """How to start another Python like this one that imports nothing from the working directory.

    Packages of the user's own site folder are left out unless this process uses them.
    """
    return [sys.executable, "-P", *([] if site.getusersitepackages() in sys.path else ["-s"])]


def usable_cores() -> list[int]:
    """The cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """CPU, cores, memory, system and Python; no host or user name."""
    import psutil

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


@lru_cache(maxsize=1)
def machine_id() -> str:
    """A short name for the machine: the hash of its description and its host name."""
    text = repr(sorted(machine().items())) + platform.node()
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def total_memory_mb() -> float:
    """Physical memory in MiB."""
    import psutil

    return float(psutil.virtual_memory().total) / 2**20


@lru_cache(maxsize=64)
def versions(*extra: str) -> dict[str, str]:
    """Versions of the packages a result depends on, and of ``extra`` distributions."""
    found = {"python": platform.python_version()}
    for name in (*_CORE, *extra):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
