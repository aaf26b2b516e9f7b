"""One pair update on 16 lanes at once, as LLVM vectors.

A loop over 16 lanes is too short for the compiler to vectorise (it would first have to prove that eight arrays do not
overlap), so the arithmetic of `cliques_in_odds` is spelled out here on vectors of 16 floats. Each maker returns a
function

    update(P, Q, at, E, Ec, product, i, j, share)

that reads the messages `P[at:at+16]`, `Q[at:at+16]` and the members' odds at `E[i:i+16]`, `E[j:j+16]` (`Ec` holds
`c E`), writes the new messages back and multiplies them into `product[j:j+16]` and `product[i:i+16]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from llpbench_methods.inference.compiled.jit import intrinsic

LANES = 16
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_WHOLE = ir.VectorType(ir.IntType(32), LANES)
_SQRT_HALF_BITS = 0x3F3504F3
_FLAGS = ("contract", "reassoc", "nsz")

Pair = tuple[Any, Any]
Rule = Callable[["_Lanes", Any, Any, Any, Any, Any, Any, Any], Pair]


class _Lanes:
    """Arithmetic on vectors: thin names over the builder's."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def all(self, value: float) -> Any:
        return ir.Constant(_VECTOR, [value] * LANES)

    def whole(self, value: int) -> Any:
        return ir.Constant(_WHOLE, [value] * LANES)

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=_FLAGS)

    def sub(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b, flags=_FLAGS)

    def mul(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=_FLAGS)

    def div(self, a: Any, b: Any) -> Any:
        return self.builder.fdiv(a, b, flags=_FLAGS)

    def sqrt(self, a: Any) -> Any:
        name = f"llvm.sqrt.v{LANES}f32"
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(_VECTOR, [_VECTOR]), name)
        return self.builder.call(function, [a])

    def polynomial(self, x: Any, *coefficients: float) -> Any:
        """Horner's rule, highest power first."""
        value = self.all(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.add(self.mul(value, x), self.all(coefficient))
        return value

    def power(self, x: Any, a: Any) -> Any:
        """`x^a`, as `power32` of `float32_power`."""
        b = self.builder
        bits = b.bitcast(x, _WHOLE)
        shifted = b.ashr(b.sub(bits, self.whole(_SQRT_HALF_BITS)), self.whole(23))
        m = b.bitcast(b.sub(bits, b.shl(shifted, self.whole(23))), _VECTOR)
        u = self.div(self.sub(m, self.all(1.0)), self.add(m, self.all(1.0)))
        series = self.polynomial(self.mul(u, u), 0.4121985, 0.57707801, 0.96179669, 2.8853901)
        y = self.mul(a, self.add(b.sitofp(shifted, _VECTOR), self.mul(u, series)))
        number = b.sub(b.fptosi(self.add(y, self.all(128.5)), _WHOLE), self.whole(128))
        r = self.sub(y, b.sitofp(number, _VECTOR))
        value = self.polynomial(
            r, 1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0
        )
        return self.mul(value, b.bitcast(b.shl(b.add(number, self.whole(127)), self.whole(23)), _VECTOR))


def _fresh(v: _Lanes, p: Any, q: Any, ei: Any, ei_c: Any, ej: Any, ej_c: Any, _share: Any) -> Pair:
    down_p, down_q = v.add(q, ei), v.add(p, ej)
    inverse = v.div(v.all(1.0), v.mul(down_p, down_q))
    return (
        v.mul(v.mul(v.add(q, ei_c), down_q), inverse),
        v.mul(v.mul(v.add(p, ej_c), down_p), inverse),
    )


def _halfway(v: _Lanes, p: Any, q: Any, ei: Any, ei_c: Any, ej: Any, ej_c: Any, share: Any) -> Pair:
    new_p, new_q = _fresh(v, p, q, ei, ei_c, ej, ej_c, share)
    return v.sqrt(v.mul(p, new_p)), v.sqrt(v.mul(q, new_q))


def _partway(v: _Lanes, p: Any, q: Any, ei: Any, ei_c: Any, ej: Any, ej_c: Any, share: Any) -> Pair:
    down_p, down_q = v.add(q, ei), v.add(p, ej)
    inverse = v.div(v.all(1.0), v.mul(v.mul(down_p, down_q), v.mul(p, q)))
    ratio_p = v.mul(v.mul(v.add(q, ei_c), down_q), v.mul(q, inverse))
    ratio_q = v.mul(v.mul(v.add(p, ej_c), down_p), v.mul(p, inverse))
    return v.mul(p, v.power(ratio_p, share)), v.mul(q, v.power(ratio_q, share))


def _maker(rule: Rule) -> Any:
    """Turn a rule for two messages into a numba function on arrays."""

    def update(
        _typing: Any, P: Any, Q: Any, _at: Any, E: Any, Ec: Any, product: Any, _i: Any, _j: Any, _share: Any
    ) -> Any:
        signature = types.void(P, Q, types.int64, E, Ec, product, types.int64, types.int64, types.float32)

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def pointer(position: int, offset: Any) -> Any:
                array = context.make_array(signature.args[position])(context, builder, arguments[position])
                return builder.bitcast(builder.gep(array.data, [offset]), _VECTOR.as_pointer())

            def load(position: int, offset: Any) -> Any:
                loaded = builder.load(pointer(position, offset))
                loaded.align = 4
                return loaded

            def store(value: Any, position: int, offset: Any) -> None:
                builder.store(value, pointer(position, offset)).align = 4

            _, _, at, _, _, _, i, j, share = arguments
            v = _Lanes(builder)
            one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), share, ir.IntType(32)(0))
            spread = builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), v.whole(0))
            a, b = rule(v, load(0, at), load(1, at), load(3, i), load(4, i), load(3, j), load(4, j), spread)
            store(a, 0, at)
            store(b, 1, at)
            store(v.mul(load(5, j), a), 5, j)
            store(v.mul(load(5, i), b), 5, i)
            return context.get_dummy_value()

        return signature, code

    return intrinsic(update)


fresh_lanes = _maker(_fresh)
halfway_lanes = _maker(_halfway)
partway_lanes = _maker(_partway)
