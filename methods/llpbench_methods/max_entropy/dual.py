r"""Maximum entropy subject to the counts of bags, by its convex dual.

Among all independent labels whose expected counts are the known ones, those of highest entropy relative to the known
rate have log-odds that are a sum over the bags of a row, :math:`z = b + A^\top \theta`, with :math:`A` the incidence
matrix and :math:`b` the log-odds of the rate. The :math:`\theta` minimise

.. math:: \sum_i \log(1 + e^{z_i}) - \theta^\top c + \tfrac12 \sum_b s_b^2 \theta_b^2 ,

whose gradient is :math:`A \sigma(z) - c + s^2 \theta`: a count with noise of standard deviation :math:`s_b` need not be
met, and its noise is its ridge. Where bags are the groups of tables this is raking (iterative proportional fitting) and
the score equation of a logistic regression on the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

Array = NDArray[np.float64]

_STEPS = 100
_TOLERANCE = 1e-6
_ARMIJO = 1e-4


@dataclass(frozen=True)
class Dual:
    """The solution.

    Attributes:
        theta: (bags,) what each bag adds to the log-odds of its rows.
        log_odds: (n,) of the rows.
        gap: largest gradient, in rows: how far a count (with its ridge) is missed.
        converged: whether the gap is at most a millionth of a row per row of the largest count.
    """

    theta: Array
    log_odds: Array
    gap: float
    converged: bool


def solve_dual(incidence: Any, counts: Array, count_sd: Array, base: float) -> Dual:
    """Minimise the dual by Newton's method with conjugate gradients, which only needs products with the incidence.

    Args:
        incidence: (bags, n) sparse matrix of the bags' rows.
        counts: (bags,) known counts.
        count_sd: (bags,) positive standard deviations: the ridge.
        base: log-odds of the known rate.
    """
    ridge, transposed = count_sd**2, incidence.T.tocsr()
    theta = np.zeros(len(counts))
    log_odds = np.full(incidence.shape[1], base)
    value = _value(log_odds, theta, counts, ridge)
    tolerance = _TOLERANCE * max(float(np.abs(counts).max(initial=1.0)), 1.0)
    gap = np.inf
    for _ in range(_STEPS):
        p = expit(log_odds)
        gradient = incidence @ p - counts + ridge * theta
        gap = float(np.abs(gradient).max(initial=0.0))
        if gap <= tolerance:
            break
        spread = p * (1.0 - p)
        step = _newton_step(incidence, transposed, spread, ridge, gradient)
        along = transposed @ step
        slope, size = float(gradient @ step), 1.0
        while True:
            tried = _value(log_odds + size * along, theta + size * step, counts, ridge)
            if tried <= value + _ARMIJO * size * slope or size < 1e-8:
                break
            size *= 0.5
        if size < 1e-8:
            break
        theta, log_odds, value = theta + size * step, log_odds + size * along, tried
    return Dual(theta, log_odds, gap, gap <= tolerance)


def _value(log_odds: Array, theta: Array, counts: Array, ridge: Array) -> float:
    return float(np.logaddexp(0.0, log_odds).sum() - theta @ counts + 0.5 * (ridge * theta) @ theta)


def _newton_step(incidence: Any, transposed: Any, spread: Array, ridge: Array, gradient: Array) -> Array:
    """``-H^-1 gradient`` with ``H = A diag(spread) A' + diag(ridge)``."""
    diagonal = incidence @ spread + ridge

    def product(v: Array) -> Array:
        return np.asarray(incidence @ (spread * (transposed @ v)) + ridge * v)

    shape = (len(ridge), len(ridge))
    hessian = LinearOperator(shape, matvec=product, dtype=np.float64)
    scaling = LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=np.float64)
    step, _ = cg(hessian, -gradient, rtol=1e-3, maxiter=500, M=scaling)
    return np.asarray(step)
