"""Will pairwise belief propagation settle? Stability of the bag cliques, and what damping they need.

In a bag of `B` rows with coupling `-2 lambda_b` and no similarity edges, a common shift of all messages is answered by
minus `g = 2 lambda_b (B - 1) p (1 - p)` times that shift. So undamped rounds settle iff `g < 1`, and with damping `d`
iff `g < (1 + d) / (1 - d)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.messages import sum_at
from llpbench_methods.inference.model import GibbsModel, PottsModel

Floats = NDArray[np.float64]
_MARGIN = 1.25
MOST_DAMPING = 0.999
"""The damping beyond which `auto` does not go: messages that keep 99.9 % of themselves hardly move at all."""


def stability_index(model: GibbsModel | PottsModel) -> Floats:
    """`g` of every bag (and class): the gain of its oscillating mode, taking `p` as the bag's proportion."""
    sizes = model.bags.sizes.astype(np.float64)
    lam = model.lambda_b
    if isinstance(model, PottsModel):
        sizes, lam = sizes[:, None], lam[:, None]
    share = np.clip(model.counts / np.maximum(sizes, 1.0), 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        g = 2.0 * lam * (sizes - 1.0) * share * (1.0 - share)
    return np.asarray(np.where((sizes < 2) | np.isnan(g), 0.0, g))


def damping_limit(damping: float) -> float:
    """The largest `g` that damping `d` holds: `(1 + d) / (1 - d)`."""
    return (1.0 + damping) / (1.0 - damping)


def critical_damping(g: float) -> float:
    """The damping above which a bag of stability index `g` settles: `(g - 1) / (g + 1)`, or 0."""
    return max(0.0, (g - 1.0) / (g + 1.0))


def auto_damping(g: float) -> float:
    """The critical damping of a bag a quarter less stable than the least stable one."""
    return min(critical_damping(_MARGIN * g), MOST_DAMPING)


@dataclass(frozen=True)
class SymmetricBag:
    """The fixed point of pairwise belief propagation in one bag without fields and edges.

    Attributes:
        message: the common message.
        marginal: the belief `sigma(h + (B - 1) M)`.
        slope: derivative of the undamped update at the fixed point (negative).
        smallest_damping: the damping it needs.
    """

    message: float
    marginal: float
    slope: float
    smallest_damping: float


def symmetric_bag(size: int, count: float, lambda_b: float) -> SymmetricBag:
    """Solve `M = sp(h + J + (B - 2) M) - sp(h + (B - 2) M)` with `h = lambda_b (2 c - 1)`, `J = -2 lambda_b`.

    The right side falls with `M`, so bisection on `[J, 0]` finds the only solution.
    """
    h, J = lambda_b * (2.0 * count - 1.0), -2.0 * lambda_b

    def update(message: float) -> float:
        a = h + (size - 2) * message
        return float(np.logaddexp(0.0, a + J) - np.logaddexp(0.0, a))

    low, high = J, 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if update(middle) > middle:
            low = middle
        else:
            high = middle
    message = 0.5 * (low + high)
    a = h + (size - 2) * message
    slope = (size - 2) * (_sigma(a + J) - _sigma(a))
    return SymmetricBag(message, _sigma(h + (size - 1) * message), slope, critical_damping(abs(slope)))


def uniform_contraction_bound(size: int, lambda_b: float, lambda_s: float = 0.0) -> float:
    """`(B - 1) tanh(|J| / 4)` with `|J| <= 2 lambda_b + 4 lambda_s`: below 1 the updates contract.

    The division by 4 is the passage from labels 0 and 1 to spins of -1 and +1.
    """
    return (size - 1) * float(np.tanh((2.0 * lambda_b + 4.0 * lambda_s) / 4.0))


def mooij_kappen_bound(model: GibbsModel) -> float:
    """Largest row sum of the matrix of message gains: `max_{i->j} sum_{k in N(i) - j} tanh(|J_ki| / 4)`.

    Below 1, synchronous updates contract from any start (Mooij and Kappen 2007, the simple form).
    """
    network = Network.weighted(model)
    total = network.apply(np.ones(model.n), network.in_bag, network.on_edge)
    # An edge inside a bag is a correction of the bag's own gain: its full gain is the sum of both.
    gain = np.where(model.same_bag, network.in_bag[model.bag_of[model.edges[:, 0]]], 0.0) + network.on_edge
    # The bag's own gain acts on a row only where some row of its bag has no edge to it.
    joined = np.bincount(model.edges[model.same_bag].ravel(), minlength=model.n)
    least = np.where(network.size_of_bag - 1 > joined, network.in_bag_of_row, np.inf)
    for end in (0, 1):
        np.minimum.at(least, model.edges[:, end], np.where(gain > 0.0, gain, np.inf))
    return float(np.where(np.isfinite(least), total - least, 0.0).max(initial=0.0))


def mooij_kappen_radius(model: GibbsModel) -> float:
    """Spectral radius of the matrix of message gains `tanh(|J| / 4)`; below 1, updates converge from any start.

    If the radius does not exceed the largest single gain, that gain (an upper bound) is returned.
    """
    return Network.weighted(model).radius()


def nonbacktracking_radius(model: GibbsModel) -> float:
    """Spectral radius of the non-backtracking matrix of the coupled pairs (0 for a forest)."""
    network = Network.unweighted(model)
    if network.is_forest():
        return 0.0
    return max(1.0, network.radius())


class Network:
    """Non-negative gains on bag cliques and edges, applied in O(n + E) whatever the bag size."""

    def __init__(self, model: GibbsModel, bag_gain: Floats, edge_gain: Floats) -> None:
        self.model = model
        self.bag_gain = bag_gain
        self.edge_gain = edge_gain
        self.same = model.same_bag
        self.bag_of_edge = model.bag_of[model.edges[:, 0]]
        self.in_bag, self.on_edge = self.coefficients(lambda gain: gain)

    @classmethod
    def weighted(cls, model: GibbsModel) -> Network:
        """Gains `tanh(|J| / 4)`."""
        return cls(model, np.tanh(0.5 * model.lambda_b), np.tanh(np.abs(model.merged_couplings()) / 4.0))

    @classmethod
    def unweighted(cls, model: GibbsModel) -> Network:
        """Gain 1 on every coupled pair."""
        merged = model.merged_couplings()
        return cls(model, (model.lambda_b > 0).astype(np.float64), (merged != 0.0).astype(np.float64))

    @property
    def size_of_bag(self) -> Floats:
        """Size of each row's bag, 0 without a bag."""
        return np.append(self.model.bags.sizes, 0).astype(np.float64)[self.model.bag_of]

    @property
    def in_bag_of_row(self) -> Floats:
        """Gain inside each row's bag; infinite where there is none, so that it never is the least."""
        gain = np.append(np.where(self.bag_gain > 0, self.bag_gain, np.inf), np.inf)
        return np.asarray(gain[self.model.bag_of])

    def coefficients(self, function: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """`function(gain)` per bag (with a 0 for "no bag") and per edge, inside a bag as a correction to it."""
        bag = np.append(function(self.bag_gain), 0.0)
        return bag, function(self.edge_gain) - np.where(self.same, bag[self.bag_of_edge], 0.0)

    def apply(self, x: Floats, bag: Floats, edge: Floats) -> Floats:
        """Multiply the symmetric matrix of coefficients by `x`."""
        model = self.model
        inside = model.bag_of >= 0
        sums = sum_at(model.bag_of[inside], x[inside], len(bag))
        out = bag[model.bag_of] * (sums[model.bag_of] - x)
        left, right = model.edges.T
        out += sum_at(left, edge * x[right], model.n)
        out += sum_at(right, edge * x[left], model.n)
        return np.asarray(out)

    def is_forest(self) -> bool:
        """Whether the coupled pairs have no cycle: as many pairs as rows minus components."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        model = self.model
        sizes = model.bags.sizes
        coupled = self.edge_gain > 0
        if (self.same & ~coupled).any():
            return False
        linked = np.append(self.bag_gain > 0, False)[model.bag_of]
        chain = model.bags.members
        follows = (model.bag_of[chain[1:]] == model.bag_of[chain[:-1]]) & linked[chain[1:]]
        pairs = int((sizes * (sizes - 1) // 2)[self.bag_gain > 0].sum())
        pairs += int((coupled & ~(self.same & linked[model.edges[:, 0]])).sum())
        row = np.concatenate([model.edges[coupled, 0], chain[:-1][follows]])
        column = np.concatenate([model.edges[coupled, 1], chain[1:][follows]])
        graph = coo_array((np.ones(len(row)), (row, column)), shape=(model.n, model.n))
        return bool(pairs == model.n - connected_components(graph, directed=False)[0])

    def radius(self) -> float:
        """Spectral radius of the non-backtracking matrix of the gains `t`.

        Its eigenvectors have `v_{i->j} = (m s_i - t s_j) / (m^2 - t^2)` for node sums `s`, so an eigenvalue `m` above
        every gain solves `s_j (1 + sum_i t^2 / (m^2 - t^2)) = sum_i m t / (m^2 - t^2) s_i` (for equal gains, Ihara and
        Bass). The symmetric matrix on nodes, scaled, has largest eigenvalue 1 exactly at the radius and less beyond.
        """
        from scipy.optimize import brentq

        acting = np.where(self._has_pairs(), self.bag_gain, 0.0)
        if (acting != self.bag_gain).any():
            return Network(self.model, acting, self.edge_gain).radius()
        floor = max(float(self.bag_gain.max(initial=0.0)), float(self.edge_gain.max(initial=0.0)))
        if floor == 0.0:
            return 0.0
        ones = np.ones(self.model.n)
        low, high = floor * (1.0 + 1e-7), float(self.apply(ones, self.in_bag, self.on_edge).max())
        if high <= low or self._top(low, ones) <= 1.0:
            return floor
        return float(brentq(lambda m: self._top(m, ones) - 1.0, low, high * (1.0 + 1e-9), rtol=1e-7))

    def _has_pairs(self) -> NDArray[np.bool_]:
        """Which bags have a pair of rows that no edge joins: only there the bag's own gain acts."""
        sizes = self.model.bags.sizes
        joined = np.bincount(self.bag_of_edge[self.same], minlength=len(sizes))
        return np.asarray(sizes * (sizes - 1) // 2 > joined)

    def _top(self, m: float, guess: Floats) -> float:
        """Largest eigenvalue of the scaled node matrix at `m`, by Lanczos iteration."""
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

        n = self.model.n
        cross = self.coefficients(lambda t: m * t / (m * m - t * t))
        square = self.coefficients(lambda t: t * t / (m * m - t * t))
        scale = 1.0 / np.sqrt(1.0 + self.apply(np.ones(n), *square))

        def matvec(x: Floats) -> Floats:
            return scale * self.apply(scale * x.ravel(), *cross)

        if n <= 40:
            dense = np.stack([matvec(column) for column in np.eye(n)])
            return float(np.linalg.eigvalsh(dense)[-1])
        operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
        try:
            return float(
                eigsh(operator, k=1, which="LA", v0=guess / scale, tol=1e-8, maxiter=50, return_eigenvectors=False)[0]
            )
        except ArpackNoConvergence as partial:
            return float(partial.eigenvalues.max(initial=self._rayleigh(matvec, n)))

    @staticmethod
    def _rayleigh(matvec: Callable[[Floats], Floats], n: int, steps: int = 500) -> float:
        """Power iteration, shifted so that it converges on bipartite graphs too."""
        x = np.ones(n)
        for _ in range(steps):
            x = x / np.linalg.norm(x)
            x = x + matvec(x)
        return float(x @ matvec(x) / (x @ x))


def _sigma(z: float) -> float:
    return float(0.5 * (1.0 + np.tanh(0.5 * z)))
