"""When to give up a trial: its best report so far is worse than the median of the finished trials at that report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from llpbench.contracts.job import Prune
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.judge import Pruned

FIRST_TRIALS = 5
"""Trials that must have finished before others are held to their median."""

FIRST_REPORTS = 5
"""Reports that every trial may make."""


def pruning_limits(histories: Iterable[Sequence[float | None]], higher_is_better: bool) -> tuple[float | None, ...]:
    """For every report, the median over finished trials of their best value up to it.

    A trial that made fewer reports counts with the best it had. No limit is set for the first reports, nor before
    enough trials have finished.
    """
    bests = ([best for best in best_so_far(history, higher_is_better) if best is not None] for history in histories)
    running = [best for best in bests if best]
    if len(running) < FIRST_TRIALS:
        return ()
    longest = max(map(len, running))
    medians = [median(best[min(r, len(best) - 1)] for best in running) for r in range(longest)]
    return tuple(None if r < FIRST_REPORTS else limit for r, limit in enumerate(medians))


def best_so_far(values: Sequence[float | None], higher_is_better: bool) -> list[float | None]:
    """The best of the values up to each; None before the first that is known."""
    better = max if higher_is_better else min
    found: list[float | None] = []
    for value in values:
        known = [v for v in (*found[-1:], value) if v is not None]
        found.append(better(known) if known else None)
    return found


def cut_where_given_up(result: CellResult, prune: Prune, higher_is_better: bool) -> CellResult:
    """A stored result as the study would have had it from a run of its own: cut where it would have been given up.

    Without this the history of a study would depend on which other studies had run its cells before.
    """
    bests = best_so_far([report.get(prune.rule) for report in result.history], higher_is_better)
    for number, best in enumerate(bests):
        limit = prune.limit(number)
        if best is not None and limit is not None and (best < limit if higher_is_better else best > limit):
            return msgspec.structs.replace(
                result,
                status="pruned",
                reason=str(Pruned(prune.rule, number, best, limit)),
                history=result.history[: number + 1],
                selected={prune.rule: Selected(report=number, value=best)},
            )
    return result
