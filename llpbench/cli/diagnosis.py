"""What ``doctor`` finds out about this machine, as plain data: what works, what is missing, what to type."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench import __version__
from llpbench.contracts.errors import describe, printable
from llpbench.system import sandbox
from llpbench.system.processes import python

if TYPE_CHECKING:
    from llpbench.plugins.registry import Registry

IMPORT_SECONDS = 120.0
"""Seconds that one import may take before it counts as broken."""
PACKAGES = {
    "keras": "keras",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "torch": "torch",
    "pgmax": "pgmax",
    "optuna": "tune",
    "distributed": "dask",
}
"""What networks, engines, tuning and clusters stand on, and the extra of llpbench that brings each."""

_LOCK = """
from llpbench.contracts.errors import LLPBenchError
from llpbench.system.sandbox import lock_away
try:
    lock_away([])
except LLPBenchError as error:
    raise SystemExit(str(error))
"""
_IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"
_WALK = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
    if module.name.rpartition(".")[2] in ("__main__", "conftest"):
        continue
    try:
        importlib.import_module(module.name)
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print("broken", module.name, getattr(error, "name", None) or "-", text[:300], sep="\\t")
    else:
        print("fine", module.name, "-", "", sep="\\t")
"""


def diagnose(registry: Registry, *, imports: bool = True) -> dict[str, Any]:
    """All that can be said of this machine. ``problems`` lists what needs attention, in sentences.

    Args:
        registry: what is registered.
        imports: import backends and the modules of plugins, each in a process of its own.
    """
    from llpbench.execution.launch import FORK_IS_SAFE
    from llpbench.execution.session import default_memory_mb
    from llpbench.system.machine import machine, usable_cores

    problems: list[str] = []
    report: dict[str, Any] = {
        "llpbench": __version__,
        "machine": {**machine(), "usable_cores": len(usable_cores())},
        "cells": {"start": "fork" if FORK_IS_SAFE else "spawn", "memory_mb": round(default_memory_mb())},
    }
    report["method_process"] = check_sandbox(problems)
    report["requirements"] = check_requirements(problems)
    report["packages"] = check_packages(imports, problems)
    report["plugins"] = _plugins(registry)
    report["modules"] = check_modules(registry, problems) if imports else []
    report["data"] = [_dataset(entry.spec, problems) for entry in registry.datasets if entry.spec.files]
    problems += _folder_trouble(Path("results"))
    problems += [f"broken plugin {b.name} ({b.distribution}): {b.error}" for b in registry.broken]
    problems += [f"conflict: {conflict}" for conflict in registry.conflicts]
    report["problems"] = problems
    return report


def check_requirements(problems: list[str]) -> list[dict[str, Any]]:
    """What llpbench itself requires against what is installed; extras count only where they are installed."""
    from packaging.requirements import Requirement

    found = []
    for text in requires("llpbench") or ():
        need = Requirement(text)
        optional = need.marker is not None and "extra" in str(need.marker)
        try:
            have = version(need.name)
        except PackageNotFoundError:
            have = ""
        if need.name == "llpbench" or (optional and not have) or (not optional and not _applies(need.marker)):
            continue
        good = bool(have) and need.specifier.contains(have, prereleases=True)
        found.append({"name": need.name, "needs": str(need.specifier), "installed": have, "ok": good})
        if not good and not (optional and _is_test_tool(str(need.marker))):
            state = f"{have} is installed" if have else "not installed"
            problems.append(
                f'{need.name}{need.specifier} is required, {state}: pip install "{need.name}{need.specifier}"'
            )
    return found


def _applies(marker: Any) -> bool:
    return marker is None or bool(marker.evaluate())


def _is_test_tool(marker: str) -> bool:
    return "test" in marker


def check_packages(imports: bool, problems: list[str]) -> list[dict[str, Any]]:
    """Backends and other packages that come with extras: their versions, and whether they can be imported."""
    found = []
    for package, extra in PACKAGES.items():
        try:
            found.append({"name": package, "version": version(package), "state": "installed"})
        except PackageNotFoundError:
            found.append({"name": package, "version": "", "state": f'not installed: pip install "llpbench[{extra}]"'})
    here = [item for item in found if item["version"]] if imports else []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for item, trouble in zip(here, pool.map(lambda item: try_import(item["name"]), here), strict=True):
            item["state"] = trouble or "imports"
            if trouble:
                problems.append(f"{item['name']} {item['version']} cannot be imported: {trouble}")
    return found


def try_import(module: str, seconds: float | None = None) -> str:
    """Import a module in a process of its own; what went wrong in one line, empty when nothing did."""
    return _trouble(_IMPORT, module, seconds)


def _trouble(code: str, argument: str = "", seconds: float | None = None) -> str:
    """The last line of what Python said before it failed in a process of its own; empty when it did not."""
    done = _python(code, argument, seconds)
    if isinstance(done, str):
        return done
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return printable((lines or [f"ended with code {done.returncode}"])[-1])[:300]


def check_modules(registry: Registry, problems: list[str]) -> list[dict[str, Any]]:
    """Import every module of the packages that plugins come from: methods, their engines, datasets.

    A module that only wants a package that is not installed (an extra) is no problem.
    """
    tops = {plugin.module.__name__.partition(".")[0] for plugin in registry.plugins if not plugin.from_file}
    packages = sorted(top for top in tops - {"llpbench"} if getattr(sys.modules.get(top), "__path__", None))
    with ThreadPoolExecutor(max_workers=2) as pool:
        walked = list(pool.map(_walk, packages))
    for item in walked:
        problems += [f"{name} cannot be imported: {text}" for name, text in item["broken"].items()]
    return walked


def _walk(package: str) -> dict[str, Any]:
    done = _python(_WALK, package, None)
    item: dict[str, Any] = {"package": package, "fine": 0, "absent": {}, "broken": {}}
    if isinstance(done, str):
        return {**item, "broken": {package: done}}
    for line in done.stdout.splitlines():
        parts = line.split("\t", 3)
        if len(parts) != 4 or parts[0] not in ("fine", "broken"):
            continue  # what a module prints as it is imported
        state, name, missing, text = parts
        if state == "fine":
            item["fine"] += 1
        elif text.startswith("ModuleNotFoundError") and missing.partition(".")[0] != package:
            item["absent"][name] = missing
        else:
            item["broken"][name] = printable(text)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        item["broken"][package] = printable(words[-1])[:300]
    return item


def _python(code: str, argument: str, seconds: float | None) -> subprocess.CompletedProcess[str] | str:
    """Run Python in a process of its own; a sentence when it took too long or could not start."""
    limit = IMPORT_SECONDS if seconds is None else seconds
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.setdefault("KERAS_BACKEND", "jax")
    try:
        return subprocess.run(
            [*python(), "-c", code, argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {limit:g} seconds"
    except OSError as error:
        return describe(error)


def check_sandbox(problems: list[str]) -> str:
    """Whether the process of a method can be locked away, in words; where it should be possible, a process tries it."""
    if sandbox.version() and (trouble := _trouble(_LOCK)):
        problems.append(f"no method can run: {trouble}")
        return f"not locked away: {trouble}"
    return sandbox.available()


def _plugins(registry: Registry) -> list[dict[str, str]]:
    """Who brings methods and the like; what ships with llpbench is one line."""
    from llpbench.plugins.fingerprint import fingerprint, origin_of

    files = [plugin.distribution for plugin in registry.plugins if plugin.from_file]
    shown = {(plugin.distribution, "" if plugin.builtin else plugin.name): plugin for plugin in registry.plugins}
    return [
        {"plugin": name or "built-in", "from": plugin.origin, "code": fingerprint(origin_of(plugin), files)}
        for (_, name), plugin in shown.items()
    ]


def _dataset(spec: Any, problems: list[str]) -> dict[str, Any]:
    from llpbench.data.store import locate, why_not_fetched

    located = locate(spec)
    wrong = [f"{item.where}: {item.note}" for item in located if item.state == "wrong"]
    absent = [item.file for item in located if item.state == "missing"]
    barred = {file.path: reason for file in absent if (reason := why_not_fetched(file))}
    state = "wrong files" if wrong else "ready" if not absent else "to be fetched on first use"
    if not wrong and barred:
        state = (
            "cannot be fetched"
            if len(barred) == len(located)
            else "partly here"
            if len(absent) == len(barred)
            else state
        )
    problems += wrong
    size = sum(file.size for file in absent if file.path not in barred)
    return {"name": spec.name, "state": state, "to_fetch_bytes": size, "cannot_be_fetched": barred, "wrong": wrong}


def _folder_trouble(path: Path) -> Iterable[str]:
    nearest = path
    while not nearest.exists():
        nearest = nearest.resolve().parent
    if not os.access(nearest, os.W_OK):
        yield f"results folder {path} cannot be written; use --out"


def python_line(report: dict[str, Any]) -> str:
    """The first line of the report."""
    facts = report["machine"]
    return (
        f"llpbench {report['llpbench']}, Python {platform.python_version()}, {facts['system']} {facts['architecture']}"
    )
