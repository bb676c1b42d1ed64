"""Which groups are passes over rows: reductions over the last dimension and what surrounds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

from ..program import Op, Unsupported, Value, kind
from .expressions import Expr, Node, View, rows_expression
from .primitives import is_reduction

PREFIX = "reduce_"
LEAVES = ("in", "lit")


def is_row_reduction(op: Op) -> bool:
    """Whether an operation is a reduction of f32 [..., C] over its last axis alone, of more than one element."""
    x = op.ins[0] if op.ins else None
    return (
        is_reduction(op)
        and isinstance(x, Value)
        and kind(x.dtype) == "f"
        and tuple(op.params["axes"]) == (len(x.shape) - 1,)
        and x.shape[-1] > 1
    )


@dataclasses.dataclass(frozen=True)
class Rowwise:
    """What a group computes over rows [..., C] of `shape`: `nodes` over `views`, in which ("reduce_sum", n) is the sum
    of node n over a row; `results` are numbers of nodes, `whole` tells which of these are rows (others: a number a
    row).
    """

    shape: tuple[int, ...]
    nodes: Expr
    results: tuple[int, ...]
    whole: tuple[bool, ...]
    views: tuple[View, ...]


def recognise(ops: tuple[Op, ...], results: Sequence[Value] = ()) -> Rowwise | None:
    """Operations in program order as passes over rows that make `results` (none given: the last one's); None when there
    is no row reduction, nor results both of rows and of one number a row, or they are not of that form.
    """
    wanted = tuple(results) or (ops[-1].out,)
    shape = row_shape(ops, wanted)
    if shape is None or any(is_reduction(op) and not is_row_reduction(op) for op in ops):
        return None
    try:
        nodes, numbers, views = rows_expression(ops, wanted, shape)
    except Unsupported:
        return None
    return Rowwise(shape, nodes, numbers, tuple(v.shape == shape for v in wanted), views)


def row_shape(ops: Iterable[Op], results: Iterable[Value]) -> tuple[int, ...] | None:
    """The shape of the rows that operations work on; None where they work on none, or not on the same."""
    reduced = {op.value_ins[0].shape for op in ops if is_row_reduction(op)}
    shapes = {v.shape for v in results}
    shape = max(reduced or shapes, key=len)
    mixed = len(shapes) > 1 and len(shape) > 1
    if len(reduced) > 1 or not (reduced or mixed) or any(s not in row_shapes(shape) for s in shapes):
        return None
    return shape


def row_shapes(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The shapes of rows, and of one number a row."""
    return shape, shape[:-1], (*shape[:-1], 1)


def levels(nodes: Expr) -> list[int]:
    """Of each node the first pass that can compute it: the one behind those of the reductions that it needs. A
    reduction's own is behind the pass that computes it.
    """
    level: list[int] = []
    for head, *args in nodes:
        inner = 0 if head in LEAVES else max((level[a] for a in args), default=0)
        level.append(inner + head.startswith(PREFIX))
    return level


def needed(nodes: Expr, roots: Iterable[int], known: Collection[int]) -> list[int]:
    """The nodes that `roots` need, in order, without `known` ones and reductions, and without what only these need."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        n = todo.pop()
        if n in found or n in known or nodes[n][0].startswith(PREFIX):
            continue
        found.add(n)
        todo += operands(nodes[n])
    return sorted(found)


def operands(node: Node) -> tuple[int, ...]:
    """The nodes that a node is computed of."""
    return () if node[0] in LEAVES else tuple(node[1:])


__all__ = [
    "PREFIX",
    "Rowwise",
    "is_row_reduction",
    "levels",
    "needed",
    "operands",
    "recognise",
    "row_shape",
    "row_shapes",
]
