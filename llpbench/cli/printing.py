"""Printing for a terminal: what plugins and files say is stripped of control characters."""

from __future__ import annotations

from typing import Any

import click

from llpbench.contracts.errors import printable


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text of one or more lines, whoever wrote it; ``style`` as for ``click.secho``."""
    click.secho(printable(text, lines=True), err=err, nl=nl, **style)
