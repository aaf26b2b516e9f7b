"""The inference engines. Each holds the messages of one model and advances them round by round.

Engines load only when asked for: numba, jax and PGMax are heavy imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.messages import Mode
from llpbench_methods.inference.model import GibbsModel, PottsModel

ENGINES: dict[str, str] = {
    "reference": "llpbench_methods.inference.engines.reference",
    "reference-count": "llpbench_methods.inference.engines.reference_count",
    "jax": "llpbench_methods.inference.engines.dense_jax",
    "pairwise": "llpbench_methods.inference.engines.pairwise",
    "count": "llpbench_methods.inference.engines.count",
    "pgmax": "llpbench_methods.inference.engines.pgmax_adapter",
}
THREADED = ("pairwise", "count")
"""Engines that spread over cores themselves (jax and PGMax do so, or not, by their own settings)."""


class Engine(Protocol):
    """What every engine offers."""

    def advance(self, rounds: int, damping: float, tol: float) -> NDArray[np.float64]:
        """Run up to `rounds` rounds, stopping once the residual is at most `tol`.

        The residual of a round is the largest change of a node's log-odds. Returns the residuals, one per round.
        """
        ...

    def log_odds(self) -> NDArray[np.float64]:
        """Node beliefs: `(n,)` log-odds of label 1, or `(n, C)` log-probabilities."""
        ...


def start(name: str, model: GibbsModel | PottsModel, mode: Mode, threads: int, **options: Any) -> Engine:
    """Build the named engine for a model, messages at their starting values.

    Raises:
        ValueError: if there is no engine of that name.
    """
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}: choose from {', '.join(ENGINES)}")
    if name in THREADED:
        options["threads"] = threads
    engine: Engine = import_module(ENGINES[name]).start(model, mode=mode, **options)
    return engine
