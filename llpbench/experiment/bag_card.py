"""The bag card of a setting (``contracts/bag_card.py``), from rows in bags and their true labels.

Proportions. With ``B_b`` the size of bag ``b``, ``a_bc`` its share of class ``c``, ``p_c`` that of all rows in bags and
``n`` bags of ``C`` classes, Pearson's statistic divided by its degrees of freedom,

    phi = Σ_b B_b Σ_c (a_bc − p_c)² / p_c / ((n − 1) (C − 1)),

has the mean ``N / (N − 1)``, practically 1, when rows are put into bags at random, whatever the sizes. The spread is
``sqrt(phi)``: how many times wider proportions lie than those of random bags.

Features. Each is divided by its standard deviation over all rows in bags. The separation is the square root of the mean
squared distance of two rows of different bags (the mean over pairs of bags) over that of two rows of one bag (the mean
over bags): 1 for random bags. With ``m_b`` the mean row of a bag and ``q_b`` its mean squared length both are sums over
bags, so no pair of rows is ever looked at:

    between: mean over b ≠ c of  q_b + q_c − 2 m_b · m_c        within: mean of  2 (q_b − |m_b|²) B_b / (B_b − 1)
"""

from __future__ import annotations

import math

import numpy as np

from llpbench.contracts.bag_card import SIZE_PERCENTILES, BagCard
from llpbench.contracts.data import FloatArray, IntArray
from llpbench.experiment.spread import pearson_spread

_ROWS_AT_ONCE = 8192


def make_card(
    X: FloatArray,
    offsets: IntArray,
    labels: IntArray,
    *,
    classes: int = 2,
    left_out: float = 0.0,
    uses_labels: bool = False,
) -> BagCard:
    """The card of bags.

    Args:
        X: rows, bag after bag (rows of more than one dimension are taken as one long row).
        offsets: (bags + 1,) where bags begin.
        labels: true labels of the rows.
        classes: number of classes.
        left_out: share of rows that are in no bag.
        uses_labels: whether the scheme saw labels.
    """
    sizes = np.diff(offsets)
    indicator = (labels[:, None] == np.arange(classes)).astype(np.float64)
    shares = np.add.reduceat(indicator, offsets[:-1], axis=0) / sizes[:, None]
    shown = shares[:, 1:] if classes == 2 else shares
    sd = math.sqrt(float(shown.var(axis=0, ddof=1).mean())) if len(sizes) > 1 else 0.0
    return BagCard(
        bags=len(sizes),
        rows=len(labels),
        left_out=left_out,
        sizes=tuple(float(size) for size in np.percentile(sizes, SIZE_PERCENTILES)),
        proportion_sd=sd,
        spread=pearson_spread(shares, sizes),
        separation=separation(X.reshape(len(X), -1), offsets),
        uses_labels=uses_labels,
    )


def separation(X: FloatArray, offsets: IntArray) -> float | None:
    """Distance of rows of different bags over that of rows of one bag; None for one bag, or bags of one row."""
    sizes = np.diff(offsets)
    several = sizes > 1
    if len(sizes) < 2 or not several.any():
        return None
    centre, scale = _centre_and_scale(X)
    means = np.zeros((len(sizes), X.shape[1]))
    lengths = np.zeros(len(sizes))
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = (X[start : start + _ROWS_AT_ONCE].astype(np.float64) - centre) * scale
        bags = bag_of[start : start + _ROWS_AT_ONCE]
        firsts = np.flatnonzero(np.diff(bags, prepend=-1))
        means[bags[firsts]] += np.add.reduceat(rows, firsts, axis=0)
        lengths[bags[firsts]] += np.add.reduceat((rows**2).sum(axis=1), firsts)
    means /= sizes[:, None]
    lengths /= sizes
    own = (means**2).sum(axis=1)
    n, total = len(sizes), means.sum(axis=0)
    between = 2 * lengths.mean() - 2 * (float(total @ total) - float(own.sum())) / (n * (n - 1))
    inside = sizes[several]
    within = float(np.mean(2 * (lengths - own)[several] * inside / (inside - 1)))
    return math.sqrt(max(between, 0.0) / within) if within > 0 else None


def _centre_and_scale(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each feature, and one over its standard deviation (0 for a constant one, which then counts for nothing).

    In pieces, so that a table of images is never there twice.
    """
    n, centre = len(X), X.mean(axis=0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    for start in range(0, n, _ROWS_AT_ONCE):
        squares += ((X[start : start + _ROWS_AT_ONCE].astype(np.float64) - centre) ** 2).sum(axis=0)
    sd = np.sqrt(squares / n)
    there = sd > 1e-9 * np.maximum(1.0, np.abs(centre))
    return centre, np.where(there, 1.0 / np.where(there, sd, 1.0), 0.0)
