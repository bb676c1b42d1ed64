"""Steps for reductions over axes and over windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ..program import Group, Op, Unsupported, Value, kind
from ..rules.columns import columns
from ..rules.expressions import COPY, Expr
from ..rules.primitives import primitive
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Operand, Storage
from . import elementwise
from .columns import sweep
from .epilogue import Written
from .forms import with_forms
from .pairs import BF16, elements, large

PIXELS = 4  # of a pooling window that are made together
SUMS, LEAST_SUMS = {16: 24}, 12  # columns of their windows that registers hold: of vectors of so many lanes, of others
#: (how a reduction joins, kind of the elements) -> how its kernel does
JOINED = {
    **{(how, "f"): how for how in ("sum", "max", "min", "prod")},
    ("sum", "i"): "sum@i",
    ("and", "b"): "min",
    ("or", "b"): "max",
}


def pool(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """A reduction over windows of 1 to 3 axes between batch and channels: [n, ..., c].

    Raises `Unsupported` for dilated windows, for another type than floating point, and for a window along batch or
    channels.
    """
    p, x = op.params, op.ins[0]
    window, strides, padding = p["window_dimensions"], p["window_strides"], p["padding"]
    if not isinstance(x, Value) or kind(x.dtype) != "f" or any(d != 1 for d in p["window_dilation"]):
        raise Unsupported("a dilated pooling window, or one over a type other than f32")
    distance = p["base_dilation"]
    if not 3 <= len(window) <= 5 or any(
        (window[i], strides[i], distance[i], tuple(padding[i])) != (1, 1, 1, (0, 0)) for i in (0, -1)
    ):
        raise Unsupported(f"a pooling window {window} that is not over 1 to 3 dimensions between batch and channels")
    s, y = ctx.storage(x), ctx.output(op.out)
    if s.strides[-1] != 4:
        s = elementwise.dense(ctx, s)
    if x.dtype == BF16 and large(ctx, s):
        s = elements(ctx, s, BF16) or s
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
    spread = any(d != 1 for d in distance)
    extra = [oshape[2], y.shape[-1], ystrides[2], *itertools.chain.from_iterable(dims)]
    width, stride, (before, _) = window[-2], strides[-2], padding[-2]
    first = min(max(-(-before // stride), 0), oshape[2])
    end = min(max((s.shape[-2] + before - width) // stride + 1, first), oshape[2])
    extra += [*fill, *distance[1:-1]] if spread else [first, end, 0]
    pixels = min(end - first, PIXELS, max((SUMS.get(ctx.target.vl, LEAST_SUMS) - width) // stride + 1, 0))
    how = "spread" if spread else (width, stride, pixels) if pixels else (0, 0, 0)
    rows = math.prod((y.shape[0], *oshape[:2]))
    chunk = max(1, min(-(-rows // (4 * ctx.threads)), 64))
    units = math.prod(window) * oshape[2] * -(-y.shape[-1] // ctx.target.vl)

    def ending(expr: Expr, forms: tuple[Written, ...], to: Sequence[Operand]) -> None:
        outs = [(y, y.strides, 0), *to]
        walks = [(t, (walk[0], *(*zero, *walk[1:-1])[:2]), at) for t, walk, at in outs]
        steps = [walk[-2] for _, walk, _ in to]
        kernel = Kernel(("pool", primitive(op).combine, how, s.narrow or "float32", expr, forms))
        operands = [(s, (s.strides[0], 0, 0), 0), *walks]
        loops = (y.shape[0], *oshape[:2])
        elementwise.nest(ctx, kernel, [*extra, *steps], loops, operands, 1, chunk, units, forms=len(forms))

    with_forms(ctx, y, COPY, (), ending)
    return rest


def reduce(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """A reduction over some axes; those that are no neighbours are brought together by a copy.

    Raises `Unsupported` for a type that the reduction has no code for.
    """
    found = columns(Group.of(op))
    if found is not None:
        sweep(ctx, *found)
        return rest
    x, axes = op.ins[0], sorted(op.params["axes"])
    how = JOINED.get((primitive(op).combine, kind(x.dtype)))
    if not isinstance(x, Value) or how is None or kind(op.out.dtype) != kind(x.dtype):
        raise Unsupported(f"a {op.prim} of {x}")
    s, kept, live = _together(ctx, ctx.storage(x), axes)
    before = math.prod(s.shape[d] for d in kept if not live or d < live[0])
    n = math.prod(s.shape[d] for d in live)
    after = math.prod(s.shape[d] for d in kept if live and d > live[-1])
    y = ctx.output(op.out)
    target = y if y.dense else ctx.scratch(op.out.shape)
    if after == 1:
        operands: list[Operand] = [(s, (4 * n,), 0), (target, (4,), 0)]
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


def position(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Where the greatest (or least) element along the last axis lies, the first of several; NaN counts as that.

    Raises `Unsupported` for other types, for several axes and for an axis that is not the last one.
    """
    x, axes = op.ins[0], tuple(op.params["axes"])
    if not isinstance(x, Value) or kind(x.dtype) != "f" or op.out.dtype != "int32":
        raise Unsupported("the place of the greatest element of a type other than f32, or not in s32")
    if axes != (len(x.shape) - 1,):
        raise Unsupported(f"the place of the greatest element along the axes {axes} of {x}")
    s = elementwise.dense(ctx, ctx.storage(x))
    n, before = x.shape[-1], math.prod(x.shape[:-1])
    found, y = ctx.scratch((before,)), ctx.output(op.out)
    if not y.dense:
        raise Unsupported("places in a strided result")
    how = {"argmax": "max", "argmin": "min"}[op.prim]
    chunk, units = max(1, (1 << 13) // n), -(-n // ctx.target.vl)
    rows = (s, (4 * n,), 0)
    extremes = [rows, (found, (4,), 0)]
    elementwise.nest(ctx, Kernel(("reduce", how, True)), [n, 4, 1, 1], (before,), extremes, 1, chunk, units)
    places = [rows, (found, (4,), 0), (y, (4,), 0)]
    elementwise.nest(ctx, Kernel(("position",)), [n], (before,), places, 2, chunk, units)
    return rest


def _together(ctx: Context, s: Storage, axes: list[int]) -> tuple[Storage, list[int], list[int]]:
    """A dense array whose reduced dimensions are neighbours (a copy where `s` is not that), and its dimensions that
    are kept and that are reduced.
    """
    kept = [d for d in range(len(s.shape)) if d not in axes]
    live = [d for d in axes if s.shape[d] != 1]
    if s.dense and (not live or live == list(range(live[0], live[-1] + 1))):
        return s, kept, live
    order = (*kept, *axes)
    target = ctx.scratch(tuple(s.shape[d] for d in order))
    elementwise.copy(ctx, s, target, tuple(s.strides[d] for d in order))
    return target, list(range(len(kept))), list(range(len(kept), len(order)))
