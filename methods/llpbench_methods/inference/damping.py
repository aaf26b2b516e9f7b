"""Damping that finds itself: raised while log-odds swing, lowered again when they have stopped."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.diagnostics import MOST_DAMPING
from llpbench_methods.inference.engines import Engine

Floats = NDArray[np.float64]
PATIENCE = 10
"""Least rounds of a stretch after which the damping is looked at."""
FALLING = 0.9
"""A swing that is below this share of the one before is falling."""
QUIET = 0.1
"""A swing below this share of the residual is none: what still moves goes one way, and damping only slows it."""


def advance_damped(state: Engine, rounds: int, damping: float, tol: float) -> Floats:
    """Advance until an undamped round would change nothing by more than `tol`; the residuals of such rounds."""
    moves = 1.0 - damping
    return np.asarray(state.advance(rounds, damping, tol * moves)) / moves


def advance_with_auto_damping(state: Engine, rounds: int, damping: float, tol: float) -> tuple[Floats, float]:
    """Advance in stretches, each long enough for messages to move, and look for swings at the end of each.

    A row swings if its last two changes had opposite signs; the swing of a stretch is the largest last change of such
    a row, told (like a residual) for an undamped round. Two kinds of trouble look alike in the residual. A bag that
    answers each change with a larger one of the other sign needs more damping. Neighbours that hold each other up move
    all one way, faster and faster and then to a halt: for them damping is only delay. So the distance of the damping
    to 1 is halved when the swing did not fall from one stretch to the next at the same damping, and doubled again
    (never beyond where it began) after two stretches without swings. A damping that was left twice because of swings
    is not tried again. The first stretch is a transient that nothing is concluded from.

    Args:
        state: the engine.
        rounds: most rounds.
        damping: where to begin: what the stability of the bags asks for.
        tol: stop when the residual is at most this.

    Returns:
        The residuals, one per round, and the damping of the last round.
    """
    history: list[Floats] = []
    used, level, before, quiet = 0, 0, np.inf, 0
    failures: dict[int, int] = {}
    while used < rounds:
        now = min(1.0 - (1.0 - damping) * 0.5**level, MOST_DAMPING)
        length = min(max(PATIENCE, math.ceil(1.0 / (1.0 - now))), rounds - used)
        stretch, swing = _stretch(state, length, now, tol)
        history.append(stretch)
        used += len(stretch)
        if used >= rounds or stretch[-1] <= tol:
            return np.concatenate(history), now
        quiet = quiet + 1 if swing <= QUIET * stretch[-1] else 0
        if quiet == 0 and swing > FALLING * before and now < MOST_DAMPING:
            failures[level] = failures.get(level, 0) + 1
            level, before = level + 1, np.inf
        elif quiet >= 2 and level > 0 and failures[level - 1] < 2:
            level, before, quiet = level - 1, np.inf, 0
        else:
            before = swing
    return np.zeros(0), damping


def _stretch(state: Engine, rounds: int, damping: float, tol: float) -> tuple[Floats, float]:
    """Residuals of up to `rounds` rounds, and the swing at their end."""
    if rounds < 3:
        return advance_damped(state, rounds, damping, tol), 0.0
    residuals = [advance_damped(state, rounds - 2, damping, tol)]
    odds = [state.log_odds()]
    while len(odds) < 3 and residuals[-1][-1] > tol:
        residuals.append(advance_damped(state, 1, damping, tol))
        odds.append(state.log_odds())
    swing = swing_of(*odds) / (1.0 - damping) if len(odds) == 3 else 0.0
    return np.concatenate(residuals), swing


def swing_of(first: Floats, second: Floats, third: Floats) -> float:
    """The largest change from `second` to `third` that goes back on a change from `first` to `second`."""
    with np.errstate(invalid="ignore"):
        one, two = np.nan_to_num(second - first), np.nan_to_num(third - second)
    return float(np.abs(two[one * two < 0.0]).max(initial=0.0))
