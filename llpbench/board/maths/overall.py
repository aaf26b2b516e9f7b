"""Standings over all datasets: mean ranks with intervals, win shares, ties. Pure functions of a table of numbers.

A table has the number of each method in each cell (higher is better), or None if the cell failed or was skipped.

- *Ranked cells and methods* (``results.shared``): usual cells are those for which more than half of the methods have a
  number (of the methods of llpbench, if there are any); ranked methods have a result in all of them. A failure is
  ranked below every number, loses every comparison, and counts in means as the worst number in that cell.
- *Sources*: datasets that share rows or images have one source (``DatasetSpec.source``), the unit of everything below.
- *Weights*: sources have equal weight, columns of a source have, and seeds of a column have.
- *Intervals*: percentiles of a bootstrap over sources, and over seeds within each source (the same seeds for all
  columns with the same number of seeds, whose splits are the same).
- *Tests*: Wilcoxon's signed-rank test over sources; the p-values of all pairs of methods are corrected together
  (Holm). With few sources no p-value can be small (``least_p``), and nothing is tested.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from llpbench.board.maths.statistics import LEVEL, holm, row_ranks
from llpbench.contracts.data import FloatArray
from llpbench.results.shared import RIVALS, Roles, shared_keys

REPLICATES = 500
_SEED = 20_260_101
_EXACT = 25  # differences up to which the signed-rank test counts all signs


_Column = TypeVar("_Column")
ColumnName = tuple[str, str, int]
"""The dataset as displayed, the noise level and the bag size of a column."""


class CellKey(NamedTuple):
    """A cell that methods share."""

    source: str
    column: ColumnName
    seed: int


Scores = Mapping[str, Mapping[CellKey, float | None]]


@dataclass(frozen=True)
class Grid:
    """The numbers of the ranked methods (columns) in the usual cells (lines), without a gap.

    ``failed`` marks the numbers that stand for a failure: the worst of their cell.
    """

    methods: tuple[str, ...]
    keys: tuple[CellKey, ...]
    values: FloatArray
    failed: NDArray[np.bool_]

    def only(self, keys: Collection[CellKey]) -> Grid:
        """The same methods in some of the cells."""
        kept = [i for i, key in enumerate(self.keys) if key in keys]
        return Grid(self.methods, tuple(self.keys[i] for i in kept), self.values[kept], self.failed[kept])

    @property
    def ranks(self) -> FloatArray:
        """The place of each method in each cell, 1 the best; ties share places, failures are last."""
        return row_ranks(np.where(self.failed, -np.inf, self.values))


def ranked_grid(table: Scores, roles: Roles = RIVALS) -> Grid:
    """The ranked methods and cells (see the module); empty with fewer than two methods."""
    numbered = {m: [k for k, v in row.items() if v is not None] for m, row in table.items()}
    usual = shared_keys(numbered, roles=roles).keys
    methods = tuple(m for m, row in table.items() if usual and all(key in row for key in usual))
    keys = tuple(sorted(usual, key=lambda key: (key.source, str(key.column), key.seed)))
    numbers = np.array([[_or_nan(table[m][key]) for m in methods] for key in keys], dtype=np.float64)
    if len(methods) < 2:
        return Grid((), (), np.zeros((0, 0)), np.zeros((0, 0), dtype=np.bool_))
    known = np.flatnonzero(~np.isnan(numbers).all(axis=1))  # cells in which only unranked methods have a number
    numbers, keys = numbers[known], tuple(keys[i] for i in known)
    worst = np.nanmin(numbers, axis=1, keepdims=True) if len(keys) else numbers
    return Grid(methods, keys, np.where(np.isnan(numbers), worst, numbers), np.isnan(numbers))


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def even_weights(keys: Sequence[CellKey]) -> FloatArray:
    """The weight of each cell (see the module); the sum is 1."""
    weights = np.zeros(len(keys))
    sources = _nested(keys)
    for columns in sources.values():
        for places in columns.values():
            weights[places] = 1.0 / (len(sources) * len(columns) * len(places))
    return weights


def resampled_weights(keys: Sequence[CellKey], replicates: int = REPLICATES, seed: int = _SEED) -> FloatArray:
    """``even_weights`` of bootstrap samples (replicates x cells): sources are drawn, then seeds within each.

    Only raw output of PCG64 is used, which numpy keeps stable: the same cells give the same intervals.
    """
    sources = _nested(keys)
    bits = np.random.PCG64(seed)
    drawn = _uniform(bits, (replicates, len(sources)))
    times = _counts((drawn * len(sources)).astype(np.int64), len(sources)) / max(1, len(sources))
    weights = np.zeros((replicates, len(keys)))
    for number, columns in enumerate(sources.values()):
        most = max(len(places) for places in columns.values())
        lots = _uniform(bits, (replicates, most))
        for places in columns.values():
            n = len(places)
            counts = _counts((lots[:, :n] * n).astype(np.int64), n)
            weights[:, places] = counts * (times[:, [number]] / (len(columns) * n))
    return weights


def _nested(keys: Sequence[CellKey]) -> dict[str, dict[ColumnName, list[int]]]:
    """The positions of cells by source and column."""
    found: dict[str, dict[ColumnName, list[int]]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key.source, {}).setdefault(key.column, []).append(place)
    return found


def _uniform(bits: np.random.PCG64, shape: tuple[int, int]) -> FloatArray:
    raw = bits.random_raw(shape[0] * shape[1])
    return np.asarray((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def _counts(drawn: NDArray[np.int64], size: int) -> FloatArray:
    """How often each of ``size`` items was drawn, by row."""
    return np.asarray((drawn[:, :, None] == np.arange(size)).sum(axis=1), dtype=np.float64)


def percentile_interval(samples: FloatArray, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """The ends between which all but a share ``level`` of the samples lie, for each column; both are samples."""
    ordered = np.sort(samples, axis=0)
    cut = math.floor(level / 2 * len(ordered))
    return ordered[cut], ordered[len(ordered) - 1 - cut]


def win_share(ours: Mapping[CellKey, float | None], theirs: Mapping[CellKey, float | None]) -> tuple[float | None, int]:
    """The share of common cells in which ours is higher (a tie is half), and the number of common cells.

    Cells are weighted as in mean ranks. A failure loses against any number; two failures are a tie.
    """
    keys = [key for key in ours if key in theirs]
    pairs = [(_or_least(ours[key]), _or_least(theirs[key])) for key in keys]
    won = np.array([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs])
    return (float(even_weights(keys) @ won) if keys else None), len(keys)


def win_shares(grid: Grid) -> FloatArray:
    """``win_share`` of every method (line) against every method (column) over the cells of a grid."""
    values = np.where(grid.failed, -np.inf, grid.values)
    ours, theirs = values[:, :, None], values[:, None, :]
    return np.tensordot(even_weights(grid.keys), (ours > theirs) + 0.5 * (ours == theirs), 1)


def source_means(grid: Grid) -> FloatArray:
    """The mean of each source (sources x methods), with the weights of mean ranks."""
    weights, sources = even_weights(grid.keys), [key.source for key in grid.keys]
    names = list(dict.fromkeys(sources))
    inside = np.array([[source == name for source in sources] for name in names]).reshape(len(names), len(sources))
    return np.asarray(len(names) * (inside * weights) @ grid.values)


def signed_rank_p(differences: Sequence[float] | FloatArray) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test that differences lie around zero; zeros are left out.

    With ``r_i`` the ranks of their sizes (ties share places) the statistic is ``W = sum of r_i over positive ones``.
    Up to 25 differences every choice of signs is counted; beyond, W is taken as normal with mean ``sum r_i / 2`` and
    variance ``sum r_i^2 / 4``.
    """
    known = np.array([d for d in differences if d != 0.0 and math.isfinite(d)], dtype=np.float64)
    if not len(known):
        return 1.0
    sizes = np.round(np.abs(known), 12)[:, None]
    doubled = (1 + 2 * (sizes > sizes.T).sum(axis=1) + (sizes == sizes.T).sum(axis=1)).astype(np.int64)
    statistic, total = int(doubled[known > 0].sum()), int(doubled.sum())
    far = abs(2 * statistic - total)
    if len(known) > _EXACT:
        error = math.sqrt(float((doubled.astype(np.float64) ** 2).sum()))
        return math.erfc(far / error / math.sqrt(2.0))
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[: total + 1 - rank]
    apart = np.abs(2 * np.arange(total + 1) - total) >= far
    return float(min(1.0, ways[apart].sum() / 2.0 ** len(known)))


def least_p(sources: int, methods: int) -> float:
    """The smallest p-value of ``pairwise_p``: that of a pair about which all sources agree, corrected for all pairs."""
    return min(1.0, 2.0 ** (1 - sources) * math.comb(methods, 2))


def pairwise_p(means: FloatArray) -> FloatArray:
    """The p-values of no difference over sources, corrected for all pairs (methods x methods)."""
    size = means.shape[1]
    pairs = list(combinations(range(size), 2))
    corrected = holm({f"{a} {b}": signed_rank_p(means[:, a] - means[:, b]) for a, b in pairs})
    found = np.ones((size, size))
    for a, b in pairs:
        p = corrected[f"{a} {b}"]
        found[a, b] = found[b, a] = 1.0 if p is None else p
    return found


def cliques(order: Sequence[int], apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The bars of a critical-difference diagram: longest runs of ranks without a difference, as (from, to)."""
    bars: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not apart[order[end + 1], [order[i] for i in range(start, end + 1)]].any():
            end += 1
        if end > start and (not bars or end > bars[-1][1]):
            bars.append((start, end))
    return bars


def between(value: float, control: float, bound: float) -> float | None:
    """A number on the scale where the best control is 0 and the bound is 1; None if the bound is not higher."""
    return (value - control) / (bound - control) if bound > control else None


def even_mean(values: Mapping[tuple[str, _Column], float]) -> float | None:
    """The mean over (source, column) with equal weight for sources and for columns of a source."""
    sources: dict[str, list[float]] = {}
    for (source, _), value in values.items():
        sources.setdefault(source, []).append(value)
    means = [math.fsum(found) / len(found) for found in sources.values()]
    return math.fsum(means) / len(means) if means else None
