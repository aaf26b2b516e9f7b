"""Paired intervals, ranks and Pareto fronts: pure functions of arrays and numbers.

Two things make an AUROC uncertain: the rows it is measured on, and the seed (split, bags, start of the fit). The
first is estimated by a paired bootstrap over test rows: both methods are scored on the *same* resampled rows, so
what is hard for both cancels. The second needs several seeds. With ``d_i`` the difference of two methods at seed i,
``s^2`` the variance of the ``d_i`` and ``v`` the mean bootstrap variance of a single ``d_i``, the interval is

    mean(d)  +-  t(n - 1, 0.975) * sqrt(max(s^2, v) * (1 / n + n_test / n_train)).

Every seed has its own split, so ``s^2`` estimates both sources together; but three numbers may be close by chance, so
``v`` is a lower limit. The splits of two seeds share most of their training rows, so the ``d_i`` are
not independent and ``s^2 / n`` is too small: the second term is the correction of Nadeau and Bengio (2003). Where all
seeds have the same test rows (an official test set), chance due to these rows does not average out over seeds, and
``v`` itself is the lower limit of the variance of the mean. The plain bootstrap over three seeds has far less than its
nominal coverage; Student's quantile has not.

The best of a column is compared with every rival, and with many rivals one looks separated by chance. Holm's correction
keeps the chance of a single wrong "separated" in a column near 5 %, whatever the rivals have in common (they share
splits, so their tests are dependent), and needs no resampling of three seeds, as a max-t by bootstrap would.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import FloatArray

LEVEL = 0.05
"""The chance of a wrong "separated" that is accepted, after correction for the number of rivals."""


@dataclass(frozen=True)
class MeanDifference:
    """A mean difference, its 95 % interval and the p-value of no difference; None for a single seed."""

    mean: float
    low: float | None
    high: float | None
    seeds: int
    rows_only: tuple[float, float] | None = None
    p: float | None = None

    @property
    def separated(self) -> bool | None:
        """Whether the interval excludes zero; None when there is no interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Standing:
    """Mean rank and win rate of a method over ``cells`` cells."""

    mean_rank: float
    win_rate: float
    cells: int


def variance_of_difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Bootstrap variance of a paired difference; replicates that lack a class are left out. NaN when too few."""
    difference = (a - b)[np.isfinite(a) & np.isfinite(b)]
    return float(difference.var(ddof=1)) if len(difference) > 1 else math.nan


def difference_interval(
    differences: Sequence[float],
    row_variances: Sequence[float] = (),
    *,
    overlap: float = 0.0,
    same_rows: bool = False,
) -> MeanDifference:
    """The 95 % interval of the mean of paired differences, one for each seed (see the module).

    Args:
        differences: for each seed, one method's value minus the other's.
        row_variances: for each seed, the bootstrap variance of that difference over test rows; may be empty.
        overlap: number of test rows over that of training rows, for seeds whose splits are drawn from the same rows.
        same_rows: all seeds were measured on the same test rows.
    """
    n = len(differences)
    if n == 0:
        raise ValueError("no differences")
    mean = math.fsum(differences) / n
    known = [v for v in row_variances if math.isfinite(v)]
    rows = math.fsum(known) / len(known) if known else 0.0
    of_rows = rows if same_rows else rows / n
    half_rows = 1.959963984540054 * math.sqrt(of_rows)
    rows_only = (mean - half_rows, mean + half_rows) if known else None
    if n == 1:
        return MeanDifference(mean, None, None, 1, rows_only)
    seeds = math.fsum((d - mean) ** 2 for d in differences) / (n - 1)
    error = math.sqrt(max(max(seeds, rows) * (1.0 / n + overlap), of_rows))
    half = student_quantile(n - 1) * error
    return MeanDifference(mean, mean - half, mean + half, n, rows_only, student_p(mean, error, n - 1))


def student_p(mean: float, error: float, degrees: int) -> float:
    """The two-sided p-value of a mean with a standard error; without any error, whether the mean is zero."""
    from scipy.special import stdtr

    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return 2.0 * float(stdtr(degrees, -abs(mean) / error))


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's corrected p-values: the k-th smallest of m times ``m - k + 1``, never below an earlier one, at most 1.

    What has no p-value stays without, and does not count.
    """
    known = sorted((p, name) for name, p in p_values.items() if p is not None)
    corrected: dict[str, float | None] = dict.fromkeys(p_values)
    least = 0.0
    for place, (p, name) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - place)))
        corrected[name] = least
    return corrected


def student_quantile(degrees: int, level: float = 0.975) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, level))


def row_ranks(values: FloatArray) -> FloatArray:
    """Ranks within each line, 1 for the highest; equal numbers share the mean of their places."""
    better = (values[:, None, :] > values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2) - 1
    return np.asarray(1.0 + better + equal / 2.0)


def standings(scores: Mapping[str, Mapping[Hashable, float]], higher_is_better: bool = True) -> dict[str, Standing]:
    """Mean rank (ties share the mean of their places) and win rate (ties count half) over common cells.

    Args:
        scores: for each method, its value in each cell. Only cells that every method has are counted, so the answer
            depends on which methods are compared: compute it again when some are left out.
        higher_is_better: which end of the scale wins.
    """
    methods = list(scores)
    if not methods:
        return {}
    common = [cell for cell in scores[methods[0]] if all(cell in scores[m] for m in methods)]
    if not common:
        return {}
    table = np.array([[scores[m][cell] for m in methods] for cell in common], dtype=np.float64)
    ranks = row_ranks(table if higher_is_better else -table)
    rank = ranks.mean(axis=0)
    rivals = len(methods) - 1
    wins = (len(methods) - ranks).mean(axis=0) / rivals if rivals else np.ones(1)
    return {m: Standing(float(rank[i]), float(wins[i]), len(common)) for i, m in enumerate(methods)}


def pareto_front(points: Mapping[str, tuple[float, float]], higher_is_better: bool = True) -> list[str]:
    """Methods that no other beats in both value and cost (``name -> (value, cost)``), cheapest first."""
    sign = 1.0 if higher_is_better else -1.0
    front: list[str] = []
    best, best_cost = -math.inf, math.inf
    for name, (value, cost) in sorted(points.items(), key=lambda item: (item[1][1], -sign * item[1][0], item[0])):
        if sign * value > best or (sign * value == best and cost == best_cost):
            front.append(name)
            best, best_cost = sign * value, cost
    return front
