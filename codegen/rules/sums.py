"""Which groups are sums of rows that indices name: gathered, changed element by element, joined into other rows.

A graph network's layer is such a sum: each edge takes its source's row, scales it and adds it to its target's.
"""

from __future__ import annotations

import dataclasses

from ..program import Op, Unsupported, Value
from .expressions import COPY, Expr, View, expression
from .indexing import Rows, gathered, scattered, scattered_rows


@dataclasses.dataclass(frozen=True, eq=False)
class Sum:
    """A gather, the expression of its rows (operand 0) and of `views`, and the scatter of the result; `kinds` says how
    each view is read: "s" one number a row, "v" a row of them. `before`: what makes the indices.
    """

    gather: Op
    scatter: Op
    before: tuple[Op, ...]
    expr: Expr
    views: tuple[View, ...]
    kinds: tuple[str, ...]
    source: Rows
    target: Rows


def summed(ops: tuple[Op, ...]) -> Sum | None:
    """Operations in program order as such a sum; None where they are none that a kernel can run."""
    scatter = ops[-1]
    gather = next((op for op in ops if op.prim == "gather"), None)
    if gather is None or not scattered_rows(scatter):
        return None
    source, target = gathered(gather), scattered(scatter)
    updates = scatter.ins[2]
    simple = source is not None and target is not None and source.places == target.places == 1
    if not simple or source is None or target is None or not isinstance(updates, Value):
        return None
    plain = source.mode == "clip" and source.tables == target.tables == 1 and source.width == target.width
    listed = len(gather.ins[1].shape) == len(scatter.ins[1].shape) == 2  # one pair of indices after the other
    if not plain or not listed or {gather.out.dtype, updates.dtype, scatter.out.dtype} != {"float32"}:
        return None
    makers = {v: op for op in ops for v in op.outs}
    before = _needed([v for v in (*scatter.ins[:2], *gather.ins) if isinstance(v, Value)], makers)
    between = tuple(op for op in ops[:-1] if op is not gather and op not in before)
    try:
        expr, views = expression(between, updates, anchor=gather.out) if between else (COPY, ())
    except Unsupported:
        return None
    found = tuple(_kind(v, updates.shape) for v in views[1:])
    return Sum(gather, scatter, before, expr, views[1:], found, source, target) if "" not in found else None


def _needed(values: list[Value], makers: dict[Value, Op]) -> tuple[Op, ...]:
    """The operations that make values, in an order that holds."""
    found: dict[Op, None] = {}
    for v in values:
        if v in makers and makers[v].prim != "gather":
            found.update(dict.fromkeys(_needed(list(makers[v].value_ins), makers)))
            found[makers[v]] = None
    return tuple(found)


def _kind(view: View, shape: tuple[int, ...]) -> str:
    """How a view over [rows, ...] is read; "" where no kernel can."""
    dims = [dim for dim, _, _ in view.axes if dim not in (0, None)]
    if not dims:
        return "s"
    whole = view.axes[-len(shape) + 1 :] == tuple((d, 1, 0) for d in range(1, len(shape)))
    return "v" if whole and len(shape) > 1 and view.value.shape[-len(shape) + 1 :] == shape[1:] else ""


__all__ = ["Sum", "summed"]
