"""Steps for convolutions: implicit GEMM on a padded channels-last image; depthwise ones have a family of their own."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Group, Op, Unsupported, Value, kind
from ..rules.convolution import Convolution, channels_last, geometry
from ..rules.expressions import COPY
from ..segment.assembly import Context
from ..segment.steps import Ref
from ..segment.storage import Storage, temporary
from . import winograd
from .block_shapes import block_shape
from .conv_weights import conv_weights, sums_pixels
from .depthwise import LARGEST_WINDOW, Walk, depthwise
from .elementwise import compute, copy, fill
from .panels import Filters, Taken
from .product import Epilogue, Lane, Product, add_gemm, epilogue, pack_panels, panel_bytes, pixel_strides

ALGORITHMS = ("direct", "winograd4", "winograd2")


def conv(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """conv_general_dilated: any stride, padding, dilation, groups, 1-D to 3-D, any layout.

    Constant weights are packed at bind, others before the convolution. The image becomes [n, (d, (h,)) w, c] where it
    is not. Returns what of the tail is not fused. Raises `Unsupported` for batch groups, other types than floating
    point, more than 3 spatial axes, and depthwise ones whose weights the model computes.
    """
    geo = geometry(op)
    if sums_pixels(ctx, op, geo):
        turned = (geo.image[1], geo.image[0], *geo.image[2:])
        return conv_weights(ctx, op, rest, geo, _image(ctx, ctx.storage(op.ins[0]), turned, geo.padding, geo.spread))
    x, w = _operands(ctx, op, geo)
    rank = len(geo.window)
    phases = _phases(geo)
    if phases:
        around = [_padding(p, x.shape[d]) for p, d in zip(phases, geo.image[2:], strict=True)]
        image = _image(ctx, ctx.storage(x), geo.image, around, (1,) * rank)
    else:
        padded = [(lo, hi + winograd.spare(op).get(i, 0)) for i, (lo, hi) in enumerate(geo.padding)]
        image = _image(ctx, ctx.storage(x), geo.image, padded, geo.spread)
    nhwc = channels_last(geo.result)
    tail = epilogue(ctx, op, rest) if nhwc else None
    result = tail.result if tail else op.out
    final = ctx.output(result) if tail or not rest else ctx.output(op.out)
    y = final if nhwc else ctx.scratch((op.out.shape[geo.result[0]], *geo.sizes, geo.channels))
    walked = Walk(image, geo.window, geo.strides, geo.dilation, geo.padding)
    last = tail or Epilogue(COPY, (), op.out)
    how = ctx.choose((Group.of(op),), ALGORITHMS) if winograd.eligible(op) else "direct"
    if phases:
        for phase in itertools.product(*phases):
            _phase(ctx, phase, image, w, y, last)
    elif geo.depthwise and rank == 2 and math.prod(geo.window) <= LARGEST_WINDOW:
        if w.source is not None:
            raise Unsupported("a depthwise convolution whose weights are computed by the model")
        depthwise(ctx, walked, w.value, w.axes, y, last)
    elif how == "direct":
        _conv(ctx, walked, w, geo.groups, y, last)
    else:
        winograd.winograd(ctx, walked, w, y, last, int(how[-1]))
    if not nhwc:
        order = [(geo.result[0], *geo.result[2:], geo.result[1]).index(d) for d in range(rank + 2)]
        copy(ctx, y, final, tuple(y.strides[i] for i in order))
    return () if tail is not None else rest


def _operands(ctx: Context, op: Op, geo: Convolution) -> tuple[Value, Filters]:
    """Image and weights of a convolution that kernels can compute. Raises `Unsupported` for any other one."""
    x, w = op.ins
    if not isinstance(w, Value) or not isinstance(x, Value) or kind(w.dtype) != "f":
        raise Unsupported(f"a convolution of {x.dtype} with weights of {w.dtype}")
    if geo.batch_groups != 1 or kind(op.out.dtype) != "f" or kind(x.dtype) != "f":
        raise Unsupported(f"a convolution of {x.dtype} with batch_group_count={geo.batch_groups}")
    if not 1 <= len(geo.window) <= 3:
        raise Unsupported(f"a convolution over {len(geo.window)} spatial dimensions; kernels have 1 to 3")
    axes = (*geo.weights[2:], geo.weights[1], geo.weights[0])
    if w in ctx.consts:
        return x, Filters(w, axes)
    s = ctx.storage(w)
    return x, Filters(w, axes, (s, s.strides, 0))


def _image(
    ctx: Context, s: Storage, spec: Sequence[int], padding: Sequence[tuple[int, int]], dilation: Sequence[int]
) -> Storage:
    """The image channels-last, zero-dilated and with a halo that covers the padding; copied only when it must be."""
    order = (spec[0], *spec[2:], spec[1])
    halo = ((0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding), (0, 0))
    plain = order == tuple(range(len(order))) and all(d == 1 for d in dilation)
    covered = all(a >= b and c >= d for (a, c), (b, d) in zip(s.halo, halo, strict=True))
    if plain and covered and s.strides[-1] == 4:
        return s
    source, strides = s, tuple(s.strides[d] for d in order)
    shape = tuple(s.shape[d] for d in order)
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
) -> None:
    """Appends the steps on a padded image; `taken`: the part of the weights' window that is used (None: all of it)."""
    image, rank = geo.image, len(geo.window)
    channels_in, channels = image.shape[-1], y.shape[-1]
    per_in, per_out = channels_in // groups, channels // groups
    taps, run = _taps(geo, merge=False), per_in
    if groups == 1 and geo.dilation[-1] == 1 and image.strides[-2] == 4 * channels_in:
        taps, run = _taps(geo, merge=True), geo.window[-1] * channels_in
    depth, height, width = (1,) * (3 - rank) + y.shape[1:-1]
    pixels = (y.shape[0], depth, height, width)
    product = Product(pixels, tuple(taps), run, per_out, groups)
    walk = (image.strides[0], *(s * k for s, k in zip(image.strides[1:-1], geo.strides, strict=True)))
    shape = block_shape(ctx.target, math.prod(pixels), per_out)
    x = Lane(Ref(image.buffer, image.offset + geo.origin()), pixel_strides(walk), 4, 4 * per_in)
    out = Lane(Ref(y.buffer, y.offset), pixel_strides(y.strides[:-1]), 4, 4 * per_out)
    operands = [
        Lane(Ref(s.buffer, s.offset + at), pixel_strides(strides[:-1]), strides[-1], strides[-1] * per_out)
        for s, strides, at in tail.operands
    ]
    weights = _weights(ctx, product, w, shape[1], taken)
    add_gemm(ctx, product, x, weights, out, tail.expr, operands, shape)


def _weights(ctx: Context, g: Product, w: Filters, nv: int, taken: Taken | None) -> Ref:
    """Panels of the weights, or of the part `taken` of their window."""
    if w.source is not None:
        return w.at_call(ctx, g.groups, nv, taken)
    vl, value, axes = ctx.target.vl, w.value, w.axes

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        k = np.transpose(consts[value], axes)
        if taken is not None:
            k = k[tuple(slice(first, None, step) for first, step in taken)]
        k = k.reshape(-1, value.shape[axes[-2]], g.groups, g.channels)
        return pack_panels(np.transpose(k, (2, 0, 1, 3)).reshape(g.groups, -1, g.channels), vl, nv)

    return ctx.pack(panel_bytes(g, vl, nv) * g.groups, packer, ("panels", value, axes, g.groups, nv, taken))


# -- transposed convolutions: every phase of the result is a small convolution of the image as it is ---------


@dataclasses.dataclass(frozen=True)
class Phase:
    """Results `first`, `first + step`, ... (`count` of them) along one dimension: they read `window` taps from tap
    `tap` on, every `step`-th, at the image's pixels from `shift` on."""

    first: int
    step: int
    count: int
    tap: int
    window: int
    shift: int


def _padding(phases: Sequence[Phase], n: int) -> tuple[int, int]:
    """Zeroes that the phases of one dimension read around n pixels."""
    before = max(max(0, -p.shift) for p in phases)
    return before, max(max(0, p.count - 1 + p.shift + p.window - n) for p in phases)


def _phases(conv: Convolution) -> tuple[tuple[Phase, ...], ...]:
    """The phases of each dimension of a transposed convolution; () for any other one."""
    plain = conv.groups == 1 and all(d == 1 for d in (*conv.strides, *conv.dilation))
    if not plain or not conv.transposed or any(k < d for k, d in zip(conv.window, conv.spread, strict=True)):
        return ()
    found = []
    for n, k, d, (lo, _) in zip(conv.sizes, conv.window, conv.spread, conv.padding, strict=True):
        # result q d + f reads the grown image at q d + f + t - lo: not a zero where f + t - lo is a multiple of d
        firsts = [(f, (lo - f) % d) for f in range(min(d, n))]
        found.append(tuple(Phase(f, d, -(-(n - f) // d), t, -(-(k - t) // d), (f + t - lo) // d) for f, t in firsts))
    return tuple(found)


def _phase(ctx: Context, phase: Sequence[Phase], image: Storage, w: Filters, y: Storage, tail: Epilogue) -> None:
    """Appends the convolution of one phase, which writes every step-th pixel."""

    def spread(strides: Sequence[int], offset: int) -> tuple[tuple[int, ...], int]:
        inner = tuple(s * p.step for s, p in zip(strides[1:-1], phase, strict=True))
        return (strides[0], *inner, strides[-1]), offset + sum(
            s * p.first for s, p in zip(strides[1:-1], phase, strict=True)
        )

    strides, offset = spread(y.strides, y.offset)
    part = Storage(
        y.buffer, offset, (y.shape[0], *(p.count for p in phase), y.shape[-1]), strides, ((0, 0),) * len(y.shape)
    )
    operands = tuple((s, *spread(walk, at)) for s, walk, at in tail.operands)
    ones = (1,) * len(phase)
    walked = Walk(image, tuple(p.window for p in phase), ones, ones, tuple((-p.shift, 0) for p in phase))
    _conv(
        ctx,
        walked,
        w,
        1,
        part,
        dataclasses.replace(tail, operands=operands),
        tuple((p.tap, p.step) for p in phase),
    )


def _taps(geo: Walk, merge: bool) -> list[int]:
    """Byte offsets of the window's elements in weight order; with `merge` the last dimension is part of the run."""
    window = geo.window[:-1] if merge else geo.window
    steps = [s * d for s, d in zip(geo.image.strides[1:-1], geo.dilation, strict=True)]
    offsets = [0]
    for n, step in zip(window, steps, strict=False):
        offsets = [o + i * step for o in offsets for i in range(n)]
    return offsets
