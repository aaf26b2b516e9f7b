"""Stability of pairwise belief propagation in the cliques of bags, and the damping it needs.

In a bag of `B` rows with coupling `-2 lambda_b` and no similarity edges, a common shift of all messages is answered by
minus `g = 2 lambda_b (B - 1) p (1 - p)` times that shift. So undamped rounds settle iff `g < 1`, and with damping `d`
iff `g < (1 + d) / (1 - d)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.model import GibbsModel, PottsModel

Floats = NDArray[np.float64]
_MARGIN = 1.25
MOST_DAMPING = 0.999
"""Largest damping of `auto`."""


def stability_index(model: GibbsModel | PottsModel) -> Floats:
    """`g` of every bag (and class): the gain of its oscillating mode, taking `p` as the bag's proportion."""
    sizes = model.bags.sizes.astype(np.float64)
    lam = model.lambda_b
    if isinstance(model, PottsModel):
        sizes, lam = sizes[:, None], lam[:, None]
    share = np.clip(model.counts / np.maximum(sizes, 1.0), 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        g = 2.0 * lam * (sizes - 1.0) * share * (1.0 - share)
    return np.asarray(np.where((sizes < 2) | np.isnan(g), 0.0, g))


def damping_limit(damping: float) -> float:
    """The largest `g` that damping `d` holds: `(1 + d) / (1 - d)`."""
    return (1.0 + damping) / (1.0 - damping)


def critical_damping(g: float) -> float:
    """The damping above which a bag of stability index `g` settles: `(g - 1) / (g + 1)`, or 0."""
    return max(0.0, (g - 1.0) / (g + 1.0))


def auto_damping(g: float) -> float:
    """The critical damping of a bag a quarter less stable than the least stable one."""
    return min(critical_damping(_MARGIN * g), MOST_DAMPING)
