"""Float32 powers that vectorise: logarithm and exponential from the bits of a number and a short polynomial.

Numba calls the scalar C function `powf` for each element; this loop of a dozen multiplications vectorises. Numba also
widens 32-bit integers to 64 bits, so every intermediate is cast back.
"""

from __future__ import annotations

import numpy as np

from llpbench_methods.inference.compiled.jit import Scalar, inlined

_SQRT_HALF_BITS = np.int32(0x3F3504F3)


@inlined
def power32(x: Scalar, a: Scalar) -> Scalar:
    """`x^a` for positive normal `x` and `|a log2 x| < 120`.

    `log2 x = e + log2 m` for `x = m 2^e`, `m` in [sqrt(1/2), sqrt(2)), with an odd series in `(m - 1) / (m + 1)`, and
    `2^y` by a polynomial on [-1/2, 1/2]; the error is some 2e-7 times `1 + |a log2 x|`.
    """
    bits = np.float32(x).view(np.int32)
    e = np.int32(np.int32(bits - _SQRT_HALF_BITS) >> np.int32(23))
    m = np.int32(bits - np.int32(e << np.int32(23))).view(np.float32)
    u = (m - np.float32(1.0)) / (m + np.float32(1.0))
    u2 = u * u
    series = np.float32(0.4121985) * u2 + np.float32(0.57707801)
    series = series * u2 + np.float32(0.96179669)
    series = series * u2 + np.float32(2.8853901)
    y = a * (np.float32(e) + u * series)
    whole = np.int32(np.int32(y + np.float32(128.5)) - np.int32(128))
    r = y - np.float32(whole)
    value = np.float32(1.5403530e-4) * r + np.float32(1.3333558e-3)
    value = value * r + np.float32(9.6181291e-3)
    value = value * r + np.float32(5.5504109e-2)
    value = value * r + np.float32(2.4022651e-1)
    value = value * r + np.float32(6.9314718e-1)
    value = value * r + np.float32(1.0)
    return value * np.int32(np.int32(whole + np.int32(127)) << np.int32(23)).view(np.float32)
