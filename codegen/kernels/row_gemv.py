"""A few rows times a large matrix whose rows are the channels, [N, K], read once, where it lies and as it is stored.

    y[n] = W[n, :] . x          tied embeddings; kernels as PyTorch's files hold them

Each thread has channels of its own; several rows of W are read together, each a stream that goes on in the next row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Value
from ..rules.expressions import Expr
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..target import Target
from .elementwise import nest
from .gemv import ITEM_BYTES, ITEMS, ROWS, Blocks
from .kept_weights import bits
from .lanes import Lane
from .nests import LAST, chunk_of
from .parts import LINE, add_up, walked
from .simd import Builder
from .streams import READINGS, Reading, in_streams, reading_of
from .vectors import F32, i64

#: what these kernels read as it is stored
READ = ("float32", "bfloat16", "float16", "int8")
SUMS = 24  # that registers hold beside what is multiplied


@dataclasses.dataclass(frozen=True)
class Channels:
    """Weights [channels, depth], times `scale`, one for each channel, where there is one."""

    value: Value
    channels: int
    depth: int
    scale: Value | None = None


def channels_of(w: Value, n: int, k: int) -> Channels | None:
    """Weights whose first axes are the n channels and whose others the k summed ones: in the form in which the model
    keeps them, as they are computed where these kernels do not read that, None where they do not read either.
    """
    by_channel = w.scale is None or (w.scale.size == n and w.scale.shape[:1] == (n,))
    if w.source is not None and w.source.dtype in READ and by_channel:
        return Channels(w.source, n, k, w.scale)
    return Channels(w, n, k) if w.dtype in READ else None


def add_row_gemv(
    ctx: Context, x: Lane, m: int, w: Channels, lanes: Sequence[Lane], expr: Expr, blocks: Blocks | None = None
) -> None:
    """Appends lanes[0] = `expr` of x @ w.T and of the other lanes; x f32 [m, depth], its rows side by side. `blocks`:
    so many of x, each times a matrix of its own, w is one of these; rows of the result are [batch, m].
    """
    n, k, dtype = w.channels, w.depth, w.value.dtype
    batch, lead = (blocks.batch, ((x.group,), (blocks.step,), (4 * m * n,))) if blocks else (1, ((), (), ()))
    at, row = blocks.place if blocks and blocks.place else (Ref(ctx.raw_const(w.value), 0), k * bits(dtype) // 8)
    how = reading_of(ctx, w.value)
    reading = READINGS[how]
    most = min(ITEMS * ctx.threads // batch, n * row // ITEM_BYTES, n // reading.streams)
    items = 1 if ctx.threads == 1 else max(1, most)
    share = -(-n // items)
    y = ctx.scratch((1, batch * m, n))
    for first in range(0, m, ROWS):
        count = min(ROWS, m - first)
        operands = [
            walked(Ref(x.ref.buffer, x.ref.offset + first * x.pixels[3]), *lead[0], 0),
            walked(at, *lead[1], row * share),
            walked(Ref(y.buffer, y.offset + 4 * n * first), *lead[2], 4 * share),
        ]
        if w.scale is not None:
            operands.append(walked(_scales(ctx, w), 4 * share))
        kernel = Kernel(("row_gemv", count, dtype, w.scale is not None, how))
        units = count * share * -(-k // ctx.target.vl)
        loops = ((batch,) if blocks else ()) + (-(-n // share),)
        early = (
            None
            if blocks or w.value not in ctx.consts
            else in_streams(at, row, share, n, _together(reading, count).streams)
        )
        nest(ctx, kernel, [k, share, n, row, x.pixels[3], 4 * n], loops, operands, 2, 1, units, early=early)
    add_up(ctx, y, lanes, expr)


def _together(reading: Reading, m: int) -> Reading:
    """The reading with as many streams as registers hold sums for, where m rows of x are multiplied."""
    return dataclasses.replace(reading, streams=max(1, min(reading.streams, SUMS // m)))


def _scales(ctx: Context, w: Channels) -> Ref:
    """The scales, f32 [channels]."""
    scale = w.scale
    assert scale is not None

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        return np.asarray(consts[scale], np.float32).ravel()

    return ctx.pack(4 * w.channels, packer, ("scales by channel", scale))


@family("row_gemv")
def row_gemv(name: str, key: Spec, target: Target) -> str:
    """("row_gemv", m, dtype, scaled, how): y = x @ W.T for a range of W's rows; x [m, K] and y [m, N] of f32, W [N, K]
    of `dtype` as it is stored, each row times its scale of f32 if it is `scaled`. `how`: a name of `READINGS`.

    The last loop counts ranges. Operands: x, W, y, the scales; all but x begin at the range. Words: K, rows of a range,
    N, bytes of a row of W, of x, of y.
    """
    _, m, dtype, scaled, how = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, w, y = (v.ld64(where, i) for i in range(3))
    k, row = v.ld64(words, 0), v.ld64(words, 3)
    n = chunk_of(v, v.ld64(index, LAST), v.ld64(words, 2), v.ld64(words, 1))
    xs, ys = ([v.add(at, v.mul(v.ld64(words, i), p)) for p in range(m)] for at, i in ((x, 4), (y, 5)))
    spread = v.b.sdiv(row, v.mul(k, bits(dtype) // 8))
    reading = _together(READINGS[how], m)
    kernel = _Rows(v, xs, w, ys, k, row, dtype, v.ld64(where, 3) if scaled else None, spread, reading)
    each = reading.apart(v, n)
    with v.loop(each) as r:
        kernel.sum([v.add(v.mul(each, s), r) for s in range(reading.streams)])
    done = v.mul(each, reading.streams)
    with v.loop(v.b.sub(n, done)) as r:
        kernel.sum([v.add(done, r)])
    return v.finish()


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Rows of W at the address `w`, of `row` bytes and `k` elements each, and of each of m rows of x and y the address;
    `scales`: the address of the rows' scales.
    """

    v: Builder
    x: list[ir.Value]
    w: ir.Value
    y: list[ir.Value]
    k: ir.Value
    row: ir.Value
    dtype: str
    scales: ir.Value | None
    spread: ir.Value
    reading: Reading

    def sum(self, rows: list[ir.Value]) -> None:
        """Writes the results of the rows of these numbers."""
        v, nbytes = self.v, self.v.vl * bits(self.dtype) // 8
        at, each = [v.add(self.w, v.b.mul(r, self.row)) for r in rows], max(1, LINE // nbytes)
        turns, vectors = v.b.sdiv(self.k, i64(each * v.vl)), v.b.sdiv(self.k, i64(v.vl))
        with v.carry(turns, [v.const(0.0)] * (len(rows) * len(self.x))) as (turn, sums, done):
            self.reading.ask(v, [v.add(a, v.mul(turn, each * nbytes)) for a in at], self.spread)
            for u in range(each):
                sums = self._further(v.add(v.mul(turn, each), u), at, sums)
            done(sums)
        first = v.mul(turns, each)
        with v.carry(v.b.sub(vectors, first), v.carried) as (i, sums, done):
            done(self._further(v.add(first, i), at, sums))
        rest = v.b.srem(self.k, i64(v.vl))
        with v.carry(v.b.zext(v.b.icmp_signed(">", rest, i64(0)), rest.type), v.carried) as (_, sums, done):
            v.set_mask(rest)
            sums = self._further(vectors, at, sums)
            v.set_mask(None)
            done(sums)
        for number, total in enumerate(v.carried):
            r, p = rows[number // len(self.x)], number % len(self.x)
            value = v.b.extract_element(v.across(total, v.b.fadd), i64(0))
            if self.scales is not None:
                value = v.b.fmul(value, v.b.load(v.ptr(v.add(self.scales, v.mul(r, 4)), F32)))
            v.b.store(value, v.ptr(v.add(self.y[p], v.mul(r, 4)), F32)).align = 4

    def _further(self, number: ir.Value, at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """The sums with the vector of that number of each row."""
        v, nbytes = self.v, self.v.vl * bits(self.dtype) // 8
        xs = [v.load(v.add(x, v.mul(number, 4 * v.vl))) for x in self.x]
        read = [v.load_stored(v.add(a, v.mul(number, nbytes)), self.dtype) for a in at]
        pairs = ((r, x) for r in read for x in xs)
        return [v.fma(x, r, acc) for (r, x), acc in zip(pairs, sums, strict=True)]


__all__ = ["Channels", "add_row_gemv", "channels_of"]
