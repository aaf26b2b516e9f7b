"""What every verb that runs cells sets up: limits, context and executor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llpbench.contracts.executor import Executor, ExecutorSettings
from llpbench.execution.jobs import Context, Limits
from llpbench.execution.settings import HowToRun
from llpbench.plugins.registry import Registry
from llpbench.system.machine import total_memory_mb


def limits_of(how: HowToRun) -> Limits:
    """What each cell is given."""
    return Limits(how.threads, how.timeout, how.memory or default_memory_mb())


def context_of(
    data: str | None, offline: bool, plugins: Iterable[Path], override: tuple[str, ...], *, predictions: bool
) -> Context:
    """Where cells find data and plugins."""
    return Context(
        data=str(Path(data).resolve()) if data else "",
        offline=offline,
        plugins=tuple(str(p.resolve()) for p in plugins),
        override=override,
        predictions=predictions,
    )


def make_executor(how: HowToRun, registry: Registry) -> Executor:
    """The executor that was asked for."""
    return registry.executor(how.executor, ExecutorSettings(how.jobs, how.threads, how.start))


def default_memory_mb() -> float:
    """8 GiB for each cell, or four fifths of a smaller machine; never what happens to be free."""
    return min(8192.0, 0.8 * total_memory_mb())
