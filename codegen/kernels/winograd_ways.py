"""Three ways to put the steps of Winograd's convolution together.

whole        the image's transform, a product for each position of a tile, the transform back: three steps
by tiles     work items of some tiles, which do all three: of a large image what lies between them (4.5 times the
             image and the result, with the larger tiles) stays in a core's L2 cache
by channels  work items of some channels, which transform weights that arrive with the call: where these are many
             and tiles are few, transformed weights never leave that cache
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from ..rules.expressions import COPY, Expr
from ..segment.context import Context
from ..segment.steps import Ref
from ..segment.storage import STREAMED_BYTES, Buffer, Operand, Storage, grown
from ..segment.strips import add_strips
from .block_shapes import block_shape
from .depthwise import Walk
from .epilogue import Written
from .forms import with_forms
from .lanes import Lane, Product
from .panels import Filters, packed
from .product import Epilogue, add_gemm, panel_bytes
from .winograd_steps import (
    Tiles,
    at_ref,
    transformed_back,
    transformed_image,
    transformed_weights,
    weights_of,
)

DEPTH = 64  # channels of the image whose transformed weights a work item makes at a time
MADE_BYTES = 5 << 16  # products of a work item that makes its weights: they stay in L2 beside these
FAR_BYTES = 1 << 22  # transformed weights from this size on leave the L2 caches
LEAST_TILES = 24  # of a work item, for which it reads all weights: of fewer it would wait for these
ADDED: Expr = (("in", 0), ("in", 1), ("add", 0, 1))
Box = tuple[int, int, int]  # images, rows of tiles and tiles of a row


def winograd(ctx: Context, geo: Walk, w: Filters, y: Storage, tail: Epilogue, m: int) -> None:
    """Appends a convolution that writes y [n, (d,) h, w, c] by transforms and (m + 2)**2 products. Along d transformed
    planes of the image are added up as a product adds its taps.
    """
    geo, y = geo.along(3), y.of_axes(5)
    tail = dataclasses.replace(tail, operands=tuple((s, grown(walk, 5, 0), at) for s, walk, at in tail.operands))
    taps, stride, reach = geo.window[0], geo.strides[0], geo.dilation[0]
    n, planes, *plane = y.shape[:-1]
    tiles, channels, c_in = Tiles(m, *y.shape[:4]), y.shape[-1], geo.image.shape[-1]
    image = geo.image, geo.image.strides, geo.origin()
    alone = taps == stride == 1
    if alone and (box := _box(ctx, tiles, c_in, channels)):
        return _by_tiles(ctx, tiles, box, image, c_in, w, y, tail)
    read = Tiles(m, n, (planes - 1) * stride + (taps - 1) * reach + 1, *plane)
    data = transformed_image(ctx, read, image, c_in)
    vectors, nbytes = _narrow(ctx, tiles, channels), 4 * tiles.positions * taps * c_in * channels
    if w.source is not None and vectors >= 2 and nbytes >= FAR_BYTES and alone:
        return _by_channels(ctx, tiles, data, w, y, tail, vectors * ctx.target.vl)
    first, between, _, row = data.pixels
    pixels = (n, planes, 1, tiles.count // (n * planes))
    g = Product(pixels, tuple(t * reach * between for t in range(taps)), c_in, channels, tiles.positions)
    data = dataclasses.replace(data, pixels=(first, stride * between, 0, row))
    shape = block_shape(ctx.target, tiles.count, channels, depth=g.depth)
    sums = tiles.made(ctx, channels)
    weights, spacing = weights_of(ctx, g, w, m, shape[1])
    add_gemm(ctx, g, data, weights, sums, COPY, [], shape, spacing=spacing)
    _result(ctx, tiles, sums, y, tail)


def _result(ctx: Context, tiles: Tiles, sums: Lane, y: Storage, tail: Epilogue) -> None:
    """Appends the transform back into y, or into forms of it."""

    def ending(expr: Expr, forms: tuple[Written, ...], to: Sequence[Operand]) -> None:
        transformed_back(ctx, tiles, sums, y, dataclasses.replace(tail, expr=expr), forms, to)

    with_forms(ctx, y, tail.expr, tail.operands, ending)


def _narrow(ctx: Context, tiles: Tiles, channels: int) -> int:
    """Vectors of channels whose products stay in L2, few enough that every thread gets several work items."""
    most = MADE_BYTES // (tiles.positions * tiles.count * 4 * ctx.target.vl)
    return min(most, channels // (2 * ctx.threads * ctx.target.vl))


def _box(ctx: Context, tiles: Tiles, c_in: int, channels: int) -> Box | None:
    """The tiles of a work item where each does all transforms and products of its own: as many as an L2 cache holds,
    fewer where threads share these more evenly. None where caches hold those of the whole image, or an item would have
    too few of them.
    """
    a_tile = 4 * tiles.positions * (c_in + channels)
    most = 2 * ctx.target.kept // a_tile
    if most < LEAST_TILES or not _beyond_caches(ctx, tiles.count * a_tile):
        return None
    n, planes, down, along = tiles.loops
    rows = ((1, 1, k) for k in range(1, along))
    planes_of = ((1, k, along) for k in range(1, down + 1))
    images = ((k, down, along) for k in range(2, n + 1) if planes == 1)

    def slowest(box: Box) -> tuple[int, int]:
        """Tiles of the thread with the most items, and one more for what each item costs; of few larger ones."""
        items = planes * math.prod(-(-of // k) for of, k in zip((n, down, along), box, strict=True))
        return -(-items // ctx.threads) * (math.prod(box) + 1), items

    return min((b for b in itertools.chain(rows, planes_of, images) if math.prod(b) <= most), key=slowest)


def _beyond_caches(ctx: Context, nbytes: int) -> bool:
    """Whether so much is more than the threads' second caches hold together, and than the last one keeps."""
    return nbytes >= max(STREAMED_BYTES, 2 * ctx.target.kept * ctx.threads)


def _by_tiles(
    ctx: Context,
    tiles: Tiles,
    box: Box,
    image: Operand,
    c_in: int,
    w: Filters,
    y: Storage,
    tail: Epilogue,
) -> None:
    """Appends one step whose work items are boxes of tiles."""
    channels, most = y.shape[-1], math.prod(box)
    shape = block_shape(ctx.target, most, channels, depth=c_in)
    g = Product((1, 1, 1, most), (0,), c_in, channels, tiles.positions)
    weights, spacing = weights_of(ctx, g, w, tiles.m, shape[1])

    def ending(expr: Expr, forms: tuple[Written, ...], to: Sequence[Operand]) -> None:
        walks: list[Operand] = [image, (y, y.strides, 0), *tail.operands, *to]
        sources = [weights, *(Ref(s.buffer, s.offset + at) for s, _, at in walks)]
        shift = lambda first, strides: sum(at * step for at, step in zip(first, strides, strict=True))
        pieces = [(part, (0, *(shift(at, s) for _, s, _ in walks))) for part, at in _pieces(tiles, box)]

        def lower(strip: Context, part: Tiles, buffers: Sequence[Buffer]) -> None:
            of_weights, from_image, to_y, *others = buffers
            data = transformed_image(strip, part, (at_ref(Ref(from_image, 0)), image[1], 0), c_in, True)
            sums, of_part = part.made(strip, channels), dataclasses.replace(g, pixels=(1, 1, 1, part.count))
            add_gemm(strip, of_part, data, Ref(of_weights, 0), sums, COPY, [], shape, spacing=spacing)
            result = Storage(to_y, 0, (part.batch, 1, part.h, part.w, channels), y.strides, y.halo)
            moved = [(at_ref(Ref(b, 0)), s, 0) for b, (_, s, _) in zip(others, walks[2:], strict=True)]
            ended = dataclasses.replace(tail, expr=expr, operands=tuple(moved[: len(tail.operands)]))
            transformed_back(strip, part, sums, result, ended, forms, moved[len(tail.operands) :], True)

        add_strips(ctx, sources, [y.buffer, *(s.buffer for s, _, _ in to)], pieces, lower)

    with_forms(ctx, y, tail.expr, tail.operands, ending)


def _pieces(tiles: Tiles, box: Box) -> Iterator[tuple[Tiles, tuple[int, ...]]]:
    """The tiles of each work item, and its first image, plane, row, pixel and channel."""
    images, high, wide = box[0], box[1] * tiles.m, box[2] * tiles.m
    starts = (range(0, tiles.batch, images), range(tiles.planes), range(0, tiles.h, high), range(0, tiles.w, wide))
    for n, d, h, x in itertools.product(*starts):
        part = Tiles(tiles.m, min(images, tiles.batch - n), 1, min(high, tiles.h - h), min(wide, tiles.w - x))
        yield part, (n, d, h, x, 0)


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
            made, spacing = transformed_weights(strip, taps, tiles.m, panel_bytes(g, strip.target.vl, shape[1]))
            x = dataclasses.replace(data, ref=Ref(from_data, 4 * first))
            expr, before = (ADDED, [sums]) if first else (COPY, [])
            add_gemm(strip, g, x, made, sums, expr, before, shape, spacing=spacing)
        operands = tuple((at_ref(Ref(b, 0)), s, 0) for b, (_, s, _) in zip(others, tail.operands, strict=True))
        part = Storage(to, 0, (*y.shape[:-1], n), y.strides, ((0, 0),) * len(y.shape))
        _result(strip, tiles, sums, part, dataclasses.replace(tail, operands=operands))

    pieces = [(min(width, channels - c), tuple(c * s for s in shifts)) for c in firsts]
    add_strips(ctx, sources, [y.buffer], pieces, lower)
