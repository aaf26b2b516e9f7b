"""Whether a result can be traced: to code that others can install, to seeds, to a machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import packages_distributions
from typing import TypeVar

import msgspec

from llpbench.board.content.facts import MachineFacts
from llpbench.board.content.origin import check_code
from llpbench.board.validate import RELEASE, Unsound, clip
from llpbench.contracts.cell import SEARCHED, USUAL, Cell
from llpbench.contracts.errors import LLPBenchError, PluginError, UnknownNameError, UsageError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, RuleSpec, Scalar
from llpbench.execution.jobs import Limits
from llpbench.experiment.grid import Variant, named_settings, shown_data
from llpbench.plugins.loading import Plugin
from llpbench.plugins.options import format_scalar, parse_options
from llpbench.plugins.registry import Entry, Registry, Shelf
from llpbench.results.references import ORIGINS

S = TypeVar("S", MethodSpec, DatasetSpec, BagScheme, RuleSpec)


def check_traced(result: CellResult, registry: Registry) -> None:
    """Refuse a result that nobody could make again, naming what is missing."""
    if result.cell.tuning or result.status == "pruned":
        raise Unsound("it is a trial of a search, not a result")
    method = registered(registry.methods, result.cell.method)
    dataset = registered(registry.datasets, result.cell.dataset)
    for rule in result.selected:
        spec = registered(registry.rules, rule).spec
        version = getattr(spec, "version", 1)
        if result.protocol > 1 and result.rules.get(rule) != version:
            raise Unsound(f"it was chosen by version {result.rules.get(rule)} of rule {rule!r}, installed is {version}")
    if result.status == "ok" or result.versions:
        _check_versions(result, [method.plugin, dataset.plugin], [*method.spec.requires, *dataset.spec.requires])
    if result.status == "ok" and result.protocol > 1:
        brought = {"method": method.plugin, "dataset": dataset.plugin}
        check_code(result, {"harness": "llpbench", **{part: p.distribution for part, p in brought.items()}})
    if result.oracle != method.spec.oracle:
        raise Unsound(f"{method.spec.name} {'is' if method.spec.oracle else 'is not'} given labels, the result differs")
    _check_declared(method.spec, result.cell.params)
    _check_declared(dataset.spec, result.cell.dataset_options)


def check_stated(result: CellResult, machine: MachineFacts) -> None:
    """Refuse a result that lacks what every result states, whatever is installed; its machine must have its Python."""
    if result.status in ("timeout", "memory"):
        _check_limits(result)
    if result.status != "ok":
        return
    numeric = ("scipy", "scikit-learn") if result.protocol > 1 else ()
    backend = ("keras", result.cell.backend) if result.cell.backend else ()
    for name in ("llpbench", "python", "numpy", *backend, *numeric):
        if not result.versions.get(name):
            raise Unsound(f"it does not say which version of {name} made it")
    if result.versions["python"] != machine.python:
        raise Unsound(f"its python is {result.versions['python']}, that of its machine {machine.python}")
    if result.protocol > 1:
        check_code(result, {})
        if "test_labels" not in result.digests:
            raise Unsound("it has no digest of the labels it was judged on")
        if not result.digests.get("features"):
            raise Unsound("it has no digest of its features")
        for rule, chosen in result.selected.items():
            if rule not in result.rules:
                raise Unsound(f"it does not say which version of rule {rule!r} chose")
            if chosen.metrics.get("bag_error") is None and not result.predictions_only:
                raise Unsound(f"it has no bag_error under {rule!r}")


def _check_limits(result: CellResult) -> None:
    """Refuse a method that was stopped before it had the time and memory that every cell has."""
    usual = Limits()
    for limit, least, unit in (("timeout", usual.timeout, "s"), ("memory_mb", usual.memory_mb, "MB")):
        had = result.limits.get(limit)
        if had is None or not had >= least:
            text = "is not stated" if had is None else f"was {had:g} {unit}"
            raise Unsound(f"it was stopped, and its limit {limit} {text}; others have {least:g} {unit}")


def check_named(result: CellResult, registry: Registry) -> None:
    """Refuse a traced result whose names, of its method and of its data, are not those of its settings."""
    today = msgspec.structs.replace(result)
    set_names(today, registry)
    for shown, name in ((result.method_name, today.method_name), (result.dataset_name, today.dataset_name)):
        if shown != name:
            raise Unsound(f"it is shown as {clip(shown)}, its settings are those of {clip(name)}")


def check_commands(commands: Iterable[str]) -> None:
    """Refuse a run in which a file may have stood in for an installed plugin."""
    for command in commands:
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
        if any(word.partition("=")[0] == "--plugin-override" for word in words):
            raise Unsound("it was run with --plugin-override, so a name may stand for other code")


def registered(shelf: Shelf[S], name: str) -> Entry[S]:
    """What is registered by an installed package, or ``Unsound``: nobody else has what is not."""
    try:
        entry = shelf.entry(name)
    except (UnknownNameError, PluginError):
        raise Unsound(
            f"no installed plugin brings the {shelf.kind} {name!r}; a plugin in a single file cannot be traced "
            "(make it a package: llpbench new)"
        ) from None
    if entry.plugin.from_file:
        raise Unsound(f"the {shelf.kind} {name!r} comes from a single file; make it a package (llpbench new)")
    return entry


def _check_versions(result: CellResult, plugins: list[Plugin], requires: list[str]) -> None:
    backend = ["keras", result.cell.backend] if result.cell.backend else []
    code = ["llpbench", *(p.distribution for p in plugins if not p.builtin)]
    needed = ["scipy", "scikit-learn", *requires] if result.protocol > 1 and result.status == "ok" else []
    for name in (*code, "python", "numpy", *backend, *needed):
        known = {name, *_distributions().get(name.partition(".")[0], ())} & set(result.versions)
        if not known:
            raise Unsound(f"it does not say which version of {name} made it")
        version = result.versions[min(known)]
        if name in code and not RELEASE.fullmatch(version):
            raise Unsound(f"version {clip(version)} of {name} is not a release: nobody else has it")


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    """Which distributions bring a module: ``sklearn`` comes with ``scikit-learn``."""
    return dict(packages_distributions())


def name_today(cell: Cell, method: MethodSpec) -> str | None:
    """What a method with these settings is called today; None when that is not for the settings to say.

    A name holds what differs from the defaults. Defaults change, and nothing may run under another's name: what was
    ``a`` under old defaults is ``a[lr=0.1]`` under new ones.
    """
    if cell.preset:
        return None
    try:
        stated = method.resolve(cell.params) == cell.params
    except LLPBenchError:
        return None
    return Variant(method, cell.params).name if stated else None


def check_label(result: CellResult) -> None:
    """Refuse a name that hides whose settings a cell has: it states the method, a preset or search, and true values.

    This much can be seen whatever is installed; ``check_named`` knows the defaults too.
    """
    cell = result.cell
    try:
        name, options = parse_options(result.method_name)
    except UsageError as error:
        raise Unsound(f"its name cannot be read: {error}") from None
    origin = {} if not cell.preset else {_origin(cell): [cell.preset]}
    stated = {key: values for key, values in options.items() if key in ORIGINS}
    given = {key: values for key, values in options.items() if key not in ORIGINS}
    false = any(values != [format_scalar(cell.params.get(key))] for key, values in given.items())
    if name != cell.method or stated != origin or false:
        raise Unsound(f"its name {clip(result.method_name)} is not that of its settings")


def _origin(cell: Cell) -> str:
    """The option of a name that says where the parameters of a cell come from."""
    return "params" if cell.preset.startswith(SEARCHED) else "preset"


def _check_preset(result: CellResult, method: MethodSpec) -> None:
    """Refuse parameters that are not those of the preset which a cell names, nor given beside it in its name."""
    cell = result.cell
    if not cell.preset or _origin(cell) != "preset":
        return
    if cell.preset not in dict(method.presets):
        raise Unsound(f"{method.name} has no preset {clip(cell.preset)}")
    given = {key: cell.params.get(key) for key in parse_options(result.method_name)[1] if key not in ORIGINS}
    params, _, _ = named_settings(Variant(method, given), cell.preset, cell.dataset, cell.bag_size)
    if params != cell.params:
        raise Unsound(f"its parameters are not those of {clip(result.method_name)}")


def set_names(result: CellResult, registry: Registry) -> None:
    """Name a traced result for what it is, whatever its run called it."""
    cell = result.cell
    method = registry.methods[cell.method]
    result.method_name = name_today(cell, method) or result.method_name
    check_label(result)
    _check_preset(result, method)
    dataset = Variant(registry.datasets[cell.dataset], cell.dataset_options)
    without = result.oracle and cell.split == USUAL.split
    scheme = None if without else Variant(registered(registry.schemes, cell.scheme).spec, cell.scheme_options)
    result.dataset_name = shown_data(cell, dataset, scheme)


def _check_declared(spec: MethodSpec | DatasetSpec, given: dict[str, Scalar]) -> None:
    try:
        resolved = spec.resolve(given)
    except LLPBenchError as error:
        raise Unsound(f"{spec.name} as installed does not take these settings: {error}") from None
    if resolved != given:
        lacking = sorted(set(resolved) - set(given))
        raise Unsound(f"it does not state every setting of {spec.name}: {', '.join(lacking) or 'values differ'}")
