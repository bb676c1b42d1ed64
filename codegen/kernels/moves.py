"""Steps for movement that is more than a view: other shapes, concatenation, padding, and places known at the call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..program import Literal, Op, Unsupported, Value, kind
from ..rules.expressions import COPY
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Buffer, Storage, dense
from . import elementwise


def reshape(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Another shape of the same elements: no work, unless the source is strided or the result is an output that the
    source does not lie in.

    Raises `Unsupported` for a literal, a type that kernels do not know, and for a reshape that permutes.
    """
    x = op.ins[0]
    if not isinstance(x, Value) or not kind(x.dtype) or op.params.get("dimensions") is not None:
        raise Unsupported(f"a reshape of {x}")
    s = ctx.storage(x)
    seen = s.seen_as(op.out.shape) or elementwise.dense(ctx, s).reshaped(op.out.shape)
    if op.out in ctx.program.outputs:
        target = ctx.output(op.out)
        if (seen.buffer, seen.offset) != (target.buffer, target.offset):
            elementwise.copy(ctx, seen, target)
    else:
        ctx.place(op.out, seen)
    return rest


def concatenate(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Operands made in this segment already lie in their part along the axis; the others are copied into it.

    Raises `Unsupported` for a literal and for a type that kernels do not know.
    """
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


def pad(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """The padding's number everywhere, then the operand in its place; gaps and both ends along any axis.

    Raises `Unsupported` for a padding that is negative or computed, and for an operand that is a literal or of another
    type than floating point.
    """
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
    elementwise.compute(ctx, COPY, (y, spaced, offset), [(s, s.strides, 0)], x.shape)
    return rest


def dynamic_slice(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """A block of the operand at s32 starts, which are clamped so that it lies inside.

    Raises `Unsupported` for a literal, a type that kernels do not know, starts that are not s32, and for a block that
    takes single elements across the innermost axis.
    """
    x, *starts = op.ins
    y, s = ctx.output(op.out), _read(ctx, x, op.out.shape)
    if s.narrow:
        rows = dense(Buffer("temp", op.out.nbytes), y.shape, narrow=s.narrow)
        _shifted(ctx, _in_words(s), _in_words(rows), starts, move_source=True)
        elementwise.convert(ctx, rows, y)
        return rest
    _shifted(ctx, s, y, starts, move_source=True)
    return rest


def dynamic_update_slice(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """A copy of the operand, then the update at s32 starts, which are clamped so that it lies inside.

    Raises `Unsupported` for a literal, a type that kernels do not know, starts that are not s32, and for an update of
    single elements across the innermost axis.
    """
    x, update, *starts = op.ins
    if not isinstance(x, Value):
        raise Unsupported("an update of a literal")
    if isinstance(update, Value) and kind(update.dtype) and (state := ctx.state(op)) is not None:
        given, kept = state
        elementwise.copy(ctx, _in_words(given), _in_words(kept))
        rows = dense(Buffer("temp", update.nbytes), update.shape, narrow=given.narrow)
        elementwise.convert(ctx, elementwise.dense(ctx, ctx.storage(update)), rows)
        _shifted(ctx, _in_words(rows), _in_words(kept), starts, move_source=False)
        return rest
    y = ctx.output(op.out)
    elementwise.copy(ctx, ctx.storage(x), y)
    _shifted(ctx, _read(ctx, update), y, starts, move_source=False)
    return rest


def _in_words(s: Storage) -> Storage:
    """An array of two bytes an element, whose rows lie side by side, seen as words of four."""
    shape = (*s.shape[:-1], s.shape[-1] // 2)
    return Storage(s.buffer, s.offset, shape, (*s.strides[:-1], 4), s.halo)


def _read(ctx: Context, v: Value | Literal, rows: tuple[int, ...] = ()) -> Storage:
    """Where a value is read; in its own type where it lies so and blocks of whole rows, of the shape `rows`, are read.
    Raises `Unsupported` for a literal and for a type that kernels do not know.
    """
    if not isinstance(v, Value) or not kind(v.dtype):
        raise Unsupported(f"a dynamic slice of {v}")
    return ctx.stored(v) if rows[-1:] == v.shape[-1:] and v.shape[-1] % 2 == 0 else ctx.storage(v)


def _shifted(ctx: Context, s: Storage, y: Storage, starts: Sequence[Value | Literal], move_source: bool) -> None:
    """Copies a block whose place in the source (a slice) or the target (an update) is only known at the call; places
    are clamped. Nothing for a block of no elements.
    """
    if any(isinstance(i, Value) and i.dtype != "int32" for i in starts):
        raise Unsupported(f"a dynamic slice at {[i.dtype for i in starts]}")
    block, large = (y, s) if move_source else (s, y)
    if not math.prod(block.shape):
        return
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
