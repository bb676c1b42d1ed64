"""FLOP and bytes of operations, by the table of primitives."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..codegen.program import Op, Value, bits, consumers, external
from ..codegen.rules.primitives import primitive

PICKS = ("gather", "dynamic_slice", "slice")  # they read a part of their first operand


def flops(op: Op) -> int:
    """FLOP of one operation (a multiply-add counts 2); one for each result element where `uncounted` names it."""
    rule = primitive(op).flops
    return rule(op) if rule is not None else sum(v.size for v in op.outs)


def uncounted(ops: Sequence[Op]) -> tuple[str, ...]:
    """The primitives whose FLOP the table does not know."""
    return tuple(dict.fromkeys(op.prim for op in ops if primitive(op).flops is None))


def nbytes(ops: Sequence[Op], known: Collection[Value] = ()) -> int:
    """Bytes that operations in program order must read and write: what comes from outside, and the last results.
    Constants (`known`) that a product multiplies count as the model keeps them; of what is only picked from, what is
    taken counts.
    """
    readers = consumers(ops)

    def read(v: Value) -> int:
        mine = readers.get(v, [])
        if mine and all(op.prim in PICKS and op.ins[0] is v for op in mine):
            return min(v.nbytes, sum(op.out.nbytes for op in mine))
        return _kept(v) if v in known and any(op.prim == "dot_general" for op in mine) else v.nbytes

    return sum(map(read, external(ops))) + sum(v.nbytes for v in ops[-1].outs)


def _kept(v: Value) -> int:
    """Bytes of an array as the model keeps it, with its scales."""
    if v.source is None:
        return v.nbytes
    return v.source.size * bits(v.source.dtype) // 8 + (v.scale.nbytes if v.scale is not None else 0)
