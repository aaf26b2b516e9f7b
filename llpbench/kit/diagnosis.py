"""What ``doctor`` finds out about this machine, as plain data."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench import __version__
from llpbench.contracts.errors import describe, printable
from llpbench.execution import sandbox
from llpbench.system.machine import python_command

if TYPE_CHECKING:
    from llpbench.contracts.specs import DatasetSpec
    from llpbench.plugins.registry import Registry

IMPORT_SECONDS = 120.0
"""Seconds after which an import counts as broken."""
PACKAGES = {
    "keras": "keras",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "torch": "torch",
    "pgmax": "pgmax",
    "optuna": "tune",
    "distributed": "dask",
}
"""Optional packages, and the extra of llpbench that installs each."""

_LOCK = """
from llpbench.contracts.errors import LLPBenchError
from llpbench.execution.sandbox import lock_away
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


def diagnose(registry: Registry, *, imports: bool = True, on_step: Callable[[str], object] = str) -> dict[str, Any]:
    """All facts about this machine; ``problems`` lists what needs attention, in sentences.

    With ``imports``, backends and the modules of plugins are imported, each in its own process. ``on_step`` is told
    what is checked next.
    """
    from llpbench.execution.jobs import default_memory_mb
    from llpbench.execution.launch import FORK_IS_SAFE
    from llpbench.system.machine import machine, usable_cores

    problems: list[str] = []
    checks: dict[str, tuple[str, Callable[[], Any]]] = {
        "method_process": ("the sandbox of a method's process", lambda: check_sandbox(problems)),
        "requirements": ("requirements", lambda: check_requirements(problems)),
        "packages": ("backends and optional packages", lambda: check_packages(imports, problems)),
        "plugins": ("plugins", lambda: _plugins(registry)),
        "modules": ("modules of plugins", lambda: check_modules(registry, problems) if imports else []),
        "data": (
            "data files",
            lambda: [_dataset(entry.spec, problems) for entry in registry.datasets if entry.spec.files],
        ),
    }
    report: dict[str, Any] = {
        "llpbench": __version__,
        "machine": {**machine(), "usable_cores": len(usable_cores())},
        "cells": {"start": "fork" if FORK_IS_SAFE else "spawn", "memory_mb": round(default_memory_mb())},
    }
    for name, (step, check) in checks.items():
        on_step(step)
        report[name] = check()
    existing = next(folder for folder in (Path("results"), *Path("results").resolve().parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        problems.append("the results folder cannot be written; use --out")
    problems += [f"broken plugin {b.name} ({b.distribution}): {b.error}" for b in registry.broken]
    problems += [f"conflict: {conflict}" for conflict in registry.conflicts]
    return {**report, "problems": problems}


def check_requirements(problems: list[str]) -> list[dict[str, Any]]:
    """Compare the requirements of llpbench with what is installed; extras count only if they are installed."""
    from packaging.requirements import Requirement

    found = []
    for text in requires("llpbench") or ():
        need = Requirement(text)
        marker = str(need.marker or "")
        optional = "extra" in marker
        try:
            have = version(need.name)
        except PackageNotFoundError:
            have = ""
        applies = bool(have) if optional else need.marker is None or need.marker.evaluate()
        if need.name == "llpbench" or not applies:
            continue
        good = bool(have) and need.specifier.contains(have, prereleases=True)
        found.append({"name": need.name, "needs": str(need.specifier), "installed": have, "ok": good})
        if not good and not (optional and "test" in marker):
            state = f"{have} is installed" if have else "not installed"
            wanted = f"{need.name}{need.specifier}"
            problems.append(f'{wanted} is required, {state}: pip install "{wanted}"')
    return found


def check_packages(imports: bool, problems: list[str]) -> list[dict[str, Any]]:
    """The versions of optional packages, and whether they can be imported."""
    found = []
    for package, extra in PACKAGES.items():
        try:
            found.append({"name": package, "version": version(package), "state": "installed"})
        except PackageNotFoundError:
            found.append({"name": package, "version": "", "state": f'not installed: pip install "llpbench[{extra}]"'})
    here = [item for item in found if item["version"]] if imports else []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for item, error in zip(here, pool.map(lambda item: try_import(item["name"]), here), strict=True):
            item["state"] = error or "imports"
            if error:
                problems.append(f"{item['name']} {item['version']} cannot be imported: {error}")
    return found


def try_import(module: str, seconds: float | None = None) -> str:
    """Import a module in its own process; returns the error in one line, or an empty text."""
    return _error_of(_run_python(_IMPORT, module, seconds))


def check_sandbox(problems: list[str]) -> str:
    """Whether the process of a method can be sandboxed, in words; where the system supports it, it is tried."""
    if sandbox.version() and (error := _error_of(_run_python(_LOCK))):
        problems.append(f"no method can run: {error}")
        return f"not sandboxed: {error}"
    return sandbox.available()


def check_modules(registry: Registry, problems: list[str]) -> list[dict[str, Any]]:
    """Import every module of the packages that plugins come from.

    A module that fails because an optional package is not installed is not a problem.
    """
    tops = {plugin.module.__name__.partition(".")[0] for plugin in registry.plugins if not plugin.from_file}
    packages = sorted(top for top in tops - {"llpbench"} if getattr(sys.modules.get(top), "__path__", None))
    with ThreadPoolExecutor(max_workers=2) as pool:
        walked = list(pool.map(_import_all, packages))
    problems += [f"{name} cannot be imported: {text}" for item in walked for name, text in item["broken"].items()]
    return walked


def _import_all(package: str) -> dict[str, Any]:
    done = _run_python(_WALK, package)
    item: dict[str, Any] = {"package": package, "fine": 0, "absent": {}, "broken": {}}
    for line in "" if isinstance(done, str) else done.stdout.splitlines():
        parts = line.split("\t", 3)
        if len(parts) != 4 or parts[0] not in ("fine", "broken"):
            continue  # printed by a module during its import
        state, name, missing, text = parts
        if state == "fine":
            item["fine"] += 1
        elif text.startswith("ModuleNotFoundError") and missing.partition(".")[0] != package:
            item["absent"][name] = missing
        else:
            item["broken"][name] = printable(text)
    if error := _error_of(done):
        item["broken"][package] = error
    return item


def _run_python(code: str, argument: str = "", seconds: float | None = None) -> subprocess.CompletedProcess[str] | str:
    """Run Python code in its own process; a sentence if it took too long or could not start."""
    limit = IMPORT_SECONDS if seconds is None else seconds
    try:
        return subprocess.run(
            [*python_command(), "-c", code, argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            env={"KERAS_BACKEND": "jax", **os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {limit:g} seconds"
    except OSError as error:
        return describe(error)


def _error_of(done: subprocess.CompletedProcess[str] | str) -> str:
    """The last line that a failed process printed; empty if it succeeded."""
    if isinstance(done, str):
        return done
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    last = (lines or [f"exited with code {done.returncode}"])[-1]
    return printable(last)[:300] if done.returncode else ""


def _plugins(registry: Registry) -> list[dict[str, str]]:
    """The installed plugins; those of llpbench itself are one line."""
    from llpbench.plugins.fingerprint import fingerprint, origin_of

    files = [plugin.distribution for plugin in registry.plugins if plugin.from_file]
    shown = {(plugin.distribution, "" if plugin.builtin else plugin.name): plugin for plugin in registry.plugins}
    return [
        {"plugin": name or "built-in", "from": plugin.origin, "code": fingerprint(origin_of(plugin), files)}
        for (_, name), plugin in shown.items()
    ]


def _dataset(spec: DatasetSpec, problems: list[str]) -> dict[str, Any]:
    from llpbench.data.store import locate, why_not_fetched

    located = locate(spec)
    wrong = [f"{item.where}: {item.note}" for item in located if item.state == "wrong"]
    absent = [item.file for item in located if item.state == "missing"]
    barred = {file.path: reason for file in absent if (reason := why_not_fetched(file))}
    if wrong:
        state = "wrong files"
    elif not absent:
        state = "ready"
    elif len(barred) == len(located):
        state = "cannot be fetched"
    else:
        state = "partly here" if len(barred) == len(absent) else "to be fetched on first use"
    problems += wrong
    size = sum(file.size for file in absent if file.path not in barred)
    return {"name": spec.name, "state": state, "to_fetch_bytes": size, "cannot_be_fetched": barred, "wrong": wrong}


def python_line(report: dict[str, Any]) -> str:
    """The first line of the report."""
    system = f"{report['machine']['system']} {report['machine']['architecture']}"
    return f"llpbench {report['llpbench']}, Python {platform.python_version()}, {system}"
