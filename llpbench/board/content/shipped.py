"""Which leaderboard a command reads: the one that is named, the folder here, else the one that came with llpbench."""

from __future__ import annotations

from pathlib import Path

from llpbench.contracts.errors import StoreError

FOLDER = "leaderboards"


def find_board(named: Path | None = None) -> Path:
    """The leaderboard to read: the named one, ``leaderboards`` in the current folder, or the shipped one.

    Naming ``leaderboards`` is the same as naming none. The shipped one has the published cells, what is known of
    methods and machines, and marks of verification. It has no replicates of test rows, so intervals made from it rest
    on seeds alone.
    """
    here = Path(FOLDER)
    if named is not None and named != here:
        _expect_board(named)
        return named
    if here.is_dir():
        return here
    shipped = shipped_board()
    if shipped is None:
        raise StoreError(f"there is no folder {FOLDER} here, and none came with this llpbench: name one with --board.")
    return shipped


def _expect_board(folder: Path) -> None:
    """An error for a folder that holds no leaderboard."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a leaderboards folder: it does not exist. Name one with --board.")
    if not ((folder / "facts.json").is_file() or (folder / "cells").is_dir()):
        raise StoreError(f"{folder} is not a leaderboards folder: neither facts.json nor cells/ are in it.")


def shipped_instead_of(read: Path) -> Path | None:
    """The board that came with llpbench, where it is another than the one that was read; None where there is none."""
    shipped = shipped_board()
    return None if shipped is None or shipped.resolve() == read.resolve() else shipped


def shipped_board() -> Path | None:
    """The board that came with llpbench: inside the installed package, or in the repository it is installed from."""
    room = Path(__file__).parents[1]
    for folder in (room / "published", room.parents[1] / FOLDER):
        if (folder / "facts.json").is_file():
            return folder
    return None
