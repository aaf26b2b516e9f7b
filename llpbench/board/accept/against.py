"""Published cells against the results folders they came from: every number is recomputed from kept predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from llpbench.board.accept.brought import only_renamed
from llpbench.board.accept.handed_in import check_submission
from llpbench.board.accept.publish import Accepted, Desk, read_manifest
from llpbench.board.again.rerun import compare, type_of
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import Line, compact
from llpbench.board.content.submission import is_submission
from llpbench.board.validate import Unsound
from llpbench.execution.jobs import Context
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, canonical

SHOWN = 8
"""How many cells of a kind have a line each; of more than that the first are named."""


@dataclass
class Compared:
    """What came out when published cells were held against results.

    Attributes:
        problems: what of the leaderboard is not what its results give.
        cells: cells that were looked at.
        again: cells that were published from another run, and how the numbers of this one compare (``equal``,
            ``close``, ``not compared`` where the published one has none).
    """

    problems: list[str] = field(default_factory=list)
    cells: set[str] = field(default_factory=set)
    again: dict[str, str] = field(default_factory=dict)


def check_against(
    content: Content,
    runs: Iterable[Path],
    registry: Registry,
    tuned: Iterable[Path] = (),
    context: Context | None = None,
    before: Content | None = None,
) -> Compared:
    """Hold the cells of a leaderboard against results.

    A cell that was published from another run (somebody else's, and this one made it too) has other seconds and
    another date: of these the numbers are compared, as ``llpbench rerun`` does. Whose run it was is said by the cell
    alone; so where the leaderboard before is given, only cells that it holds may be of another run, and numbers that it
    does not hold must be in the results.

    Args:
        content: the leaderboard.
        runs: results folders of its cells, or folders of predictions; of cells they do not hold nothing is compared.
        registry: what is installed.
        tuned: folders of the searches that chose parameters.
        context: where predictions find the data that they are scored on.
        before: the leaderboard before a submission.
    """
    found = Compared()
    for run in runs:
        if is_submission(run):
            wrong, looked_at = check_submission(content, run, registry, context or Context())
            found.problems += wrong
            found.cells |= looked_at
            continue
        desk = Desk(run, content, registry, list(tuned))
        for cell_id, planned in read_manifest(run).planned.items():
            if cell_id not in content.lines or not (run / "cells" / f"{cell_id}.json").exists():
                continue
            found.cells.add(cell_id)
            try:
                submission = desk.read(cell_id, planned)
            except (Unsound, Damaged, RecursionError) as problem:
                found.problems.append(f"cell {cell_id}: its result in {run} is not sound: {problem}")
                continue
            line = content.lines[cell_id]
            if _is_new(line, before, registry) or line.source == submission.source:
                found.problems += _its_own(cell_id, submission, content, run)
            else:
                _made_again(cell_id, submission, content, run, found)
    found.problems += _nowhere(content, before, registry, found.cells)
    return found


def _is_new(line: Line, before: Content | None, registry: Registry) -> bool:
    """Whether the leaderboard before does not hold a cell as it is; another name alone is no change."""
    known = None if before is None else before.lines.get(line.result.id)
    return before is not None and (known is None or not (known == line or only_renamed(line, known, registry)))


def _nowhere(content: Content, before: Content | None, registry: Registry, there: set[str]) -> list[str]:
    """Cells with a number that the leaderboard before does not hold and no results folder holds either."""
    lacking = [
        cell_id
        for cell_id, line in sorted(content.lines.items())
        if line.result.status == "ok" and cell_id not in there and _is_new(line, before, registry)
    ]
    if len(lacking) > SHOWN:
        first = ", ".join(lacking[:SHOWN])
        return [f"{len(lacking)} cells are new, and in none of the results: {first} and {len(lacking) - SHOWN} more"]
    return [f"cell {cell_id}: new, and in none of the results" for cell_id in lacking]


def _its_own(cell_id: str, submission: Accepted, content: Content, run: Path) -> list[str]:
    """What of a cell is not what the result says that it was published from."""
    problems = []
    if canonical(compact(submission.result)) != canonical(content.lines[cell_id].result):
        problems.append(f"cell {cell_id}: it is published otherwise than its result in {run} says")
    if submission.replicates != content.replicates.get(cell_id):
        problems.append(f"cell {cell_id}: its replicates are not those of its predictions in {run}")
    return problems


def _made_again(cell_id: str, submission: Accepted, content: Content, run: Path, found: Compared) -> None:
    """Compare the numbers of a cell that was published from another run than this one."""
    published, result = content.lines[cell_id].result, submission.result
    if published.status != "ok":
        found.again[cell_id] = "not compared"
        return
    machine = content.machines.get(published.machine)
    made_on = type_of(machine) if machine is not None else ""
    verdict = compare(published, result, made_on=made_on, again_on=type_of(submission.machine))
    if verdict.reproduced:
        found.again[cell_id] = verdict.word
    else:
        found.problems.append(f"cell {cell_id}: published from another run than {run}, and {verdict.text}")
