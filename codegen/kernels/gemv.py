"""A few rows times a large matrix that is read once, where it lies and as it is stored: as fast as memory, no packed
copy.

Memory is fast where a thread reads what lies side by side, in a few streams (see `streams.py`). So threads divide the
matrix by rows, and each sums up whole rows of it; what several of them have summed is added by a second step. Rows of
int4 are packed, two elements plus 8 in a byte: of each two vectors, the first one lies in the lower halves of the
bytes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Value
from ..rules.expressions import COPY, Expr
from ..rules.products import FEW_ROWS
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand
from ..target import Target
from .digits import add_digits, fits
from .elementwise import nest
from .kept_weights import Stored, bits
from .lanes import Lane
from .nests import LAST, chunk_of, maximum, minimum, vectors
from .parts import LINE, add_up, finished, walked
from .simd import Builder
from .streams import READINGS, Reading, in_streams, reading_of
from .vectors import I32, i64

ROWS = FEW_ROWS  # of x that are multiplied together
ITEM_BYTES = 1 << 16  # of weights that are worth a work item
ITEMS = 2  # for each thread: who is put aside meanwhile leaves some to the others
WIDE = 1 << 15  # columns whose sums stay in the caches
LONG = 1 << 11  # rows that are summed one behind the other; more of them are summed in parts, with fewer roundings
#: of each row of W that is read together with others: its elements of rows of x in vectors, and its address
_Pairs = list[tuple[list[ir.Value], ir.Value]]


@dataclasses.dataclass(frozen=True)
class Index:
    """Which matrix of a table of `limit` is read: s32 [batch, more] at `ref` (as `Rows.mode` says where it is
    outside).
    """

    ref: Ref
    limit: int
    mode: str


@dataclasses.dataclass(frozen=True)
class Blocks:
    """`batch` blocks of rows of x, each times `more` matrices, which an index names, or which lie `step` bytes apart
    (for each block). `summed`: the results of `more` matrices are added up, and each has its own part of a row of x.
    `place`: where they begin and the bytes of a row, where they are no constants.
    """

    batch: int
    more: int = 1
    summed: bool = False
    step: int = 0
    index: Index | None = None
    place: tuple[Ref, int] | None = None


def add_gemv(ctx: Context, x: Lane, m: int, w: Stored, lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of x @ w and of the other lanes; x f32 [m, rows of w], its rows side by side."""
    n, streams = w.channels, READINGS[reading_of(ctx, w.value)].streams
    parts = _parts(ctx.threads, w, streams)
    kinds = tuple({4: "v", 0: "s"}[lane.channel] for lane in lanes[1:])
    if m == 1 and x.channel == 4 and fits(ctx.target, w):
        return add_digits(ctx, x, w, lanes, expr)
    if m == parts == 1:
        return _sums(ctx, x, 1, w, w.rows, [walked(lane.ref, 0, lane.channel * WIDE) for lane in lanes], expr, kinds)
    unit = w.group if w.scale is not None and not w.by_channel else streams
    rows = -(-w.rows // parts // unit) * unit
    parts = -(-w.rows // rows)
    y = ctx.scratch((parts, m, n))
    for first in range(0, m, ROWS):
        piece = dataclasses.replace(x, ref=Ref(x.ref.buffer, x.ref.offset + first * x.pixels[3]))
        sums = walked(Ref(y.buffer, y.offset + 4 * n * first), 4 * m * n, 4 * WIDE)
        _sums(ctx, piece, min(ROWS, m - first), w, rows, [sums], COPY, ())
    add_up(ctx, y, lanes, expr)


def add_blocks(ctx: Context, x: Lane, m: int, w: Stored, blocks: Blocks, lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of x @ (each block's matrix) and of the other lanes, rows [batch, more, m], or
    [batch, m] where they are summed; x f32 [batch, m, rows of w]; w: one of the matrices, of which none is copied.
    """
    n, batch, more, streams = w.channels, blocks.batch, blocks.more, READINGS[reading_of(ctx, w.value)].streams
    rows = min(-(-w.rows // max(1, _parts(ctx.threads, w, streams) // (batch * more)) // streams) * streams, LONG)
    parts = -(-w.rows // rows)
    shape = (more, parts, batch, m, n) if blocks.summed else (parts, batch, more, m, n)
    y = ctx.scratch(shape)
    each, part, block = (y.strides[i] for i in ((0, 1, 2) if blocks.summed else (2, 0, 1)))
    for first in range(0, m, ROWS):
        piece = dataclasses.replace(x, ref=Ref(x.ref.buffer, x.ref.offset + first * x.pixels[3]))
        sums = walked(Ref(y.buffer, y.offset + 4 * n * first), block, each, part, 4 * WIDE)
        _sums(ctx, piece, min(ROWS, m - first), w, rows, [sums], COPY, (), blocks)
    added = (more * parts, batch * m, n) if blocks.summed else (parts, batch * more * m, n)
    add_up(ctx, y.reshaped(added), lanes, expr)


def _parts(threads: int, w: Stored, streams: int) -> int:
    """How many parts of the rows are summed apart, of at least a row for each of the streams."""
    nbytes = w.rows * w.channels * bits(w.value.dtype) // 8
    return 1 if threads == 1 else max(1, min(ITEMS * threads, nbytes // ITEM_BYTES, w.rows // streams))


def _sums(
    ctx: Context,
    x: Lane,
    m: int,
    w: Stored,
    rows: int,
    lanes: Sequence[Operand],
    expr: Expr,
    kinds: tuple[str, ...],
    blocks: Blocks | None = None,
) -> None:
    """The step that sums up rows of w, so many a work item, to lanes[0], by parts and runs of columns (before them by
    blocks of x and their matrices, where there are several).
    """
    k, n, dtype = w.rows, w.channels, w.value.dtype
    index = blocks.index if blocks else None
    if blocks and blocks.place:
        where, row = blocks.place
    elif dtype == "int4":
        where, row = _halves(ctx, w), _row_bytes(n, ctx.target.vl)
    else:
        where, row = Ref(ctx.raw_const(w.value), 0), n * bits(dtype) // 8
    lead = ((x.group, 4 * k * blocks.summed), (blocks.step, 0)) if blocks else ((), ())
    operands = [
        walked(x.ref, *lead[0], 4 * rows, 0),
        walked(where, *lead[1], row * rows, WIDE * bits(dtype) // 8),
        *lanes,
    ]
    if w.scale is not None:
        operands.append(walked(w.pack_scale(ctx), 0, 4 * WIDE))
    words, units = [k, rows, row, n, WIDE, w.group or k, x.pixels[3]], m * rows * -(-min(n, WIDE) // ctx.target.vl)
    if blocks and index:
        operands.append(walked(index.ref, 4 * blocks.more, 4, 0, 0))
        words += [index.limit, k * row]
    how = reading_of(ctx, w.value)
    kernel = Kernel(("gemv", m, expr, kinds, dtype, w.scale is not None, index.mode if index else "", how))
    loops = ((blocks.batch, blocks.more) if blocks else ()) + (-(-k // rows), -(-n // WIDE))
    early = None if blocks or n > WIDE else in_streams(where, row, rows, k, READINGS[how].streams)
    nest(ctx, kernel, words, loops, operands, 2, 1, units, early=early)


def _row_bytes(n: int, vl: int) -> int:
    """Bytes of a row of int4 in whole pairs of vectors."""
    return -(-n // (2 * vl)) * vl


def _halves(ctx: Context, w: Stored) -> Ref:
    """Rows of int4 with two elements in a byte."""
    k, n, vl, value = w.rows, w.channels, ctx.target.vl, w.value
    pairs = _row_bytes(n, vl) // vl

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        whole = np.zeros((k, pairs * 2 * vl), np.uint8)
        whole[:, :n] = np.asarray(consts[value]).astype(np.int8).reshape(k, n) + 8
        low, high = np.moveaxis(whole.reshape(k, pairs, 2, vl), 2, 0)
        flat = (low | high << 4).ravel()
        return np.pad(flat, (0, -flat.size % 4)).view(np.float32)

    return ctx.pack(k * pairs * vl, packer, ("halves", value, k, n))


@family("gemv")
def gemv(name: str, key: Spec, target: Target) -> str:
    """("gemv", m, expr, kinds, dtype, scaled, picked, how): y = epilogue(x @ W) for some rows of W and a range of
    columns; x [m, K] and y [m, N] of f32, W [K, N] of `dtype` as it is stored, times scales [groups of rows, N] of f32
    if it is `scaled`. An epilogue other than a copy is for m = 1. `picked`: W is one of a table's, "fill": NaN where
    there is none of that number, "clip": the nearest ("": there is no table). `how`: a name of `READINGS`.

    Loops end in (parts of the rows, runs of columns). Operands: x, W, y, the epilogue's ("v" or "s"), the scales, the
    number of the matrix. Words: K, rows of a part, bytes of a row, N, columns of a run, rows of a group (K, or a
    divisor of a part's), bytes of a row of x, matrices of a table, bytes of a matrix.
    """
    _, m, expr, kinds, dtype, scaled, picked, how = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, w, y = (v.ld64(where, i) for i in range(3))
    part, rows = v.ld64(index, LAST - 1), v.ld64(words, 1)
    k = chunk_of(v, part, v.ld64(words, 0), rows)
    total, group = v.ld64(words, 3), v.ld64(words, 5)
    n = chunk_of(v, v.ld64(index, LAST), total, v.ld64(words, 4))
    xs, ys = (
        [v.add(at, v.mul(step, p)) for p in range(m)] for at, step in ((x, v.ld64(words, 6)), (y, v.mul(total, 4)))
    )
    inside = None
    if picked:
        number, inside = _number(v, v.ld64(where, 3 + len(kinds) + scaled), v.ld64(words, 7))
        w = v.add(w, v.b.mul(number, v.ld64(words, 8)))
    row = v.ld64(words, 2)
    spread = _spread(v, row, v.mul(total, bits(dtype)), dtype)
    reading = READINGS[how]
    held = max(1, target.registers // 2 // reading.streams)
    columns = _Columns(v, xs, w, ys, row, n, dtype, spread, reading, held)
    for at in ys:
        _clear(v, n, at)
    span = minimum(v, group, k)
    spans = v.b.sdiv(v.add(k, v.b.sub(span, i64(1))), span)
    if picked == "fill":  # nothing is read where there is no such matrix
        spans = v.b.select(inside, spans, i64(0))
    with v.loop(spans) as g:
        first = v.b.mul(g, span)
        number = v.b.sdiv(v.add(v.b.mul(part, rows), first), group)
        scales = v.add(v.ld64(where, 3 + len(kinds)), v.b.mul(number, v.mul(total, 4))) if scaled else None
        columns.add_rows(first, chunk_of(v, g, k, span), scales)
    if expr != COPY:
        bases = [v.ld64(where, 2 + i) for i in range(1 + len(kinds))]
        finished(v, n, expr, kinds, bases, lambda o: v.load(v.add(y, o)))
    if picked == "fill":
        with v.b.if_then(v.b.not_(inside)):
            for at in ys:
                vectors(v, n, functools.partial(_missing, v, at))
    return v.finish()


def _spread(v: Builder, row: ir.Value, own: ir.Value, dtype: str) -> ir.Value:
    """How many lengths of a row, which has so many bits of its own, lie from one row to the next; 1 where rows of int4
    are padded.
    """
    if dtype == "int4":
        return i64(1)
    return v.b.sdiv(row, v.b.lshr(own, i64(3)))


def _number(v: Builder, at: ir.Value, limit: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The s32 at an address as the number of one of `limit`, the nearest, and whether it was one."""
    given = v.b.sext(v.b.load(v.ptr(at, I32)), limit.type)
    nearest = minimum(v, maximum(v, given, i64(0)), v.b.sub(limit, i64(1)))
    return nearest, v.b.icmp_unsigned("<", given, limit)


def _missing(v: Builder, at: ir.Value, offset: ir.Value) -> None:
    """NaN for a vector of a result."""
    v.store(v.const(float("nan")), v.add(at, offset))


def _clear(v: Builder, n: ir.Value, at: ir.Value) -> None:
    """Zeroes for n columns."""
    vectors(v, n, lambda o: v.store(v.const(0.0), v.add(at, o)))


@dataclasses.dataclass(frozen=True)
class _Columns:
    """`n` columns of y += x @ W, by addresses, of each row of x and y; a row of W has `step` bytes of elements of
    `dtype`. `held`: rows of x whose elements registers hold for the rows of W that are read together; what is read of W
    for more of them is in the first cache.
    """

    v: Builder
    x: list[ir.Value]
    w: ir.Value
    y: list[ir.Value]
    step: ir.Value
    n: ir.Value
    dtype: str
    spread: ir.Value
    reading: Reading
    held: int

    @property
    def wide(self) -> int:
        """Columns of a block: one vector, or the two whose halves share bytes."""
        return self.v.vl * (2 if self.dtype == "int4" else 1)

    @property
    def nbytes(self) -> int:
        """Bytes of a row in a block."""
        return self.wide * bits(self.dtype) // 8

    def add_rows(self, first: ir.Value, rows: ir.Value, scales: ir.Value | None) -> None:
        """Adds to y what `rows` rows from number `first` on contribute, times the row at the address `scales`."""
        v, streams = self.v, self.reading.streams
        each = self.reading.apart(v, rows)
        with v.loop(each) as r:
            self._together([v.add(first, r, v.mul(each, s)) for s in range(streams)], scales)
        done = v.mul(each, streams)
        with v.loop(v.b.sub(rows, done)) as r:
            self._together([v.add(first, done, r)], scales)

    def _together(self, rows: list[ir.Value], scales: ir.Value | None) -> None:
        """Adds what rows of these numbers contribute."""
        v = self.v
        at = [v.add(self.w, v.b.mul(r, self.step)) for r in rows]
        for first in range(0, len(self.x), self.held):
            xs, ys = (lines[first : first + self.held] for lines in (self.x, self.y))
            factors = [[v.broadcast(v.add(x, v.mul(r, 4))) for x in xs] for r in rows]
            self._add(list(zip(factors, at, strict=True)), ys, scales, first == 0)

    def _add(self, pairs: _Pairs, ys: list[ir.Value], scales: ir.Value | None, ask: bool) -> None:
        """Adds to rows of y at these addresses what rows of W contribute; `ask`: which are read for the first time."""
        v, each = self.v, max(1, LINE // self.nbytes)  # blocks of a turn of the loop
        turns = v.b.sdiv(self.n, i64(each * self.wide))
        with v.loop(turns) as turn:
            if ask:
                self.reading.ask(v, [v.add(w, v.mul(turn, each * self.nbytes)) for _, w in pairs], self.spread)
            for u in range(each):
                self._block(v.add(v.mul(turn, each), u), pairs, ys, scales)
        done, blocks = v.mul(turns, each), v.b.sdiv(self.n, i64(self.wide))
        with v.loop(v.b.sub(blocks, done)) as i:
            self._block(v.add(done, i), pairs, ys, scales)
        rest = v.b.srem(self.n, i64(self.wide))
        with v.b.if_then(v.b.icmp_signed(">", rest, i64(0))):
            self._block(blocks, pairs, ys, scales, rest)

    def _block(
        self,
        number: ir.Value,
        pairs: _Pairs,
        ys: list[ir.Value],
        scales: ir.Value | None,
        lanes: ir.Value | None = None,
    ) -> None:
        """A block of columns, of which there are `lanes` (None: all)."""
        v, halves = self.v, range(self.wide // self.v.vl)
        at, offset = v.mul(number, 4 * self.wide), v.mul(number, self.nbytes)
        masks, fresh = [_left(v, lanes, h) for h in halves], scales is not None or self.dtype == "int4"
        places = [[v.add(y, at, 4 * v.vl * h) for y in ys] for h in halves]
        sums: list[list[ir.Value]] = []
        for h in halves:
            v.set_mask(masks[h])
            sums.append([v.const(0.0) if fresh else v.load(p) for p in places[h]])
        for xs, w in pairs:
            read = self._read(v.add(w, offset), masks)
            sums = [[v.fma(x, r, a) for x, a in zip(xs, acc, strict=True)] for r, acc in zip(read, sums, strict=True)]
        for h in halves:
            v.set_mask(masks[h])
            if fresh:
                factor = v.const(0.0625**h)
                if scales is not None:
                    factor = v.b.fmul(factor, v.load(v.add(scales, at, 4 * v.vl * h)))
                sums[h] = [v.fma(a, factor, v.load(p)) for a, p in zip(sums[h], places[h], strict=True)]
            for a, p in zip(sums[h], places[h], strict=True):
                v.store(a, p)
        v.set_mask(None)

    def _read(self, addr: ir.Value, masks: list[ir.Value | None]) -> list[ir.Value]:
        """The vectors of a block."""
        if self.dtype == "int4":  # rows are padded
            self.v.set_mask(None)
            return self.v.load_halves(addr)
        self.v.set_mask(masks[0])
        return [self.v.load_stored(addr, self.dtype)]


def _left(v: Builder, lanes: ir.Value | None, half: int) -> ir.Value | None:
    """How many of `lanes` are in a vector of a block."""
    return None if lanes is None else maximum(v, minimum(v, v.b.sub(lanes, i64(half * v.vl)), i64(v.vl)), i64(0))
