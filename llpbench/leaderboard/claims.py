"""Which method is best in a column of a table, and whether its seeds are enough to say so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from llpbench.contracts.result import CellResult
from llpbench.leaderboard.bootstrap import METRIC, Replicates
from llpbench.leaderboard.schema import Score
from llpbench.leaderboard.statistics import Interval, difference_interval, variance_of_difference
from llpbench.results.table import value_of

_BOTH, _SEEDS, _ONE = "seeds and test rows", "seeds only (no predictions)", "one seed"


@dataclass(frozen=True)
class Compared:
    """The best against the second."""

    best: str
    second: str
    interval: Interval
    basis: str
    text: str


def mark_best(scores: Mapping[str, Score], higher: bool) -> list[str]:
    """Mark the best and the second mean of a column and return the methods, best first. One alone is not marked.

    ``scores`` are those of methods that have all seeds, and are changed in place.
    """
    sign = -1.0 if higher else 1.0
    means = {method: score.mean for method, score in scores.items() if score.mean is not None}
    ranked = sorted(means, key=lambda method: (sign * means[method], method))
    if len(ranked) > 1:
        places = list(dict.fromkeys(means[method] for method in ranked))
        for method in ranked:
            place = places.index(means[method])
            scores[method].best, scores[method].second = place == 0, place == 1
    return ranked


def compare_best(
    ranked: list[str],
    column: Mapping[str, list[CellResult]],
    scores: Mapping[str, Score],
    rule: str,
    replicates: Mapping[str, Replicates],
    higher: bool,
) -> Compared | None:
    """Say of every method whether it is separated from the best; None with fewer than two methods.

    Args:
        ranked: the methods, the best first (``mark_best``).
        column: their results.
        scores: their scores, which are changed in place.
        rule: the selection rule.
        replicates: of AUROC over test rows, by cell.
        higher: which end of the metric wins.
    """
    if len(ranked) < 2:
        return None
    best, second = ranked[:2]
    sign = 1.0 if higher else -1.0
    claim, basis = paired(column[best], column[second], rule, replicates, METRIC, sign)
    scores[best].separated = claim.separated
    for method in ranked[1:]:
        interval, _ = paired(column[best], column[method], rule, replicates, METRIC, sign)
        scores[method].separated = interval.separated
    return Compared(best, second, claim, basis, _sentence(best, second, claim, basis))


def paired(
    ours: list[CellResult],
    theirs: list[CellResult],
    rule: str,
    replicates: Mapping[str, Replicates],
    metric: str,
    sign: float = 1.0,
) -> tuple[Interval, str]:
    """The interval of the difference (in percent) over the seeds that both have, and what it was computed from."""
    by_seed = {r.cell.seed: r for r in theirs}
    differences, variances = [], []
    for mine in ours:
        other = by_seed.get(mine.cell.seed)
        a = value_of(mine, metric, rule)
        b = None if other is None else value_of(other, metric, rule)
        if other is None or a is None or b is None:
            continue
        differences.append(sign * 100 * (a - b))
        variances.append(1e4 * _row_variance(replicates.get(mine.id), replicates.get(other.id), rule))
    interval = difference_interval(differences, variances)
    if len(differences) == 1:
        return interval, _ONE
    return interval, _BOTH if all(map(math.isfinite, variances)) else _SEEDS


def _row_variance(a: Replicates | None, b: Replicates | None, rule: str) -> float:
    if a is None or b is None or a.test != b.test:
        return math.nan
    ours, theirs = a.values(rule), b.values(rule)
    return math.nan if ours is None or theirs is None else variance_of_difference(ours, theirs)


def _sentence(best: str, second: str, i: Interval, basis: str) -> str:
    if i.low is None or i.high is None:
        return f"{best} is {_apart(i.mean)} {second} on one seed: one seed cannot tell."
    lead = f"{best} is" if i.mean >= 0 else f"{best} has the higher mean, but on the {i.seeds} seeds of both it is"
    text = f"{lead} {_apart(i.mean)} {second} (95 % interval {i.low:.2f} to {i.high:.2f}, {basis})"
    if i.separated:
        return f"{text}: separated."
    fixed = i.rows_only is not None and (i.rows_only[0] > 0 or i.rows_only[1] < 0)
    if fixed:
        return f"{text}: the fits at hand differ on their test rows, but {i.seeds} seeds cannot tell the methods apart."
    return f"{text}: not separated; {i.seeds} seeds cannot tell."


def _apart(difference: float) -> str:
    return f"{abs(difference):.2f} {'above' if difference >= 0 else 'below'}"
