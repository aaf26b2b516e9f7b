"""Progress of a run: a live view on a terminal, a widget in a notebook, plain lines elsewhere, warnings when quiet."""

from __future__ import annotations

import sys
import time
from collections import deque
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.contracts.cell import setting_name
from llpbench.contracts.errors import printable
from llpbench.contracts.job import Job
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.contracts.view import View
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import value_of

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable
    from rich.live import Live
    from rich.text import Text

    from llpbench.results.request import Request

_STYLE = {"ok": "green", "skipped": "yellow"}


def make_view(quiet: bool, metric: MetricStyle) -> QuietView:
    """The view that suits where standard error goes; finished cells are shown with ``metric``."""
    if quiet:
        return QuietView()
    if _has_widgets():
        return NotebookView(metric)
    return LiveView(metric) if sys.stderr.isatty() else LineView(metric)


def _has_widgets() -> bool:
    """Whether this is the kernel of a notebook that can show widgets."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel") and find_spec("ipywidgets") is not None


def stopped(what: str, folder: Path, request: Request) -> str:
    """The message after Ctrl-C: where finished work is, and how to continue."""
    return f"\nstopped. Finished {what} are in {folder}; the same command goes on:\n  {request}"


def describe_cell(of: Job | CellResult) -> str:
    """A cell in one line."""
    cell = of.cell
    noise = "" if cell.noise == "none" else f"  noise {cell.noise}"
    return printable(f"{setting_name(of.dataset_name, cell.bag_size, '  ')}  seed {cell.seed}  {of.method_name}{noise}")


def describe_result(result: CellResult, metric: MetricStyle | None) -> str:
    """A finished cell in one line: a metric of what the default rule chose, or why there is none."""
    head = describe_cell(result)
    if result.status != "ok":
        where = f" (at {result.failed_at})" if result.failed_at else ""
        return f"{head}  {result.status}: {printable(result.reason + where)}"
    value = None if metric is None else value_of(result, metric.name, DEFAULT_RULE)
    shown = "ok" if metric is None or value is None else f"{metric.words} {metric.scale * value:.{metric.digits}f}"
    return f"{head}  {shown}  {result.wall_seconds:.1f} s"


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


class QuietView(View):
    """Shows warnings and notes only."""

    def warn(self, message: str) -> None:
        """Print a warning."""
        self.note(f"warning: {message}")

    def note(self, message: str) -> None:
        """Print a sentence."""
        click.echo(printable(message, lines=True), err=True)


class LineView(QuietView):
    """A line for each finished cell; ``verbose``, with the time, also for each cell that starts."""

    def __init__(self, metric: MetricStyle, verbose: bool = False) -> None:
        self.metric, self.verbose = metric, verbose
        self.total = self.done = 0

    def begin(self, total: int, kept: int) -> None:
        """Say how much there is to do."""
        self.total, self.done = total, kept
        self.note(f"{total} {'cell' if total == 1 else 'cells'}, {kept} already done")

    def started(self, job: Job) -> None:
        """Print the cell and its id, if verbose."""
        if self.verbose:
            self.note(f"start  {job.cell.id}  {describe_cell(job)}")

    def finished(self, result: CellResult) -> None:
        """Print the cell and how it ended."""
        self.done += 1
        head = f"end    {result.id} " if self.verbose else f"[{self.done}/{self.total}]"
        self.note(f"{head} {describe_result(result, self.metric)}")

    def note(self, message: str) -> None:
        """Print a sentence, with the time if verbose."""
        if not self.verbose:
            super().note(message)
            return
        for line in message.strip().splitlines():
            super().note(f"{stamp()}  {line}")


class NotebookView(QuietView):
    """A progress bar and the last result, as a widget of a notebook."""

    def __init__(self, metric: MetricStyle) -> None:
        self.metric = metric
        self.failed = 0

    def begin(self, total: int, kept: int) -> None:
        """Show the bar."""
        widgets = import_module("ipywidgets")
        self.bar = widgets.IntProgress(value=kept, max=max(total, 1))
        self.text = widgets.Label(f"{kept}/{total} cells")
        import_module("IPython.display").display(widgets.HBox([self.bar, self.text]))

    def finished(self, result: CellResult) -> None:
        """Move the bar."""
        self.failed += result.status in FAILURES
        self.bar.value += 1
        failed = f", {self.failed} failed" if self.failed else ""
        self.text.value = f"{self.bar.value}/{self.bar.max} cells{failed} · {describe_result(result, self.metric)}"
        self.bar.bar_style = "danger" if self.failed else ""

    def end(self) -> None:
        """Say how it ended."""
        if self.bar.value == self.bar.max and not self.failed:
            self.bar.bar_style = "success"


class LiveView(QuietView):
    """Cells done, running and failed, time left and the last results, redrawn in place."""

    def __init__(self, metric: MetricStyle) -> None:
        self.metric = metric
        self.live: Live | None = None

    def begin(self, total: int, kept: int) -> None:
        """Start drawing."""
        from rich.console import Console
        from rich.live import Live

        self.total, self.kept, self.done, self.failed, self.skipped = total, kept, 0, 0, 0
        self.began = time.monotonic()
        self.running: dict[str, tuple[Job, float]] = {}
        self.last: deque[CellResult] = deque(maxlen=6)
        self.live = Live(
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

    def note(self, message: str) -> None:
        """Print a sentence, above the drawing where there is one."""
        if self.live is not None:
            self.live.console.print(printable(message, lines=True), markup=False)
        else:
            super().note(message)

    def end(self) -> None:
        """Stop drawing and leave one line."""
        if self.live is None:
            return
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
            _line(f"▸ {describe_cell(job)}  {duration(time.monotonic() - since)}", "cyan")
            for job, since in self.running.values()
        ]
        lines += [_line(describe_result(result, self.metric), _STYLE.get(result.status, "red")) for result in self.last]
        return Group(*lines)
