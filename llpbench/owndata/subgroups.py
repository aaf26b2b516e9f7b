"""Totals of subgroups: how many rows of each class are expected among women, in the north, aged 30 to 40.

**Known counts are kept.** The probabilities of rows are those given the counts of their bags
(``owndata/judging/posterior.py``). The totals of subgroups then add up to the known counts in every bag.

**Variance**, for a subgroup ``g`` and one class:

- chance: rows are drawn independently, ``V_g = Σ_{i ∈ g} p_i (1 − p_i)``. In a bag of known total only the division
  among subgroups is random: ``V_g (1 − V_g / V_b)``.
- the bag effect, for bags with unknown counts: ``m_b² φ π (1 − π)`` for ``m_b`` rows of the subgroup in a bag.
- the model: fits on halves of the bags. The difference of the totals ``A`` and ``B`` of two halves has about four times
  the variance of the total of all bags, ``(A − B)² / 4``; the mean over several splits.
- the sensitivity: halves agree about an error that all of them make, for instance because a column works differently
  within bags than between them. If the log-odds of the subgroup are off by ``δ``, its total moves by ``δ`` times
  ``Σ p (1 − p)`` of its rows, in a bag of known total times the variance of the division. ``δ`` has the standard
  deviation ``SENSITIVITY``, which was chosen on 17 tables with natural groups (development list, Adult, Marketing) so
  that nine of ten intervals contain the true total.

**A test.** If ``δ`` is the same within all bags and between them, bags with more rows of the subgroup differ from what
the model says about them. The regression of the known proportions less the predicted ones on ``d mean(p) / dδ``, with a
bag effect, estimates it. Where it is significant, the interval is widened by what it exceeds chance by, and the user
is told.

Only the **bounds** are certain: with ``c`` positives among ``B`` rows and ``m`` rows in the subgroup, the total is at
least ``max(0, c − (B − m))`` and at most ``min(m, c)``. A fractional ``c`` comes from a rounded share: it is rounded
down for the lower bound and up for the upper bound. Of several groupings each implies bounds (rows in none of its bags
may be of any class), and the largest lower and the smallest upper bound hold; so do variances.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.owndata.fitting import FitRecord
from llpbench.owndata.judging.assessment import UnseenBags
from llpbench.owndata.judging.interval_widths import model_variance, quantile, slope_beyond_chance
from llpbench.owndata.judging.posterior import posterior_of_bag
from llpbench.owndata.judging.predictor import Predictor, softmax
from llpbench.owndata.judging.shrinkage import make_shrinkage
from llpbench.owndata.known_bags import KnownBags, bag_effect, posteriors, read_bags, row_logits, table_of_fit
from llpbench.owndata.model_file import Header
from llpbench.owndata.reading.arguments import check_column
from llpbench.owndata.reading.bag_counts import KnownCounts
from llpbench.owndata.reading.bag_ids import BagIds
from llpbench.owndata.reading.bagged_table import is_share, read_whole
from llpbench.owndata.reading.forms import as_frame, check_order

if TYPE_CHECKING:
    import pandas as pd

SENSITIVITY, SENSITIVITY_WITHOUT = 0.75, 0.45
"""Standard deviation of the error of a subgroup's log-odds that all fits have in common, with and without counts."""
_WHOLE = 1e-6
"""How far from a whole number a count may be because of rounding errors."""


def subgroup_table(
    header: Header,
    predictor: Predictor,
    memory: FitRecord | None,
    X: Any,
    by: Any,
    *,
    bag_of: Any,
    counts: Any,
    proportions: Any,
    count_sd: Any,
    level: float,
    halvings: int,
) -> tuple[pd.DataFrame, FitRecord | None]:
    """The table of ``LLPModel.subgroup_totals``, and the model's memory with the fits on halves made for it."""
    if not is_share(level):
        raise UsageError(f"level must be between 0 and 1, got {level!r}.")
    halvings = read_whole(halvings, "halvings", least=0)
    if X is not None:
        frame = as_frame(X)
        bags = read_bags(header, frame, bag_of, counts, proportions, count_sd)
        features = header.encoder.transform(frame)
    else:
        own = table_of_fit(memory)
        frame, features, given = own.table, own.trainer.features, len(own.every_row)
        if not (bag_of is None and counts is None and proportions is None):
            raise UsageError("bag_of, counts and proportions need X; without X those of the fit are used.")
        bags = KnownBags(own.trainer.bags, own.known)
        if given > len(frame):
            by = _take_rows(by, own)
            warnings.warn(
                f"{given - len(frame):,} of {given:,} rows are in bags with unknown counts and are not "
                "included in these totals; pass their table as X to get totals of them.",
                LLPWarning,
                stacklevel=3,
            )
    names, groups = read_groups(by, frame)
    effect = bag_effect(header)
    logits = row_logits(header, predictor, features)
    found = expected_totals(logits, groups, len(names), bags, effect)
    memory = _with_halves(memory, halvings)
    pairs = []
    for cut in memory.halves[:halvings] if memory is not None else ():
        both = (_half_logits(header, half, features) for half in cut)
        first, second = (expected_totals(half, groups, len(names), bags, effect).total for half in both)
        pairs.append((first, second))
    if not pairs and halvings:
        reason = "it was loaded from a file" if memory is None else "the method cannot be fitted on half of the bags"
        warnings.warn(f"the intervals do not cover the choice of bags: {reason}.", LLPWarning, stacklevel=3)
    model = model_variance(pairs) if pairs else np.zeros_like(found.total)
    excess = np.zeros_like(found.total)
    if X is None and memory is not None:
        own_bags = memory.trainer.bags
        excess = excess_between_bags(
            own_bags.entries(logits), own_bags.entries(groups), len(names), own_bags.numbers, memory.known, effect
        )
    failed = [str(names[g]) for g in np.flatnonzero((excess > 0.0).any(axis=1))]
    unknown = header.facts is not None and not header.facts.score.better
    if halvings and (failed or unknown):
        reason = (
            "the model is not clearly better than a constant"
            if unknown
            else f"bags with more rows of {', '.join(failed[:5])} differ in ways that the model does not explain"
        )
        warnings.warn(
            f"{reason}: the intervals of these totals rest on assumptions; only least and most are certain.",
            LLPWarning,
            stacklevel=3,
        )
    usual = SENSITIVITY_WITHOUT if bags is None or bags.known is None else SENSITIVITY
    common = (np.hypot(usual, excess) * found.reach) ** 2 if halvings else np.zeros_like(model)
    return _as_frame(header, names, found, model, common, level, len(pairs)), memory


def _take_rows(by: Any, memory: FitRecord) -> Any:
    """The subgroups of the rows that were used, if those of the whole table were given."""
    if by is None or isinstance(by, str) or not hasattr(by, "__len__") or len(by) != len(memory.every_row):
        return by
    if hasattr(by, "iloc"):
        return by.iloc[memory.rows]
    values = list(by)
    return [values[i] for i in memory.rows]


def read_groups(by: Any, frame: pd.DataFrame) -> tuple[list[Hashable], IntArray]:
    """The subgroups and the one of each row; rows with a missing value form their own subgroup.

    Args:
        by: the name of a column, or one value per row.
        frame: the table.
    """
    import pandas as pd

    if by is None:
        raise UsageError("by is missing: pass the name of a column, or one value per row.")
    if isinstance(by, str):
        by = frame[check_column(by, frame)]
    if isinstance(by, pd.DataFrame) or not hasattr(by, "__iter__"):
        raise UsageError("by must be the name of one column, or one value per row.")
    check_order(by, frame, "by")
    values = pd.Series(by.array if isinstance(by, pd.Series) else list(by))
    if len(values) != len(frame):
        raise UsageError(f"by must have one value for each of the {len(frame):,} rows, got {len(values):,} values.")
    codes, found = pd.factorize(values, use_na_sentinel=False)
    names = list(found)
    order = [i for i, name in enumerate(names) if not pd.isna(name)]
    missing = [i for i, name in enumerate(names) if pd.isna(name)]
    try:
        order.sort(key=lambda i: names[i])
    except TypeError:
        order.sort(key=lambda i: str(names[i]))
    order += missing
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return [names[i] for i in order], place[codes]


def _with_halves(memory: FitRecord | None, wanted: int) -> FitRecord | None:
    """The memory with at least ``wanted`` splits into halves, if the method can be fitted on them."""
    if memory is None:
        return None
    made = list(memory.halves)
    while len(made) < wanted:
        cut = memory.trainer.halve(memory.train, memory.held_out, len(made))
        if cut is None:
            break
        made.append(cut)
    return replace(memory, halves=tuple(made))


def _half_logits(header: Header, half: UnseenBags, features: FloatArray) -> FloatArray:
    """Logits of a half's model, with the slope of the model and shifted to the shares of its own bags."""
    logits = half.predictor.logits(features)
    if header.shrinkage is None:
        return logits
    return make_shrinkage(header.shrinkage.slope, half.logits, half.shares).logits(logits)


def _as_frame(
    header: Header,
    names: list[Hashable],
    found: Totals,
    model: FloatArray,
    common: FloatArray,
    level: float,
    cuts: int,
) -> pd.DataFrame:
    import pandas as pd

    known = found.variance + common
    reach = quantile(level, known, model, cuts) * np.sqrt(known + model)
    low = np.clip(found.total - reach, found.least, found.most)
    high = np.clip(found.total + reach, found.least, found.most)
    classes = len(header.classes)
    shown = [1] if classes == 2 else list(range(classes))
    if classes == 2:
        index: pd.Index[Any] = pd.Index(names, name="subgroup", tupleize_cols=False)
    else:
        index = pd.MultiIndex.from_product([names, header.classes], names=["subgroup", "class"])
    columns = {"total": found.total, "low": low, "high": high, "least": found.least, "most": found.most}
    values = {name: array[:, shown].ravel() for name, array in columns.items()}
    return pd.DataFrame({"rows": np.repeat(found.rows, len(shown)), **values}, index=index)


@dataclass(frozen=True)
class Totals:
    """Expected totals of subgroups.

    Attributes:
        rows: (groups,) rows.
        total: (groups, C) expected number of each class.
        variance: (groups, C) its variance by chance and bag effects.
        least: (groups, C) lower bound from the counts alone.
        most: (groups, C) upper bound.
        reach: (groups, C) derivative of the total by a shift of the subgroup's log-odds.
    """

    rows: IntArray
    total: FloatArray
    variance: FloatArray
    least: FloatArray
    most: FloatArray
    reach: FloatArray


def expected_totals(
    logits: FloatArray, groups: IntArray, n_groups: int, bags: KnownBags | None, effect: FloatArray
) -> Totals:
    """Totals of subgroups from the logits of their rows.

    Args:
        logits: (n, C) logits of the rows.
        groups: (n,) subgroup of each row.
        n_groups: number of subgroups.
        bags: bags of the rows, if known.
        effect: (C,) variance of a bag's proportions beyond chance, ``φ π (1 − π)``.
    """
    rows = np.bincount(groups, minlength=n_groups)
    total, variance, least, most, reach = (np.zeros((n_groups, logits.shape[1])) for _ in range(5))
    if bags is None:
        p = softmax(logits)
        np.add.at(total, groups, p)
        np.add.at(variance, groups, p * (1.0 - p))
        return Totals(rows, total, variance, least, most + rows[:, None], variance)
    if bags.bags.overlap is not None and bags.known is not None:
        return _totals_of_groupings(logits, groups, n_groups, bags.bags, bags.known, effect)
    numbers = bags.bags.numbers
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        known = None if bags.known is None else bags.known.take(numbers[members[:1]])
        inside, place = np.unique(groups[members], return_inverse=True)
        found = _totals_of_bag(logits[members], place, len(inside), known, effect)
        for whole, part in zip((total, variance, least, most, reach), found, strict=True):
            whole[inside] += part
    return Totals(rows, total, variance, least, most, reach)


def _totals_of_groupings(
    logits: FloatArray, groups: IntArray, n_groups: int, bags: BagIds, known: KnownCounts, effect: FloatArray
) -> Totals:
    """Totals given several groupings: variance and bounds are the best that one of them implies."""
    p = posteriors(logits, bags, known, effect)
    total = np.stack([np.bincount(groups, column, n_groups) for column in p.T], axis=1)
    size = np.bincount(groups, minlength=n_groups)
    best: list[FloatArray] = []
    assert bags.overlap is not None
    for g in range(len(bags.overlap.groupings)):
        own, rows, numbers = bags.of_grouping(g)
        found = np.zeros((4, *total.shape))
        outside = np.setdiff1d(np.arange(len(p)), rows)  # nothing is known about them
        drawn = p[outside] * (1.0 - p[outside])
        np.add.at(found[0], groups[outside], drawn)
        np.add.at(found[3], groups[outside], drawn)
        found[2] += np.bincount(groups[outside], minlength=n_groups)[:, None]
        in_order = rows[np.argsort(numbers, kind="stable")]
        for b, members in enumerate(np.split(in_order, np.cumsum(bags.sizes[own])[:-1])):
            inside, place = np.unique(groups[members], return_inverse=True)
            part = _totals_of_bag(logits[members], place, len(inside), known.take(own[[b]]), effect, p[members])
            for whole, added in zip(found, part[1:], strict=True):
                whole[inside] += added
        best = [pick(a, b) for pick, a, b in zip(_BEST, best, found, strict=True)] if best else list(found)
    variance, least, most, reach = best
    return Totals(size, np.clip(total, least, most), variance, least, most, reach)


_BEST = (np.minimum, np.maximum, np.minimum, np.minimum)
"""Of variances, lower bounds, upper bounds and derivatives."""


def _totals_of_bag(
    logits: FloatArray,
    groups: IntArray,
    n_groups: int,
    known: KnownCounts | None,
    effect: FloatArray,
    given: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """(groups, C) totals in one bag: expected, variance, lower and upper bound, derivative.

    ``given`` are the rows' probabilities given all counts, if they have been computed.
    """
    sizes = np.bincount(groups, minlength=n_groups)[:, None].astype(np.float64)
    size, shape = len(logits), (n_groups, logits.shape[1])
    least, most = np.zeros(shape), np.repeat(sizes, shape[1], axis=1)
    p = softmax(logits)
    noise: FloatArray = np.zeros(shape[1])
    if known is not None:
        low, high, sd = known.low[0], known.high[0], float(known.sd[0])
        prior = (p * (1.0 - p)).sum(axis=0) + size**2 * effect
        doubt = sd**2 + (high - low) * (high - low + 2.0) / 12.0  # of a number noise; uniform on the interval
        noise = prior * doubt / np.maximum(prior + doubt, 1e-300)
        p = posterior_of_bag(logits, low, high, sd, effect) if given is None else given
        if sd == 0:
            at_least, at_most = np.floor(low + _WHOLE), np.ceil(high - _WHOLE)
            least, most = np.maximum(least, at_least - (size - sizes)), np.minimum(most, at_most)
    total, drawn = np.zeros(shape), np.zeros(shape)
    np.add.at(total, groups, p)
    np.add.at(drawn, groups, p * (1.0 - p))
    if known is None:
        return total, drawn + sizes**2 * effect, least, most, drawn
    share = drawn / np.maximum(drawn.sum(axis=0), 1e-300)
    split = drawn * (1.0 - share)
    return total, split + share**2 * noise, least, most, split


def excess_between_bags(
    logits: FloatArray, groups: IntArray, n_groups: int, numbers: IntArray, known: KnownCounts, effect: FloatArray
) -> FloatArray:
    """(groups, C) how far the log-odds of a subgroup are off between bags, beyond chance; 0 where it may be chance.

    Args:
        logits: (n, C) logits of the rows, without knowledge of their bags.
        groups: (n,) subgroup of each row.
        n_groups: number of subgroups.
        numbers: (n,) bag of each row.
        known: the counts of the bags.
        effect: (C,) variance of a bag's proportions beyond chance.
    """
    p = softmax(logits)
    sizes = np.bincount(numbers, minlength=len(known.low)).astype(np.float64)
    excess = np.zeros((n_groups, p.shape[1]))
    for c in range(p.shape[1]):
        count = 0.5 * (known.low[:, c] + known.high[:, c])
        doubt = known.sd**2 + (known.high[:, c] - known.low[:, c]) ** 2 / 12.0
        left = (count - np.bincount(numbers, p[:, c], len(sizes))) / sizes
        drawn = p[:, c] * (1.0 - p[:, c])
        weights = 1.0 / ((np.bincount(numbers, drawn, len(sizes)) + doubt + _WHOLE) / sizes**2 + effect[c])
        for g in range(n_groups):
            moved = np.bincount(numbers, drawn * (groups == g), len(sizes)) / sizes
            excess[g, c] = slope_beyond_chance(moved, left, weights)
    return excess
