"""Publishing predictions that were handed in, and holding what is published to them later."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PREDICTIONS_ONLY, PROTOCOL, CellResult
from llpbench.execution.jobs import Context
from llpbench.leaderboard.audit import protocol_of
from llpbench.leaderboard.facts import MethodFacts
from llpbench.leaderboard.folder import Content
from llpbench.leaderboard.lines import check_result, compact
from llpbench.leaderboard.predictions import Scored, score_submission
from llpbench.leaderboard.publish import Accepted, Added, Desk, refresh_facts, take
from llpbench.leaderboard.submission import Submission, alike, read_submission
from llpbench.leaderboard.validate import Unsound, short_line
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
    """Score what was handed in and put it into ``content``, marked. What is refused is left out, the rest goes in."""
    submission = checked_submission(folder, registry)
    about = submission.method
    _check_name(content, submission, replace)
    protocol = protocol_of(content) or PROTOCOL
    if protocol != PROTOCOL:
        raise StoreError(
            f"this leaderboard is of protocol {protocol}; predictions are scored under protocol {PROTOCOL}."
        )
    report, desk = Added(), Desk(folder, content, registry)
    for told, scored in score_submission(folder, submission, registry, context):
        cell_id = told.cell(about).id
        try:
            if isinstance(scored, Unsound):
                raise scored
            check_result(scored.result)
            if content.machines.get(scored.result.machine, scored.machine) != scored.machine:
                raise Unsound(f"machine {scored.result.machine} is published with another description")
            desk.splits.check(scored.result, scored.replicates)
        except Unsound as problem:
            report.refused.append((cell_id, short_line(str(problem))))
            continue
        accepted = Accepted(scored.result, scored.source, scored.machine, scored.replicates, None)
        if take(content, report, accepted, replace=replace):
            desk.splits.add(scored.result, scored.replicates)
    if any(line.result.cell.method == about.name for line in content.lines.values()):
        content.submissions[about.name] = about
        content.facts.methods[about.name] = MethodFacts(summary=about.title)
    refresh_facts(content, registry)
    return report


def _check_name(content: Content, submission: Submission, replace: bool) -> None:
    name = submission.method.name
    known = content.submissions.get(name)
    others = set(content.facts.methods) - ({name} if known is not None else set())
    taken = alike(name, sorted(others))
    if taken is not None:
        raise StoreError(f"{name}: {taken} is a method of this leaderboard; predictions need a name of their own.")
    if known is not None and known != submission.method:
        if not replace:
            raise StoreError(
                f"{name} is published as {PREDICTIONS_ONLY}, with another description. "
                "If it is the same method and yours, --replace takes the new one with all its cells."
            )
        for cell_id in [i for i, line in content.lines.items() if line.result.cell.method == name]:
            del content.lines[cell_id]
            content.replicates.pop(cell_id, None)


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
