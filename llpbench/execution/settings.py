"""The settings of a run, from a TOML file, from flags or from a call: the latter two win, unknown keys are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.execution.jobs import Rerun
from llpbench.experiment.grid import RunSpec, parse_seeds
from llpbench.plugins.options import split_list
from llpbench.plugins.shipped import shipped_files
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
HOW_KEYS = {f.name for f in msgspec.structs.fields(HowToRun)}
_KEYS = _SPEC_KEYS | HOW_KEYS | {"epsilon"}
SEARCH = "search"
"""The table of a run file that says how its methods are tuned (``llpbench tune --config``); a run leaves it aside."""


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
    refuse_unknown({key: value for key, value in content.items() if key != SEARCH}, f"key in {path}:")
    return content


def refuse_unknown(settings: Mapping[str, Any], kind: str) -> None:
    """An error for a key that no setting has."""
    for key in settings:
        if key not in _KEYS:
            raise UnknownNameError(kind, key, _KEYS)


def combine(file: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[RunSpec, HowToRun]:
    """Flags over file over defaults, checked; errors name the key."""
    given = {key: value for key, value in flags.items() if value is not None}
    refuse_unknown(given, "setting")
    merged = {**file, **given}
    for flag, other in (("epsilon", "noise"), ("noise", "epsilon")):  # two ways to say one thing
        if flag in given and other not in given:
            merged.pop(other, None)
    merged = read_settings(merged)
    epsilons = merged.pop("epsilon", None)
    if epsilons:
        merged["noise"] = [*merged.get("noise", ()), *(f"epsilon={e}" for e in epsilons)]
    if not merged.get("methods"):
        raise UsageError(
            "no methods given. Try: llpbench run --methods dllp,mean-ridge --bags 8,512 (llpbench list shows all)"
        )
    spec = convert({k: v for k, v in merged.items() if k in _SPEC_KEYS}, RunSpec)
    return spec, convert({k: v for k, v in merged.items() if k in HOW_KEYS}, HowToRun)


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as people give them, in the form that a run has them: lists, numbers, seconds."""
    read = dict(settings)
    for key in _LISTS:
        if isinstance(read.get(key), str):
            read[key] = split_list(read[key])
    for key in ("bags", "feature_noise", "epsilon"):
        if isinstance(read.get(key), int | float) and not isinstance(read.get(key), bool):
            read[key] = [read[key]]
    if isinstance(read.get("seeds"), str | list):
        read["seeds"] = parse_seeds(read["seeds"])
    if isinstance(read.get("timeout"), str):
        read["timeout"] = parse_duration(read["timeout"])
    if isinstance(read.get("memory"), str):
        read["memory"] = parse_memory(read["memory"])
    return read


def call_text(function: str, given: Mapping[str, Any]) -> str:
    """The call of a function of llpbench as one would write it, for the manifest."""
    plain = {name: plain_setting(value) for name, value in given.items() if name != "progress"}
    words = [f"{name}={value!r}" for name, value in plain.items() if value is not None and value != []]
    return f"llpbench.{function}({', '.join(words)})"


def plain_setting(value: Any) -> Any:
    """A setting as a run file would hold it: paths as texts, sequences as lists, mappings as tables."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: plain_setting(item) for name, item in value.items()}
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if is_sequence:
        return [plain_setting(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def convert(values: Mapping[str, Any], kind: type[Any]) -> Any:
    """Settings as an object of a kind; a wrong value is an error that names its key."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{error} (in the run's settings)") from None
