"""Steps for depthwise convolutions, in one and two dimensions their gradients, and for convolutions of small groups: a
vector of channels at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Value, itemsize
from ..rules.convolution import Phase
from ..rules.expressions import Expr
from ..segment.context import Context, Packer
from ..segment.steps import Kernel
from ..segment.storage import Operand, Storage, grown, streamed
from . import byte_windows
from .byte_windows import Blocks
from .elementwise import copy, nest
from .epilogue import Written
from .forms import with_forms
from .lanes import operand_kind
from .pairs import BF16, FROM_FLOATS, INT8, elements, large, over
from .panels import Filters
from .product import Epilogue, split_evenly
from .windows import KEPT, taps_in_turn

SUMS = 1024  # taps of a window, most, whose gradient is sums by taps: some two dozen of them are a step
IN_FLIGHT = 8  # sums that a core adds to at once: fewer take as long
VECTORS = 14  # the word of the forward kernel that says how many vectors of channels there are; behind it, of a call
CALL = 0.05  # of the time for a row of the result, or of the image, that a call takes besides
PARTS = 4  # of the channels for each thread, most
WIDE = 1  # channels for each pixel, from which on threads share channels rather than pixels
SUMMED_PIXELS = 1024  # products that are added one after the other: sums of such sums keep more digits


@dataclasses.dataclass(frozen=True)
class Walk:
    """A padded channels-last image and the window that walks it (one entry a spatial dimension)."""

    image: Storage
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    def origin(self) -> int:
        """Byte offset of the first window's first element from the image's first."""
        return -sum(lo * s for (lo, _), s in zip(self.padding, self.image.strides[1:-1], strict=True))

    def along(self, count: int) -> Walk:
        """The same walk along so many dimensions: those that it lacks stand before the others, with one index."""
        ones = (1,) * (count - len(self.window))
        walked = ((*ones, *self.window), (*ones, *self.strides), (*ones, *self.dilation))
        return Walk(self.image.of_axes(count + 2), *walked, (*((0, 0),) * len(ones), *self.padding))


def depthwise(
    ctx: Context, geo: Walk, w: Filters, y: Storage, tail: Epilogue, dtype: str = "float32", whole: bool = False
) -> None:
    """Appends the steps that write a depthwise convolution, or one of groups of which a vector holds several, and its
    tail to `y` [n, ((d,) h,) w, c]. `dtype`: what the image has elements of; bf16 and int8 are read as such where the
    image as f32 is more than the threads' caches keep, or where bytes are multiplied. `whole`: sums are s32.
    """
    rows = y.shape[-3] if len(y.shape) > 3 else 1
    alone = w.value.shape[w.axes[-2]] == 1
    blocks = _in_bytes(ctx, geo, w, tail, rows) if whole and alone else None
    if dtype in (BF16, INT8) and alone and (large(ctx, geo.image) or blocks is not None):
        geo = dataclasses.replace(geo, image=elements(ctx, geo.image, dtype) or geo.image)
    if geo.image.narrow != INT8:
        blocks = None
    expr = over(tail.expr, FROM_FLOATS) if whole and blocks is None else tail.expr
    weights = _weights(ctx, w) if blocks is None else None
    dimensions = 3 if blocks is None else 2
    geo, out = geo.along(dimensions), _Result.of(y, tail, dimensions)

    def ending(expr: Expr, forms: tuple[Written, ...], to: Sequence[Operand]) -> None:
        ended = dataclasses.replace(out, forms=forms, to=tuple(to))
        if blocks is not None:
            _forward_bytes(ctx, geo, ended, w, blocks, expr)
        else:
            assert weights is not None
            _forward(ctx, geo, ended, weights, expr)

    with_forms(ctx, out.y, expr, out.others, ending)


def _forward(ctx: Context, geo: Walk, out: _Result, weights: _Weights, expr: Expr) -> None:
    """As `depthwise`, the steps alone."""
    (*_, kw), (n, planes, oh, ow, channels), image, taps = geo.window, out.y.shape, geo.image, math.prod(geo.window)
    (_, down, stride), dilation, group, registers = geo.strides, geo.dilation, weights.group, ctx.target.registers
    rows, vectors = _even(ctx, geo, (n * planes, oh, channels // ctx.target.vl))
    if group > 1:
        pixels = _pixels_of_groups(ow, taps_in_turn(kw), stride, registers)
    else:
        pixels = _pixels(ow, registers) if taps <= KEPT else _pixels_in_turn(ow, kw, registers)
    stored = image.narrow or "float32"
    key = ("depthwise", *geo.window, stride, dilation[-1], pixels, group, stored, expr, out.kinds, out.streamed)
    plane, row, across = image.strides[1:4]
    extra = [oh, rows, ow, channels % ctx.target.vl]
    extra += [row * down, plane * dilation[0], row * dilation[1], across * stride, across * dilation[-1]]
    extra += [*weights.steps, weights.operand[1][-1], *out.steps]
    steps = (image.strides[0], plane * geo.strides[0], rows * row * down, itemsize(stored) * ctx.target.vl)
    operands = [(image, steps, geo.origin()), weights.operand, *out.operands(rows, ctx.target.vl)]
    loops, units = (n, planes, -(-oh // rows)), rows * ow * taps * group
    _over_channels(ctx, key, extra, loops, operands, channels, units, len(out.forms), vectors)


def _in_bytes(ctx: Context, geo: Walk, w: Filters, tail: Epilogue, rows: int) -> Blocks | None:
    """The blocks of channels in which bytes are multiplied by constant weights, for a result of so many rows; None
    where they are not. Channels and rows that two blocks compute are written twice, so that nothing may be read where
    the result is written.
    """
    unit = ctx.target.unit(INT8, "gemm")
    eligible = unit is not None and unit.shift == byte_windows.SHIFT and w.source is None
    pixels = any(any(walk[:-1]) for _, walk, _ in tail.operands)
    windows = len(geo.window) < 3 and math.prod(geo.window) <= KEPT and set(geo.dilation) == {1}
    if not eligible or pixels or not windows:
        return None
    return byte_windows.blocks_of(geo.image.shape[-1], rows)


def _forward_bytes(ctx: Context, geo: Walk, out: _Result, w: Filters, blocks: Blocks, expr: Expr) -> None:
    """As `_forward`, of bytes."""
    (kh, kw), (n, oh, ow, _), image, wide = geo.window, out.y.shape, geo.image, blocks.wide
    (down, across), stride = image.strides[1:3], geo.strides[1]
    row = down * geo.strides[0]
    rows, pixels = _rows(ctx, oh, n, row, blocks.stacked), byte_windows.together(ow)
    taps = byte_windows.Taps(kh, kw, stride, wide, blocks.stacked)
    packer = byte_windows.packer(w.value, w.axes, taps, blocks)
    ref = ctx.pack(taps.nbytes * blocks.count, packer, ("depthwise_bytes", w.value, w.axes, taps, blocks))
    packed = Storage(ref.buffer, ref.offset, (), (), ())
    past = out.streamed and blocks.apart % wide == 0
    key = ("depthwise_bytes", kh, kw, stride, pixels, ow % pixels, wide, blocks.stacked, expr, out.kinds, past)
    extra = [oh, rows, ow, row, down, across, *out.steps]
    x = (image, (image.strides[0], rows * row, blocks.apart), geo.origin())
    operands = [x, (packed, (0, 0, taps.nbytes), 0), *out.operands(rows, blocks.apart)]
    loops, units = (n, -(-oh // rows), blocks.count), rows * ow * kh * taps.quads * wide // ctx.target.vl
    nest(ctx, Kernel(key), extra, loops, operands, 2, blocks.count, units, forms=len(out.forms))


def transposed(
    ctx: Context, geo: Walk, phases: Sequence[Sequence[Phase]], w: Filters, y: Storage, tail: Epilogue
) -> None:
    """Appends the steps that write a transposed depthwise convolution and its tail to `y` [n, (h,) w, c]: all of its
    `phases`, for which the image of `geo` has zeroes around it, in one pass over the image.
    """
    geo, out = geo.along(2), _Result.of(y, tail, 2)
    (kh, kw), (n, oh, ow, channels), image = geo.window, out.y.shape, geo.image
    by_row, by_column = phases if len(phases) == 2 else ((Phase(0, 1, 1, window=1),), *phases)
    dh, dw = by_row[0].step, by_column[0].step
    blocks, wide = -(-oh // dh), ow // dw
    rows = _rows(ctx, blocks, n, image.strides[1] + dh * out.y.strides[1])
    weights = _weights(ctx, w)
    pixels = max(p for p in (1, 2, 3, 4) if p == 1 or p * dh * dw <= ctx.target.registers // 2)
    walks = (tuple((p.tap, p.every, p.window, p.shift, p.reach) for p in along) for along in (by_row, by_column))
    left = (oh % dh, ow % dw)
    key = ("depthwise_transposed", kh, kw, (dh, dw), *walks, left, pixels, tail.expr, out.kinds, out.streamed)
    extra = [oh // dh, rows, wide, channels % ctx.target.vl, *image.strides[1:3], *weights.steps[1:3], *out.steps]
    x = (image, (image.strides[0], rows * image.strides[1], 4 * ctx.target.vl), 0)
    operands = [x, weights.of(3), *out.operands(rows * dh, ctx.target.vl)]
    _over_channels(ctx, key, extra, (n, -(-blocks // rows)), operands, channels, rows * wide * kh * kw)


def window_sums(ctx: Context, geo: Walk, g: Storage, y: Storage) -> None:
    """Appends the steps that write the gradient of a depthwise convolution by its weights to `y` [(kh,) kw, c], whose
    elements lie side by side: `geo` is the convolution that was, `g` [n, (h,) w, c] the gradient by its result.

    Sums of rows (or of images, where these are small) are kept apart and added in order, so that results do not depend
    on which thread does what.
    """
    geo, g = geo.along(2), g.of_axes(4)
    (kh, kw), (n, oh, ow, channels), image, vl = geo.window, g.shape, geo.image, ctx.target.vl
    down, across = (s * k for s, k in zip(image.strides[1:3], geo.strides, strict=True))
    tap_row, tap = (s * k for s, k in zip(image.strides[1:3], geo.dilation, strict=True))
    images, rows = _summed(ctx, (n, oh, ow), down + g.strides[1], -(-channels // vl))
    chunks = (-(-n // images), -(-oh // rows))
    sums = y if math.prod(chunks) == 1 else ctx.scratch((math.prod(chunks), kh * kw * channels))
    part, row = (4 * kh * kw * channels, 4 * kw * channels)
    extra = [n, images, oh, rows, ow, channels % vl]
    extra += [image.strides[0], down, tap_row, across, tap, *g.strides[:3], row, 4 * channels]
    for (i, high), (j, wide) in itertools.product(*_tap_blocks(geo.window, ctx.target.registers)):
        key = ("depthwise_sums", high, wide, geo.strides[1], geo.dilation[1], _pixels(ow, ctx.target.registers))
        x = (images * image.strides[0], rows * down, 4 * vl), geo.origin() + i * tap_row + j * tap
        operands = [
            (image, *x),
            (g, (images * g.strides[0], rows * g.strides[1], 4 * vl), 0),
            (sums, (chunks[1] * part, part, 4 * vl), i * row + 4 * j * channels),
        ]
        _over_channels(ctx, key, extra, chunks, operands, channels, images * rows * ow * high * wide)
    if sums is not y:
        _add_up(ctx, sums, y)


# -- what they share -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Result:
    """The result [n, (d,) h, w, c] of a kernel and the operands of its epilogue, over the same index; `forms` of the
    result that are written `to` places besides.
    """

    y: Storage
    others: tuple[Operand, ...]
    forms: tuple[Written, ...] = ()
    to: tuple[Operand, ...] = ()

    @classmethod
    def of(cls, y: Storage, tail: Epilogue, dimensions: int) -> _Result:
        """That of so many spatial dimensions, or fewer."""
        axes = dimensions + 2
        return cls(y.of_axes(axes), tuple((s, grown(walk, axes, 0), at) for s, walk, at in tail.operands))

    @property
    def kinds(self) -> tuple[str | Written, ...]:
        """The kinds of the epilogue's operands, as kernels have them."""
        return (*(operand_kind(walk[:-1], walk[-1]) for _, walk, _ in self.others), *self.forms)

    @property
    def streamed(self) -> bool:
        """Whether it is stored past the caches."""
        return streamed(self.y, self.y.strides[:-1])

    @property
    def steps(self) -> list[int]:
        """Bytes from a row and from a pixel to the next, of the result and of each operand."""
        return [*self.y.strides[-3:-1], *(s for _, walk, _ in (*self.others, *self.to) for s in walk[-3:-1])]

    def operands(self, rows: int, vl: int) -> list[Operand]:
        """The result and the operands over (image, (plane,) chunk of so many rows, vector of channels)."""
        everything = [(self.y, self.y.strides, 0), *self.others, *self.to]
        return [(s, (*walk[:-3], rows * walk[-3], vl * walk[-1]), at) for s, walk, at in everything]


def _over_channels(
    ctx: Context,
    key: tuple[object, ...],
    extra: Sequence[int],
    loops: tuple[int, ...],
    operands: Sequence[Operand],
    channels: int,
    units: float,
    forms: int = 0,
    together: int = 0,
) -> None:
    """Appends a kernel over `loops` and the vectors of channels: the whole ones, then what is left, masked.

    `operands` have a stride for each loop and for a vector; number 2 is written, and so are the last `forms`. A kernel
    takes one vector, of `units`, or as many `together`, which its words say then from number `VECTORS` on.
    """
    whole, left = divmod(channels, ctx.target.vl)
    for count, first in ((whole, 0), (min(left, 1), whole)):
        each = max(1, together)
        words = [*extra[:VECTORS], count, each, *extra[VECTORS:]] if together else extra
        there = [(s, (*walk[:-1], each * walk[-1]), at + first * walk[-1]) for s, walk, at in operands]
        kernel, calls = Kernel((*key, first == whole)), -(-count // each)
        if count:
            work, chunk = units * count / calls, 1 if together else calls
            nest(ctx, kernel, words, (*loops, calls), there, 2, chunk, work, forms=forms)


def _even(ctx: Context, geo: Walk, sizes: tuple[int, int, int]) -> tuple[int, int]:
    """(rows, vectors of channels) of a call of the forward kernel, by a model of when the team is over: neighbouring
    calls read rows twice, and others wait for half of a last call. `sizes`: images, rows of the result, vectors of
    channels. Rows of a chunk stay in the cache. Of an image of many more channels than pixels each thread takes some
    channels of all rows, as it does of a product that makes such an image.
    """
    (images, rows, vectors), threads, (window, stride) = sizes, ctx.threads, (geo.window[-2], geo.strides[-2])
    *pixels, channels = geo.image.shape
    share = rows if channels > WIDE * math.prod(pixels) else -(-rows * images // threads)
    most = max(1, min(share, rows, ctx.target.kept // max(1, geo.image.strides[-3] * stride) + 1))
    if not vectors:
        return most, 1

    def cost(cut: tuple[int, int]) -> float:
        r, parts = cut
        chunks = -(-rows // r)
        read = stride * (rows - chunks) + window * chunks
        call = (r + stride * (r - 1) + window) / parts + CALL
        everything = images * (rows + read + CALL * chunks * parts)
        return max(call, (everything + (threads - 1) * call / 2) / threads)

    r, parts = min(((r, p) for r in range(1, most + 1) for p in range(1, min(PARTS * threads, vectors) + 1)), key=cost)
    return r, -(-vectors // parts)


def _rows(ctx: Context, rows: int, images: int, row_bytes: int, stacked: int = 1) -> int:
    """Rows of a work item, a multiple of `stacked`: few enough to balance the team, and to stay in the cache while all
    channels are walked.
    """
    share = -(-rows * images // (4 * ctx.threads)) if ctx.threads > 1 else 8
    most = max(1, min(rows, share, ctx.target.kept // max(1, row_bytes) + 1))
    return -(-most // stacked) * stacked


def _pixels(ow: int, registers: int) -> int:
    """Neighbouring pixels that the kernel computes together: few enough for the registers, and a row of `ow` pixels
    leaves at most one over.
    """
    if ow < 4:
        return 1
    return max(p for p in (1, 2, 3, 4, 5, 6) if p <= max(1, registers // 5) and (ow % p <= 1 or p == 4))


def _pixels_in_turn(ow: int, kw: int, registers: int) -> int:
    """As `_pixels`, where the taps of a row come in turn: sums, taps and one column are in registers."""
    most = max(1, registers - 2 - taps_in_turn(kw))
    return min(range(1, most + 1), key=lambda p: (ow // p * max(p, IN_FLIGHT) + ow % p * IN_FLIGHT, -p))


def _pixels_of_groups(ow: int, kw: int, stride: int, registers: int) -> int:
    """As `_pixels`, for groups of channels: a row of `ow` pixels has the fewest columns whose lanes are moved."""
    columns = lambda p: (p - 1) * stride + kw
    return min(range(1, max(2, 3 * registers // 4 - kw)), key=lambda p: (ow // p * columns(p) + ow % p * kw, p))


@dataclasses.dataclass(frozen=True)
class _Weights:
    """Weights as kernels read them: an operand over (image, plane, row chunk, vector of channels), and the bytes from a
    plane of taps, a row of these, a tap and a channel of a group to the next; `group`: channels of a group.
    """

    operand: Operand
    steps: tuple[int, int, int, int]
    group: int

    def of(self, loops: int) -> Operand:
        """The operand over the last so many loops."""
        s, walk, at = self.operand
        return s, walk[-loops:], at


def _weights(ctx: Context, w: Filters) -> _Weights:
    """Constant weights are packed as [vectors of channels, kh, kw, channels of a group, vl]; those that the call brings
    are read where they lie.
    """
    vl, (*window, group, channels) = ctx.target.vl, (w.value.shape[a] for a in w.axes)
    if w.source is None:
        each = math.prod(window) * group * vl * 4
        ref = ctx.pack(-(-channels // vl) * each, _packer(w.value, w.axes, vl), ("depthwise", w.value, w.axes))
        packed = Storage(ref.buffer, ref.offset, (), (), ())
        tap = 4 * vl * group
        row = tap * window[-1]
        plane = row * window[-2] if len(window) > 1 else row
        return _Weights((packed, (0, 0, 0, each), 0), (plane, row, tap, 4 * vl), group)
    s, walk, at = w.source
    strides = tuple(walk[a] for a in w.axes)
    if strides[-1] != 4:
        side_by_side = ctx.scratch((*window, group, channels))
        copy(ctx, s, side_by_side, strides, at)
        s, strides, at = side_by_side, side_by_side.strides, 0
    plane, row, tap, channel = (0, 0, *strides[:-1])[-4:]
    return _Weights((s, (0, 0, 0, 4 * vl), at), (plane, row, tap, channel), group)


def _packer(w: Value, axes: tuple[int, ...], vl: int) -> Packer:
    """What packs constant weights as [vectors of channels, taps, channels of a group, vl]."""

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        taps = np.transpose(consts[w], axes).reshape(-1, w.shape[axes[-1]])
        vectors = -(-taps.shape[1] // vl)
        padded = np.pad(taps, ((0, 0), (0, vectors * vl - taps.shape[1])))
        return np.transpose(padded.reshape(-1, vectors, vl), (1, 0, 2))

    return packer


# -- sums of products -----------------------------------------------------------------------------------


def _summed(ctx: Context, pixels: tuple[int, int, int], row_bytes: int, vectors: int) -> tuple[int, int]:
    """How many images and rows of each a work item sums up, of `pixels` (images, rows, pixels of a row)."""
    n, oh, ow = pixels
    most = max(1, min(SUMMED_PIXELS // ow, 2 * ctx.target.kept // max(1, row_bytes)))
    wanted = 1 if ctx.threads == 1 else -(-4 * ctx.threads // vectors)  # parts of all pixels, for all threads to work
    if most < oh or wanted > n:
        rows = min(most, max(1, n * oh // wanted))
        return 1, -(-oh // -(-oh // rows))
    return max(1, min(n, most // oh, n // wanted)), oh


def _tap_blocks(window: tuple[int, ...], registers: int) -> list[list[tuple[int, int]]]:
    """A window's taps in blocks whose sums registers hold: (first, how many) of its rows, and of its columns."""
    columns = split_evenly(window[1], registers - 6)
    rows = split_evenly(window[0], max(1, (registers - 6) // columns[0]))
    return [list(zip(itertools.accumulate([0, *sizes]), sizes, strict=False)) for sizes in (rows, columns)]


def _add_up(ctx: Context, sums: Storage, y: Storage) -> None:
    """Appends a step that adds up sums [parts, n] in order to `y`, n elements side by side."""
    parts, n = sums.shape
    width = min(n, 256)
    operands = [(sums, (4 * width,), 0), (y, (4 * width,), 0)]
    words, units = [parts, 4 * n, n, width], parts * -(-width // ctx.target.vl)
    kernel = Kernel(("reduce", "sum", False))
    nest(ctx, kernel, words, (-(-n // width),), operands, 1, max(1, (1 << 14) // (parts * width)), units)
