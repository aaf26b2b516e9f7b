"""Find the best method of a column, and test whether it is separated from the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from llpbench.board.built.rows import DIGITS, rounded
from llpbench.board.content.bootstrap import Replicates
from llpbench.board.maths.bootstrap import METRIC
from llpbench.board.maths.statistics import LEVEL, MeanDifference, difference_interval, holm, variance_of_difference
from llpbench.board.schema import BestClaim, Score
from llpbench.contracts.result import CellResult
from llpbench.results.table import value_of

_BOTH, _SEEDS, _ONE = "seeds and test rows", "seeds only (no predictions)", "one seed"


def mark_best(scores: Mapping[str, Score], means: Mapping[str, float], higher: bool) -> list[str]:
    """Mark the best and the second of a column and return the compared methods, best first.

    A method without rivals gets no mark.

    Args:
        scores: the scores of the column; changed in place.
        means: the compared means (``results.shared``) by method.
        higher: whether higher values are better.
    """
    sign = -1.0 if higher else 1.0
    rounded = {method: round(mean, 10) for method, mean in means.items()}
    ranked = sorted(rounded, key=lambda method: (sign * rounded[method], method))
    places = list(dict.fromkeys(rounded[method] for method in ranked))
    for method in ranked if len(ranked) > 1 else ():
        place = places.index(rounded[method])
        scores[method].best, scores[method].second = place == 0, place == 1
    return ranked


def compare_best(
    ranked: list[str],
    column: Mapping[str, list[CellResult]],
    scores: Mapping[str, Score],
    rule: str,
    replicates: Mapping[str, Replicates],
    higher: bool,
) -> BestClaim | None:
    """Mark which methods are separated from the best, and compare the best with the second.

    Args:
        ranked: the compared methods, the best first (``mark_best``).
        column: their results at the seeds they share.
        scores: their scores; changed in place.
        rule: the selection rule.
        replicates: of AUROC over test rows, by cell.
        higher: whether higher values are better.

    Returns:
        None with fewer than two methods.
    """
    if len(ranked) < 2:
        return None
    best, second = ranked[:2]
    scale = 100.0 if higher else -100.0
    found = {m: paired(column[best], column[m], rule, replicates, METRIC, scale) for m in ranked[1:]}
    corrected = holm({m: interval.p for m, (interval, _) in found.items()})
    for method, p in corrected.items():
        scores[method].separated = None if p is None else p <= LEVEL
    scores[best].separated = scores[second].separated
    interval, basis = found[second]
    p, separated = corrected[second], scores[second].separated
    return BestClaim(
        metric=METRIC,
        rule=rule,
        best=best,
        second=second,
        difference=round(interval.mean, DIGITS),
        low=rounded(interval.low),
        high=rounded(interval.high),
        separated=separated,
        text=_sentence(best, second, interval, p, len(found), basis),
        basis=basis,
        p=rounded(p),
        rivals=len(found),
    )


def paired(
    ours: Collection[CellResult],
    theirs: Collection[CellResult],
    rule: str,
    replicates: Mapping[str, Replicates],
    metric: str,
    scale: float = 100.0,
) -> tuple[MeanDifference, str]:
    """The interval of the difference over the seeds that both have, and what it was computed from.

    Values are multiplied by ``scale``: 100 for percent, -100 if lower values are better.
    """
    by_seed = {r.cell.seed: r for r in theirs}
    differences, variances, overlaps, tests = [], [], [], []
    for mine in ours:
        other = by_seed.get(mine.cell.seed)
        a = value_of(mine, metric, rule)
        b = None if other is None else value_of(other, metric, rule)
        if other is None or a is None or b is None:
            continue
        differences.append(scale * (a - b))
        variances.append(scale**2 * _row_variance(replicates.get(mine.id), replicates.get(other.id), rule))
        overlaps.append(mine.rows.get("test", 0) / max(1, mine.rows.get("train", 0)))
        tests.append(replicates[mine.id].test if mine.id in replicates else mine.id)
    overlap = math.fsum(overlaps) / len(overlaps) if overlaps else 0.0
    same_rows = len(tests) > 1 and len(set(tests)) == 1
    interval = difference_interval(differences, variances, overlap=overlap, same_rows=same_rows)
    if len(differences) == 1:
        return interval, _ONE
    return interval, _BOTH if all(map(math.isfinite, variances)) else _SEEDS


def _row_variance(a: Replicates | None, b: Replicates | None, rule: str) -> float:
    if a is None or b is None or a.test != b.test:
        return math.nan
    ours, theirs = a.values(rule), b.values(rule)
    return math.nan if ours is None or theirs is None else variance_of_difference(ours, theirs)


def _sentence(best: str, second: str, i: MeanDifference, p: float | None, rivals: int, basis: str) -> str:
    if i.low is None or i.high is None or p is None:
        return f"{best} is {i.mean:.2f} above {second} on one seed: one seed cannot tell."
    judged = f"p {_p_words(p)}" + (f" among {rivals} rivals" if rivals > 1 else "")
    text = f"{best} is {i.mean:.2f} above {second} (95 % interval {i.low:.2f} to {i.high:.2f}, {basis}; {judged})"
    if p <= LEVEL:
        return f"{text}: separated."
    if i.separated:
        return f"{text}: not separated among so many rivals; {i.seeds} seeds cannot tell."
    fixed = i.rows_only is not None and (i.rows_only[0] > 0 or i.rows_only[1] < 0)
    if fixed:
        fits = "these fits differ by more than the chance of the test rows"
        return f"{text}: {fits}, but {i.seeds} seeds are too few to say it of the methods."
    return f"{text}: not separated; {i.seeds} seeds cannot tell."


def _p_words(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
