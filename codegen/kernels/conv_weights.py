"""Steps for the gradient of a convolution by its weights, which is a convolution itself: the image by the result's
gradient, channels in the place of the batch.

    image [n, (d, (h,)) w, ci], gradient [n, (d, (h,)) w, co] -> [(kd, (kh,)) kw, ci, co], summed over n and pixels

A row of the product is an element of the window and a channel of the image: an address in the image. So it is any
convolution whose window is large, whatever made it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..program import Op, Unsupported, Value, kind
from ..rules.convolution import Convolution
from ..rules.expressions import COPY
from ..segment.assembly import Context
from ..segment.steps import Ref
from ..segment.storage import Storage
from .elementwise import copy
from .in_place import Axis, Sides, add_parts, add_product, even, merged, parts
from .product import Lane, epilogue


def sums_pixels(ctx: Context, op: Op, geo: Convolution) -> bool:
    """Whether an operation is one that this rule is for: two computed operands, and what lies side by side in the image
    is no channel but the batch; or neither is, and the window is larger than the result.
    """
    x, w = op.ins
    if not isinstance(x, Value) or not isinstance(w, Value) or w in ctx.consts:
        return False
    if {kind(v.dtype) for v in (x, w, op.out)} != {"f"} or not 1 <= len(geo.window) <= 3:
        return False
    last = len(x.shape) - 1
    return geo.image[0] == last or (geo.image[1] != last and math.prod(geo.window) > math.prod(geo.sizes))


def conv_weights(ctx: Context, op: Op, rest: tuple[Op, ...], geo: Convolution, image: Storage) -> tuple[Op, ...]:
    """The convolution of an image [n, spatial..., c] with its halo by a gradient [n, spatial..., co] that the model
    computes; groups of the batch are groups of channels.

    Returns what of the tail is not fused. Raises `Unsupported` for groups of features.
    """
    if geo.groups != 1:
        raise Unsupported(f"a convolution by computed weights with feature_group_count={geo.groups}")
    order, gradient = (geo.weights[1], *geo.weights[2:], geo.weights[0]), ctx.storage(op.value_ins[1])
    sides = _sides(geo, image, _turned(ctx, gradient, order))
    if not even(sides.axes):
        sides = _sides(geo, image, _copied(ctx, gradient, order))
    axes = (*geo.result[2:], geo.result[0], geo.result[1])
    count = parts(ctx, sides)
    tail = epilogue(ctx, op, rest) if count == 1 and axes[-1] == len(axes) - 1 else None
    final = ctx.output(tail.result if tail else op.out)
    if tail is not None and final.strides[-1] == 4:
        operands = [_lane(geo, s, at, [strides[d] for d in axes]) for s, strides, at in tail.operands]
        add_product(ctx, sides, _lane(geo, final, 0, [final.strides[d] for d in axes]), tail.expr, operands)
        return ()
    final = ctx.output(op.out)
    there = final.dense and axes == tuple(range(len(axes)))
    y = final if there else ctx.scratch(tuple(op.out.shape[d] for d in axes))
    if count > 1:
        add_parts(ctx, sides, count, y)
    else:
        add_product(ctx, sides, _lane(geo, y, 0, y.strides), COPY, ())
    if not there:
        copy(ctx, y, final, tuple(y.strides[axes.index(d)] for d in range(len(axes))))
    return rest


def _sides(geo: Convolution, image: Storage, gradient: Storage) -> Sides:
    """The product that a convolution is: elements of the window and channels by channels, summed over all pixels."""
    steps, ci = image.strides[1:-1], image.shape[-1] // geo.batch_groups
    lengths = (gradient.shape[0], *geo.window)
    lefts = (image.strides[0], *(s * d for s, d in zip(steps, geo.dilation, strict=True)))
    axes = merged([Axis(*a) for a in zip(lengths, lefts, gradient.strides[:-1], strict=True)])
    origin = -sum(lo * s for (lo, _), s in zip(geo.padding, steps, strict=True))
    walk = (*(s * k for s, k in zip(steps, geo.strides, strict=True)), 4)
    left, co = Ref(image.buffer, image.offset + origin), geo.channels // geo.batch_groups
    right = Ref(gradient.buffer, gradient.offset), 4 * co
    return Sides(axes, _four((*geo.sizes, ci), 1), _four(walk, 0), co, geo.batch_groups, (left, 4 * ci), right)


def _turned(ctx: Context, s: Storage, order: Sequence[int]) -> Storage:
    """An array with its axes in another order, as it lies where the last one lies side by side; else a copy."""
    if s.strides[order[-1]] != 4:
        return _copied(ctx, s, order)
    shape, strides = tuple(s.shape[d] for d in order), tuple(s.strides[d] for d in order)
    return Storage(s.buffer, s.offset, shape, strides, tuple(s.halo[d] for d in order))


def _copied(ctx: Context, s: Storage, order: Sequence[int]) -> Storage:
    """A copy of an array with its axes in another order, without a halo."""
    target = ctx.scratch(tuple(s.shape[d] for d in order))
    copy(ctx, s, target, tuple(s.strides[d] for d in order))
    return target


def _lane(geo: Convolution, s: Storage, at: int, strides: Sequence[int]) -> Lane:
    """An array over (window..., channels of the image, channels) as a product walks it; strides and offset in bytes."""
    each = geo.channels // geo.batch_groups
    return Lane(Ref(s.buffer, s.offset + at), _four(strides[:-1], 0), strides[-1], strides[-1] * each)


def _four(values: Sequence[int], fill: int) -> tuple[int, int, int, int]:
    """Values of the pixel dimensions (N, D, H, W); the first ones are `fill` where there are fewer."""
    n, d, h, w = (*(fill,) * (4 - len(values)), *values)
    return n, d, h, w
