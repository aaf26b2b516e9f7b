"""Synchronous pairwise belief propagation in float64 numpy: short, and right for any graph.

Every pair is one factor, bag pairs included, so memory is O(sum B^2). Node log-odds `H_i = h_i + sum_k M_ki`; a round
sets every message at once, `M_ij <- d M_ij + (1 - d) [sp(x + J_ij) - sp(x)]` with `x = H_i - M_ji`, from zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.messages import Mode, damp, largest_change, pair_message, run_rounds, sum_at
from llpbench_methods.inference.model import GibbsModel, canonical_edges

Floats = NDArray[np.float64]


def start(model: GibbsModel, *, mode: Mode) -> ReferenceEngine:
    """Start the engine."""
    return ReferenceEngine(model, mode)


def all_pairs(model: GibbsModel) -> tuple[NDArray[np.int64], Floats]:
    """Every coupled pair of the expanded model with its summed coupling."""
    pairs, couplings = [model.edges], [model.couplings]
    bags = model.bags
    for b, size in enumerate(bags.sizes):
        members = bags.members[bags.offsets[b] : bags.offsets[b + 1]]
        i, j = np.triu_indices(size, 1)
        pairs.append(np.stack([members[i], members[j]], axis=1))
        couplings.append(np.full(len(i), -2.0 * model.lambda_b[b]))
    return canonical_edges(np.concatenate(pairs), np.concatenate(couplings))


class ReferenceEngine:
    """Messages on directed pairs: the first half `i -> j`, the second half `j -> i`."""

    def __init__(self, model: GibbsModel, mode: Mode = "sum") -> None:
        pairs, couplings = all_pairs(model)
        self.mode: Mode = mode
        self.fields = model.clique_fields()
        self.source = np.concatenate([pairs[:, 0], pairs[:, 1]])
        self.target = np.concatenate([pairs[:, 1], pairs[:, 0]])
        self.couplings = np.concatenate([couplings, couplings])
        self.messages = np.zeros(len(self.source))

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run synchronous rounds."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        before = self.log_odds()
        reverse = np.concatenate(np.split(self.messages, 2)[::-1])
        new = pair_message(before[self.source] - reverse, self.couplings, self.mode)
        self.messages = damp(self.messages, new, damping)
        return largest_change(self.log_odds(), before)

    def log_odds(self) -> Floats:
        """Node beliefs."""
        return self.fields + sum_at(self.target, self.messages, len(self.fields))
