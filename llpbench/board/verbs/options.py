"""The option ``--board``, which is the same in every verb."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from llpbench.board.content.shipped import FOLDER as DEFAULT

FOLDER = click.Path(path_type=Path, file_okay=False)
OR_SHIPPED = f"{DEFAULT}, else the one that came with llpbench"


def board_to_read(named: Path | None) -> Path:
    """Return the leaderboard to read; print a note to standard error if it is the one that came with llpbench."""
    from llpbench import __version__
    from llpbench.board.content.shipped import find_board

    folder = find_board(named)
    if folder != (named or Path(DEFAULT)):
        click.echo(f"the leaderboard that came with llpbench {__version__}: {folder}", err=True)
    return folder


def board_to_change(named: Path | None) -> Path:
    """Return the leaderboard to build or check: the named one, or ``leaderboards`` in the current folder."""
    from llpbench.contracts.errors import StoreError

    if named is None and not Path(DEFAULT).is_dir():
        raise StoreError(f"there is no folder {DEFAULT} here. Name a leaderboard with --board.")
    return named or Path(DEFAULT)


def shipped_has(what: str, shipped: Path) -> str:
    """Return a hint that the leaderboard that came with llpbench has something, and how to read it."""
    from llpbench import __version__

    return f"the leaderboard that came with llpbench {__version__} has {what}: --board {shlex.quote(str(shipped))}"


def board_option(*older: str, default: str = DEFAULT) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--board DIR``, passed as ``board`` (None if not given); ``older`` names are hidden aliases."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(*given: Any, older_board: Path | None = None, **options: Any) -> Any:
            from llpbench.contracts.errors import UsageError

            if older_board is not None and options["board"] is not None:
                raise UsageError(f"give --board once; {older[0]} is its older spelling.")
            options["board"] = options["board"] or older_board
            return command(*given, **options)

        named = click.option("--board", type=FOLDER, help=f"Folder of the leaderboard.  [default: {default}]")(run)
        return click.option(*older, "older_board", type=FOLDER, hidden=True)(named) if older else named

    return decorate
