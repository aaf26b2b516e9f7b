"""What a submission changes of a leaderboard that is for reviewers to change.

A submission adds cells. Everything else that is published stays as it is, or is what the installed packages say: nobody
may redraw the field by describing others' methods, numbers of publications or metrics anew.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from llpbench.board.accept.publish import refresh_facts, refresh_suites
from llpbench.board.checks.local_files import check_no_own_files
from llpbench.board.checks.trace import check_named, check_traced, name_today
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import Line
from llpbench.board.content.verified import new_marks
from llpbench.board.validate import Unsound
from llpbench.contracts.cell import Cell
from llpbench.contracts.result import CellResult
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import canonical

_DAY = 86_400  # clocks differ, but not by more


def brought(content: Content, before: Content, registry: Registry) -> list[str]:
    """What a submission changes that is for reviewers to change.

    Marks of verification and scores of predictions are made by reviewers, and what is published already stays as it is
    until they replace it (``leaderboard add --replace``). What ``leaderboard add`` does by itself is no change: a cell
    without a number gets one (but no other reason for having none), a cell is shown under the name that today's
    defaults give it. New cells are held to what is installed, whatever version they state. Failures of a method that is
    published come with numbers of it in the same setting, or not at all.

    Args:
        content: the leaderboard with the submission.
        before: the leaderboard before it.
        registry: what is installed.
    """
    return [
        *new_marks(content.marks, before.marks),
        *_cells(content, before, registry),
        *_taken_away(content, before),
        *_facts(content, before, registry),
    ]


def _cells(content: Content, before: Content, registry: Registry) -> Iterator[str]:
    news = [line.result for cell_id, line in content.lines.items() if cell_id not in before.lines]
    published = {line.result.cell.method for line in before.lines.values()}
    numbered = {_without_seed(result.cell) for result in news if result.status == "ok"}
    tomorrow = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _DAY))
    for cell_id, line in sorted(content.lines.items()):
        known = before.lines.get(cell_id)
        if known == line:
            continue
        if line.result.predictions_only:
            yield f"cell {cell_id}: it is not on the leaderboard before; reviewers score predictions"
        elif known is not None and not (_repaired(line, known) or only_renamed(line, known, registry)):
            yield _replaced("cell", cell_id, "another")
        elif known is None and _fails_alone(line.result, published, numbered):
            yield f"cell {cell_id}: a failure, and no number, of {line.result.cell.method}; reviewers add such"
        else:
            yield from _untraced(line.result, registry)
        if line.result.started > tomorrow:
            yield f"cell {cell_id}: it says that it was made at {line.result.started}, which is to come"
    yield from (_replaced("cell", cell_id, "gone") for cell_id in sorted(set(before.lines) - set(content.lines)))


def _fails_alone(result: CellResult, published: Collection[str], numbered: Collection[str]) -> bool:
    """Whether it is a failure of a method that is published, in a setting of which the submission has no number."""
    return result.status != "ok" and result.cell.method in published and _without_seed(result.cell) not in numbered


def _without_seed(cell: Cell) -> str:
    return msgspec.structs.replace(cell, seed=0).id


def _untraced(result: CellResult, registry: Registry) -> Iterator[str]:
    """Why a new cell is not what it says, where all that made it is installed.

    A version that a cell states may be false, so it excuses nothing here.
    """
    cell = result.cell
    here = cell.method in registry.methods.entries and cell.dataset in registry.datasets.entries
    if here and not result.predictions_only and all(rule in registry.rules.entries for rule in result.selected):
        try:
            check_no_own_files(cell, registry)
            check_traced(result, registry)
            check_named(result, registry)
        except Unsound as problem:
            yield f"cell {result.id}: {problem}"


def _repaired(line: Line, known: Line) -> bool:
    """Whether a cell without a number got one; another failure in its place is no repair."""
    return known.result.status != "ok" and line.result.status == "ok"


def only_renamed(line: Line, known: Line, registry: Registry) -> bool:
    """Whether a cell is what it was, under the name that its settings have today."""
    entry = registry.methods.entries.get(line.result.cell.method)
    today = None if entry is None else name_today(line.result.cell, entry.spec)
    as_before = msgspec.structs.replace(line.result, method_name=known.result.method_name)
    same = line.source == known.source and canonical(as_before) == canonical(known.result)
    return same and line.result.method_name == today


def _taken_away(content: Content, before: Content) -> Iterator[str]:
    """What the leaderboard before holds beside cells, and this one does not hold as it was."""
    then, now = ({line.result.machine for line in of.lines.values()} for of in (before, content))
    repaired = then - now - set(content.machines)  # machines of repaired cells alone go with them
    machines = {name: facts for name, facts in before.machines.items() if name not in repaired}
    kinds: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = [
        ("replicates of cell", before.replicates, content.replicates),
        ("search", before.searches, content.searches),
        ("machine", machines, content.machines),
        ("description of method", before.submissions, content.submissions),
    ]
    for kind, published, here in kinds:
        for name, value in sorted(published.items()):
            if here.get(name) != value:
                yield _replaced(kind, name, "another" if name in here else "gone")
    for cell_id in sorted(set(before.marks) - set(content.marks)):
        yield f"mark of cell {cell_id}: it is gone; marks are made and taken back by reviewers"


def _facts(content: Content, before: Content, registry: Registry) -> Iterator[str]:
    """What ``facts.json`` says otherwise than before and than the installed packages; what is new must have cells."""
    known = Content(lines=content.lines, facts=deepcopy(before.facts))
    refresh_facts(known, registry)
    refresh_suites(known, registry)
    used = _named_by_cells(content)
    for kind in ("methods", "datasets", "metrics", "rules", "suites"):
        then, today, now = (_table(of.facts, kind) for of in (before, known, content))
        for name in sorted(then.keys() | now.keys()):
            allowed = [table[name] for table in (then, today) if name in table]
            if name not in now:
                yield f"facts.json: {kind[:-1]} {name} is gone; what is published is replaced by reviewers"
            elif allowed and now[name] not in allowed:
                yield f"facts.json: {kind[:-1]} {name} is described otherwise than before and than what is installed"
            elif not allowed and name not in used[kind]:
                yield f"facts.json: {kind[:-1]} {name} is new, and no cell is of it"
    if content.facts.references not in (before.facts.references, known.facts.references):
        yield "facts.json: the numbers of publications are not those from before, nor those of what is installed"


def _named_by_cells(content: Content) -> dict[str, set[str]]:
    """What cells are of, by kind: only such a thing may be new in ``facts.json``."""
    results = [line.result for line in content.lines.values()]
    return {
        "methods": {result.cell.method for result in results},
        "datasets": {result.cell.dataset for result in results},
        "metrics": {name for result in results for chosen in result.selected.values() for name in chosen.metrics},
        "rules": {rule for result in results for rule in result.selected},
        "suites": set(),
    }


def _table(facts: Any, kind: str) -> dict[str, Any]:
    table = getattr(facts, kind)
    return table if isinstance(table, dict) else {}


def _replaced(kind: str, name: str, how: str) -> str:
    return f"{kind} {name}: it is {how}; what is published is replaced by reviewers"
