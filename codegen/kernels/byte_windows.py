"""Depthwise convolutions of s8 by the instruction that adds four products of bytes to each s32 (AVX512-VNNI).

A word of four bytes has four neighbouring pixels of one channel; it is put together from four rows of channels:

    pixel c     a0 a1 a2 ..
    pixel c+1   b0 b1 b2 ..     ->     a0 b0 c0 d0 | a1 b1 c1 d1 | ..      times      w0 w1 w2 0 | ..    window at c
    pixel c+2   c0 c1 c2 ..                                                  or       0 w0 w1 w2 | ..    window at c+1
    pixel c+3   d0 d1 d2 ..

Images are read 128 too large, as u8; sums begin with what that adds, negative.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Value
from ..segment.context import Packer
from ..target import Target
from .nests import LAST, minimum
from .signs import SIGNS
from .simd import Builder
from .vectors import i64, vector
from .whole_bytes import Haste, haste, store_in
from .windows import Result, chunk_here

FOUR = 4  # bytes of a word, and vectors of s32 for a vector of bytes
LANE = 16  # bytes among which instructions interleave
WIDE = (64, 32, 16)  # channels of a block that kernels have
SHIFT = 128  # what bytes are too large by
MOST = 4  # neighbouring pixels computed together: sums of FOUR vectors each
STACKED = 0.35  # of the time of a block that each further row takes which its vectors hold (measured: 0.2 to 0.5)


@dataclasses.dataclass(frozen=True)
class Blocks:
    """`count` blocks of `wide` channels, which begin `apart` channels from each other: neighbours may have some in
    common. Vectors hold the channels of `stacked` neighbouring rows, one behind the other.
    """

    count: int
    wide: int
    apart: int
    stacked: int = 1


def blocks_of(channels: int, rows: int) -> Blocks | None:
    """The blocks that compute so many channels of so many rows in the fewest instructions; None: too few channels."""
    found = []
    for wide, stacked in ((w, s) for w in WIDE for s in sorted({1, WIDE[0] // w})):
        count = -(-channels // wide)
        while wide <= channels and count > 1 and (channels - wide) % (count - 1):
            count += 1
        if wide <= channels and stacked <= rows:
            cost = count / stacked * (1 + STACKED * (stacked - 1))
            found.append((cost, -wide, Blocks(count, wide, (channels - wide) // max(1, count - 1), stacked)))
    return min(found, key=lambda f: f[:2])[2] if found else None


@dataclasses.dataclass(frozen=True)
class Taps:
    """How the weights of a window are laid out for blocks of `wide` channels, of which vectors hold those of `stacked`
    rows: first FOUR vectors of what sums begin with, then [begin, row, quad, FOUR vectors], for windows that begin at
    the first byte of a word and, where the `stride` is odd, for those that begin at the second one.
    """

    rows: int
    columns: int
    stride: int
    wide: int
    stacked: int = 1

    @property
    def channels(self) -> int:
        """Of all vectors of a block."""
        return self.wide * self.stacked

    @property
    def begins(self) -> int:
        return 1 + self.stride % 2

    @property
    def quads(self) -> int:
        """Words that a row of a window may touch."""
        return -(-(self.begins - 1 + self.columns) // FOUR)

    @property
    def nbytes(self) -> int:
        """Of a block's weights."""
        return FOUR * self.channels * (1 + self.begins * self.rows * self.quads)

    def at(self, begin: int, row: int, quad: int) -> int:
        """Bytes to the vectors of a quad."""
        return FOUR * self.channels * (1 + (begin * self.rows + row) * self.quads + quad)

    def pack(self, weights: np.ndarray, blocks: Blocks) -> np.ndarray:
        """Weights [rows, columns, channels] of whole numbers as bytes [blocks, nbytes], seen as f32."""
        out = np.zeros((blocks.count, self.nbytes), np.int8)
        starts = (-SHIFT * weights.sum((0, 1), dtype=np.int64)).astype(np.int32)
        for number, begin in itertools.product(range(blocks.count), range(self.begins)):
            mine = slice(number * blocks.apart, number * blocks.apart + self.wide)
            out[number, : FOUR * self.channels] = np.tile(starts[mine], self.stacked).view(np.int8)
            padded = np.zeros((self.rows, FOUR * self.quads, self.channels), np.int8)
            padded[:, begin : begin + self.columns] = np.tile(weights[..., mine], self.stacked)
            words = padded.reshape(self.rows, self.quads, FOUR, self.channels).swapaxes(2, 3)
            out[number, self.at(begin, 0, 0) : self.at(begin + 1, 0, 0)] = words.ravel()
        return out.view(np.float32)


def packer(w: Value, axes: tuple[int, ...], taps: Taps, blocks: Blocks) -> Packer:
    """What packs constant weights, whose `axes` are rows and columns of the window, 1 and channels."""

    def packed(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        laid = np.transpose(np.asarray(consts[w]), axes).reshape(taps.rows, taps.columns, -1)
        return taps.pack(laid.astype(np.int8), blocks)

    return packed


def together(width: int) -> int:
    """Neighbouring pixels that the kernel computes together in rows of that `width`: as many as registers have sums
    for, one less where that leaves a single one over.
    """
    return min(width, MOST - (width > MOST and width % MOST == 1))


@family("depthwise_bytes")
def depthwise_bytes(name: str, key: Spec, target: Target) -> str:
    """("depthwise_bytes", kh, kw, stride, pixels, left, wide, stacked, expr, kinds, streamed): one block of `wide`
    channels of some rows, `stacked` of them at a time, of `pixels` neighbours, of which `left` are left over at the end
    of a row.

    Operands: x (s8), weights (see `Taps`), y, the epilogue's. Loops end in (row chunk, block). Words: OH, rows a chunk,
    OW, x: row step, tap row step, column step; y: row, pixel; each epilogue operand: row, pixel.
    """
    _, kh, kw, stride, pixels, left, wide, stacked, expr, kinds, past = key
    taps = Taps(kh, kw, stride, wide, stacked)
    v = Builder(name, 3, taps.channels // FOUR)
    where, index, words = v.args
    count, ow = chunk_here(v, v.ld64(index, LAST - 1), words, 0), v.ld64(words, 2)
    xrow, xtaprow, column = (v.ld64(words, 3 + i) for i in range(3))
    x, w = v.ld64(where, 0), v.ld64(where, 1)
    result = Result.of(v, where, words, 6, expr, kinds, past, vectors=FOUR // stacked)
    start = [v.load(v.add(w, 4 * v.vl * u)) for u in range(FOUR)]

    def block(row: ir.Value, p: ir.Value, n: int) -> None:
        again = haste(v, expr, kinds)
        at = v.add(x, v.b.mul(row, xrow), v.mul(v.b.mul(p, column), stride))
        sums = [list(start) for _ in range(n)]
        for i in range(kh):
            line = _Line(v, v.add(at, v.mul(xtaprow, i)), (xrow, column), (n - 1) * stride + kw, wide, stacked)
            for q in range(n):
                begin = q * stride % 2
                for k in range(-(-(begin + kw) // FOUR)):
                    quad, place = line.quad(q * stride - begin + FOUR * k), taps.at(begin, i, k)
                    for u in range(FOUR):
                        weights = v.load(v.add(w, place + 4 * v.vl * u))
                        sums[q][u] = v.dot_s8(quad[u], weights, sums[q][u])

        def write(haste: Haste | None) -> None:
            to = dataclasses.replace(result, expr=haste.expr, kinds=haste.kinds) if haste else result
            for q in range(n):
                to.write(v, sums[q], [v.add(row, k) for k in range(stacked)], v.add(p, q))

        store_in(v, again, write)

    with v.loop(v.b.sdiv(v.add(count, stacked - 1), i64(stacked))) as turn:
        # a last turn of fewer rows has some of those before it once more
        row = minimum(v, v.mul(turn, stacked), v.b.sub(count, i64(stacked)))
        with v.loop(v.b.sdiv(ow, i64(pixels))) as p:
            block(row, v.mul(p, pixels), pixels)
        if left:
            block(row, v.b.sub(ow, i64(left)), left)
    return v.finish()


class _Line:
    """Quads of the first `count` columns of `stacked` rows of an image; `steps`: bytes to the next row and column.
    Words reach up to three columns further; what stands there is multiplied with 0, and the last column stands for it.
    """

    def __init__(
        self, v: Builder, at: ir.Value, steps: tuple[ir.Value, ir.Value], count: int, wide: int, stacked: int
    ) -> None:
        self.v, self.at, self.steps, self.count, self.each, self.stacked = v, at, steps, count, wide, stacked
        self.wide = wide * stacked
        self.column, self.pair, self.quad = (functools.cache(f) for f in (self._column, self._pair, self._quad))

    def _column(self, c: int) -> ir.Value:
        """A column's bytes as u8, in the order in which interleaving them leaves the channels in theirs."""
        v, b, lanes = self.v, self.v.b, self.wide // LANE
        typ, words = (vector(ir.IntType(bits), self.wide * 8 // bits) for bits in (8, 32))
        raw = self._read(v.add(self.at, v.mul(self.steps[1], c)), self.stacked)
        order = [t * lanes + lane for lane in range(lanes) for t in range(FOUR)]
        found = v.shuffle(moved := b.bitcast(raw, words), moved, order)
        return b.bitcast(b.xor(found, v.iconst(SIGNS)), typ)

    def _read(self, at: ir.Value, rows: int) -> ir.Value:
        """The bytes of some rows, one behind the other."""
        v = self.v
        if rows > 1:
            half = rows // 2
            both = self._read(at, half), self._read(v.add(at, v.mul(self.steps[0], half)), half)
            return v.shuffle(*both, range(rows * self.each))
        raw = v.b.load(v.ptr(at, vector(ir.IntType(8), self.each)))
        raw.align = 1
        return raw

    def _pair(self, c: int) -> tuple[ir.Value, ir.Value]:
        """Columns c and c + 1 interleaved by bytes: the lower and the upper halves of each `LANE`."""
        return self._interleaved(self.column(min(c, self.count - 1)), self.column(min(c + 1, self.count - 1)), 8)

    def _quad(self, c: int) -> list[ir.Value]:
        """Columns c to c + 3, a word for each channel: as many vectors as fit a vector of bytes."""
        both = zip(self.pair(c), self.pair(c + 2), strict=True)
        return [self.v.b.bitcast(x, self.v.vec) for a, d in both for x in self._interleaved(a, d, 16)]

    def _interleaved(self, a: ir.Value, d: ir.Value, bits: int) -> tuple[ir.Value, ir.Value]:
        typ = vector(ir.IntType(bits), self.wide * 8 // bits)
        a, d = (self.v.b.bitcast(x, typ) for x in (a, d))
        return _of_halves(self.v, a, d, typ.count, LANE * 8 // bits)


def _of_halves(v: Builder, a: ir.Value, d: ir.Value, n: int, lane: int) -> tuple[ir.Value, ir.Value]:
    """Elements of `a` and `d`, `n` each, in turn: of the lower half of every `lane` of them, and of the upper one."""
    half = lane // 2
    orders: list[Sequence[int]] = [
        [first + i + side for first in range(at, n, lane) for i in range(half) for side in (0, n)] for at in (0, half)
    ]
    low, high = (v.shuffle(a, d, order) for order in orders)
    return low, high


__all__ = ["SHIFT", "Blocks", "Taps", "blocks_of", "packer", "together"]
