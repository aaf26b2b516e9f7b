"""Totals of subgroups: how many rows of each class are expected among women, in the north, aged 30 to 40.

**Known counts are kept.** Where the count of a bag is known, its rows' logits are shifted by one number (one for each
class) so that their probabilities add up to it. The totals of subgroups then add up to the known counts, bag by bag,
and what all rows of a bag have in common (a bag effect) cancels. With noise of variance ``s²`` in a count the sum moves
only part of the way, ``V / (V + s²)``, ``V`` being the variance of the bag's total by the model.

**Variance**, for a subgroup ``g`` and one class:

- chance: rows are drawn one by one, ``V_g = Σ_{i ∈ g} p_i (1 − p_i)``. In a bag of known total only the division
  among subgroups is left to chance: ``V_g (1 − V_g / V_b)``.
- the bag effect, for bags whose counts are not known: ``m_b² φ π (1 − π)`` for ``m_b`` rows of the subgroup in a bag.
- the model: fits on halves of the bags. The difference of the totals ``A`` and ``B`` of two halves has about four times
  the variance of the total of all bags, ``(A − B)² / 4``; the mean over several cuts.

What no interval covers: an error that every half makes, because inside bags the columns work in another way than
between them. Only the **bounds** are proof: with ``c`` positives among ``B`` rows and ``m`` rows in the subgroup it has
at least ``max(0, c − (B − m))`` and at most ``min(m, c)``. A ``c`` that is no whole number comes from a rounded share:
the whole number below it is taken for the one, that above it for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.experiment.levelling import class_shifts
from llpbench.owndata.judging.shrinkage import softmax

_WHOLE = 1e-6
"""How far from a whole number a count may be by rounding errors alone."""


@dataclass(frozen=True)
class KnownBags:
    """The bags of the rows whose totals are wanted.

    Attributes:
        numbers: (n,) bag of each row.
        counts: (bags, C) known counts; None when they are not known.
        count_sd: standard deviation of their noise.
    """

    numbers: IntArray
    counts: FloatArray | None
    count_sd: float = 0.0


@dataclass(frozen=True)
class Totals:
    """Expected totals of subgroups.

    Attributes:
        rows: (groups,) rows.
        total: (groups, C) expected number of each class.
        variance: (groups, C) its variance by chance (and bag effects).
        least: (groups, C) what the counts alone prove: at least.
        most: (groups, C) at most.
    """

    rows: IntArray
    total: FloatArray
    variance: FloatArray
    least: FloatArray
    most: FloatArray


def expected_totals(
    logits: FloatArray, groups: IntArray, n_groups: int, bags: KnownBags | None, effect: FloatArray
) -> Totals:
    """Totals of subgroups from the logits of their rows.

    Args:
        logits: (n, C) logits of the rows.
        groups: (n,) subgroup of each row.
        n_groups: number of subgroups.
        bags: bags of the rows, where they are known.
        effect: (C,) variance of a bag's proportions beyond chance, ``φ π (1 − π)``.
    """
    classes = logits.shape[1]
    shape = n_groups, classes
    rows = np.bincount(groups, minlength=n_groups)
    total, variance, least, most = (np.zeros(shape) for _ in range(4))
    if bags is None:
        p = softmax(logits)
        np.add.at(total, groups, p)
        np.add.at(variance, groups, p * (1.0 - p))
        return Totals(rows, total, variance, least, most + rows[:, None])
    order = np.argsort(bags.numbers, kind="stable")
    starts = np.flatnonzero(np.diff(bags.numbers[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        count = None if bags.counts is None else bags.counts[bags.numbers[members[0]]]
        inside, place = np.unique(groups[members], return_inverse=True)
        found = _totals_of_bag(logits[members], place, len(inside), count, bags.count_sd, effect)
        for whole, part in zip((total, variance, least, most), found, strict=True):
            whole[inside] += part
    return Totals(rows, total, variance, least, most)


def _totals_of_bag(
    logits: FloatArray, groups: IntArray, n_groups: int, count: FloatArray | None, count_sd: float, effect: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(groups, C) totals in one bag: expected, variance, at least, at most."""
    sizes = np.bincount(groups, minlength=n_groups)[:, None].astype(np.float64)
    size, shape = len(logits), (n_groups, logits.shape[1])
    least, most = np.zeros(shape), np.repeat(sizes, shape[1], axis=1)
    p = softmax(logits)
    noise: FloatArray = np.zeros(shape[1])
    if count is not None:
        p, noise = _respect(logits, p, count, count_sd, size**2 * effect)
        if count_sd == 0:
            at_least, at_most = np.floor(count + _WHOLE), np.ceil(count - _WHOLE)  # rounded shares are no whole counts
            least, most = np.maximum(least, at_least - (size - sizes)), np.minimum(most, at_most)
    total, drawn = np.zeros(shape), np.zeros(shape)
    np.add.at(total, groups, p)
    np.add.at(drawn, groups, p * (1.0 - p))
    if count is None:
        return total, drawn + sizes**2 * effect, least, most
    share = drawn / np.maximum(drawn.sum(axis=0), 1e-300)
    return total, drawn * (1.0 - share) + share**2 * noise, least, most


def _respect(
    logits: FloatArray, p: FloatArray, count: FloatArray, count_sd: float, effect: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Probabilities of a bag's rows that add up to its count, and the variance that noise leaves of its totals."""
    prior = (p * (1.0 - p)).sum(axis=0) + effect
    trust = prior / np.maximum(prior + count_sd**2, 1e-300)
    wanted = p.sum(axis=0) + trust * (count - p.sum(axis=0)) if count_sd > 0 else count
    wanted = np.maximum(wanted, 0.0)
    return level_to(logits, wanted), (1.0 - trust) * prior


def level_to(logits: FloatArray, totals: FloatArray) -> FloatArray:
    """(n, C) probabilities of rows whose sums are ``totals``: one shift of the logits for each class.

    Args:
        logits: (n, C) logits.
        totals: (C,) wanted sums, 0 or more; scaled to add up to the number of rows.
    """
    shares = totals / max(float(totals.sum()), 1e-300)
    there = shares > 1e-9
    p = np.zeros_like(logits)
    if there.sum() == 1:
        p[:, there] = 1.0
        return p
    inner = logits[:, there]
    p[:, there] = softmax(inner + class_shifts(inner, shares[there] / shares[there].sum()))
    return p


def quantile(level: float, chance: FloatArray, model: FloatArray, cuts: int) -> FloatArray:
    """How many standard deviations an interval reaches: Student's t, since the model's part is estimated by few cuts.

    Its degrees of freedom are those of Welch and Satterthwaite, ``cuts (V + M)² / M²``, ``V`` being known.

    Args:
        level: of the interval.
        chance: variance by chance.
        model: variance by the model, as estimated.
        cuts: number of cuts that it was estimated from.
    """
    from scipy.stats import t

    doubt = model / np.maximum(chance + model, 1e-300)
    freedom = max(cuts, 1) / np.maximum(doubt, 1e-6) ** 2
    return np.asarray(t.ppf(0.5 + level / 2.0, freedom))


def model_variance(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Variance of a total that comes from the model: the mean of ``(A − B)² / 4`` over cuts into halves."""
    return np.asarray(np.mean([(first - second) ** 2 / 4.0 for first, second in pairs], axis=0))
