"""The likelihood of held-out counts: independent labels, known noise on counts, and a bag effect integrated out.

A bag's labels are taken as independent with ``P(y_i = 1) = σ(z_i + u_b)``. Its count is then Poisson-binomial given
``u_b``: exact for bags of up to 64 rows, Gaussian above. ``u_b ~ N(0, τ²)`` is what all rows of a bag share and no
feature explains (a bad day, a poor region): without it every such bag would count as a failure of the model. How this
differs from the laws that ``fit`` and ``compare`` use is told in ``count_laws.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import Bags, HeldOut
from llpbench.experiment.count_laws import WHOLE, log_density
from llpbench.experiment.levelling import inner_rate, level, log_odds

Array = NDArray[np.float64]

EXACT_ROWS = 64
"""Largest bag whose count has its exact law."""

TAUS = np.array([0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7])
"""Standard deviations of the bag effect, in log-odds, of which the most likely one is taken."""

_NODES = np.linspace(-4.0, 4.0, 25)
_TINY = 1e-300


def count_log_likelihood(held: HeldOut) -> float:
    """Mean over held-out bags of ``log P(c_b)``, summed over classes, of predictions brought to the known rate.

    ``τ`` is that of the grid, 0 among them, under which all the held-out counts are most likely: one number that the
    bags tell by themselves, as they tell the rate. Several classes: each against the rest.
    """
    bags = held.bags
    p = level(log_odds(held.scores, held.probabilities), inner_rate(bags.prior, len(bags.X)))
    columns = np.asarray(p, np.float64).reshape(len(p), -1)
    logs = [count_log_laws(columns[:, c], bags, c).sum(axis=1).max() for c in range(columns.shape[1])]
    return float(np.sum(logs) / len(bags))


def count_log_laws(p: Array, bags: Bags, column: int, taus: Array = TAUS) -> Array:
    """(taus, bags) log-likelihood of each bag's count of a class, for each size of the bag effect.

    Args:
        p: (n,) probability of the class, row by row.
        bags: the bags, with counts.
        column: of the counts.
        taus: standard deviations of the effect.
    """
    p = np.asarray(bags.entries(p), np.float64)
    small = bags.sizes <= EXACT_ROWS
    counts = np.asarray(bags.counts[:, column], np.float64)
    logs = np.empty((len(taus), len(bags)))
    if small.any():
        inside = small[bags.bag_of]
        place = (np.arange(len(p)) - bags.offsets[bags.bag_of])[inside]
        table = np.zeros((int(small.sum()), int(bags.sizes[small].max())))
        table[(np.cumsum(small) - 1)[bags.bag_of[inside]], place] = p[inside]
        logs[:, small] = _exact(table, counts[small], bags.sizes[small].astype(np.float64), bags.count_sd, taus)
    if not small.all():
        mean = np.add.reduceat(p, bags.offsets[:-1])
        variance = np.add.reduceat(p * (1.0 - p), bags.offsets[:-1])
        logs[:, ~small] = _gaussian(mean[~small], variance[~small], counts[~small], bags.count_sd, taus)
    return logs


def _gaussian(mean: Array, variance: Array, counts: Array, count_sd: float, taus: Array) -> Array:
    """``c ~ N(μ, V + sd² + (V τ)²)``: to first order an effect ``u`` moves the count by ``V u``."""
    total = np.maximum(variance + count_sd**2 + np.outer(taus, variance) ** 2, WHOLE)
    return np.asarray(log_density(counts - mean, total), np.float64)


def _exact(table: Array, counts: Array, sizes: Array, count_sd: float, taus: Array) -> Array:
    """The law of each bag's count row by row, then tilted: an effect ``u`` makes it ``P_u(s) ∝ e^{us} P_0(s)``.

    Args:
        table: (bags, places) probabilities, 0 where a bag has no row.
        counts: (bags,).
        sizes: (bags,).
        count_sd: standard deviation of the noise on counts.
        taus: standard deviations of the effect.
    """
    law = np.zeros((len(table), table.shape[1] + 1))
    law[:, 0] = 1.0
    for q in table.T[:, :, None]:
        law[:, 1:] = law[:, 1:] * (1.0 - q) + law[:, :-1] * q
        law[:, :1] *= 1.0 - q
    every = np.arange(law.shape[1])
    if count_sd > 0.0:
        factor = np.exp(-0.5 * ((counts[:, None] - every) / count_sd) ** 2) / (np.sqrt(2.0 * np.pi) * count_sd)
    else:
        factor = (every == np.clip(np.rint(counts), 0.0, sizes)[:, None]).astype(np.float64)
    tilts = np.exp(np.multiply.outer(every, np.multiply.outer(taus, _NODES).ravel()))
    chance = ((law * factor) @ tilts) / (law @ tilts)
    weights = np.exp(-0.5 * _NODES**2)
    mean = chance.reshape(len(table), len(taus), len(_NODES)) @ (weights / weights.sum())
    return np.asarray(np.log(np.maximum(mean, _TINY)).T)
