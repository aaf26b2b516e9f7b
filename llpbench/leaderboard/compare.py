"""Who is best in a column, and whether the seeds at hand can tell it from the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from llpbench.contracts.result import CellResult
from llpbench.leaderboard.replicates import Replicates
from llpbench.leaderboard.schema import Entry
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


def compare_column(
    column: Mapping[str, list[CellResult]],
    entries: Mapping[str, Entry],
    rule: str,
    replicates: Mapping[str, Replicates],
    metric: str,
    higher: bool,
) -> Compared | None:
    """Mark the best and the second of a column and what is separated from what; None with fewer than two methods.

    Only methods with all seeds are compared. ``entries`` are changed in place.
    """
    ranked = sorted(
        (m for m, e in entries.items() if e.status == "ok" and rule in e.rules and e.rules[rule].mean is not None),
        key=lambda m: ((-1 if higher else 1) * (entries[m].rules[rule].mean or 0.0), m),
    )
    if len(ranked) < 2:
        return None
    best, second = ranked[:2]
    places = list(dict.fromkeys(entries[m].rules[rule].mean for m in ranked))
    sign = 1.0 if higher else -1.0
    claim, basis = paired(column[best], column[second], rule, replicates, metric, sign)
    for m in ranked:
        value = entries[m].rules[rule]
        place = places.index(value.mean)
        value.best, value.second = place == 0, place == 1
        if m == best:
            value.separated = claim.separated
        else:
            value.separated = paired(column[best], column[m], rule, replicates, metric, sign)[0].separated
    return Compared(best, second, claim, basis, _sentence(best, second, claim, basis))


def paired(
    ours: list[CellResult],
    theirs: list[CellResult],
    rule: str,
    replicates: Mapping[str, Replicates],
    metric: str,
    sign: float = 1.0,
) -> tuple[Interval, str]:
    """The interval of the difference in percent over the seeds both have, and what it rests on."""
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
