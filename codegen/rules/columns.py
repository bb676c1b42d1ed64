"""Which groups are reductions over leading axes with what makes their operands: one pass over memory, several results.

Batch norm's statistics and gradients, gradients of biases and norms of gradients are such groups.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ..program import Group, Op, Unsupported, Value, kind
from .expressions import Expr, View, expressions
from .primitives import is_reduction, primitive


@dataclasses.dataclass(frozen=True)
class Columns:
    """What a pass over arrays of `shape` computes: `sums` (how, node of the operand) over `axes`, and elementwise
    values that are `stored` (nodes). `nodes` are over `views`.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    nodes: Expr
    sums: tuple[tuple[str, int], ...]
    stored: tuple[int, ...]
    views: tuple[View, ...]


def is_column_reduction(op: Op) -> bool:
    """Whether an operation joins f32 [.., C] over neighbouring axes before its last ones, or over all axes."""
    x = op.ins[0] if op.ins else None
    if not is_reduction(op) or not isinstance(x, Value) or kind(x.dtype) != "f" or kind(op.out.dtype) != "f":
        return False
    first, last = span(x.shape, op.params["axes"])
    joined = math.prod(x.shape[d] for d in op.params["axes"])
    whole = joined == x.size or math.prod(x.shape[last:]) > 1
    return joined > 1 and whole and math.prod(x.shape[first:last]) == joined


def span(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, int]:
    """From where to where the dimensions lie that are joined, those of length 1 left out."""
    live = [d for d in axes if shape[d] != 1]
    return min(live, default=0), max(live, default=-1) + 1


def columns(group: Group) -> tuple[Columns, tuple[Value, ...], tuple[Value, ...]] | None:
    """A group as one pass, with its results: those of the reductions, and the stored ones, in the order of `Columns`.
    None when it is none, or its expressions have no vector code.
    """
    sums = [op for op in group.ops if is_reduction(op)]
    if not sums or group.result not in sums or not all(map(is_column_reduction, sums)):
        return None
    operands = tuple(op.ins[0] for op in sums if isinstance(op.ins[0], Value))
    results = tuple(op.out for op in sums)
    stored = tuple(v for v in group.also if v not in results)
    shape, axes = operands[0].shape, tuple(sorted(sums[0].params["axes"]))
    if any(v.shape != shape for v in (*operands, *stored)) or set(group.outs) != {*results, *stored}:
        return None
    if any(tuple(sorted(op.params["axes"])) != axes for op in sums):
        return None
    rest = tuple(op for op in group.ops if op not in sums)
    try:
        nodes, numbers, views = expressions(rest, operands, stored)
    except Unsupported:
        return None
    hows = (primitive(op).combine for op in sums)
    found = Columns(shape, axes, nodes, tuple(zip(hows, numbers, strict=False)), numbers[len(sums) :], views)
    return found, results, stored


__all__ = ["Columns", "columns", "is_column_reduction", "span"]
