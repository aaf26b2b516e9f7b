"""max-entropy: the labels of highest entropy that fit all counts, and a linear model of their log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from llpbench import Bags, FloatArray, IntArray, Monitor, State
from llpbench_methods.max_entropy.dual import Array, Dual, solve_dual
from llpbench_methods.shared.columns import NO_HATS, ColumnGroups, HatFunctions, hats_state, restored_hats
from llpbench_methods.shared.incidence import incidence_matrix
from llpbench_methods.shared.prior_scale import log_marginal, rescaled

PENALTIES = (10.0, 1e3, 1e5)
"""Penalties that ``auto`` chooses from."""
FOLDS = 3
"""Folds of bags by which it chooses."""
CLEAR = 3.0
"""Nats by which it must prefer a smaller penalty to the largest."""
_ROWS_AT_ONCE = 65536


@dataclass(frozen=True)
class _Counts:
    """Known counts (bags, 1 or C) of bags, the noise of each, and the rates of the classes."""

    incidence: Any
    counts: Array
    count_sd: Array
    rates: Array

    def take(self, chosen: IntArray) -> _Counts:
        """Some of the bags."""
        return _Counts(self.incidence[chosen], self.counts[chosen], self.count_sd[chosen], self.rates)

    def log_likelihood(self, log_odds: Array) -> float:
        """Of the counts given log-odds of all rows, each class against the rest."""
        p = expit(log_odds).T
        return sum(log_marginal(q, self.incidence, c, self.count_sd) for q, c in zip(p, self.counts.T, strict=True))


@dataclass(frozen=True)
class _Moments:
    """Sums over ``n`` rows for the regression of log-odds on features."""

    n: int
    mean: Array
    covariance: Array
    cross: Array
    mean_odds: Array

    def ridge(self, penalty: float) -> tuple[Array, Array]:
        """Weights and intercepts; features are in their natural scales."""
        inner = self.covariance + penalty * np.eye(len(self.mean))
        weights = np.linalg.solve(inner, self.cross)
        return np.asarray(weights), np.asarray(self.mean_odds - self.mean @ weights)


class MaxEntropy:
    """Raking, then ridge regression of the implied log-odds on the features and on hat functions of numeric columns.

    Counts determine labels of highest entropy (``dual.py``). Their log-odds are a sum over the bags of a row, so where
    bags are the groups of one-way tables, a linear model of the columns reproduces them, for new rows too. Where bags
    are not groups of columns (random bags), the regression finds what the features have in common with the counts; its
    log-odds are then scaled by the number under which all counts are most likely.

    Both problems are convex, and nothing is drawn. Several classes: each against the rest.

    Args:
        count_sd: standard deviation by which a count may be missed, besides its known noise.
        penalty: of the squared weights, or ``"auto"``: the one of ``PENALTIES`` whose models give held-out bags the
            most likely counts. Where bags are groups of columns, a small one reproduces the log-odds; with a large one,
            weights are covariances of features and log-odds, which is best for a few large random bags.
    """

    weights_: Array
    intercept_: Array
    hats_: HatFunctions

    def __init__(self, count_sd: float = 1.0, penalty: float | str = "auto") -> None:
        self.count_sd, self.penalty = count_sd, penalty

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> MaxEntropy:
        """Choose the penalty, solve the dual, fit the linear model, and report once."""
        groups = ColumnGroups.of(bags.columns, bags.X.shape[1])
        self.hats_ = HatFunctions.of(bags.X, groups) if bags.columns else NO_HATS
        rates = np.clip(np.asarray(bags.prior, np.float64), 0.5 / len(bags.X), 1.0 - 0.5 / len(bags.X))
        every = _Counts(
            incidence_matrix(bags), np.asarray(bags.counts, np.float64), np.asarray(bags.count_sds, np.float64), rates
        )
        penalty = float(PENALTIES[0] if self.penalty == "auto" else self.penalty)
        if self.penalty == "auto" and len(bags) > 1:
            with monitor.phase("folds"):
                penalty = self._best_penalty(bags.X, every, np.random.default_rng(seed))
        with monitor.phase("dual"):
            found = self._solve(every)
        monitor.note("converged", all(one.converged for one in found))
        monitor.note("penalty", penalty)
        monitor.pseudo_labels(_labels(found))
        with monitor.phase("regression"):
            moments = self._moments(bags.X, found)
            self.weights_, self.intercept_ = self._scaled(bags.X, moments, penalty, every)
        monitor.report(self.predict_scores)
        return self

    def _best_penalty(self, X: FloatArray, every: _Counts, rng: np.random.Generator) -> float:
        """The penalty whose models give bags that they have not seen the most likely counts.

        A smaller one than the largest must be clearly better: a few bags cannot tell.
        """
        totals = np.zeros(len(PENALTIES))
        bags = len(every.counts)
        for held in np.array_split(rng.permutation(bags), min(FOLDS, bags)):
            seen, unseen = every.take(np.setdiff1d(np.arange(bags), held)), every.take(np.sort(held))
            moments = self._moments(X, self._solve(seen))
            for k, penalty in enumerate(PENALTIES):
                self.weights_, self.intercept_ = self._scaled(X, moments, penalty, seen)
                totals[k] += unseen.log_likelihood(self._log_odds(X))
        return PENALTIES[int(np.argmax(totals - CLEAR * (np.array(PENALTIES) < max(PENALTIES))))]

    def _solve(self, known: _Counts) -> list[Dual]:
        """The dual of each class against the rest."""
        wide = np.sqrt(known.count_sd**2 + self.count_sd**2)
        return [
            solve_dual(known.incidence, count, wide, float(np.log(rate) - np.log1p(-rate)))
            for count, rate in zip(known.counts.T, known.rates, strict=True)
        ]

    def _scaled(self, X: FloatArray, moments: _Moments, penalty: float, known: _Counts) -> tuple[Array, Array]:
        """The regression, with the scale and the shift under which the known counts are most likely."""
        self.weights_, self.intercept_ = moments.ridge(penalty)
        spread = np.maximum(self._log_odds(X).std(axis=0), 1e-9)  # a penalty shrinks: scales begin at a spread of 1
        self.weights_, self.intercept_ = self.weights_ / spread, self.intercept_ / spread
        fields = self._log_odds(X)
        weights, intercept = self.weights_.copy(), self.intercept_.copy()
        for c, (count, rate) in enumerate(zip(known.counts.T, known.rates, strict=True)):
            scaled, scale = rescaled(fields[:, c], known.incidence, count, known.count_sd, float(rate))
            weights[:, c] *= scale
            intercept[c] = scale * intercept[c] + float(np.mean(scaled - scale * fields[:, c]))
        return weights, intercept

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        z = self._log_odds(X)
        return np.asarray(expit(z[:, 0]) if z.shape[1] == 1 else softmax(_log_shares(z), axis=1))

    def state(self) -> State:
        """Weights, intercepts and hat functions."""
        return {"weights": self.weights_, "intercept": self.intercept_, **hats_state(self.hats_)}

    def restore(self, state: State) -> MaxEntropy:
        """Take up saved weights."""
        self.weights_ = np.asarray(state["weights"], np.float64)
        self.intercept_ = np.asarray(state["intercept"], np.float64)
        self.hats_ = restored_hats(state)
        return self

    def _moments(self, X: FloatArray, found: list[Dual]) -> _Moments:
        """Sufficient statistics of the regression, summed over blocks of rows."""
        log_odds = np.stack([one.log_odds for one in found], axis=1)
        mean_odds, n = log_odds.mean(axis=0), len(log_odds)
        blocks = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, n, _ROWS_AT_ONCE)]
        mean = np.sum([self.hats_.extend(X[block]).sum(axis=0) for block in blocks], axis=0) / n
        width = len(mean)
        covariance, cross = np.zeros((width, width)), np.zeros((width, log_odds.shape[1]))
        for block in blocks:
            rows = self.hats_.extend(X[block]) - mean
            covariance += rows.T @ rows
            cross += rows.T @ (log_odds[block] - mean_odds)
        return _Moments(n, mean, covariance, cross, mean_odds)

    def _log_odds(self, X: FloatArray) -> Array:
        parts = [
            self.hats_.extend(X[start : start + _ROWS_AT_ONCE]) @ self.weights_
            for start in range(0, max(len(X), 1), _ROWS_AT_ONCE)
        ]
        return np.asarray(np.concatenate(parts) + self.intercept_)


def _labels(found: list[Dual]) -> Array:
    """The labels that the counts imply."""
    z = np.stack([one.log_odds for one in found], axis=1)
    return np.asarray(expit(z[:, 0]) if z.shape[1] == 1 else softmax(_log_shares(z), axis=1))


def _log_shares(z: Array) -> Array:
    """(n, C) log-probabilities, up to a constant, of classes that were each taken against the rest."""
    return np.asarray(-np.logaddexp(0.0, -z))
