"""What is known of a fit besides the model: kept in memory and, since it is small, in the model file."""

from __future__ import annotations

import msgspec

from llpbench.owndata.judging.bag_card import OwnBagCard

CLEAR = 2.33
"""Standard deviations from which on a model is called better than a constant."""


class HeldBackScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a model did on bags that it has not learned from, against a constant (the share of each class).

    Intervals are of 90 %, from drawing the bags anew with replacement.

    Attributes:
        bags: bags that it was judged on.
        halved: whether fits on halves of the bags helped to judge it; if not, only the bags that also chose the model.
        slope: how sure the model may be: 1 as it is, 0 not at all (a constant).
        agreement: how far fits on two halves of the bags agree on single rows, 0 to 1; None where bags are at random.
        z: how clearly it beats a constant, in standard deviations.
        error: mean absolute error of the bags' proportions, in shares of a bag.
        constant_error: that of the constant.
        saved: (low, high) interval of ``constant_error − error``.
        gain: gain over the constant in nats for a bag, the slope weighed by the other bags.
        gains: (low, high) its interval.
        explained: share of the spread of proportions that the model explains, ``1 − Σ (α − p)² / Σ (α − π)²``.
        spread: how many times as far as chance the proportions are from what the model says of bags (before halves
            that disagree on rows take from its slope); 1 for bags at random.
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
        """Whether the model is clearly better than a constant: by its likelihood (one-sided, 1 %) and on most bags."""
        return self.z > CLEAR and self.gains[0] > 0.0 and self.slope > 0.0


class CalibrationPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Held-back bags of like predictions: their number, mean predicted and mean known proportion of one class."""

    label: int
    bags: int
    predicted: float
    known: float


class FitFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a report of a fit says, but the columns that matter.

    Attributes:
        card: what the bags are like.
        score: how the model did on held-back bags.
        points: predicted and known proportions of held-back bags, grouped where they are many.
        warnings: what the user was warned of.
    """

    card: OwnBagCard
    score: HeldBackScore
    points: tuple[CalibrationPoint, ...]
    warnings: tuple[str, ...]
