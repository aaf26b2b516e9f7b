"""Counting factors, numba: similarity edges stay pairwise, every bag is one factor of its members' sum.

The schedule is that of `reference_count`. Rows are renumbered bag by bag. When every `|h_i| + sum_j |w_ij|` is moderate
the whole round works on odds, `E = e^H`, and needs no exponential or logarithm per row; otherwise (and for
max-product) it works on log-odds.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.counts_by_fourier import fourier_messages, workspace
from llpbench_methods.inference.compiled.counts_in_logs import windowed_messages
from llpbench_methods.inference.compiled.edges import edges_in_logs, edges_in_odds
from llpbench_methods.inference.compiled.jit import njit
from llpbench_methods.inference.counting import fill_messages
from llpbench_methods.inference.engines import Engine
from llpbench_methods.inference.messages import Mode, damp, even_cuts, largest_change, run_rounds, sum_at
from llpbench_methods.inference.model import GibbsModel, PottsModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MODERATE = 120.0
"""Largest `|h_i| + sum_j |w_ij|` for which odds cannot leave the range of float64."""
_CEILING = 1e150
"""Message odds are cut here: 225 units of log-odds beyond anything that the rest of a moderate model can add up to."""


def start(model: GibbsModel | PottsModel, *, mode: Mode, threads: int = 1) -> Engine:
    """Start the engine in the form that suits the model."""
    if isinstance(model, PottsModel):
        from llpbench_methods.inference.engines.count_potts import start_potts

        return start_potts(model, mode)
    layout = _CountLayout(model)
    if mode == "sum" and layout.reach <= MODERATE:
        return CountInOdds(model, layout, threads)
    return CountInLogs(model, layout, mode)


class _CountLayout:
    """Rows in bag order, edges in those numbers, and the fields that centred messages leave behind."""

    def __init__(self, model: GibbsModel) -> None:
        n, bags = model.n, model.bags
        loose = np.flatnonzero(model.bag_of < 0)
        self.order = np.concatenate([bags.members, loose]) if len(loose) else bags.members
        place = np.empty(n, dtype=np.int32)
        place[self.order] = np.arange(n, dtype=np.int32)
        self.left = place[model.edges[:, 0]]
        self.right = place[model.edges[:, 1]]
        self.weights = 0.5 * model.couplings
        pull = self._at_rows(self.weights, n)
        self.fields = model.fields[self.order] + pull
        strongest = self._at_rows(np.abs(self.weights), n) if (self.weights < 0).any() else pull
        self.reach = float((np.abs(self.fields) + strongest).max(initial=0.0))
        self.offsets = bags.offsets
        self.largest = int(bags.sizes.max(initial=1))
        self.certain = self._certain(model)

    def _at_rows(self, values: Floats, n: int) -> Floats:
        return sum_at(self.left, values, n) + sum_at(self.right, values, n)

    def _certain(self, model: GibbsModel) -> Floats:
        """`+inf` or `-inf` for the rows of a hard bag whose count is full or zero, else 0."""
        sizes = np.diff(self.offsets)
        hard = np.isinf(model.lambda_b)
        sign = np.where(hard & (model.counts == 0), -np.inf, 0.0)
        sign = np.where(hard & (model.counts == sizes), np.inf, sign)
        out = np.zeros(model.n)
        out[: self.offsets[-1]] = np.repeat(sign, sizes)
        return out


@njit
def _bags_in_odds(
    incoming: Floats,
    offsets: Ints,
    counts: Floats,
    lambda_b: Floats,
    first: int,
    last: int,
    damping: float,
    work: Floats,
    tilts: Floats,
    message: Floats,
    odds: Floats,
) -> tuple[float, float]:
    """Messages of bags `first..last-1` and the beliefs of their rows; returns the extreme ratios of new to old."""
    high = 1.0
    low = 1.0
    for b in range(first, last):
        begin, end = offsets[b], offsets[b + 1]
        size = end - begin
        y, lam = counts[b], lambda_b[b]
        part = incoming[begin:end]
        fresh = work[9, :size]
        if lam == 0.0 or size == 0:
            fresh[:] = 1.0
        elif np.isinf(lam) and (y == 0.0 or y == size):
            fresh[:] = _CEILING if y > 0.0 else 1.0 / _CEILING
        elif size == 1:
            fresh[0] = np.exp(lam * (2.0 * y - 1.0))
        else:
            good, tau, _ = fourier_messages(part, y, lam, tilts[b], work, fresh)
            if good:
                tilts[b] = tau
            else:
                windowed_messages(np.log(part), y, lam, fresh)
                for i in range(size):
                    fresh[i] = np.exp(fresh[i])
        for i in range(size):
            new = min(max(fresh[i], 1.0 / _CEILING), _CEILING)
            if damping > 0.0:
                new *= (message[begin + i] / new) ** damping
            message[begin + i] = new
            belief = part[i] * new
            ratio = belief / odds[begin + i]
            odds[begin + i] = belief
            high = max(high, ratio)
            low = min(low, ratio)
    return high, low


@njit
def _loose_in_odds(incoming: Floats, first: int, odds: Floats) -> tuple[float, float]:
    """Beliefs of the rows in no bag."""
    high = 1.0
    low = 1.0
    for i in range(first, incoming.size):
        ratio = incoming[i] / odds[i]
        odds[i] = incoming[i]
        high = max(high, ratio)
        low = min(low, ratio)
    return high, low


class CountInOdds:
    """The fast form, for moderate models."""

    def __init__(self, model: GibbsModel, layout: _CountLayout, threads: int) -> None:
        self.layout, self.model = layout, model
        self.threads = max(1, threads)
        self.alone = np.exp(layout.fields)
        self.c = np.exp(layout.weights)
        self.forth = np.ones(len(self.c))
        self.back = np.ones(len(self.c))
        self.odds = self.alone.copy()
        self.message = np.ones(model.n)
        self.tilts = np.zeros(len(model.counts))
        self.works = [workspace(layout.largest) for _ in range(self.threads)]
        self.products = np.empty((self.threads, model.n))
        self.bag_cuts = even_cuts(layout.offsets, self.threads)
        self.edge_cuts = np.linspace(0, len(self.c), self.threads + 1).astype(np.int64)
        self._bag_step(self.alone, 0.0, None)

    def _edge_part(self, part: int, damping: float) -> None:
        cut = slice(self.edge_cuts[part], self.edge_cuts[part + 1])
        product = self.products[part]
        product[:] = self.alone if part == 0 else 1.0
        layout = self.layout
        edges_in_odds(
            layout.left[cut],
            layout.right[cut],
            self.c[cut],
            self.forth[cut],
            self.back[cut],
            self.odds,
            damping,
            product,
        )

    def _bag_part(self, part: int, incoming: Floats, damping: float) -> tuple[float, float]:
        return _bags_in_odds(
            incoming,
            self.layout.offsets,
            self.model.counts,
            self.model.lambda_b,
            self.bag_cuts[part],
            self.bag_cuts[part + 1],
            damping,
            self.works[part],
            self.tilts,
            self.message,
            self.odds,
        )

    def _bag_step(self, incoming: Floats, damping: float, pool: ThreadPoolExecutor | None) -> float:
        if pool is None:
            extremes = [self._bag_part(part, incoming, damping) for part in range(self.threads)]
        else:
            extremes = list(pool.map(lambda part: self._bag_part(part, incoming, damping), range(self.threads)))
        extremes.append(_loose_in_odds(incoming, int(self.layout.offsets[-1]), self.odds))
        return float(max(np.log(max(high, 1.0 / low)) for high, low in extremes))

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then bags."""
        if self.threads == 1:
            return run_rounds(lambda: self._round(damping, None), rounds, tol)
        with ThreadPoolExecutor(self.threads) as pool:
            return run_rounds(lambda: self._round(damping, pool), rounds, tol)

    def _round(self, damping: float, pool: ThreadPoolExecutor | None) -> float:
        if pool is None:
            self._edge_part(0, damping)
            incoming = self.products[0]
        else:
            list(pool.map(lambda part: self._edge_part(part, damping), range(self.threads)))
            incoming = self.products.prod(axis=0)
        return self._bag_step(incoming, damping, pool)

    def log_odds(self) -> Floats:
        """Node beliefs in the order of the model's rows."""
        out = np.empty(self.model.n)
        out[self.layout.order] = np.log(self.odds) + self.layout.certain
        return out


class CountInLogs:
    """The form for any finite model, and for max-product."""

    def __init__(self, model: GibbsModel, layout: _CountLayout, mode: Mode) -> None:
        self.layout, self.model, self.use_max = layout, model, mode == "max"
        self.forth = np.zeros(len(layout.weights))
        self.back = np.zeros(len(layout.weights))
        self.tilts = np.zeros(len(model.counts))
        self.work = workspace(layout.largest)
        self.theta = layout.fields
        self.message = np.zeros(model.n)
        self.message = self._bag_step()

    def _bag_step(self) -> Floats:
        new, mass = np.zeros(self.model.n), np.empty(len(self.model.counts))
        inside = int(self.layout.offsets[-1])
        fill_messages(
            self.theta[:inside],
            self.layout.offsets,
            self.model.counts,
            self.model.lambda_b,
            self.use_max,
            self.work,
            self.tilts,
            new[:inside],
            mass,
        )
        return new

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: edges, then bags."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        layout, before = self.layout, self.theta + self.message
        total = layout.fields.copy()
        pairs = (layout.left, layout.right, layout.weights, self.forth, self.back)
        edges_in_logs(*pairs, before, damping, self.use_max, total)
        self.theta = total
        self.message = damp(self.message, self._bag_step(), damping)
        return largest_change(self.theta + self.message, before)

    def log_odds(self) -> Floats:
        """Node beliefs in the order of the model's rows."""
        out = np.empty(self.model.n)
        out[self.layout.order] = self.theta + self.message
        return out
