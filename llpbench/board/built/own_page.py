"""The leaderboard's page for a results folder of one's own: the same tables and charts, and nothing is published.

What a submission is held to (a release of the code, kept predictions, limits) is not asked for here: the page shows
what the folder holds, whoever's code made it. Intervals rest on the seeds alone.

With a leaderboard beside it the page also has the published rows of the same cells: the same dataset, bags, noise and
seed. A method that the folder holds is shown as the folder has it. Only these cells are taken, so that all methods
are compared on the seeds of the folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from llpbench.board.built.board import make_board
from llpbench.board.content.folder import Content, read_machine
from llpbench.board.content.lines import Line, compact, seal
from llpbench.board.page import render_page
from llpbench.board.publish import refresh_facts
from llpbench.board.schema.board import Board
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError, printable
from llpbench.contracts.result import CellResult
from llpbench.plugins.registry import Registry
from llpbench.results.store import Store
from llpbench.results.table import data_key, setting_of
from llpbench.system.files import write_atomically

NAME = "report.html"
YOURS, PUBLISHED = "yours", "published"


def write_page(store: Store, registry: Registry, to: Path | None = None, beside: Content | None = None) -> Path:
    """Write the page of a results folder into it, or to another file; returns where.

    Args:
        store: the results folder.
        registry: what is installed.
        to: the file; by default one in the folder.
        beside: a leaderboard whose rows are shown too.

    Raises:
        StoreError: the folder holds no result yet, the leaderboard is of another protocol, or the file cannot be
            written.
    """
    path = to or store.root / NAME
    page = own_page(store, registry, beside)
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}. Choose another file with --out.") from None
    return path


def own_page(store: Store, registry: Registry, beside: Content | None = None) -> str:
    """The page of what a results folder holds now; damaged results are left out."""
    results = store.results()
    if not results:
        raise StoreError(f"{store.root} holds no result yet. The command that fills it: llpbench status {store.root}")
    content = Content(lines={result.id: seal(compact(result), "") for result in results})
    for name in {result.machine for result in results}:
        with contextlib.suppress(OSError, Unsound):  # a page without the machine is a page
            content.machines[name] = read_machine(store.root / "machines" / f"{name}.json")
    if beside is not None:
        _put_beside(content, beside, results)
    refresh_facts(content, registry)
    board = make_board(content)
    title = f"llpbench: {store.root.resolve().name}"
    if beside is not None:
        title += " beside the leaderboard"
        _mark(board, {result.id for result in results})
    return render_page(msgspec.structs.replace(board, title=printable(title)))


def published_beside(published: Iterable[Line], results: Collection[CellResult]) -> dict[str, Line]:
    """The published lines that are comparable with results, by cell id (see the module)."""
    places = {(setting_of(r), r.cell.seed) for r in results if not r.oracle}
    rows = {(data_key(r.cell), r.cell.seed) for r in results if not r.oracle}
    own = {(r.dataset_name, r.method_name) for r in results}
    found = {}
    for line in published:
        r = line.result
        here = (data_key(r.cell), r.cell.seed) in rows if r.oracle else (setting_of(r), r.cell.seed) in places
        if here and (r.dataset_name, r.method_name) not in own:
            found[r.id] = line
    return found


def check_same_protocol(published: Collection[CellResult], results: Collection[CellResult]) -> None:
    """Refuse to show results beside published ones that were made under another protocol or version of a rule."""
    ours, theirs = _versions(results), _versions(published)
    for what in sorted(set(ours) & set(theirs)):
        if ours[what] != theirs[what]:
            mine, other = (" and ".join(map(str, sorted(versions))) for versions in (ours[what], theirs[what]))
            raise StoreError(
                f"these results were made under {what} {mine}, the leaderboard's under {what} {other}: their numbers "
                "cannot be compared. Run the cells again with this version, or name another leaderboard with --board."
            )


def _versions(results: Iterable[CellResult]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for result in results:
        found.setdefault("protocol", set()).add(result.protocol)
        for rule, version in result.rules.items():
            found.setdefault(f"rule {rule} version", set()).add(version)
    return found


def _put_beside(content: Content, beside: Content, results: Collection[CellResult]) -> None:
    """Add the comparable part of a leaderboard to what a folder holds."""
    check_same_protocol([line.result for line in beside.lines.values()], results)
    taken = published_beside(beside.lines.values(), results)
    content.lines = {**taken, **content.lines}
    content.replicates = {i: beside.replicates[i] for i in taken if i in beside.replicates}
    used = {line.result.machine for line in taken.values()}
    content.machines = {**{name: m for name, m in beside.machines.items() if name in used}, **content.machines}
    content.marks = {i: beside.marks[i] for i in taken if i in beside.marks}
    content.facts = msgspec.structs.replace(beside.facts, suites={})  # they speak of the whole leaderboard


def _mark(board: Board, own: Collection[str]) -> None:
    """Say of every row whose it is."""
    for row in (row for dataset in board.datasets for row in dataset.rows):
        ids = [i for cells in row.cells.values() for entry in cells.values() for i in entry.seed_ids]
        row.whose = YOURS if any(i in own for i in ids) else PUBLISHED
