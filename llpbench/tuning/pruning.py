"""Prune a trial if its best report so far is worse than the median of the finished trials at that report.

A trial that serves several rules is pruned only if it lags under all of them. Optuna's ``MedianPruner`` is not used: it
judges one value per trial, and compares with the trials that are as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from llpbench.contracts.job import Prune
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.judge import Lag, Pruned

FIRST_TRIALS = 5
"""Number of trials that must finish before others are pruned."""

FIRST_REPORTS = 5
"""Number of reports before a trial can be pruned."""


def pruning_limits(histories: Iterable[Sequence[float | None]], higher_is_better: bool) -> tuple[float | None, ...]:
    """For every report, the median over finished trials of their best value up to it.

    A trial with fewer reports counts with its best value. There is no limit for the first reports, nor before enough
    trials have finished.
    """
    bests = ([best for best in best_so_far(history, higher_is_better) if best is not None] for history in histories)
    running = [best for best in bests if best]
    if len(running) < FIRST_TRIALS:
        return ()
    longest = max(map(len, running))
    medians = [median(best[min(r, len(best) - 1)] for best in running) for r in range(longest)]
    return tuple(None if r < FIRST_REPORTS else limit for r, limit in enumerate(medians))


def best_so_far(values: Sequence[float | None], higher_is_better: bool) -> list[float | None]:
    """The best value up to each report; None before the first known value."""
    better = max if higher_is_better else min
    found: list[float | None] = []
    for value in values:
        known = [v for v in (*found[-1:], value) if v is not None]
        found.append(better(known) if known else None)
    return found


def cut_where_given_up(result: CellResult, prune: Sequence[Prune], higher_is_better: Mapping[str, bool]) -> CellResult:
    """Cut a stored result where the study would have pruned it.

    Otherwise the history of a study would depend on which other studies have run its cells before.

    Args:
        result: a finished cell.
        prune: the limits under each rule that the trial serves.
        higher_is_better: the direction of these rules.
    """
    bests = {
        p.rule: best_so_far([report.get(p.rule) for report in result.history], higher_is_better[p.rule]) for p in prune
    }
    for number in range(len(result.history) if prune else 0):
        lags = [_lag(p, number, bests[p.rule][number], higher_is_better[p.rule]) for p in prune]
        behind = [lag for lag in lags if lag is not None]
        if len(behind) == len(prune):
            return msgspec.structs.replace(
                result,
                status="pruned",
                reason=str(Pruned(number, behind)),
                history=result.history[: number + 1],
                selected={lag.rule: Selected(report=number, value=lag.value) for lag in behind},
            )
    return result


def _lag(prune: Prune, number: int, best: float | None, higher_is_better: bool) -> Lag | None:
    """The lag of a trial at a report under one rule; None if it does not lag."""
    limit = prune.limit(number)
    if best is None or limit is None or not (best < limit if higher_is_better else best > limit):
        return None
    return Lag(prune.rule, best, limit)
