"""Float32 powers that vectorise: logarithm and exponential by their bits and a short polynomial.

Numba calls the scalar C functions one by one, and widens 32-bit integer arithmetic to 64 bits; these stay within eight
lanes of 32 bits and cost a dozen multiplications.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from llpbench_methods.inference.compiled.jit import Scalar, inlined, intrinsic

f32 = np.float32
_INT, _FLOAT = ir.IntType(32), ir.FloatType()
_SQRT_HALF_BITS = 0x3F3504F3


@intrinsic
def _exponent(_typing: Any, _value: Any) -> Any:
    """The `e` of `value = m 2^e` with `m` in [sqrt(1/2), sqrt(2)), as a float32."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _INT)
        shifted = builder.ashr(builder.sub(bits, _INT(_SQRT_HALF_BITS)), _INT(23))
        return builder.sitofp(shifted, _FLOAT)

    return types.float32(types.float32), code


@intrinsic
def _mantissa(_typing: Any, _value: Any) -> Any:
    """The `m` of `value = m 2^e` with `m` in [sqrt(1/2), sqrt(2))."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _INT)
        shifted = builder.ashr(builder.sub(bits, _INT(_SQRT_HALF_BITS)), _INT(23))
        return builder.bitcast(builder.sub(bits, builder.shl(shifted, _INT(23))), _FLOAT)

    return types.float32(types.float32), code


@intrinsic
def _power_of_two(_typing: Any, _whole: Any) -> Any:
    """`2^whole` for a whole number between -126 and 127 given as a float32."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = builder.fptosi(arguments[0], _INT)
        return builder.bitcast(builder.shl(builder.add(number, _INT(127)), _INT(23)), _FLOAT)

    return types.float32(types.float32), code


@intrinsic
def _nearest(_typing: Any, _value: Any) -> Any:
    """The whole number nearest to a `value` above -128, as a float32."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        raised = builder.fptosi(builder.fadd(arguments[0], _FLOAT(128.5)), _INT)
        return builder.sitofp(builder.sub(raised, _INT(128)), _FLOAT)

    return types.float32(types.float32), code


@inlined
def power32(x: Scalar, a: Scalar) -> Scalar:
    """`x^a` for positive normal `x` and `|a log2 x| < 120`.

    `log2 x = e + log2 m` with an odd series in `(m - 1) / (m + 1)`, and `2^y` by a polynomial on [-1/2, 1/2]; the error
    is some 2e-7 times `1 + |a log2 x|`.
    """
    m = _mantissa(x)
    u = (m - f32(1.0)) / (m + f32(1.0))
    u2 = u * u
    series = f32(0.4121985) * u2 + f32(0.57707801)
    series = series * u2 + f32(0.96179669)
    series = series * u2 + f32(2.8853901)
    y = a * (_exponent(x) + u * series)
    whole = _nearest(y)
    r = y - whole
    value = f32(1.5403530e-4) * r + f32(1.3333558e-3)
    value = value * r + f32(9.6181291e-3)
    value = value * r + f32(5.5504109e-2)
    value = value * r + f32(2.4022651e-1)
    value = value * r + f32(6.9314718e-1)
    value = value * r + f32(1.0)
    return value * _power_of_two(whole)
