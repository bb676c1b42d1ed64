"""What stands between products of int8 in fewer operations: scales and shifts known at bind become one of each.

    s32 -> f32  * x's scale * w's scale - mean, * scale + bias  ->  s32 -> f32  * a + b
    / next scale, round to int8                                 ->  * 1 / next scale, round to int8

Both are computed in f64 and rounded once, as batch norm is that is folded into weights. A value on the border of two
whole numbers may be rounded to the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jax import lax

from ..codegen.program import Literal, Op, Value, consumers
from ..codegen.rules.primitives import primitive

Array = np.ndarray
Define = Callable[[Value, tuple[Value, ...], Callable[..., Array]], None]


def by_reciprocals(ops: Sequence[Op], known: set[Value], define: Define) -> list[Op]:
    """Operations where a quotient by what is known at bind, of which nobody needs more than the nearest int8, is a
    product.
    """
    readers = consumers(ops)
    return [_reciprocal(op, define) if _rounded(op, readers) and _divisor(op, known) else op for op in ops]


def _rounded(op: Op, readers: Mapping[Value, list[Op]]) -> bool:
    """Whether all that reads a quotient is a rounding to int8."""
    if op.prim != "div" or op.out.dtype != "float32":
        return False
    after = readers.get(op.out, [])
    narrow = [r for a in after if a.prim == "round" for r in readers.get(a.out, [])]
    whole = all(r.prim == "convert_element_type" and r.out.dtype == "int8" for r in narrow)
    return bool(narrow) and whole and all(a.prim == "round" for a in after)


def _divisor(op: Op, known: set[Value]) -> bool:
    return isinstance(op.ins[1], Literal) or op.ins[1] in known


def _reciprocal(op: Op, define: Define) -> Op:
    by = op.ins[1]
    if isinstance(by, Literal):
        inverse: Value | Literal = Literal(np.float32(1 / np.float64(by.val)), by.dtype)
    else:
        inverse = Value(by.shape, by.dtype)
        define(inverse, (by,), lambda x: 1 / np.asarray(x, np.float64))
    return Op("mul", (op.ins[0], inverse), op.outs, {}, op.name, lax.mul_p)


def scales_of_sums(ops: Sequence[Op], known: set[Value]) -> list[tuple[Op, Op]]:
    """(product of int8 or bf16 with sums of more bits, the last operation of those that make f32 of them and multiply
    them by one number that the call brings: not one of `known`) for each one where nobody else reads what is between.
    """
    readers = consumers(ops)
    found = []
    for op in ops:
        if not primitive(op).contraction:
            continue
        if op.out.dtype == "float32" and op.ins[1].dtype == "bfloat16":
            found.append((op, op))
        if op.out.dtype != "int32" or len(readers.get(op.out, [])) != 1:
            continue
        last = readers[op.out][0]
        if last.prim != "convert_element_type" or last.out.dtype != "float32":
            continue
        while len(after := readers.get(last.out, [])) == 1 and _by_one_number(after[0], last.out, known):
            last = after[0]
        found.append((op, last))
    return found


def _by_one_number(op: Op, v: Value, known: set[Value]) -> bool:
    other = op.ins[1] if op.ins[0] is v else op.ins[0]
    made = isinstance(other, Value) and other is not v and other.size == 1 and other not in known
    return op.prim == "mul" and made and op.out.shape == v.shape


__all__ = ["by_reciprocals", "scales_of_sums"]
