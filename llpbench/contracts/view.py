"""Watching a run: one callback type, whose methods are all optional."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from llpbench.contracts.job import Job
    from llpbench.contracts.result import CellResult

Event = Literal["begin", "started", "finished", "warn", "note", "end"]


class View:
    """Is notified of what happens in a run; override what you want to hear of (``llpbench.run(progress=view)``)."""

    def begin(self, total: int, kept: int) -> None:
        """The run starts: ``total`` cells are wanted, ``kept`` of them have a result already."""

    def started(self, job: Job) -> None:
        """A cell was started."""

    def finished(self, result: CellResult) -> None:
        """A cell has a result."""

    def warn(self, message: str) -> None:
        """Something went wrong; the run continues."""

    def note(self, message: str) -> None:
        """Something the user should know."""

    def end(self) -> None:
        """The run is over, or was interrupted."""


def notify(views: Iterable[View], event: Event, *facts: object) -> None:
    """Call a method of every view that has it."""
    for view in views:
        method = getattr(view, event, None)
        if method is not None:
            method(*facts)
