"""Winograd's minimal filtering for 3x3 convolutions of stride 1: F(m x m, 3 x 3) with m = 2 or 4. Of a convolution over
three dimensions it filters the last two; along the first one transformed planes are multiplied and summed tap by tap.

An output tile of m x m pixels costs (m + 2)**2 multiplications per channel pair instead of 9 m**2: 2.25 times
fewer for m = 2, 4 times fewer for m = 4 (Lavin and Gray, 2016; Y = A' [(G g G') * (B' d B)] A). The points of
m = 4 are 0, +-5/8, +-3/2 and infinity: with them f32 results are about twice as far from the exact ones as
those of the direct sum, where the usual points 0, +-1, +-2 are 6 times as far.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Op, Value
from ..rules.convolution import convolution, geometry
from ..target import MatrixUnit, Target
from .epilogue import results_of, store_forms, stores_result
from .expressions import emit_nodes
from .nests import LAST, minimum, vectors
from .simd import Builder
from .vectors import i64

R = 3
MACS_A_LANE, BYTES_A_SECOND = 3.4e9, 2.5e10  # by which `guess` goes: of a thread, and of all together
POINTS: Mapping[int, tuple[Fraction, ...]] = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}


@dataclasses.dataclass(frozen=True)
class Matrices:
    """A' [m, m + 2], G [m + 2, 3] and B' [m + 2, m + 2], f64."""

    at: np.ndarray
    g: np.ndarray
    bt: np.ndarray


@functools.lru_cache
def matrices(m: int) -> Matrices:
    """The transforms of F(m, 3) by Toom and Cook's construction on `POINTS[m]` and infinity."""
    points, n = POINTS[m], m + R - 1
    at, g, bt = (np.zeros(shape) for shape in ((m, n), (n, R), (n, n)))
    for i, p in enumerate(points):
        others = [q for q in points if q != p]
        scale = math.prod((p - q for q in others), start=Fraction(1))
        at[:, i] = [float(p**k) for k in range(m)]
        g[i] = [float(p**k / scale) for k in range(R)]
        bt[i, : n - 1] = [float(c) for c in _polynomial(others)]
    at[m - 1, n - 1] = g[n - 1, R - 1] = 1.0
    bt[n - 1] = [float(c) for c in _polynomial(points)]
    return Matrices(at, g, bt)


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of prod(x - root), lowest power first."""
    c = [Fraction(1)]
    for root in roots:
        c = [(c[i - 1] if i else Fraction(0)) - root * (c[i] if i < len(c) else 0) for i in range(len(c) + 1)]
    return c


def error_bound(x: np.ndarray, w: np.ndarray, m: int) -> float:
    """A bound on the absolute error of a result in f32, for an image x [..., C] and weights w [3, 3, C, OC].

    First-order forward error analysis of the three transforms and the sum over channels (Higham, 2002, section
    3.1): |error| <= (C + k) u |A'| (|G| |w| |G'| * |B'| X |B|) |A|, X the largest |x|, u = 2**-24, and k the
    roundings on a path through the transforms.
    """
    mats, n = matrices(m), m + R - 1
    at, g, bt = (np.abs(t) for t in (mats.at, mats.g, mats.bt))
    data = float(np.max(np.abs(x))) * np.outer(bt.sum(1), bt.sum(1))
    weights = np.einsum("ai,ijco,bj->abo", g, np.abs(w.astype(np.float64)), g)
    size = np.einsum("ka,abo,lb->klo", at, weights * data[:, :, None], at).max()
    roundings = w.shape[2] + 4 * (n + R + n)
    return float(roundings * 2.0**-24 * size)


# -- which convolutions -----------------------------------------------------------------------------


def eligible(op: Op) -> bool:
    """3x3, stride 1, one group, no dilation, and a precision that leaves the order of the sums open; over three
    dimensions anything along the first one.
    """
    conv = convolution(op)
    if op.out.dtype == "int32":  # its transforms are fractions
        return False
    if conv is None or conv.groups != 1 or conv.batch_groups != 1 or not isinstance(op.ins[1], Value):
        return False
    ones = all(d == 1 for d in (*conv.strides[-2:], *conv.dilation[-2:], *conv.spread))
    enough = min(conv.channels, conv.channels_in) >= 8
    windows = len(conv.window) in (2, 3) and conv.window[-2:] == (R, R)
    return windows and ones and enough and not _exact(op.params.get("precision"))


def rival(unit: MatrixUnit | None) -> bool:
    """Whether products in f32, of which it takes fewer, may be faster than a unit's: than none, and than pairs of bf16,
    which vectors multiply twice as fast as f32.
    """
    return unit is None or (unit.dtype == "bfloat16" and unit.step == 1)


def _exact(precision: object) -> bool:
    """Whether JAX's precision, or one of several, asks for more than the usual one."""
    return any(
        str(p).split(".")[-1].upper() in ("HIGH", "HIGHEST")
        for p in (precision if isinstance(precision, tuple) else (precision,))
    )


def guess(op: Op, threads: int, target: Target) -> str:
    """The algorithm that a convolution of constant weights most likely takes the fewest seconds with: by its products,
    with so many `threads`, and by the weights that are read, which are (m + 2)**2 matrices in the place of 9.
    """
    conv, unit = geometry(op), target.unit(op.ins[0].dtype)
    planes, sizes = op.out.size // (conv.channels * math.prod(conv.sizes[-2:])), conv.sizes[-2:]
    matrix = conv.channels * conv.channels_in * math.prod(conv.window[:-2])

    def seconds(m: int) -> float:
        tiles, matrices = planes * math.prod(-(-n // m) for n in sizes), (m + R - 1) ** 2 if m > 1 else R * R
        at_once = unit.per if unit is not None and m == 1 else 1  # pairs of bf16
        products = tiles * matrices * matrix / (MACS_A_LANE * target.vl * threads * at_once)
        return products + 4 * matrices * matrix / (BYTES_A_SECOND * at_once)

    return min(("direct", 1), ("winograd2", 2), ("winograd4", 4), key=lambda found: seconds(found[1]))[0]


def sums_tiles(op: Op) -> bool:
    """Whether it is the gradient by the weights of a convolution that is eligible."""
    conv = convolution(op)
    if conv is None or not conv.sums_pixels or conv.batch_groups != 1 or not isinstance(op.ins[0], Value):
        return False
    ones = all(d == 1 for d in (*conv.strides, *conv.dilation, *conv.spread))
    enough = min(conv.channels, op.ins[0].shape[conv.image[0]]) >= 8
    return conv.sizes == (R, R) and ones and enough and not _exact(op.params.get("precision"))


def spare(op: Op) -> dict[int, int]:
    """Zeroes that whole tiles read beyond the padding, by spatial axis; none for what has no tiles."""
    if eligible(op):
        sizes = geometry(op).sizes
        return {i: -sizes[i] % 4 for i in (len(sizes) - 2, len(sizes) - 1)}
    return {i: -n % 4 for i, n in enumerate(geometry(op).window)} if sums_tiles(op) else {}


# -- kernels ----------------------------------------------------------------------------------------


def transform(v: Builder, matrix: np.ndarray, x: Sequence[ir.Value]) -> list[ir.Value]:
    """matrix @ x; rows that differ only in the sign of the odd (or even) terms share their two halves."""
    out: list[ir.Value] = [None] * len(matrix)
    for i, row in enumerate(matrix):
        if out[i] is not None:
            continue
        for j in range(i + 1, len(matrix)):
            same, flipped = row == matrix[j], row == -matrix[j]
            if (same | flipped).all() and (same & (row != 0)).any() and (flipped & (row != 0)).any():
                a, b = _combine(v, np.where(same, row, 0), x), _combine(v, np.where(same, 0, row), x)
                out[i], out[j] = v.b.fadd(a, b), v.b.fsub(a, b)
                break
        else:
            out[i] = _combine(v, row, x)
    return out


def _combine(v: Builder, row: np.ndarray, x: Sequence[ir.Value]) -> ir.Value:
    """The sum of row[k] x[k]: terms of coefficient one first, the others by FMA."""
    terms = sorted(((c, k) for k, c in enumerate(row) if c), key=lambda t: abs(t[0]) != 1)
    acc = None
    for c, k in terms:
        if acc is None:
            acc = x[k] if c == 1 else v.b.fmul(x[k], v.const(c))
        elif abs(c) == 1:
            acc = v.b.fadd(acc, x[k]) if c == 1 else v.b.fsub(acc, x[k])
        else:
            acc = v.fma(x[k], v.const(c), acc)
    return acc


@family("winograd_weights")
def weights_kernel(name: str, key: Spec, target: Target) -> str:
    """("winograd_weights", m): G g G' of 3x3 weights, element by element of their panels. Operands: panels by tap,
    panels by position. Words: bytes of one tap's panels (whole vectors), bytes from a position to the next, bytes of a
    chunk. The last loop counts chunks.
    """
    m = key[1]
    g = matrices(m).g
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, y = v.ld64(where, 0), v.ld64(where, 1)
    step, spacing, chunk = (v.ld64(words, i) for i in range(3))
    count = minimum(v, chunk, v.b.sub(step, v.b.mul(v.ld64(index, LAST), chunk)))
    with v.loop(v.b.sdiv(count, i64(4 * v.vl))) as i:
        at = v.mul(i, 4 * v.vl)
        taps = [v.load(v.add(x, at, v.mul(step, t))) for t in range(R * R)]
        columns = [transform(v, g, taps[j::R]) for j in range(R)]
        for i, row in enumerate(zip(*columns, strict=True)):
            for j, value in enumerate(transform(v, g, row)):
                v.store(value, v.add(y, at, v.mul(spacing, i * len(g) + j)))
    return v.finish()


@family("winograd_input")
def input_kernel(name: str, key: Spec, target: Target) -> str:
    """("winograd_input", m, asks): B' d B of one tile [m + 2, m + 2, c]; with `asks` for the pixels of the tile after
    the next one, besides the rows that the tiles above read. Operands: x, data. Words: x row step, x pixel step, step
    between positions (bytes), channels.
    """
    _, m, asks = key
    n, bt = m + R - 1, matrices(m).bt
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    x, d = v.ld64(where, 0), v.ld64(where, 1)
    row, pixel, step = (v.ld64(words, i) for i in range(3))

    def body(offset: ir.Value) -> None:
        columns = []
        for i, j in itertools.product(range(R - 1, n), range(m)) if asks else ():
            v.prefetch(v.add(x, offset, v.mul(row, i), v.mul(pixel, n + m + j)))
        for j in range(n):
            at = v.add(x, offset, v.mul(pixel, j))
            columns.append(transform(v, bt, [v.load(v.add(at, v.mul(row, i))) for i in range(n)]))
        for i in range(n):
            for j, value in enumerate(transform(v, bt, [c[i] for c in columns])):
                v.store(value, v.add(d, offset, v.mul(step, i * n + j)))

    vectors(v, v.ld64(words, 3), body)
    return v.finish()


@family("winograd_output")
def output_kernel(name: str, key: Spec, target: Target) -> str:
    """("winograd_output", m, expr, kinds, asks): A' M A of one tile [m, m, c] and the epilogue, cut off at the border
    of the result; with `asks` for the place of the next tile's.

    Operands: products, y, the epilogue's, of which those that are `Written` are forms of the result. Loops end in (tile
    row, tile column). Words: step between positions, OH, OW, channels, y row step, y pixel step, then row and pixel
    step of each epilogue operand. Steps are bytes.
    """
    _, m, expr, kinds, asks = key
    n, at = m + R - 1, matrices(m).at
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    products, y = v.ld64(where, 0), v.ld64(where, 1)
    step = v.ld64(words, 0)
    rows, columns = (
        minimum(v, i64(m), v.b.sub(v.ld64(words, 1 + d), v.mul(v.ld64(index, LAST - 1 + d), m))) for d in (0, 1)
    )
    bases = [v.ld64(where, 2 + k) for k in range(len(kinds))]
    steps = [(v.ld64(words, 6 + 2 * k), v.ld64(words, 7 + 2 * k)) for k in range(len(kinds))]
    yrow, ypixel = v.ld64(words, 4), v.ld64(words, 5)

    def body(offset: ir.Value) -> None:
        half = []
        for i, j in itertools.product(range(m), range(m)) if asks and stores_result(kinds) else ():
            v.prefetch(v.add(y, offset, v.mul(yrow, i), v.mul(ypixel, m + j)), written=True)
        for j in range(n):
            half.append(transform(v, at, [v.load(v.add(products, offset, v.mul(step, i * n + j))) for i in range(n)]))
        shared = {k: read_operand(v, kind, bases[k], offset) for k, kind in enumerate(kinds) if kind in ("c", "p")}

        def finish(value: ir.Value, i: int, j: int) -> None:
            place = lambda k: v.add(bases[k], v.mul(steps[k][0], i), v.mul(steps[k][1], j))

            def operand(k: int) -> ir.Value:
                if k == 0 or k - 1 in shared:
                    return shared[k - 1] if k else value
                return read_operand(v, kinds[k - 1], place(k - 1), offset)

            nodes = emit_nodes(v, expr, operand, results_of(expr, kinds))
            store_forms(v, kinds, [nodes], lambda k, nbytes: [v.add(place(k), v.b.sdiv(offset, i64(4 // nbytes)))])
            if stores_result(kinds):
                v.store(nodes[-1], v.add(y, offset, v.mul(yrow, i), v.mul(ypixel, j)))

        for i in range(m):
            with v.b.if_then(v.b.icmp_signed("<", i64(i), rows)):
                for j, value in enumerate(transform(v, at, [c[i] for c in half])):
                    with v.b.if_then(v.b.icmp_signed("<", i64(j), columns)):
                        finish(value, i, j)

    vectors(v, v.ld64(words, 3), body)
    return v.finish()


def read_operand(v: Builder, kind: str, base: ir.Value, offset: ir.Value) -> ir.Value:
    """What an operand of the epilogue is at a place, `offset` bytes behind its first channel."""
    return v.load(v.add(base, offset)) if kind in "cv" else v.broadcast(base)
