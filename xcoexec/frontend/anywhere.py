"""Which operations every pass over memory may compute for itself, beside those that other kernels compute.

x -> conv -> add -> max ---> conv      add and max are the tail of a convolution's kernel
                  \\-> mul -> sum      mul is computed in the pass that sums
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from ..codegen.program import Op, Value, kind
from ..codegen.rules.columns import is_column_reduction
from ..codegen.rules.primitives import PICK, is_anchor, is_broadcast, is_elementwise, is_view, primitive
from ..codegen.rules.rows import is_row_reduction

_Makers: TypeAlias = Mapping[Value, Op]
_Readers: TypeAlias = Mapping[Value, Sequence[Op]]


def anywhere(
    ops: Sequence[Op], floating: set[Op], makers: _Makers, readers: _Readers, outputs: Collection[Value]
) -> set[Op]:
    """The operations of a program that may be computed in any pass. `floating`: its `constant_broadcasts`."""
    soft = {op for op in ops if is_simple(op)} - _of_rows(ops, floating, readers)
    soft -= _compared(ops, makers)
    soft -= _tails(ops, soft, floating, makers, readers, outputs)
    return soft - _turned(ops, soft, floating, readers)


def is_moving(op: Op) -> bool:
    """Whether an operation spreads its operand, or puts axes of length 1 in or out: it is no work in an expression."""
    return is_broadcast(op) or (op.prim in ("reshape", "squeeze") and is_view(op))


def is_simple(op: Op) -> bool:
    """Whether an operation can be part of any pass."""
    if len(op.outs) != 1 or op.body is not None or not all(kind(v.dtype) for v in (*op.ins, op.out)):
        return False
    if op.prim == "convert_element_type" or is_moving(op):
        return bool(op.value_ins) or is_broadcast(op)
    return is_elementwise(op) and kind(op.ins[0].dtype) in primitive(op).vector


def constant_broadcasts(ops: Sequence[Op], makers: _Makers, data: set[Value]) -> set[Op]:
    """The operations that spread constants. `data`: the values that are none."""
    found: set[Op] = set()
    for op in ops:
        if is_broadcast(op) and all(v not in data or makers.get(v) in found for v in op.value_ins):
            found.add(op)
    return found


def _of_rows(ops: Sequence[Op], floating: set[Op], readers: _Readers) -> set[Op]:
    """What is computed from sums of rows, or for them alone: their kernels have passes of their own."""
    rows = {op for op in ops if is_row_reduction(op) and not is_column_reduction(op)}
    found, sizes = set(rows), {op.out: op.value_ins[0].size for op in rows}  # of the arrays that are rows
    for op in ops:
        if op in floating or not is_simple(op):
            continue
        size = max((sizes[v] for v in op.value_ins if v in sizes), default=0)
        if size >= op.out.size:
            found.add(op)
            sizes[op.out] = size
    for op in reversed(ops):
        who = readers.get(op.out, []) if op.outs else []
        if is_simple(op) and op not in floating and who and all(r in found for r in who):
            found.add(op)
    return found


def _compared(ops: Sequence[Op], makers: _Makers) -> set[Op]:
    """What makes the elements that are compared with the greatest or least of them, as gradients of these do: computed
    twice, by kernels and by XLA, the two may differ in a last bit, and no element would be the greatest.
    """

    def reduced(v: Value) -> Value | None:
        while (op := makers.get(v)) is not None and is_moving(op) and op.value_ins:
            v = op.value_ins[0]
        return op.value_ins[0] if op is not None and primitive(op).combine in PICK and op.value_ins else None

    pairs = [op.value_ins for op in ops if op.prim in ("eq", "ne")]
    picked = {u for pair in pairs for u in map(reduced, pair) if u is not None and kind(u.dtype) == "f"}
    return {makers[u] for u in picked if u in makers}


def _tails(
    ops: Sequence[Op],
    soft: set[Op],
    floating: set[Op],
    makers: _Makers,
    readers: _Readers,
    outputs: Collection[Value],
) -> set[Op]:
    """What kernels of anchors compute beside them."""
    found: set[Op] = set()

    def is_light(u: Value, v: Value) -> bool:
        """Whether a tail of `v` may read `u`: not where that would have to be kept for it alone."""
        maker = makers.get(u)
        return u.size < v.size or maker in floating or maker in found or maker not in soft

    for op in ops:
        if not is_anchor(op) or is_simple(op) or is_column_reduction(op) or len(op.outs) != 1:
            continue
        v = op.out
        while v not in outputs and len(readers.get(v, [])) == 1:
            nxt = readers[v][0]
            if nxt not in soft or nxt.out.shape != v.shape or is_moving(nxt):
                break
            if any(u is not v and not is_light(u, v) for u in nxt.value_ins):
                break
            found.add(nxt)
            v = nxt.out
    return found


def _turned(ops: Sequence[Op], soft: set[Op], floating: set[Op], readers: _Readers) -> set[Op]:
    """What only puts values in the form in which others than passes read them."""
    found: set[Op] = set()
    for op in reversed(ops):
        who = readers.get(op.out, []) if op.outs else []
        inside = any(is_column_reduction(r) or (r in soft and r not in found) for r in who)
        if op in soft and op not in floating and is_moving(op) and who and not inside:
            found.add(op)
    return found


__all__ = ["anywhere", "constant_broadcasts", "is_moving", "is_simple"]
