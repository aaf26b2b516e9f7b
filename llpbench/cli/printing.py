"""Printing for a terminal: what plugins and files say is stripped of control characters."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click

from llpbench.contracts.errors import printable

if TYPE_CHECKING:
    from llpbench.contracts.view import View
    from llpbench.results.metric_style import MetricStyle


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text of one or more lines, whoever wrote it; ``style`` as for ``click.secho``."""
    click.secho(printable(text, lines=True), err=err, nl=nl, **style)


def say_wrapped(head: str, text: str, **style: Any) -> None:
    """Print a text after a head; lines that are too long for the terminal continue below the start of the text.

    In a file or pipe, where ``COLUMNS`` is not set, each text is one line.
    """
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = min(120, shutil.get_terminal_size().columns) - len(head) if wide else 10**6
    lines = textwrap.wrap(text, max(width, 30), break_long_words=False, break_on_hyphens=False) or [""]
    say(head + f"\n{'':<{len(head)}}".join(lines), **style)


def print_json(content: Any) -> None:
    """Print a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())


def verbose_view(verbose: bool, metric: MetricStyle) -> View | None:
    """The view for ``--verbose``; None without it."""
    from llpbench.report.progress import LineView

    return LineView(metric, verbose=True) if verbose else None
