"""Steps for convolutions: implicit GEMM on a padded channels-last image; depthwise ones have a family of their own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..program import Group, Op, Unsupported, Value, kind
from ..rules.convolution import Convolution, Phase, around, channels_last, geometry, phases
from ..rules.expressions import COPY, Expr, View, identity_axes, literal
from ..rules.primitives import primitive
from ..segment.context import Context
from ..segment.steps import Ref
from ..segment.storage import Storage, temporary
from ..target import MatrixUnit
from . import across, winograd, winograd_ways
from .block_shapes import block_shape
from .conv_weights import by_result, conv_weights
from .depthwise import SUMS, Walk, depthwise, transposed, window_sums
from .elementwise import compute, copy, dense, fill, read
from .lanes import Lane, Product
from .pairs import (
    BF16,
    FROM_FLOATS,
    as_it_lies,
    check_exact,
    check_whole,
    narrow,
    over,
    pack_words,
    unit_of,
    unshifted,
)
from .panels import Filters, Taken
from .product import Epilogue, add_gemm, epilogue, pack_panels, panel_bytes, pixel_strides
from .windows import KEPT
from .winograd_gradient import winograd_gradient

FEW = 3  # channels, up to which a row of a window has fewer words than its pixels have
ALGORITHMS = ("direct", "winograd4", "winograd2")


def conv(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """conv_general_dilated: any stride, padding, dilation, groups, 1-D to 3-D, any layout.

    Constant weights are packed at bind, others before the convolution. The image becomes [n, (d, (h,)) w, c] where it
    is not. Returns what of the tail is not fused. Raises `Unsupported` for batch groups that are no gradient by
    weights, other types than floating point and int8, and more than 3 spatial axes.
    """
    geo = geometry(op)
    alone = _alone(geo)
    x, w, rest = _operands(ctx, op, geo, rest)
    whole = _whole(op, geo, w)
    by_vectors = alone or (not whole and _in_vectors(geo, ctx.target.vl))
    if alone and geo.window_sums:
        _window_sums(ctx, op, geo, ctx.storage(x), w)
        return rest
    if geo.sums_pixels and w.source is not None:
        return _by_weights(ctx, op, rest, geo, ctx.storage(x), w)
    rank, parts = len(geo.window), phases(geo)
    unit = None if by_vectors else _unit(ctx, x, w, geo, whole)
    unit = None if parts and unit is not None and not _in_phases(geo, parts, x.shape[geo.image[1]], unit) else unit
    how = ctx.choose((Group.of(op),), ALGORITHMS) if winograd.eligible(op) and winograd.rival(unit) else "direct"
    unit = unit if how == "direct" else None
    padding = _padded(op, around(geo, tuple(x.shape[d] for d in geo.image[2:])))
    spread = (1,) * rank if parts else geo.spread
    as_it_is = unit is not None and not unit.shift and not _few(geo, x.shape[geo.image[1]], unit)
    image = _image(ctx, ctx.storage(x), geo.image, padding, spread, as_it_is)
    nhwc = channels_last(geo.result)
    tail = epilogue(ctx, op, rest) if nhwc else None
    result = tail.result if tail else op.out
    final = ctx.output(result) if tail or not rest else ctx.output(op.out)
    y = final if nhwc else ctx.scratch((op.out.shape[geo.result[0]], *geo.sizes, geo.channels))
    walked = Walk(image, geo.window, geo.strides, geo.dilation, geo.padding)
    last = tail or Epilogue(COPY, (), op.out)
    floats = last  # by kernels that sum in f32
    if whole and unit is None:
        check_exact(geo.inner)
        floats = dataclasses.replace(last, expr=over(last.expr, FROM_FLOATS))
    if alone and parts:
        transposed(ctx, walked, parts, w, y, floats)
    elif by_vectors:
        depthwise(ctx, walked, w, y, last, x.dtype, whole)
    elif parts:
        for phase in _divided(parts, geo.sizes):
            _phase(ctx, phase, image, w, geo.groups, y, floats, unit)
    elif how == "direct":
        _conv(ctx, walked, w, geo.groups, y, floats, unit=unit)
    else:
        winograd_ways.winograd(ctx, walked, w, y, floats, int(how[-1]))
    if not nhwc:
        order = [(geo.result[0], *geo.result[2:], geo.result[1]).index(d) for d in range(rank + 2)]
        copy(ctx, y, final, tuple(y.strides[i] for i in order))
    return () if tail is not None else rest


def _alone(conv: Convolution) -> bool:
    """Whether it is a depthwise convolution, or the gradient of one by its weights, for kernels that take a vector of
    channels. Those that write blocks of results, and sums by taps, unroll windows in 1 or 2 spatial dimensions.
    """
    if conv.window_sums:
        return len(conv.window) <= 2 and not conv.transposed and math.prod(conv.sizes) <= SUMS
    return conv.depthwise and (not phases(conv) or (len(conv.window) <= 2 and math.prod(conv.window) <= KEPT))


def _in_vectors(geo: Convolution, lanes: int) -> bool:
    """Whether it is a convolution of groups for the kernels of depthwise ones."""
    return geo.in_vectors(lanes) and not phases(geo)


def _operands(ctx: Context, op: Op, geo: Convolution, rest: tuple[Op, ...]) -> tuple[Value, Filters, tuple[Op, ...]]:
    """Image and weights of a convolution that kernels can compute, and the tail without the views through which it
    reads its weights. Raises `Unsupported` for any other one.
    """
    x, w = op.ins
    if not isinstance(w, Value) or not isinstance(x, Value) or kind(w.dtype) != "f":
        raise Unsupported(f"a convolution of {x.dtype} with weights of {w.dtype}")
    gradient = _alone(geo) or (geo.sums_pixels and w not in ctx.consts)
    if (geo.batch_groups != 1 and not gradient) or kind(x.dtype) != "f":
        raise Unsupported(f"a convolution of {x.dtype} with batch_group_count={geo.batch_groups}")
    if not 1 <= len(geo.window) <= 3:
        raise Unsupported(f"a convolution over {len(geo.window)} spatial dimensions; kernels have 1 to 3")
    axes = (*geo.weights[2:], geo.weights[1], geo.weights[0])
    if w in ctx.consts:
        return x, Filters(w, axes), rest
    view, made = View(w, identity_axes(w.shape)), {r.out: r for r in rest}
    while view.value in made:
        turn = made.pop(view.value)
        moved = primitive(turn).axes
        assert moved is not None and isinstance(turn.ins[0], Value), f"{turn.prim} is no view of weights"
        view = View(turn.ins[0], moved(turn, view.axes))
    return x, Filters(w, axes, read(ctx, view, len(w.shape))), tuple(made.values())


def _padded(op: Op, padding: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A padding with the zeroes that whole tiles read behind it."""
    extra = winograd.spare(op)
    return [(lo, hi + extra.get(i, 0)) for i, (lo, hi) in enumerate(padding)]


def _by_weights(ctx: Context, op: Op, rest: tuple[Op, ...], geo: Convolution, x: Storage, w: Filters) -> tuple[Op, ...]:
    """Appends the steps of a gradient by weights, where the gradient by the result stands as the weights. Returns what
    of the tail is not fused.
    """
    how = ctx.choose((Group.of(op),), ALGORITHMS) if winograd.sums_tiles(op) else "direct"
    direct = how == "direct"
    turned = (geo.image[1], geo.image[0], *geo.image[2:])
    image = _image(ctx, x, turned, geo.padding if direct else _padded(op, geo.padding), geo.spread)
    if direct:
        return conv_weights(ctx, op, rest, geo, image, w)
    y = by_result(geo, w)
    if y.strides[-1] != 4:
        source, y = y, ctx.scratch(y.shape)
        copy(ctx, source, y)
    return winograd_gradient(ctx, op, rest, geo, image, y, int(how[-1]))


def _window_sums(ctx: Context, op: Op, geo: Convolution, x: Storage, g: Filters) -> None:
    """Appends the steps of the gradient by the weights of a depthwise convolution of `x`, whose gradient by its result
    stands as the weights.
    """
    image = _image(ctx, x, (geo.image[1], geo.image[0], *geo.image[2:]), geo.padding, geo.spread)
    source, strides, at = g.source or read(ctx, View(g.value, identity_axes(g.value.shape)), len(g.value.shape))
    order = (geo.weights[1], *geo.weights[2:], geo.weights[0])
    shape, walk = (tuple(a[d] for d in order) for a in (g.value.shape, strides))
    by_result = Storage(source.buffer, source.offset + at, shape, walk, ((0, 0),) * len(shape))
    if walk[-1] != 4:
        by_result = dense(ctx, by_result)
    final, y = ctx.output(op.out), ctx.scratch((*geo.sizes, geo.channels))
    if tuple(final.strides[d] for d in (*geo.result[2:], geo.result[1])) == y.strides:
        y = dataclasses.replace(y, buffer=final.buffer, offset=final.offset)
    window_sums(ctx, Walk(image, geo.sizes, geo.dilation, geo.strides, geo.padding), by_result, y)
    if y.buffer is not final.buffer:
        walks = dict(zip((*geo.result[2:], geo.result[1], geo.result[0]), (*y.strides, 0), strict=True))
        copy(ctx, y, final, tuple(walks[d] for d in range(len(walks))))


def _image(
    ctx: Context,
    s: Storage,
    spec: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    as_it_is: bool = False,
) -> Storage:
    """The image channels-last, zero-dilated and with a halo that covers the padding; copied only when it must be.
    `as_it_is`: for a reader that makes a form of it with that halo, which need not be there.
    """
    order = (spec[0], *spec[2:], spec[1])
    halo = ((0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding), (0, 0))
    plain = order == tuple(range(len(order))) and all(d == 1 for d in dilation)
    covered = all(a >= b and c >= d for (a, c), (b, d) in zip(s.halo, halo, strict=True))
    if plain and covered and s.strides[-1] == 4:
        return s
    source, strides = s, tuple(s.strides[d] for d in order)
    shape = tuple(s.shape[d] for d in order)
    if as_it_is and strides[-1] == 4 and all(d == 1 for d in dilation):
        return Storage(s.buffer, s.offset, shape, strides, halo)
    grown = (shape[0], *((n - 1) * d + 1 if n else 0 for n, d in zip(shape[1:-1], dilation, strict=True)), shape[-1])
    target = temporary(Value(grown, "float32"), halo)
    if grown != shape:
        fill(ctx, 0.0, target)
        steps = (1, *dilation, 1)
        spaced = tuple(t * k for t, k in zip(target.strides, steps, strict=True))
        compute(ctx, COPY, (target, spaced, 0), [(source, strides, 0)], shape)
    else:
        copy(ctx, source, target, strides)
    return target


def _conv(
    ctx: Context,
    geo: Walk,
    w: Filters,
    groups: int,
    y: Storage,
    tail: Epilogue,
    taken: Taken | None = None,
    unit: MatrixUnit | None = None,
) -> None:
    """Appends the steps on a padded image; `taken`: the part of the weights' window that is used (None: all of it);
    `unit`: multiplies constant weights and the image as words of narrow elements (None: as f32).
    """
    odd = False
    few = unit is not None and groups == 1 and _few(geo, geo.image.shape[-1], unit)
    if unit is not None:
        geo = _runs(ctx, geo, y.shape[-2]) if few else geo
        there = as_it_lies(ctx, geo.image, unit) if few else None
        odd = there is not None and geo.image.shape[-1] % 2 == 1
        geo = dataclasses.replace(geo, image=there or narrow(ctx, geo.image, unit))
    image, rank = geo.image, len(geo.window)
    channels_in, channels = image.shape[-1], y.shape[-1]
    per_in, per_out = channels_in // groups, channels // groups
    taps, run = _taps(geo, merge=False), per_in
    if groups == 1 and geo.dilation[-1] == 1 and image.strides[-2] == 4 * channels_in:
        taps, run = _taps(geo, merge=True), geo.window[-1] * channels_in
    depth, height, width = (1,) * (3 - rank) + y.shape[1:-1]
    pixels = (y.shape[0], depth, height, width)
    product = Product(pixels, tuple(taps), run, per_out, groups, odd=odd)
    walk = (image.strides[0], *(s * k for s, k in zip(image.strides[1:-1], geo.strides, strict=True)))
    if unit is None and w.source is None and across.pays(ctx.target, per_out, run, len(taps)):
        unit = across.ACROSS
    x = Lane(Ref(image.buffer, image.offset + geo.origin()), pixel_strides(walk), 4, 4 * per_in)
    out = Lane(Ref(y.buffer, y.offset), pixel_strides(y.strides[:-1]), 4, 4 * per_out)
    operands = [
        Lane(Ref(s.buffer, s.offset + at), pixel_strides(strides[:-1]), strides[-1], strides[-1] * per_out)
        for s, strides, at in tail.operands
    ]
    # whether lines follow each other without a jump is the neighbours' choice, on which a shape must not depend
    shape = block_shape(ctx.target, math.prod(pixels), per_out, unit, product.depth, line=width)
    weights = _weights(ctx, product, w, shape[1], taken, unit, few)
    if unit is not None and unit.shift:
        operands.append(Lane(_shifts(ctx, product, w, taken, unit), (0, 0, 0, 0), 4, 4 * per_out, begins=True))
    add_gemm(ctx, product, x, weights, out, tail.expr, operands, shape, unit)


def _few(geo: Walk | Convolution, channels: int, unit: MatrixUnit) -> bool:
    """Whether channels fill so little of a word, or of a step of the unit, that a row of a window is one run."""
    little = channels <= FEW or 2 * -(-channels // unit.per) < unit.step
    return little and geo.window[-1] > 1 and geo.dilation[-1] == 1


def _runs(ctx: Context, geo: Walk, width: int) -> Walk:
    """The walk over an image in which what each of `width` windows reads of a row is one pixel: pixels overlap, and
    forms that are made of it have their elements side by side.
    """
    image = geo.image
    if image.strides[-2] != 4 * image.shape[-1]:
        source, image = image, temporary(Value(image.shape, "float32"), image.halo)
        copy(ctx, source, image)
    shape = (*image.shape[:-2], width, geo.window[-1] * image.shape[-1])
    strides = (*image.strides[:-2], geo.strides[-1] * image.strides[-2], 4)
    first = image.offset - geo.padding[-1][0] * image.strides[-2]
    rows = Storage(image.buffer, first, shape, strides, (*image.halo[:-2], (0, 0), (0, 0)))
    ones = ((*geo.window[:-1], 1), (*geo.strides[:-1], 1), (*geo.dilation[:-1], 1))
    return Walk(rows, *ones, (*geo.padding[:-1], (0, 0)))


def _whole(op: Op, geo: Convolution, w: Filters) -> bool:
    """As `check_whole`; raises for gradients too."""
    x = op.ins[0]
    assert isinstance(x, Value), "an image is an array"
    whole = check_whole(x, w.value, op.out)
    if whole and (geo.window_sums or (geo.sums_pixels and w.source is not None)):
        raise Unsupported("a gradient of int8")
    return whole


def _unit(ctx: Context, x: Value, w: Filters, geo: Convolution, whole: bool) -> MatrixUnit | None:
    """The unit that multiplies a convolution's narrow elements, where no word of them reaches over two groups, no
    filling lies between groups, and no more is filling than not. Where tiles multiply bf16 (and f32 as fast as pairs of
    it are), other products of bf16 are f32.
    """
    channels = w.value.shape[geo.weights[1]]
    if not whole and across.pays(ctx.target, geo.channels // geo.groups, channels, math.prod(geo.window)):
        return None
    unit = unit_of(ctx, x, w.value, whole, channels) if w.source is None else None
    if unit is not None:
        few = geo.groups == 1 and _few(geo, channels, unit)
        words = -(-channels * (geo.window[-1] if few else 1) // unit.per)
        if 2 * words < unit.step or (geo.groups > 1 and words % unit.step):
            unit = None if unit.dtype == BF16 else ctx.target.unit(unit.dtype, "gemm")
    return unit if unit is not None and (geo.groups == 1 or channels % unit.per == 0) else None


def _in_phases(geo: Convolution, parts: Sequence[Sequence[Phase]], channels: int, unit: MatrixUnit) -> bool:
    """Whether a unit multiplies the phases of a transposed convolution: not where a row of the window is one run, which
    phases have a part of, nor where one of whole numbers reads nothing (its tail would be one of floats).
    """
    empty = any(not p.window for phases in parts for p in phases)
    return not _few(geo, channels, unit) and not (empty and unit.dtype != BF16)


def _weights(
    ctx: Context, g: Product, w: Filters, nv: int, taken: Taken | None, unit: MatrixUnit | None, few: bool
) -> Ref:
    """Panels of the weights, or of the part `taken` of their window; `unit`: of its words. `few`: a row of the window
    is one run (see `_runs`).
    """
    if w.source is not None:
        return w.at_call(ctx, g.groups, nv, taken)
    vl, summed = ctx.target.vl, unit is across.ACROSS

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        k = _laid(g, w, consts, taken)
        k = k.reshape(g.groups, len(g.taps), -1, g.channels) if few or summed else k
        if summed:
            return across.pack(k, vl)
        return pack_panels(k.reshape(g.groups, -1, g.channels), vl, nv) if unit is None else pack_words(k, vl, nv, unit)

    key = ("panels", w.value, w.axes, g.groups, nv, taken, unit and unit.name, few)
    size = 4 * g.depth * g.channels if summed else panel_bytes(g, vl, nv)
    return ctx.pack(size * g.groups, packer, key)


def _shifts(ctx: Context, g: Product, w: Filters, taken: Taken | None, unit: MatrixUnit) -> Ref:
    """What a unit's shift adds to each sum, negative: s32 [groups, channels]."""
    packer = lambda consts: unshifted(_laid(g, w, consts, taken), unit)
    return ctx.pack(4 * g.groups * g.channels, packer, ("sums", w.value, w.axes, g.groups, taken, unit.name))


def _laid(g: Product, w: Filters, consts: Mapping[Value, np.ndarray], taken: Taken | None) -> np.ndarray:
    """Constant weights, or the part `taken` of their window, as [groups, taps, channels in, channels]."""
    k = np.transpose(consts[w.value], w.axes)
    if taken is not None:
        k = k[tuple(slice(first, None, step) for first, step in taken)]
    return np.transpose(k.reshape(-1, w.value.shape[w.axes[-2]], g.groups, g.channels), (2, 0, 1, 3))


def _divided(parts: Sequence[Sequence[Phase]], sizes: Sequence[int]) -> Iterator[tuple[Phase, ...]]:
    """The phases of all dimensions together; where one reads nothing, those of the dimensions behind it are one."""
    if not parts:
        yield ()
        return
    for phase in parts[0]:
        if not phase.window:
            yield phase, *(Phase(0, 1, n) for n in sizes[1:])
        else:
            yield from ((phase, *rest) for rest in _divided(parts[1:], sizes[1:]))


def _phase(
    ctx: Context,
    phase: Sequence[Phase],
    image: Storage,
    w: Filters,
    groups: int,
    y: Storage,
    tail: Epilogue,
    unit: MatrixUnit | None,
) -> None:
    """Appends the convolution of one phase, which writes every step-th pixel; `unit`: as `_conv` has it."""

    def spread(strides: Sequence[int], offset: int) -> tuple[tuple[int, ...], int]:
        inner = tuple(s * p.step for s, p in zip(strides[1:-1], phase, strict=True))
        return (strides[0], *inner, strides[-1]), offset + sum(
            s * p.first for s, p in zip(strides[1:-1], phase, strict=True)
        )

    strides, offset = spread(y.strides, y.offset)
    part = Storage(
        y.buffer, offset, (y.shape[0], *(p.count for p in phase), y.shape[-1]), strides, ((0, 0),) * len(y.shape)
    )
    tail = dataclasses.replace(tail, operands=tuple((s, *spread(walk, at)) for s, walk, at in tail.operands))
    if not all(p.window for p in phase):
        return compute(ctx, _of_nothing(tail.expr), (part, part.strides, 0), tail.operands, part.shape)
    window, reach = tuple(p.window for p in phase), tuple(p.reach for p in phase)
    walked = Walk(image, window, (1,) * len(phase), reach, tuple((-p.shift, 0) for p in phase))
    return _conv(ctx, walked, w, groups, part, tail, tuple((p.tap, p.every) for p in phase), unit)


def _of_nothing(expr: Expr) -> Expr:
    """A tail's expression where the sum is 0, over its operands alone."""
    return tuple((literal(0.0) if node[1] == 0 else ("in", node[1] - 1)) if node[0] == "in" else node for node in expr)


def _taps(geo: Walk, merge: bool) -> list[int]:
    """Byte offsets of the window's elements in weight order; with `merge` the last dimension is part of the run."""
    window = geo.window[:-1] if merge else geo.window
    steps = [s * d for s, d in zip(geo.image.strides[1:-1], geo.dilation, strict=True)]
    offsets = [0]
    for n, step in zip(window, steps, strict=False):
        offsets = [o + i * step for o in offsets for i in range(n)]
    return offsets
