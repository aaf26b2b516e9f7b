"""The paper's own engine: the same pairwise model solved by PGMax (optional, `pip install 'llpbench[pgmax]'`).

PGMax 0.6.1 asks `jax.lib.xla_bridge` for the backend, which newer versions of JAX no longer have;
`_restore_xla_bridge` puts that one name back. Its temperature is 1 for sum-product and 0 for max-product, and it runs
the same synchronous damped rounds from zero messages. Its residual is the largest change of a message, not of a node's
log-odds.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.engines.reference import all_pairs
from llpbench_methods.inference.messages import Mode
from llpbench_methods.inference.model import GibbsModel

Floats = NDArray[np.float64]
_STRETCH = 25


def start(model: GibbsModel, *, mode: Mode) -> PGMaxEngine:
    """Start the engine."""
    return PGMaxEngine(model, mode)


def _restore_xla_bridge() -> None:
    library: Any = jax.lib
    if not hasattr(library, "xla_bridge"):
        from jax.extend.backend import get_backend

        library.xla_bridge = types.SimpleNamespace(get_backend=get_backend)


def _import_pgmax() -> tuple[Any, Any, Any, Any]:
    _restore_xla_bridge()
    try:
        from pgmax import fgraph, fgroup, infer, vgroup
    except ImportError as error:
        raise ImportError("engine='pgmax' needs PGMax: pip install 'llpbench[pgmax]'") from error
    return fgraph, fgroup, infer, vgroup


class PGMaxEngine:
    """A PGMax factor graph and its messages."""

    def __init__(self, model: GibbsModel, mode: Mode = "sum") -> None:
        fgraph, fgroup, infer, vgroup = _import_pgmax()
        self.fields = model.clique_fields()
        self.temperature = 1.0 if mode == "sum" else 0.0
        self.compiled: dict[int, Any] = {}
        self.variables = vgroup.NDVarArray(num_states=2, shape=(model.n,))
        graph = fgraph.FactorGraph(variable_groups=[self.variables])
        pairs, couplings = all_pairs(model)
        if len(pairs):
            potentials = np.zeros((len(pairs), 2, 2))
            potentials[:, 1, 1] = couplings
            names = [self.variables[i] for i in range(model.n)]
            factors = fgroup.PairwiseFactorGroup(
                variables_for_factors=[[names[i], names[j]] for i, j in pairs.tolist()],
                log_potential_matrix=potentials,
            )
            graph.add_factors(factors)
        self.empty = len(pairs) == 0
        if not self.empty:
            self.inferer = infer.build_inferer(graph.bp_state, backend="bp")
            evidence = np.stack([np.zeros(model.n), self.fields], axis=1)
            self.arrays = self.inferer.init(evidence_updates={self.variables: evidence})
            self.messages = self.arrays.ftov_msgs

    def advance(self, rounds: int, damping: float, tol: float) -> Floats:
        """Run rounds, in stretches of 25 when there is a tolerance to check."""
        if self.empty:
            return np.zeros(min(rounds, 1))
        history: list[Floats] = []
        left = rounds
        while left > 0:
            stretch = left if tol == 0.0 else min(left, _STRETCH)
            messages, changes = self._runner(stretch)(self.messages, damping)
            self.messages = messages
            history.append(np.asarray(changes, dtype=np.float64))
            left -= stretch
            if history[-1][-1] <= tol:
                break
        return np.concatenate(history) if history else np.zeros(0)

    def _runner(self, rounds: int) -> Any:
        """The compiled stretch of rounds; compiling it is most of PGMax's first call."""
        if rounds not in self.compiled:

            def run(messages: Any, damping: float) -> Any:
                arrays = dataclasses.replace(self.arrays, ftov_msgs=messages)
                arrays, changes = self.inferer.run_with_diffs(
                    arrays, num_iters=rounds, damping=damping, temperature=self.temperature
                )
                return arrays.ftov_msgs, changes

            self.compiled[rounds] = jax.jit(run)
        return self.compiled[rounds]

    def log_odds(self) -> Floats:
        """Node beliefs."""
        if self.empty:
            return self.fields.copy()
        arrays = dataclasses.replace(self.arrays, ftov_msgs=self.messages)
        beliefs = np.asarray(self.inferer.get_beliefs(arrays)[self.variables], dtype=np.float64)
        return np.asarray(beliefs[:, 1] - beliefs[:, 0])
