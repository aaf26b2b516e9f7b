"""Stage 2: self-training on counting-factor posteriors, every round tested on bags it has not seen.

Bags are split into folds. For each fold one chain learns from the bags of the *other* folds, beginning with a
regression of its own, and is tested on the fold; a further chain learns from all bags and makes the final model.
Chains never exchange fields: a field that was made with a bag's count must not reach the chain that this bag tests, or
every later round would look better than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from llpbench import FloatArray, Monitor
from llpbench_methods.bp_count.counts import CountedBags, log_likelihood, posterior
from llpbench_methods.bp_count.learners import Fields, Learner
from llpbench_methods.shared.shares import shift_to_shares

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Posterior = Callable[[Array, CountedBags, Ints], Array]

MIXES = (0.25, 0.5, 0.75, 1.0)
SLOPES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 2.7)


@dataclass(frozen=True)
class Blend:
    """Fields ``θ = τ + a (m · learner + (1 − m) · linear)``; ``m = 0`` needs no learner.

    Attributes:
        mix: share ``m`` of the learner.
        slope: ``a``.
        shift: (1,) or (C,) ``τ``.
        linear: the linear fields.
        learner: the learner's fields.
    """

    mix: float
    slope: float
    shift: Array
    linear: Fields
    learner: Fields | None = None

    def __call__(self, X: FloatArray) -> Array:
        """Fields of any rows."""
        if self.learner is None or self.mix == 0.0:
            values = self.linear(X)
        elif self.mix == 1.0:
            values = self.learner(X)
        else:
            values = blend(self.linear(X), self.learner(X), self.mix)
        return self.slope * values + self.shift


def blend(linear: Array, learnt: Array, mix: float) -> Array:
    """``m · learner + (1 − m) · linear``."""
    return mix * learnt + (1.0 - mix) * linear


@dataclass
class Chain:
    """One run of self-training on some of the bags.

    Attributes:
        bags: the counts it learns from.
        rows: numbers of their rows.
        held: the counts it is tested on (empty for the chain on all bags).
        held_rows: numbers of those rows.
        linear: its own regression's fields.
        values: (all rows, 1 or C) values of the linear fields.
        current: (all rows, 1 or C) current fields.
        learnt: fields of the last learner.
        learnt_values: (all rows, 1 or C) their values.
        effect: whether the held-out bags have an effect of their own, which their likelihood integrates out.
    """

    bags: CountedBags
    rows: Ints
    held: CountedBags
    held_rows: Ints
    linear: Fields
    values: Array
    current: Array
    learnt: Fields | None = None
    learnt_values: Array = field(default_factory=lambda: np.zeros((0, 1)))
    effect: bool = False

    def calibrated(self, values: Array, slope: float) -> tuple[Array, Array]:
        """``a·values`` with the shift that gives the chain's own rows the shares of its own counts."""
        scaled = slope * values
        shift = shift_to_shares(scaled[self.rows], self.bags.shares)
        return scaled + shift, shift

    def held_likelihood(self, fields: Array) -> Array:
        """(held bags,) log-likelihood of the counts this chain is tested on."""
        return log_likelihood(fields[self.held_rows], self.held, effect=self.effect)


def assign_folds(sizes: Ints, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Bags of each fold, assigned at random in order of size so that folds are alike."""
    order = np.lexsort((rng.random(len(sizes)), sizes))
    place = np.empty(len(sizes), np.int64)
    for start in range(0, len(order), folds):
        block = order[start : start + folds]
        place[block] = rng.permutation(folds)[: len(block)]
    return [np.flatnonzero(place == k) for k in range(folds)]


def make_chains(
    bags: CountedBags, folds: Sequence[Ints], X: FloatArray, fit_linear: Callable[[Ints], Fields]
) -> tuple[list[Chain], Chain]:
    """The folds' chains and the one on all bags, each with a regression on its own bags alone."""

    def chain(learns: Ints, tests: Ints) -> Chain:
        own, rows = bags.take(learns)
        held, held_rows = bags.take(tests)
        linear = fit_linear(learns)
        values = linear(X)
        return Chain(own, rows, held, held_rows, linear, values, values)

    every = np.arange(len(bags))
    return [chain(np.setdiff1d(every, fold), fold) for fold in folds], chain(every, every[:0])


@dataclass(frozen=True)
class Judgement:
    """Performance of a candidate on the bags that its chains have not seen.

    Attributes:
        mix: share of the learner.
        slope: factor on the fields.
        likelihood: (bags,) held-out log-likelihoods, fold after fold.
    """

    mix: float
    slope: float
    likelihood: Array


def best_blend(chains: Sequence[Chain], mixes: Sequence[float], slopes: Sequence[float] = SLOPES) -> Judgement:
    """The mix and slope with the highest likelihood of the held-out counts over all folds.

    For each mix the slope is sought upwards and downwards from 1, as long as it helps. Where bags have an effect of
    their own, downwards only: means of natural bags move far more than those of random ones, so their counts tell how
    steep fields are from bag to bag, and little of the rows inside a bag, which a larger slope would make too sure.
    """
    if any(chain.effect for chain in chains):
        slopes = [slope for slope in slopes if slope <= 1.0]
    best: Judgement | None = None
    for mix in mixes:
        values = [blend(c.values, c.learnt_values, mix) if mix > 0.0 else c.values for c in chains]

        def judge(slope: float, mix: float = mix, values: list[Array] = values) -> Judgement:
            parts = [c.held_likelihood(c.calibrated(v, slope)[0]) for c, v in zip(chains, values, strict=True)]
            return Judgement(mix, slope, np.concatenate(parts))

        found = _best_slope(judge, slopes)
        if best is None or found.likelihood.sum() > best.likelihood.sum():
            best = found
    assert best is not None
    return best


def _best_slope(judge: Callable[[float], Judgement], slopes: Sequence[float]) -> Judgement:
    """From slope 1 to either side, while the likelihood rises."""
    start = min(range(len(slopes)), key=lambda i: abs(slopes[i] - 1.0))
    top = judge(slopes[start])
    for step in (1, -1):
        at, moved = start + step, False
        while 0 <= at < len(slopes):
            other = judge(slopes[at])
            if other.likelihood.sum() <= top.likelihood.sum():
                break
            top, at, moved = other, at + step, True
        if moved:
            break
    return top


def gain_in_standard_errors(new: Array, old: Array) -> float:
    """Total gain over bags divided by its standard error ``√n sd``; 0 when there is no gain or fewer than 2 bags."""
    gain = new - old
    total = float(gain.sum())
    if len(gain) < 2 or total <= 0.0:
        return 0.0
    error = float(np.sqrt(len(gain)) * gain.std(ddof=1))
    return total / error if error > 0.0 else np.inf


def learn(chain: Chain, learner: Learner, X: FloatArray, posterior_of: Posterior, seed: int, monitor: Monitor) -> None:
    """One round of a chain: posteriors of its own rows, and a learner on them."""
    with monitor.phase("counting"):
        soft = posterior_of(chain.current[chain.rows], chain.bags, chain.rows)
    targets = np.zeros_like(chain.current)
    targets[chain.rows] = soft
    with monitor.phase("learner"):
        chain.learnt = learner.fit(chain.rows, targets, seed)
        chain.learnt_values = chain.learnt(X)


def adopt(chain: Chain, mix: float, slope: float) -> Blend:
    """Make the blend the chain's fields, and return it for use on other rows."""
    values = blend(chain.values, chain.learnt_values, mix) if mix > 0.0 else chain.values
    chain.current, shift = chain.calibrated(values, slope)
    return Blend(mix, slope, shift, chain.linear, chain.learnt if mix > 0.0 else None)


def plain_posterior(fields: Array, bags: CountedBags, rows: Ints) -> Array:  # noqa: ARG001
    """Posterior by the counting factors alone."""
    return posterior(fields, bags)
