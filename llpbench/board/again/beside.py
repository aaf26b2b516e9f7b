"""What ``verify`` looks at beside the numbers of a cell: published failures, trials of a search, and seconds."""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec

from llpbench.board.again.rerun import TOLERANCE, limits_again
from llpbench.board.content.folder import Content
from llpbench.board.content.searched import check_search, is_tuned, trial_cells, trial_params
from llpbench.board.content.splits import Splits
from llpbench.board.validate import Unsound
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry

FASTER = 10.0
"""How many times faster than it is made again a cell may say to be before the reader is told."""
_NO_DIFFERENCE = 0.1  # seconds
_STOPPED = {"timeout", "memory", "crashed"}  # ends of a process that others than the method may decide


@dataclass(frozen=True)
class TrialPlan:
    """A trial of a published search that is to be made again: the value that it is said to have under its rule."""

    number: int
    rule: str
    value: float
    plans: tuple[Planned, ...]


@dataclass(frozen=True)
class TrialAgain:
    """A trial of the search of a cell that was made again: the published value, and this time's (None: it has none).

    A history does not say on which machine its trials were made, so equal bits cannot be demanded.
    """

    cell: str
    number: int
    published: float
    now: float | None

    @property
    def agrees(self) -> bool:
        """Whether the two are within the tolerance."""
        return self.now is not None and abs(self.now - self.published) <= TOLERANCE


def failure_again(before: CellResult, now: CellResult) -> tuple[str, bool]:
    """What is to be said of a published failure that was made again, and whether it is a doubt.

    Nothing is said of one that fails as published. A number in its place is a doubt. So is another kind of failure, but
    how a process ends when it is stopped (time, memory, a crash) may depend on the machine. A method that ran out of
    time may have a number on a faster machine: that is a note, unless it took less than a tenth of the time it is said
    to have had.
    """
    if now.status == before.status:
        return "", False
    told = f"published as {before.status}, this time it is {now.status}"
    if before.status == "timeout" and now.status == "ok":
        limit = limits_again(before).timeout
        told += f" after {now.fit_seconds:.0f} s; its limit was {limit:.0f} s"
        return told, FASTER * now.fit_seconds < limit
    return told, not {before.status, now.status} <= _STOPPED


def too_fast(before: CellResult, now: CellResult) -> list[str]:
    """A note when a published cell says that it was made far faster than it is made now, on the same processor.

    Seconds depend on what runs beside, so this is no doubt, and differences of a tenth of a second are none.
    """
    was, found = before.fit_seconds, now.fit_seconds
    if now.status != "ok" or found < FASTER * was or found - was < _NO_DIFFERENCE:
        return []
    return [
        f"cell {before.id} ({before.method_name}): published with {was:.3f} s, made here in {found:.3f} s, on the same "
        "type of processor: ask for its log, or publish it again from your run"
    ]


def trials_of(result: CellResult, content: Content, registry: Registry, draw: int) -> list[TrialPlan]:
    """The best trial of the search that chose the parameters of a tuned cell, and one other, as plans.

    Which other one it is depends on the draw: nobody knows before. Nothing for a cell that was not tuned, and for one
    whose search is not sound: ``check`` says so.
    """
    if not is_tuned(result.cell) or result.status != "ok":
        return []
    method = registry.methods[result.cell.method] if result.cell.method in registry.methods.entries else None
    splits = Splits()
    for cell_id, line in content.lines.items():
        if line.result.status == "ok" and line.result.cell.dataset == result.cell.dataset:
            splits.add(line.result, content.replicates.get(cell_id))
    try:
        history = check_search(result, content.searches.values(), method, splits)
    except Unsound:
        return []
    assert history.best is not None  # it chose
    others = [t for t in history.trials if t.status == "ok" and t.params != history.best.params]
    chosen = [history.best, *random.Random(f"trial {draw} {result.id}").sample(others, min(1, len(others)))]
    found = []
    for trial in chosen:
        params = trial_params(history, trial, result.cell, method)
        cells = [] if params is None else trial_cells(history, trial, params)
        plans = [msgspec.structs.replace(Planned.of(result), cell=cell, tuning_seconds=0.0) for cell in cells]
        if plans and trial.value is not None:
            found.append(TrialPlan(trial.number, history.setting.rule, trial.value, tuple(plans)))
    return found
