"""Looking at a Dask cluster without waiting for it, and noticing who fell silent."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

SCHEDULER = "scheduler"
"""What the scheduler is called among those that may fall silent; workers go by their addresses."""
SILENT = 60.0
"""Seconds without a sign of life before the user is told."""


class Look:
    """One look at the cluster, in a thread: a scheduler that is stopped, or behind a dead network, never answers."""

    def __init__(self, client: Any) -> None:
        self.began = time.monotonic()
        self._answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._ask, args=(client,), name="llpbench-dask-look", daemon=True).start()

    def _ask(self, client: Any) -> None:
        try:
            self._answer.put(client.scheduler_info(n_workers=-1)["workers"])
        except Exception as error:
            self._answer.put(error)

    def workers(self, seconds: float) -> dict[str, Any] | None:
        """The workers and what is known of each; None when there is no answer yet."""
        try:
            found = self._answer.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return dict(found)


class Silence:
    """Who has not been heard of for a while; each is told once, and again when it was heard of in between."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[Any, float]] = {}
        self._told: set[str] = set()

    def hear(self, name: str, sign: Any) -> None:
        """Note a sign of life; the same sign again is none."""
        if name not in self._heard or self._heard[name][0] != sign:
            self._heard[name] = (sign, time.monotonic())
            self._told.discard(name)

    def excuse_workers(self) -> None:
        """Count anew from now for all but the scheduler: while it is silent, nobody else can be heard."""
        now = time.monotonic()
        self._heard = {name: (sign, at if name == SCHEDULER else now) for name, (sign, at) in self._heard.items()}

    def forget_but(self, names: set[str]) -> None:
        """Drop whoever is not among ``names``."""
        self._heard = {name: heard for name, heard in self._heard.items() if name in names}

    def news(self) -> list[tuple[str, float]]:
        """Names that fell silent since the last call, and for how many seconds they are."""
        now = time.monotonic()
        late = [(name, now - at) for name, (_, at) in self._heard.items() if now - at >= SILENT]
        found = [(name, seconds) for name, seconds in late if name not in self._told]
        self._told.update(name for name, _ in found)
        return found
