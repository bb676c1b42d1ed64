"""Convolutions and matrix products: pixels x channels through the gemm micro-kernel."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from . import gemm, layout
from .elementwise import COPY, Operand, compute, copy, fill, nest, read
from .epilogue import Expr, expression
from .program import Op, Unsupported, Value
from .segment import RAW_BYTES, Context, Kernel, Ref, Word
from .storage import Storage, temporary
from .tune import block_shape

PANEL_BYTES = 1 << 18  # packed weights that a channel block keeps in L2 while it walks its pixels
IMAGE_BYTES = 1 << 18  # input that a work item walks again for every channel block
GEMV_ROWS = 8
GEMV_COLUMNS = 2048


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """The fused tail: its expression and operands (without the accumulator), all over the output's index."""

    expr: Expr
    operands: tuple[Operand, ...]
    result: Value


def epilogue(ctx: Context, anchor: Op, rest: tuple[Op, ...]) -> Epilogue | None:
    """The group's tail as an epilogue, or None when it has to be a step of its own."""
    if not rest:
        return Epilogue(COPY, (), anchor.out)
    result = rest[-1].out
    if result.shape != anchor.out.shape:
        return None
    try:
        expr, views = expression(rest, result, anchor.out)
    except Unsupported:
        return None
    operands = tuple(read(ctx, view, len(result.shape)) for view in views[1:])
    if any(strides[-1] not in (0, 4) for _, strides, _ in operands) or len(operands) > 6:
        return None
    return Epilogue(expr, operands, result)


def operand_kind(pixels: Sequence[int], channel: int) -> str:
    """As gemm's operand kinds: does it change with the pixel, does it change with the channel?"""
    return {(True, 4): "v", (True, 0): "s", (False, 4): "c", (False, 0): "p"}[any(pixels), channel]


@dataclasses.dataclass(frozen=True)
class Lane:
    """How a tensor is walked: byte strides of the pixel dimensions (N, D, H, W), of a channel and of a group."""

    ref: Ref
    pixels: tuple[int, int, int, int]
    channel: int
    group: int

    @property
    def kind(self) -> str:
        return operand_kind(self.pixels, self.channel)


@dataclasses.dataclass(frozen=True)
class Product:
    """`pixels` (N, D, H, W) x `channels` outputs in each of `groups`; a run of `run` inputs at every tap (byte offset)."""

    pixels: tuple[int, int, int, int]
    taps: tuple[int, ...]
    run: int
    channels: int
    groups: int

    @property
    def depth(self) -> int:
        return len(self.taps) * self.run


def split_evenly(n: int, most: int) -> list[int]:
    """n as the fewest parts of at most `most`, differing by at most one, larger parts first."""
    parts = -(-n // most)
    return [n // parts + (i < n % parts) for i in range(parts)]


def channel_blocks(channels: int, vl: int, vectors: int) -> list[tuple[int, int, int]]:
    """(first channel, vectors, lanes of the last vector) of each block."""
    blocks, at = [], 0
    for nv in split_evenly(-(-channels // vl), vectors):
        stop = min(at + nv * vl, channels)
        blocks.append((at, nv, stop - at - (nv - 1) * vl))
        at = stop
    return blocks


def reduction_blocks(taps: Sequence[int], run: int, most: int) -> list[tuple[list[int], int, int]]:
    """(tap offsets, run, first element) of each block of at most about `most` elements, in weight order."""
    if len(taps) * run <= most:
        return [(list(taps), run, 0)]
    if run <= most:
        per = max(1, most // run)
        return [(list(taps[i : i + per]), run, i * run) for i in range(0, len(taps), per)]
    out = []
    for t, tap in enumerate(taps):
        at = 0
        for size in split_evenly(run, most):
            out.append(([tap + 4 * at], size, t * run + at))
            at += size
    return out


def pack_panels(weights: np.ndarray, vl: int, vectors: int) -> np.ndarray:
    """[groups, K, channels] -> for each group and channel block [K, vectors * vl], zero-padded, one after the other."""
    groups, k, channels = weights.shape
    parts = []
    for first, nv, _ in channel_blocks(channels, vl, vectors):
        part = np.zeros((groups, k, nv * vl), np.float32)
        piece = weights[:, :, first : first + nv * vl]
        part[:, :, : piece.shape[2]] = piece
        parts.append(part.reshape(groups, -1))
    return np.concatenate(parts, 1)


def panel_bytes(g: Product, vl: int, nv: int) -> int:
    """Bytes of one group's packed weights."""
    return sum(vectors for _, vectors, _ in channel_blocks(g.channels, vl, nv)) * vl * 4 * g.depth


def add_gemm(ctx: Context, g: Product, x: Lane, weights: Ref, y: Lane, expr: Expr, operands: Sequence[Lane], shape: tuple[int, int]) -> None:
    """Appends the step; `weights` are panels as `pack_panels` makes them for the block `shape` (rows, vectors)."""
    vl, (mr, nv) = ctx.target.vl, shape
    pixels = math.prod(g.pixels)
    tiles = len(split_evenly(pixels, mr))
    rows, extra = divmod(pixels, tiles)
    blocks = channel_blocks(g.channels, vl, nv)
    chunk = _tiles_per_item(ctx, g, x, tiles, rows, len(blocks))
    red = reduction_blocks(g.taps, g.run, g.depth if chunk <= 2 else max(64, PANEL_BYTES // (nv * vl * 4)))
    kinds = tuple(o.kind for o in operands)

    views = [w for o in operands for w in (o.ref, *o.pixels, o.group, o.channel)]
    rtable = layout.G_VIEWS + layout.G_VIEW * len(operands)
    taps_at = rtable + layout.R_WORDS * len(red)
    taps = [t for offsets, _, _ in red for t in offsets]
    starts = np.cumsum([0, *(len(offsets) for offsets, _, _ in red)]).tolist()
    rrows = [w for (offsets, run, first), at in zip(red, starts, strict=False) for w in (taps_at + at, len(offsets), run, first * vl * 4)]
    brows: list[Word] = []
    at = 0
    for first, vectors, lanes in blocks:
        small, big = (Kernel(gemm.spec(max(r, 1), vectors, lanes != vl, expr, kinds)) for r in (rows, rows + (extra > 0)))
        brows += [first, lanes, at, big, small, vectors, 0, 0]
        at += vectors * vl * 4 * g.depth
    words: list[Word] = [
        pixels,
        *g.pixels[1:],
        tiles,
        extra,
        rows,
        chunk,
        g.groups,
        len(blocks),
        len(red),
        len(operands),
        0,
        rtable,
        taps_at + len(taps),
        x.ref,
        *x.pixels,
        x.group,
        y.group,
        weights,
        at,
        y.ref,
        *y.pixels,
        *views,
        *rrows,
        *taps,
        *brows,
    ]
    reads = [x.ref.buffer, weights.buffer, *(o.ref.buffer for o in operands)]
    ctx.add("gemm", words, -(-tiles // chunk) * g.groups * len(blocks), reads, [y.ref.buffer])


def _tiles_per_item(ctx: Context, g: Product, x: Lane, tiles: int, rows: int, blocks: int) -> int:
    """Enough work items to balance the team, as few as that allows, each within `IMAGE_BYTES` of input."""
    cached = max(1, IMAGE_BYTES // max(1, rows * max(x.pixels[3], 4)))
    wanted = 1 if ctx.threads == 1 else 6 * ctx.threads
    chunks = max(-(-tiles // cached), -(-wanted // (g.groups * blocks)))
    return max(1, -(-tiles // min(chunks, tiles)))


def collapse(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride that walks all these dimensions (0 for none), or None when they do not lie in a row."""
    dims = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if any(s != s2 * n2 for (_, s), (n2, s2) in itertools.pairwise(dims)):
        return None
    return dims[-1][1] if dims else 0


def pixel_strides(strides: Sequence[int]) -> tuple[int, int, int, int]:
    """Strides of the pixel dimensions as (N, D, H, W); missing ones are D, then H, then N."""
    n, *rest = strides if len(strides) > 1 else (0, *strides)
    d, h, w = (0,) * (3 - len(rest)) + tuple(rest)
    return n, d, h, w


# -- convolution -------------------------------------------------------------------------------------


def conv(ctx: Context, op: Op, rest: tuple[Op, ...]) -> bool:
    """conv_general_dilated with constant weights: any stride, padding, dilation, groups, 1-D to 3-D, any layout.

    Returns whether the tail was fused.
    """
    p = op.params
    x, w = op.ins
    if not isinstance(w, Value) or w not in ctx.consts or not isinstance(x, Value):
        raise Unsupported("a convolution whose weights are computed by the model")
    if p["batch_group_count"] != 1 or op.out.dtype != "float32" or x.dtype != "float32":
        raise Unsupported(f"a convolution of {x.dtype} with batch_group_count={p['batch_group_count']}")
    rank = len(x.shape) - 2
    if not 1 <= rank <= 3:
        raise Unsupported(f"a convolution over {rank} spatial dimensions; kernels have 1 to 3")
    dn = p["dimension_numbers"]
    image = _image(ctx, ctx.storage(x), dn.lhs_spec, p["padding"], p["lhs_dilation"])
    nhwc = dn.out_spec == (0, rank + 1, *range(1, rank + 1))
    tail = epilogue(ctx, op, rest) if nhwc else None
    result = tail.result if tail else op.out
    final = ctx.output(result) if tail or not rest else ctx.output(op.out)
    spatial = tuple(op.out.shape[d] for d in dn.out_spec[2:])
    shape = (op.out.shape[dn.out_spec[0]], *spatial, op.out.shape[dn.out_spec[1]])
    y = final if nhwc else ctx.scratch(shape)
    geometry = Geometry(image, tuple(w.shape[d] for d in dn.rhs_spec[2:]), p["window_strides"], p["rhs_dilation"], p["padding"])
    axes = (*dn.rhs_spec[2:], dn.rhs_spec[1], dn.rhs_spec[0])
    _conv(ctx, geometry, w, axes, p["feature_group_count"], y, tail or Epilogue(COPY, (), op.out))
    if not nhwc:
        order = [(dn.out_spec[0], *dn.out_spec[2:], dn.out_spec[1]).index(d) for d in range(rank + 2)]
        copy(ctx, y, final, tuple(y.strides[i] for i in order))
    return tail is not None


@dataclasses.dataclass(frozen=True)
class Geometry:
    """A padded channels-last image and the window that walks it (one entry a spatial dimension)."""

    image: Storage
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    def origin(self) -> int:
        """Byte offset of the first window's first element from the image's first."""
        return -sum(lo * s for (lo, _), s in zip(self.padding, self.image.strides[1:-1], strict=True))


def _image(ctx: Context, s: Storage, spec: Sequence[int], padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> Storage:
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


def _conv(ctx: Context, geo: Geometry, w: Value, axes: tuple[int, ...], groups: int, y: Storage, tail: Epilogue) -> None:
    image, rank = geo.image, len(geo.window)
    channels_in, channels = image.shape[-1], y.shape[-1]
    if groups == channels_in == channels and rank == 2 and groups > 1 and geo.window[0] * geo.window[1] <= 49:
        return _depthwise(ctx, geo, w, axes, y, tail)
    per_in, per_out = channels_in // groups, channels // groups
    taps, run = _taps(geo, merge=False), per_in
    if groups == 1 and geo.dilation[-1] == 1 and image.strides[-2] == 4 * channels_in:
        taps, run = _taps(geo, merge=True), geo.window[-1] * channels_in
    depth, height, width = (1,) * (3 - rank) + y.shape[1:-1]
    pixels = (y.shape[0], depth, height, width)
    product = Product(pixels, tuple(taps), run, per_out, groups)
    walk = (image.strides[0], *(s * k for s, k in zip(image.strides[1:-1], geo.strides, strict=True)))
    shape = block_shape(ctx.target, math.prod(pixels), per_out)
    vl, nv = ctx.target.vl, shape[1]

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        k = np.transpose(consts[w], axes).reshape(-1, per_in, groups, per_out)
        return pack_panels(np.transpose(k, (2, 0, 1, 3)).reshape(groups, -1, per_out), vl, nv)

    x = Lane(Ref(image.buffer, image.offset + geo.origin()), pixel_strides(walk), 4, 4 * per_in)
    out = Lane(Ref(y.buffer, y.offset), pixel_strides(y.strides[:-1]), 4, 4 * per_out)
    operands = [Lane(Ref(s.buffer, s.offset + at), pixel_strides(strides[:-1]), strides[-1], strides[-1] * per_out) for s, strides, at in tail.operands]
    weights = ctx.pack(panel_bytes(product, vl, nv) * groups, packer)
    add_gemm(ctx, product, x, weights, out, tail.expr, operands, shape)
    return None


def _taps(geo: Geometry, merge: bool) -> list[int]:
    """Byte offsets of the window's elements in weight order; with `merge` the last dimension is part of the run."""
    window = geo.window[:-1] if merge else geo.window
    steps = [s * d for s, d in zip(geo.image.strides[1:-1], geo.dilation, strict=True)]
    offsets = [0]
    for n, step in zip(window, steps, strict=False):
        offsets = [o + i * step for o in offsets for i in range(n)]
    return offsets


def _depthwise(ctx: Context, geo: Geometry, w: Value, axes: tuple[int, ...], y: Storage, tail: Epilogue) -> None:
    vl, (kh, kw) = ctx.target.vl, geo.window
    n, oh, ow, channels = y.shape
    vecs = -(-channels // vl)
    image = geo.image
    pixels = 1 if ow < 4 else max(p for p in (1, 2, 3, 4, 5, 6) if p <= max(1, ctx.target.registers // 5) and (ow % p <= 1 or p == 4))
    row = image.strides[1] * geo.strides[0]

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        flat = np.transpose(consts[w], axes).reshape(kh * kw, channels)
        out = np.zeros((vecs, kh * kw, vl), np.float32)
        for v in range(vecs):
            part = flat[:, v * vl : (v + 1) * vl]
            out[v, :, : part.shape[1]] = part
        return out

    ref = ctx.pack(vecs * kh * kw * vl * 4, packer)
    weights = Storage(ref.buffer, ref.offset, (), (), ())
    rows = max(1, min(oh, -(-oh * n // (4 * ctx.threads)) if ctx.threads > 1 else 8, max(1, IMAGE_BYTES // max(1, row)) + 1))
    chunks = -(-oh // rows)
    kinds = tuple(operand_kind(strides[:-1], strides[-1]) for _, strides, _ in tail.operands)
    extra = [
        oh,
        rows,
        ow,
        channels - (vecs - 1) * vl,
        row,
        image.strides[1] * geo.dilation[0],
        image.strides[2] * geo.strides[1],
        image.strides[2] * geo.dilation[1],
        y.strides[1],
        y.strides[2],
        *(s for _, strides, _ in tail.operands for s in strides[1:3]),
    ]

    def part(first: int, count: int, masked: bool) -> None:
        def shifted(o: Operand, outer: int, by_rows: int, per_vec: int) -> Operand:
            return o[0], (outer, by_rows * rows, per_vec), o[2] + first * per_vec

        operands = [
            shifted((image, (), geo.origin()), image.strides[0], row, 4 * vl),
            shifted((weights, (), 0), 0, 0, kh * kw * vl * 4),
            shifted((y, (), 0), y.strides[0], y.strides[1], 4 * vl),
            *(shifted(o, o[1][0], o[1][1], o[1][3] * vl) for o in tail.operands),
        ]
        kernel = Kernel(("depthwise", kh, kw, geo.strides[1], geo.dilation[1], pixels, tail.expr, kinds, masked))
        nest(ctx, kernel, extra, (n, chunks, count), operands, 2, count)

    ragged = channels % vl != 0
    if vecs - ragged:
        part(0, vecs - ragged, False)
    if ragged:
        part(vecs - 1, 1, True)


# -- dot ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Side:
    """One operand of a product and its dimensions by role."""

    value: Value
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contract: tuple[int, ...]

    def sizes(self, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.value.shape[d] for d in dims)


def _side(v: Value, contract: tuple[int, ...], batch: tuple[int, ...]) -> Side:
    return Side(v, tuple(batch), tuple(d for d in range(len(v.shape)) if d not in (*contract, *batch)), tuple(contract))


def dot(ctx: Context, op: Op, rest: tuple[Op, ...]) -> bool:
    """dot_general with any dimension numbers; constant weights are packed at bind, others before the product.

    The side with the weights gives the channels. Returns whether the tail was fused.
    """
    a, b = op.ins
    if not isinstance(a, Value) or not isinstance(b, Value) or {a.dtype, b.dtype, op.out.dtype} != {"float32"}:
        raise Unsupported(f"a product of {[getattr(v, 'dtype', 'literal') for v in op.ins]}; kernels are f32")
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    left, right = _side(a, ac, ab), _side(b, bc, bb)
    swapped = a in ctx.consts and b not in ctx.consts
    if swapped:
        left, right = right, left
    m, n = left.sizes(left.free), right.sizes(right.free)
    # canonical order of the result is (batch, left free, right free); position of each in the real one
    nb = len(left.batch)
    first, second = (len(n), 0) if swapped else (0, len(m))
    order = (*range(nb), *(nb + first + i for i in range(len(m))), *(nb + second + i for i in range(len(n))))

    tail = epilogue(ctx, op, rest)
    out = ctx.output(tail.result if tail else op.out)
    tensors = [(Ref(out.buffer, out.offset), out.strides)] + [(Ref(s.buffer, s.offset + at), strides) for s, strides, at in (tail.operands if tail else ())]
    lanes = [_lane(ref, [strides[i] for i in order], left.sizes(left.batch), m, n) for ref, strides in tensors]
    fused = tail is not None and all(lane is not None and lane.channel in (0, 4) for lane in lanes) and (lanes[0].channel == 4 or math.prod(n) == 1)  # type: ignore[union-attr]
    if fused and tail is not None:
        _product(ctx, left, right, [x for x in lanes if x is not None], tail.expr)
        return True
    final = ctx.output(op.out)
    lane = _lane(Ref(final.buffer, final.offset), [final.strides[i] for i in order], left.sizes(left.batch), m, n)
    if lane is not None and (lane.channel == 4 or math.prod(n) == 1):
        _product(ctx, left, right, [lane], COPY)
        return not rest
    y = ctx.scratch((*left.sizes(left.batch), *m, *n))
    inner = _lane(Ref(y.buffer, y.offset), y.strides, left.sizes(left.batch), m, n)
    assert inner is not None
    _product(ctx, left, right, [inner], COPY)
    copy(ctx, y, final, tuple(y.strides[order.index(i)] for i in range(len(order))))
    return not rest


def _lane(ref: Ref, strides: Sequence[int], batch: tuple[int, ...], m: tuple[int, ...], n: tuple[int, ...]) -> Lane | None:
    """A tensor over (batch, m, n) as a lane with m collapsed to one pixel dimension, or None."""
    cut, end = len(batch), len(batch) + len(m)
    group, pixel, channel = collapse(batch, strides[:cut]), collapse(m, strides[cut:end]), collapse(n, strides[end:])
    if group is None or pixel is None or channel is None:
        return None
    return Lane(ref, (0, 0, 0, pixel), channel, group)


def _product(ctx: Context, left: Side, right: Side, lanes: list[Lane], expr: Expr) -> None:
    """Appends the product of two sides; lanes[0] is the output, the others are the epilogue's operands."""
    batch, m, k, n = (math.prod(s.sizes(d)) for s, d in ((left, left.batch), (left, left.free), (left, left.contract), (right, right.free)))
    constant = right.value in ctx.consts
    plain = not right.batch and right.contract == (0,) and len(right.value.shape) == 2
    if constant and plain and batch == m == 1 and right.value.nbytes >= RAW_BYTES:
        return _gemv(ctx, left, right.value, lanes, expr)
    x = _rows(ctx, left)
    g = Product((1, 1, 1, m), (0,), k, n, batch)
    shape = block_shape(ctx.target, m, n)
    order = (*right.batch, *right.contract, *right.free)
    if constant:
        w = right.value

        def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
            return pack_panels(np.transpose(consts[w], order).reshape(batch, k, n), ctx.target.vl, shape[1])

        weights = ctx.pack(panel_bytes(g, ctx.target.vl, shape[1]) * batch, packer)
    else:
        weights = _panels(ctx, right, batch, k, n, shape[1])
    return add_gemm(ctx, g, x, weights, lanes[0], expr, lanes[1:], shape)


def _rows(ctx: Context, side: Side) -> Lane:
    """The left side as [batch, m, k] with k contiguous: a lane over it, or over a copy."""
    s = ctx.storage(side.value)
    order = (*side.batch, *side.free, *side.contract)
    strides = [s.strides[d] for d in order]
    lane = _lane(Ref(s.buffer, s.offset), strides, side.sizes(side.batch), side.sizes(side.free), side.sizes(side.contract))
    if lane is not None and lane.channel in (0, 4):
        return lane
    target = ctx.scratch(side.sizes(order))
    copy(ctx, s, target, tuple(strides))
    lane = _lane(Ref(target.buffer, target.offset), target.strides, side.sizes(side.batch), side.sizes(side.free), side.sizes(side.contract))
    assert lane is not None
    return lane


def _panels(ctx: Context, side: Side, batch: int, k: int, n: int, nv: int) -> Ref:
    """Packs a right side that the model computes: panels [k, vectors * vl] of every channel block."""
    s, vl = ctx.storage(side.value), ctx.target.vl
    order = (*side.batch, *side.contract, *side.free)
    shape = side.sizes(order)
    flat = s if order == tuple(range(len(shape))) and s.dense else None
    if flat is None:
        flat = ctx.scratch(shape)
        copy(ctx, s, flat, tuple(s.strides[d] for d in order))
    source = flat.reshaped((batch, k, n))
    blocks = channel_blocks(n, vl, nv)
    total = sum(v for _, v, _ in blocks) * vl * 4 * k
    panels = ctx.scratch((batch, total // 4))
    at = 0
    for first, vectors, lanes in blocks:
        width = (vectors - 1) * vl + lanes
        target = Storage(panels.buffer, panels.offset + at, (batch, k, width), (total, vectors * vl * 4, 4), ((0, 0),) * 3)
        copy(ctx, source.part(2, first, width), target)
        at += vectors * vl * 4 * k
    return Ref(panels.buffer, panels.offset)


def _gemv(ctx: Context, left: Side, w: Value, lanes: list[Lane], expr: Expr) -> None:
    """One row times a large matrix, read once and where it lies: as fast as memory, no packed copy."""
    k, n = w.shape
    x = _rows(ctx, left)
    columns = max(ctx.target.vl * 8, min(GEMV_COLUMNS, -(-n // (2 * ctx.threads) // 64) * 64))
    kinds = tuple({4: "v", 0: "s"}[lane.channel] for lane in lanes[1:])

    def operand(ref: Ref, step: int) -> Operand:
        return Storage(ref.buffer, ref.offset, (), (), ()), (step * columns,), 0

    raw = Ref(ctx.raw_const(w), 0)
    operands = [operand(x.ref, 0), operand(raw, 4), *(operand(lane.ref, lane.channel) for lane in lanes)]
    nest(ctx, Kernel(("gemv", GEMV_ROWS, expr, kinds)), [k, 4 * n, n, columns], (-(-n // columns),), operands, 2, 1)
