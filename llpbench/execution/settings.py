"""The settings of a run, from a run file (TOML) and from flags or a call, which win over the file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import refuse_unknown
from llpbench.plugins.registry import Registry, load_registry
from llpbench.plugins.shipped import shipped_files

S = TypeVar("S", bound=RunSettings)
SEARCH = "search"
"""The table of a run file with the settings of a search (``llpbench tune --config``); ``run`` ignores it."""
ALIASES = "aliases"
"""The table of a run file with short names of methods, datasets and bag schemes with options."""
NOT_IN_FILES = {"suite", "config", "progress"}
_NAMED = ("methods", "datasets", "schemes")


def registry_of(given: Mapping[str, Any]) -> Registry:
    """The registry with the plugins that were given."""
    plugins = RunSettings.plugins.read(given.get("plugins", []))
    return load_registry(map(Path, plugins), RunSettings.override.read(given.get("override", [])))


def open_run_file(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Registry]:
    """The settings of the run file that is named, those that were given, and the registry with the plugins of both."""
    given, registry = dict(given), registry_of(given)
    if "config" not in given:
        return {}, given, registry
    path = find_run_file(given["config"], registry)
    file = read_run_file(path)
    plugins = [str(path.parent / plugin) for plugin in RunSettings.plugins.read(file.pop("plugins", []))]
    if plugins or "override" in file:
        given["plugins"] = [*RunSettings.plugins.read(given.get("plugins", [])), *plugins]
        registry = registry_of({**file, **given})
    return file, given, registry


def run_files(registry: Registry) -> dict[str, Path]:
    """Run files that plugins ship: ``runs/*.toml`` in their top-level packages, by name."""
    return shipped_files(registry, "runs")


def find_run_file(name: str, registry: Registry) -> Path:
    """A file of that path, or the built-in run file of that name."""
    if Path(name).suffix == ".toml" or Path(name).is_file():
        return Path(name)
    known = run_files(registry)
    if name not in known:
        raise UnknownNameError("run file", name, known)
    return known[name]


def read_run_file(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, names checked, values not yet."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"--config {path}: no such file.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--config {path}: {error}") from None
    refuse_unknown(content.keys() - {SEARCH, ALIASES}, f"key in {path}:", RunSettings.declared().keys() - NOT_IN_FILES)
    return content


def write_run_file(path: Path, settings: RunSettings) -> None:
    """Write settings that are not defaults to a run file; paths of plugins are relative to it.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    values = {name: getattr(settings, name) for name in settings.declared() if name not in NOT_IN_FILES}
    values["plugins"] = [os.path.relpath(plugin, path.resolve().parent) for plugin in settings.plugin_files]
    changed = {name: value for name, value in values.items() if value != settings.declared()[name].default}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in changed.items()]  # also TOML
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}.") from None


def combine(file: Mapping[str, Any], given: Mapping[str, Any], kind: type[S]) -> S:
    """Settings that were given over those of a file over defaults, checked; errors name the setting."""
    given = {name: value for name, value in given.items() if value is not None}
    merged = {name: value for name, value in {**file, **given}.items() if name != SEARCH}
    for name, other in (("epsilon", "noise"), ("noise", "epsilon")):  # two ways to give noise levels
        if name in given and other not in given:
            merged.pop(other, None)
    aliases = _aliases(merged.pop(ALIASES, {}))
    for axis in (name for name in _NAMED if aliases and merged.get(name) is not None):
        names = kind.declared()[axis].read(merged[axis])
        merged[axis] = [aliases.get(name, name) for name in names]
    settings = kind(**merged)
    if not settings.methods:
        raise UsageError(
            "no methods given. Try: llpbench run --methods dllp,mean-ridge --bags 8,512 (llpbench list shows all)"
        )
    return settings


def _aliases(given: Any) -> dict[str, str]:
    if isinstance(given, dict) and all(isinstance(meaning, str) for meaning in given.values()):
        return given
    raise UsageError(f"{ALIASES}: expected a table of texts ([{ALIASES}]), got {given!r}.")
