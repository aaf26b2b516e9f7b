"""Load plugins from entry points and single files. A broken one is reported, not fatal.

pluggy's own entry-point loader lets a later plugin silently replace an earlier one of the same name and stops at the
first import error, so entry points are loaded one by one here.

Environment: ``LLPBENCH_PLUGINS=a,b`` loads only these entry points, ``LLPBENCH_BLOCK=c`` disables some,
``LLPBENCH_STRICT=1`` makes a broken plugin fatal.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import pluggy

from llpbench.contracts import hookspecs
from llpbench.contracts.errors import PluginError, UnknownNameError, UsageError, describe
from llpbench.system.environment import BLOCK, PLUGINS, STRICT, Variable

GROUP = "llpbench"


@dataclass(frozen=True)
class Plugin:
    """A loaded plugin and where it came from."""

    name: str
    distribution: str
    version: str
    module: ModuleType = field(repr=False, compare=False)
    from_file: bool = False

    @property
    def origin(self) -> str:
        """Distribution and version, or the file, for messages."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def builtin(self) -> bool:
        """Whether it is part of llpbench itself."""
        return self.distribution == "llpbench"


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that cannot be used, and the error."""

    name: str
    distribution: str
    error: str


def load_plugins(files: Iterable[Path] = ()) -> tuple[pluggy.PluginManager, list[Plugin], list[BrokenPlugin]]:
    """Load the built-in plugin, all entry points, then the given files.

    Raises:
        UsageError: a given file cannot be used.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    broken: list[BrokenPlugin] = []

    from llpbench import __version__
    from llpbench.plugins import builtin

    plugins = [Plugin("core", "llpbench", __version__, builtin)]
    _register(manager, plugins[0])
    for entry in _wanted_entry_points():
        distribution, version = _distribution(entry)
        try:
            plugin = Plugin(entry.name, distribution, version, _module(entry.load(), entry))
            _register(manager, plugin)
        except (Exception, SystemExit) as error:
            broken.append(BrokenPlugin(entry.name, f"{distribution} {version}".strip(), describe(error)))
        else:
            plugins.append(plugin)
    plugins.extend(_load_file(manager, Path(file)) for file in files)
    return manager, plugins, broken


def check_strict(broken: Iterable[BrokenPlugin]) -> None:
    """Raise an error for broken plugins if ``LLPBENCH_STRICT`` is set (for continuous integration)."""
    sentences = [f"plugin {b.name!r} of {b.distribution} is broken: {b.error}" for b in broken]
    if sentences and (STRICT.value or "") not in ("", "0"):
        raise PluginError("; ".join(sentences))


def _wanted_entry_points() -> list[EntryPoint]:
    only, block = _names(PLUGINS), _names(BLOCK)
    entries = sorted(entry_points(group=GROUP), key=lambda e: (_distribution(e)[0] != "llpbench", e.name))
    known = {e.name for e in entries}
    for name in sorted((only | block) - known):
        raise UnknownNameError(f"plugin (in {PLUGINS.name} or {BLOCK.name})", name, known)
    own = [e for e in entries if e.module.startswith("llpbench.")]  # parts of llpbench itself: always there
    return [e for e in entries if e in own or (e.name not in block and (not only or e.name in only))]


def _names(variable: Variable) -> set[str]:
    return {part.strip() for part in (variable.value or "").split(",") if part.strip()}


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist is not None else ("unknown", "")


def _module(loaded: object, entry: EntryPoint) -> ModuleType:
    if isinstance(loaded, ModuleType):
        return loaded
    raise PluginError(f"entry point {entry.name!r} must name a module, not {entry.value!r}")


def _register(manager: pluggy.PluginManager, plugin: Plugin) -> None:
    _check_hook_names(manager, plugin.module)
    try:
        manager.register(plugin.module, name=f"{plugin.distribution}:{plugin.name}")
    except pluggy.PluginValidationError:  # a hook with wrong arguments: pluggy 1.5 keeps those before it
        if manager.is_registered(plugin.module):
            manager.unregister(plugin.module)
        raise


def _check_hook_names(manager: pluggy.PluginManager, module: ModuleType) -> None:
    """Reject misspelled hooks, which would never be called, and hooks without their marker."""
    hooks = {name for name in vars(hookspecs) if name.startswith("llpbench_")}
    implemented = 0
    for name, value in vars(module).items():
        marked = callable(value) and manager.parse_hookimpl_opts(module, name) is not None
        implemented += marked
        if marked and name not in hooks:
            raise PluginError(str(UnknownNameError("hook", name, hooks)))
        if not marked and name in hooks and callable(value):
            raise PluginError(f"{name} lacks its marker: decorate it with @hookimpl (from llpbench import hookimpl)")
    if not implemented:
        raise PluginError(f"it implements no hook; expected one of {', '.join(sorted(hooks))}")


def _load_file(manager: pluggy.PluginManager, path: Path) -> Plugin:
    if not path.is_file():
        raise UsageError(f"--plugin {path}: no such file.")
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and Path(getattr(known, "__file__", None) or "") != path.resolve():
        raise UsageError(f"--plugin {path}: a module called {name!r} is already loaded; rename the file.")
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"--plugin {path}: not a Python file (the name must end in .py).")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that factory="<stem>:Class" can be imported
    try:
        spec.loader.exec_module(module)
        plugin = Plugin(name, str(path), "", module, from_file=True)
        _register(manager, plugin)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise UsageError(f"--plugin {path}: {describe(error)}") from error
    return plugin
