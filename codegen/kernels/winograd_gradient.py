"""Winograd's algorithm for the gradient by the weights of a 3x3 convolution of stride 1: the forward one's transpose.

    y = A' [(G w G') * (B' d B)] A   so   dw = G' [sum over tiles of (A dy A') * (B' d B)] G

Tiles of the image are transformed as for the convolution itself, so that a channel pair costs (m + 2)**2
multiplications a tile instead of 9 m**2. What is summed over tiles lies position by position, and is read in place.
"""

from __future__ import annotations

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Op
from ..rules.convolution import Convolution
from ..rules.expressions import COPY
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage
from ..target import Target
from .depthwise import Walk
from .elementwise import copy, nest
from .expressions import emit
from .in_place import Axis, Sides, add_product
from .lanes import Lane, operand_kind
from .nests import LAST, minimum, vectors
from .product import Epilogue, epilogue
from .simd import Builder
from .vectors import i64
from .winograd import R, matrices, read_operand, transform
from .winograd_steps import Tiles, apart, at_ref, transformed_image


def winograd_gradient(
    ctx: Context, op: Op, rest: tuple[Op, ...], geo: Convolution, image: Storage, gradient: Storage, m: int
) -> tuple[Op, ...]:
    """Appends the steps for an image [n, h, w, c] with its halo and the gradient [n, h, w, channels] by the result,
    channels side by side. Returns what of the tail is not fused.
    """
    gradient = gradient.of_axes(5)
    tiles, ones = Tiles(m, *gradient.shape[:4]), (1, 1)
    walk = Walk(image, (R, R), ones, ones, geo.padding).along(3)
    data = transformed_image(ctx, tiles, (walk.image, walk.image.strides, walk.origin()), image.shape[-1])
    sides = _sides(data, _transformed_gradient(ctx, tiles, gradient), tiles, image.shape[-1], geo.channels)
    axes = (*geo.result[2:], geo.result[0], geo.result[1])
    tail = epilogue(ctx, op, rest) if axes[-1] == len(axes) - 1 else None
    final = ctx.output(tail.result if tail else op.out)
    there = final.strides[axes[-1]] == 4
    y = final if there else ctx.scratch(tuple(op.out.shape[d] for d in axes))
    strides = tuple(final.strides[d] for d in axes) if there else y.strides
    operands = tuple((s, tuple(walk[d] for d in axes), at) for s, walk, at in tail.operands) if tail else ()
    _sums(ctx, tiles, sides, (y, strides, 0), Epilogue(tail.expr if tail else COPY, operands, op.out))
    if not there:
        copy(ctx, y, final, tuple(y.strides[axes.index(d)] for d in range(len(axes))))
    return rest if tail is None else ()


def error_bound(x: np.ndarray, dy: np.ndarray, m: int) -> float:
    """A bound on the absolute error of a gradient in f32, for an image x [n, h, w, c] and a gradient dy
    [n, h, w, channels].

    As `winograd.error_bound`: |error| <= (T + k) u |G'| (sum over T tiles of |A| |dy| |A'| * |B'| X |B|) |G|, with the
    largest |x| and |dy| for all tiles.
    """
    mats, n = matrices(m), m + R - 1
    at, g, bt = (np.abs(t) for t in (mats.at, mats.g, mats.bt))
    data = float(np.max(np.abs(x))) * np.outer(bt.sum(1), bt.sum(1))
    made = float(np.max(np.abs(dy))) * np.outer(at.sum(0), at.sum(0))
    n, h, w, _ = dy.shape
    tiles = Tiles(m, n, 1, h, w).count
    size = tiles * float((g.T @ (data * made) @ g).max())
    return (tiles + 4 * (n + R + n)) * 2.0**-24 * size


def _sides(data: Lane, gradient: Lane, tiles: Tiles, c: int, channels: int) -> Sides:
    """The products of all positions: channels of the image by channels of the result, summed over tiles."""
    axes = (Axis(tiles.count, data.pixels[-1], gradient.pixels[-1]),)
    left, right = (data.ref, data.group), (gradient.ref, gradient.group)
    return Sides(axes, (1, 1, 1, c), (0, 0, 0, 4), channels, tiles.positions, left, right)


def _transformed_gradient(ctx: Context, tiles: Tiles, s: Storage) -> Lane:
    """Appends the transform of the gradient's tiles."""
    channels = s.shape[-1]
    made = tiles.made(ctx, channels)
    operands: list[Operand] = [(s, tiles.pixels(s.strides), 0), (at_ref(made.ref), tiles.rows(made), 0)]
    words = [*s.strides[2:4], made.group, channels, tiles.h, tiles.w]
    work = tiles.positions * -(-channels // ctx.target.vl)
    nest(ctx, Kernel(("winograd_gradient", tiles.m)), words, tiles.loops, operands, 1, tiles.per_item(ctx), work)
    return made


def _sums(ctx: Context, tiles: Tiles, sides: Sides, y: Operand, tail: Epilogue) -> None:
    """Appends the products of all channels and the transform of their sums."""
    c, channels, vl = sides.pixels[-1], sides.channels, ctx.target.vl
    row = -(-channels // vl) * vl * 4
    far = apart(c * row)
    room = ctx.scratch((tiles.positions, far // 4))
    add_product(ctx, sides, Lane(Ref(room.buffer, room.offset), (0, 0, 0, row), 4, far), COPY, ())
    everything = [y, *tail.operands]
    kinds = tuple(operand_kind(walk[:-1], walk[-1]) for _, walk, _ in tail.operands)
    operands: list[Operand] = [(room, (row,), 0), *((s, (walk[2],), at) for s, walk, at in everything)]
    words = [far, channels, *(step for _, walk, _ in everything for step in walk[:2])]
    kernel, work = Kernel(("winograd_sums", tiles.m, tail.expr, kinds)), tiles.positions * row // (4 * vl)
    nest(ctx, kernel, words, (c,), operands, 1, max(1, -(-c // (6 * ctx.threads))), work)


# -- kernels ----------------------------------------------------------------------------------------


@family("winograd_gradient")
def gradient_kernel(name: str, key: Spec, target: Target) -> str:
    """("winograd_gradient", m): A dy A' of one tile [m, m, c], whose pixels beyond the border are zeroes.

    Operands: dy, tiles. Loops end in (tile row, tile column). Words: dy row step, dy pixel step, step between positions
    (bytes), channels, H, W.
    """
    m = key[1]
    a = matrices(m).at.T
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, d = v.ld64(where, 0), v.ld64(where, 1)
    row, pixel, step = (v.ld64(words, i) for i in range(3))
    rows, columns = (
        minimum(v, i64(m), v.b.sub(v.ld64(words, 4 + k), v.b.mul(v.ld64(index, LAST - 1 + k), i64(m)))) for k in (0, 1)
    )

    def inside(i: int, n: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Whether index i is one of n, and the nearest that is."""
        there = v.b.icmp_signed("<", i64(i), n)
        return there, v.b.select(there, i64(i), v.add(n, -1))

    by_row, by_column = [inside(i, rows) for i in range(m)], [inside(j, columns) for j in range(m)]

    def body(offset: ir.Value) -> None:
        lines = []
        for j_there, j in by_column:
            at = v.add(x, offset, v.b.mul(pixel, j))
            line = []
            for i_there, i in by_row:
                value = v.load(v.add(at, v.b.mul(row, i)))
                line.append(v.b.select(v.b.and_(i_there, j_there), value, v.const(0.0)))
            lines.append(transform(v, a, line))
        for i in range(len(a)):
            for j, value in enumerate(transform(v, a, [line[i] for line in lines])):
                v.store(value, v.add(d, offset, v.mul(step, i * len(a) + j)))

    vectors(v, v.ld64(words, 3), body)
    return v.finish()


@family("winograd_sums")
def sums_kernel(name: str, key: Spec, target: Target) -> str:
    """("winograd_sums", m, expr, kinds): G' s G of the sums of a channel of the image, and the epilogue, for all
    channels of the result.

    Operands: sums, y, the epilogue's. Words: step between positions, channels, then steps of a window's row and column
    of y and of each epilogue operand (bytes).
    """
    _, m, expr, kinds = key
    n, g = m + R - 1, matrices(m).g.T
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    sums, step = v.ld64(where, 0), v.ld64(words, 0)
    bases = [v.ld64(where, 1 + k) for k in range(1 + len(kinds))]
    steps = [(v.ld64(words, 2 + 2 * k), v.ld64(words, 3 + 2 * k)) for k in range(1 + len(kinds))]

    def place(k: int, i: int, j: int) -> ir.Value:
        return v.add(bases[k], v.mul(steps[k][0], i), v.mul(steps[k][1], j))

    def body(offset: ir.Value) -> None:
        half = []
        for j in range(n):
            column = [v.load(v.add(sums, offset, v.mul(step, i * n + j))) for i in range(n)]
            half.append(transform(v, g, column))
        for i in range(R):
            for j, value in enumerate(transform(v, g, [c[i] for c in half])):

                def operand(k: int, value: ir.Value = value, i: int = i, j: int = j) -> ir.Value:
                    return read_operand(v, kinds[k - 1], place(k, i, j), offset) if k else value

                v.store(emit(v, expr, operand), v.add(place(0, i, j), offset))

    vectors(v, v.ld64(words, 1), body)
    return v.finish()
