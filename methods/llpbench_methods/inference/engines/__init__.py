"""The inference engines: one entry each. An engine holds the messages of one model and advances them round by round.

An engine's module loads only when it is asked for: numba, jax and PGMax are heavy imports.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from llpbench_methods.inference.messages import Mode
    from llpbench_methods.inference.model import GibbsModel, PottsModel


class Engine(Protocol):
    """Interface of an engine."""

    def advance(self, rounds: int, damping: float, tol: float) -> NDArray[np.float64]:
        """Run up to `rounds` rounds, stopping once the residual is at most `tol`.

        The residual of a round is the largest change of a node's log-odds. Returns the residuals, one per round.
        """
        ...

    def log_odds(self) -> NDArray[np.float64]:
        """Node beliefs: `(n,)` log-odds of label 1, or `(n, C)` log-probabilities."""
        ...


@dataclass(frozen=True)
class EngineSpec:
    """Name, location and properties of an engine.

    Attributes:
        name: what the user types.
        start: `"module:function"`; `function(model, mode=...)` returns an `Engine` with its messages at their
            starting values.
        summary: a few words for help texts.
        counting: a bag is one factor of its sum. Such an engine has no bag clique that could oscillate: it needs no
            damping and takes any `lambda_b`.
        multiclass: it takes a `PottsModel` and gives log-probabilities. Otherwise it gets the indicators of the
            classes as one binary model (`one_hot`).
        threads: its start function also takes `threads`, the number of cores it may use (jax and PGMax follow their
            own settings).
    """

    name: str
    start: str
    summary: str = ""
    counting: bool = False
    multiclass: bool = False
    threads: bool = False


def _own(name: str, module: str, summary: str, *, counting: bool = False, threads: bool = False) -> EngineSpec:
    return EngineSpec(name, f"{__name__}.{module}:start", summary, counting, multiclass=counting, threads=threads)


_ENGINES = {
    spec.name: spec
    for spec in (
        _own("count", "count", "each bag is one factor of its sum, exact for two classes", counting=True, threads=True),
        _own("pairwise", "pairwise", "the paper's clique of pairs in each bag", threads=True),
        _own("jax", "dense_jax", "as pairwise, slower, on JAX"),
        _own("pgmax", "pgmax_adapter", "as pairwise, slower, by PGMax"),
        _own("reference", "reference", "as pairwise, slower, plain numpy"),
        _own("reference-count", "reference_count", "as count, slower, plain numpy", counting=True),
    )
}


def all_engines() -> tuple[EngineSpec, ...]:
    """All engines, those of plugins last."""
    return tuple(_ENGINES.values())


def engine_spec(name: str) -> EngineSpec:
    """The engine of that name.

    Raises:
        ValueError: if there is none.
    """
    if name not in _ENGINES:
        raise ValueError(f"unknown engine {name!r}: choose from {', '.join(_ENGINES)}")
    return _ENGINES[name]


def add_engine(spec: EngineSpec) -> None:
    """Add an engine, for example when a plugin file is imported; adding the same one again changes nothing.

    Raises:
        ValueError: if another engine has that name, or `start` does not read `module:function`.
    """
    if spec.start.count(":") != 1:
        raise ValueError(f"engine {spec.name!r}: start must read 'module:function', not {spec.start!r}")
    if _ENGINES.setdefault(spec.name, spec) != spec:
        raise ValueError(f"another engine is already named {spec.name!r}: choose a different name")


def start(name: str, model: GibbsModel | PottsModel, mode: Mode, threads: int, **options: Any) -> Engine:
    """Build the named engine for a model, messages at their starting values.

    Raises:
        ValueError: if there is no engine of that name.
    """
    from llpbench_methods.inference.model import PottsModel, one_hot

    spec = engine_spec(name)
    if isinstance(model, PottsModel) and not spec.multiclass:
        model = one_hot(model)
    if spec.threads:
        options["threads"] = threads
    module, function = spec.start.split(":")
    engine: Engine = getattr(import_module(module), function)(model, mode=mode, **options)
    return engine
