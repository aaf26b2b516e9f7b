"""Logistic regression on the mean operator, without labels of rows.

Two classes (y = ±1): ``Σ_i log(e^{s_i} + e^{−s_i}) − N w·m + λ|w|²/2`` with ``s_i = w·x_i + b`` and ``m = m_1 − m_0``,
which is the log-loss of ``P(y_i = 1) = σ(2 s_i)``. Several: ``Σ_i log Σ_c e^{s_ic} − N Σ_c w_c·m_c + λ|W|²/2``,
``P = softmax(s_i)``. The intercept is free of the penalty, so the mean of ``P`` over the rows is the known rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A linear model: ``s = (x − centre)·W + b``, one column for two classes.

    Attributes:
        weights: (d, 1) or (d, C).
        intercepts: (1,) or (C,).
        centre: (d,) mean of the training rows.
    """

    weights: Array
    intercepts: Array
    centre: Array

    def scores(self, X: NDArray[Any]) -> Array:
        """(n, 1) or (n, C)."""
        shift = self.intercepts - self.centre @ self.weights
        return np.asarray(np.asarray(X, np.float64) @ self.weights + shift)

    def probabilities(self, X: NDArray[Any]) -> Array:
        """(n,) probability of class 1, or (n, C) of every class."""
        s = self.scores(X)
        return np.asarray(expit(2.0 * s[:, 0]) if s.shape[1] == 1 else softmax(s, axis=1))


def row_losses(scores: Array) -> tuple[Array, Array]:
    """Each row's loss without the operator, and its slope: ``log(e^s + e^{−s})``, ``tanh s``; or those of softmax."""
    if scores.shape[1] == 1:
        return np.logaddexp(scores, -scores)[:, 0], np.tanh(scores)
    return logsumexp(scores, axis=1), softmax(scores, axis=1)


@dataclass(frozen=True)
class LogisticProblem:
    """Centred rows and the quantities that all fits share; each fit has its own operator.

    Attributes:
        rows: (N, d) centred rows.
        centre: (d,) their mean.
        variances: (d,) of the columns.
    """

    rows: Array
    centre: Array
    variances: Array

    @classmethod
    def of(cls, X: NDArray[Any]) -> LogisticProblem:
        """The problem of these rows."""
        centre = X.mean(axis=0, dtype=np.float64)
        rows = X - centre
        return cls(rows, centre, np.einsum("ij,ij->j", rows, rows) / len(rows))

    def value_and_slope(
        self, weights: Array, intercepts: Array, operator: Array, levels: Array, penalty: float
    ) -> tuple[float, Array, Array]:
        """The objective divided by N, and its gradients.

        Args:
            weights: (d, K).
            intercepts: (K,).
            operator: (d, K) of the centred rows.
            levels: (K,) the operator's entry of the intercept.
            penalty: λ.
        """
        n = len(self.rows)
        losses, slopes = row_losses(self.rows @ weights + intercepts)
        value = losses.mean() - np.sum(weights * operator) - intercepts @ levels
        value += 0.5 * penalty / n * np.sum(weights**2)
        by_weights = self.rows.T @ slopes / n - operator + penalty / n * weights
        return float(value), by_weights, slopes.mean(axis=0) - levels

    def fit(self, operator: Array, rates: Array, penalty: float, start: Linear | None = None) -> Linear:
        """The model with the least objective, by L-BFGS.

        Columns are divided by ``sqrt(variance + λ/N)``, about the root of their curvature, while L-BFGS works; the
        minimum is that of the columns as they are.

        Args:
            operator: (C, d) of the rows as they are.
            rates: (C,) shares of classes, inside (0, 1).
            penalty: λ.
            start: where to begin; zero weights when not given.
        """
        centred = operator - rates[:, None] * self.centre
        if len(rates) == 2:
            m, levels = (centred[1] - centred[0])[:, None], rates[1:] - rates[:1]
            level = 0.5 * np.log(rates[1:] / rates[:1])
        else:
            m, levels, level = centred.T, rates, np.log(rates)
        scale = np.sqrt(self.variances + penalty / len(self.rows))[:, None]
        shape = m.shape

        def of_point(point: Array) -> tuple[float, Array]:
            weights = point[shape[1] :].reshape(shape) / scale
            value, slope, level_slope = self.value_and_slope(weights, point[: shape[1]], m, levels, penalty)
            return value, np.concatenate([level_slope, (slope / scale).ravel()])

        first = (level, np.zeros(shape)) if start is None else (start.intercepts, start.weights * scale)
        found = minimize(
            of_point,
            np.concatenate([first[0], first[1].ravel()]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 200, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-6},
        )
        weights = found.x[shape[1] :].reshape(shape) / scale
        return Linear(weights, found.x[: shape[1]], self.centre)
