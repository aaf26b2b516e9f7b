"""Counting factors for C-state labels, numba: the schedule and the messages of `ReferencePottsCount`.

One counting factor per bag and class sees a member through its log-odds of that class against the rest; the one-hot
constraint is kept exactly by the node. When every row's fields and weights are moderate the whole round works on
probabilities, as the binary engine does on odds; otherwise (and for max-product) it works on logarithms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.counts_by_fourier import workspace
from llpbench_methods.inference.compiled.jit import njit
from llpbench_methods.inference.compiled.potts_in_odds import (
    bag_messages,
    odds_against_rest,
    potts_beliefs,
    potts_edges,
)
from llpbench_methods.inference.counting import fill_messages
from llpbench_methods.inference.engines.reference_count import CERTAIN
from llpbench_methods.inference.messages import Mode, damp, run_rounds, sum_at
from llpbench_methods.inference.model import PottsModel

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]

MODERATE = 120.0
"""Largest spread of a row's log-beliefs, fields and edges together, for which their products suit float64."""

STRONG = 20.0
"""Largest finite `lambda_b` without logarithms: beyond it, messages against all states of a row may be cut alike."""


def start_potts(model: PottsModel, mode: Mode) -> PottsInOdds | PottsInLogs:
    """Start the engine in the form that suits the model."""
    layout = _PottsLayout(model)
    soft = model.lambda_b[np.isfinite(model.lambda_b)]
    if mode == "sum" and layout.reach <= MODERATE and soft.max(initial=0.0) <= STRONG:
        return PottsInOdds(model, layout)
    return PottsInLogs(model, layout, mode)


class _PottsLayout:
    """Rows in bag order, edges in those numbers."""

    def __init__(self, model: PottsModel) -> None:
        bags = model.bags
        self.order = np.concatenate([bags.members, np.flatnonzero(model.bag_of < 0)])
        place = np.empty(model.n, dtype=np.int32)
        place[self.order] = np.arange(model.n, dtype=np.int32)
        self.left, self.right = place[model.edges[:, 0]], place[model.edges[:, 1]]
        self.fields = model.fields[self.order]
        pull = sum_at(self.left, model.weights, model.n) + sum_at(self.right, model.weights, model.n)
        self.reach = float((np.ptp(self.fields, axis=1) + 2.0 * pull).max(initial=0.0))
        self.offsets = bags.offsets
        self.largest = int(bags.sizes.max(initial=1))


class PottsInOdds:
    """The fast form, for moderate models: beliefs and messages are probabilities."""

    def __init__(self, model: PottsModel, layout: _PottsLayout) -> None:
        self.layout, self.model = layout, model
        self.alone = np.exp(layout.fields - layout.fields.max(axis=1, keepdims=True))
        self.away = np.exp(-2.0 * model.weights)
        shape = (len(model.weights), model.n_classes)
        self.forth, self.back = np.ones(shape), np.ones(shape)
        self.tilts = np.zeros((model.n_classes, len(model.lambda_b)))
        self.work = workspace(layout.largest)
        self.odds = np.empty((model.n_classes, model.n))
        self.from_bag, self.beliefs = np.ones(self.alone.shape), np.zeros(self.alone.shape)
        self._bag_step(self.alone, 0.0)

    def _bag_step(self, node: Floats, damping: float) -> float:
        """The factors of all classes from the same old messages; returns the largest change of a probability."""
        model, layout = self.model, self.layout
        odds_against_rest(node, self.from_bag, self.odds)
        bag_messages(
            self.odds, layout.offsets, model.counts, model.lambda_b, damping, self.work, self.tilts, self.from_bag
        )
        return potts_beliefs(node, self.from_bag, self.beliefs)

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then bags."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        layout, node = self.layout, self.alone.copy()
        potts_edges(layout.left, layout.right, self.away, self.forth, self.back, self.beliefs, damping, node)
        return self._bag_step(node, damping)

    def log_odds(self) -> Floats:
        """Log-probabilities of the states, in the order of the model's rows."""
        out = np.empty(self.beliefs.shape)
        out[self.layout.order] = np.log(self.beliefs)
        return out


@njit
def _log_sum(values: Floats, skip: int, use_max: bool) -> float:
    """`log sum exp` (or the maximum) of all entries but one; `skip = -1` for all."""
    top = -np.inf
    for c in range(values.size):
        if c != skip:
            top = max(top, values[c])
    if use_max or top == -np.inf:
        return top
    total = 0.0
    for c in range(values.size):
        if c != skip:
            total += np.exp(values[c] - top)
    return float(top + np.log(total))


@njit
def _edge_step(
    left: Rows,
    right: Rows,
    weights: Floats,
    forth: Floats,
    back: Floats,
    log_beliefs: Floats,
    damping: float,
    use_max: bool,
    node: Floats,
) -> None:
    """Edge messages `log(e^{-2w} + (1 - e^{-2w}) b(x))` from the senders' cavity beliefs, added into `node`."""
    classes = node.shape[1]
    cavity = np.empty((2, classes))
    for t in range(left.size):
        away = -2.0 * weights[t]
        stay = np.log(-np.expm1(away))
        for c in range(classes):
            cavity[0, c] = log_beliefs[left[t], c] - back[t, c]
            cavity[1, c] = log_beliefs[right[t], c] - forth[t, c]
        for side in range(2):
            message, to = (forth[t], right[t]) if side == 0 else (back[t], left[t])
            total = _log_sum(cavity[side], -1, use_max)
            for c in range(classes):
                b = cavity[side, c] - total
                if use_max:
                    new = max(away, b)
                else:
                    high, low = max(away, stay + b), min(away, stay + b)
                    new = high + np.log1p(np.exp(low - high))
                message[c] = damping * message[c] + (1.0 - damping) * new
                node[to, c] += message[c]


@njit
def _against_rest(node: Floats, from_bag: Floats, use_max: bool, theta: Floats) -> None:
    """Log-odds of each class against the others, as its own counting factor must see them: without its message."""
    full = np.empty(node.shape[1])
    for i in range(node.shape[0]):
        for c in range(node.shape[1]):
            full[c] = node[i, c] + from_bag[i, c]
        for c in range(node.shape[1]):
            theta[c, i] = node[i, c] - _log_sum(full, c, use_max)


@njit
def _normalised(node: Floats, from_bag: Floats, out: Floats) -> float:
    """Log-probabilities of the states into `out`; returns the largest change of a probability."""
    worst = 0.0
    full = np.empty(node.shape[1])
    for i in range(node.shape[0]):
        for c in range(full.size):
            full[c] = node[i, c] + from_bag[i, c]
        total = _log_sum(full, -1, False)
        for c in range(full.size):
            new = full[c] - total
            worst = max(worst, abs(np.exp(new) - np.exp(out[i, c])))
            out[i, c] = new
    return worst


class PottsInLogs:
    """The form for any finite model, and for max-product."""

    def __init__(self, model: PottsModel, layout: _PottsLayout, mode: Mode) -> None:
        self.use_max = mode == "max"
        self.order, self.left, self.right = layout.order, layout.left, layout.right
        self.weights, self.fields = model.weights, layout.fields
        self.offsets, self.counts, self.lambda_b = layout.offsets, model.counts, model.lambda_b
        shape = (len(model.weights), model.n_classes)
        self.forth, self.back = np.zeros(shape), np.zeros(shape)
        self.tilts = np.zeros((model.n_classes, len(model.lambda_b)))
        self.work = workspace(layout.largest)
        self.node = self.fields.copy()
        self.from_bag = np.zeros(self.fields.shape)
        self.from_bag = self._bag_step()
        self.log_beliefs = np.zeros(self.fields.shape)
        _normalised(self.node, self.from_bag, self.log_beliefs)

    def _bag_step(self) -> Floats:
        inside = int(self.offsets[-1])
        classes = self.fields.shape[1]
        theta = np.empty((classes, len(self.node)))
        _against_rest(self.node, self.from_bag, self.use_max, theta)
        out = np.zeros_like(self.from_bag)
        mu, mass = np.zeros(inside), np.empty(len(self.lambda_b))
        for c in range(classes):
            counts = np.ascontiguousarray(self.counts[:, c])
            fill_messages(
                theta[c, :inside],
                self.offsets,
                counts,
                self.lambda_b,
                self.use_max,
                self.work,
                self.tilts[c],
                mu,
                mass,
            )
            out[:inside, c] = np.clip(mu, -CERTAIN, CERTAIN)
        return out

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then the factors of all classes from the same old messages."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        self.node = self.fields.copy()
        pairs = (self.left, self.right, self.weights, self.forth, self.back)
        _edge_step(*pairs, self.log_beliefs, damping, self.use_max, self.node)
        self.from_bag = damp(self.from_bag, self._bag_step(), damping)
        return _normalised(self.node, self.from_bag, self.log_beliefs)

    def log_odds(self) -> Floats:
        """Log-probabilities of the states, in the order of the model's rows."""
        out = np.empty(self.fields.shape)
        out[self.order] = self.log_beliefs
        return out
