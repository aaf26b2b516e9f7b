"""Numba kernels of the bag cliques on log-odds in float64: any coupling, and max-product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.edges import centred
from llpbench_methods.inference.compiled.jit import njit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit
def rows_in_logs(
    sizes: Ints,
    node_start: Ints,
    coupling: Floats,
    P: Floats,
    Q: Floats,
    beliefs: Floats,
    damping: float,
    use_max: bool,
    total: Floats,
) -> None:
    """One round of all bags: `M <- d M + (1 - d) [w + g(x + w, w)]`, `w = J / 2`, added into `total`.

    `coupling` is that of each node's bag.
    """
    at = 0
    for b in range(sizes.size):
        base = node_start[b]
        w = 0.5 * coupling[base]
        for i in range(base, base + sizes[b]):
            for j in range(i + 1, base + sizes[b]):
                p = damping * P[at] + (1.0 - damping) * (w + centred(beliefs[i] - Q[at] + w, w, use_max))
                q = damping * Q[at] + (1.0 - damping) * (w + centred(beliefs[j] - P[at] + w, w, use_max))
                P[at] = p
                Q[at] = q
                total[j] += p
                total[i] += q
                at += 1


@njit
def take_out_of_logs(low: Ints, high: Ints, position: Ints, P: Floats, Q: Floats, total: Floats) -> None:
    """Subtract the clique's message where an edge carries the whole pair, and reset it to 0."""
    for t in range(position.size):
        at = position[t]
        total[high[t]] -= P[at]
        total[low[t]] -= Q[at]
        P[at] = 0.0
        Q[at] = 0.0
