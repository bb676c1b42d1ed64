"""The matrix micro-kernel: MR output pixels x NV vectors of output channels, accumulators in registers.

Convolutions and matrix products are the same loop: for every tap, a run of the input is multiplied with weights
`[tap][run][NV*VL]`. Pixels are given by address, so strides, halos and concatenated outputs cost nothing here.

Spec: (family, MR, NV, tail, expr, kinds, run, dtype, walk). `expr` is the epilogue, operand 0 the accumulator;
`kinds[k]` says how operand k > 0 is read: "c" one vector for all pixels, "v" a vector per pixel ("h": one of bf16), "s"
a scalar per pixel, "p" one scalar for all; `BEGIN`: a vector for all pixels that sums begin with, which the epilogue
does not read; a `Written` one is no operand but a form of the result. `tail`: the last vector is masked to `lanes`.
`run` > 0: the run is known and unrolled (first layers, whose runs are short); 0: it is an argument. `dtype` "bfloat16",
"int8" or "uint8": an element of a run is as many of these as the target's unit multiplies in a lane, and so is each
lane of the weights `[tap][run][NV*VL]`; sums of int8 are s32, all others f32. "uint8": int8 of which hardly any is
negative; a run of which none is takes fewer instructions. `walk`: how a run is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..native.layout import Walk
from ..rules.expressions import Expr
from ..target import Target
from .epilogue import ROWS, Block, Epilogue, Written, begun, finish, numbers_of, partial_sums
from .signs import any_negative, either
from .simd import Builder
from .vectors import STORED_BYTES, i64
from .whole_bytes import haste

Step = Callable[[list[ir.Value], ir.Value, ir.Value], list[ir.Value]]  # (sums, weights, offset) -> sums
Multiply = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]  # (words of x, of the weights, sums) -> sums
X, Y, OPERANDS = 0, 1, 2  # whose steps a walk over tiles has, in this order
LINE = 64  # bytes of a cache line
UNROLL = 4
ARGUMENTS = 13
DISTANCE = 16  # elements of a run before whose turn their lines are asked for
LONG = 4 * DISTANCE  # of a run: what lies behind a short one is not read next
SHORT = 32  # a run up to this length that UNROLL does not divide is unrolled
#: elements of a run lie side by side, and the weights are packed
NEAR = "near"
#: as NEAR, of pairs: the last one has one element, and what lies behind it counts as zero
ODD = "odd"
PANELS = (NEAR, ODD)
#: elements lie some bytes apart, and so do rows of the weights; a tap is two words: bytes, and rows of the weights
FAR = "far"
#: as FAR, and the pixels of a tile lie side by side: one address is enough for them
BESIDE = "beside"
#: matrix unit -> the builder's method that multiplies and adds; that of all others is `fma`
MULTIPLY = {"avx512bf16": "dot_bf16", "s16": "dot_s16", "sse2": "dot_pairs", "avx2": "dot_u8", "avx512vnni": "dot_s8"}
#: registers that a unit needs beside sums, weights and one broadcast: for a product that is added by an instruction of
#: its own, and for the ones that bytes are summed with
FURTHER = {"sse2": 1, "avx2": 2}
#: as BESIDE, in runs of `LONG` elements or more: lines of the input are asked for before their turn
AHEAD = "ahead"


def spec(
    mr: int,
    nv: int,
    tail: bool,
    expr: Expr,
    kinds: tuple[str | Written, ...],
    run: int = 0,
    dtype: str = "float32",
    family: str = "gemm",
    walk: str = NEAR,
    asked: int = 0,
) -> Spec:
    """The micro-kernel of a block of the shape [mr, nv * VL]; `family`: that of the matrix unit; `asked`: see there.

    A run that is longer than `SHORT`, or that `UNROLL` divides, is left to the call, but that of `ODD` is not.
    """
    known = walk == ODD or (run <= SHORT and run % UNROLL)
    return (family, mr, nv, tail, expr, kinds, run if known else 0, dtype, walk, asked)


def asked(nbytes: int, tiles: int) -> int:
    """Lines of the next panel that a kernel asks for with each `nbytes` of its own one, so that so many tiles bring all
    of it.
    """
    return -(-nbytes // (LINE * tiles))


def ask(v: Builder, panel: ir.Value, nbytes: ir.Value, number: ir.Value, lines: int) -> None:
    """Asks, into the second cache, for the lines from `number` times `lines` on of what lies behind a panel of so many
    bytes: that is what the next work item reads, or the next block of the reduction.
    """
    at = v.mul(number, LINE * lines)
    at = v.add(panel, nbytes, v.b.select(v.b.icmp_signed("<", at, nbytes), at, i64(0)))
    for line in range(lines):
        v.prefetch(v.add(at, LINE * line), 2)


@family("gemm")
def gemm(name: str, key: Spec, target: Target) -> str:
    """Arguments: x addresses, w, y addresses, operand addresses, tap offsets, taps, run, first, last, lanes, the tiles
    (see `over_tiles`), bytes from one element of a run to the next, bytes of a row of the weights (the last two are
    read where `walk` is not NEAR). The addresses are those of the first tile.
    """
    family, mr, nv, tail, expr, kinds, known, dtype, walk, lines = key
    v = Builder(name, ARGUMENTS, target.vl)
    xs, w, ys, es, taps, ntaps, run, first, last, lanes, tiles, element, row = v.args
    near = walk in PANELS
    x_rows = [(v.ld64(xs), 4 * r) if walk in (BESIDE, AHEAD) else (v.ld64(xs, r), 0) for r in range(mr)]
    sides = _Sides(4, nv * v.vl * 4) if near else _Sides(element, row)
    unit = target.unit(dtype, family)
    multiply = getattr(v, MULTIPLY.get(unit.name if unit else "", "fma"))

    def step(
        multiply: Multiply, a: list[ir.Value], wa: ir.Value, offset: ir.Value, odd: bool = False
    ) -> list[ir.Value]:
        bs = []
        if walk == AHEAD:
            v.prefetch(v.add(x_rows[0][0], offset, v.mul(element, DISTANCE)))
        for i in range(nv):
            if not near:
                block.mask(v, i)
            bs.append(v.load(v.add(wa, i * v.vl * 4)))
        v.set_mask(None)
        out = []
        for r in range(mr):
            at = v.add(x_rows[r][0], offset, x_rows[r][1])
            x = v.broadcast_pair(at, odd) if walk == ODD else v.broadcast(at)
            out += [multiply(x, bs[i], a[r * nv + i]) for i in range(nv)]
        return out

    def summed(a: list[ir.Value], wt: ir.Value, tap: ir.Value, turn: ir.Value) -> list[ir.Value]:
        if known:
            for k in range(known):
                a = step(multiply, a, *sides.at(v, wt, tap, i64(0), k), walk == ODD and k == known - 1)
            return a
        behind = lambda k: ask(v, w, v.mul(ntaps, tap_bytes), v.add(v.mul(turn, v.b.sdiv(run, i64(UNROLL))), k), lines)
        meanwhile = behind if lines else None
        return _reduce(v, functools.partial(step, multiply), a, wt, tap, run, sides, meanwhile=meanwhile)

    run = i64(known) if known else run
    tap_bytes, numbers = v.mul(run, sides.row), numbers_of(v, kinds, es)
    with over_tiles(v, tiles) as (number, on):
        x_on = on(X)
        e_on = [on(OPERANDS + k) for k in range(len(kinds))]
        _ask_beside(v, kinds, mr, nv, es, e_on)
        block = Block(mr, nv, lanes if tail else None, ys, on(Y))
        again = haste(v, expr, kinds) if nv - tail > 1 else None
        start = partial_sums(v, block, first, begun(v, block, kinds, es)) if near else [v.const(0.0)] * (mr * nv)
        with v.carry(ntaps, start) as (t, a, done):
            turn = v.add(v.mul(number, ntaps), t)
            if near:
                tap, wt = v.add(v.ld64(v.add(taps, v.mul(t, 8))), x_on), v.add(w, v.mul(t, tap_bytes))
            else:
                entry = v.add(taps, v.mul(t, 16))
                tap, wt = v.add(v.ld64(entry), x_on), v.add(w, v.mul(v.ld64(entry, 1), row))
            if dtype == "uint8":
                negative = any_negative(v, [v.add(x, tap) for x, _ in x_rows], run)
                signed = functools.partial(_reduce, v, functools.partial(step, v.dot_bytes), a, wt, tap, run, sides, 1)
                done(either(v, negative, signed, functools.partial(summed, a, wt, tap, turn)))
            else:
                done(summed(a, wt, tap, turn))
        sums = v.carried
        if not near:  # what blocks sum is added block by block: fewer roundings in long reductions
            sums = [v.b.fadd(a, p) for a, p in zip(sums, partial_sums(v, block, first), strict=True)]
        finish(v, block, sums, Epilogue(expr, kinds, es, e_on, numbers=numbers), last, again)
    return v.finish()


def _ask_beside(
    v: Builder, kinds: Sequence[str | Written], mr: int, nv: int, rows: ir.Value, on: Sequence[ir.Value]
) -> None:
    """Asks for what the epilogue of a tile reads besides: it lies in lines of many rows, which no CPU foresees, and
    comes while the tile is summed.
    """
    for k, r in itertools.product(range(len(kinds)), range(mr)):
        if kinds[k] in ("v", "h"):
            nbytes = nv * v.vl * (4 if kinds[k] == "v" else STORED_BYTES["bfloat16"])
            for line in range(0, nbytes, LINE):
                v.prefetch(v.add(v.ld64(rows, k * ROWS + r), on[k], line))


@contextlib.contextmanager
def over_tiles(v: Builder, walk: ir.Value) -> Iterator[tuple[ir.Value, Callable[[int], ir.Value]]]:
    """The tiles of some rows of an image, of which `walk` tells (see `Walk`). Yields the number of the present one
    among those that read the same weights, and what says how many bytes on from the first tile's its addresses are: of
    `X`, `Y`, and the operands from `OPERANDS` on.
    """
    count = v.ld64(walk, Walk.TILES)
    with v.loop(v.ld64(walk, Walk.LINES)) as line, v.loop(count) as tile:
        steps = lambda k: (v.ld64(walk, Walk.STEPS + 2 * k), v.ld64(walk, Walk.STEPS + 2 * k + 1))
        number = v.add(v.ld64(walk, Walk.BEFORE), v.mul(line, count), tile)
        yield number, lambda k: v.add(*map(v.b.mul, (line, tile), steps(k)))


@dataclasses.dataclass(frozen=True)
class _Sides:
    """Bytes from one element of a run to the next, of the input and of the weights."""

    element: ir.Value | int
    row: ir.Value | int

    def at(self, v: Builder, w: ir.Value, x: ir.Value, k: ir.Value, u: int = 0) -> tuple[ir.Value, ir.Value]:
        """Addresses (weights, input) of the element number k + u behind those of `w` and `x`."""
        if isinstance(self.element, int):
            return v.add(w, v.mul(k, self.row), u * self.row), v.add(x, v.mul(k, self.element), u * self.element)
        k = v.add(k, u)
        return v.add(w, v.mul(k, self.row)), v.add(x, v.mul(k, self.element))


def _reduce(
    v: Builder,
    step: Step,
    acc: list[ir.Value],
    w: ir.Value,
    x: ir.Value,
    run: ir.Value,
    sides: _Sides,
    unroll: int = UNROLL,
    meanwhile: Callable[[ir.Value], None] | None = None,
) -> list[ir.Value]:
    """A run whose length is only known at the call, `unroll` elements at a time; `meanwhile` is done with each."""
    blocks, rest = v.b.sdiv(run, i64(unroll)), v.b.srem(run, i64(unroll))
    with v.carry(blocks, acc) as (k, a, inner):
        if meanwhile:
            meanwhile(k)
        for u in range(unroll):
            a = step(a, *sides.at(v, w, x, v.mul(k, unroll), u))
        inner(a)
    if unroll == 1:
        return v.carried
    w, x = sides.at(v, w, x, v.mul(blocks, unroll))
    with v.carry(rest, v.carried) as (k, a, inner):
        inner(step(a, *sides.at(v, w, x, k)))
    return v.carried
