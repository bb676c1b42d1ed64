"""Weights that are known only at the call: steps that pack them in the layout of `product.pack_panels`.

Every element is read once. Where channels lie side by side, rows of a panel are copied; where the elements that are
summed do, blocks of vectors are turned in registers.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Value
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage, dense_strides
from ..target import Target
from .elementwise import coalesce, copy, nest
from .nests import LAST, maximum, minimum
from .product import channel_blocks
from .simd import Builder
from .vectors import i64

CHUNK = 256  # elements of the dimension that a kernel walks in one call
ITEM = 1 << 15  # elements worth a work item

Dims = Sequence[tuple[int, int]]  # (length, stride in bytes)
Taken = tuple[tuple[int, int], ...]  # (first, step) of the part of a window that is used, by dimension


@dataclasses.dataclass(frozen=True)
class Filters:
    """Weights of a convolution; `axes` bring their dimensions to (window..., channels in of a group, channels out).

    `source`: where the elements of computed ones lie, over the dimensions of `value`; None for constants.
    """

    value: Value
    axes: tuple[int, ...]
    source: Operand | None = None

    def start(self) -> Operand:
        """Where computed ones begin."""
        assert self.source is not None, "constants are packed at bind"
        storage, _, at = self.source
        return storage, (), at

    def dims(self) -> list[tuple[int, int]]:
        """(length, stride in bytes) of the window's dimensions, of channels in and of channels out of computed ones."""
        assert self.source is not None, "constants are packed at bind"
        return [(self.value.shape[d], self.source[1][d]) for d in self.axes]

    def at_call(self, ctx: Context, groups: int, nv: int, taken: Taken | None = None) -> Ref:
        """Appends the steps that pack computed weights in channel blocks of `nv` vectors; `taken`: the part of the
        window that is used (None: all of it)."""
        (storage, _, at), (*window, inner, (n, across)) = self.start(), self.dims()
        used = taken or ((0, 1),) * len(window)
        at += sum(first * s for (first, _), (_, s) in zip(used, window, strict=True))
        taps = [(-(-(m - first) // k), s * k) for (first, k), (m, s) in zip(used, window, strict=True)]
        each = n // groups
        return packed(ctx, (storage, (), at), [(groups, each * across)], [*taps, inner], (each, across), nv)


def packed(ctx: Context, source: Operand, groups: Dims, inner: Dims, channels: tuple[int, int], nv: int) -> Ref:
    """Appends the steps that pack a matrix [groups, inner, channels], given by the walk of each dimension from the
    source's offset on, and returns the place of its panels. What lies behind a panel's last channel is not defined.
    Raises `Unsupported` for more dimensions than a nest has.
    """
    (n, across), vl = channels, ctx.target.vl
    k, blocks = math.prod(m for m, _ in inner), channel_blocks(n, vl, nv)
    each = sum(vectors for _, vectors, _ in blocks) * vl * k
    panels = ctx.scratch((math.prod(m for m, _ in groups), each))
    to = dense_strides([m for m, _ in groups], 4 * each)
    for vectors, same in itertools.groupby(blocks, key=lambda b: b[1]):
        parts = list(same)
        first, width = parts[0][0], 4 * vectors * vl
        walk = _Walk(source, groups, to, inner, dense_strides([m for m, _ in inner], width), n, across)
        target = Storage(panels.buffer, panels.offset + 4 * first * k, (), (), ())
        walk.append(ctx, target, first, vectors, len(parts))
    return Ref(panels.buffer, panels.offset)


@dataclasses.dataclass(frozen=True)
class _Walk:
    """How a matrix is read and its panels are written: `to`, `down` are strides of panels over groups and inner
    dimensions; `n` channels lie `across` bytes apart."""

    source: Operand
    groups: Dims
    to: tuple[int, ...]
    inner: Dims
    down: tuple[int, ...]
    n: int
    across: int

    def append(self, ctx: Context, target: Storage, first: int, vectors: int, blocks: int) -> None:
        """Appends the step for `blocks` neighbouring blocks of so many vectors, from channel `first` on."""
        vl, (storage, _, at) = ctx.target.vl, self.source
        outer, (at_g, y_g) = _merged(self.groups, self.to)
        walked, (at_k, y_k) = _merged(self.inner, self.down)
        at += at_g + at_k + first * self.across
        plain = self.across == 4 or self.n == 1
        best = max(walked, key=lambda d: (plain or d[1] == 4, d[0]))
        if not plain and best[1] != 4:
            return self._copied(ctx, target, first, vectors, blocks)
        outer += [d for d in walked if d is not best]
        length, step, down = best
        chunk = min(length, CHUNK)
        block, panel = vectors * vl, 4 * vectors * vl * math.prod(m for m, _ in self.inner)
        loops = [*(m for m, _, _ in outer), blocks, -(-length // chunk)]
        reads = (*(s for _, s, _ in outer), block * self.across, chunk * step)
        writes = (*(s for _, _, s in outer), panel, chunk * down)
        kernel = Kernel(("panel", vectors if plain else 0))
        words = [self.n - first, length, chunk, step, down, self.across, vectors]
        operands: list[Operand] = [(storage, reads, at), (target, writes, y_g + y_k)]
        work = chunk * vectors * (1 if plain else 4)
        nest(ctx, kernel, words, loops, operands, 1, max(1, ITEM // (chunk * block)), work)
        return None

    def _copied(self, ctx: Context, target: Storage, first: int, vectors: int, blocks: int) -> None:
        """As `append`, element by element: neither channels nor what is summed lies side by side."""
        storage, _, at = self.source
        width = vectors * ctx.target.vl
        shape, reads = zip(*self.groups, *self.inner, (0, self.across), strict=True)
        panel = 4 * width * math.prod(m for m, _ in self.inner)
        for i in range(blocks):
            lanes = min(width, self.n - first - i * width)
            part = (*shape[:-1], lanes)
            y = Storage(
                target.buffer,
                target.offset + i * panel,
                part,
                (*self.to, *self.down, 4),
                ((0, 0),) * len(part),
            )
            copy(ctx, storage, y, reads, at + (first + i * width) * self.across)


def _merged(dims: Dims, to: Sequence[int]) -> tuple[list[tuple[int, int, int]], tuple[int, int]]:
    """(length, stride read, stride written) of dimensions, neighbours merged and all read forwards, and how far the
    first element lies from the offset of each side, in bytes."""
    shape, walks = coalesce([n for n, _ in dims], [[s for _, s in dims], list(to)])
    out, at, y = [], 0, 0
    for n, s, t in zip(shape, *walks, strict=True):
        back = (n - 1) * (s < 0)
        at, y = at + back * s, y + back * t
        out.append((n, -s, -t) if s < 0 else (n, s, t))
    return out, (at, y)


@family("panel")
def panel(name: str, key: Spec, target: Target) -> str:
    """("panel", vectors): rows of a panel, so many vectors wide, or (0) columns of it that are turned into rows.

    Operands: x, y. Loops end in (block of channels, chunk of rows). Words: channels, rows, rows of a chunk, x step, y
    step of a row, x step of a channel (bytes), vectors of a block. Lanes behind the last channel are not defined.
    """
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    channels, rows, chunk, step, down, across, vectors = (v.ld64(words, i) for i in range(7))
    count = minimum(v, chunk, v.b.sub(rows, v.b.mul(v.ld64(index, LAST), chunk)))
    x, y = v.ld64(where, 0), v.ld64(where, 1)
    width = v.b.sub(channels, v.b.mul(v.ld64(index, LAST - 1), v.mul(vectors, v.vl)))
    if key[1]:
        _rows(v, (x, step), (y, down), count, width, key[1])
    else:
        _columns(v, (x, step), (y, down), count, width, across, vectors)
    return v.finish()


Line = tuple[ir.Value, ir.Value]  # address, bytes from one row to the next


def _rows(v: Builder, x: Line, y: Line, count: ir.Value, width: ir.Value, vectors: int) -> None:
    """Copies `count` rows of `width` channels."""
    lanes = [minimum(v, maximum(v, v.add(width, -i * v.vl), i64(0)), i64(v.vl)) for i in range(vectors)]

    def copied(whole: bool) -> None:
        masks = [None] * vectors
        for i in () if whole else range(vectors):
            v.set_mask(lanes[i])
            masks[i] = v.mask
        with v.loop(count) as r:
            a, b = v.add(x[0], v.b.mul(r, x[1])), v.add(y[0], v.b.mul(r, y[1]))
            for i in range(vectors):
                v.mask = masks[i]
                value = v.load(v.add(a, 4 * i * v.vl))
                v.mask = None
                v.store(value, v.add(b, 4 * i * v.vl))

    with v.b.if_else(v.b.icmp_signed(">=", width, i64(vectors * v.vl))) as (then, otherwise):
        with then:
            copied(True)
        with otherwise:
            copied(False)


def _columns(
    v: Builder, x: Line, y: Line, count: ir.Value, width: ir.Value, across: ir.Value, vectors: ir.Value
) -> None:
    """Turns `width` lines of `count` contiguous elements into `count` rows."""
    full, rest = v.b.sdiv(count, i64(v.vl)), v.b.srem(count, i64(v.vl))
    with v.loop(vectors) as i:
        left = v.b.sub(width, v.mul(i, v.vl))
        first = v.add(x[0], v.b.mul(v.mul(i, v.vl), across))
        lines = [v.add(first, v.b.mul(minimum(v, i64(r), v.add(left, -1)), across)) for r in range(v.vl)]
        column = v.add(y[0], v.mul(i, 4 * v.vl))

        def block(k: ir.Value, first: ir.Value = column, lines: Sequence[ir.Value] = lines) -> list[ir.Value]:
            return turned(v, [v.load(v.add(line, v.mul(k, 4))) for line in lines])

        with v.loop(full) as b:
            k = v.mul(b, v.vl)
            for j, value in enumerate(block(k)):
                v.store(value, v.add(column, v.b.mul(v.add(k, j), y[1])))
        with v.b.if_then(v.b.icmp_signed(">", rest, i64(0))):
            k = v.mul(full, v.vl)
            v.set_mask(rest)
            values = block(k)
            v.set_mask(None)
            for j, value in enumerate(values[:-1]):
                with v.b.if_then(v.b.icmp_signed("<", i64(j), rest)):
                    v.store(value, v.add(column, v.b.mul(v.add(k, j), y[1])))


def turned(v: Builder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of vectors: neighbours at distance 1, 2, 4, ... exchange halves."""
    out, n = list(rows), len(rows)
    step = 1
    while step < n:
        low = [j if not j & step else n + j - step for j in range(n)]
        high = [j + step if not j & step else n + j for j in range(n)]
        for i in range(n):
            if not i & step:
                a, b = out[i], out[i + step]
                out[i], out[i + step] = v.shuffle(a, b, low), v.shuffle(a, b, high)
        step *= 2
    return out
