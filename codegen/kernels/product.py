"""What convolutions and matrix products share: pixels x channels, tiles and blocks, one step of the gemm driver."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..native import layout
from ..program import Op, Unsupported, Value
from ..rules.expressions import COPY, Expr, expression
from ..segment.context import Context
from ..segment.steps import Kernel, Ref, Word
from ..segment.storage import Operand
from ..target import MatrixUnit
from . import gemm
from .across import ACROSS
from .across import cycles as cycles_across
from .block_shapes import Shape, cycles, even_parts, slowdown, unit_for_floats
from .elementwise import read
from .lanes import Lane, Product, ProductMaker, narrower

PANEL_BYTES = 1 << 18  # packed weights that a channel block keeps in L2 while it walks its pixels
ROWS_BYTES = 1 << 16  # the same of weights that are computed, beside which the pixels' own lines need room
TILES_PANEL = 1 << 20  # the same of a unit that multiplies faster than far caches give it weights
EACH = 6  # work items for each thread, at most
WAITED = 1.0  # of an item's time, for which threads wait for the last one
FAR_BYTES = 4.0  # a cycle that a thread of many gets from other cores' caches and from memory (measured: 16 of a Xeon)
NEAR_BYTES = 16.0  # the same of a thread alone
FEW_TILES = 3  # fewer of matrix tiles ask for nothing
EVEN = 1.25  # times as many tiles, at most, for those of which the pixels lie evenly apart
TILE_WORDS = 100.0  # products of words a cycle that tiles come to (measured: 40 % of what they do without loads)


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """The fused tail: its expression and operands (without the accumulator), all over the output's index."""

    expr: Expr
    operands: tuple[Operand, ...]
    result: Value


def epilogue(ctx: Context, anchor: Op, rest: tuple[Op, ...]) -> Epilogue | None:
    """The group's tail as an epilogue over the anchor's shape, or None when it has to be a step of its own.

    That is a tail of another shape, one that no expression can follow, one with more than 6 operands, and one with an
    operand whose stride along the last axis is neither 0 nor 4 bytes.
    """
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
    if any(strides[-1:] not in ((), (0,), (4,)) for _, strides, _ in operands) or len(operands) > 6:
        return None
    return Epilogue(expr, operands, result)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Weights as rows of channels, one for each element of the reduction; the taps' runs begin at the rows `taps`.

    Byte steps of a group and of a row; a `row` of 0: panels (see `pack_panels`), whose rows are as long as they.
    """

    ref: Ref
    group: int
    row: int
    taps: tuple[int, ...]


def split_evenly(n: int, most: int) -> list[int]:
    """n as the fewest parts of at most `most`, differing by at most one, larger parts first."""
    return [size for size, count in even_parts(n, most) for _ in range(count)]


def channel_blocks(channels: int, vl: int, vectors: int) -> list[tuple[int, int, int]]:
    """(first channel, vectors, lanes of the last vector) of each block."""
    blocks, at = [], 0
    for nv in split_evenly(-(-channels // vl), vectors):
        stop = min(at + nv * vl, channels)
        blocks.append((at, nv, stop - at - (nv - 1) * vl))
        at = stop
    return blocks


@dataclasses.dataclass(frozen=True)
class Sum:
    """A block of a reduction: runs of `run` elements at `taps` (byte offset of the input, row of the weights), behind
    `first` elements in weight order.
    """

    taps: tuple[tuple[int, int], ...]
    run: int
    first: int


def reduction_blocks(g: Product, rows: Sequence[int], most: int, step: int = 1) -> list[Sum]:
    """Blocks of at most about `most` elements, in weight order; the taps' weights begin at `rows`. Runs are cut at
    multiples of `step` elements.
    """
    taps, run = tuple(zip(g.taps, rows, strict=True)), g.run
    if g.depth <= most:
        return [Sum(taps, run, 0)]
    if run <= most:
        per = max(1, most // run)
        return [Sum(taps[i : i + per], run, i * run) for i in range(0, len(taps), per)]
    out = []
    for t, (tap, row) in enumerate(taps):
        at = 0
        for size in (step * n for n in split_evenly(run // step, max(most // step, 1))):
            out.append(Sum(((tap + g.element * at, row + at),), size, t * run + at))
            at += size
    return out


def pack_panels(weights: np.ndarray, vl: int, vectors: int, step: int = 1) -> np.ndarray:
    """[groups, K, channels] -> f32 [groups, n]: for each group and channel block [K, vectors * vl], zero-padded, one
    after the other. `step`: rows of a tile; then a block is [K / step, vectors, step, vl].
    """
    groups, k, channels = weights.shape
    blocks = channel_blocks(channels, vl, vectors)
    packed = np.empty((groups, k * vl * sum(nv for _, nv, _ in blocks)), np.float32)
    at = 0
    for first, nv, _ in blocks:
        panel = packed[:, at : at + k * nv * vl].reshape(groups, k, nv * vl)
        piece = weights[:, :, first : first + nv * vl]
        panel[:, :, : piece.shape[2]] = piece
        panel[:, :, piece.shape[2] :] = 0
        if step > 1:
            panel[:] = panel.reshape(groups, k // step, step, nv, vl).swapaxes(2, 3).reshape(panel.shape)
        at += k * nv * vl
    return packed


def panel_bytes(g: Product, vl: int, nv: int) -> int:
    """Bytes of one group's packed weights, in blocks of at most `nv` vectors of `vl` f32."""
    return sum(vectors for _, vectors, _ in channel_blocks(g.channels, vl, nv)) * vl * 4 * g.depth


def add_gemm(
    ctx: Context,
    g: Product,
    x: Lane,
    weights: Ref | Rows,
    y: Lane,
    expr: Expr,
    operands: Sequence[Lane],
    shape: Shape,
    unit: MatrixUnit | None = None,
    spacing: int = 0,
) -> None:
    """Appends the step that writes `expr` of the product and the operands to `y`; `weights` are panels as `pack_panels`
    makes them for blocks of that `shape` (rows, vectors), or rows. `unit`: multiplies them (None: the one for f32);
    runs and panels are of its words, those of `ACROSS` are as `across.pack` makes them. `spacing`: bytes from the
    panels of a group to those of the next (0: they lie side by side).
    """
    assert g.element == 4 or isinstance(weights, Rows), "panels of packed weights are for runs side by side"
    unit, before = unit or unit_for_floats(ctx.target), len(ctx.steps)
    operands = [narrower(ctx, g, o) if o.kind == "v" else o for o in operands]
    append = lambda expr, operands: _append(ctx, g, x, weights, y, expr, operands, shape, unit, spacing)
    append(expr, operands)
    if len(ctx.steps) > before:
        ctx.makers.note(before, ProductMaker(ctx, before, g, y, expr, len(expr) - 1, tuple(operands), append))


def _append(
    ctx: Context,
    g: Product,
    x: Lane,
    weights: Ref | Rows,
    y: Lane,
    expr: Expr,
    operands: Sequence[Lane],
    shape: Shape,
    unit: MatrixUnit,
    spacing: int,
) -> None:
    """As `add_gemm`, of operands that may be forms which are written."""
    vl = ctx.target.vl
    g, (x, y, *operands) = in_a_row(g, (x, y, *operands))
    cut = _cut(ctx, g, x, weights, shape, unit)
    kinds, run = tuple(o.kind for o in operands), g.run if len(cut.sums) == 1 and unit is not ACROSS else 0
    walk = cut.walk(g, x, weights)

    def kernel(rows: int, vectors: int, lanes: int) -> Kernel:
        wide = lanes if unit is ACROSS else vectors
        return Kernel(
            gemm.spec(max(rows, 1), wide, lanes != vl, expr, kinds, run, unit.dtype, unit.kernel, walk, lines(vectors))
        )

    def lines(vectors: int) -> int:
        """Of the next panel that are asked for."""
        few = unit.step > 1 and cut.chunk < FEW_TILES
        if few or unit is ACROSS or not isinstance(weights, Ref):
            return 0
        return gemm.asked(max(gemm.UNROLL, unit.step) * vectors * vl * 4, cut.chunk * cut.parts)

    rtable = layout.Gemm.VIEWS + layout.OPERAND_WORDS * len(operands)
    rwords = cut.sum_words(rtable, walk)
    row = weights.row if isinstance(weights, Rows) else 4 * g.channels if unit is ACROSS else 0
    bwords, panels = cut.words(kernel, vl, g.depth, row)
    ref, group_bytes = (weights.ref, weights.group) if isinstance(weights, Rows) else (weights, spacing or panels)
    words: list[Word] = [
        *(math.prod(g.pixels), *g.pixels[1:], cut.tiles, cut.extra, cut.rows, cut.chunk),
        *(g.groups, len(cut.blocks), len(cut.sums), len(operands), rtable, rtable + len(rwords)),
        *(x.ref, *x.pixels, x.group, y.group),
        *(ref, group_bytes, y.ref, *y.pixels, g.element, cut.parts),
        *(w for o in operands for w in (o.ref, *o.pixels, o.group, o.channel)),
        *rwords,
        *bwords,
    ]
    reads = [x.ref.buffer, ref.buffer, *(o.ref.buffer for o in operands if o.form is None)]
    writes = [y.ref.buffer, *(o.ref.buffer for o in operands if o.form is not None)]
    each = g.groups * len(cut.blocks)
    items, calls = -(-cut.tiles // cut.chunk) * each, cut.tiles * each * len(cut.sums)
    if unit is ACROSS:
        units = math.prod(g.pixels) * cycles_across(ctx.target, g.channels, g.depth) * g.groups
    else:
        units = cut.cycles(slowdown(ctx.target, unit)) * g.groups * g.depth
    ctx.add("gemm", words, items, reads, writes, calls=calls, units=units)


@dataclasses.dataclass(frozen=True)
class _Tiling:
    """How a product is cut: pixels in `tiles` of `rows`, of which the first `extra` have one more, `chunk` tiles a work
    item; channels in `blocks` (see `channel_blocks`), what is summed in `sums` (see `reduction_blocks`). `parts`: so
    many work items of the same channels follow each other, one or all.
    """

    tiles: int
    rows: int
    extra: int
    chunk: int
    parts: int
    blocks: list[tuple[int, int, int]]
    sums: list[Sum]

    def walk(self, g: Product, x: Lane, weights: Ref | Rows) -> str:
        """How the kernels read a run: pixels of a tile are neighbours where tiles fill rows of the image."""
        if isinstance(weights, Ref):
            return gemm.ODD if g.odd else gemm.NEAR
        filled = not self.extra and g.pixels[3] % self.rows == 0
        if not filled or x.pixels[3] != 4:
            return gemm.FAR
        return gemm.AHEAD if g.run >= gemm.LONG else gemm.BESIDE

    def words(self, kernel: Callable[[int, int, int], Kernel], vl: int, depth: int, row: int) -> tuple[list[Word], int]:
        """The block table, and the bytes of a group's panels; `row`: bytes of a row of weights that are not packed.

        `kernel(rows, vectors, lanes)`: what computes a tile.
        """
        words: list[Word] = []
        at = 0
        for first, vectors, lanes in self.blocks:
            small, big = (kernel(rows, vectors, lanes) for rows in (self.rows, self.rows + (self.extra > 0)))
            wide = vectors * vl * 4
            words += [first, lanes, first * 4 if row else at, big, small, row or wide]
            at += (row or wide) * depth
        return words, at

    def sum_words(self, first_word: int, walk: str) -> list[int]:
        """The reduction table, whose first word has that number, and the tables of taps behind it."""
        near = walk in gemm.PANELS
        at = first_word + layout.REDUCTION_WORDS * len(self.sums)
        rows: list[int] = []
        taps: list[int] = []
        for s in self.sums:
            rows += [at + len(taps), len(s.taps), s.run, s.first if near else 0]
            taps += [tap for tap, _ in s.taps] if near else [word for tap in s.taps for word in tap]
        return [*rows, *taps]

    def cycles(self, slower: Mapping[Shape, float]) -> float:
        """Cycles of one element of the reduction over all tiles, by the model and how much slower each shape is."""
        tall = ((self.rows + 1, self.extra), (self.rows, self.tiles - self.extra))
        return sum(
            count * cycles((rows, vectors)) * slower.get((rows, vectors), 1.0)
            for rows, count in tall
            if count
            for _, vectors, _ in self.blocks
        )


def _cut(ctx: Context, g: Product, x: Lane, weights: Ref | Rows, shape: Shape, unit: MatrixUnit) -> _Tiling:
    """The tiling of a product for blocks of at most that shape."""
    (mr, nv), vl, pixels = shape, ctx.target.vl, math.prod(g.pixels)
    tiles, blocks = len(split_evenly(pixels, mr)), channel_blocks(g.channels, vl, nv)
    rows, extra = divmod(pixels, tiles)
    if unit.step > 1 and (even := _even(pixels, g.pixels[3], mr, unit.step)):
        rows, extra = even, 0
        tiles = pixels // rows
    fitting = _fitting(PANEL_BYTES if unit.step == 1 else TILES_PANEL, nv * vl)
    chunk, parts = _items(ctx, g, x, tiles, rows, shape, unit, fitting)
    most = g.depth if chunk <= 2 or unit is ACROSS or g.odd else fitting
    sums = reduction_blocks(g, (0,) * len(g.taps), most, unit.step)
    if isinstance(weights, Rows):  # of short sums that are added: the fewest roundings
        sums = reduction_blocks(g, weights.taps, _fitting(ROWS_BYTES, nv * vl))
    return _Tiling(tiles, rows, extra, chunk, parts, blocks, sums)


def _even(pixels: int, line: int, mr: int, height: int) -> int:
    """Rows of blocks of one tile of at most `height` rows, or of two where `mr` is more than that, whose pixels lie
    evenly apart because each tile is a part of a `line` of the image; 0 where there are none, or too many of them.
    """
    along = -(-line // height)
    count = pixels // line * along
    each = 1 + (mr > height)
    return line // along * each if line % along == count % each == 0 and count <= EVEN * -(-pixels // height) else 0


def _fitting(nbytes: int, channels: int) -> int:
    """Elements of a reduction whose weights fit so many bytes, 64 at least."""
    return max(64, nbytes // (4 * channels))


def in_a_row(g: Product, lanes: Sequence[Lane]) -> tuple[Product, list[Lane]]:
    """Pixel dimensions that every tensor walks without a jump, as one: long rows of tiles for one kernel call."""
    n, d, h, w = g.pixels
    walks = [lane.pixels for lane in lanes]
    while (n, d, h) != (1, 1, 1):
        if h > 1 and not all(p[2] == p[3] * w for p in walks):
            break
        walks = [(0, p[0], p[1], p[3]) for p in walks]
        n, d, h, w = 1, n, d, w * h
    flat = [dataclasses.replace(lane, pixels=p) for lane, p in zip(lanes, walks, strict=True)]
    return dataclasses.replace(g, pixels=(n, d, h, w)), flat


def _items(
    ctx: Context, g: Product, x: Lane, tiles: int, rows: int, shape: Shape, unit: MatrixUnit, fitting: int
) -> tuple[int, int]:
    """(Tiles of a work item, items of the same channels that follow each other). Enough items to balance the team, as
    few as that allows, each within what its core keeps of the input while `fitting` elements of a reduction are summed;
    fewer where what a thread reads comes from afar for longer than it waits for others. Items that lie in a row have
    one thread: of neighbouring channels, which read the same part of the input, or, where all of it is kept, of
    neighbouring pixels, which read the same weights.
    """
    threads, vl = ctx.threads, ctx.target.vl
    blocks = g.groups * len(channel_blocks(g.channels, vl, shape[1]))
    line = max(x.pixels[3], 4)
    kept = min(line, 4 * fitting) if len(g.taps) == 1 and x.channel == 4 else line
    near = -(-tiles // max(1, ctx.target.kept // max(1, rows * kept)))
    enough = -(-(1 if threads == 1 else EACH * threads) // blocks)
    most = max(near, min(tiles, max(enough, threads if blocks % threads else 1)))
    weights, image = g.groups * panel_bytes(g, vl, shape[1]), math.prod(g.pixels) * line
    far = max(FAR_BYTES, NEAR_BYTES / threads)
    products = math.prod(g.pixels) * g.groups * g.channels * g.depth / (TILE_WORDS if unit.step > 1 else 2 * vl)

    def cycles(cut: tuple[int, int]) -> float:
        """Of the busiest thread, that of a last item which others wait for, and of what comes from afar: the panels of
        its items, and the part of the input that they read, anew for each where they are far apart.
        """
        chunks, parts = cut
        items = chunks * blocks
        each = -(-items // threads)
        if parts > 1:
            panels, pixels = max(1.0, each / chunks) / blocks, float(min(each, chunks))
        else:
            panels, pixels = min(each, blocks) / blocks, each if chunks < near else max(1.0, each / blocks)
        return products / items * (each + WAITED) + (panels * weights + pixels * image / chunks) / far

    cuts = [(chunks, 1) for chunks in range(1, most + 1)]
    if near == 1 and g.depth <= fitting:  # else a panel is brought anew for each of them
        cuts += [(chunks, chunks) for chunks in range(2, most + 1)]
    chunks, parts = min(cuts, key=cycles)
    chunk = max(1, -(-tiles // chunks))
    return chunk, -(-tiles // chunk) if parts > 1 else 1


def collapse(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride in bytes that walks all these axes (0 for none), or None when they do not lie in a row."""
    dims = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if any(s != s2 * n2 for (_, s), (n2, s2) in itertools.pairwise(dims)):
        return None
    return dims[-1][1] if dims else 0


def pixel_strides(strides: Sequence[int]) -> tuple[int, int, int, int]:
    """Strides in bytes of the pixel axes as (N, D, H, W); missing ones are D, then H, then N."""
    n, *rest = strides if len(strides) > 1 else (0, *strides)
    d, h, w = (0,) * (3 - len(rest)) + tuple(rest)
    return n, d, h, w
