"""Each column by itself as a model; the selection rule chooses among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from llpbench import Bags, FloatArray, IntArray, Monitor, State
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.shares import all_classes, scale_to_shares

WEAK = 1e-3
"""Slope (per standard deviation of the column) of a column whose bag means carry no information."""


@dataclass(frozen=True)
class ColumnModel:
    """``P(y = c | x) ∝ exp(u_c + v_c x_j)`` of one column j.

    Attributes:
        column: number of the column; -1 for none (shares alone).
        offsets: (C,) the ``u_c``.
        slopes: (C,) the ``v_c``.
    """

    column: int
    offsets: FloatArray
    slopes: FloatArray

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        x = X[:, self.column].astype(np.float64) if self.column >= 0 else np.zeros(len(X))
        p: FloatArray = softmax(self.offsets + x[:, None] * self.slopes, axis=1)
        return p[:, 1] if len(self.offsets) == 2 else p


def class_slopes(means: FloatArray, shares: FloatArray, sizes: IntArray, prior: FloatArray) -> FloatArray:
    """Slopes ``v_c = b_c / π_c`` from the regression ``α_{b,c} ≈ a_c + b_c x̄_b`` (bags weighted by size), centred.

    Near the mean, ``softmax(log π + v x)_c ≈ π_c + π_c (v_c − Σ π v) x``, so these slopes give the regression's
    probabilities to first order. Bags whose means do not differ give slopes 0.

    Args:
        means: (bags,) mean of the column in each bag.
        shares: (bags, C) class shares.
        sizes: (bags,) rows of each bag.
        prior: (C,) class shares of all rows.
    """
    weight = sizes / sizes.sum()
    gap = means - weight @ means
    variance = weight @ gap**2
    if variance <= 1e-12 * (weight @ means**2) or variance == 0:
        return np.zeros(shares.shape[1])
    b = (weight * gap) @ (shares - weight @ shares) / variance
    slopes = b / np.maximum(prior, 1e-3)
    centred: FloatArray = slopes - prior @ slopes
    return centred


def offsets_for(x: FloatArray, slopes: FloatArray, prior: FloatArray, rounds: int = 50) -> FloatArray:
    """Offsets at which the mean prediction over the values is the prior (iterative scaling)."""
    target = np.maximum(prior, 1e-6)
    start = np.log(target) - slopes * x.mean()
    return scale_to_shares(x[:, None] * slopes, target, start, rounds=rounds, tol=1e-6, least=1e-300)


def even_quantiles(x: FloatArray, points: int = 512) -> FloatArray:
    """Evenly spaced quantiles of the values, at most ``points`` of them."""
    return np.asarray(np.sort(x)[np.linspace(0, len(x) - 1, min(points, len(x))).astype(int)])


class BestFeature:
    """Reports a model of every column; each selection rule selects its own best one.

    Proportions are used as they are, noisy ones too. A column that is constant over the training rows is left out;
    when all are, the class shares alone are the model.

    Args:
        signs: ``both`` or ``bags``.
        patience: reports without improvement before the search ends (the monitor's).
    """

    def __init__(self, signs: str = "both", patience: int = 1_000_000) -> None:
        self.signs, self.patience = signs, patience

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BestFeature:  # noqa: ARG002
        """Report every column; keep the best by held-out bags."""
        shares, prior = all_classes(bags.proportions), all_classes(bags.prior)
        self.model_ = ColumnModel(-1, np.log(np.maximum(prior, 1e-6)), np.zeros(bags.classes))
        monitor.report(self.predict_scores)
        for j in range(bags.X.shape[1]):
            for model in self._models(bags, j, shares, prior):
                if monitor.report(model.probabilities):
                    self.model_ = model
            if monitor.should_stop:
                break
        monitor.note("column", self.model_.column)
        return self

    def _models(self, bags: Bags, j: int, shares: FloatArray, prior: FloatArray) -> list[ColumnModel]:
        """The column in the direction of its bag means, and in the opposite one."""
        x = bags.X[:, j].astype(np.float64)
        spread = float(x.std())
        if x.min() == x.max() or spread == 0:
            return []
        means = bag_means(x, bags.offsets)
        slopes = class_slopes(means, shares, bags.sizes, prior)
        if np.abs(slopes).max() * spread < WEAK:
            towards_last = np.arange(bags.classes) - (bags.classes - 1) / 2
            slopes = WEAK / spread * towards_last
        shown = even_quantiles(x)
        signs = (1.0, -1.0) if self.signs == "both" else (1.0,)
        return [ColumnModel(j, offsets_for(shown, sign * slopes, prior), sign * slopes) for sign in signs]

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class, by the best column."""
        return self.model_.probabilities(X)

    def state(self) -> State:
        """The column and its curve."""
        return {"column": self.model_.column, "offsets": self.model_.offsets, "slopes": self.model_.slopes}

    def restore(self, state: State) -> BestFeature:
        """Take up a saved column."""
        offsets, slopes = (np.asarray(state[name], np.float64) for name in ("offsets", "slopes"))
        if offsets.ndim != 1 or offsets.shape != slopes.shape:
            raise ValueError(f"offsets of shape {offsets.shape} do not match slopes of shape {slopes.shape}")
        self.model_ = ColumnModel(int(np.asarray(state["column"])), offsets, slopes)
        return self
