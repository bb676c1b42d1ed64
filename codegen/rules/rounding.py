"""Results of bf16 and f16 that go out in 4 bytes an element: kernels compute with more bits than these types have, and
who reads such a result has to find numbers that its type has, as everybody does who reads it in 2 bytes.

    conv -> add ===> out        becomes        conv -> add -> bfloat ===> out
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ..program import Group, Op, Program, Value
from .primitives import PICK, ROUNDS, is_elementwise, primitive

ROUNDED_BY_ALL = ("float16",)  # by every elementwise operation: their range is small
MOVED = ("pad", "gather", "scatter", "dynamic_slice", "dynamic_update_slice")  # elements alone, as `carries` means it


def rounded(program: Program, outputs: Collection[Value]) -> Program:
    """The program with `outputs` rounded to their types by the groups that make them, where kernels do so in passing:
    behind elementwise operations and contractions. `unrounded` has the others.
    """
    wanted = {*outputs} & {*unrounded(program)}
    return dataclasses.replace(program, groups=tuple(_rounding(g, wanted) for g in program.groups))


def unrounded(program: Program) -> tuple[Value, ...]:
    """The outputs of bf16 and f16 whose elements may be numbers that their types have not."""
    whole = {v for v in (*program.inputs, *program.consts) if v.dtype in ROUNDS}
    for op in program.ops:
        if _gives_whole(op, whole):
            whole.update(op.outs)
    return tuple(v for v in program.outputs if v.dtype in ROUNDS and v.size and v not in whole)


def _gives_whole(op: Op, whole: Collection[Value]) -> bool:
    """Whether the results of an operation are numbers that their type has, as those of `whole` are of theirs."""
    p, dtype = primitive(op), op.out.dtype
    if op.prim in ROUNDS.values() or (is_elementwise(op) and dtype in ROUNDED_BY_ALL):
        return True
    if op.prim == "convert_element_type":
        return op.ins[0].dtype != dtype or op.ins[0] in whole
    moves = p.exact or p.carries or p.axes is not None or p.combine in PICK or op.prim in MOVED
    return moves and all(v in whole for v in op.value_ins if v.dtype in ROUNDS)


def _rounding(group: Group, wanted: Collection[Value]) -> Group:
    """A group whose results among `wanted` are rounded; it is the very same where that has to be a pass of its own."""
    ops, anchor = list[Op](), group.anchor
    for op in group.ops:
        passing = is_elementwise(op) or (op is anchor and primitive(op).contraction)
        if len(op.outs) != 1 or op.out not in wanted or not passing:
            ops.append(op)
            continue
        plain = dataclasses.replace(op, outs=(Value(op.out.shape, op.out.dtype),))
        anchor = plain if op is anchor else anchor
        ops += [plain, Op(ROUNDS[op.out.dtype], plain.outs, op.outs, {}, op.name)]
    return dataclasses.replace(group, ops=tuple(ops), anchor=anchor) if len(ops) > len(group.ops) else group


__all__ = ["rounded", "unrounded"]
