"""Whether others can reproduce a result: which installed code made it, with which settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from llpbench.board.validate import Unsound
from llpbench.contracts.errors import LLPBenchError, PluginError, UnknownNameError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, RuleSpec, Scalar
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import Catalog, Entry, Registry
from llpbench.results.request import Command

S = TypeVar("S", MethodSpec, DatasetSpec, BagScheme, RuleSpec)


def check_traced(result: CellResult, registry: Registry) -> None:
    """Raise ``Unsound`` if others cannot reproduce a result with installed packages."""
    if result.cell.tuning or result.status == "pruned":
        raise Unsound("it is a trial of a search")
    method = registered(registry.methods, result.cell.method).spec
    dataset = registered(registry.datasets, result.cell.dataset).spec
    for rule in result.selected:
        version = registered(registry.rules, rule).spec.version
        if result.rules.get(rule) != version:
            raise Unsound(
                f"version {result.rules.get(rule)} of rule {rule!r} selected it, version {version} is installed"
            )
    for part, line in result.code.items():
        if line.startswith("file "):
            raise Unsound(f"its {part} is a single file; make it a package (llpbench new)")
    if result.status in ("timeout", "memory"):
        _check_limits(result)
    _check_settings(method, result.cell.params)
    _check_settings(dataset, result.cell.dataset_options)


def check_commands(commands: Iterable[Command]) -> None:
    """Raise ``Unsound`` if a file may have replaced an installed plugin in a run."""
    for command in commands:
        if "--plugin-override" in command if isinstance(command, str) else "override" in command.settings:
            raise Unsound("its run used --plugin-override; results must come from installed packages")


def registered(shelf: Catalog[S], name: str) -> Entry[S]:
    """Return what an installed package registers under a name; raise ``Unsound`` if none does."""
    try:
        entry = shelf.entry(name)
    except (UnknownNameError, PluginError):
        raise Unsound(f"no installed package provides the {shelf.kind} {name!r} (make one: llpbench new)") from None
    if entry.plugin.from_file:
        raise Unsound(f"the {shelf.kind} {name!r} comes from a single file; make it a package (llpbench new)")
    return entry


def _check_limits(result: CellResult) -> None:
    """A method that was stopped must have had the time and memory that every cell has."""
    for limit, least, unit in (("timeout", RunSettings.timeout.default, "s"), ("memory_mb", 8192.0, "MB")):
        had = result.limits.get(limit, 0.0)
        if had < least:
            raise Unsound(f"it was stopped with a {limit} of {had:g} {unit}; at least {least:g} {unit} are required")


def _check_settings(spec: MethodSpec | DatasetSpec, given: dict[str, Scalar]) -> None:
    try:
        resolved = spec.resolve(given)
    except LLPBenchError as error:
        raise Unsound(f"the installed {spec.name} does not accept its settings: {error}") from None
    if resolved != given:
        missing = ", ".join(sorted(set(resolved) - set(given))) or "values differ"
        raise Unsound(f"its settings are not all settings of the installed {spec.name}: {missing}")
