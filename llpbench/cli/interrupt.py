"""How a verb that runs cells is interrupted, and the command that goes on with it."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator


def typed_command() -> str:
    """The command line as it was typed."""
    return shlex.join(["llpbench", *sys.argv[1:]])


@contextlib.contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End with exit code 130 on Ctrl-C, and treat SIGTERM like it; what is inside has said how to go on."""

    def interrupt(signum: int, frame: object) -> None:
        del signum, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGTERM, before)
