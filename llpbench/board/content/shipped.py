"""Find the leaderboard that a command reads."""

from __future__ import annotations

from pathlib import Path

from llpbench.contracts.errors import StoreError

FOLDER = "leaderboards"


def find_board(named: Path | None = None) -> Path:
    """The leaderboard to read: the named one, ``leaderboards`` in the current folder, or the one shipped with llpbench.

    ``leaderboards`` is the default name, so giving it is the same as giving none. The shipped leaderboard has no
    bootstrap replicates, so its intervals are computed from seeds alone.
    """
    here = Path(FOLDER)
    if named is not None and named != here:
        _expect_board(named)
        return named
    if here.is_dir():
        return here
    shipped = shipped_board()
    if shipped is None:
        raise StoreError(f"{FOLDER} does not exist here, and none is installed with llpbench. Name one with --board.")
    return shipped


def _expect_board(folder: Path) -> None:
    """Raise ``StoreError`` if a folder has no leaderboard."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a leaderboards folder: it does not exist.")
    if not ((folder / "facts.json").is_file() or (folder / "cells").is_dir()):
        raise StoreError(f"{folder} is not a leaderboards folder: facts.json and cells/ are missing.")


def shipped_instead_of(read: Path) -> Path | None:
    """The shipped leaderboard if it is not the one that was read; else None."""
    shipped = shipped_board()
    return None if shipped is None or shipped.resolve() == read.resolve() else shipped


def shipped_board() -> Path | None:
    """The shipped leaderboard: in the installed package, or in the repository of an editable install."""
    room = Path(__file__).parents[1]
    for folder in (room / "published", room.parents[1] / FOLDER):
        if (folder / "facts.json").is_file():
            return folder
    return None
