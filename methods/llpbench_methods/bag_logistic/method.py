"""bag-logistic: the linear case of the bag cross-entropy, at its optimum instead of at the end of a training."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from llpbench import Bags, FloatArray, Monitor, State
from llpbench_methods.bag_logistic.loss import Array, bag_loss, worth_in_rows


class BagLogistic:
    r"""Logistic regression whose mean prediction in each bag fits the bag's proportion.

    It minimises ``L(X w + a) + penalty/2 |w|²`` from ``w = 0`` and ``a`` at the known rate, with ``L`` the
    cross-entropy of bags weighted by what their counts are worth in rows (``loss.py``): a mode of the model in which a
    bag's count is binomial with the mean prediction as its rate, and ``w ~ N(0, 1/penalty)`` on features in their
    natural scales. (``L`` is not convex: the start is part of the method.)

    A few large bags say next to nothing about most directions of ``w``; these stay at 0, where a network keeps what its
    first weights happened to be.

    Args:
        penalty: of the squared weights (not of the intercept).
        steps: most steps of L-BFGS.
    """

    weights_: Array
    intercept_: Array

    def __init__(self, penalty: float = 3.0, steps: int = 300) -> None:
        self.penalty, self.steps = penalty, steps

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BagLogistic:  # noqa: ARG002 - nothing is drawn
        """Minimise, and report once."""
        with monitor.phase("regression"):
            X = np.asarray(bags.X, np.float64)
            proportions = np.asarray(bags.clipped_proportions, np.float64)
            worth = worth_in_rows(bags.sizes, bags.prior, bags.count_sd)
            rate = np.clip(bags.prior, 0.5 / len(X), 1.0 - 0.5 / len(X))
            start = np.log(rate) - (np.log1p(-rate) if bags.classes == 2 else 0.0)
            shape = (X.shape[1], len(rate))

            def objective(flat: Array) -> tuple[float, Array]:
                weights, intercept = flat[: -shape[1]].reshape(shape), flat[-shape[1] :]
                loss, slope = bag_loss(X @ weights + intercept, bags.offsets, proportions, worth)
                loss += 0.5 * self.penalty * float((weights**2).sum())
                return loss, np.append((X.T @ slope + self.penalty * weights).ravel(), slope.sum(axis=0))

            first = np.append(np.zeros(X.shape[1] * len(rate)), start)
            found = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": self.steps})
            self.weights_, self.intercept_ = found.x[: -shape[1]].reshape(shape), found.x[-shape[1] :]
        monitor.note("loss", float(found.fun))
        monitor.note("steps", int(found.nit))
        monitor.report(self.predict_scores)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        z = np.asarray(X, np.float64) @ self.weights_ + self.intercept_
        return np.asarray(expit(z[:, 0]) if z.shape[1] == 1 else softmax(z, axis=1))

    def state(self) -> State:
        """Weights and intercepts."""
        return {"weights": self.weights_, "intercept": self.intercept_}

    def restore(self, state: State) -> BagLogistic:
        """Take up saved weights."""
        self.weights_ = np.asarray(state["weights"], np.float64)
        self.intercept_ = np.asarray(state["intercept"], np.float64)
        return self
