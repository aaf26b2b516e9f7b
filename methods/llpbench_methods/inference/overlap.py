"""Belief propagation where bags overlap: counting factors of several groupings of the same rows.

A row takes part in one factor of each grouping that covers it, so bags are checks of a code over the labels, and
messages decode it. A factor's messages are exact for small bags (`counting`) and Gaussian for large ones: with `m` and
`v` the mean and variance of the sum of the *other* rows, `v` with the noise of the count,

    mu_i = log N(c; m + 1, v) - log N(c; m, v) = (c - m - 1/2) / v.

Groupings take turns: each sees the messages that the ones before it have just sent. Work and memory of a round are
linear in the entries (pairs of a row and a bag). With a single grouping and no similarity edges the first round is the
exact posterior.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llpbench import IntArray
from llpbench_methods.inference.compiled.counts_by_fourier import workspace
from llpbench_methods.inference.compiled.edges import edges_in_logs
from llpbench_methods.inference.counting import fill_messages
from llpbench_methods.inference.damping import advance_damped
from llpbench_methods.inference.graph import SimilarityGraph
from llpbench_methods.inference.messages import run_rounds, sigmoid, sum_at
from llpbench_methods.inference.model import gibbs_model
from llpbench_methods.inference.propagation import Marginals, OscillationWarning

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT_ROWS = 64
"""Largest bag with exact messages, if there are several groupings."""
STRONGEST = 40.0
"""Messages are cut to these log-odds: a count of 0, or one that the others imply, is certain and not infinite."""
SURE = 20.0
"""Changes of beliefs beyond these log-odds are ignored in the residual."""
_LEAST_VARIANCE = 0.25
STRETCH = 10
"""Number of rounds between two checks of the error of the counts."""
LEAST_MISSED = 1.0
"""Smaller errors of the counts are treated as this."""
RUNAWAY = 2.0
"""Messages diverge if the error of the counts exceeds this multiple of its smallest value."""
FIRST_DAMPING, MOST_DAMPING = 0.5, 0.95


@dataclass(frozen=True)
class OverlapModel:
    """Labels with prior log-odds, counts of overlapping bags and, if there is a graph, similarity pairs.

    Attributes:
        fields: (n,) prior log-odds.
        members: (entries,) rows, bag after bag; a row is at most once in a grouping.
        offsets: (bags + 1,) where bags begin.
        grouping_of: (bags,) ascending number of each bag's grouping.
        counts: (bags,) known counts of label 1; hard ones are whole numbers that the bag can hold.
        lambda_b: (bags,) weight of each factor `exp(-lambda_b (sum - count)^2)`; `inf` makes the count hard.
        graph: similar rows, or None.
        lambda_s: weight of the similarity term.
    """

    fields: Floats
    members: IntArray
    offsets: IntArray
    grouping_of: IntArray
    counts: Floats
    lambda_b: Floats
    graph: SimilarityGraph | None = None
    lambda_s: float = 0.0

    def __post_init__(self) -> None:
        sizes = np.diff(self.offsets)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.members) or (sizes < 1).any():
            raise ValueError("offsets must start at 0, end at the number of entries, and leave no bag empty")
        if not len(sizes) == len(self.counts) == len(self.lambda_b) == len(self.grouping_of):
            raise ValueError("offsets, grouping_of, counts and lambda_b must describe the same bags")
        if not np.isfinite(self.fields).all() or not np.isfinite(self.counts).all() or not (self.lambda_b >= 0).all():
            raise ValueError("fields and counts must be finite, lambda_b not negative")
        if (np.diff(self.grouping_of) < 0).any():
            raise ValueError("bags must be in the order of their groupings")
        grouping = np.repeat(self.grouping_of, sizes)
        if len(self.members) and (self.members.min() < 0 or self.members.max() >= len(self.fields)):
            raise ValueError("members refer to a row that does not exist")
        if len(np.unique(grouping * len(self.fields) + self.members)) != len(self.members):
            raise ValueError("a row is in two bags of one grouping")
        hard = np.isinf(self.lambda_b)
        impossible = (self.counts != np.round(self.counts)) | (self.counts < 0) | (self.counts > sizes)
        if impossible[hard].any():
            raise ValueError("hard counts (lambda_b = inf) must be whole numbers between 0 and the bag size")


class _Grouping:
    """The disjoint bags of one grouping: small ones exactly, large ones by a Gaussian."""

    def __init__(self, model: OverlapModel, first: int, last: int, exact_rows: float) -> None:
        offsets = model.offsets[first : last + 1]
        self.entries = slice(int(offsets[0]), int(offsets[-1]))
        self.rows = model.members[self.entries]
        sizes = np.diff(offsets)
        small = sizes <= exact_rows
        counts, lam = model.counts[first:last], model.lambda_b[first:last]
        self.small, self.large = (np.repeat(which, sizes) for which in (small, ~small))
        self.small_offsets, self.large_offsets = (_offsets(sizes[which]) for which in (small, ~small))
        self.small_counts, self.small_lambda = counts[small], lam[small]
        self.large_sizes, self.large_counts = sizes[~small], counts[~small]
        with np.errstate(divide="ignore"):
            self.noise = np.minimum(0.5 / lam[~small], 1e300)
        certain = np.isinf(lam) & ((counts == 0) | (counts == sizes))
        self.certain = np.where(certain, np.where(counts > 0, STRONGEST, -STRONGEST), np.nan)[~small]
        self.tilts, self.mass = np.zeros(int(small.sum())), np.zeros(int(small.sum()))
        self.work = workspace(int(sizes[small].max(initial=1)))

    def messages(self, cavity: Floats) -> Floats:
        """Messages to the rows, given the log-odds of the rows from the rest of the graph."""
        if not self.large.any():
            return np.clip(self._exact(cavity), -STRONGEST, STRONGEST)
        out = np.empty(len(cavity))
        if self.small.any():
            out[self.small] = self._exact(cavity[self.small])
        out[self.large] = self._gaussian(cavity[self.large])
        return np.clip(out, -STRONGEST, STRONGEST)

    def _exact(self, cavity: Floats) -> Floats:
        mu = np.zeros(len(cavity))
        fill_messages(
            cavity,
            self.small_offsets,
            self.small_counts,
            self.small_lambda,
            False,
            self.work,
            self.tilts,
            mu,
            self.mass,
        )
        return mu

    def _gaussian(self, cavity: Floats) -> Floats:
        p = sigmoid(cavity)
        spread = p * (1.0 - p)
        starts = self.large_offsets[:-1]
        gap = np.repeat(self.large_counts - np.add.reduceat(p, starts), self.large_sizes) + p - 0.5
        variance = np.repeat(np.add.reduceat(spread, starts) + self.noise, self.large_sizes) - spread
        certain = np.repeat(self.certain, self.large_sizes)
        return np.where(np.isnan(certain), gap / np.maximum(variance, _LEAST_VARIANCE), certain)


class OverlapEngine:
    """The messages of an overlapping model (an `Engine`)."""

    def __init__(self, model: OverlapModel, exact_rows: int = EXACT_ROWS) -> None:
        cuts = np.flatnonzero(np.diff(model.grouping_of)) + 1
        edges = [0, *cuts.tolist(), len(model.counts)]
        limit = float("inf") if len(edges) == 2 else exact_rows
        self.groupings = [_Grouping(model, a, b, limit) for a, b in pairwise(edges) if b > a]
        self.model = model
        nothing = np.zeros(0)
        pairs = gibbs_model(
            model.graph,
            np.full(len(model.fields), -1),
            nothing,
            lambda_b=nothing,
            lambda_s=model.lambda_s,
            fields=model.fields,
        )
        self.left, self.right = (pairs.edges[:, side].astype(np.int32) for side in (0, 1))
        self.weights = 0.5 * pairs.couplings
        n = len(model.fields)
        self.fields = pairs.fields + sum_at(self.left, self.weights, n) + sum_at(self.right, self.weights, n)
        self.forth, self.back = np.zeros(len(self.weights)), np.zeros(len(self.weights))
        self.messages = np.zeros(len(model.members))
        self.theta = self.fields.copy()

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds: similarity edges, then one grouping after the other."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        before = np.clip(self.theta, -SURE, SURE)
        pull = self.fields.copy()
        if len(self.weights):
            given = (self.left, self.right, self.weights, self.forth, self.back)
            edges_in_logs(*given, np.clip(self.theta, -STRONGEST, STRONGEST), damping, False, pull)
        self.theta = pull + sum_at(self.model.members, self.messages, len(pull))
        for grouping in self.groupings:
            old = self.messages[grouping.entries]
            cavity = self.theta[grouping.rows] - old
            new = grouping.messages(cavity)
            if damping > 0.0:
                new = damping * old + (1.0 - damping) * new
            self.theta[grouping.rows] = cavity + new
            self.messages[grouping.entries] = new
        return float(np.abs(np.clip(self.theta, -SURE, SURE) - before).max(initial=0.0))

    def missed(self) -> float:
        """Root mean square of how far beliefs miss the counts, in units of `sqrt(1/4 + sd^2)`.

        It falls as messages settle, and rises where they are about to run away to certain and wrong beliefs.
        """
        p = sigmoid(self.theta)[self.model.members]
        gap = np.add.reduceat(p, self.model.offsets[:-1]) - self.model.counts
        with np.errstate(divide="ignore"):
            noise = np.minimum(0.5 / self.model.lambda_b, 1e300)
        return float(np.sqrt(np.mean(gap**2 / (0.25 + noise))))

    def log_odds(self) -> Floats:
        """(n,) beliefs."""
        return np.clip(self.theta, -STRONGEST, STRONGEST)


def overlapping_marginals(
    model: OverlapModel,
    *,
    rounds: int = 200,
    damping: float | Literal["auto"] = "auto",
    tol: float = 1e-3,
    exact_rows: int = EXACT_ROWS,
) -> Marginals:
    """Marginals of labels given the counts of overlapping bags.

    Args:
        model: the labels and their counts.
        rounds: most rounds.
        damping: share of the old message kept. `auto` is none for a single grouping and 1/2 for several; where beliefs
            run away from the counts, messages start again with half the distance to 1.
        tol: stop when an undamped round would change no log-odds (within `SURE`) by more.
        exact_rows: largest bag with exact messages, if there are several groupings.

    Warns:
        OscillationWarning: when the messages did not settle; beliefs are then those that missed the counts least.
    """
    begin = time.perf_counter()
    state = OverlapEngine(model, exact_rows)
    built = time.perf_counter()
    several = len(state.groupings) > 1
    level = (FIRST_DAMPING if several else 0.0) if damping == "auto" else damping
    history: list[Floats] = []
    best, log_odds, used, converged = np.inf, state.log_odds(), 0, False
    while used < rounds and not converged:
        history.append(advance_damped(state, min(STRETCH, rounds - used), level, tol))
        used += len(history[-1])
        missed = state.missed()
        if missed <= RUNAWAY * max(best, LEAST_MISSED):
            converged = bool(history[-1][-1] <= tol)
            if converged or missed <= max(best, LEAST_MISSED):
                log_odds = state.log_odds()
            best = min(best, missed)
        elif damping != "auto" or level >= MOST_DAMPING:
            break
        else:
            level = 1.0 - 0.5 * (1.0 - level)
            state = OverlapEngine(model, exact_rows)
    done = time.perf_counter()
    residuals = np.concatenate([np.zeros(0), *history])
    if not converged and len(residuals):
        text = f"belief propagation did not settle: the last round changed a log-odds by {residuals[-1]:.3g}"
        warnings.warn(text, OscillationWarning, stacklevel=2)
    return Marginals(
        beliefs=sigmoid(log_odds),
        log_odds=log_odds,
        residuals=residuals,
        converged=converged,
        rounds=len(residuals),
        damping=float(level),
        stability=0.0,
        build_seconds=built - begin,
        run_seconds=done - built,
    )


def _offsets(sizes: IntArray) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
