"""What is registered: methods, datasets, metrics, bag schemes, selection rules and executors, by name.

A registry is created by ``load_registry`` and passed on; there is no global one.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy

from llpbench.contracts.errors import LLPBenchError, PluginError, UnknownNameError, UsageError, describe, printable
from llpbench.contracts.specs import BagScheme, DatasetSpec, ExecutorSpec, MethodSpec, MetricSpec, Reference, RuleSpec
from llpbench.plugins.hooks import HookThread, HookTimeout
from llpbench.plugins.loading import BrokenPlugin, Plugin, check_strict, load_plugins
from llpbench.plugins.options import expand, parse_options

if TYPE_CHECKING:
    import click

    from llpbench.contracts.cell import Cell
    from llpbench.contracts.executor import Executor, ExecutorSettings
    from llpbench.contracts.result import CellResult
    from llpbench.report.results import Results

S = TypeVar("S", MethodSpec, DatasetSpec, MetricSpec, BagScheme, RuleSpec, ExecutorSpec)
log = logging.getLogger("llpbench")

_MOST_FILES = 100  # of a folder that are searched for a plugin
_SHELVES: dict[str, tuple[str, Any]] = {
    "methods": ("llpbench_methods", MethodSpec),
    "datasets": ("llpbench_datasets", DatasetSpec),
    "metrics": ("llpbench_metrics", MetricSpec),
    "schemes": ("llpbench_bag_schemes", BagScheme),
    "rules": ("llpbench_selection_rules", RuleSpec),
    "executors": ("llpbench_executors", ExecutorSpec),
}
"""The hook that fills each catalog, and what it returns."""
KINDS = tuple(_SHELVES)
"""The catalogs of a registry, in the order in which they are listed."""


@dataclass(frozen=True)
class Entry(Generic[S]):
    """A spec and the plugin that provides it."""

    spec: S
    plugin: Plugin


@dataclass
class Catalog(Generic[S]):
    """All specs of one kind. Looking up a name that two plugins claim raises an error that names both."""

    kind: str
    entries: dict[str, Entry[S]] = field(default_factory=dict)
    conflicts: dict[str, list[Entry[S]]] = field(default_factory=dict)
    broken: list[BrokenPlugin] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry[S]]:
        return iter(sorted(self.entries.values(), key=lambda e: e.spec.name))

    @property
    def specs(self) -> list[S]:
        """All specs in the order of registration, the built-in ones first."""
        return [entry.spec for entry in self.entries.values()]

    def __getitem__(self, name: str) -> S:
        return self.entry(name).spec

    def entry(self, name: str) -> Entry[S]:
        """The entry of that name; raises an error with close matches, or with the conflict about it."""
        if name in self.conflicts:
            raise PluginError(self.conflict(name))
        if name not in self.entries:
            names = ", ".join(plugin.name for plugin in self.broken)
            hint = f" Broken plugins: {names} (llpbench doctor)." if names else ""
            file = file_that_registers(name)
            hint += f" {file} seems to register it: add --plugin {file}." if file else ""
            if base := re.match(r"([\w.-]+):", name):
                hint += f" Options of a {self.kind} are given in quoted brackets: '{base[1]}[option=value;value]'."
            raise UnknownNameError(self.kind, name, self.entries, hint)
        return self.entries[name]

    def conflict(self, name: str) -> str:
        """The message about a name that several plugins claim."""
        claims = self.conflicts[name]
        who = " and ".join(f"{e.plugin.origin} (plugin {e.plugin.name!r})" for e in claims)
        installed = sorted({e.plugin.name for e in claims if not (e.plugin.builtin or e.plugin.from_file)})
        block = f"Uninstall one, disable one with LLPBENCH_BLOCK={','.join(installed)}, or let" if installed else "Let"
        return (
            f"{self.kind} {name!r} is registered twice: by {who}. "
            f"{block} the last one win with --plugin-override {name}."
        )

    def add(self, entry: Entry[S], override: bool) -> None:
        """Register an entry; a name that is taken is a conflict unless it is overridden."""
        name = entry.spec.name
        if name in self.entries and not override:
            self.conflicts.setdefault(name, [self.entries[name]]).append(entry)
        else:
            self.entries[name] = entry


@dataclass
class Registry:
    """Everything that is registered, and typed access to the hooks."""

    manager: pluggy.PluginManager
    plugins: list[Plugin]
    broken: list[BrokenPlugin]
    methods: Catalog[MethodSpec] = field(default_factory=lambda: Catalog[MethodSpec]("method"))
    datasets: Catalog[DatasetSpec] = field(default_factory=lambda: Catalog[DatasetSpec]("dataset"))
    metrics: Catalog[MetricSpec] = field(default_factory=lambda: Catalog[MetricSpec]("metric"))
    schemes: Catalog[BagScheme] = field(default_factory=lambda: Catalog[BagScheme]("bag scheme"))
    rules: Catalog[RuleSpec] = field(default_factory=lambda: Catalog[RuleSpec]("selection rule"))
    executors: Catalog[ExecutorSpec] = field(default_factory=lambda: Catalog[ExecutorSpec]("executor"))
    _threads: dict[str, HookThread | None] = field(default_factory=dict, repr=False)

    @property
    def conflicts(self) -> list[str]:
        """One sentence for each name that is claimed twice."""
        catalogs: list[Catalog[Any]] = [getattr(self, kind) for kind in KINDS]
        return [catalog.conflict(name) for catalog in catalogs for name in catalog.conflicts]

    @property
    def rules_on_request(self) -> frozenset[str]:
        """The selection rules that are used only if they are named."""
        return frozenset(spec.name for spec in self.rules.specs if spec.on_request)

    @property
    def controls(self) -> frozenset[str]:
        """The names of control methods, which are shown but not ranked."""
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

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """The implementations of a hook, in the order in which plugins were loaded."""
        order = {id(plugin.module): i for i, plugin in enumerate(self.plugins)}
        found = getattr(self.manager.hook, hook).get_hookimpls()
        return sorted(found, key=lambda impl: order.get(id(impl.plugin), len(order)))

    def _call(self, hook: str, what: str, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Call a hook of every plugin, and yield the plugin's name and answer; an error is logged and skipped."""
        for impl in self.implementations(hook):
            name = printable(impl.plugin_name)
            try:
                yield name, impl.function(*(arguments[argument] for argument in impl.argnames))
            except Exception as error:
                _log_failure(name, what, error)

    def cell_finished(self, cell: Cell, result: CellResult) -> None:
        """Tell every plugin that a cell has ended; a plugin's error is logged.

        A plugin that does not return in time is not notified of further cells.
        """
        arguments = {"cell": cell, "result": result}
        for impl in self.implementations("llpbench_cell_finished"):
            name = printable(impl.plugin_name)
            if name not in self._threads:
                self._threads[name] = HookThread(name)
            if (thread := self._threads[name]) is None:
                continue
            try:
                thread.call(impl.function, *(arguments[argument] for argument in impl.argnames))
            except HookTimeout as late:
                self._threads[name] = None
                log.warning("plugin %s is not notified of further cells: %s for a finished cell", name, late)
            except (Exception, SystemExit) as error:
                _log_failure(name, "on a finished cell", error)

    def run_finished(self, results: Results) -> list[str]:
        """Tell every plugin that a run has ended; returns the lines to show. A plugin's error is logged."""
        lines = self._call("llpbench_run_finished", "on a finished run", results=results)
        return [str(line) for _, line in lines if line]

    def references(self) -> list[Reference]:
        """Published numbers that plugins provide; a plugin's error is logged."""
        found: list[Reference] = []
        for name, given in self._call("llpbench_references", "to give its references"):
            try:
                found += _checked(list(given), Reference, "llpbench_references")
            except Exception as error:
                _log_failure(name, "to give its references", error)
        return found

    def table_kinds(self) -> dict[str, str]:
        """Kinds of tables that plugins provide, each as ``module:function``; a plugin's error is logged."""
        return {
            kind: path
            for _, given in self._call("llpbench_table_kinds", "to name tables")
            for kind, path in given.items()
        }

    def published_results(self, folder: Path | None) -> list[CellResult]:
        """Published results that plugins provide: those of ``folder``, or of the default leaderboard.

        An error that the user can act on (no such leaderboard, say) is raised; any other is logged.
        """
        found: list[CellResult] = []
        for impl in self.implementations("llpbench_published_results"):
            try:
                given: Any = impl.function(*([folder] if impl.argnames else []))
                found += given
            except LLPBenchError:
                raise
            except Exception as error:
                _log_failure(printable(impl.plugin_name), "to give published results", error)
        return found

    def add_commands(self, group: click.Group) -> None:
        """Let plugins add their commands; a plugin's error is logged."""
        for _ in self._call("llpbench_commands", "to add its commands", group=group):
            pass


def _log_failure(plugin: str, what: str, error: BaseException) -> None:
    log.warning("plugin %s failed %s: %s", plugin, what, describe(error))


def load_registry(files: Iterable[Path] = (), override: Iterable[str] = ()) -> Registry:
    """Load all plugins and collect what they register.

    Args:
        files: single-file plugins (``--plugin``).
        override: names for which the plugin loaded last wins instead of a conflict.

    Raises:
        UsageError: a given file cannot be used.
        PluginError: an entry point is broken and ``LLPBENCH_STRICT`` is set.
    """
    registry = Registry(*load_plugins(files))
    names = set(override)
    for shelf, (hook, kind) in _SHELVES.items():
        _collect(registry, hook, kind, getattr(registry, shelf), names)
    check_strict(registry.broken)
    registry.methods.broken = registry.datasets.broken = registry.broken
    return registry


_METHODS_OF_FILES: dict[str, MethodSpec] = {}
"""The methods of single-file plugins that this process has loaded."""


@lru_cache(maxsize=4)
def shared_registry(plugins: tuple[str, ...], override: tuple[str, ...]) -> Registry:
    """The registry with these single-file plugins, loaded once per process; the fork server does so for its children.

    Not for a process in which code is edited meanwhile, as that of a notebook.
    """
    return load_registry(map(Path, plugins), override)


def method_spec(name: str) -> MethodSpec:
    """The spec of an installed method, or of a single-file plugin of this process, for a method that runs another one.

    Such a method declares the parameter that holds the name with ``names_method=True``.

    Raises:
        UnknownNameError: no method has that name.
    """
    installed = shared_registry((), ()).methods
    return installed[name] if name in installed.entries or name not in _METHODS_OF_FILES else _METHODS_OF_FILES[name]


def _collect(registry: Registry, hook: str, kind: type[S], catalog: Catalog[S], override: set[str]) -> None:
    plugins = {id(plugin.module): plugin for plugin in registry.plugins}
    for impl in registry.implementations(hook):
        plugin = plugins[id(impl.plugin)]
        try:
            specs = _checked(list(impl.function()), kind, hook)  # type: ignore[call-overload]
        except Exception as error:
            if plugin.from_file:
                raise UsageError(f"--plugin {plugin.distribution}: {describe(error)}") from error
            registry.broken.append(BrokenPlugin(plugin.name, plugin.origin, describe(error)))
            continue
        for spec in specs:
            catalog.add(Entry(spec, plugin), spec.name in override)
            if plugin.from_file and isinstance(spec, MethodSpec):
                _METHODS_OF_FILES[spec.name] = spec


T = TypeVar("T")


def _checked(given: list[T], kind: type[T], hook: str) -> list[T]:
    for one in given:
        if not isinstance(one, kind):
            raise PluginError(f"{hook} must return {kind.__name__} objects, not {type(one).__name__}")
    return given


def missing_modules(spec: MethodSpec | DatasetSpec | ExecutorSpec, backend: str = "") -> list[str]:
    """Modules that ``spec`` needs and that are not installed (looked up, not imported)."""
    wanted = [*spec.requires, *([backend] if backend else [])]
    return [name for name in wanted if find_spec(name.partition(".")[0]) is None]


def unmet_needs(entry: Entry[MethodSpec] | Entry[DatasetSpec] | Entry[ExecutorSpec], backend: str = "") -> str:
    """What must be installed first, as a sentence with the pip command; empty if nothing is missing."""
    missing = missing_modules(entry.spec, backend)
    if not missing:
        return ""
    return f"{entry.spec.name} needs {', '.join(missing)}: {install_hint(entry.plugin, missing, entry.spec.name)}"


def file_that_registers(name: str) -> str:
    """A Python file of the working directory that mentions the hooks of llpbench and the name; empty if none does."""
    for path in itertools.islice(sorted(Path().glob("*.py")), _MOST_FILES):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8")
            if "hookimpl" in text and (f'"{name}"' in text or f"'{name}'" in text):
                return str(path)
    return ""


def install_hint(plugin: Plugin, modules: Iterable[str], name: str = "") -> str:
    """The pip command that installs missing modules: an extra called ``name`` or like the module, if there is one."""
    try:
        extras = set(metadata(plugin.distribution).get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        extras = set()
    if name in extras:
        return f'pip install "{plugin.distribution}[{name}]"'
    words = [f'"{plugin.distribution}[{m}]"' if m in extras else m for m in modules]
    return f"pip install {' '.join(words)}"
