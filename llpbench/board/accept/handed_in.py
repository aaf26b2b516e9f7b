"""Publishing predictions that were handed in, and holding what is published to them later."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec

from llpbench.board.accept.predictions import Scored, score_submission
from llpbench.board.accept.publish import Accepted, Added, Desk, settle, take
from llpbench.board.checks.audit import protocol_of
from llpbench.board.content.facts import MethodFacts
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import check_result, compact
from llpbench.board.content.submission import Submission, alike, read_submission
from llpbench.board.validate import Unsound, short_line
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PREDICTIONS_ONLY, PROTOCOL, CellResult
from llpbench.execution.jobs import Context
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import canonical


def checked_submission(folder: Path, registry: Registry) -> Submission:
    """A submission whose method has a name of its own."""
    submission = read_submission(folder)
    name = submission.method.name
    taken = alike(name, registry.methods.entries)
    if taken is not None:
        raise StoreError(
            f"{name}: {taken} is a registered method: run it, and publish the results of the run. "
            "Predictions of another method need another name (method.name)."
        )
    return submission


def add_submission(
    folder: Path, content: Content, registry: Registry, context: Context, *, replace: bool = False
) -> Added:
    """Score what was handed in and put it into ``content``, marked. What is refused is left out, the rest goes in.

    A method with a new description takes the place of all its published cells, or none: where a cell is refused,
    ``content`` stays as it is.
    """
    submission = checked_submission(folder, registry)
    about = submission.method
    leaving = _leaving(content, submission, replace)
    draft = _without(content, leaving)
    protocol = protocol_of(draft) or PROTOCOL
    if protocol != PROTOCOL:
        raise StoreError(
            f"this leaderboard is of protocol {protocol}; predictions are scored under protocol {PROTOCOL}."
        )
    report, desk = Added(), Desk(folder, draft, registry)
    for told, scored in score_submission(folder, submission, registry, context):
        cell_id = told.cell(about).id
        try:
            if isinstance(scored, Unsound):
                raise scored
            check_result(scored.result)
            if draft.machines.get(scored.result.machine, scored.machine) != scored.machine:
                raise Unsound(f"machine {scored.result.machine} is published with another description")
            desk.splits.check(scored.result, scored.replicates)
        except Unsound as problem:
            report.refused.append((cell_id, short_line(str(problem))))
            continue
        accepted = Accepted(scored.result, scored.source, scored.machine, scored.replicates, None)
        if take(draft, report, accepted, replace=replace):
            desk.splits.add(scored.result, scored.replicates)
    if leaving and report.refused:
        number = f"{len(report.refused)} of {len(submission.cells)} cells are refused"
        reasons = "; ".join(dict.fromkeys(reason for _, reason in report.refused))
        raise StoreError(f"nothing was replaced: {number}: {short_line(reasons)}.")
    content.lines, content.replicates = draft.lines, draft.replicates
    content.machines, content.marks = draft.machines, draft.marks
    if any(line.result.cell.method == about.name for line in content.lines.values()):
        content.submissions[about.name] = about
        content.facts.methods[about.name] = MethodFacts(summary=about.title)
    settle(content, registry, desk.splits)
    return report


def _leaving(content: Content, submission: Submission, replace: bool) -> set[str]:
    """The published cells of a method that has a new description: they go. ``StoreError`` where its name is taken."""
    name = submission.method.name
    known = content.submissions.get(name)
    others = set(content.facts.methods) - ({name} if known is not None else set())
    taken = alike(name, sorted(others))
    if taken is not None:
        raise StoreError(f"{name}: {taken} is a method of this leaderboard; predictions need a name of their own.")
    if known is None or known == submission.method:
        return set()
    if not replace:
        raise StoreError(
            f"{name} is published as {PREDICTIONS_ONLY}, with another description. "
            "If it is the same method and yours, --replace takes the new one with all its cells."
        )
    return {cell_id for cell_id, line in content.lines.items() if line.result.cell.method == name}


def _without(content: Content, leaving: set[str]) -> Content:
    """A content without some cells, to which others can be added: ``content`` itself stays as it is."""
    return dataclasses.replace(
        content,
        lines={cell_id: line for cell_id, line in content.lines.items() if cell_id not in leaving},
        replicates={cell_id: kept for cell_id, kept in content.replicates.items() if cell_id not in leaving},
        marks={cell_id: mark for cell_id, mark in content.marks.items() if cell_id not in leaving},
        machines=dict(content.machines),
    )


def check_submission(
    content: Content, folder: Path, registry: Registry, context: Context
) -> tuple[list[str], set[str]]:
    """What of the published cells is not what the handed-in predictions give, and which cells were looked at."""
    submission = checked_submission(folder, registry)
    problems, seen = [], set()
    for told, scored in score_submission(folder, submission, registry, context):
        cell_id = told.cell(submission.method).id
        line = content.lines.get(cell_id)
        if line is None:
            continue
        seen.add(cell_id)
        if isinstance(scored, Unsound):
            problems.append(f"cell {cell_id}: its predictions in {folder} are not sound: {short_line(str(scored))}")
        elif scored.source != line.source:
            problems.append(f"cell {cell_id}: the predictions in {folder} are others than those that were published")
        elif _content(scored, line.result) != canonical(line.result):
            problems.append(f"cell {cell_id}: it is published otherwise than its predictions in {folder} give")
        elif scored.replicates != content.replicates.get(cell_id):
            problems.append(f"cell {cell_id}: its replicates are not those of its predictions in {folder}")
    return problems, seen


def _content(scored: Scored, published: CellResult) -> bytes:
    """A result scored now as it would be published, with when and where it was scored as it is published."""
    when = {name: getattr(published, name) for name in ("started", "machine", "versions", "code")}
    return canonical(msgspec.structs.replace(compact(scored.result), **when))
