"""Numba kernels of the bag cliques: every message of a bag, once per round, in float32 and in place.

With `m = e^M`, `c = e^J` and node odds `E = e^H`, the message is `m_ij' = (m_ji + c E_i) / (m_ji + E_i)`: one division
serves both directions of a pair, and damping 1/2 is a square root. `P` holds the messages from the lower to the higher
member and `Q` the reverse, both for the pairs `(0,1), (0,2), ..., (1,2), ...`, so a round reads and writes each once.
Messages lie between `c` and 1; their products are taken in float32 as long as they cannot underflow.

Two layouts: `lanes` holds the same pair of 16 small bags side by side, `rows` one large bag. The loop over lanes is
inlined into its caller, which costs at most half more than vector instructions written by hand, and nothing from bags
of 128 on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.float32_power import power32
from llpbench_methods.inference.compiled.jit import Scalar, inlined, njit, njit_fast

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

Couple = tuple[Scalar, Scalar]
f32 = np.float32

LANES = 16
"""Bags side by side in a block of small bags."""


@inlined
def _fresh(p: Scalar, q: Scalar, ei: Scalar, ei_c: Scalar, ej: Scalar, ej_c: Scalar) -> Couple:
    """Undamped messages (i to j, j to i)."""
    down_p = q + ei
    down_q = p + ej
    inverse = f32(1.0) / (down_p * down_q)
    return (q + ei_c) * down_q * inverse, (p + ej_c) * down_p * inverse


@inlined
def _halfway(p: Scalar, q: Scalar, ei: Scalar, ei_c: Scalar, ej: Scalar, ej_c: Scalar) -> Couple:
    """Messages with damping 1/2."""
    new_p, new_q = _fresh(p, q, ei, ei_c, ej, ej_c)
    return np.sqrt(p * new_p), np.sqrt(q * new_q)


@inlined
def _partway(p: Scalar, q: Scalar, ei: Scalar, ei_c: Scalar, ej: Scalar, ej_c: Scalar, share: Scalar) -> Couple:
    """Messages with damping `1 - share`: `p (new / p)^share`, one division for both ratios."""
    down_p = q + ei
    down_q = p + ej
    inverse = f32(1.0) / (down_p * down_q * (p * q))
    ratio_p = (q + ei_c) * down_q * q * inverse
    ratio_q = (p + ej_c) * down_p * p * inverse
    return p * power32(ratio_p, share), q * power32(ratio_q, share)


@njit
def _take_in(value: Scalar, at: int, product: Floats, logs: Floats) -> None:
    """Multiply into a node's product, moving it to the logarithms before it leaves the range."""
    product[at] *= value
    if not 1e-200 < product[at] < 1e200:
        logs[at] += np.log(product[at])
        product[at] = 1.0


@njit
def _flush(base: int, first: int, last: int, local: Singles, product: Floats, logs: Floats) -> None:
    """Move float32 products of the nodes `first..last-1` of a block into the nodes' own."""
    for at in range(first, last):
        _take_in(local[at], base + at, product, logs)
        local[at] = f32(1.0)


@njit_fast
def _load(odds: Floats, c: Singles, E: Singles, Ec: Singles, local: Singles) -> None:
    """Odds as float32: cut at e^40, where messages of a coupling up to 20 no longer change, and 0 below e^-69."""
    for i in range(odds.size):
        value = f32(min(odds[i], 2.3538527e17))
        value = value if value > f32(1e-30) else f32(0.0)
        E[i] = value
        Ec[i] = value * c[i]
        local[i] = f32(1.0)


@njit_fast
def _multiply(product: Floats, local: Singles) -> None:
    for i in range(product.size):
        product[i] *= local[i]


@inlined
def _lane_row(
    p: Singles,
    q: Singles,
    ei: Singles,
    ei_c: Singles,
    E: Singles,
    Ec: Singles,
    row: Singles,
    column: Singles,
    kind: int,
    share: Scalar,
) -> None:
    """Pairs (i, j) for consecutive j in all lanes; messages are multiplied into `column` (to j) and `row` (to i)."""
    if kind == 0:
        for j in range(p.shape[0]):
            for t in range(p.shape[1]):
                a, b = _fresh(p[j, t], q[j, t], ei[t], ei_c[t], E[j, t], Ec[j, t])
                p[j, t] = a
                q[j, t] = b
                column[j, t] *= a
                row[t] *= b
    elif kind == 1:
        for j in range(p.shape[0]):
            for t in range(p.shape[1]):
                a, b = _halfway(p[j, t], q[j, t], ei[t], ei_c[t], E[j, t], Ec[j, t])
                p[j, t] = a
                q[j, t] = b
                column[j, t] *= a
                row[t] *= b
    else:
        for j in range(p.shape[0]):
            for t in range(p.shape[1]):
                a, b = _partway(p[j, t], q[j, t], ei[t], ei_c[t], E[j, t], Ec[j, t], share)
                p[j, t] = a
                q[j, t] = b
                column[j, t] *= a
                row[t] *= b


@njit_fast
def update_lanes(
    first: int,
    last: int,
    sizes: Ints,
    node_start: Ints,
    pair_start: Ints,
    c: Singles,
    stretch: Ints,
    P: Singles,
    Q: Singles,
    odds: Floats,
    kind: int,
    share: Scalar,
    work: Singles,
    product: Floats,
    logs: Floats,
) -> None:
    """One round of the blocks `first..last-1`, multiplied into the nodes' `product`.

    `c` holds `e^J` of each node's bag; `stretch` messages may be multiplied in float32. Padding nodes have odds 0 and
    so send the message 1.
    """
    P, Q = P.reshape(-1, LANES), Q.reshape(-1, LANES)
    for b in range(first, last):
        size, base, step = sizes[b], node_start[b], stretch[b]
        width = size * LANES
        _load(odds[base : base + width], c[base : base + width], work[0, :width], work[1, :width], work[2, :width])
        E, Ec = work[0, :width].reshape(-1, LANES), work[1, :width].reshape(-1, LANES)
        flat = work[2, :width]
        local = flat.reshape(-1, LANES)
        at = pair_start[b] // LANES
        since = 0
        for i in range(size):
            for j in range(i + 1, size, step):
                stop = min(j + step, size)
                end = at + stop - j
                _lane_row(
                    P[at:end], Q[at:end], E[i], Ec[i], E[j:stop], Ec[j:stop], local[i], local[j:stop], kind, share
                )
                at = end
                if step < size:
                    _flush(base, i * LANES, (i + 1) * LANES, flat, product, logs)
            since += 1
            if since == step:
                since = 0
                _flush(base, (i + 1) * LANES, width, flat, product, logs)
        if step < size:
            _flush(base, 0, width, flat, product, logs)
        else:  # e^-60 at the least: no node can leave its range
            _multiply(product[base : base + width], flat)


@njit_fast
def _row(
    p: Singles,
    q: Singles,
    ei: Scalar,
    ei_c: Scalar,
    E: Singles,
    Ec: Singles,
    column: Singles,
    kind: int,
    share: Scalar,
) -> Scalar:
    """One stretch of a row: pairs (i, j) for consecutive j; returns the product of the messages to i."""
    total = f32(1.0)
    if kind == 0:
        for t in range(p.size):
            a, b = _fresh(p[t], q[t], ei, ei_c, E[t], Ec[t])
            p[t] = a
            q[t] = b
            column[t] *= a
            total *= b
    elif kind == 1:
        for t in range(p.size):
            a, b = _halfway(p[t], q[t], ei, ei_c, E[t], Ec[t])
            p[t] = a
            q[t] = b
            column[t] *= a
            total *= b
    else:
        for t in range(p.size):
            a, b = _partway(p[t], q[t], ei, ei_c, E[t], Ec[t], share)
            p[t] = a
            q[t] = b
            column[t] *= a
            total *= b
    return total


@njit
def update_rows(
    first: int,
    last: int,
    sizes: Ints,
    node_start: Ints,
    pair_start: Ints,
    c: Singles,
    stretch: Ints,
    P: Singles,
    Q: Singles,
    odds: Floats,
    kind: int,
    share: Scalar,
    work: Singles,
    product: Floats,
    logs: Floats,
) -> None:
    """One round of the large bags `first..last-1`, with the arguments of `update_lanes`."""
    for b in range(first, last):
        size = sizes[b]
        base = node_start[b]
        at = pair_start[b]
        E, Ec, column = work[0, :size], work[1, :size], work[2, :size]
        _load(odds[base : base + size], c[base : base + size], E, Ec, column)
        since = 0
        for i in range(size - 1):
            for left in range(i + 1, size, stretch[b]):
                right = min(left + stretch[b], size)
                end = at + right - left
                total = _row(
                    P[at:end],
                    Q[at:end],
                    E[i],
                    Ec[i],
                    E[left:right],
                    Ec[left:right],
                    column[left:right],
                    kind,
                    share,
                )
                _take_in(total, base + i, product, logs)
                at = end
            since += 1
            if since == stretch[b] or i == size - 2:
                since = 0
                _flush(base, 0, size, column, product, logs)


@njit
def take_out(low: Ints, high: Ints, position: Ints, P: Singles, Q: Singles, product: Floats) -> None:
    """Divide the clique's message out where an edge carries the whole pair, and reset it to 1."""
    for t in range(position.size):
        at = position[t]
        product[high[t]] /= P[at]
        product[low[t]] /= Q[at]
        P[at] = f32(1.0)
        Q[at] = f32(1.0)


@njit
def settle_nodes(bounded: bool, fields: Floats, product: Floats, logs: Floats, odds: Floats, log_odds: Floats) -> float:
    """New node beliefs from the products; returns the largest change of a log-odds.

    In a bounded model the product holds the whole odds and no logarithm is taken.
    """
    if bounded:
        high = 1.0
        low = 1.0
        for i in range(odds.size):
            if odds[i] > 0.0:
                ratio = product[i] / odds[i]
                odds[i] = product[i]
                high = max(high, ratio)
                low = min(low, ratio)
        return float(np.log(max(high, 1.0 / low)))
    worst = 0.0
    for i in range(odds.size):
        if odds[i] > 0.0:
            new = fields[i] + logs[i] + np.log(product[i])
            worst = max(worst, abs(new - log_odds[i]))
            log_odds[i] = new
            odds[i] = np.exp(min(max(new, -450.0), 450.0))
    return worst
