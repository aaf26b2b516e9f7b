"""Belief propagation with counting factors in float64 numpy, by dynamic programming in logarithms.

Similarity edges stay pairwise (also inside a bag); each bag is one factor of its members' sum. A round updates the
edge messages, then the bag messages, which start from the fields alone: without edges the start is already exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from llpbench_methods.inference.messages import Mode, centred_message, damp, largest_change, run_rounds, sum_at
from llpbench_methods.inference.model import GibbsModel, PottsModel

Floats = NDArray[np.float64]
CERTAIN = 1e12
"""Stands for an infinite message among several states, where infinities could meet."""


def start(model: GibbsModel | PottsModel, *, mode: Mode) -> ReferenceCount | ReferencePottsCount:
    """Start the engine for a binary or a multiclass model."""
    return ReferencePottsCount(model, mode) if isinstance(model, PottsModel) else ReferenceCount(model, mode)


def bag_messages(theta: Floats, count: float, lam: float, mode: Mode = "sum") -> Floats:
    """Messages of one counting factor to its members, by forward and backward tables over the partial sum.

    `mu_i = log sum_s P_{-i}(s) phi(s + 1) - log sum_s P_{-i}(s) phi(s)`, `phi(s) = exp(-lam (s - count)^2)`.
    """
    size = len(theta)
    sums = np.arange(size + 1)
    goal = np.where(sums == count, 0.0, -np.inf) if np.isinf(lam) else -lam * (sums - count) ** 2
    add = np.logaddexp if mode == "sum" else np.maximum
    backward = np.full((size + 1, size + 2), -np.inf)
    backward[size, :-1] = goal
    for i in range(size - 1, -1, -1):
        backward[i, :-1] = add(backward[i + 1, :-1], theta[i] + backward[i + 1, 1:])
    forward = np.full(size + 1, -np.inf)
    forward[0] = 0.0
    mu = np.empty(size)
    for i in range(size):
        mu[i] = add.reduce(forward + backward[i + 1, 1:]) - add.reduce(forward + backward[i + 1, :-1])
        forward = add(forward, np.concatenate([[-np.inf], theta[i] + forward[:-1]]))
    return mu


class ReferenceCount:
    """Binary labels."""

    def __init__(self, model: GibbsModel, mode: Mode = "sum") -> None:
        self.model = model
        self.mode: Mode = mode
        edges = model.edges
        self.source, self.target = np.concatenate([edges, edges[:, ::-1]]).T
        self.weights = 0.5 * np.concatenate([model.couplings, model.couplings])
        # The centred message leaves half of each coupling in the fields of both ends.
        self.fields = model.fields + self._gather(self.weights)
        self.messages = np.zeros(len(self.source))
        self.from_bag = np.zeros(model.n)
        self.from_bag = self._bag_step()

    def _gather(self, values: Floats) -> Floats:
        return sum_at(self.target, values, self.model.n)

    def _bag_step(self) -> Floats:
        model, theta, out = self.model, self.fields + self._gather(self.messages), np.zeros(self.model.n)
        bags = model.bags
        for b in range(len(model.lambda_b)):
            members = bags.members[bags.offsets[b] : bags.offsets[b + 1]]
            if len(members):
                out[members] = bag_messages(theta[members], model.counts[b], model.lambda_b[b], self.mode)
        return out

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then bags."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        before = self.log_odds()
        reverse = np.concatenate(np.split(self.messages, 2)[::-1])
        new = centred_message(before[self.source] - reverse, self.weights, self.mode)
        self.messages = damp(self.messages, new, damping)
        self.from_bag = damp(self.from_bag, self._bag_step(), damping)
        return largest_change(self.log_odds(), before)

    def log_odds(self) -> Floats:
        """Node beliefs."""
        return self.fields + self._gather(self.messages) + self.from_bag


class ReferencePottsCount:
    """C-state labels: one counting factor per bag and class, the one-hot constraint held by the node itself.

    The factor of class `c` sees a member through its log-odds of `c` against the rest and answers with one number,
    added to the log-belief of state `c`. Messages along an edge are log-vectors,
    `log m(x) = log(e^{-2w} + (1 - e^{-2w}) b(x))` for the sender's normalised cavity belief `b`.
    """

    def __init__(self, model: PottsModel, mode: Mode = "sum") -> None:
        self.model = model
        self.mode: Mode = mode
        edges = model.edges
        self.source, self.target = np.concatenate([edges, edges[:, ::-1]]).T
        self.weights = np.concatenate([model.weights, model.weights])
        self.messages = np.zeros((len(self.source), model.n_classes))
        self.from_bag = np.zeros((model.n, model.n_classes))
        self.from_bag = self._bag_step()

    def _node(self) -> Floats:
        out = self.model.fields.copy()
        np.add.at(out, self.target, self.messages)
        return out

    def _bag_step(self) -> Floats:
        model, node, out = self.model, self._node(), np.zeros_like(self.from_bag)
        full, bags = node + self.from_bag, model.bags
        states = np.arange(model.n_classes)
        for c in states:
            rest = self._total(full[:, states != c])
            theta = node[:, c] - rest
            for b in range(len(model.lambda_b)):
                members = bags.members[bags.offsets[b] : bags.offsets[b + 1]]
                if len(members):
                    mu = bag_messages(theta[members], model.counts[b, c], model.lambda_b[b], self.mode)
                    out[members, c] = np.clip(mu, -CERTAIN, CERTAIN)
        return out

    def _total(self, values: Floats) -> Floats:
        total = logsumexp(values, axis=1) if self.mode == "sum" else values.max(axis=1)
        return np.asarray(total)

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then bags (all classes from the same old messages)."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        before = self.log_odds()
        half = len(self.model.edges)
        reverse = np.concatenate([self.messages[half:], self.messages[:half]])
        cavity = before[self.source] - reverse
        cavity = cavity - self._total(cavity)[:, None]
        with np.errstate(divide="ignore"):
            stay = np.log(-np.expm1(-2.0 * self.weights))[:, None]
        away = -2.0 * self.weights[:, None]
        new = np.logaddexp(away, stay + cavity) if self.mode == "sum" else np.maximum(away, cavity)
        self.messages = damp(self.messages, new, damping)
        self.from_bag = damp(self.from_bag, self._bag_step(), damping)
        return largest_change(np.exp(self.log_odds()), np.exp(before))

    def log_odds(self) -> Floats:
        """Log-probabilities of the states."""
        full = self._node() + self.from_bag
        return np.asarray(full - np.asarray(logsumexp(full, axis=1))[:, None])
