"""The page of a results folder, with the same tables and charts as the leaderboard.

Results need not meet the requirements for publishing. Intervals are computed from seeds alone. With a leaderboard, the
page also shows the published cells of other methods with the same dataset, bags, noise and seed.
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
from llpbench.board.schema import Board, Curve
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError, printable
from llpbench.contracts.result import CellResult
from llpbench.plugins.registry import Registry
from llpbench.results.mixed_code import mixed_rows
from llpbench.results.store import Store
from llpbench.results.table import data_key, setting_of
from llpbench.system.files import write_atomically

NAME = "report.html"
MOST_POINTS = 60
"""Reports of a learning curve on the page."""
YOURS, PUBLISHED = "yours", "published"


def write_page(store: Store, registry: Registry, to: Path | None = None, beside: Content | None = None) -> Path:
    """Write the page of a results folder and return its path.

    Args:
        store: the results folder.
        registry: what is installed.
        to: the file; by default ``report.html`` in the folder.
        beside: a leaderboard to compare with.

    Raises:
        StoreError: the folder has no results, the protocols differ, or the file cannot be written.
    """
    path = to or store.root / NAME
    page = own_page(store, registry, beside)
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}. Choose another file with --out.") from None
    return path


def own_page(store: Store, registry: Registry, beside: Content | None = None) -> str:
    """The page of the valid results in a folder."""
    results = store.results()
    if not results:
        raise StoreError(f"{store.root} has no results yet. See: llpbench status {store.root}")
    content = Content(lines={result.id: seal(compact(result), "") for result in results})
    for name in {result.machine for result in results}:
        with contextlib.suppress(OSError, Unsound):  # optional on the page
            content.machines[name] = read_machine(store.root / "machines" / f"{name}.json")
    if beside is not None:
        _put_beside(content, beside, results)
    refresh_facts(content, registry)
    board = make_board(content)
    board.curves = curves_of(results)
    title = f"llpbench: {store.root.resolve().name}"
    if rows := mixed_rows(store.manifest().planned.values(), results):
        title += f" (seeds of {len(rows)} rows computed by different code: llpbench status)"
    if beside is not None:
        title += " beside the leaderboard"
        _mark(board, {result.id for result in results})
    return render_page(msgspec.structs.replace(board, title=printable(title)))


def curves_of(results: Iterable[CellResult]) -> list[Curve]:
    """The learning curves of fits that reported more than once, with at most ``MOST_POINTS`` reports each."""
    curves = []
    for r in (r for r in results if len(r.history) > 1):
        chosen = {
            rule: selected.report for rule, selected in r.selected.items() if 0 <= selected.report < len(r.history)
        }
        step = -(-len(r.history) // MOST_POINTS)
        kept = sorted({*range(0, len(r.history), step), len(r.history) - 1, *chosen.values(), *r.stage_starts.values()})
        rules = dict.fromkeys(rule for rule in r.history[0] if rule in r.selected)
        curves.append(
            Curve(
                dataset=r.dataset_name,
                method=r.method_name,
                noise=setting_of(r).noise_name,
                bag=r.cell.bag_size,
                seed=r.cell.seed,
                reports=[number + 1 for number in kept],
                values={rule: [_rounded(r.history[number].get(rule)) for number in kept] for rule in rules},
                selected={rule: number + 1 for rule, number in chosen.items()},
                starts={stage: number + 1 for stage, number in r.stage_starts.items()},
            )
        )
    return curves


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def published_beside(published: Iterable[Line], results: Collection[CellResult]) -> dict[str, Line]:
    """The published cells of other methods in the settings and seeds of results, by cell id."""
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
    """Raise ``StoreError`` if protocols or versions of rules differ."""
    ours, theirs = _versions(results), _versions(published)
    for what in sorted(set(ours) & set(theirs)):
        if ours[what] != theirs[what]:
            mine, other = (" and ".join(map(str, sorted(versions))) for versions in (ours[what], theirs[what]))
            raise StoreError(
                f"cannot compare results of {what} {mine} with a leaderboard of {what} {other}. Run the cells again "
                "with this version, or name another leaderboard with --board."
            )


def _versions(results: Iterable[CellResult]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for result in results:
        found.setdefault("protocol", set()).add(result.protocol)
        for rule, version in result.rules.items():
            found.setdefault(f"rule {rule} version", set()).add(version)
    return found


def _put_beside(content: Content, beside: Content, results: Collection[CellResult]) -> None:
    """Add the comparable part of a leaderboard to the content of a folder."""
    check_same_protocol([line.result for line in beside.lines.values()], results)
    taken = published_beside(beside.lines.values(), results)
    content.lines = {**taken, **content.lines}
    content.replicates = {i: beside.replicates[i] for i in taken if i in beside.replicates}
    used = {line.result.machine for line in taken.values()}
    content.machines = {**{name: m for name, m in beside.machines.items() if name in used}, **content.machines}
    content.marks = {i: beside.marks[i] for i in taken if i in beside.marks}
    content.facts = msgspec.structs.replace(beside.facts, suites={})  # coverage of the whole leaderboard


def _mark(board: Board, own: Collection[str]) -> None:
    """Mark every row as own or published."""
    for row in (row for dataset in board.datasets for row in dataset.rows):
        row.whose = YOURS if any(i in own for found in row.aggregates for i in found.seed_ids) else PUBLISHED
