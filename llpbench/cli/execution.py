"""What every verb that runs cells sets up: limits, context, executor, data files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.contracts.executor import ExecutorSettings

if TYPE_CHECKING:
    from llpbench.cli.runfile import HowToRun
    from llpbench.contracts.executor import Executor
    from llpbench.execution.driver import Context, Limits
    from llpbench.plugins.registry import Registry


def typed_command() -> str:
    """The command line as it was typed."""
    return shlex.join(["llpbench", *sys.argv[1:]])


def limits_of(how: HowToRun) -> Limits:
    """What each cell is given."""
    from llpbench.execution.driver import Limits

    return Limits(how.threads, how.timeout, how.memory or default_memory_mb())


def context_of(
    data: str | None, offline: bool, plugins: Iterable[Path], override: tuple[str, ...], *, predictions: bool
) -> Context:
    """Where cells find data and plugins."""
    from llpbench.execution.driver import Context

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


def fetch_for(
    executor: Executor, datasets: Iterable[str], registry: Registry, context: Context, *, quiet: bool
) -> None:
    """Fetch the files of datasets before their cells start; machines elsewhere fetch their own."""
    from llpbench.cli.data import fetch_files

    if getattr(executor, "remote", False):
        return
    data = Path(context.data) if context.data else None
    for name in dict.fromkeys(datasets):
        fetch_files(registry.datasets[name], data, offline=context.offline, quiet=quiet)


def default_memory_mb() -> float:
    """8 GiB for each cell, or four fifths of a smaller machine; never what happens to be free."""
    from llpbench.system.machine import total_memory_mb

    return min(8192.0, 0.8 * total_memory_mb())


def interrupt(signum: int, frame: object) -> None:
    """Treat a signal to end like Ctrl-C."""
    del signum, frame
    raise KeyboardInterrupt
