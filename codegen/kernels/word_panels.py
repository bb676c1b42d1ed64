"""Weights that are known only at the call as panels of words, each of 2 or 4 elements that are summed one behind the
other: the layout of `pairs.pack_words`. They are held as f32, and narrowed on the way.

    channels lie side by side            rows  a0 a1 ..  and  b0 b1 ..   ->   a0 b0 | a1 b1 | ..     a row of words
    what is summed lies side by side     lines of a channel, as many as a vector has lanes   ->   words, which are
                                         turned in registers

Words behind the last element are 0, and so is what the elements leave of the last word. What lies behind a panel's last
channel is not defined.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage, dense_strides
from ..target import MatrixUnit, Target
from .elementwise import nest
from .lanes import Lane
from .nests import LAST, chunk_of, maximum, minimum
from .pairs import BF16, words
from .panels import Dims, turned
from .product import channel_blocks
from .simd import Builder
from .vectors import i64, vector

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
    """Appends the steps that pack a matrix [groups, summed, channels] of the unit's type, held as f32, given by the
    length and the stride in bytes of each dimension from the source's offset on, in channel blocks of `nv` vectors;
    returns the place of its panels. Either the channels or what is summed lies side by side.
    """
    (k, down), (n, across), vl = summed, channels, ctx.target.vl
    filled, blocks = words(k, unit), channel_blocks(n, vl, nv)
    each = filled * _lanes(n, vl, nv)
    panels = ctx.scratch((*(m for m, _ in groups), each))
    storage, _, at = source
    for vectors, same in itertools.groupby(blocks, key=lambda b: b[1]):
        parts = list(same)
        first, wide = parts[0][0], vectors * vl
        loops = [*(m for m, _ in groups), len(parts), -(-filled // CHUNK)]
        reads = (*(s for _, s in groups), wide * across, unit.per * CHUNK * down)
        to = dense_strides([m for m, _ in groups], 4 * each)
        writes = (*to, 4 * wide * filled, 4 * wide * CHUNK)
        kernel = Kernel(("word_panel", vectors, unit.step, across == 4 or n == 1, unit.dtype == BF16, unit.per))
        target = Storage(panels.buffer, panels.offset + 4 * first * filled, (), (), ())
        operands: list[Operand] = [(storage, reads, at + first * across), (target, writes, 0)]
        work = min(filled, CHUNK) * vectors * 4
        chunk = max(1, ITEM // (min(filled, CHUNK) * wide))
        nest(ctx, kernel, [n - first, k, filled, CHUNK, down, across], loops, operands, 1, chunk, work)
    return Ref(panels.buffer, panels.offset)


def unshifted_sums(ctx: Context, panels: Ref, groups: int, k: int, n: int, nv: int, unit: MatrixUnit) -> Lane:
    """Appends the steps that compute what sums of a unit with a shift begin with, as `pairs.unshifted` has it, from
    panels of so many `groups` that `packed_words` makes; a lane over [groups, channels].
    """
    vl, filled, padded = ctx.target.vl, words(k, unit), _lanes(n, ctx.target.vl, nv)
    sums, packed = ctx.scratch((groups, padded)), Storage(panels.buffer, panels.offset, (), (), ())
    for vectors, same in itertools.groupby(channel_blocks(n, vl, nv), key=lambda b: b[1]):
        parts = list(same)
        first, wide = parts[0][0], 4 * vectors * vl
        target = Storage(sums.buffer, sums.offset + 4 * first, (), (), ())
        operands: list[Operand] = [
            (packed, (4 * filled * padded, filled * wide), 4 * first * filled),
            (target, (4 * padded, wide), 0),
        ]
        kernel, chunk = Kernel(("panel_sums", vectors, unit.shift)), max(1, ITEM // (filled * vectors * vl))
        nest(ctx, kernel, [filled], [groups, len(parts)], operands, 1, chunk, filled * vectors)
    return Lane(Ref(sums.buffer, sums.offset), (0, 0, 0, 0), 4, 4 * padded, begins=True)


def _lanes(n: int, vl: int, nv: int) -> int:
    """Lanes of all vectors of `n` channels in blocks of at most `nv` vectors."""
    return vl * sum(vectors for _, vectors, _ in channel_blocks(n, vl, nv))


@family("panel_sums")
def panel_sums(name: str, key: Spec, target: Target) -> str:
    """("panel_sums", vectors, shift): minus `shift` times the sum of all s8 of each channel of a panel of so many
    vectors, as the bits of s32 (AVX512-VNNI).

    Operands: a panel, sums. Words: words of a channel.
    """
    _, vectors, shift = key
    v = Builder(name, 3, target.vl)
    where, _, given = v.args
    panel, sums, filled = v.ld64(where, 0), v.ld64(where, 1), v.ld64(given, 0)
    shifts = v.floats(v.iconst(int.from_bytes(bytes([shift] * 4), "little", signed=True)))
    with v.carry(filled, [v.floats(v.iconst(0))] * vectors) as (word, totals, done):
        row = v.add(panel, v.mul(word, 4 * vectors * v.vl))
        done([v.dot_s8(shifts, v.load(v.add(row, 4 * v.vl * i)), t) for i, t in enumerate(totals)])
    for i, total in enumerate(v.carried):
        v.store(v.floats(v.b.sub(v.iconst(0), v.bits(total))), v.add(sums, 4 * v.vl * i))
    return v.finish()


@family("word_panel")
def word_panel(name: str, key: Spec, target: Target) -> str:
    """("word_panel", vectors, step, plain, rounded, per): words of a block of so many vectors of channels, in tiles of
    `step` words of `per` elements: bf16 of numbers that are `rounded`, else s8 or s16 of whole numbers; `plain`:
    channels lie side by side, else what is summed does.

    Operands: x, y. Loops end in (block of channels, chunk of words). Words: channels, elements that are summed, words,
    words of a chunk, x step of an element, x step of a channel (bytes).
    """
    _, vectors, step, plain, rounded, per = key
    v = Builder(name, 3, target.vl)
    narrow = functools.partial(_narrow, v, rounded, 32 // per)
    where, index, given = v.args
    channels, elements, filled, chunk, down, across = (v.ld64(given, i) for i in range(6))
    number, x, y = v.ld64(index, LAST), v.ld64(where, 0), v.ld64(where, 1)
    count = chunk_of(v, number, filled, chunk)
    left = v.b.sub(elements, v.mul(v.b.mul(number, chunk), per))
    width = v.b.sub(channels, v.mul(v.ld64(index, LAST - 1), vectors * v.vl))

    def place(word: ir.Value, i: int | ir.Value) -> ir.Value:
        """Where vector `i` of a row of words is written."""
        tile, row = v.b.sdiv(word, i64(step)), v.b.srem(word, i64(step))
        vector = v.mul(i64(i) if isinstance(i, int) else i, 4 * v.vl * step)
        return v.add(y, v.mul(tile, 4 * v.vl * step * vectors), v.mul(row, 4 * v.vl), vector)

    if plain:
        _of_rows(v, x, down, left, count, [v.add(width, -i * v.vl) for i in range(vectors)], narrow, per, place)
    else:
        with v.loop(i64(vectors)) as i:
            first = v.mul(i, v.vl)
            last = maximum(v, v.add(v.b.sub(width, first), -1), i64(0))
            lines = [v.add(x, v.b.mul(v.add(first, minimum(v, i64(r), last)), across)) for r in range(v.vl)]
            _of_lines(v, lines, left, count, narrow, per, functools.partial(place, i=i))
    return v.finish()


Narrow = Callable[[ir.Value], ir.Value]  # a vector of f32 -> one of elements


def _narrow(v: Builder, rounded: bool, bits: int, x: ir.Value) -> ir.Value:
    whole = v.b.lshr(v.bfloat(x), v.iconst(16)) if rounded else v.b.fptosi(x, v.ivec)
    return v.b.trunc(whole, vector(ir.IntType(bits), v.vl))


def _of_rows(
    v: Builder,
    x: ir.Value,
    down: ir.Value,
    left: ir.Value,
    count: ir.Value,
    lanes: list[ir.Value],
    narrow: Narrow,
    per: int,
    place: Callable[[ir.Value, int], ir.Value],
) -> None:
    """Writes `count` rows of words of `per` elements, of a matrix of which `left` rows are left; `lanes`: channels from
    each vector on.
    """
    masks = []
    for n in lanes:
        v.set_mask(maximum(v, n, i64(0)))
        masks.append(v.mask)
    with v.loop(count) as word:
        rows = [v.add(v.mul(word, per), j) for j in range(per)]
        there = [v.b.icmp_signed("<", row, left) for row in rows]
        starts = [v.add(x, v.b.mul(v.b.select(t, row, i64(0)), down)) for row, t in zip(rows, there, strict=True)]
        for i, mask in enumerate(masks):
            v.mask = mask
            loaded = [v.load(v.add(start, 4 * v.vl * i)) for start in starts]
            v.set_mask(None)
            parts = [narrow(v.b.select(t, value, v.const(0.0))) for t, value in zip(there, loaded, strict=True)]
            wide = [v.b.shl(v.b.zext(p, v.ivec), v.iconst(32 // per * j)) for j, p in enumerate(parts)]
            v.store(v.floats(functools.reduce(v.b.or_, wide)), place(word, i))


def _of_lines(
    v: Builder,
    lines: list[ir.Value],
    left: ir.Value,
    count: ir.Value,
    narrow: Narrow,
    per: int,
    place: Callable[[ir.Value], ir.Value],
) -> None:
    """Writes `count` words of `per` elements of each of a vector's channels, whose elements lie along `lines`, `left`
    of them.
    """
    vl = v.vl

    def block(first: ir.Value) -> list[ir.Value]:
        """Rows of words from word number `first` on."""
        parts = []
        for j in range(per):
            v.set_mask(maximum(v, v.add(v.b.sub(left, v.mul(first, per)), -j * vl), i64(0)))
            parts.append([narrow(v.load(v.add(line, v.mul(first, 4 * per), 4 * vl * j))) for line in lines])
            v.set_mask(None)
        return turned(v, [v.b.bitcast(_joined(v, vectors), v.vec) for vectors in zip(*parts, strict=True)])

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


def _joined(v: Builder, parts: Sequence[ir.Value]) -> ir.Value:
    """Vectors of as many elements each, a power of two of them, one behind the other in one."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.count)
        parts = [v.shuffle(a, b, lanes) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


__all__ = ["packed_words", "unshifted_sums"]
