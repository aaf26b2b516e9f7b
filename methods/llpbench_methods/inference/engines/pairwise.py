"""Exact synchronous rounds of pairwise belief propagation, numba: the same messages as `reference`, in float32.

Couplings up to 20 go by division on odds (see `compiled.cliques_in_odds`); stronger ones, and max-product, by the same
sweep on log-odds in float64. A similarity edge inside a bag is one factor with the bag's coupling: the edge carries the
pair and the clique's own message for it is divided out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.cliques_in_logs import rows_in_logs, take_out_of_logs
from llpbench_methods.inference.compiled.cliques_in_odds import LANES, settle_nodes, take_out, update_lanes, update_rows
from llpbench_methods.inference.compiled.edges import edges_in_logs, edges_in_odds
from llpbench_methods.inference.compiled.pair_layout import PairLayout, arrange
from llpbench_methods.inference.messages import Mode, even_cuts, largest_change, run_rounds, sum_at
from llpbench_methods.inference.model import GibbsModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANE_LIMIT = 1024
STRONGEST_CLIQUE = 20.0
STRONGEST_EDGES = 200.0
_BOUNDED = 450.0


def start(
    model: GibbsModel, *, mode: Mode, threads: int = 1, lane_limit: int = LANE_LIMIT
) -> PairwiseInOdds | PairwiseInLogs:
    """Start the engine in the form that suits the model."""
    if mode == "sum" and 2.0 * model.lambda_b.max(initial=0.0) <= STRONGEST_CLIQUE:
        layout = arrange(model, lane_limit)
        if layout.edge_reach <= STRONGEST_EDGES:
            return PairwiseInOdds(layout, threads)
    return PairwiseInLogs(arrange(model, 0), mode)


class PairwiseInOdds:
    """Messages as odds: float32 in the cliques, float64 on the edges."""

    def __init__(self, layout: PairLayout, threads: int) -> None:
        self.layout = layout
        self.threads = max(1, threads)
        self.bounded = layout.reach <= _BOUNDED
        self.c = np.exp(layout.weights)
        # The edges hold centred messages, so zero messages start at e^{-w}.
        self.forth = 1.0 / self.c
        self.back = self.forth.copy()
        self.lane_store = np.ones((2, int(layout.lanes.pair_start[-1])), dtype=np.float32)
        self.row_store = np.ones((2, int(layout.rows.pair_start[-1])), dtype=np.float32)
        self.clique_c = np.exp(layout.coupling).astype(np.float32)
        in_lanes = layout.held_at % 2 == 0
        self.held = [
            (layout.held_low[part], layout.held_high[part], layout.held_at[part] // 2) for part in (in_lanes, ~in_lanes)
        ]
        self.alone = np.where(layout.real, np.exp(layout.fields) if self.bounded else 1.0, 0.0)
        self.log_odds_now = layout.fields - _edge_sums(layout)
        self.odds = np.where(layout.real, np.exp(np.clip(self.log_odds_now, -_BOUNDED, _BOUNDED)), 0.0)
        self.logs = np.zeros(layout.nodes)
        self.products = np.empty((self.threads, layout.nodes))
        widest = max(int(layout.lanes.sizes.max(initial=0)) * LANES, int(layout.rows.sizes.max(initial=0)))
        self.work = np.zeros((self.threads, 3, widest), dtype=np.float32)
        self.edge_cuts = np.linspace(0, len(self.c), self.threads + 1).astype(np.int64)
        self.lane_cuts = even_cuts(layout.lanes.pair_start, self.threads)
        self.row_cuts = even_cuts(layout.rows.pair_start, self.threads)

    def _edge_part(self, part: int, damping: float) -> None:
        product = self.products[part]
        product[:] = self.alone if part == 0 else 1.0
        cut = slice(self.edge_cuts[part], self.edge_cuts[part + 1])
        edges_in_odds(
            self.layout.left[cut],
            self.layout.right[cut],
            self.c[cut],
            self.forth[cut],
            self.back[cut],
            self.odds,
            damping,
            product,
        )

    def _clique_part(self, part: int, damping: float) -> None:
        kind = {0.0: 0, 0.5: 1}.get(damping, 2)
        share = np.float32(1.0 - damping)
        for update, cliques, cuts, store in (
            (update_lanes, self.layout.lanes, self.lane_cuts, self.lane_store),
            (update_rows, self.layout.rows, self.row_cuts, self.row_store),
        ):
            if cuts[part] < cuts[part + 1]:
                update(
                    cuts[part],
                    cuts[part + 1],
                    cliques.sizes,
                    cliques.node_start,
                    cliques.pair_start,
                    self.clique_c,
                    cliques.stretch,
                    store[0],
                    store[1],
                    self.odds,
                    kind,
                    share,
                    self.work[part],
                    self.products[0],
                    self.logs,
                )

    def _round(self, damping: float, pool: ThreadPoolExecutor | None) -> float:
        if not self.bounded:
            self.logs[:] = 0.0
        if pool is None:
            self._edge_part(0, damping)
            self._clique_part(0, damping)
        else:
            list(pool.map(lambda part: self._edge_part(part, damping), range(self.threads)))
            for other in self.products[1:]:
                self.products[0] *= other
            list(pool.map(lambda part: self._clique_part(part, damping), range(self.threads)))
        for (low, high, at), store in zip(self.held, (self.lane_store, self.row_store), strict=True):
            take_out(low, high, at, store[0], store[1], self.products[0])
        return settle_nodes(self.bounded, self.layout.fields, self.products[0], self.logs, self.odds, self.log_odds_now)

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run synchronous rounds."""
        if self.threads == 1:
            return run_rounds(lambda: self._round(damping, None), rounds, tol)
        with ThreadPoolExecutor(self.threads) as pool:
            return run_rounds(lambda: self._round(damping, pool), rounds, tol)

    def log_odds(self) -> Floats:
        """Node beliefs in the order of the model's rows."""
        if self.bounded:
            return np.asarray(np.log(self.odds[self.layout.place]))
        return self.log_odds_now[self.layout.place]


class PairwiseInLogs:
    """Messages as log-odds in float64, for couplings of any size and for max-product."""

    def __init__(self, layout: PairLayout, mode: Mode) -> None:
        self.layout, self.use_max = layout, mode == "max"
        self.forth = -layout.weights
        self.back = -layout.weights
        self.store = np.zeros((2, int(layout.rows.pair_start[-1])))
        self.beliefs = layout.fields - _edge_sums(layout)

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run synchronous rounds."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        layout, rows, before = self.layout, self.layout.rows, self.beliefs
        total = layout.fields.copy()
        pairs = (layout.left, layout.right, layout.weights, self.forth, self.back)
        edges_in_logs(*pairs, before, damping, self.use_max, total)
        cliques = (rows.sizes, rows.node_start, layout.coupling, self.store[0], self.store[1])
        rows_in_logs(*cliques, before, damping, self.use_max, total)
        take_out_of_logs(layout.held_low, layout.held_high, layout.held_at // 2, self.store[0], self.store[1], total)
        self.beliefs = total
        return largest_change(total, before)

    def log_odds(self) -> Floats:
        """Node beliefs in the order of the model's rows."""
        return self.beliefs[self.layout.place]


def _edge_sums(layout: PairLayout) -> Floats:
    """Sum of the edge weights at each node: what centred messages start from, with the sign changed."""
    return sum_at(layout.left, layout.weights, layout.nodes) + sum_at(layout.right, layout.weights, layout.nodes)
