"""The matrix micro-kernel on tiles: 16 rows of 64 bytes that are multiplied as a whole (AMX).

Interface and words are those of `kernels.gemm`, for `walk` NEAR alone: an element of a run is a word of 4 bytes. A tile
of the input has 16 words of each pixel, one of the weights 16 words of each of 16 channels. A block of more than 16
pixels has two tiles of the input, which share the weights: what comes from the L2 cache bounds the rate. Sums are kept
in tiles over the whole reduction, then go through memory to the epilogue.

Runs are filled up to multiples of 16 words, and weights are packed tile by tile. Where the pixels of a block do not lie
evenly apart, as at the end of a row of an image, their words are copied first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..target import Target
from . import gemm
from .epilogue import Block, Epilogue, finish, numbers_of, partial_sums
from .gemm import ARGUMENTS, NEAR, over_tiles
from .simd import Builder
from .vectors import I32, i64, vector
from .whole_bytes import haste

ROWS, WORDS, LINE = 16, 16, 64  # of a tile: rows, words of a row, bytes of a row
MOST = 4  # tiles of sums, which have the first numbers
X, W = (4, 5), (5, 6, 7)  # numbers of the tiles of the input, and of those that the weights take in turn
I8 = ir.IntType(8)
#: type of what is multiplied -> the instruction
PRODUCTS = {"bfloat16": "tdpbf16ps", "int8": "tdpbssd"}


class Tiles(Protocol):
    """Tiles by number. Addresses are of i64, and so is `stride`, the bytes from one row to the next."""

    def begin(self, rows: Sequence[int]) -> None:
        """The 8 tiles have so many rows from here on."""

    def zero(self, tile: int) -> None: ...

    def load(self, tile: int, addr: ir.Value, stride: ir.Value) -> None: ...

    def multiply(self, sums: int, x: int, w: int) -> None:
        """Adds to each sum what all elements of its words give."""

    def store(self, tile: int, addr: ir.Value, stride: ir.Value) -> None: ...

    def end(self) -> None:
        """The tiles are not needed any more."""


Load = Callable[[Tiles, ir.Value], None]  # (tiles, bytes behind the pixels' addresses)


@dataclasses.dataclass(frozen=True)
class Amx:
    """The tiles of Intel's AMX; `product`: the instruction that multiplies two."""

    v: Builder
    product: str

    @classmethod
    def of(cls, v: Builder, dtype: str) -> Amx:
        """The tiles that multiply a type."""
        return cls(v, PRODUCTS[dtype])

    def _call(self, name: str, *args: ir.Value) -> None:
        self.v.call(f"llvm.x86.{name}", ir.VoidType(), *args)

    def begin(self, rows: Sequence[int]) -> None:
        """Writes the shapes as LDTILECFG reads them: palette 1, bytes of a row (u16) from byte 16, rows from 48 on."""
        shapes = bytearray(LINE)
        shapes[0] = 1
        for tile, count in enumerate(rows):
            shapes[16 + 2 * tile] = LINE
            shapes[48 + tile] = count
        words = [int.from_bytes(shapes[i : i + 4], "little") for i in range(0, LINE, 4)]
        place = self.v.local(WORDS)
        self.v.b.store(ir.Constant(vector(I32, WORDS), words), self.v.ptr(place, vector(I32, WORDS))).align = LINE
        self._call("ldtilecfg", self.v.ptr(place, I8))

    def zero(self, tile: int) -> None:
        self._call("tilezero", ir.Constant(I8, tile))

    def load(self, tile: int, addr: ir.Value, stride: ir.Value) -> None:
        self._call("tileloadd64", ir.Constant(I8, tile), self.v.ptr(addr, I8), stride)

    def multiply(self, sums: int, x: int, w: int) -> None:
        self._call(self.product, *(ir.Constant(I8, tile) for tile in (sums, x, w)))

    def store(self, tile: int, addr: ir.Value, stride: ir.Value) -> None:
        self._call("tilestored64", ir.Constant(I8, tile), self.v.ptr(addr, I8), stride)

    def end(self) -> None:
        self._call("tilerelease")


@dataclasses.dataclass(frozen=True)
class _Input:
    """The pixels of a tile, whose addresses are listed from `rows` on, the first one `start`; `even`: they lie `stride`
    bytes apart. `buffer`: room for a tile.
    """

    v: Builder
    tile: int
    rows: ir.Value
    height: int
    start: ir.Value
    stride: ir.Value
    even: ir.Value
    buffer: ir.Value

    @classmethod
    def of(cls, v: Builder, tile: int, rows: ir.Value, height: int) -> _Input:
        """What is known of them before the first tile."""
        pixels = [v.ld64(rows, r) for r in range(height)]
        steps = [v.b.sub(b, a) for a, b in itertools.pairwise(pixels)] or [i64(LINE)]
        even: ir.Value = ir.Constant(ir.IntType(1), 1)
        for step in steps[1:]:
            even = v.b.and_(even, v.b.icmp_signed("==", step, steps[0]))
        return cls(v, tile, rows, height, pixels[0], steps[0], even, v.local(ROWS * WORDS))

    def load(self, t: Tiles, at: ir.Value) -> None:
        """The words that lie `at` bytes behind the pixels' addresses."""
        t.load(self.tile, self.v.add(self.start, at), self.stride)

    def copy(self, t: Tiles, at: ir.Value) -> None:
        """As `load`, of pixels that lie anywhere."""
        v = self.v
        for r in range(self.height):
            v.store(v.load(v.add(v.ld64(self.rows, r), at)), v.add(self.buffer, r * LINE))
        t.load(self.tile, self.buffer, i64(LINE))


@family("tiles")
def tiles(name: str, key: Spec, target: Target) -> str:
    """Arguments as of `gemm`."""
    return kernel(name, key, target, Amx.of)


def kernel(name: str, key: Spec, target: Target, tiles_of: Callable[[Builder, str], Tiles]) -> str:
    """The kernel's text; `tiles_of`: the tiles that multiply a type."""
    _, mr, nv, tail, expr, kinds, known, dtype, walk, lines = key
    v = Builder(name, ARGUMENTS, target.vl)
    heights = [mr] if mr <= ROWS else [-(-mr // 2), mr // 2]
    assert walk == NEAR and len(heights) * nv <= MOST and v.vl == WORDS and not known
    xs, w, ys, es, taps, ntaps, run, first, last, lanes, walked, *_ = v.args
    t, row = tiles_of(v, dtype), nv * LINE
    inputs = [_Input.of(v, X[j], v.add(xs, 8 * j * heights[0]), n) for j, n in enumerate(heights)]
    even = functools.reduce(v.b.and_, (x.even for x in inputs))
    sums, blocks = v.local(mr * WORDS * nv), v.b.sdiv(run, i64(WORDS))
    numbers = numbers_of(v, kinds, es)
    t.begin(_rows(heights, nv))
    with over_tiles(v, walked) as (number, on):
        x_on, y_on = on(gemm.X), on(gemm.Y)
        for i in range(len(heights) * nv):
            t.zero(i)
        with v.loop(ntaps) as n:
            at, wt = v.add(v.ld64(v.add(taps, v.mul(n, 8))), x_on), v.add(w, v.mul(v.mul(n, run), row))
            with v.b.if_else(even) as (evenly, anyhow):
                for place, loads in ((evenly, [x.load for x in inputs]), (anyhow, [x.copy for x in inputs])):
                    with place, v.loop(blocks) as k:
                        if lines:
                            turn = v.add(v.mul(v.add(v.mul(number, ntaps), n), blocks), k)
                            gemm.ask(v, w, v.mul(v.mul(ntaps, run), row), turn, lines)
                        _multiply(v, t, loads, v.add(at, v.mul(k, LINE)), v.add(wt, v.mul(k, WORDS * row)), nv)
        for j, i in itertools.product(range(len(heights)), range(nv)):
            t.store(j * nv + i, v.add(sums, j * heights[0] * row + i * LINE), i64(row))
        e_on = [on(gemm.OPERANDS + k) for k in range(len(kinds))]
        with v.loop(i64(mr)) as r:
            block = Block(1, nv, lanes if tail else None, v.add(ys, v.mul(r, 8)), y_on)
            again = haste(v, expr, kinds) if nv - tail > 1 else None
            found = [v.load(v.add(sums, v.mul(r, row), i * LINE)) for i in range(nv)]
            whole = [_sum(v, a, p, dtype) for a, p in zip(found, partial_sums(v, block, first), strict=True)]
            finish(v, block, whole, Epilogue(expr, kinds, es, e_on, v.mul(r, 8), numbers), last, again)
    t.end()
    return v.finish()


def _rows(heights: Sequence[int], nv: int) -> list[int]:
    """Rows of each of the 8 tiles, for inputs of so many pixels and weights of `nv` tiles."""
    rows = [ROWS] * 8
    for j, height in enumerate(heights):
        rows[X[j]] = height
        rows[j * nv : (j + 1) * nv] = [height] * nv
    return rows


def _multiply(v: Builder, t: Tiles, loads: Sequence[Load], at: ir.Value, w: ir.Value, nv: int) -> None:
    """Adds the products of the inputs' tiles and those of the weights, one behind the other from `w` on."""
    free = W[len(loads) - 1 :]  # a second input takes the first of them
    loads[0](t, at)
    for i in range(nv):
        t.load(free[i % len(free)], v.add(w, i * ROWS * LINE), i64(LINE))
        t.multiply(i, X[0], free[i % len(free)])
    for line in range(nv * ROWS):  # of the next ones
        v.prefetch(v.add(w, (nv * ROWS + line) * LINE))
    for j, load in enumerate(loads[1:], 1):
        load(t, at)
        for i in range(nv):
            t.multiply(j * nv + i, X[j], free[i])


def _sum(v: Builder, a: ir.Value, b: ir.Value, dtype: str) -> ir.Value:
    """Of two vectors of sums: of int8 they are the bits of s32."""
    return v.floats(v.b.add(v.bits(a), v.bits(b))) if dtype == "int8" else v.b.fadd(a, b)


__all__ = ["Amx", "Tiles", "kernel", "tiles"]
