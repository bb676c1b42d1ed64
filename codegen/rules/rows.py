"""Which groups are passes over rows: reductions over the last dimension and what surrounds them."""

from __future__ import annotations

import dataclasses

from ..program import Op, Unsupported, Value, kind
from .expressions import Expr, Node, View, expression
from .primitives import is_reduction

PREFIX = "reduce_"
LEAVES = ("in", "lit", "red")


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
class Reduction:
    """`operand` over the group's views and earlier reductions; `level`: the pass that computes it."""

    how: str
    operand: Expr
    level: int


@dataclasses.dataclass(frozen=True)
class Rowwise:
    """What a group computes: reductions in order, the result's expression (("red", j): reduction j), and the views
    read.
    """

    reductions: tuple[Reduction, ...]
    result: Expr
    views: tuple[View, ...]


def recognise(ops: tuple[Op, ...]) -> Rowwise | None:
    """Operations in program order as passes over rows of the last result [..., C]; None when there is no row reduction,
    or they are not of that form.
    """
    out = ops[-1].out
    if (
        not any(map(is_row_reduction, ops))
        or len(out.shape) < 1
        or any(is_row_reduction(op) and op.ins[0].shape != out.shape for op in ops)
    ):
        return None
    if any(is_reduction(op) and not is_row_reduction(op) for op in ops):
        return None
    try:
        expr, views = expression(ops, out, reductions=True)
    except Unsupported:
        return None
    return _passes(expr, views)


def _passes(expr: Expr, views: tuple[View, ...]) -> Rowwise:
    """Separates the reductions of one expression; `("reduce_sum", n)` nodes become ("red", j)."""
    found: list[Reduction] = []
    number: dict[int, int] = {}
    level: list[int] = []
    for i, (head, *args) in enumerate(expr):
        inner = 0 if head in LEAVES else max((level[a] for a in args), default=0)
        if head.startswith(PREFIX):
            number[i] = len(found)
            found.append(Reduction(head.removeprefix(PREFIX), subexpression(expr, args[0], number), inner))
            inner += 1
        level.append(inner)
    return Rowwise(tuple(found), subexpression(expr, len(expr) - 1, number), views)


def subexpression(expr: Expr, root: int, reductions: dict[int, int]) -> Expr:
    """The nodes that `root` needs, renumbered; `reductions`: nodes that are read as ("red", number) instead."""
    new: dict[int, int] = {}
    out: list[Node] = []

    def visit(i: int) -> int:
        if i not in new:
            head, *args = expr[i]
            if i in reductions:
                node: Node = ("red", reductions[i])
            elif head in LEAVES:
                node = expr[i]
            else:
                node = (head, *(visit(a) for a in args))
            new[i] = len(out)
            out.append(node)
        return new[i]

    visit(root)
    return tuple(out)
