"""Querying a Dask cluster without blocking, and noticing schedulers and workers that stop responding."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

SCHEDULER = "scheduler"
"""Name of the scheduler in ``SilenceMonitor``; workers are named by their addresses."""
SILENT = 60.0
"""Seconds without a heartbeat before the user is warned."""


class ClusterQuery:
    """A query for the workers of a cluster, in a thread: a stopped or unreachable scheduler never answers."""

    def __init__(self, client: Any) -> None:
        self.began = time.monotonic()
        self._answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._ask, args=(client,), name="llpbench-dask-query", daemon=True).start()

    def _ask(self, client: Any) -> None:
        try:
            self._answer.put(client.scheduler_info(n_workers=-1)["workers"])
        except Exception as error:
            self._answer.put(error)

    def workers(self, seconds: float) -> dict[str, Any] | None:
        """The workers and their descriptions; None if there is no answer within ``seconds``."""
        try:
            found = self._answer.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return dict(found)


class SilenceMonitor:
    """Schedulers and workers that stopped responding. Each is reported once, and again if it responded in between."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[Any, float]] = {}
        self._reported: set[str] = set()

    def heartbeat(self, name: str, beat: Any) -> None:
        """Record a heartbeat; an unchanged value does not count."""
        if name not in self._heard or self._heard[name][0] != beat:
            self._heard[name] = (beat, time.monotonic())
            self._reported.discard(name)

    def reset_workers(self) -> None:
        """Restart the clocks of all workers: while the scheduler is silent, no worker can be heard."""
        now = time.monotonic()
        self._heard = {name: (beat, at if name == SCHEDULER else now) for name, (beat, at) in self._heard.items()}

    def keep_only(self, names: set[str]) -> None:
        """Forget all but ``names``."""
        self._heard = {name: heard for name, heard in self._heard.items() if name in names}

    def newly_silent(self) -> list[tuple[str, float]]:
        """Names that became silent since the last call, with the seconds of silence."""
        now = time.monotonic()
        late = [(name, now - at) for name, (_, at) in self._heard.items() if now - at >= SILENT]
        found = [(name, seconds) for name, seconds in late if name not in self._reported]
        self._reported.update(name for name, _ in found)
        return found
