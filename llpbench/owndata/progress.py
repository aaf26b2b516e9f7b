"""Lines about the progress of fits."""

from __future__ import annotations

import sys
from collections.abc import Callable

from llpbench.contracts.errors import printable

MANY_ROWS = 100_000
"""Number of rows above which ``fit`` reports its progress by default."""


def speaker(progress: bool | Callable[[str], None]) -> Callable[[str], None]:
    """What gets each line: standard error for True, nothing for False."""
    return progress if callable(progress) else say if progress else say_nothing


def say(line: str) -> None:
    """Print a line on standard error."""
    print(printable(line), file=sys.stderr, flush=True)


def say_nothing(line: str) -> None:
    """Print nothing."""
    del line
