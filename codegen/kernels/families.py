"""Primitive -> the family that makes its steps; a group is its anchor's steps and what of the tail is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..program import Group, Literal, Op, Unsupported, Value, kind
from ..segment.assembly import Context, Kernel
from ..segment.storage import Storage
from . import conv, dot, elementwise, nests
from .expressions import MOVE, is_elementwise
from .rowwise import recognise, rowwise

Rule = Callable[[Context, Op, tuple[Op, ...]], tuple[Op, ...]]  # returns what of the tail is still to be done


def lower_group(ctx: Context, group: Group) -> None:
    """Appends the steps of one group. Raises `Unsupported` with the operation's name."""
    anchor, tail = group.anchor, group.tail
    last = bool(tail) and anchor.out is group.out  # it reads what the others make: all of them are one expression
    try:
        rule, row = None if last else RULES.get(anchor.prim), recognise(group.ops)
        if row is not None:
            rowwise(ctx, group.out, row)
        elif rule is None:
            elementwise.tail(ctx, group.ops, group.out)
        elif left := rule(ctx, anchor, tail):
            elementwise.tail(ctx, left, group.out)
    except Unsupported as e:
        raise Unsupported(f"{anchor.prim} {anchor.name!r}: {e}") from None


def _pool(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    p, x = op.params, op.ins[0]
    window, strides, padding = p["window_dimensions"], p["window_strides"], p["padding"]
    if (
        not isinstance(x, Value)
        or kind(x.dtype) != "f"
        or any(d != 1 for d in (*p["base_dilation"], *p["window_dilation"]))
    ):
        raise Unsupported("a dilated pooling window, or one over a type other than f32")
    if not 3 <= len(window) <= 5 or any(
        (w, s, tuple(q)) != (1, 1, (0, 0)) for w, s, q in ((window[i], strides[i], padding[i]) for i in (0, -1))
    ):
        raise Unsupported(f"a pooling window {window} that is not over 1 to 3 dimensions between batch and channels")
    s, y = ctx.storage(x), ctx.output(op.out)
    if s.strides[-1] != 4:
        s = elementwise.dense(ctx, s)
    fill = (1,) * (5 - len(window))
    zero = (0,) * len(fill)
    dims = zip(
        (*fill, *window[1:-1]),
        (*fill, *strides[1:-1]),
        (*zero, *(lo for lo, _ in padding[1:-1])),
        (*fill, *s.shape[1:-1]),
        (*zero, *s.strides[1:-1]),
        strict=True,
    )
    ystrides = (*zero, *y.strides[1:-1])
    oshape = (*fill, *y.shape[1:-1])
    extra = [oshape[2], y.shape[-1], ystrides[2], *(w for d in dims for w in d)]
    operands = [(s, (s.strides[0], 0, 0), 0), (y, (y.strides[0], ystrides[0], ystrides[1]), 0)]
    kernel = Kernel(("pool", op.prim.rsplit("_", 1)[1]))
    rows = math.prod((y.shape[0], *oshape[:2]))
    chunk, units = (
        max(1, min(-(-rows // (4 * ctx.threads)), 64)),
        math.prod(window) * oshape[2] * -(-y.shape[-1] // ctx.target.vl),
    )
    elementwise.nest(ctx, kernel, extra, (y.shape[0], *oshape[:2]), operands, 1, chunk, units)
    return rest


def _reduce(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    x, axes = op.ins[0], sorted(op.params["axes"])
    if not isinstance(x, Value) or kind(x.dtype) != "f" or kind(op.out.dtype) != "f":
        raise Unsupported("a reduction of a type other than f32")
    s = ctx.storage(x)
    kept = [d for d in range(len(x.shape)) if d not in axes]
    live = [d for d in axes if x.shape[d] != 1]
    if (live and live != list(range(live[0], live[-1] + 1))) or not s.dense:
        order = (*kept, *axes)
        target = ctx.scratch(tuple(x.shape[d] for d in order))
        elementwise.copy(ctx, s, target, tuple(s.strides[d] for d in order))
        s, live, kept = target, list(range(len(kept), len(order))), list(range(len(kept)))
    before = math.prod(s.shape[d] for d in kept if not live or d < live[0])
    n = math.prod(s.shape[d] for d in live)
    after = math.prod(s.shape[d] for d in kept if live and d > live[-1])
    y = ctx.output(op.out)
    target = y if y.dense else ctx.scratch(op.out.shape)
    how = op.prim.removeprefix("reduce_")
    if after == 1:
        operands: list[elementwise.Operand] = [(s, (4 * n,), 0), (target, (4,), 0)]
        elementwise.nest(
            ctx,
            Kernel(("reduce", how, True)),
            [n, 4, 1, 1],
            (before,),
            operands,
            1,
            max(1, (1 << 14) // max(n, 1)),
            -(-n // ctx.target.vl),
        )
    else:
        width = min(after, 256)
        loops = (before, -(-after // width))
        operands = [(s, (4 * n * after, 4 * width), 0), (target, (4 * after, 4 * width), 0)]
        chunk, units = max(1, (1 << 14) // max(n * width, 1)), n * -(-width // ctx.target.vl)
        elementwise.nest(
            ctx, Kernel(("reduce", how, False)), [n, 4 * after, after, width], loops, operands, 1, chunk, units
        )
    if target is not y:
        elementwise.copy(ctx, target, y)
    return rest


def _reshape(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Another shape of the same elements: no work, unless the source is strided or the result is an output."""
    x = op.ins[0]
    if not isinstance(x, Value) or not kind(x.dtype) or op.params.get("dimensions") is not None:
        raise Unsupported(f"a reshape of {x}")
    seen = elementwise.dense(ctx, ctx.storage(x)).reshaped(op.out.shape)
    if op.out in ctx.program.outputs:
        elementwise.copy(ctx, seen, ctx.output(op.out))
    else:
        ctx.place(op.out, seen)
    return rest


def _concatenate(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Operands made in this segment already lie in their part; the others are copied into it."""
    axis, at = op.params["dimension"], 0
    y = ctx.output(op.out)
    for v in op.ins:
        part = y.part(axis, at, v.shape[axis])
        at += v.shape[axis]
        if isinstance(v, Literal) or not kind(v.dtype):
            raise Unsupported(f"a concatenation of {v}")
        s = ctx.storage(v)
        if (s.buffer, s.offset) != (part.buffer, part.offset) or s.strides != part.strides:
            elementwise.copy(ctx, s, part)
    return rest


def _pad(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    x, value = op.ins
    if (
        not isinstance(x, Value)
        or kind(x.dtype) != "f"
        or not isinstance(value, Literal)
        or any(lo < 0 or hi < 0 for lo, hi, _ in op.params["padding_config"])
    ):
        raise Unsupported("a padding that is negative or not a literal")
    y, s = ctx.output(op.out), ctx.storage(x)
    elementwise.fill(ctx, float(value.val), y)
    config = op.params["padding_config"]
    offset = sum(lo * t for (lo, _, _), t in zip(config, y.strides, strict=True))
    spaced = tuple(t * (gap + 1) for (_, _, gap), t in zip(config, y.strides, strict=True))
    elementwise.compute(ctx, elementwise.COPY, (y, spaced, offset), [(s, s.strides, 0)], x.shape)
    return rest


def _gather(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Rows of a table by s32 index (an embedding)."""
    table, index = op.ins
    dn, mode = op.params["dimension_numbers"], str(op.params["mode"]).lower()
    if (
        not isinstance(table, Value)
        or not isinstance(index, Value)
        or (kind(table.dtype), index.dtype) != ("f", "int32")
    ):
        raise Unsupported("a gather that is not from an f32 table by s32 indices")
    kept = tuple(range(len(index.shape) - 1, len(op.out.shape)))
    rowwise = (dn.collapsed_slice_dims, dn.start_index_map, dn.offset_dims, tuple(op.params["slice_sizes"])) == (
        (0,),
        (0,),
        kept,
        (1, *table.shape[1:]),
    )
    if (
        not rowwise
        or index.shape[-1:] != (1,)
        or len(dn.operand_batching_dims)
        or not np.isnan(op.params.get("fill_value") or np.nan)
    ):
        raise Unsupported("a gather other than of whole rows")
    t, i, y = (
        elementwise.dense(ctx, ctx.storage(v)) if v is not op.out else ctx.output(v) for v in (table, index, op.out)
    )
    if not y.dense:
        raise Unsupported("a gather into a strided result")
    n, width = math.prod(index.shape), math.prod(table.shape[1:])
    how = "fill" if "fill" in mode else "clip"
    operands = [(i, (4,), 0), (t, (0,), 0), (y, (4 * width,), 0)]
    elementwise.nest(
        ctx, Kernel(("gather", how)), [table.shape[0], width], (n,), operands, 2, max(1, (1 << 14) // max(width, 1))
    )
    return rest


def _dynamic_slice(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    x, *starts = op.ins
    y = ctx.output(op.out)
    _shifted(ctx, x, y, starts, y.shape, move_source=True)
    return rest


def _dynamic_update_slice(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    x, update, *starts = op.ins
    if not isinstance(x, Value):
        raise Unsupported("an update of a literal")
    y = ctx.output(op.out)
    elementwise.copy(ctx, ctx.storage(x), y)
    _shifted(ctx, update, y, starts, y.shape, move_source=False)
    return rest


def _shifted(
    ctx: Context,
    source: Value | Literal,
    y: Storage,
    starts: Sequence[Value | Literal],
    shape: tuple[int, ...],
    move_source: bool,
) -> None:
    """Copies a block whose place in the source (a slice) or the target (an update) is only known at the call; places
    are clamped.
    """
    if (
        not isinstance(source, Value)
        or not kind(source.dtype)
        or any(isinstance(i, Value) and i.dtype != "int32" for i in starts)
    ):
        raise Unsupported(f"a dynamic slice of {source} at {[i.dtype for i in starts]}")
    s = ctx.storage(source)
    block, large = (y, s) if move_source else (s, y)
    offset, where, extra = 0, [], []
    for n, m, step, i in zip(block.shape, large.shape, large.strides, starts, strict=True):
        if isinstance(i, Literal):
            offset += min(max(int(i.val), 0), m - n) * step
        elif m != n:
            where.append((ctx.storage(i), (), 0))
            extra += [m - n, step]
    dims, walks = elementwise.coalesce(block.shape, [s.strides, y.strides])
    if dims != [1] and any(w[-1] != 4 for w in walks):
        raise Unsupported("a dynamic slice across the innermost dimension")
    loops, (a, b) = dims[:-1], (tuple(w[:-1]) for w in walks)
    operands = [
        (s, a, offset if move_source else 0),
        (y, b, 0 if move_source else offset),
        *((i, (0,) * len(loops), 0) for i, _, _ in where),
    ]
    kernel = Kernel(("shifted", len(where), move_source))
    elementwise.nest(ctx, kernel, [dims[-1], *extra], loops, operands, 1, max(1, (1 << 14) // dims[-1]))


RULES: dict[str, Rule] = {
    "conv_general_dilated": conv.conv,
    "dot_general": dot.dot,
    "reshape": _reshape,
    "concatenate": _concatenate,
    "pad": _pad,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _pool),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _reduce),
}

#: Primitives that begin a layer of their own; the others join the layer of their operand.
ANCHORS = frozenset(RULES)


def known(op: Op) -> bool:
    """Whether some rule knows the primitive at all (the details are only seen when it is lowered)."""
    return op.prim in RULES or op.prim in MOVE or is_elementwise(op)


__all__ = ["ANCHORS", "RULES", "known", "lower_group", "nests"]
