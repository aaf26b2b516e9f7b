"""Shrink the logits of a model towards a constant prediction, as far as held-out bags require.

A model predicts ``p``, a constant predicts ``π``, the known share of each class. Between them lie, for ``0 ≤ t ≤ 1``,

    log p_t = t log p + shift(t),

with the shift at which the mean over the rows of the table is ``π``: ``t = 0`` is the constant, ``t = 1`` the model
shifted to the known shares. Bags that the model was not fitted on tell which ``t`` is right: for each ``t`` their
counts have a likelihood (``spread.bag_log_likelihood``), with the spread ``φ`` that fits this ``t`` best. Three
hypotheses have equal prior probability: the model is right (``t = 1``); it says nothing (``t = 0``); it is
overconfident by a factor of up to 64. The slope that is used is the posterior mean of ``t``: close to 0 for a useless
model, whose log loss is then close to that of the constant, and close to 1 for a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.levelling import binary_shift, class_shifts
from llpbench.experiment.rules import bag_means
from llpbench.owndata.judging.predictor import softmax
from llpbench.owndata.judging.spread import bag_log_likelihood, within_variance

SLOPES: tuple[float, ...] = (0.0, *np.geomspace(1.0 / 64.0, 1.0, 13).tolist())
"""The candidate slopes; the first is the constant, the last the model as it is."""
_PHIS = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 31)])


class Shrinkage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map ``slope · log p + shift``, up to a constant for each row.

    Attributes:
        slope: ``t``: 1 leaves the model as it is, 0 makes it a constant.
        shift: one number for each class; the first is 0.
    """

    slope: float
    shift: tuple[float, ...]

    def logits(self, logits: FloatArray) -> FloatArray:
        """(n, C) logits, scaled and shifted."""
        return np.asarray(self.slope * logits + np.array(self.shift))


def make_shrinkage(slope: float, logits: FloatArray, shares: FloatArray) -> Shrinkage:
    """The map with slope ``t`` whose mean prediction over rows with (n, C) ``logits`` is ``shares``, inside (0, 1)."""
    scaled = slope * logits
    if logits.shape[1] == 2:
        return Shrinkage(slope, (0.0, binary_shift(scaled[:, 1] - scaled[:, 0], float(shares[1]))))
    shift = class_shifts(scaled, shares)
    return Shrinkage(slope, tuple(map(float, shift - shift[0])))


@dataclass(frozen=True)
class JudgedBags:
    """Bags that a model was not fitted on, and the predictions at each slope.

    Attributes:
        known: (bags, C) known proportions, including noise.
        sizes: (bags,) rows.
        shares: (bags, C) prediction of the constant: the shares of the training bags.
        means: (slopes, bags, C) predicted proportions.
        within: (slopes, bags, C) their chance variance.
    """

    known: FloatArray
    sizes: FloatArray
    shares: FloatArray
    means: FloatArray
    within: FloatArray

    def __len__(self) -> int:
        return len(self.known)


def predict_bags(
    logits: FloatArray, shares: FloatArray, judged_logits: FloatArray, judged: Bags, slopes: Sequence[float] = SLOPES
) -> JudgedBags:
    """Predictions for bags that a model was not fitted on, at each slope.

    Of several groupings the other bags imply the total of those held out: it is not judged, and all predictions of a
    grouping are shifted to it.

    Args:
        logits: (n, C) logits of the training rows.
        shares: (C,) shares of the classes among them.
        judged_logits: (m, C) logits of the rows of these bags, bag after bag.
        judged: the bags.
        slopes: the slopes.
    """
    means, within = [], []
    for slope in slopes:
        p = softmax(make_shrinkage(slope, logits, shares).logits(judged_logits))
        means.append(bag_means(p, judged))
        within.append(within_variance(p, judged))
    known = all_classes(np.asarray(judged.proportions, np.float64))
    constant = np.repeat(shares[None, :], len(judged), axis=0)
    if judged.overlap is not None:
        means, constant = [_shifted(each, known, judged) for each in means], _shifted(constant, known, judged)
    return JudgedBags(known, judged.sizes.astype(np.float64), constant, np.stack(means), np.stack(within))


def _shifted(means: FloatArray, known: FloatArray, bags: Bags) -> FloatArray:
    """Predicted proportions plus one number for each grouping and class, at which its totals are the known ones."""
    grouping = bags.grouping_of
    gaps = [np.bincount(grouping, bags.sizes * gap) for gap in (known - means).T]
    return np.asarray(means + (np.stack(gaps, axis=1) / np.bincount(grouping, bags.sizes).clip(1.0)[:, None])[grouping])


def join(parts: Sequence[JudgedBags]) -> JudgedBags:
    """Concatenate the bags of several fits."""
    return JudgedBags(
        known=np.concatenate([part.known for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        shares=np.concatenate([part.shares for part in parts]),
        means=np.concatenate([part.means for part in parts], axis=1),
        within=np.concatenate([part.within for part in parts], axis=1),
    )


@dataclass(frozen=True)
class SlopeEvidence:
    """How well each slope explains the bags.

    Attributes:
        slopes: the slopes, relative to the largest.
        likelihood: (slopes, bags) log-likelihood of each bag.
        phi: (slopes,) the intraclass correlation that each slope leaves.
        penalty: (slopes,) penalty for a ``phi`` far from that of all bags.
    """

    slopes: FloatArray
    likelihood: FloatArray
    phi: FloatArray
    penalty: FloatArray

    @property
    def total(self) -> FloatArray:
        """(slopes,) penalised log-likelihood of all bags."""
        return np.asarray(self.likelihood.sum(axis=1) - self.penalty)

    @property
    def weights(self) -> FloatArray:
        """(slopes,) posterior probability of each slope."""
        weights: FloatArray = softmax((_log_prior(len(self.slopes)) + self.total)[None, :])[0]
        return weights

    @property
    def slope(self) -> float:
        """The posterior mean of the slope."""
        return float(self.weights @ self.slopes)

    @property
    def is_decided(self) -> bool:
        """Whether the slope is known to within a tenth and clearly not 0."""
        doubt = float(np.sqrt(self.weights @ (self.slopes - self.slope) ** 2))
        return doubt < 0.1 and self.z > 3.0

    @property
    def z(self) -> float:
        """Gain of the best slope over the constant, in standard deviations: ``√(2 Δ log-likelihood)``."""
        return float(np.sqrt(max(2.0 * (self.total.max() - self.total[0]), 0.0)))

    def gains(self) -> FloatArray:
        """(bags,) gain over the constant on each bag, in nats, with the slope estimated from the other bags."""
        others = (_log_prior(len(self.slopes)) + self.total)[:, None] - self.likelihood
        others = others - _log_sum(others)
        return np.asarray(_log_sum(others + self.likelihood) - self.likelihood[0])


def weigh_slopes(judged: JudgedBags, phi: float, slopes: Sequence[float] = SLOPES) -> SlopeEvidence:
    """Estimate the slope from bags that the model was not fitted on.

    With few bags the spread that a slope leaves is hard to estimate; the penalty ``½ (log ratio / 2)²`` keeps it near
    that of all bags around the constant.

    Args:
        judged: the bags, with predictions at each slope.
        phi: intraclass correlation of all bags around the constant.
        slopes: the slopes.
    """
    shares = judged.shares.mean(axis=0)
    chance = float(np.mean(1.0 / judged.sizes))
    penalties = 0.5 * (np.log((_PHIS + chance) / (phi + chance)) / 2.0) ** 2
    likelihood, phis, paid = [], [], []
    for means, within in zip(judged.means, judged.within, strict=True):
        tried = [bag_log_likelihood(judged.known, means, within, shares, float(value)) for value in _PHIS]
        best = int(np.argmax(np.sum(tried, axis=1) - penalties))
        likelihood.append(tried[best])
        phis.append(_PHIS[best])
        paid.append(penalties[best])
    return SlopeEvidence(np.array(slopes), np.stack(likelihood), np.array(phis), np.array(paid))


def _log_prior(slopes: int) -> FloatArray:
    """A third each for the constant, for the model as it is, and for all slopes in between."""
    between = slopes - 2
    return np.log(np.array([1.0, *[1.0 / between] * between, 1.0]) / 3.0)


def _log_sum(values: FloatArray) -> FloatArray:
    top = values.max(axis=0)
    return np.asarray(top + np.log(np.exp(values - top).sum(axis=0)))
