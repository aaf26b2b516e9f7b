"""bp-count: regression on bag means, counting factors, and a learner; unseen bags decide how long to go on."""

from __future__ import annotations

from functools import partial

import numpy as np

from llpbench import Bags, FloatArray, Monitor, State
from llpbench_methods.bp_count.counts import CountedBags, overlapping_posterior, probabilities, row_values
from llpbench_methods.bp_count.learners import make_learner
from llpbench_methods.bp_count.linear import LinearField, MeanRegression
from llpbench_methods.bp_count.neighbourhood import choose_similarity
from llpbench_methods.bp_count.selftrain import (
    MIXES,
    Blend,
    Chain,
    Judgement,
    adopt,
    assign_folds,
    best_blend,
    gain_in_standard_errors,
    learn,
    make_chains,
    plain_posterior,
)
from llpbench_methods.bp_count.state import model_state, restored_model


class BPCount:
    """Belief propagation with counting factors, in two stages.

    Stage 1 is a Bayesian regression from bag means to proportions, averaged over families of priors by their
    evidence; its posterior mean, tempered by its variance, is the field of each row. Stage 2 repeats: exact posterior
    of every row given its field and its bag's count; a learner on these soft labels; its log-odds, blended with the
    linear ones, are the new fields. A round is accepted when the bags that its chain has not seen gain more than
    ``least_gain`` standard errors in the likelihood of their counts; the first that does not ends the fit.

    Where rows have several groupings, posteriors are those of belief propagation over the counting factors of all
    groupings, with the fields scaled so that all counts are most likely.

    Where stage 1 finds that bags have an effect of their own, its variance is a part of the noise there, and the
    likelihood of held-out counts integrates it out. Posteriors given exact counts do not depend on it.

    Args:
        learner: ``trees``, ``network`` or ``auto`` (trees for a table's columns, network otherwise).
        rounds: most rounds of stage 2.
        folds: folds of bags that decide whether a round is accepted.
        least_gain: standard errors of gain that a round must bring.
        draws: draws of each concentration in the families of priors.
        temper: whether the regression's variance tempers the fields.
        similarity: weight of the nearest-neighbour term, or ``auto``: validation bags choose.
        neighbours: neighbours of a row in that term.
        trees: trees of the boosted learner.
        epochs: epochs of the network.
    """

    def __init__(
        self,
        learner: str = "auto",
        rounds: int = 6,
        folds: int = 2,
        least_gain: float = 1.0,
        draws: int = 80,
        temper: bool = True,
        similarity: float | str = "auto",
        neighbours: int = 10,
        trees: int = 60,
        epochs: int = 4,
    ) -> None:
        self.learner, self.rounds, self.folds, self.least_gain = learner, rounds, folds, least_gain
        self.draws, self.temper = draws, temper
        self.similarity, self.neighbours = similarity, neighbours
        self.trees, self.epochs = trees, epochs

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> BPCount:
        """Stage 1, then rounds of stage 2 as long as held-out bags gain; each accepted state is reported."""
        rng = np.random.default_rng(seed)
        counted = CountedBags.of(bags)
        with monitor.phase("regression"):
            regression = MeanRegression(
                bags.X,
                counted.offsets,
                bags.columns,
                rng,
                members=counted.members,
                draws=self.draws,
                temper=self.temper,
            )
            fit_linear = partial(_fit_linear, regression, bags)
            judged = self.rounds > 0 and len(bags) >= 2 * self.folds
            folds = assign_folds(counted.sizes, self.folds, rng) if judged else []
            chains, whole = make_chains(counted, folds, bags.X, fit_linear)
            effect = any(has_effect(chain) for chain in (*chains, whole))
            for chain in (*chains, whole):
                chain.effect = effect
            standing = best_blend(chains, (0.0,)) if chains else Judgement(0.0, 1.0, np.zeros(0))
            for chain in (*chains, whole):
                rescale(chain, standing.slope)
            self.model_ = adopt(whole, 0.0, 1.0)
        self._note_regression(monitor, whole, standing.slope)
        with monitor.phase("counting"):
            soft = self._first_posterior(whole, monitor)
        monitor.pseudo_labels(row_values(soft), stage="regression")
        monitor.report(self.predict_scores)
        accepted = self._self_train(bags, chains, whole, standing, monitor, seed) if chains else 0
        monitor.note("accepted_rounds", float(accepted))
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        return row_values(probabilities(self.model_(X)))

    def state(self) -> State:
        """The regression and the last accepted learner, as plain arrays."""
        return model_state(self.model_)

    def restore(self, state: State) -> BPCount:
        """Take up a saved model."""
        self.model_ = restored_model(state)
        return self

    def _self_train(
        self, bags: Bags, chains: list[Chain], whole: Chain, standing: Judgement, monitor: Monitor, seed: int
    ) -> int:
        """Rounds of stage 2; how many were accepted."""
        learner = make_learner(self.learner, bags.X, bags.columns, trees=self.trees, epochs=self.epochs)
        similarity = choose_similarity(
            self.similarity, bags, whole, learner, neighbours=self.neighbours, seed=seed, monitor=monitor
        )
        monitor.note("similarity", similarity.weight)
        accepted = 0
        for number in range(1, self.rounds + 1):
            for k, chain in enumerate(chains):
                learn(chain, learner, bags.X, similarity.posterior, seed + 101 * number + k + 1, monitor)
            with monitor.phase("counting"):
                found = best_blend(chains, MIXES)
            gain = gain_in_standard_errors(found.likelihood, standing.likelihood)
            monitor.note(f"gain_{number}", min(gain, 1e6))
            if gain <= self.least_gain:
                break
            learn(whole, learner, bags.X, similarity.posterior, seed + 101 * number, monitor)
            for chain in chains:
                adopt(chain, found.mix, found.slope)
            self.model_ = adopt(whole, found.mix, found.slope)
            standing, accepted = found, number
            monitor.note(f"mix_{number}", found.mix)
            monitor.note(f"slope_{number}", found.slope)
            with monitor.phase("counting"):
                soft = similarity.posterior(whole.current, whole.bags, whole.rows)
            monitor.pseudo_labels(row_values(soft), stage=f"round-{number}")
            monitor.report(self.predict_scores)
        return accepted

    def _first_posterior(self, whole: Chain, monitor: Monitor) -> np.ndarray:
        """Posterior of all rows by the counting factors alone; of overlapping bags, with notes on the messages."""
        if whole.bags.members is None:
            return plain_posterior(whole.current, whole.bags, whole.rows)
        found = overlapping_posterior(whole.current, whole.bags)
        monitor.note("bp converged", found.converged)
        monitor.note("bp scale", found.scale)
        return found.probabilities

    def _note_regression(self, monitor: Monitor, whole: Chain, slope: float) -> None:
        """Record what the regression found."""
        assert isinstance(whole.linear, Blend)
        field = whole.linear.linear
        assert isinstance(field, LinearField)
        monitor.note("slope", slope)
        for c, law in enumerate(field.averages):
            suffix = f"_{c}" if len(field.averages) > 1 else ""
            monitor.note(f"explained{suffix}", law.explained)
            monitor.note(f"log_evidence{suffix}", law.log_evidence)
            monitor.note(f"effect{suffix}", field.effects[c])
            if len(field.averages) == 1:
                for name, mass in law.family_mass.items():
                    monitor.note(f"mass_{name}", mass)


def _fit_linear(regression: MeanRegression, bags: Bags, chosen: np.ndarray) -> LinearField:
    return regression.fit(chosen, np.asarray(bags.counts, np.float64)[chosen], bags.count_sd)


def has_effect(chain: Chain) -> bool:
    """Whether the chain's regression found that bags have an effect of their own."""
    return isinstance(chain.linear, LinearField) and any(effect > 0.0 for effect in chain.linear.effects)


def rescale(chain: Chain, slope: float) -> None:
    """Give the chain's linear fields the slope and shift they are to keep in every blend."""
    chain.values, shift = chain.calibrated(chain.values, slope)
    chain.current = chain.values
    chain.linear = Blend(0.0, slope, shift, chain.linear)
