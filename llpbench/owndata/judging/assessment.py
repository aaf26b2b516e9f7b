"""Score a model on bags that it was not fitted on, and find how confident its probabilities may be.

**Between bags.** Held-out bags tell how well the model's bag means follow the known proportions
(``owndata/judging/shrinkage.py``). If these bags do not tell enough, the other bags are split into two halves, the
method is fitted on each half and scored on the other: every bag is then scored by a model that was not fitted on it.

**Within bags.** Counts do not tell which rows of a bag are positive. For random bags this does not matter, since what
separates bags also separates rows. But days or regions may differ by the weather while the model also relies on columns
that are the same every day, and no count contradicts it. The two halves do: with logits ``s + e`` and ``s + e'`` of the
same rows, ``s`` found by both and ``e`` by one only, their correlation ``ρ`` over rows is the share of ``s``. Both
halves may still have learned the same wrong thing; the less they share, the more likely. The **agreement** ``ρ²``, the
share of the variance of one half's logits that the other's explain, is the largest slope that is allowed for bags that
are not random. (With ``ρ`` itself, log loss on flights by day was up to .08 above that of the constant; with ``ρ²`` at
most .01.)
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

MANY_BAGS = 20
"""Number of bags from which on one split into halves may be enough."""
_SURE = 0.5
"""Agreement of halves from which on one split is enough."""
_MORE_CUTS = 2
_MOST_ROWS = 20_000
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
    return [main, *(halves[0] if halves else ())]


def assess(
    main: UnseenBags, everything: Bags, halve: Callable[[int], Halves | None], halvings: int | None, seed: int
) -> tuple[FitFacts, tuple[Halves, ...]]:
    """Compare a model with a constant on bags that it was not fitted on.

    Args:
        main: the model and its held-out bags.
        everything: all bags.
        halve: splits the other bags into halves and fits on each; its argument numbers the splits.
        halvings: number of splits; None for as many as needed: 0 if bags are random and the held-out ones tell
            enough, otherwise 1, or 3 if there are few bags or the halves disagree.
        seed: seed of the intervals.

    Returns:
        The facts, and the fits on halves that were made for them.
    """
    shares = class_shares(everything)
    known = all_classes(np.asarray(everything.proportions, np.float64))
    phi = intraclass_correlation(known, shares, everything.sizes, everything.count_sd)
    card = make_own_card(everything)
    random = is_random(card)
    needed = 0 if random and weigh_slopes(main.at(SLOPES), phi).is_decided else 1
    rows = everything.X[:: -(-len(everything.X) // _ROWS_COMPARED)]
    halves = _cut(halve, needed if halvings is None else halvings)
    most = agreement(halves, rows) if halves and not random else 1.0
    if halvings is None and halves and (most < _SURE or len(everything) < MANY_BAGS):
        halves = (*halves, *_cut(halve, _MORE_CUTS, start=1))
        most = agreement(halves, rows) if not random else 1.0
    unseen = judged_by(main, halves)
    evidence = weigh_slopes(join([part.at([most * slope for slope in SLOPES]) for part in unseen]), phi)
    slope = most * evidence.slope if most > 0 else 0.0
    score, points = _score(unseen, slope, evidence, phi, everything, seed)
    if halves and not random:
        score = msgspec.structs.replace(
            score, agreement=most, spread=min(score.spread, _spread(unseen, phi, everything))
        )
    return FitFacts(card, score, points, find_warnings(card, score)), halves


def _spread(unseen: Sequence[UnseenBags], phi: float, everything: Bags) -> float:
    """The spread between bags at the slope that bags alone suggest, whatever the agreement on rows."""
    slope = weigh_slopes(join([part.at(SLOPES) for part in unseen]), phi).slope
    judged = join([part.at([slope]) for part in unseen])
    shares = class_shares(everything)
    chance = chance_variance(shares, judged.sizes, everything.count_sd)
    return spread_ratio(judged.known, judged.means[0], shares, chance)


def _cut(halve: Callable[[int], Halves | None], cuts: int, start: int = 0) -> tuple[Halves, ...]:
    made = (halve(number) for number in range(start, start + cuts))
    return tuple(halves for halves in made if halves is not None)


def agreement(halves: Sequence[Halves], rows: FloatArray) -> float:
    """Agreement of the models of two halves on single rows: the squared correlation of their logits, 0 if negative.

    Logits are centred over the classes and clipped at e⁻¹⁸, and splits are pooled: ``Σ 2 a b / Σ (a² + b²)``, so that
    logits of different size do not agree either.

    Args:
        halves: the fits on halves.
        rows: rows of the table.
    """
    both = own = 0.0
    for cut in halves:
        a, b = (_centred(part.predictor.logits(rows)) for part in cut)
        both += 2.0 * float((a * b).sum())
        own += float((a * a).sum() + (b * b).sum())
    return max(both / own, 0.0) ** 2 if own > 0.0 else 0.0


def _centred(logits: FloatArray) -> FloatArray:
    logits = np.maximum(logits - logits.max(axis=1, keepdims=True), -_SUREST)
    logits = logits - logits.mean(axis=1, keepdims=True)
    return np.asarray(logits - logits.mean(axis=0))


def _score(
    unseen: Sequence[UnseenBags], slope: float, evidence: SlopeEvidence, phi: float, everything: Bags, seed: int
) -> tuple[HeldOutScore, tuple[CalibrationPoint, ...]]:
    shares = class_shares(everything)
    judged = join([part.at([slope]) for part in unseen])
    means = judged.means[0]
    errors = _class_mean(np.abs(judged.known - means), shares)
    constant = _class_mean(np.abs(judged.known - judged.shares), shares)
    gains = evidence.gains()
    score = HeldOutScore(
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
        spread=spread_ratio(judged.known, means, shares, chance_variance(shares, judged.sizes, everything.count_sd)),
        phi=float(weigh_slopes(judged, phi, [slope]).phi[0]),
    )
    return score, calibration_points(judged)


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
