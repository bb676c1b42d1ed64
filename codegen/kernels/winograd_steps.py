"""Steps of Winograd's convolution: transform of the image, a product for each position of a tile, transform back.

Weights that are known are transformed when they are packed. Those that arrive with the call are transformed by steps;
where they are many and tiles are few, transformed weights (4 times as large with the larger tiles) never leave the L2
cache of a core: each work item makes them for some channels, part after part of what is summed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Value
from ..rules.expressions import COPY, Expr
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Buffer, Operand, Storage, dense_strides, grown
from ..segment.strips import add_strips
from .block_shapes import block_shape
from .depthwise import Walk
from .elementwise import nest
from .forms import PassMaker, written
from .gemm import Written
from .lanes import Lane, Product, operand_kind
from .panels import Filters, packed
from .product import Epilogue, add_gemm, pack_panels, panel_bytes
from .winograd import R, matrices

LINE, SETS = 64, 4096  # bytes of a cache line; places this far apart fall into the same set of an L1 cache
ALONE = 1 << 17  # multiplications of a product that OpenBLAS, whose bound is twice as high, computes in one thread
INNER = 1 << 11  # weights that a kernel transforms in one call
DEPTH = 64  # channels of the image whose transformed weights a work item makes at a time
MADE_BYTES = 5 << 16  # products of a work item that makes its weights: they stay in L2 beside these
FAR_BYTES = 1 << 22  # transformed weights from this size on leave the L2 caches
ADDED: Expr = (("in", 0), ("in", 1), ("add", 0, 1))


def apart(nbytes: int) -> int:
    """Bytes between the positions of a tile of `nbytes` each, so that the stores (or loads) of one vector at all
    positions fall into different sets of the cache.
    """
    return nbytes + LINE * (nbytes % (2 * LINE) == 0)


@dataclasses.dataclass(frozen=True)
class Tiles:
    """An array of `batch` images of `planes` [h, w] in tiles of `m` by `m` pixels."""

    m: int
    batch: int
    planes: int
    h: int
    w: int

    @property
    def loops(self) -> tuple[int, int, int, int]:
        """Images, planes, rows of tiles, tiles of a row."""
        return self.batch, self.planes, -(-self.h // self.m), -(-self.w // self.m)

    @property
    def count(self) -> int:
        return math.prod(self.loops)

    @property
    def positions(self) -> int:
        """Elements of a transformed tile: products of each channel pair."""
        return (self.m + R - 1) ** 2

    def pixels(self, strides: Sequence[int]) -> tuple[int, int, int, int]:
        """Bytes from tile to tile of an array [n, d, h, w, c], by loop."""
        return strides[0], strides[1], self.m * strides[2], self.m * strides[3]

    def rows(self, lane: Lane) -> tuple[int, ...]:
        """Bytes from tile to tile of transformed ones, by loop."""
        return dense_strides(self.loops, lane.pixels[-1])

    def made(self, ctx: Context, channels: int) -> Lane:
        """Room for transformed tiles of so many channels, position by position; its pixels are images, planes and the
        tiles of one.
        """
        row = -(-channels // ctx.target.vl) * ctx.target.vl * 4
        far = apart(self.count * row)
        room = ctx.scratch((self.positions, far // 4))
        n, d, *_ = dense_strides(self.loops, row)
        return Lane(Ref(room.buffer, room.offset), (n, d, 0, row), 4, far)

    def per_item(self, ctx: Context) -> int:
        """Tiles of a work item."""
        return max(1, min(self.loops[-1], -(-self.count // (4 * ctx.threads))))


def winograd(ctx: Context, geo: Walk, w: Filters, y: Storage, tail: Epilogue, m: int) -> None:
    """Appends input transform, (m + 2)**2 products and output transform, which writes y [n, (d,) h, w, c]; for weights
    that arrive with the call also their transform. Along d transformed planes of the image are added up as a product
    adds its taps.
    """
    geo, y = geo.along(3), y.of_axes(5)
    tail = dataclasses.replace(tail, operands=tuple((s, grown(walk, 5, 0), at) for s, walk, at in tail.operands))
    taps, stride, reach = geo.window[0], geo.strides[0], geo.dilation[0]
    n, planes, *plane = y.shape[:-1]
    tiles, channels, c_in = Tiles(m, *y.shape[:4]), y.shape[-1], geo.image.shape[-1]
    data = transformed_image(ctx, Tiles(m, n, (planes - 1) * stride + (taps - 1) * reach + 1, *plane), geo)
    vectors, nbytes = _narrow(ctx, tiles, channels), 4 * tiles.positions * taps * c_in * channels
    if w.source is not None and vectors >= 2 and nbytes >= FAR_BYTES and taps == stride == 1:
        return _by_channels(ctx, tiles, data, w, y, tail, vectors * ctx.target.vl)
    image, between, _, row = data.pixels
    pixels = (n, planes, 1, tiles.count // (n * planes))
    g = Product(pixels, tuple(t * reach * between for t in range(taps)), c_in, channels, tiles.positions)
    data = dataclasses.replace(data, pixels=(image, stride * between, 0, row))
    shape = block_shape(ctx.target, tiles.count, channels, depth=g.depth)
    sums = tiles.made(ctx, channels)
    weights, spacing = _weights(ctx, g, w, m, shape[1])
    add_gemm(ctx, g, data, weights, sums, COPY, [], shape, spacing=spacing)
    return _result(ctx, tiles, sums, y, tail)


def _narrow(ctx: Context, tiles: Tiles, channels: int) -> int:
    """Vectors of channels whose products stay in L2, few enough that every thread gets several work items."""
    most = MADE_BYTES // (tiles.positions * tiles.count * 4 * ctx.target.vl)
    return min(most, channels // (2 * ctx.threads * ctx.target.vl))


def transformed_image(ctx: Context, tiles: Tiles, geo: Walk) -> Lane:
    """Appends the transform of the image's tiles."""
    image, c_in = geo.image, geo.image.shape[-1]
    data = tiles.made(ctx, c_in)
    operands: list[Operand] = [
        (image, tiles.pixels(image.strides), geo.origin()),
        (at_ref(data.ref), tiles.rows(data), 0),
    ]
    words = [*image.strides[2:4], data.group, c_in]
    work = tiles.positions * -(-c_in // ctx.target.vl)
    nest(ctx, Kernel(("winograd_input", tiles.m)), words, tiles.loops, operands, 1, tiles.per_item(ctx), work)
    return data


def _result(ctx: Context, tiles: Tiles, sums: Lane, y: Storage, tail: Epilogue) -> None:
    """Appends the transform of the products, which writes the result, and forms of it where readers ask for them."""
    number = len(ctx.steps)

    def again(expr: Expr, results: tuple[int, ...], outs: Sequence[Operand], forms: tuple[str, ...]) -> None:
        expr, besides, to = written(expr, results, outs, forms)
        _transformed_back(ctx, tiles, sums, y, dataclasses.replace(tail, expr=expr), besides, to)

    root = len(tail.expr) - 1
    again(tail.expr, (root,), [(y, y.strides, 0)], ())
    maker = PassMaker(ctx, number, tail.expr, root, (y, y.strides, 0), tail.operands, y.shape, again)
    ctx.makers.note(number, maker)


def _transformed_back(
    ctx: Context,
    tiles: Tiles,
    sums: Lane,
    y: Storage,
    tail: Epilogue,
    forms: tuple[Written, ...],
    to: Sequence[Operand],
) -> None:
    """As `_result`, the step alone; `forms` of the result are written `to` places."""
    channels, others = y.shape[-1], (*tail.operands, *to)
    kinds = (*(operand_kind(walk[:-1], walk[-1]) for _, walk, _ in tail.operands), *forms)
    operands: list[Operand] = [(at_ref(sums.ref), tiles.rows(sums), 0), (y, tiles.pixels(y.strides), 0)]
    operands += [(s, tiles.pixels(walk), offset) for s, walk, offset in others]
    words = [sums.group, tiles.h, tiles.w, channels, *y.strides[2:4]]
    words += [step for _, walk, _ in others for step in walk[2:4]]
    kernel = Kernel(("winograd_output", tiles.m, tail.expr, kinds))
    work = tiles.positions * -(-channels // ctx.target.vl)
    nest(ctx, kernel, words, tiles.loops, operands, 1, tiles.per_item(ctx), work, forms=len(forms))


def at_ref(ref: Ref) -> Storage:
    """What lies at a place, as an operand whose walk is given beside it."""
    return Storage(ref.buffer, ref.offset, (), (), ())


def _weights(ctx: Context, g: Product, w: Filters, m: int, nv: int) -> tuple[Ref, int]:
    """Panels of the transformed weights G g G', one group a position, and the bytes from one to the next."""
    vl, value, axes = ctx.target.vl, w.value, w.axes
    if w.source is not None:
        *taps, down, across, inner, channels = w.dims()
        panels = packed(ctx, w.start(), [down, across], [*taps, inner], channels, nv)
        return _transformed(ctx, panels, m, panel_bytes(g, vl, nv))

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        by_tap = np.transpose(consts[value], axes).reshape(len(g.taps), R * R, g.run, g.channels)
        k = by_tap.swapaxes(0, 1).reshape(R * R, g.depth, g.channels)
        taps = pack_panels(k, vl, nv)  # panels of the taps become those of the positions: a sum over taps
        return one_thread(np.kron(matrices(m).g, matrices(m).g).astype(np.float32), taps)

    nbytes = panel_bytes(g, vl, nv)
    return ctx.pack(nbytes * g.groups, packer, ("winograd", value, axes, m, nv)), nbytes


def one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, f32 [m, k] and [k, n], in products that BLAS gives to no threads of its own: beside calls that keep all
    cores busy these wait for each other ten times as long as they compute.
    """
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    step = max(1, ALONE // (m * k))
    whole = n - n % step
    parts = lambda x: x[:, :whole].reshape(len(x), -1, step).swapaxes(0, 1)
    np.matmul(a, parts(b), out=parts(out))
    np.matmul(a, b[:, whole:], out=out[:, whole:])
    return out


def _transformed(ctx: Context, taps: Ref, m: int, nbytes: int) -> tuple[Ref, int]:
    """Appends the transform of weights that arrive with the call, of which each tap has panels of `nbytes`: panels by
    position, and the bytes from one to the next.
    """
    n2, spacing = (m + R - 1) ** 2, apart(nbytes)
    out = ctx.scratch((n2, spacing // 4))
    operands: list[Operand] = [(at_ref(taps), (4 * INNER,), 0), (out, (4 * INNER,), 0)]
    loops, each = (-(-nbytes // (4 * INNER)),), min(INNER, nbytes // 4) // ctx.target.vl
    nest(ctx, Kernel(("winograd_weights", m)), [nbytes, spacing, 4 * INNER], loops, operands, 1, 1, n2 * each)
    return Ref(out.buffer, out.offset), spacing


def _by_channels(ctx: Context, tiles: Tiles, data: Lane, w: Filters, y: Storage, tail: Epilogue, width: int) -> None:
    """Appends products and output transform in work items of `width` channels, each of which makes the transformed
    weights that it needs, `DEPTH` channels of the image at a time."""
    *_, down, along, (c_in, step), (channels, across) = w.dims()
    window = [down, along]
    storage, _, at = w.start()
    sources = [data.ref, Ref(storage.buffer, storage.offset + at), Ref(y.buffer, y.offset)]
    sources += [Ref(s.buffer, s.offset + offset) for s, _, offset in tail.operands]
    pixels = (tiles.batch, tiles.planes, 1, tiles.count // (tiles.batch * tiles.planes))
    shifts = (0, across, y.strides[-1], *(strides[-1] for _, strides, _ in tail.operands))
    firsts = range(0, channels, width)

    def lower(strip: Context, n: int, buffers: Sequence[Buffer]) -> None:
        from_data, from_weights, to, *others = buffers
        sums, shape = tiles.made(strip, n), block_shape(strip.target, tiles.count, n, depth=min(DEPTH, c_in))
        for first in range(0, c_in, DEPTH):
            g = Product(pixels, (0,), min(DEPTH, c_in - first), n, tiles.positions)
            start = (at_ref(Ref(from_weights, 0)), (), first * step)
            taps = packed(strip, start, window, [(g.run, step)], (n, across), shape[1])
            made, spacing = _transformed(strip, taps, tiles.m, panel_bytes(g, strip.target.vl, shape[1]))
            x = dataclasses.replace(data, ref=Ref(from_data, 4 * first))
            expr, before = (ADDED, [sums]) if first else (COPY, [])
            add_gemm(strip, g, x, made, sums, expr, before, shape, spacing=spacing)
        operands = tuple((at_ref(Ref(b, 0)), s, 0) for b, (_, s, _) in zip(others, tail.operands, strict=True))
        part = Storage(to, 0, (*y.shape[:-1], n), y.strides, ((0, 0),) * len(y.shape))
        _result(strip, tiles, sums, part, dataclasses.replace(tail, operands=operands))

    pieces = [(min(width, channels - c), tuple(c * s for s in shifts)) for c in firsts]
    add_strips(ctx, sources, y.buffer, pieces, lower)
