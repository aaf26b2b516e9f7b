"""mean-map: class means estimated from bags, then a logistic regression on these means."""

from __future__ import annotations

import numpy as np

from llpbench import Bags, FloatArray, Monitor, Skip, State
from llpbench_methods.mean_map.loss import Linear, LogisticProblem
from llpbench_methods.mean_map.operators import Array, labelled_means, laplacian_mean_map, mean_map
from llpbench_methods.shared.assignment import fitting_labels
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.counts import whole_counts
from llpbench_methods.shared.mean_regression import smoothed_rate
from llpbench_methods.shared.shares import all_classes

PENALTIES = (1e5, 1e3, 10.0)
"""From the strongest on, so that each fit begins at the one before; the last is the authors' own."""

MOST_MEANS = 3000
"""Class means that the dense system of ``lmm`` may have: 1,500 bags of two classes."""

MOST_ROUNDS = 30
SETTLED = 1e-3
"""AMM ends when a round changes a smaller share of the labels."""


class MeanMap:
    """Mean map and its two descendants.

    Every penalty is fitted and reported, and the report that held-out bags prefer is kept: the last penalty where
    nobody judges. Proportions are forced onto the simplex; labels of ``amm`` fit counts rounded to whole numbers.

    Args:
        variant: ``mm``, ``lmm`` or ``amm``.
        penalty: ridge penalty λ on the sum over rows; None to try several.
        gamma: weight of the Laplacian of ``lmm``.
        sigma: distance scale of its similarities.
        weighting: ``rows`` or ``bags``.
    """

    model_: Linear

    def __init__(
        self,
        variant: str = "mm",
        penalty: float | None = None,
        gamma: float = 10.0,
        sigma: float = 1.0,
        weighting: str = "rows",
    ) -> None:
        self.variant, self.penalty, self.gamma, self.sigma, self.weighting = variant, penalty, gamma, sigma, weighting

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> MeanMap:  # noqa: ARG002
        """Estimate class means, then fit and report one model for each penalty."""
        if self.variant == "lmm" and len(bags) * bags.classes > MOST_MEANS:
            raise Skip(
                f"variant=lmm solves a dense system of bags x classes, at most {MOST_MEANS:,}; "
                f"here are {len(bags):,} x {bags.classes}. Use variant=mm or amm."
            )
        n = len(bags.X)
        rates = all_classes(np.array([smoothed_rate(column, n) for column in bags.counts.T]))
        rates = rates / rates.sum()
        with monitor.phase("operator"):
            operator = self._operator(bags, rates)
            problem = LogisticProblem.of(bags.X)
        model: Linear | None = None
        chosen: tuple[Linear, float] | None = None
        for penalty in PENALTIES if self.penalty is None else (self.penalty,):
            with monitor.phase("regression"):
                model = problem.fit(operator, rates, penalty, model)
                self.model_ = self._alternate(bags, problem, rates, penalty, model)
            if monitor.report(self.predict_scores) or chosen is None:
                chosen = (self.model_, penalty)
            if monitor.should_stop:
                break
        assert chosen is not None
        self.model_ = chosen[0]
        monitor.note("penalty", chosen[1])
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        return self.model_.probabilities(X)

    def state(self) -> State:
        """Weights, intercepts and the centre of the rows."""
        return {
            "weights": self.model_.weights,
            "intercepts": self.model_.intercepts,
            "centre": self.model_.centre,
        }

    def restore(self, state: State) -> MeanMap:
        """Take up a saved model."""
        weights, intercepts, centre = (
            np.asarray(state[name], np.float64) for name in ("weights", "intercepts", "centre")
        )
        if weights.shape != (len(centre), len(intercepts)):
            raise ValueError(f"weights of shape {weights.shape} do not match {len(centre)} features")
        self.model_ = Linear(weights, intercepts, centre)
        return self

    def _operator(self, bags: Bags, rates: Array) -> Array:
        weights = bags.sizes.astype(np.float64) if self.weighting == "rows" else np.ones(len(bags))
        given = (bag_means(bags.X, bags.offsets), all_classes(bags.clipped_proportions.astype(np.float64)), weights)
        if self.variant == "lmm":
            return laplacian_mean_map(*given, rates, gamma=self.gamma, sigma=self.sigma)
        return mean_map(*given, rates)

    def _alternate(self, bags: Bags, problem: LogisticProblem, rates: Array, penalty: float, model: Linear) -> Linear:
        """AMM: the most probable labels that fit the counts, their operator, a new model, until labels stay."""
        if self.variant != "amm":
            return model
        counts, before = whole_counts(bags), None
        for _ in range(MOST_ROUNDS):
            scores = model.scores(bags.X)
            labels = fitting_labels(scores[:, 0] if bags.classes == 2 else scores, bags.offsets, counts)
            if before is not None and np.mean(labels != before) < SETTLED:
                break
            # of centred rows: the shares of made labels are not quite the rates, so the origin would matter
            operator = labelled_means(problem.rows, labels, bags.classes) + rates[:, None] * problem.centre
            model, before = problem.fit(operator, rates, penalty, model), labels
        return model
