"""Published cells against the results folders they came from: every number is recomputed from kept predictions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llpbench.execution.jobs import Context
from llpbench.leaderboard.folder import Content
from llpbench.leaderboard.handed_in import check_submission
from llpbench.leaderboard.lines import compact
from llpbench.leaderboard.publish import Desk, read_manifest
from llpbench.leaderboard.submission import is_submission
from llpbench.leaderboard.validate import Unsound
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, canonical


def check_against(
    content: Content,
    runs: Iterable[Path],
    registry: Registry,
    tuned: Iterable[Path] = (),
    context: Context | None = None,
) -> tuple[list[str], int]:
    """What of a leaderboard is not what its results give, and how many cells were looked at.

    Args:
        content: the leaderboard.
        runs: results folders of its cells, or folders of predictions; cells they do not hold are not looked at.
        registry: what is installed.
        tuned: folders of the searches that chose parameters.
        context: where predictions find the data that they are scored on.
    """
    problems: list[str] = []
    seen: set[str] = set()
    for run in runs:
        if is_submission(run):
            wrong, looked_at = check_submission(content, run, registry, context or Context())
            problems += wrong
            seen |= looked_at
            continue
        desk = Desk(run, content, registry, list(tuned))
        for cell_id, planned in read_manifest(run).planned.items():
            if cell_id not in content.lines or not (run / "cells" / f"{cell_id}.json").exists():
                continue
            seen.add(cell_id)
            try:
                submission = desk.read(cell_id, planned)
            except (Unsound, Damaged, RecursionError) as problem:
                problems.append(f"cell {cell_id}: its result in {run} is not sound: {problem}")
                continue
            line = content.lines[cell_id]
            if canonical(compact(submission.result)) != canonical(line.result):
                problems.append(f"cell {cell_id}: it is published otherwise than its result in {run} says")
            if submission.replicates != content.replicates.get(cell_id):
                problems.append(f"cell {cell_id}: its replicates are not those of its predictions in {run}")
    return problems, len(seen)
