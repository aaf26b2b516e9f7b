"""The one entry point: marginals of a model by a named engine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.damping import PATIENCE, advance_damped, advance_with_auto_damping
from llpbench_methods.inference.diagnostics import MOST_DAMPING, auto_damping, damping_limit, stability_index
from llpbench_methods.inference.engines import engine_spec, start
from llpbench_methods.inference.messages import Mode, sigmoid
from llpbench_methods.inference.model import GibbsModel, PottsModel

Floats = NDArray[np.float64]


class OscillationWarning(UserWarning):
    """The messages oscillate instead of converging: the numbers are a phase of an oscillation, not marginals."""


@dataclass(frozen=True)
class Marginals:
    """Result of belief propagation.

    Attributes:
        beliefs: `P(y_i = 1)`, or `(n, C)` for a multiclass model (rows sum to 1 for the counting engines; the pairwise
            engines give each indicator's own marginal). In `max` mode normalised max-marginals.
        log_odds: the same in log-odds (multiclass by counting: log-probabilities).
        residuals: for each round, the largest change of a log-odds (multiclass by counting: of a probability) that an
            undamped round would make: the change that was seen, divided by `1 - damping`. A strong damping alone makes
            changes small and is no convergence. The PGMax engine knows only its last round's: the others are nan.
        converged: whether the last residual is at most `tol`.
        rounds: rounds used.
        damping: the damping of the last round.
        stability: the largest stability index `g` over bags; 0 for the counting engines, which have no bag clique.
        build_seconds: wall time to set the engine up.
        run_seconds: wall time of the rounds.
    """

    beliefs: Floats
    log_odds: Floats
    residuals: Floats
    converged: bool
    rounds: int
    damping: float
    stability: float
    build_seconds: float
    run_seconds: float


def marginals(
    model: GibbsModel | PottsModel,
    engine: str = "count",
    *,
    rounds: int = 100,
    damping: float | Literal["auto"] = "auto",
    tol: float = 1e-4,
    mode: Mode = "sum",
    threads: int = 1,
    **options: Any,
) -> Marginals:
    """Run belief propagation.

    Args:
        model: the Gibbs law.
        engine: name of the engine; `all_engines()` lists them.
        rounds: most rounds to run.
        damping: share of the old message kept, in [0, 1). `auto` starts from the smallest stable value that the bags
            suggest, halves the distance to 1 (down to .001) while log-odds swing, and doubles it again when they have
            stopped; see `advance_with_auto_damping`.
        tol: stop when the residual is at most this; 0 runs all rounds.
        mode: `sum` for marginals, `max` for max-product.
        threads: cores the engine may use.
        **options: further settings of the engine.

    Warns:
        OscillationWarning: when the messages did not settle and show no sign of it.
    """
    if mode not in ("sum", "max"):
        raise ValueError(f"unknown mode {mode!r}: choose 'sum' or 'max'")
    if damping != "auto" and not 0.0 <= damping < 1.0:
        raise ValueError(f"damping must be 'auto' or in [0, 1), got {damping!r}")
    if rounds < 0 or tol < 0:
        raise ValueError("rounds and tol must not be negative")
    spec = engine_spec(engine)
    g = 0.0 if spec.counting else float(stability_index(model).max(initial=0.0))
    begin = time.perf_counter()
    state = start(engine, model, mode, threads, **options)
    built = time.perf_counter()
    if damping == "auto":
        residuals, last = advance_with_auto_damping(state, rounds, auto_damping(g), tol)
    else:
        residuals, last = advance_damped(state, rounds, damping, tol), damping
    log_odds = state.log_odds()
    done = time.perf_counter()
    converged = bool(len(residuals) > 0 and residuals[-1] <= tol)
    if not converged:
        _warn_of_oscillation(residuals, g, last, tol, counting=spec.counting)
    if isinstance(model, PottsModel) and log_odds.ndim == 1:
        log_odds = log_odds.reshape(model.n, model.n_classes)
    logarithms = isinstance(model, PottsModel) and spec.multiclass
    return Marginals(
        beliefs=np.exp(log_odds) if logarithms else sigmoid(log_odds),
        log_odds=log_odds,
        residuals=residuals,
        converged=converged,
        rounds=len(residuals),
        damping=float(last),
        stability=g,
        build_seconds=built - begin,
        run_seconds=done - built,
    )


def _warn_of_oscillation(residuals: Floats, g: float, damping: float, tol: float, *, counting: bool) -> None:
    if len(residuals) == 0:
        return
    unstable = g >= damping_limit(damping)
    recent = residuals[-PATIENCE - 1 :]
    stuck = len(recent) > PATIENCE and residuals[-1] > max(0.9 * recent[0], 1e-2, tol)
    if unstable or stuck or damping >= MOST_DAMPING:
        text = f"belief propagation did not settle: the last round changed a log-odds by {residuals[-1]:.3g}"
        if counting:
            text += ": use more rounds, a weaker lambda_s or some damping."
        else:
            text += (
                f" (stability index g = {g:.3g}, damping {damping:.3g} holds up to {damping_limit(damping):.3g}). "
                "The result is a phase of an oscillation: use damping='auto', more rounds, or engine='count'."
            )
        warnings.warn(text, OscillationWarning, stacklevel=3)
