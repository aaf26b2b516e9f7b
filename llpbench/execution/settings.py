"""The settings of a run, from a TOML file, from flags or from a call: the latter two win, unknown keys are refused."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.execution.jobs import Rerun
from llpbench.experiment.grid import RunSpec, parse_seeds
from llpbench.plugins.options import split_list
from llpbench.system.quantities import parse_duration, parse_memory

if TYPE_CHECKING:
    from llpbench.plugins.registry import Registry

_LISTS = ("methods", "datasets", "schemes", "noise")


class HowToRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to run a grid and which metric to show: nothing here changes a number."""

    out: str = ""
    metric: str = "auroc"
    rerun: Rerun = "missing"
    executor: str = "local"
    jobs: int = 0
    threads: int = 1
    timeout: float = 3600.0
    memory: float = 0.0
    start: str = ""
    data: str = ""
    offline: bool = False
    predictions: bool = True
    exitfirst: bool = False


_SPEC_KEYS = {f.name for f in msgspec.structs.fields(RunSpec)}
_HOW_KEYS = {f.name for f in msgspec.structs.fields(HowToRun)}
_KEYS = _SPEC_KEYS | _HOW_KEYS | {"epsilon"}
SEARCH = "search"
"""The table of a run file that says how its methods are tuned (``llpbench tune --config``); a run leaves it aside."""


def run_files(registry: Registry) -> dict[str, Path]:
    """Run files that plugins ship: ``runs/*.toml`` in their top-level packages, by name."""
    found: dict[str, Path] = {}
    for plugin in registry.plugins:
        package = sys.modules.get(plugin.module.__name__.partition(".")[0])
        for folder in getattr(package, "__path__", ()):
            found |= {path.stem: path for path in sorted(Path(folder, "runs").glob("*.toml"))}
    return found


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
    _refuse_unknown({key: value for key, value in content.items() if key != SEARCH}, f"key in {path}:")
    return content


def _refuse_unknown(settings: Mapping[str, Any], kind: str) -> None:
    for key in settings:
        if key not in _KEYS:
            raise UnknownNameError(kind, key, _KEYS)


def combine(file: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[RunSpec, HowToRun]:
    """Flags over file over defaults, checked; errors name the key."""
    given = {key: value for key, value in flags.items() if value is not None}
    _refuse_unknown(given, "setting")
    merged = {**file, **given}
    if "epsilon" in given and "noise" not in given:
        merged.pop("noise", None)
    for key in _LISTS:
        if isinstance(merged.get(key), str):
            merged[key] = split_list(merged[key])
    for key in ("bags", "feature_noise", "epsilon"):
        if isinstance(merged.get(key), int | float) and not isinstance(merged.get(key), bool):
            merged[key] = [merged[key]]
    if isinstance(merged.get("seeds"), str | list):
        merged["seeds"] = parse_seeds(merged["seeds"])
    epsilons = merged.pop("epsilon", None)
    if epsilons:
        merged["noise"] = [*merged.get("noise", ()), *(f"epsilon={e}" for e in epsilons)]
    if isinstance(merged.get("timeout"), str):
        merged["timeout"] = parse_duration(merged["timeout"])
    if isinstance(merged.get("memory"), str):
        merged["memory"] = parse_memory(merged["memory"])
    if not merged.get("methods"):
        raise UsageError(
            "no methods given. Try: llpbench run --methods dllp,mean-ridge --bags 8,512 (llpbench list shows all)"
        )
    spec = _convert({k: v for k, v in merged.items() if k in _SPEC_KEYS}, RunSpec)
    return spec, _convert({k: v for k, v in merged.items() if k in _HOW_KEYS}, HowToRun)


def _convert(values: Mapping[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{error} (in the run's settings)") from None
