"""Select the checks of a plugin by its name, and run them."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from llpbench.contracts.errors import Skip, UnknownNameError, UsageError, describe, where_it_failed
from llpbench.contracts.specs import DatasetSpec, MethodSpec
from llpbench.plugins.options import expand, parse_options
from llpbench.plugins.registry import Entry, Registry, load_registry, unmet_needs

S = TypeVar("S", MethodSpec, DatasetSpec)


@dataclass(frozen=True)
class Check:
    """One check of one plugin; calling it raises ``AssertionError`` if the plugin fails it."""

    plugin: str
    name: str
    summary: str
    function: Callable[[], None]
    exempt: str = ""
    needs: str = ""
    """The check of the same plugin that must not have failed."""

    def __call__(self) -> None:
        """Run the check. A declared exemption turns a failure into a skip with its reason."""
        try:
            self.function()
        except Skip:
            raise
        except Exception:
            if self.exempt:
                raise Skip(f"exempt: {self.exempt}") from None
            raise
        if self.exempt:
            raise AssertionError(
                f"{self.plugin} declares an exemption from {self.name!r} ({self.exempt}) but passes it"
            )

    def __str__(self) -> str:
        return f"{self.plugin}:{self.name}"


@dataclass(frozen=True)
class CheckResult:
    """How a check ended, and why."""

    check: Check
    outcome: Literal["passed", "failed", "skipped", "exempt"]
    reason: str = ""
    failed_at: str = ""
    traceback: str = ""


def checks_for(name: str, registry: Registry | None = None, *, backend: str = "jax") -> list[Check]:
    """All checks for the method or dataset of that name.

    Args:
        name: a registered method or dataset; options in brackets replace the defaults (``adult[encoding=ordinal]``).
        registry: where to look it up; the installed plugins by default.
        backend: backend of the networks.
    """
    registry = registry or load_registry()
    name, options = parse_options(name)
    checks: list[Check] = []
    if name in registry.methods.entries:
        from llpbench.kit import methods

        checks += _bind(_with(registry.methods.entry(name), options), methods.CHECKS, methods.BASIC, backend)
    if name in registry.datasets.entries:
        from llpbench.kit import datasets

        checks += _bind(_with(registry.datasets.entry(name), options), datasets.CHECKS, datasets.BASIC, backend)
    if not checks:
        raise UnknownNameError("method or dataset", name, [*registry.methods.entries, *registry.datasets.entries])
    return checks


def checks_of(
    names: Iterable[str],
    *,
    backend: str = "jax",
    plugins: Iterable[Path] = (),
    override: Iterable[str] = (),
) -> list[Check]:
    """All checks for several methods, datasets and single-file plugins (names that end with ``.py``)."""
    names = list(names)
    files = [Path(name) for name in names if name.endswith(".py")]
    registry = load_registry((*plugins, *files), tuple(override))
    checks: list[Check] = []
    for name in names:
        found = names_in(registry, Path(name)) if name.endswith(".py") else [name]
        if not found:
            raise UsageError(f"{name} registers neither a method nor a dataset.")
        checks += [check for each in found for check in checks_for(each, registry, backend=backend)]
    return checks


def _with(entry: Entry[S], options: Mapping[str, list[str]]) -> Entry[S]:
    """The entry with options as its defaults."""
    given = expand(entry.spec, options)
    if len(given) > 1:
        raise UsageError(f"{entry.spec.name}: give one value for each option.")
    params = tuple(replace(p, default=given[0].get(p.name, p.default)) for p in entry.spec.params)
    return Entry(replace(entry.spec, params=params), entry.plugin)


Function = Callable[[Entry[Any]], None]


def _bind(entry: Entry[Any], functions: Sequence[Function], basic: Function, backend: str) -> list[Check]:
    spec: MethodSpec | DatasetSpec = entry.spec
    exempt = dict(spec.exempt)
    names = [function.__name__ for function in functions]
    for name in exempt:
        if name not in names:
            raise UnknownNameError(f"check in the exemptions of {spec.name}:", name, names)

    def bound(function: Function) -> Callable[[], None]:
        def run() -> None:
            used = backend if isinstance(spec, MethodSpec) and spec.backends else ""
            needs = unmet_needs(entry, used)
            if needs:
                raise Skip(needs)
            function(entry)

        return run

    dependent = functions[functions.index(basic) + 1 :]
    return [
        Check(
            plugin=spec.name,
            name=f.__name__,
            summary=(f.__doc__ or "").strip().splitlines()[0],
            function=bound(f),
            exempt=exempt.get(f.__name__, ""),
            needs=basic.__name__ if f in dependent else "",
        )
        for f in functions
    ]


def run_checks(
    checks: Iterable[Check],
    on_result: Callable[[CheckResult], None] | None = None,
    *,
    on_start: Callable[[Check], None] | None = None,
    timeout: float = 0.0,
    exitfirst: bool = False,
) -> list[CheckResult]:
    """Run checks; a check is skipped if the one that it needs has failed.

    Args:
        checks: the checks.
        on_result: called with each result.
        on_start: called with each check before it runs.
        timeout: seconds after which a check fails; 0 for no limit.
        exitfirst: whether to stop at the first failure.
    """
    results: list[CheckResult] = []
    failed: set[str] = set()
    for check in checks:
        if on_start is not None:
            on_start(check)
        try:
            if f"{check.plugin}:{check.needs}" in failed:
                raise Skip(f"{check.needs} failed")
            with time_limit(timeout):
                check()
        except Skip as skip:
            reason = str(skip)
            exempt = reason.startswith("exempt: ")
            result = CheckResult(check, "exempt" if exempt else "skipped", reason.removeprefix("exempt: "))
        except Exception as error:
            result = CheckResult(check, "failed", describe(error), where_it_failed(error), traceback.format_exc())
            failed.add(str(check))
        else:
            result = CheckResult(check, "passed")
        results.append(result)
        if on_result is not None:
            on_result(result)
        if exitfirst and failed:
            break
    return results


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in the main thread after some seconds; without SIGALRM, or for 0, there is no limit.

    Compiled code is interrupted when it returns to Python. If it has not after another minute, the process prints where
    it is and exits.
    """
    if not seconds or not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: object) -> None:
        del signum, frame
        raise TimeoutError(f"not finished after {seconds:g} s (--timeout)")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again each second, for code that catches the error
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(seconds + 60.0, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def names_in(registry: Registry, file: Path) -> list[str]:
    """Names of the methods and datasets that a single-file plugin registers."""
    shelves: list[Any] = [registry.methods, registry.datasets]
    return [e.spec.name for shelf in shelves for e in shelf if e.plugin.distribution == str(file)]
