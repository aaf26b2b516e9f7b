"""What is registered: methods, datasets, metrics and bag schemes by name, with who brought each.

The registry is made by a function and passed on; there is no global one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pluggy

from llpbench.contracts.errors import PluginError, UnknownNameError, UsageError, describe, printable
from llpbench.contracts.specs import BagScheme, DatasetSpec, ExecutorSpec, MethodSpec, MetricSpec, Reference, RuleSpec
from llpbench.plugins.hooks import HookThread, HookTimeout
from llpbench.plugins.loading import BrokenPlugin, Plugin, load_plugins, refuse_broken
from llpbench.plugins.options import expand, parse_options

if TYPE_CHECKING:
    import click

    from llpbench.contracts.cell import Cell
    from llpbench.contracts.executor import Executor, ExecutorSettings
    from llpbench.contracts.result import CellResult
    from llpbench.report.results import Results

S = TypeVar("S", MethodSpec, DatasetSpec, MetricSpec, BagScheme, RuleSpec, ExecutorSpec)
log = logging.getLogger("llpbench")


@dataclass(frozen=True)
class Entry(Generic[S]):
    """A spec and the plugin that brought it."""

    spec: S
    plugin: Plugin


@dataclass
class Shelf(Generic[S]):
    """All specs of one kind. A name that two plugins claim answers with an error that names both."""

    kind: str
    entries: dict[str, Entry[S]] = field(default_factory=dict)
    conflicts: dict[str, list[Entry[S]]] = field(default_factory=dict)
    broken: list[BrokenPlugin] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry[S]]:
        return iter(sorted(self.entries.values(), key=lambda e: e.spec.name))

    @property
    def specs(self) -> list[S]:
        """All specs in the order they were registered, the built-in ones first."""
        return [entry.spec for entry in self.entries.values()]

    def __getitem__(self, name: str) -> S:
        return self.entry(name).spec

    def entry(self, name: str) -> Entry[S]:
        """The entry of that name, or an error with close matches, or the conflict about it."""
        if name in self.conflicts:
            raise PluginError(self.conflict(name))
        if name not in self.entries:
            names = ", ".join(plugin.name for plugin in self.broken)
            hint = f" Broken plugins: {names} (llpbench doctor)." if names else ""
            raise UnknownNameError(self.kind, name, self.entries, hint)
        return self.entries[name]

    def conflict(self, name: str) -> str:
        """The sentence about a name that several plugins claim."""
        claims = self.conflicts[name]
        who = " and ".join(f"{e.plugin.origin} (plugin {e.plugin.name!r})" for e in claims)
        installed = sorted({e.plugin.name for e in claims if not (e.plugin.builtin or e.plugin.from_file)})
        block = (
            f"Uninstall one, leave one out with LLPBENCH_BLOCK={','.join(installed)}, or let" if installed else "Let"
        )
        return (
            f"{self.kind} {name!r} is registered twice: by {who}. "
            f"{block} the last one win with --plugin-override {name}."
        )

    def add(self, entry: Entry[S], override: bool) -> None:
        """Register one more; a name taken already is a conflict unless it is overridden."""
        name = entry.spec.name
        if name in self.entries and not override:
            self.conflicts.setdefault(name, [self.entries[name]]).append(entry)
        else:
            self.entries[name] = entry


@dataclass
class Registry:
    """Everything that is registered, and the typed doors to the hooks."""

    manager: pluggy.PluginManager
    plugins: list[Plugin]
    broken: list[BrokenPlugin]
    methods: Shelf[MethodSpec] = field(default_factory=lambda: Shelf[MethodSpec]("method"))
    datasets: Shelf[DatasetSpec] = field(default_factory=lambda: Shelf[DatasetSpec]("dataset"))
    metrics: Shelf[MetricSpec] = field(default_factory=lambda: Shelf[MetricSpec]("metric"))
    schemes: Shelf[BagScheme] = field(default_factory=lambda: Shelf[BagScheme]("bag scheme"))
    rules: Shelf[RuleSpec] = field(default_factory=lambda: Shelf[RuleSpec]("selection rule"))
    executors: Shelf[ExecutorSpec] = field(default_factory=lambda: Shelf[ExecutorSpec]("executor"))
    _threads: dict[str, HookThread | None] = field(default_factory=dict, repr=False)

    @property
    def conflicts(self) -> list[str]:
        """One sentence for each name claimed twice."""
        shelves = (self.methods, self.datasets, self.metrics, self.schemes, self.rules, self.executors)
        return [shelf.conflict(name) for shelf in shelves for name in shelf.conflicts]

    @property
    def rules_on_request(self) -> frozenset[str]:
        """The selection rules that nothing shows or searches by unless they are named."""
        return frozenset(spec.name for spec in self.rules.specs if spec.on_request)

    @property
    def controls(self) -> frozenset[str]:
        """Names of the methods that are yardsticks, not rivals."""
        return frozenset(spec.name for spec in self.methods.specs if spec.control)

    def executor(self, text: str, settings: ExecutorSettings) -> Executor:
        """The executor that ``text`` names, with its options in brackets: ``dask[scheduler=tcp://host:8786]``."""
        name, options = parse_options(text)
        entry = self.executors.entry(name)
        chosen = expand(entry.spec, options)
        if len(chosen) != 1:
            raise UsageError(f"--executor {text}: give one value for each option.")
        needs = unmet_needs(entry)
        if needs:
            raise UsageError(f"--executor {needs}")
        made: Executor = entry.spec.load()(settings, **entry.spec.resolve(chosen[0]))
        return made

    def cell_finished(self, cell: Cell, result: CellResult) -> None:
        """Tell every plugin that a cell has ended; a plugin's error is logged and harms nothing.

        A plugin that does not return in time is told of no further cells.
        """
        for impl in self.manager.hook.llpbench_cell_finished.get_hookimpls():
            name, arguments = printable(impl.plugin_name), {"cell": cell, "result": result}
            if impl.plugin_name not in self._threads:
                self._threads[impl.plugin_name] = HookThread(name)
            thread = self._threads[impl.plugin_name]
            if thread is None:
                continue
            try:
                thread.call(impl.function, *(arguments[name] for name in impl.argnames))
            except HookTimeout as late:
                self._threads[impl.plugin_name] = None
                log.warning("plugin %s is told of no more cells: %s to a finished cell", name, late)
            except (Exception, SystemExit) as error:
                log.warning("plugin %s failed on a finished cell: %s", name, describe(error))

    def references(self) -> list[Reference]:
        """Published numbers that plugins know of; a plugin that fails is logged and harms nothing."""
        order = {id(plugin.module): i for i, plugin in enumerate(self.plugins)}
        impls = self.manager.hook.llpbench_references.get_hookimpls()
        found: list[Reference] = []
        for impl in sorted(impls, key=lambda i: order[id(i.plugin)]):
            try:
                given: list[Reference] = list(impl.function())  # type: ignore[call-overload]
                wrong = next((g for g in given if not isinstance(g, Reference)), None)
                if wrong is not None:
                    raise PluginError(f"llpbench_references must return Reference objects, not {type(wrong).__name__}")
            except Exception as error:
                log.warning("plugin %s failed to give its references: %s", printable(impl.plugin_name), describe(error))
                continue
            found.extend(given)
        return found

    def run_finished(self, results: Results) -> list[str]:
        """Tell every plugin that a run has ended; returns the lines to show. A plugin's error is logged."""
        lines = []
        for impl in self.manager.hook.llpbench_run_finished.get_hookimpls():
            try:
                line = impl.function(*((results,) if impl.argnames else ()))
            except Exception as error:
                log.warning("plugin %s failed on a finished run: %s", printable(impl.plugin_name), describe(error))
            else:
                lines += [str(line)] if line else []
        return lines

    def published_results(self, folder: Path | None) -> list[CellResult]:
        """Published results that plugins know of: those of ``folder``, or of the default leaderboard."""
        found: list[Iterable[CellResult]] = self.manager.hook.llpbench_published_results(folder=folder)
        return [result for results in found for result in results]

    def add_commands(self, group: click.Group) -> None:
        """Let plugins add their verbs; one that fails is logged and harms nothing."""
        for impl in self.manager.hook.llpbench_commands.get_hookimpls():
            try:
                impl.function(*((group,) if impl.argnames else ()))
            except Exception as error:
                log.warning("plugin %s failed to add its commands: %s", printable(impl.plugin_name), describe(error))


def load_registry(files: Iterable[Path] = (), override: Iterable[str] = ()) -> Registry:
    """Load all plugins and collect what they register.

    Args:
        files: single-file plugins (``--plugin``).
        override: names for which the plugin loaded last wins instead of a conflict.

    Raises:
        UsageError: a given file cannot be used (the user asked for it by name).
        PluginError: an entry point is broken and ``LLPBENCH_STRICT`` is set.
    """
    manager, plugins, broken = load_plugins(files)
    registry = Registry(manager, plugins, broken)
    by_module = {id(p.module): p for p in plugins}
    names = set(override)
    _collect(registry, "llpbench_methods", MethodSpec, registry.methods, by_module, names)
    _collect(registry, "llpbench_datasets", DatasetSpec, registry.datasets, by_module, names)
    _collect(registry, "llpbench_metrics", MetricSpec, registry.metrics, by_module, names)
    _collect(registry, "llpbench_bag_schemes", BagScheme, registry.schemes, by_module, names)
    _collect(registry, "llpbench_selection_rules", RuleSpec, registry.rules, by_module, names)
    _collect(registry, "llpbench_executors", ExecutorSpec, registry.executors, by_module, names)
    refuse_broken(registry.broken)
    registry.methods.broken = registry.datasets.broken = registry.broken
    return registry


def method_spec(name: str) -> MethodSpec:
    """The spec of an installed method, for a method that builds on another one by name.

    Single files (``--plugin``) are not looked at.

    Raises:
        UnknownNameError: no installed method has that name.
    """
    return load_registry().methods[name]


def _collect(
    registry: Registry,
    hook: str,
    kind: type[S],
    shelf: Shelf[S],
    by_module: Mapping[int, Plugin],
    override: set[str],
) -> None:
    order = {id(p.module): i for i, p in enumerate(registry.plugins)}
    impls = getattr(registry.manager.hook, hook).get_hookimpls()
    for impl in sorted(impls, key=lambda i: order[id(i.plugin)]):
        plugin = by_module[id(impl.plugin)]
        try:
            specs = list(impl.function())
            for spec in specs:
                if not isinstance(spec, kind):
                    raise PluginError(f"{hook} must return {kind.__name__} objects, not {type(spec).__name__}")
        except Exception as error:
            if plugin.from_file:
                raise UsageError(f"--plugin {plugin.distribution}: {describe(error)}") from error
            registry.broken.append(BrokenPlugin(plugin.name, plugin.origin, describe(error)))
            continue
        for spec in specs:
            shelf.add(Entry(spec, plugin), spec.name in override)


def missing_modules(spec: MethodSpec | DatasetSpec | ExecutorSpec, backend: str = "") -> list[str]:
    """Modules that ``spec`` needs and that are not installed (looked up, not imported)."""
    wanted = [*spec.requires, *([backend] if backend else [])]
    return [name for name in wanted if find_spec(name.partition(".")[0]) is None]


def unmet_needs(entry: Entry[MethodSpec] | Entry[DatasetSpec] | Entry[ExecutorSpec], backend: str = "") -> str:
    """What must be installed before this can run, as a sentence with the pip line; empty when nothing is missing."""
    missing = missing_modules(entry.spec, backend)
    if not missing:
        return ""
    return f"{entry.spec.name} needs {', '.join(missing)}: {install_hint(entry.plugin, missing, entry.spec.name)}"


def install_hint(plugin: Plugin, modules: Iterable[str], name: str = "") -> str:
    """The pip line that brings missing modules: an extra of the plugin called ``name`` or like the module, if any."""
    try:
        extras = set(metadata(plugin.distribution).get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        extras = set()
    if name in extras:
        return f'pip install "{plugin.distribution}[{name}]"'
    words = [f'"{plugin.distribution}[{m}]"' if m in extras else m for m in modules]
    return f"pip install {' '.join(words)}"
