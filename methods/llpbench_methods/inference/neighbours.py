"""Nearest neighbours with ties broken by the lowest index, exact in blocks or approximate by inverted lists.

A float32 matrix product proposes candidates; every candidate that could still enter the list, given the rounding
error of that product, has its distance recomputed in float64 in a fixed order of summation. So the order is
exactly that of (distance, index), distances are symmetric bit for bit, duplicates tie, and memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from llpbench_methods.inference.compiled.jit import Scalar, njit, njit_fast

Metric = Literal["cosine", "euclidean"]
Search = Literal["auto", "exact", "approximate"]
EXACT_LIMIT = 120_000
_COLUMNS = 4096
_ROWS = 512
_STRETCH = 64
f32 = np.float32


@dataclass(frozen=True)
class Neighbours:
    """For each row its nearest other rows, nearest first; `-1` and `inf` where there are fewer.

    Attributes:
        index: `(n, k)` row numbers.
        distance: `(n, k)` distances in the metric of the search.
    """

    index: NDArray[np.int64]
    distance: NDArray[np.float64]


def nearest(
    X: NDArray[np.floating], k: int, metric: Metric = "cosine", search: Search = "auto", threads: int = 1
) -> Neighbours:
    """Find the `k` nearest other rows of every row.

    Args:
        X: rows of covariates.
        k: neighbours per row.
        metric: `cosine` is `1 - x.x' / (|x| |x'|)`, an all-zero row being at distance 1 from every row.
        search: `exact`, `approximate`, or `auto`: exact up to 120,000 rows.
        threads: how many cores may work.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    points = _Points.of(X, metric)
    n = len(points.exact)
    if search == "exact" or (search == "auto" and n <= EXACT_LIMIT):
        return exact_search(points, min(k, n - 1), threads)
    return inverted_lists_search(points, min(k, n - 1), threads)


@dataclass(frozen=True)
class _Points:
    """Rows ready for comparison: float64 for the truth, centred float32 and squared norms for the proposal."""

    exact: NDArray[np.floating]
    proposal: NDArray[np.float32]
    norms: NDArray[np.float32]
    slack: float
    cosine: bool

    @classmethod
    def of(cls, X: NDArray[np.floating], metric: Metric) -> _Points:
        if X.ndim != 2 or len(X) < 2:
            raise ValueError(f"need a matrix of at least two rows, got shape {X.shape}")
        if metric not in ("cosine", "euclidean"):
            raise ValueError(f"unknown metric {metric!r}: choose 'cosine' or 'euclidean'")
        # Beyond the exact search, float32 input stays float32 (each value is widened when used) to halve the memory.
        narrow = X.dtype == np.float32 and len(X) > EXACT_LIMIT
        exact: NDArray[np.floating] = X.astype(np.float32 if narrow else np.float64, order="C")
        if metric == "cosine":
            length = np.sqrt(np.einsum("ij,ij->i", exact, exact, dtype=np.float64))
            exact = exact / np.where(length == 0.0, 1.0, length).astype(exact.dtype)[:, None]
            proposal = exact.astype(np.float32, copy=False)
        else:
            proposal = np.empty(exact.shape, dtype=np.float32)
            np.subtract(
                exact, exact.mean(axis=0, dtype=np.float64).astype(exact.dtype), out=proposal, casting="same_kind"
            )
        norms = np.einsum("ij,ij->i", proposal, proposal)
        slack = 4.0 * (X.shape[1] + 8) * 2.0**-24
        return cls(exact, proposal, norms, slack, metric == "cosine")


@njit_fast
def _true_distance(a: NDArray[np.floating], b: NDArray[np.floating], cosine: bool) -> float:
    """Squared Euclidean distance, or cosine distance to 12 decimals so that parallel rows tie."""
    total = 0.0
    if cosine:
        for t in range(a.size):
            total += np.float64(a[t]) * np.float64(b[t])
        return float(max(np.floor((1.0 - total) * 1e12 + 0.5), 0.0) / 1e12)
    for t in range(a.size):
        gap = np.float64(a[t]) - np.float64(b[t])
        total += gap * gap
    return float(total)


@njit
def _insert(distances: NDArray[np.float64], indices: NDArray[np.int64], d: float, j: int) -> None:
    """Put (d, j) into a list sorted by (distance, index), dropping its last entry."""
    at = distances.size - 1
    while at > 0 and (d < distances[at - 1] or (d == distances[at - 1] and j < indices[at - 1])):
        distances[at] = distances[at - 1]
        indices[at] = indices[at - 1]
        at -= 1
    distances[at] = d
    indices[at] = j


@njit_fast
def _hits(row: NDArray[np.float32], norms: NDArray[np.float32], limit: Scalar) -> int:
    """Number of proposals `norms - 2 row` within the limit, as an integer sum, which vectorises."""
    hits = 0
    for c in range(row.size):
        hits += norms[c] - f32(2.0) * row[c] <= limit
    return hits


@njit
def _select(
    dots: NDArray[np.float32],
    queries: NDArray[np.int64],
    candidates: NDArray[np.int64],
    exact: NDArray[np.floating],
    norms: NDArray[np.float32],
    slack: float,
    cosine: bool,
    distances: NDArray[np.float64],
    indices: NDArray[np.int64],
) -> None:
    """Merge one block of proposals (`dots` = queries x candidates) into the lists of the queries.

    In both metrics the proposal is the squared distance `|a|^2 + |b|^2 - 2 a.b` (twice the cosine distance); it can be
    too large by `slack (|a|^2 + |b|^2)`, so that share of the norms is taken off.
    """
    last = distances.shape[1] - 1
    low = np.empty(candidates.size, np.float32)
    for c in range(candidates.size):
        low[c] = norms[candidates[c]] * f32(1.0 - slack)
    for r in range(queries.size):
        i = queries[r]
        own = np.float64(norms[i]) * (1.0 - slack)
        best, best_index = distances[r], indices[r]
        worst = best[last]
        limit = f32((2.0 * worst + 1e-11 if cosine else worst) - own)
        for left in range(0, candidates.size, _STRETCH):
            right = min(left + _STRETCH, candidates.size)
            if _hits(dots[r, left:right], low[left:right], limit) == 0:
                continue
            for c in range(left, right):
                j = candidates[c]
                if low[c] - f32(2.0) * dots[r, c] > limit or j == i:
                    continue
                d = _true_distance(exact[i], exact[j], cosine)
                if d < worst or (d == worst and j < best_index[last]):
                    _insert(best, best_index, d, j)
                    worst = best[last]
                    limit = f32((2.0 * worst + 1e-11 if cosine else worst) - own)


def exact_search(points: _Points, k: int, threads: int) -> Neighbours:
    """Compare all pairs, block by block: O(n^2 d) time, O(n k) memory beyond one block per thread."""
    n = len(points.exact)
    everyone = np.arange(n)
    index = np.full((n, k), n, dtype=np.int64)
    distance = np.full((n, k), np.inf)

    def work(start: int) -> None:
        stop = min(start + _ROWS, n)
        for left in range(0, n, _COLUMNS):
            right = min(left + _COLUMNS, n)
            _merge(points, everyone[start:stop], everyone[left:right], distance[start:stop], index[start:stop])

    _share_out(work, range(0, n, _ROWS), threads)
    return _finished(index, distance, points.cosine)


def inverted_lists_search(
    points: _Points, k: int, threads: int, lists: int = 0, probes: int = 24, seed: int = 0
) -> Neighbours:
    """Approximate search: rows are grouped by k-means, and a group looks only into its `probes` nearest groups.

    All rows of a group share their candidates, so the work stays matrix products. Deterministic for a seed.
    """
    n = len(points.exact)
    lists = lists or max(1, int(np.sqrt(n)))
    centres, owner = _groups(points, lists, threads, seed)
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=lists))])
    gap = (centres * centres).sum(axis=1)[None, :] - 2.0 * centres @ centres.T
    near = np.argsort(gap, axis=1, kind="stable")[:, :probes]
    index = np.full((n, k), n, dtype=np.int64)
    distance = np.full((n, k), np.inf)

    def work(group: int) -> None:
        members = order[offsets[group] : offsets[group + 1]]
        candidates = np.sort(np.concatenate([order[offsets[g] : offsets[g + 1]] for g in near[group]]))
        for start in range(0, len(members), _ROWS):
            queries = members[start : start + _ROWS]
            best, best_index = np.full((len(queries), k), np.inf), np.full((len(queries), k), n, dtype=np.int64)
            for left in range(0, len(candidates), _COLUMNS):
                _merge(points, queries, candidates[left : left + _COLUMNS], best, best_index)
            index[queries], distance[queries] = best_index, best

    _share_out(work, range(lists), threads)
    return _finished(index, distance, points.cosine)


def _groups(points: _Points, lists: int, threads: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """K-means centres from a sample, and the nearest centre of every row."""
    n = len(points.proposal)
    rng = np.random.default_rng(seed)
    sample = points.proposal[np.sort(rng.choice(n, size=min(n, 40 * lists), replace=False))]
    centres = sample[np.sort(rng.choice(len(sample), size=lists, replace=False))].copy()
    for _ in range(6):
        owner = _closest(sample, centres, threads)
        sums = np.zeros_like(centres)
        np.add.at(sums, owner, sample)
        size = np.bincount(owner, minlength=lists)
        filled = size > 0
        centres[filled] = sums[filled] / size[filled, None]
    return centres, _closest(points.proposal, centres, threads)


def _closest(rows: NDArray[np.float32], centres: NDArray[np.float32], threads: int) -> NDArray[np.int64]:
    owner = np.empty(len(rows), dtype=np.int64)
    half = 0.5 * (centres * centres).sum(axis=1)

    def work(start: int) -> None:
        block = slice(start, start + _COLUMNS)
        owner[block] = np.argmin(half - rows[block] @ centres.T, axis=1)

    _share_out(work, range(0, len(rows), _COLUMNS), threads)
    return owner


def _merge(
    points: _Points,
    queries: NDArray[np.int64],
    candidates: NDArray[np.int64],
    distance: NDArray[np.float64],
    index: NDArray[np.int64],
) -> None:
    dots = points.proposal[queries] @ points.proposal[candidates].T
    _select(dots, queries, candidates, points.exact, points.norms, points.slack, points.cosine, distance, index)


def _share_out(work: Callable[[int], None], items: range, threads: int) -> None:
    """Run the blocks, on several cores if asked; each block's matrix product then keeps to its own core."""
    with threadpool_limits(1):
        if threads <= 1 or len(items) < 2:
            for item in items:
                work(item)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, items))


def _finished(index: NDArray[np.int64], distance: NDArray[np.float64], cosine: bool) -> Neighbours:
    index[np.isinf(distance)] = -1
    return Neighbours(index, distance if cosine else np.sqrt(distance))
