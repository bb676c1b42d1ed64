"""Weights that are known only at the call as panels of words, each of two bf16 that are summed one behind the other:
the layout of `pairs.pack_words`.

    channels lie side by side            rows  a0 a1 ..  and  b0 b1 ..   ->   a0 b0 | a1 b1 | ..     a row of words
    what is summed lies side by side     lines of a channel, as many as a vector has lanes   ->   words, which are
                                         turned in registers

Words behind the last element are 0, and so is the second half of the last word of an odd number of elements. What
lies behind a panel's last channel is not defined.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage, dense_strides
from ..target import MatrixUnit, Target
from .elementwise import nest
from .nests import LAST, chunk_of, maximum, minimum
from .pairs import words
from .panels import Dims, turned
from .product import channel_blocks
from .simd import Builder, i64

CHUNK = 128  # words of each channel that a kernel call writes: whole tiles
ITEM = 1 << 14  # words worth a work item


def packed_words(
    ctx: Context,
    source: Operand,
    groups: Dims,
    summed: tuple[int, int],
    channels: tuple[int, int],
    nv: int,
    unit: MatrixUnit,
) -> Ref:
    """Appends the steps that pack a matrix [groups, summed, channels] of bf16, held as f32, given by the length and the
    stride in bytes of each dimension from the source's offset on, in channel blocks of `nv` vectors; returns the place
    of its panels. Either the channels or what is summed lies side by side.
    """
    (k, down), (n, across), vl = summed, channels, ctx.target.vl
    filled, blocks = words(k, unit), channel_blocks(n, vl, nv)
    each = filled * vl * sum(vectors for _, vectors, _ in blocks)
    panels = ctx.scratch((*(m for m, _ in groups), each))
    storage, _, at = source
    for vectors, same in itertools.groupby(blocks, key=lambda b: b[1]):
        parts = list(same)
        first, wide = parts[0][0], vectors * vl
        loops = [*(m for m, _ in groups), len(parts), -(-filled // CHUNK)]
        reads = (*(s for _, s in groups), wide * across, 2 * CHUNK * down)
        to = dense_strides([m for m, _ in groups], 4 * each)
        writes = (*to, 4 * wide * filled, 4 * wide * CHUNK)
        kernel = Kernel(("word_panel", vectors, unit.step, across == 4 or n == 1))
        target = Storage(panels.buffer, panels.offset + 4 * first * filled, (), (), ())
        operands: list[Operand] = [(storage, reads, at + first * across), (target, writes, 0)]
        work = min(filled, CHUNK) * vectors * 4
        chunk = max(1, ITEM // (min(filled, CHUNK) * wide))
        nest(ctx, kernel, [n - first, k, filled, CHUNK, down, across], loops, operands, 1, chunk, work)
    return Ref(panels.buffer, panels.offset)


@family("word_panel")
def word_panel(name: str, key: Spec, target: Target) -> str:
    """("word_panel", vectors, step, plain): words of a block of so many vectors of channels, in tiles of `step` words;
    `plain`: channels lie side by side, else what is summed does.

    Operands: x, y. Loops end in (block of channels, chunk of words). Words: channels, elements that are summed, words,
    words of a chunk, x step of an element, x step of a channel (bytes).
    """
    _, vectors, step, plain = key
    v = Builder(name, 3, target.vl)
    where, index, given = v.args
    channels, elements, filled, chunk, down, across = (v.ld64(given, i) for i in range(6))
    number, x, y = v.ld64(index, LAST), v.ld64(where, 0), v.ld64(where, 1)
    count = chunk_of(v, number, filled, chunk)
    left = v.b.sub(elements, v.mul(v.b.mul(number, chunk), 2))
    width = v.b.sub(channels, v.mul(v.ld64(index, LAST - 1), vectors * v.vl))

    def place(word: ir.Value, i: int | ir.Value) -> ir.Value:
        """Where vector `i` of a row of words is written."""
        tile, row = v.b.sdiv(word, i64(step)), v.b.srem(word, i64(step))
        vector = v.mul(i64(i) if isinstance(i, int) else i, 4 * v.vl * step)
        return v.add(y, v.mul(tile, 4 * v.vl * step * vectors), v.mul(row, 4 * v.vl), vector)

    if plain:
        _of_rows(v, x, down, left, count, [v.add(width, -i * v.vl) for i in range(vectors)], place)
    else:
        with v.loop(i64(vectors)) as i:
            first = v.mul(i, v.vl)
            last = maximum(v, v.add(v.b.sub(width, first), -1), i64(0))
            lines = [v.add(x, v.b.mul(v.add(first, minimum(v, i64(r), last)), across)) for r in range(v.vl)]
            _of_lines(v, lines, left, count, functools.partial(place, i=i))
    return v.finish()


def _of_rows(
    v: Builder,
    x: ir.Value,
    down: ir.Value,
    left: ir.Value,
    count: ir.Value,
    lanes: list[ir.Value],
    place: Callable[[ir.Value, int], ir.Value],
) -> None:
    """Writes `count` rows of words of a matrix of which `left` rows are left; `lanes`: channels from each vector on."""
    masks = []
    for n in lanes:
        v.set_mask(maximum(v, n, i64(0)))
        masks.append(v.mask)
    with v.loop(count) as word:
        rows = [v.add(v.mul(word, 2), half) for half in (0, 1)]
        there = [v.b.icmp_signed("<", row, left) for row in rows]
        starts = [v.add(x, v.b.mul(v.b.select(t, row, i64(0)), down)) for row, t in zip(rows, there, strict=True)]
        for i, mask in enumerate(masks):
            v.mask = mask
            halves = [v.load(v.add(start, 4 * v.vl * i)) for start in starts]
            v.set_mask(None)
            low, high = (v.b.select(t, value, v.const(0.0)) for t, value in zip(there, halves, strict=True))
            v.store(_words(v, low, high), place(word, i))


def _of_lines(
    v: Builder, lines: list[ir.Value], left: ir.Value, count: ir.Value, place: Callable[[ir.Value], ir.Value]
) -> None:
    """Writes `count` words of each of a vector's channels, whose elements lie along `lines`, `left` of them."""
    vl = v.vl

    def block(first: ir.Value) -> list[ir.Value]:
        """Rows of words from word number `first` on."""
        parts = []
        for half in (0, 1):
            v.set_mask(maximum(v, v.add(v.b.sub(left, v.mul(first, 2)), -half * vl), i64(0)))
            parts.append([v.load(v.add(line, v.mul(first, 8), 4 * vl * half)) for line in lines])
            v.set_mask(None)
        even, odd = ([2 * i + side for i in range(vl)] for side in (0, 1))
        return turned(v, [_words(v, v.shuffle(a, b, even), v.shuffle(a, b, odd)) for a, b in zip(*parts, strict=True)])

    whole = v.b.sdiv(count, i64(vl))
    with v.loop(whole) as part:
        first = v.mul(part, vl)
        for j, value in enumerate(block(first)):
            v.store(value, place(v.add(first, j)))
    first = v.mul(whole, vl)
    rest = v.b.sub(count, first)
    with v.b.if_then(v.b.icmp_signed(">", rest, i64(0))):
        for j, value in enumerate(block(first)[:-1]):
            with v.b.if_then(v.b.icmp_signed("<", i64(j), rest)):
                v.store(value, place(v.add(first, j)))


def _words(v: Builder, low: ir.Value, high: ir.Value) -> ir.Value:
    """Two vectors of f32, rounded to bf16, as the halves of words."""
    return v.floats(v.b.or_(v.b.lshr(v.bfloat(low), v.iconst(16)), v.bfloat(high)))


__all__ = ["packed_words"]
