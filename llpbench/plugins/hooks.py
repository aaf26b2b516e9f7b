"""Call a plugin's hook with a time limit, so that an unresponsive tracking server does not block a run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

HOOK_SECONDS = 30.0
"""Seconds that a plugin may take for one call."""


class HookTimeout(Exception):  # noqa: N818 - what happened, not a fault of the harness
    """The plugin did not return in time."""


class HookThread:
    """The daemon thread in which the hook of one plugin is called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._calls: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name=f"llpbench-hook-{name}", daemon=True).start()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call the hook and wait for it.

        Raises:
            HookTimeout: it takes too long; the thread is not usable after that.
        """
        self._calls.put((function, arguments))
        try:
            error = self._answers.get(timeout=HOOK_SECONDS)
        except queue.Empty:
            raise HookTimeout(f"no answer within {HOOK_SECONDS:g} seconds") from None
        if error is not None:
            raise error

    def _serve(self) -> None:
        while True:
            function, arguments = self._calls.get()
            try:
                function(*arguments)
            except BaseException as error:
                self._answers.put(error)
            else:
                self._answers.put(None)
