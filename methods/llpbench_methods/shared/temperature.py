"""The temperature of a network, fitted on held-out bags.

A network that learns hard labels which are often wrong becomes far too sure of them (its logits are three to ten times
too large on tables). Ranks do not suffer, but bags do, and a judge of bags would throw such models away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from llpbench import Bags
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.shares import all_classes, shift_to_shares

Array = NDArray[np.float64]

LEAST, MOST = 0.5, 32.0


def tempered(logits: NDArray[Any], temperature: float) -> Array:
    """Probability of class 1, (n,), or of every class, (n, C), from logits divided by the temperature."""
    z = np.asarray(logits, np.float64) / temperature
    return np.asarray(expit(z) if z.ndim == 1 else softmax(z, axis=-1))


def bag_loss(logits: NDArray[Any], bags: Bags, temperature: float) -> float:
    """``−Σ_b B_b Σ_c α_bc log p̄_bc / N`` of tempered predictions, shifted so that their mean is the known rate."""
    z = np.asarray(logits, np.float64) / temperature
    least = 0.5 / len(z)
    rates = np.clip(bags.prior.astype(np.float64), least, 1.0 - least)
    rates = rates if len(rates) == 1 else rates / rates.sum()
    columns = z.reshape(len(z), -1)
    shifted = columns + shift_to_shares(columns, rates, rounds=20, tol=1e-4)
    p = expit(shifted) if z.ndim == 1 else softmax(shifted, axis=1)
    means = all_classes(np.clip(bag_means(p, bags.offsets), 1e-7, 1.0 - 1e-7))
    per_bag = np.sum(all_classes(bags.clipped_proportions) * np.log(means), axis=1)
    return float(-np.average(per_bag, weights=bags.sizes))


def bag_temperature(logits: NDArray[Any], bags: Bags) -> float:
    """The temperature from 1/2 to 32 that gives these bags the lowest loss; 1 where none is lower than that of 1."""
    found = minimize_scalar(
        lambda log_t: bag_loss(logits, bags, float(np.exp(log_t))),
        bounds=(np.log(LEAST), np.log(MOST)),
        method="bounded",
        options={"xatol": 0.05},
    )
    return float(np.exp(found.x)) if found.fun < bag_loss(logits, bags, 1.0) else 1.0


def checked_temperature(saved: Any) -> float:
    """The temperature of a saved model.

    Raises:
        ValueError: no fit has such a temperature.
    """
    temperature = float(np.asarray(saved))
    if not LEAST <= temperature <= MOST:
        raise ValueError(f"invalid temperature {temperature}")
    return temperature
