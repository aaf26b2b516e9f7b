"""Pairwise belief propagation on dense arrays in JAX: one array of messages per size of bag, the rest as edges.

The readable version that also runs on accelerators. Bags of one size form `(bags, B, B)` arrays in which entry `[i, j]`
is the message from member `i` to member `j`; edges between bags are two vectors of messages. A similarity edge
inside a bag is added to the bag's coupling. Precision follows JAX: float32 unless 64 bits are enabled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.messages import Mode, run_rounds
from llpbench_methods.inference.model import GibbsModel

Floats = NDArray[np.float64]


def start(model: GibbsModel, *, mode: Mode) -> DenseJax:
    """Start the engine."""
    return DenseJax(model, mode)


def pair_message(x: Any, J: Any, use_max: bool) -> Any:
    """`sp(x + J) - sp(x)` around its middle, see `messages.pair_message`."""
    half = 0.5 * J
    size = jnp.abs(half)
    a = x + half
    value = jnp.clip(a, -size, size)
    if not use_max:
        value = value + jnp.log1p(jnp.exp(-jnp.abs(a + size))) - jnp.log1p(jnp.exp(-jnp.abs(a - size)))
    return half + jnp.sign(half) * value


def node_log_odds(problem: dict[str, Any], state: dict[str, Any]) -> Any:
    """`H_i = h_i + sum_k M_ki` over cliques and edges."""
    H = problem["fields"]
    for rows, messages in zip(problem["rows"], state["cliques"], strict=True):
        H = H.at[rows].add(messages.sum(axis=1))
    left, right = problem["edges"]
    return H.at[right].add(state["forth"]).at[left].add(state["back"])


@partial(jax.jit, static_argnames=("use_max",))
def one_round(
    problem: dict[str, Any], state: dict[str, Any], damping: float, use_max: bool
) -> tuple[dict[str, Any], Any]:
    """All messages at once; returns the new state and the largest change of a log-odds."""
    H = node_log_odds(problem, state)

    def step(old: Any, sender: Any, reverse: Any, J: Any) -> Any:
        return damping * old + (1.0 - damping) * pair_message(sender - reverse, J, use_max)

    cliques = [
        step(messages, H[rows][:, :, None], messages.swapaxes(1, 2), J)
        for rows, messages, J in zip(problem["rows"], state["cliques"], problem["couplings"], strict=True)
    ]
    left, right = problem["edges"]
    new = {
        "cliques": cliques,
        "forth": step(state["forth"], H[left], state["back"], problem["J"]),
        "back": step(state["back"], H[right], state["forth"], problem["J"]),
    }
    return new, jnp.abs(node_log_odds(problem, new) - H).max(initial=0.0)


class DenseJax:
    """The messages of one model as a tree of arrays."""

    def __init__(self, model: GibbsModel, mode: Mode = "sum") -> None:
        self.use_max = mode == "max"
        rows, couplings = _clique_arrays(model)
        across = ~model.same_bag
        self.problem: dict[str, Any] = {
            "fields": jnp.asarray(model.clique_fields()),
            "rows": [jnp.asarray(r) for r in rows],
            "couplings": [jnp.asarray(J) for J in couplings],
            "edges": (jnp.asarray(model.edges[across, 0]), jnp.asarray(model.edges[across, 1])),
            "J": jnp.asarray(model.couplings[across]),
        }
        none = jnp.zeros(int(across.sum()))
        self.state: dict[str, Any] = {
            "cliques": [jnp.zeros(J.shape) for J in couplings],
            "forth": none,
            "back": none,
        }

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run synchronous rounds."""
        return run_rounds(lambda: self._round(damping), rounds, tol)

    def _round(self, damping: float) -> float:
        self.state, residual = one_round(self.problem, self.state, damping, self.use_max)
        return float(residual)

    def log_odds(self) -> Floats:
        """Node beliefs."""
        return np.asarray(node_log_odds(self.problem, self.state), dtype=np.float64)


def _clique_arrays(model: GibbsModel) -> tuple[list[NDArray[np.int64]], list[Floats]]:
    """Rows `(bags, B)` and couplings `(bags, B, B)` of each group of equal-sized bags; the diagonal couples nothing."""
    bags, sizes = model.bags, model.bags.sizes
    member = np.zeros(model.n, dtype=np.int64)
    member[bags.members] = np.arange(len(bags.members)) - np.repeat(bags.offsets[:-1], sizes)
    rows, couplings = [], []
    inside = np.flatnonzero(model.same_bag)
    for size in np.unique(sizes[sizes > 1]):
        group = np.flatnonzero(sizes == size)
        rows.append(bags.members[bags.offsets[group][:, None] + np.arange(size)])
        J = np.tile(-2.0 * model.lambda_b[group][:, None, None], (1, size, size))
        J[:, np.arange(size), np.arange(size)] = 0.0
        order = np.full(len(sizes), -1)
        order[group] = np.arange(len(group))
        left, right = model.edges[inside].T
        here = order[model.bag_of[left]] >= 0
        place = order[model.bag_of[left[here]]]
        i, j = member[left[here]], member[right[here]]
        J[place, i, j] += model.couplings[inside[here]]
        J[place, j, i] += model.couplings[inside[here]]
        couplings.append(J)
    return rows, couplings
