"""Bayesian linear regression on bag means with known noise: evidence and posterior in closed form.

A bag's proportion is ``p_b = a + (x̄_b − x̄)·w + e_b``. For random bags the noise is known: it comes from
the labels' own variance, ``var e_b = p(1−p)/B_b``, plus ``(sd/B_b)²`` when noise of known sd was added to the
count. Natural bags have an effect of their own besides, of variance ``v`` (``bag_effect.py`` finds it). The
intercept ``a`` has a flat prior and is projected out; the weights have the prior ``w ~ N(0, s² L Lᵀ)``.

Every step works on matrices with at most ``min(bags, features)`` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Array = NDArray[np.float64]

SCALES = np.logspace(-6.0, 3.0, 46)
"""Prior variances ``s²`` to choose from, as shares of ``p(1−p)``."""


def smoothed_rate(counts: NDArray[Any], rows: int) -> float:
    """Share of a class, ``(Σ c_b + ½) / (N + 1)`` with the sum forced into [0, N]: never 0 or 1."""
    return (float(np.clip(counts.sum(dtype=np.float64), 0.0, rows)) + 0.5) / (rows + 1.0)


def noise_variances(sizes: NDArray[Any], rate: float, count_sd: float, effect: float = 0.0) -> Array:
    """``var e_b = p(1−p)/B_b + (sd/B_b)² + v``, one for each bag; ``effect`` is ``v``, 0 for random bags."""
    variances: Array = rate * (1.0 - rate) / sizes + (count_sd / sizes) ** 2 + effect
    return variances


@dataclass(frozen=True)
class Regression:
    """A regression with unit noise and no intercept, equal in likelihood to the one on the bags.

    Rows are divided by their noise's sd, the intercept is projected out, and more rows than features are
    reduced by a QR decomposition: ``rows`` and ``targets`` are then ``R`` and ``Qᵀy``.

    Attributes:
        rows: (k, d) with ``k = min(bags, d + 1)`` at most.
        targets: (k,).
        residual: part of the targets' squared length that no weights can reach.
        log_density_base: ``−½[(n−1) log 2π + Σ log v_b + log Σ 1/v_b]``, what does not depend on the prior.
        centre: (d,) precision-weighted mean of the bag means.
        intercept: precision-weighted mean of the proportions: the value at ``centre``.
        intercept_variance: ``1 / Σ 1/v_b``.
    """

    rows: Array
    targets: Array
    residual: float
    log_density_base: float
    centre: Array
    intercept: float
    intercept_variance: float


def regression(means: Array, proportions: Array, variances: Array) -> Regression:
    """Bring bag means, proportions and noise variances into the form with unit noise and no intercept.

    Integrating the intercept out under a flat prior leaves, with ``P`` the projection that removes
    ``u = v^(−1/2)`` from whitened space, ``log p = base − ½ (log det + quadratic form)`` of ``P y`` alone.
    """
    precision = 1.0 / variances
    total = float(precision.sum())
    centre = precision @ means / total
    intercept = float(precision @ proportions / total)
    root = np.sqrt(precision)
    rows = root[:, None] * (means - centre)
    targets = root * (proportions - intercept)
    residual, n = 0.0, len(targets)
    if n > means.shape[1] + 1:
        corner = np.asarray(np.linalg.qr(np.column_stack([rows, targets]), mode="r"))
        rows, targets = corner[:-1, :-1], corner[:-1, -1]
        residual = float(corner[-1, -1] ** 2)
    base = -0.5 * ((n - 1) * np.log(2 * np.pi) + float(np.log(variances).sum()) + np.log(total))
    return Regression(rows, targets, residual, base, centre, intercept, 1.0 / total)


@dataclass(frozen=True)
class Decomposition:
    """A regression seen through a prior: ``rows · L = U diag(√e) Qᵀ``.

    Attributes:
        regression: what was decomposed.
        factor: (d, r) prior factor ``L``.
        strengths: (k,) squared singular values ``e``.
        right: (r, k) right singular vectors ``Q``.
        coordinates: (k,) targets along the left singular vectors, ``t = Uᵀy``.
    """

    regression: Regression
    factor: Array
    strengths: Array
    right: Array
    coordinates: Array

    def log_evidence(self, scale: Array | float) -> Array:
        """Log marginal likelihood of the proportions for each prior variance ``s²``.

        ``log p(y | s) = base − ½[Σ_k log(1 + s² e_k) + Σ_k t_k²/(1 + s² e_k) + |y|² − Σ_k t_k²]``.
        """
        s2 = np.atleast_1d(np.asarray(scale, np.float64))[:, None]
        grown = s2 * self.strengths
        t2 = self.coordinates**2
        unreached = float(self.regression.targets @ self.regression.targets) + self.regression.residual - t2.sum()
        quadratic = np.sum(t2 / (1.0 + grown), axis=1) + max(unreached, 0.0)
        evidence: Array = self.regression.log_density_base - 0.5 * (np.log1p(grown).sum(axis=1) + quadratic)
        return evidence

    def posterior(self, scale: float) -> Posterior:
        """The law of the weights given the proportions, for the prior variance ``s²``.

        Mean ``L Q diag(s²√e / (1 + s²e)) t``; covariance ``s² L (I − Q diag(s²e / (1 + s²e)) Qᵀ) Lᵀ``.
        """
        gain = scale * np.sqrt(self.strengths) / (1.0 + scale * self.strengths)
        weights = self.factor @ (self.right @ (gain * self.coordinates))
        known = self.right * np.sqrt(scale * self.strengths / (1.0 + scale * self.strengths))
        return Posterior(
            weights,
            self.regression.centre,
            self.regression.intercept,
            self.regression.intercept_variance,
            np.sqrt(scale) * self.factor,
            known,
        )


def decompose(problem: Regression, factor: Array) -> Decomposition:
    """See a regression through the prior ``w ~ N(0, s² L Lᵀ)``; ``factor`` is any (d, r) matrix ``L``."""
    left, singular, right = np.linalg.svd(problem.rows @ factor, full_matrices=False)
    return Decomposition(problem, factor, singular**2, right.T, left.T @ problem.targets)


def average_weights(problem: Regression, factors: Sequence[Array], scales: Array) -> Array:
    """(d,) posterior mean of the weights, averaged over priors ``s² L Lᵀ`` by their evidence.

    Args:
        problem: the regression.
        factors: prior factors ``L``, at least one.
        scales: prior variances ``s²``; every pair of a factor and a scale has the same prior mass.
    """
    seen = [decompose(problem, factor) for factor in factors]
    mass = softmax(np.array([one.log_evidence(scales) for one in seen]))
    parts = []
    for one, shares in zip(seen, mass, strict=True):
        gain = shares @ (scales[:, None] * np.sqrt(one.strengths) / (1.0 + scales[:, None] * one.strengths))
        parts.append(one.factor @ (one.right @ (gain * one.coordinates)))
    return np.asarray(np.sum(parts, axis=0))


@dataclass(frozen=True)
class Posterior:
    """Posterior of the linear predictor given the bags: ``f(x) = a + (x − x̄)·w``.

    Attributes:
        weights: (d,) posterior mean of ``w``.
        centre: (d,) ``x̄``.
        intercept: posterior mean of ``a`` (independent of ``w`` at this centre).
        intercept_variance: its variance.
        spread: (d, r) ``S`` with prior covariance ``S Sᵀ``.
        known: (r, k) ``K`` with posterior covariance ``S (I − K Kᵀ) Sᵀ``.
    """

    weights: Array
    centre: Array
    intercept: float
    intercept_variance: float
    spread: Array
    known: Array

    def offset(self, X: NDArray[Any]) -> Array:
        """``(x − x̄)·w`` for each row."""
        result: Array = np.asarray(X, np.float64) @ self.weights - float(self.centre @ self.weights)
        return result

    def variance(self, X: NDArray[Any], chunk: int = 8192) -> Array:
        """Posterior variance of ``f(x)`` for each row: of the weights and of the intercept."""
        parts = []
        for start in range(0, len(X), chunk):
            row = (np.asarray(X[start : start + chunk], np.float64) - self.centre) @ self.spread
            left = np.sum(row**2, axis=1) - np.sum((row @ self.known) ** 2, axis=1)
            parts.append(np.maximum(left, 0.0) + self.intercept_variance)
        return np.concatenate(parts) if parts else np.zeros(0)
