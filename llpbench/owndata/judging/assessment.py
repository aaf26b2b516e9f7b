"""Score a model on bags that it was not fitted on, and find how confident its probabilities may be.

**Between bags.** Held-out bags tell how well the model's bag means follow the known proportions
(``owndata/judging/shrinkage.py``). If these bags do not tell enough, the other bags are split into two halves, the
method is fitted on each half and scored on the other: every bag is then scored by a model that was not fitted on it.
Three such splits are averaged (of large tables one is fitted), since one alone depends on chance.

**Within bags.** Counts do not tell which rows of a bag are positive. For random bags this does not matter, since what
separates bags also separates rows. But days or regions may differ by the weather while the model also relies on columns
that are the same every day, and no count contradicts it. The two halves do: with logits ``s + e`` and ``s + e'`` of the
same rows, ``s`` found by both and ``e`` by one only, their correlation ``ρ`` over rows is the share of ``s``. A fit on
all bags has half the variance of ``e``, so its share of ``s`` is ``2ρ / (1 + ρ)`` (Spearman and Brown). Both halves may
still have learned the same wrong thing; the less they share, the more likely. The **agreement**, the square of this
share, is the largest slope that is allowed for bags that are not random. (Nineteen tables of the development list and
three methods, log loss of new bags: on average .530, with ``ρ²`` and one split .546, without a limit .575; more than
.005 above that of a constant for none, 2 and 6 of the 57 models.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.experiment.count_laws import all_classes
from llpbench.owndata.judging.facts import (
    CalibrationPoint,
    FitFacts,
    HeldOutScore,
    find_warnings,
    is_random,
    make_own_card,
)
from llpbench.owndata.judging.predictor import Predictor
from llpbench.owndata.judging.shrinkage import SLOPES, JudgedBags, SlopeEvidence, join, predict_bags, weigh_slopes
from llpbench.owndata.judging.spread import (
    chance_variance,
    class_shares,
    intraclass_correlation,
    spread_ratio,
)

_SPLITS = 3
_MANY_ROWS = 50_000
"""Rows above which one split has to do."""
_MOST_ROWS = 5_000
_ROWS_COMPARED = 5_000
_SUREST = 18.0
_MOST_POINTS = 40
_DRAWS = 1000
_LEVEL = 0.9


@dataclass(frozen=True)
class UnseenBags:
    """A model and bags that it was not fitted on.

    Attributes:
        predictor: the model.
        logits: (n, C) its logits of training rows (evenly spaced ones if there are very many).
        shares: (C,) the shares of the classes in the training bags.
        bags: the bags.
        unseen_logits: (m, C) its logits of their rows.
    """

    predictor: Predictor
    logits: FloatArray
    shares: FloatArray
    bags: Bags
    unseen_logits: FloatArray

    @classmethod
    def of(cls, predictor: Predictor, train: Bags, bags: Bags) -> UnseenBags:
        """Compute the logits of a model that was fitted on ``train``."""
        rows = train.X[:: -(-len(train.X) // _MOST_ROWS)]
        return cls(predictor, predictor.logits(rows), class_shares(train), bags, predictor.logits(bags.X))

    def with_rows(self, rows: FloatArray) -> UnseenBags:
        """The same bags with other features of their rows."""
        return replace(self, unseen_logits=self.predictor.logits(rows))

    def at(self, slopes: Sequence[float]) -> JudgedBags:
        """The model's predictions for the bags at each slope."""
        return predict_bags(self.logits, self.shares, self.unseen_logits, self.bags, slopes)


Halves = tuple[UnseenBags, UnseenBags]
"""Two fits on disjoint halves of the bags, each with the bags of the other half."""


def judged_by(main: UnseenBags, halves: Sequence[Halves]) -> list[UnseenBags]:
    """The model and the first two halves: each bag once, with a model that was not fitted on it."""
    return _splits(main, halves)[0]


def _splits(main: UnseenBags, halves: Sequence[Halves]) -> list[list[UnseenBags]]:
    """For each split into halves each bag once, with a model that was not fitted on it."""
    return [[main, *cut] for cut in halves] or [[main]]


def assess(
    main: UnseenBags,
    everything: Bags,
    halve: Callable[[int], Halves | None],
    halvings: int | None,
    seed: int,
    marginal: bool = False,
) -> tuple[FitFacts, tuple[Halves, ...]]:
    """Compare a model with a constant on bags that it was not fitted on.

    Args:
        main: the model and its held-out bags.
        everything: all bags.
        halve: splits the other bags into halves and fits on each; its argument numbers the splits.
        halvings: number of splits; None for as many as needed: 0 if bags are random and the held-out ones tell
            enough, otherwise 3, or 1 above 50,000 rows.
        seed: seed of the intervals.
        marginal: whether bags are groups by several feature columns. Halves then learn about different values of a
            column, and their agreement about rows says nothing.

    Returns:
        The facts, and the fits on halves that were made for them.
    """
    shares = class_shares(everything)
    known = all_classes(np.asarray(everything.proportions, np.float64))
    phi = intraclass_correlation(known, shares, everything.sizes, everything.count_sds)
    card = make_own_card(everything)
    random = marginal or is_random(card)
    first = weigh_slopes(main.at(SLOPES), phi)
    needed = 0 if random and first.is_decided else _SPLITS if len(everything.X) <= _MANY_ROWS else 1
    halves = _cut(halve, needed if halvings is None else halvings)
    rows = everything.X[:: -(-len(everything.X) // _ROWS_COMPARED)]
    most = agreement(halves, rows) if halves and not random else 1.0
    splits = _splits(main, halves)
    evidence = (
        [weigh_slopes(join([part.at(SLOPES) for part in unseen]), phi) for unseen in splits] if halves else [first]
    )
    slope = min(float(np.mean([found.slope for found in evidence])), most)
    scores = [_score(*each, slope, phi, everything, seed) for each in zip(splits, evidence, strict=True)]
    score = msgspec.structs.replace(_mean_score(scores), agreement=most if halves and not random else None)
    points = calibration_points(join([part.at([slope]) for part in splits[0]]))
    return FitFacts(card, score, points, find_warnings(card, score)), halves


def _mean_score(scores: Sequence[HeldOutScore]) -> HeldOutScore:
    """The score over several splits: the mean of each number; ``saved`` also covers how far splits differ."""
    names = ("z", "error", "constant_error", "gain", "explained", "spread", "phi")
    means = {name: float(np.mean([getattr(score, name) for score in scores])) for name in names}
    low, high = (float(end) for end in np.mean([score.saved for score in scores], axis=0))
    gains = tuple(map(float, np.mean([score.gains for score in scores], axis=0)))
    return msgspec.structs.replace(scores[0], **means, gains=gains, saved=_widen(low, high, scores))


def _widen(low: float, high: float, scores: Sequence[HeldOutScore]) -> tuple[float, float]:
    """An interval of a mean over few bags as wide as Student's t makes it, and by the spread between splits."""
    from scipy.stats import norm, t

    level, bags = 0.5 + _LEVEL / 2.0, max(scores[0].bags, 2)
    half = 0.5 * (high - low) * float(t.ppf(level, bags - 1) / norm.ppf(level)) * np.sqrt(bags / (bags - 1.0))
    if len(scores) > 1:
        spread = np.std([np.mean(score.saved) for score in scores], ddof=1)
        half = np.hypot(half, float(t.ppf(level, len(scores) - 1)) * spread)
    middle = 0.5 * (low + high)
    return float(middle - half), float(middle + half)


def _cut(halve: Callable[[int], Halves | None], cuts: int) -> tuple[Halves, ...]:
    made = (halve(number) for number in range(cuts))
    return tuple(halves for halves in made if halves is not None)


def agreement(halves: Sequence[Halves], rows: FloatArray) -> float:
    """Agreement on single rows of two fits on all bags: the squared correlation of logits that halves lead to expect.

    Logits of halves are centred over the classes and clipped at e⁻¹⁸, and splits are pooled:
    ``ρ = Σ 2 a b / Σ (a² + b²)``, so that logits of different size do not agree either.

    Args:
        halves: the fits on halves.
        rows: rows of the table.
    """
    both = own = 0.0
    for cut in halves:
        a, b = (_centred(part.predictor.logits(rows)) for part in cut)
        both += 2.0 * float((a * b).sum())
        own += float((a * a).sum() + (b * b).sum())
    rho = max(both / own, 0.0) if own > 0.0 else 0.0
    return (2.0 * rho / (1.0 + rho)) ** 2


def _centred(logits: FloatArray) -> FloatArray:
    logits = np.maximum(logits - logits.max(axis=1, keepdims=True), -_SUREST)
    logits = logits - logits.mean(axis=1, keepdims=True)
    return np.asarray(logits - logits.mean(axis=0))


def _score(
    unseen: Sequence[UnseenBags], evidence: SlopeEvidence, slope: float, phi: float, everything: Bags, seed: int
) -> HeldOutScore:
    """The score of one split at a slope."""
    shares = class_shares(everything)
    judged = join([part.at([slope]) for part in unseen])
    free = join([part.at([evidence.slope]) for part in unseen])  # as bags alone suggest, whatever the agreement
    means = judged.means[0]
    errors = _class_mean(np.abs(judged.known - means), shares)
    constant = _class_mean(np.abs(judged.known - judged.shares), shares)
    gains = evidence.gains()
    chance = chance_variance(shares, judged.sizes, np.concatenate([part.bags.count_sds for part in unseen]))
    return HeldOutScore(
        bags=len(judged),
        halved=len(unseen) > 1,
        slope=slope,
        agreement=None,
        z=evidence.z,
        error=float(errors.mean()),
        constant_error=float(constant.mean()),
        saved=interval_of_mean(constant - errors, seed),
        gain=float(gains.mean()),
        gains=interval_of_mean(gains, seed),
        explained=_explained(judged, means),
        spread=min(spread_ratio(judged.known, m, shares, chance) for m in (means, free.means[0])),
        phi=float(weigh_slopes(judged, phi, [slope]).phi[0]),
    )


def interval_of_mean(values: FloatArray, seed: int, level: float = _LEVEL) -> tuple[float, float]:
    """A bootstrap interval of the mean of one value per bag."""
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(_DRAWS)]
    low, high = np.quantile(means, [0.5 - level / 2.0, 0.5 + level / 2.0])
    return float(low), float(high)


def calibration_points(judged: JudgedBags, most: int = _MOST_POINTS) -> tuple[CalibrationPoint, ...]:
    """Predicted and known proportions of bags, in at most ``most`` groups with similar predictions for each class.

    Of two classes only the second is included.
    """
    means, known = judged.means[0], judged.known
    points = []
    for label in range(1 if known.shape[1] == 2 else 0, known.shape[1]):
        order = np.argsort(means[:, label], kind="stable")
        for group in np.array_split(order, min(most, len(order))):
            weights = judged.sizes[group]
            predicted, true = (float(np.average(x[group, label], weights=weights)) for x in (means, known))
            points.append(CalibrationPoint(label, len(group), predicted, true))
    return tuple(points)


def _class_mean(values: FloatArray, shares: FloatArray) -> FloatArray:
    """(bags,) mean over the classes, weighted by ``π (1 − π)``; for two classes simply one of them."""
    return np.asarray(np.average(values, axis=1, weights=shares * (1.0 - shares)))


def _explained(judged: JudgedBags, means: FloatArray) -> float:
    left = float((judged.sizes[:, None] * (judged.known - means) ** 2).sum())
    total = float((judged.sizes[:, None] * (judged.known - judged.shares) ** 2).sum())
    return 1.0 - left / total if total > 0 else 0.0
