"""The settings of a run, from a run file (TOML) and from flags or a call, which win over the file."""

from __future__ import annotations

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
_NOT_IN_FILES = {"suite", "config", "override", "plugins", "progress"}


def registry_of(given: Mapping[str, Any]) -> Registry:
    """The registry with the plugins that were given."""
    plugins = RunSettings.plugins.read(given.get("plugins", []))
    return load_registry(map(Path, plugins), RunSettings.override.read(given.get("override", [])))


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
    refuse_unknown(content.keys() - {SEARCH}, f"key in {path}:", RunSettings.declared().keys() - _NOT_IN_FILES)
    return content


def combine(file: Mapping[str, Any], given: Mapping[str, Any], kind: type[S]) -> S:
    """Settings that were given over those of a file over defaults, checked; errors name the setting."""
    given = {name: value for name, value in given.items() if value is not None}
    merged = {name: value for name, value in {**file, **given}.items() if name != SEARCH}
    for name, other in (("epsilon", "noise"), ("noise", "epsilon")):  # two ways to give noise levels
        if name in given and other not in given:
            merged.pop(other, None)
    settings = kind(**merged)
    if not settings.methods:
        raise UsageError(
            "no methods given. Try: llpbench run --methods dllp,mean-ridge --bags 8,512 (llpbench list shows all)"
        )
    return settings
