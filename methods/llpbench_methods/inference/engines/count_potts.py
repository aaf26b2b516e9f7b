"""Counting factors for C-state labels, numba: the schedule and the messages of `ReferencePottsCount`.

One counting factor per bag and class sees a member through its log-odds of that class against the rest; the one-hot
constraint is kept exactly by the node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.counts_by_fourier import workspace
from llpbench_methods.inference.compiled.jit import njit
from llpbench_methods.inference.counting import fill_messages
from llpbench_methods.inference.engines.reference_count import CERTAIN
from llpbench_methods.inference.messages import Mode, damp
from llpbench_methods.inference.model import PottsModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    left: Ints,
    right: Ints,
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


class PottsCount:
    """Messages of a multiclass model, rows in bag order."""

    def __init__(self, model: PottsModel, mode: Mode) -> None:
        bags = model.bags
        self.use_max = mode == "max"
        self.order = np.concatenate([bags.members, np.flatnonzero(model.bag_of < 0)])
        place = np.empty(model.n, dtype=np.int64)
        place[self.order] = np.arange(model.n)
        self.left, self.right = place[model.edges[:, 0]], place[model.edges[:, 1]]
        self.weights = model.weights
        self.fields = model.fields[self.order]
        self.offsets, self.counts, self.lambda_b = bags.offsets, model.counts, model.lambda_b
        shape = (len(model.weights), model.n_classes)
        self.forth, self.back = np.zeros(shape), np.zeros(shape)
        self.tilts = np.zeros((model.n_classes, len(model.lambda_b)))
        self.work = workspace(int(bags.sizes.max(initial=1)))
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
        residuals = []
        for _ in range(rounds):
            self.node = self.fields.copy()
            _edge_step(
                self.left,
                self.right,
                self.weights,
                self.forth,
                self.back,
                self.log_beliefs,
                damping,
                self.use_max,
                self.node,
            )
            self.from_bag = damp(self.from_bag, self._bag_step(), damping)
            residuals.append(_normalised(self.node, self.from_bag, self.log_beliefs))
            if residuals[-1] <= tol:
                break
        return np.array(residuals)

    def log_odds(self) -> Floats:
        """Log-probabilities of the states, in the order of the model's rows."""
        out = np.empty(self.fields.shape)
        out[self.order] = self.log_beliefs
        return out
