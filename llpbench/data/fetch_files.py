"""Fetching the files of a dataset, with progress bars on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.contracts.errors import printable
from llpbench.data import store

if TYPE_CHECKING:
    from rich.progress import TaskID

    from llpbench.contracts.specs import DatasetSpec
    from llpbench.data.sources import Progress


def fetch_files(spec: DatasetSpec, data_dir: Path | None, *, offline: bool, quiet: bool = False) -> list[Path]:
    """Fetch the files of a dataset, with a progress bar on a terminal."""
    if quiet or not sys.stderr.isatty() or all(item.state == "ok" for item in store.locate(spec, data_dir)):
        return store.fetch(spec, data_dir, offline=offline)
    with _transfer_bars() as show:
        return store.fetch(spec, data_dir, offline=offline, progress=show)


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
