"""Checking a published leaderboard: every cell by itself and against the others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from llpbench.board.checks import check_derived
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import is_unreleased
from llpbench.board.content.marks import check_marks
from llpbench.board.content.searches import find_search, is_tuned
from llpbench.board.content.splits import Splits
from llpbench.board.validate import Unsound
from llpbench.contracts.result import PROTOCOL, CellResult

_CLASSES = (2, 3)  # noise on counts is the same for three classes and more


@dataclass
class Audit:
    """The outcome of checking a leaderboard: ``problems`` make the check fail, ``notes`` do not."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def audit(content: Content) -> Audit:
    """Check every published cell, and what is published beside the cells."""
    report = Audit()
    splits = Splits()
    for check in (_check_cell, _check_search):  # searches need the splits of all cells
        for cell_id, line in sorted(content.lines.items()):
            try:
                check(line.result, content, splits)
            except Unsound as problem:
                report.problems.append(f"cell {cell_id}: {problem}")
    report.problems += [
        *(
            f"replicates of cell {i}: no such cell is published"
            for i in sorted(content.replicates.keys() - content.lines)
        ),
        *(f"machine {name}: no published cell was made on it" for name in sorted(unused_machines(content))),
        *(f"search {name}: it chose no published cell" for name in sorted(unused_searches(content, splits))),
        *_mixed_rules(content),
        *check_marks(content.marks, content.lines),
    ]
    numbers = [line.result for line in content.lines.values() if line.result.status == "ok"]
    if unreleased := sum(map(is_unreleased, numbers)):
        report.notes.append(f"{unreleased} of {len(numbers)} cells were made by unreleased code")
    return report


def unused_machines(content: Content) -> set[str]:
    """Return the machines that made no published cell."""
    return set(content.machines) - {line.result.machine for line in content.lines.values()}


def unused_searches(content: Content, splits: Splits) -> set[str]:
    """Return the searches that chose the parameters of no published cell."""
    used = set()
    for line in content.lines.values():
        if is_tuned(line.result.cell) and line.result.status == "ok":
            with contextlib.suppress(Unsound):  # reported with the cell
                used.add(find_search(line.result, content.searches.values(), splits).study)
    return set(content.searches) - used


def _check_cell(result: CellResult, content: Content, splits: Splits) -> None:
    cell = result.cell
    if result.protocol != PROTOCOL:
        raise Unsound(f"it was made under protocol {result.protocol}, expected {PROTOCOL}")
    if cell.method not in content.facts.methods or cell.dataset not in content.facts.datasets:
        raise Unsound(f"facts.json does not describe {cell.method} or {cell.dataset}")
    if result.status != "ok":
        return
    stated = {name for chosen in result.selected.values() for name in chosen.metrics} - {"bag_error"}
    if unknown := sorted(stated - set(content.facts.metrics)):
        raise Unsound(f"facts.json does not describe the metric {unknown[0]}")
    check_derived(result, _CLASSES, content.facts.methods[cell.method].seed_name)
    replicates = content.replicates.get(result.id)
    if replicates is None:
        raise Unsound("its bootstrap replicates are missing")
    splits.check(result, replicates)
    splits.add(result, replicates)


def _check_search(result: CellResult, content: Content, splits: Splits) -> None:
    if is_tuned(result.cell) and result.status == "ok":
        find_search(result, content.searches.values(), splits)


def _mixed_rules(content: Content) -> Iterator[str]:
    versions: dict[str, set[int]] = {}
    for line in content.lines.values():
        for rule, version in line.result.rules.items():
            versions.setdefault(rule, set()).add(version)
    for rule, found in sorted(versions.items()):
        if len(found) > 1:
            yield f"rule {rule!r}: cells were selected by several versions of it ({', '.join(map(str, sorted(found)))})"
