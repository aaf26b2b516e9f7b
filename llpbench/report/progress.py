"""What one sees while a grid runs: a live view on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.contracts.cell import setting_name
from llpbench.contracts.errors import printable
from llpbench.contracts.job import Job
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import value_of

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable
    from rich.progress import TaskID
    from rich.text import Text

    from llpbench.contracts.specs import DatasetSpec
    from llpbench.data.sources import Progress
    from llpbench.execution.driver import View

_STYLE = {"ok": "green", "skipped": "yellow"}


def make_view(quiet: bool, metric: MetricStyle) -> View:
    """The view that suits where standard error goes; finished cells are shown with ``metric``."""
    if quiet:
        return QuietView()
    return LiveView(metric) if sys.stderr.isatty() else LineView(metric)


def describe_job(job: Job) -> str:
    """A running cell in one line."""
    where = setting_name(job.dataset_name, job.cell.bag_size, "  ")
    return printable(f"{where}  seed {job.cell.seed}  {job.method_name}")


def describe_result(result: CellResult, metric: MetricStyle) -> str:
    """A finished cell in one line: a metric of what the default rule chose, or why there is none."""
    cell = result.cell
    where = setting_name(result.dataset_name, cell.bag_size, "  ")
    head = f"{where}  seed {cell.seed}  {result.method_name}"
    noise = "" if cell.noise == "none" else f"  noise {cell.noise}"
    if result.status != "ok":
        where = f" (at {result.failed_at})" if result.failed_at else ""
        return printable(f"{head}{noise}  {result.status}: {result.reason}{where}")
    value = value_of(result, metric.name, DEFAULT_RULE)
    shown = "ok" if value is None else f"{metric.words} {metric.scale * value:.{metric.digits}f}"
    return printable(f"{head}{noise}  {shown}  {result.wall_seconds:.1f} s")


def duration(seconds: float) -> str:
    """``1h02m``, ``3m05s`` or ``12s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def stamp() -> str:
    """The time now in UTC, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())


def _line(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(f"  {text}", style=style, overflow="ellipsis", no_wrap=True)


class QuietView:
    """Shows warnings only."""

    shows_progress = False

    def begin(self, total: int, kept: int) -> None:
        """Show nothing."""

    def started(self, job: Job) -> None:
        """Show nothing."""

    def finished(self, result: CellResult) -> None:
        """Show nothing."""

    def warn(self, message: str) -> None:
        """Print a warning."""
        click.echo(f"warning: {printable(message, lines=True)}", err=True)

    def note(self, message: str) -> None:
        """Print a sentence."""
        click.echo(printable(message, lines=True), err=True)

    def end(self) -> None:
        """Show nothing."""


class LineView(QuietView):
    """A line for each finished cell: for logs and pipes."""

    shows_progress = True

    def __init__(self, metric: MetricStyle) -> None:
        self.metric = metric
        self.total = self.done = 0

    def begin(self, total: int, kept: int) -> None:
        """Say how much there is to do."""
        self.total, self.done = total, kept
        click.echo(f"{total} {'cell' if total == 1 else 'cells'}, {kept} already done", err=True)

    def finished(self, result: CellResult) -> None:
        """Print the cell."""
        self.done += 1
        click.echo(f"[{self.done}/{self.total}] {describe_result(result, self.metric)}", err=True)


class VerboseView(QuietView):
    """A line with the time for all that happens: cells as they start and as they end, notes and warnings."""

    shows_progress = True

    def __init__(self, metric: MetricStyle) -> None:
        self.metric = metric

    def begin(self, total: int, kept: int) -> None:
        """Say how much there is to do."""
        self._say(f"{total} cells, {kept} already done")

    def started(self, job: Job) -> None:
        """Print the cell and its id."""
        self._say(f"start  {job.cell.id}  {describe_job(job)}")

    def finished(self, result: CellResult) -> None:
        """Print the cell, its id and how it ended."""
        self._say(f"end    {result.id}  {describe_result(result, self.metric)}")

    def warn(self, message: str) -> None:
        """Print a warning."""
        self._say(f"warning: {message}")

    def note(self, message: str) -> None:
        """Print a sentence."""
        self._say(message)

    @staticmethod
    def _say(text: str) -> None:
        for line in printable(text, lines=True).strip().splitlines():
            click.echo(f"{stamp()}  {line}", err=True)


class LiveView(QuietView):
    """Cells done, running and failed, time left and the last results, redrawn in place."""

    shows_progress = True

    def __init__(self, metric: MetricStyle) -> None:
        self.metric = metric

    def begin(self, total: int, kept: int) -> None:
        """Start drawing."""
        from rich.console import Console
        from rich.live import Live

        self.total, self.kept, self.done, self.failed, self.skipped = total, kept, 0, 0, 0
        self.began = time.monotonic()
        self.running: dict[str, tuple[Job, float]] = {}
        self.last: deque[CellResult] = deque(maxlen=6)
        self.live: Live | None = Live(
            get_renderable=self._draw,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
            transient=True,
        )
        self.live.start()

    def started(self, job: Job) -> None:
        """Show the cell as running."""
        self.running[job.cell.id] = (job, time.monotonic())

    def finished(self, result: CellResult) -> None:
        """Move the cell to the last results."""
        self.running.pop(result.id, None)
        self.done += 1
        self.failed += result.status in FAILURES
        self.skipped += result.status == "skipped"
        self.last.append(result)

    def warn(self, message: str) -> None:
        """Print a warning above the view."""
        if getattr(self, "live", None) is not None:
            self.live.console.print(f"warning: {printable(message)}", markup=False)  # type: ignore[union-attr]
        else:
            super().warn(message)

    def end(self) -> None:
        """Stop drawing and leave one line."""
        if getattr(self, "live", None) is None:
            return
        assert self.live is not None
        self.live.stop()
        self.live = None
        spent = duration(time.monotonic() - self.began)
        parts = [f"{self.done} cells run in {spent}"]
        parts += [f"{self.kept} kept"] if self.kept else []
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        parts += [f"{self.failed} failed"] if self.failed else []
        click.echo(", ".join(parts), err=True)

    def _draw(self) -> ConsoleRenderable:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        finished = self.kept + self.done
        elapsed = time.monotonic() - self.began
        left = self.total - finished
        remaining = duration(elapsed / self.done * left) if self.done else "…"
        head = Table.grid(padding=(0, 1))
        failed = Text(f"{self.failed} failed", style="red" if self.failed else "dim")
        head.add_row(
            ProgressBar(total=max(self.total, 1), completed=finished, width=30),
            Text(f"{finished}/{self.total} cells"),
            Text(f"{len(self.running)} running", style="cyan"),
            failed,
            Text(f"{duration(elapsed)} spent, {remaining} left" if left else duration(elapsed), style="dim"),
        )
        lines: list[ConsoleRenderable] = [head]
        lines += [
            _line(f"▸ {describe_job(job)}  {duration(time.monotonic() - since)}", "cyan")
            for job, since in self.running.values()
        ]
        lines += [_line(describe_result(result, self.metric), _STYLE.get(result.status, "red")) for result in self.last]
        return Group(*lines)


def fetch_files(spec: DatasetSpec, data_dir: Path | None, *, offline: bool, quiet: bool = False) -> list[Path]:
    """Fetch the files of a dataset, with a progress bar on a terminal."""
    from llpbench.data import store

    if quiet or not sys.stderr.isatty() or all(item.state == "ok" for item in store.locate(spec, data_dir)):
        return store.fetch(spec, data_dir, offline=offline)
    with _transfer_bars() as show:
        return store.fetch(spec, data_dir, offline=offline, progress=show)


def fetch_data(
    planned: Iterable[Planned], executor: object, registry: Registry, data: str, *, offline: bool, quiet: bool
) -> None:
    """Fetch the files of datasets before their cells start; machines elsewhere fetch their own.

    Args:
        planned: the cells.
        executor: where they run.
        registry: what is registered.
        data: the folder with data files; empty for the usual one.
        offline: never ask the network.
        quiet: show no progress.
    """
    if getattr(executor, "remote", False):
        return
    for name in dict.fromkeys(plan.cell.dataset for plan in planned):
        fetch_files(registry.datasets[name], Path(data) if data else None, offline=offline, quiet=quiet)


def stopped(what: str, folder: Path, command: str) -> str:
    """What whoever interrupts is told: where finished work is, and how to go on."""
    return f"\nstopped. Finished {what} are in {folder}; the same command goes on:\n  {command}"


@contextmanager
def _transfer_bars() -> Iterator[Progress]:
    """One bar on the terminal for each transfer; gives the function that is told of transfers."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    title = TextColumn("{task.description}", markup=False)
    columns = (title, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(printable(what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield show
