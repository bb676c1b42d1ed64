"""Values that are hardly ever negative, as far as their operations tell: behind a ReLU, say, and what rounds that.

It is a guess: numbers known at bind, the scales of a quantised network for example, are taken to be positive.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..program import Literal, Op, Value
from .primitives import primitive

POSITIVE = ("abs", "exp", "exp2", "logistic", "sqrt", "rsqrt", "square")
#: as their first operand is
ALIKE = (
    *("convert_element_type", "round", "floor", "ceil", "reduce_precision"),
    *("reduce_sum", "reduce_max", "reduce_min", "reduce_window_max", "reduce_window_sum"),
)
#: as all of their operands are
TOGETHER = ("add", "add_any", "min", "concatenate")
SCALES = ("mul", "div")
DEPTH = 32  # operations that are looked through


def hardly_negative(v: Value, makers: Mapping[Value, Op], known: set[Value]) -> bool:
    """Whether a value has no negative elements, or few. `makers`: value -> the operation that makes it; `known`:
    numbers known at bind, which are positive where they scale.
    """
    found: dict[Value, bool] = {}

    def of(x: Value | Literal, depth: int) -> bool:
        if isinstance(x, Literal):
            return float(x.val) >= 0
        if x not in found:
            found[x] = depth > 0 and x in makers and judged(makers[x], depth - 1)
        return found[x]

    def judged(op: Op, depth: int) -> bool:
        each = lambda operands: all(of(x, depth) for x in operands)
        if op.prim == "max":
            return any(of(x, depth) for x in op.ins)
        if op.prim == "clamp":
            return each(op.ins[:1]) or each(op.ins[1:])
        if op.prim in SCALES:
            return each(x for x in op.ins if x not in known) and not known.issuperset(op.ins)
        if op.prim in TOGETHER:
            return each(op.ins)
        alike = op.prim in ALIKE or primitive(op).carries
        return op.prim in POSITIVE or (alike and each(op.ins[:1]))

    return of(v, DEPTH)


__all__ = ["hardly_negative"]
