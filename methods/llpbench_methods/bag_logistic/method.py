"""bag-logistic: the linear case of the bag cross-entropy, at its optimum instead of at the end of a training."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from llpbench import Bags, FloatArray, Monitor, QuietMonitor, State
from llpbench_methods.bag_logistic.loss import Array, bag_effect, bag_loss, probabilities, worth_in_rows
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.columns import NO_HATS, ColumnGroups, HatFunctions, hats_state, restored_hats
from llpbench_methods.shared.incidence import incidence_matrix, take_bags
from llpbench_methods.shared.prior_scale import best_scale, log_marginal, scaled

FOLDS = 5
"""Folds of bags that choose the prior of ``decode``."""
STRONGER = (1.0, 10.0, 100.0)
"""Penalties to choose from, relative to the method's."""


class BagLogistic:
    r"""Logistic regression whose mean prediction in each bag fits the bag's proportion.

    It minimises ``L(X w + a) + penalty/2 |w|²`` from ``w = 0`` and ``a`` at the known rate, with ``L`` the
    cross-entropy of bags weighted by what their counts are worth in rows (``loss.py``): a mode of the model in which a
    bag's count is binomial with the mean prediction as its rate, and ``w ~ N(0, 1/penalty)`` on features in their
    natural scales. (``L`` is not convex: the start is part of the method.)

    A few large bags say next to nothing about most directions of ``w``; these stay at 0, where a network keeps what its
    first weights happened to be.

    Bags that differ for reasons no feature shows are worth fewer rows. Whether these do is seen on validation bags: if
    their proportions miss the mean predictions by more than chance, the excess is the variance of a bag effect, and the
    regression is fitted again with it. (Validation bags that are parts of training bags cannot show it.)

    Several groupings of the same rows add up in ``L``: bags overlap, and each row is kept once.

    The cross-entropy needs proportions in [0, 1]: noisy ones are forced there, which moves the mean prediction of small
    bags towards one half (the order of rows hardly).

    Args:
        penalty: of the squared weights (not of the intercept).
        effect: variance of the bag effect, or ``"auto"``.
        hats: whether numeric columns also enter in hat functions, ``"yes"`` or ``"no"``; ``"auto"``: if rows have
            several groupings, because tables by bands of a number tell how a rate bends along it.
        decode: ``"yes"`` reports pseudo-labels: those of the regression (``prior``), with the penalty and the scale of
            log-odds that held-out bags prefer, and given the counts of all bags of a row (``counts``), by belief
            propagation.
        steps: most steps of L-BFGS.
    """

    weights_: Array
    intercept_: Array
    hats_: HatFunctions

    def __init__(
        self,
        penalty: float = 3.0,
        effect: float | str = "auto",
        hats: str = "auto",
        decode: str = "no",
        steps: int = 300,
    ) -> None:
        self.penalty, self.effect, self.hats, self.decode, self.steps = penalty, effect, hats, decode, steps

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BagLogistic:
        """Minimise, once more if bags have an effect of their own, and report once."""
        with monitor.phase("regression"):
            bends = self.hats == "yes" or (self.hats == "auto" and bags.overlap is not None)
            groups = ColumnGroups.of(bags.columns, bags.X.shape[1])
            self.hats_ = HatFunctions.of(bags.X, groups) if bends and bags.columns else NO_HATS
            effect = 0.0 if self.effect == "auto" else float(self.effect)
            self._minimise(bags, effect)
            if self.effect == "auto" and bags.validation is not None:
                effect = self._missed(bags.validation, bags.prior)
                if effect > 0.0:
                    self._minimise(bags, effect)
        monitor.note("effect", effect)
        if self.decode == "yes":
            with monitor.phase("decoding"):
                self._decode(bags, monitor, seed)
        monitor.report(self.predict_scores)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        p = self._probabilities(X)
        return p[:, 0] if p.shape[1] == 1 else p

    def state(self) -> State:
        """Weights and intercepts."""
        hats = hats_state(self.hats_) if self.hats_.features else {}
        return {"weights": self.weights_, "intercept": self.intercept_, **hats}

    def restore(self, state: State) -> BagLogistic:
        """Take up saved weights."""
        self.weights_ = np.asarray(state["weights"], np.float64)
        self.intercept_ = np.asarray(state["intercept"], np.float64)
        self.hats_ = restored_hats(state)
        return self

    def _probabilities(self, X: FloatArray) -> Array:
        return probabilities(self._features(X) @ self.weights_ + self.intercept_)

    def _features(self, X: FloatArray) -> Array:
        return self.hats_.extend(X) if self.hats_.features else np.asarray(X, np.float64)

    def _minimise(self, bags: Bags, effect: float) -> None:
        """The weights for a bag effect of the given variance."""
        X = self._features(bags.X)
        proportions = np.asarray(bags.clipped_proportions, np.float64)
        worth = worth_in_rows(bags.sizes, bags.prior, bags.count_sds, effect)
        incidence = None if bags.overlap is None else incidence_matrix(bags)
        rate = np.clip(bags.prior, 0.5 / len(X), 1.0 - 0.5 / len(X))
        start = np.log(rate) - (np.log1p(-rate) if bags.classes == 2 else 0.0)
        outputs = len(rate)

        def objective(flat: Array) -> tuple[float, Array]:
            weights, intercept = flat[:-outputs].reshape(-1, outputs), flat[-outputs:]
            loss, slope = bag_loss(X @ weights + intercept, bags.offsets, proportions, worth, incidence)
            loss += 0.5 * self.penalty * float((weights**2).sum())
            return loss, np.append((X.T @ slope + self.penalty * weights).ravel(), slope.sum(axis=0))

        first = np.append(np.zeros(X.shape[1] * outputs), start)
        found = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": self.steps}).x
        self.weights_, self.intercept_ = found[:-outputs].reshape(-1, outputs), found[-outputs:]

    def _decode(self, bags: Bags, monitor: Monitor, seed: int) -> None:
        """Report the labels of training rows without and with the counts of their own bags."""
        from llpbench_methods.inference import decode, lambda_of_noise

        exact = (bags.count_sds == 0.0)[:, None]
        counts = np.where(exact, np.clip(np.rint(bags.counts), 0, bags.sizes[:, None]), bags.counts)
        rates = np.clip(np.asarray(bags.prior, np.float64), 0.5 / len(bags.X), 1.0 - 0.5 / len(bags.X))
        penalty, scale = self._choose_prior(bags, counts, rates, np.random.default_rng(seed))
        prior = self if penalty == self.penalty else self._alike(penalty, bags)
        known = bags.members, bags.offsets, bags.grouping_of, counts, lambda_of_noise(bags.count_sds)
        found = decode(prior._log_odds(bags.X).astype(np.float64), *known, rates, scale=scale)
        for stage, p in (("prior", found.prior), ("counts", found.probabilities)):
            monitor.pseudo_labels(p[:, 0] if p.shape[1] == 1 else p, stage=stage)
        monitor.note("bp converged", found.converged)
        monitor.note("bp scale", found.scale)
        monitor.note("bp penalty", penalty)

    def _choose_prior(self, bags: Bags, counts: Array, rates: Array, rng: np.random.Generator) -> tuple[float, float]:
        """The penalty and the scale of log-odds under which the counts of held-out bags are most likely.

        Chosen on the counts that the regression was fitted to, both would overrate what it knows.
        """
        if len(bags) < 2 * FOLDS:
            return self.penalty, 1.0
        fold_of, whole = rng.permutation(len(bags)) % FOLDS, incidence_matrix(bags)
        best = (-np.inf, self.penalty, 1.0)
        for penalty in self.penalty * np.array(STRONGER):
            judged = [
                (self._alike(penalty, take_bags(bags, np.flatnonzero(fold_of != k)))._log_odds(bags.X), fold_of == k)
                for k in range(FOLDS)
            ]
            parts = [
                (z[:, c], whole[held], counts[held, c], bags.count_sds[held], float(rate))
                for z, held in judged
                for c, rate in enumerate(rates)
            ]

            def likelihood(scale: float, parts: list[Any] = parts) -> float:
                return sum(log_marginal(expit(scaled(z, scale, rate)), *own) for z, *own, rate in parts)

            scale, value = best_scale(likelihood)
            best = max(best, (value, float(penalty), scale))
        return best[1:]

    def _alike(self, penalty: float, bags: Bags) -> BagLogistic:
        """A regression with another penalty, or on other bags."""
        return BagLogistic(penalty, 0.0, self.hats, steps=self.steps).fit(bags, monitor=QuietMonitor(), seed=0)

    def _log_odds(self, X: FloatArray) -> Array:
        return np.asarray(logit(np.clip(self._probabilities(X), 1e-12, 1.0 - 1e-12)))

    def _missed(self, held: Bags, rate: FloatArray) -> float:
        """The bag effect by which held-out proportions miss the mean predictions."""
        errors = held.proportions - bag_means(held.entries(self._probabilities(held.X)), held.offsets)
        return bag_effect(errors, worth_in_rows(held.sizes, rate, held.count_sds), rate)
