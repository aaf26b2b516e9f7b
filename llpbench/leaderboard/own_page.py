"""The leaderboard's page for a results folder of one's own: the same tables and charts, and nothing is published.

What a submission is held to (a release of the code, kept predictions, limits) is not asked for here: the page shows
what the folder holds, whoever's code made it. Intervals rest on the seeds alone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError, printable
from llpbench.leaderboard.board import make_board
from llpbench.leaderboard.folder import Content, read_machine
from llpbench.leaderboard.lines import compact, seal
from llpbench.leaderboard.page import render_page
from llpbench.leaderboard.publish import refresh_facts
from llpbench.leaderboard.validate import Unsound
from llpbench.plugins.registry import Registry
from llpbench.results.store import Store
from llpbench.system.files import write_atomically

NAME = "report.html"


def write_page(store: Store, registry: Registry, to: Path | None = None) -> Path:
    """Write the page of a results folder into it, or to another file; returns where.

    Raises:
        StoreError: the folder holds no result yet, or the file cannot be written.
    """
    path = to or store.root / NAME
    page = own_page(store, registry)
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}. Choose another file with --out.") from None
    return path


def own_page(store: Store, registry: Registry) -> str:
    """The page of what a results folder holds now; damaged results are left out."""
    results = store.results()
    if not results:
        raise StoreError(f"{store.root} holds no result yet. The command that fills it: llpbench status {store.root}")
    content = Content(lines={result.id: seal(compact(result), "") for result in results})
    for name in {result.machine for result in results}:
        with contextlib.suppress(OSError, Unsound):  # a page without the machine is a page
            content.machines[name] = read_machine(store.root / "machines" / f"{name}.json")
    refresh_facts(content, registry)
    board = make_board(content)
    return render_page(msgspec.structs.replace(board, title=printable(f"llpbench: {store.root.resolve().name}")))
