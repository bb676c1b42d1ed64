"""Steps for the gradient of a convolution by its weights, which is a convolution itself: the image by the result's
gradient, channels in the place of the batch.

    image [n, (d, (h,)) w, ci], gradient [n, (d, (h,)) w, co] -> [(kd, (kh,)) kw, ci, co], summed over n and pixels

A row of the product is an element of the window and a channel of the image: an address in the image. So it is any
convolution whose window is large, whatever made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program import Op
from ..rules.convolution import Convolution
from ..rules.expressions import COPY
from ..segment.context import Context
from ..segment.steps import Ref
from ..segment.storage import Storage
from .elementwise import copy
from .in_place import Axis, Sides, add_parts, add_product, even, merged, parts, swapped, turned
from .lanes import Lane
from .panels import Filters
from .product import epilogue


def conv_weights(
    ctx: Context, op: Op, rest: tuple[Op, ...], geo: Convolution, image: Storage, gradient: Filters
) -> tuple[Op, ...]:
    """The convolution of an image [n, spatial..., c] with its halo by a gradient that the model computes and that
    stands as the weights; groups of the batch are groups of channels. Returns what of the tail is not fused.
    """
    y = by_result(geo, gradient)
    sides = _sides(geo, image, y)
    if y.strides[-1] != 4 or not even(sides.axes):
        dense = ctx.scratch(y.shape)
        copy(ctx, y, dense)
        sides = _sides(geo, image, dense)
    axes = (*geo.result[2:], geo.result[0], geo.result[1])
    if not rest and turned(ctx, sides):
        sides, axes = swapped(sides), (*axes[:-2], axes[-1], axes[-2])
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


def by_result(geo: Convolution, gradient: Filters) -> Storage:
    """The gradient by the result, [n, spatial..., co], as it lies."""
    assert gradient.source is not None, "constants are weights"
    source, strides, at = gradient.source
    order = (geo.weights[1], *geo.weights[2:], geo.weights[0])
    shape, walk = (tuple(a[d] for d in order) for a in (gradient.value.shape, strides))
    return Storage(source.buffer, source.offset + at, shape, walk, ((0, 0),) * len(shape))


def _lane(geo: Convolution, s: Storage, at: int, strides: Sequence[int]) -> Lane:
    """An array over (window..., channels of the image, channels) as a product walks it; strides and offset in bytes."""
    each = geo.channels // geo.batch_groups
    return Lane(Ref(s.buffer, s.offset + at), _four(strides[:-1], 0), strides[-1], strides[-1] * each)


def _four(values: Sequence[int], fill: int) -> tuple[int, int, int, int]:
    """Values of the pixel dimensions (N, D, H, W); the first ones are `fill` where there are fewer."""
    n, d, h, w = (*(fill,) * (4 - len(values)), *values)
    return n, d, h, w
