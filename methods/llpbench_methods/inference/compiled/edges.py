"""Numba kernels of the sparse similarity edges, as odds by division or as log-odds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.jit import njit

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]


@njit
def _blend(old: float, new: float, damping: float) -> float:
    """The damped geometric mean `old^d new^(1-d)`."""
    if damping == 0.0:
        return new
    if damping == 0.5:
        return float(np.sqrt(old * new))
    return float(new * np.exp(damping * np.log(old / new)))


@njit
def edges_in_odds(
    left: Rows,
    right: Rows,
    c: Floats,
    forth: Floats,
    back: Floats,
    odds: Floats,
    damping: float,
    product: Floats,
) -> None:
    """One round of centred messages `m' = (m_rev + c E) / (c m_rev + E)`, `c = e^w`, multiplied into `product`.

    `forth` goes left to right, `back` right to left; `odds` are the node beliefs `E = e^H`. No exponential, no
    logarithm (except under a damping other than 0 and 1/2).
    """
    for t in range(left.size):
        i, j = left[t], right[t]
        f, g, w = forth[t], back[t], c[t]
        new_f = _blend(f, (g + w * odds[i]) / (w * g + odds[i]), damping)
        new_g = _blend(g, (f + w * odds[j]) / (w * f + odds[j]), damping)
        forth[t] = new_f
        back[t] = new_g
        product[j] *= new_f
        product[i] *= new_g


@njit
def centred(a: float, w: float, use_max: bool) -> float:
    """`g(a, w)` of `messages.centred_message`."""
    size = abs(w)
    value = min(max(a, -size), size)
    if not use_max:
        value += np.log1p(np.exp(-abs(a + size))) - np.log1p(np.exp(-abs(a - size)))
    return value if w >= 0.0 else -value


@njit
def edges_in_logs(
    left: Rows,
    right: Rows,
    w: Floats,
    forth: Floats,
    back: Floats,
    log_odds: Floats,
    damping: float,
    use_max: bool,
    total: Floats,
) -> None:
    """One round of centred messages `g(a, w)` (see `messages`), added into `total`: for couplings of any size."""
    for t in range(left.size):
        i, j = left[t], right[t]
        f, g = forth[t], back[t]
        new_f = damping * f + (1.0 - damping) * centred(log_odds[i] - g, w[t], use_max)
        new_g = damping * g + (1.0 - damping) * centred(log_odds[j] - f, w[t], use_max)
        forth[t] = new_f
        back[t] = new_g
        total[j] += new_f
        total[i] += new_g
