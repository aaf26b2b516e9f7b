"""Facts about a fit: what the bags are like, the score on held-out bags, and warnings. Kept in the model file.

The bag card of a benchmark setting (``experiment/bag_card.py``) is computed from true labels. This one has no labels,
and asks what could be chance: noise in the counts is taken into account, and features are compared by the *means* of
bags (``mean_spread``), which reveal differences between bags long before single rows do.
"""

from __future__ import annotations

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.experiment.count_laws import all_classes
from llpbench.owndata.judging.spread import chance_variance, class_shares, spread_ratio

PERCENTILES = (0, 25, 50, 75, 100)
CLEAR = 2.33
"""Standard deviations above which a model counts as better than a constant."""
FEW_BAGS = 10
ALIKE = 0.5
"""Ratio to the spread of random bags below which bags count as alike."""
WIDE = 2.0
"""Ratio to the chance spread, after the model, above which the spread counts as far more than binomial."""
NATURAL = 1.2
"""Ratio to the chance spread above which bags do not count as random."""
AGREED = 0.3
"""Agreement below which a model counts as unsure of single rows."""
LEAST_AGREED = 0.15
"""Agreement below which no model counts as better than a constant: what it knows about bags may be wrong for rows."""
NO_FACTS = "This model file has no report: an older version of llpbench wrote it."
_RARE = 0.01


class OwnBagCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A description of a user's bags, from features and counts.

    Attributes:
        bags: number of bags.
        rows: number of rows in them.
        sizes: minimum, quartiles and maximum of the bag sizes.
        shares: share of each class over all rows.
        proportion_sd: standard deviation over bags of the proportion of each class.
        spread: spread of the proportions relative to chance; 1 for random bags, 0 if all are equal.
        mean_spread: spread of the bags' mean features relative to chance; 1 for random bags.
    """

    bags: int
    rows: int
    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    proportion_sd: tuple[float, ...]
    spread: float
    mean_spread: float


class HeldOutScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Score of a model on bags that it was not fitted on, compared with a constant (the share of each class).

    Intervals are 90 % bootstrap intervals over bags; that of ``saved`` is widened for few bags, and by the spread
    between splits into halves.

    Attributes:
        bags: number of bags it was scored on.
        halved: whether fits on halves of the bags contributed; if not, only the bags that also selected the model.
        slope: factor on the logits: 1 leaves the model as it is, 0 makes it a constant.
        agreement: agreement on single rows of two fits on as many bags, 0 to 1, as halves of the bags lead to expect;
            None for random bags.
        z: gain over the constant, in standard deviations.
        error: mean absolute error of the bags' proportions.
        constant_error: that of the constant.
        saved: (low, high) interval of ``constant_error − error``.
        gain: gain over the constant in nats per bag, with the slope estimated from the other bags.
        gains: (low, high) its interval.
        explained: explained share of the variance of proportions, ``1 − Σ (α − p)² / Σ (α − π)²``.
        spread: distance of the proportions from the model's, relative to chance, before halves that disagree on rows
            reduce the slope; 1 for random bags.
        phi: intraclass correlation of labels in a bag that the model leaves unexplained.
    """

    bags: int
    halved: bool
    slope: float
    agreement: float | None
    z: float
    error: float
    constant_error: float
    saved: tuple[float, float]
    gain: float
    gains: tuple[float, float]
    explained: float
    spread: float
    phi: float

    @property
    def better(self) -> bool:
        """Whether the model is clearly better than a constant."""
        return clearly_better(self.z, self.gains[0], self.slope, self.agreement)


def clearly_better(z: float, least_gain: float, slope: float, agreement: float | None) -> bool:
    """Whether a model is clearly better than a constant: by likelihood (one-sided, 1 %), on most bags, and on rows.

    Args:
        z: gain over the constant, in standard deviations.
        least_gain: lower end of the interval of the gain per bag.
        slope: the slope of its logits.
        agreement: agreement of fits on single rows; None for random bags.
    """
    return z > CLEAR and least_gain > 0.0 and slope > 0.0 and (agreement is None or agreement >= LEAST_AGREED)


class CalibrationPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Held-out bags with similar predictions: their number, mean predicted and mean known proportion of one class."""

    label: int
    bags: int
    predicted: float
    known: float


class FitFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a fit's report, except column importances.

    Attributes:
        card: what the bags are like.
        score: score on held-out bags.
        points: predicted and known proportions of held-out bags, in groups if there are many.
        warnings: warnings that the user got.
    """

    card: OwnBagCard
    score: HeldOutScore
    points: tuple[CalibrationPoint, ...]
    warnings: tuple[str, ...]


def make_own_card(bags: Bags) -> OwnBagCard:
    """Describe bags."""
    shares = class_shares(bags)
    known = all_classes(np.asarray(bags.proportions, np.float64))
    chance = chance_variance(shares, bags.sizes, bags.count_sds)
    many = len(bags) > 1
    freed = len(bags) / (len(bags) - 1) if many else 1.0  # the shares are the bags' own
    return OwnBagCard(
        bags=len(bags),
        rows=len(bags.X),
        sizes=tuple(int(size) for size in np.percentile(bags.sizes, PERCENTILES, method="nearest")),
        shares=tuple(map(float, shares)),
        proportion_sd=tuple(map(float, known.std(axis=0, ddof=1 if many else 0))),
        spread=float(np.sqrt(freed)) * spread_ratio(known, shares, shares, chance),
        mean_spread=mean_spread(bags),
    )


def mean_spread(bags: Bags) -> float:
    """Root of ``between / within``: 1 for random bags, 0 for bags with equal means.

    ``between = Σ_b B_b ‖m_b − m‖² / (bags − 1)`` and ``within = Σ_i ‖x_i − m_b(i)‖² / (n − bags)`` both estimate the
    variance of single rows if bags are random. 1 if it is undefined (one bag, or bags of one row).
    """
    X: FloatArray = np.asarray(bags.X, np.float64).reshape(len(bags.X), -1)
    n, many = len(bags.members), len(bags)
    if many < 2 or n <= many:
        return 1.0
    sizes = bags.sizes[:, None]
    if bags.overlap is None:
        means, squares = np.add.reduceat(X, bags.offsets[:-1], axis=0) / sizes, float(np.einsum("ij,ij->", X, X))
        centre = X.mean(axis=0)
    else:
        own = np.split(bags.members, bags.offsets[1:-1])
        means = np.stack([X[rows].mean(axis=0) for rows in own])
        times = np.bincount(bags.members, minlength=len(X))
        centre, squares = np.average(X, axis=0, weights=times), float(times @ (X**2).sum(axis=1))
    between = float((sizes * (means - centre) ** 2).sum()) / (many - 1)
    within = float(squares - (sizes * means**2).sum()) / (n - many)
    return float(np.sqrt(between / within)) if within > 0 else 1.0


def is_random(card: OwnBagCard) -> bool:
    """Whether bags look like random groups of rows, by their proportions and their features."""
    return not any(_beyond_chance(ratio, card.bags - 1, NATURAL) for ratio in (card.spread, card.mean_spread))


def find_warnings(card: OwnBagCard, score: HeldOutScore) -> tuple[str, ...]:
    """Warnings about bags and the model fitted on them."""
    shrunk = (
        f"Its probabilities are shrunk towards the overall shares: {100 * score.slope:.0f} % of its logits are kept."
    )
    found = []
    if not score.better:
        found.append(
            f"the model is not clearly better than a constant: on {score.bags:,} held-out bag"
            f"{'s' if score.bags != 1 else ''} the error of its proportions is {points(score.error)} percentage "
            f"points, that of the overall share {points(score.constant_error)}. {shrunk}"
        )
    elif score.agreement is not None and score.agreement < AGREED:
        found.append(
            "the model is unsure of single rows: the agreement expected of a fit on other bags is only "
            f"{100 * score.agreement:.0f} %. It separates bags, but much of what it predicts within a bag is noise. "
            f"{shrunk}"
        )
    if card.bags < FEW_BAGS:
        found.append(f"there are only {card.bags} bags, so the model rests on {card.bags} numbers for each class.")
    if _below_chance(card.spread, card.bags - 1):
        found.append(
            f"the proportions of the bags hardly differ (standard deviation {points(max(card.proportion_sd))} "
            f"percentage points, {card.spread:.2f} times that of random bags), so little can be learned from them."
        )
    if _below_chance(card.mean_spread, card.bags - 1):
        found.append(
            f"the features of the bags hardly differ (the spread of their means is {card.mean_spread:.2f} times that "
            "of random bags), so proportions cannot be attributed to columns."
        )
    if _beyond_chance(score.spread, score.bags, WIDE):
        found.append(
            "the bags differ for reasons that no column explains: the distance of their proportions from the model's "
            f"is {score.spread:.1f} times what chance (binomial) explains. Labels within a bag are correlated."
        )
    return tuple(found)


def _below_chance(ratio: float, freedom: int) -> bool:
    """Whether a spread is significantly and much smaller than chance: a χ² test."""
    from scipy.stats import chi2

    freedom = max(freedom, 1)
    return ratio < ALIKE and float(chi2.cdf(freedom * ratio**2, freedom)) < _RARE


def _beyond_chance(ratio: float, freedom: int, least: float) -> bool:
    """Whether a spread is at least ``least`` times that of chance, and significantly so."""
    from scipy.stats import chi2

    freedom = max(freedom, 1)
    return ratio >= least and float(chi2.sf(freedom * ratio**2, freedom)) < _RARE


def points(share: float) -> str:
    """A share in percentage points."""
    return f"{100.0 * share:.1f}"
