"""Bootstrap replicates of a cell's AUROC over its test rows.

All cells of a dataset and seed have the same test rows and the same resamples, so their replicates can be subtracted.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.result import CellResult

METRIC = "auroc"
"""The metric that is resampled."""
REPLICATES = 128
_CHUNK = 4_000_000  # weights held in memory at once


def resamples(rows: int, seed: int, replicates: int = REPLICATES) -> Iterable[NDArray[np.float32]]:
    """Bootstrap resamples of ``rows`` rows as weights (how often each row was drawn), one replicate at a time.

    Only raw output of PCG64 is used, whose stream is stable across versions of numpy, so replicates can be paired.
    """
    bits = np.random.PCG64(seed)
    for _ in range(replicates):
        drawn = ((bits.random_raw(rows) >> np.uint64(11)).astype(np.float64) * 2.0**-53 * rows).astype(np.int64)
        yield np.bincount(drawn, minlength=rows).astype(np.float32)


def weighted_auroc(positive: NDArray[np.bool_], scores: FloatArray, weights: NDArray[Any]) -> NDArray[np.float64]:
    """AUROC of weighted rows, for each line of ``weights`` (replicates x rows); NaN where a class has no weight.

    Rows are sorted once; with ``p_g`` and ``n_g`` the weights of positives and negatives that share a score,
    ``AUROC = sum_g p_g (sum_{h<g} n_h + n_g / 2) / (P N)``.
    """
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    flags = positive[order]
    sorted_weights = np.asarray(weights, dtype=np.float64)[:, order]
    p = np.add.reduceat(sorted_weights * flags, starts, axis=1)
    n = np.add.reduceat(sorted_weights * ~flags, starts, axis=1)
    below = np.cumsum(n, axis=1) - n
    total = p.sum(axis=1) * n.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((p * (below + n / 2)).sum(axis=1) / total)


def auroc_replicates(
    labels: IntArray, scores: FloatArray, seed: int, replicates: int = REPLICATES
) -> NDArray[np.float64]:
    """AUROC on bootstrap resamples of the rows; macro average over classes if scores have several columns."""
    columns = [(labels == 1, scores)] if scores.ndim == 1 else [(labels == c, s) for c, s in enumerate(scores.T)]
    size = max(1, _CHUNK // max(1, len(labels)))
    found, chunk = [], []
    for number, weights in enumerate(resamples(len(labels), seed, replicates), start=1):
        chunk.append(weights)
        if len(chunk) == size or number == replicates:
            stacked = np.stack(chunk)
            found.append(np.mean([weighted_auroc(flags, s, stacked) for flags, s in columns], axis=0))
            chunk.clear()
    return np.concatenate(found)


def resampling_seed(result: CellResult) -> int:
    """The seed of the resamples: that of the split, which fixes the test rows."""
    return result.seeds["split"]


def interval_of(value: float, replicates: NDArray[np.float64]) -> tuple[float, float] | None:
    """The 95 % interval of a number with these replicates: 1.96 of their standard deviations to each side."""
    spread = float(np.nanstd(replicates, ddof=1))
    return (value - 1.96 * spread, value + 1.96 * spread) if np.isfinite(spread) else None


def interval_over_rows(path: Path, result: CellResult, rule: str) -> tuple[float, float] | None:
    """The 95 % interval of a cell's AUROC over resampled test rows; None without predictions.

    It does not include the variation over bags, splits or initial weights.
    """
    stated = result.selected[rule].metrics.get(METRIC) if rule in result.selected else None
    if stated is None:
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            labels, scores = arrays["labels"].astype(np.int64), arrays[rule].astype(np.float64)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return interval_of(stated, auroc_replicates(labels, scores, resampling_seed(result)))
