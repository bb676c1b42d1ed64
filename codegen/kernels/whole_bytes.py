"""Vectors of f32 as bytes: how numbers become s8, and how those of several vectors side by side are stored.

    s32      a0..a3 a4..a7 ..   b0..b3 ..   c0..c3 ..   d0..d3 ..        four vectors, by lanes of 16 bytes
    s16      a0..a3 b0..b3 | a4..a7 b4..b7 ..                            an instruction for each two of them
    s8       a0..a3 b0..b3 c0..c3 d0..d3 | a4..a7 ..                     one instruction
    in order a0..a3 a4..a7 .. b0..b3 ..                                  one that moves words of 4 bytes

CPUs have few units that compare, bound and convert f32. So a tile is stored in haste first: no number is looked at that
no s32 is near to (NaN, and what is 2^31 or more), and bounds below a scale are those of bytes, a vector of which takes
one instruction where its numbers take four. All such numbers become the least s32, and so does the least s16 tell of
them. Where a tile has met it, the tile is stored again, exactly.

    nearest(min(max(x, 0), 6) * s)   ->   between(nearest(x * s), nearest(0 * s), nearest(6 * s))

as multiplying by a number, rounding and saturating keep the order of numbers (or turn it around, all three).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as ir

from ..rules.expressions import Expr, Node
from .simd import Builder
from .vectors import ROUNDED, STORED_BYTES, Bytes, integers, vector

S8, S16, S32 = (ir.IntType(bits) for bits in (8, 16, 32))
FILLING = 4  # vectors of s32 whose bytes fill a vector
#: type of elements -> vectors that one instruction makes one vector of
TOGETHER = {"int8": FILLING, ROUNDED: 2}
LANE = 4  # s32 among which instructions that narrow two vectors stay
FLIPPED = -128  # of a byte that is 128 larger, as u8
LEAST = -(1 << 15)  # s16
LARGEST = 3.4028234663852886e38  # f32
SCALES, FORWARDS = ("mul", "div"), ("shifted", "copy")
BOUNDS: dict[str, Callable[[float, float], float]] = {"max": max, "min": min}
#: lanes -> the instructions of x86 that narrow two vectors to the nearest s16, and two of s16 to the nearest s8
NARROWED = {
    16: ("llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packsswb.512"),
    8: ("llvm.x86.avx2.packssdw", "llvm.x86.avx2.packsswb"),
}
#: lanes -> the instruction of x86 that gives numbers of some kinds another value, and what it is told: NaN becomes 0
FIXED = {16: ("llvm.x86.avx512.mask.fixupimm.ps.512", 0x88)}


# -- numbers as bytes ----------------------------------------------------------------------------------


def cut(v: Builder, x: ir.Value) -> ir.Value:
    """x as the s8 that a conversion makes of it: cut towards zero, the nearest one in the range; NaN is 0."""
    low = v.select("<", x, v.const(-128.0), v.const(-128.0), x)
    both = v.select(">", low, v.const(127.0), v.const(127.0), low)
    whole = v.unary("trunc", both)
    return v.b.select(v.b.fcmp_unordered("uno", x, x), v.const(0.0), v.b.fadd(whole, v.const(0.0)))


def nearest(v: Builder, x: ir.Value) -> ir.Value:
    """x as the s8 nearest to it (ties to even); NaN is 0."""
    whole = _whole(v, x)
    for op, bound in ((">", v.iconst(-128)), ("<", v.iconst(127))):  # LLVM makes one conversion of the three
        whole = v.b.select(v.b.icmp_signed(op, whole, bound), whole, bound)
    return _noted(v, Bytes(x, v.b.trunc(whole, vector(S8, v.vl))))


def shifted(v: Builder, x: ir.Value) -> ir.Value:
    """128 more than x, an s8."""
    if (found := v.bytes_of.get(x)) is None:
        return v.b.fadd(x, v.const(128.0))
    narrow = v.b.xor(found.narrow, integers(8, (FLIPPED,) * v.vl))
    return _noted(v, Bytes(found.source, narrow, True, found.bounds))


def between(v: Builder, x: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
    """The number nearest to x, an s8, between two ones that are the same in every lane, whichever is less."""
    found, ends = v.bytes_of[x], tuple(v.bytes_of[end].narrow for end in (one, other))
    narrow = _bounded(v, found.narrow, ends)
    return _noted(v, Bytes(found.source, narrow, found.flipped, (*found.bounds, ends)))


def _bounded(v: Builder, x: ir.Value, ends: Sequence[ir.Value]) -> ir.Value:
    """Vectors of s8 between two ends, given as shorter vectors."""
    n = x.type.count
    one, other = (v.b.shuffle_vector(end, end, integers(32, (0,) * n)) for end in ends)
    pick = lambda name, a, b: v.call(f"llvm.{name}.v{n}i8", x.type, a, b)
    return pick("smin", pick("smax", x, pick("smin", one, other)), pick("smax", one, other))


def _noted(v: Builder, found: Bytes) -> ir.Value:
    """Bytes as f32; `store` stores them as they are."""
    extended = v.b.zext if found.flipped else v.b.sext
    x = v.b.sitofp(extended(found.narrow, v.ivec), v.vec)
    v.bytes_of[x] = found
    return x


def _whole(v: Builder, x: ir.Value) -> ir.Value:
    """The s32 to which the s8 nearest to x is nearest."""
    most = v.select("<", v.const(127.0), x, v.const(127.0), x)  # NaN stays
    if v.vl in FIXED:
        name, table = FIXED[v.vl]
        told = (ir.Constant(S32, 0), ir.Constant(S16, -1), ir.Constant(S32, 4))
        return _converted(v, v.call(name, v.vec, most, most, v.iconst(table), *told))
    # what comes of NaN does not count
    return v.b.select(v.b.fcmp_ordered("ord", x, x), _converted(v, most), v.iconst(0))


def _converted(v: Builder, x: ir.Value) -> ir.Value:
    """The nearest s32; on x86 the least one for what none is near to."""
    return v.call(f"llvm.lrint.v{v.vl}i32.v{v.vl}f32", v.ivec, x)


# -- several vectors -----------------------------------------------------------------------------------


def store(v: Builder, values: Sequence[ir.Value], places: Sequence[ir.Value], dtype: str) -> None:
    """Stores vectors of f32, as `Builder.store_as` does each: as many at each place, side by side."""
    each = len(values) // len(places)
    found = [v.bytes_of[x] for x in values if x in v.bytes_of]
    if dtype == "int8" and len(found) == len(values) > 1 and v.vl in NARROWED and v.mask is None:
        raw, size = _packed(v, found), each * v.vl
        for k, place in enumerate(places):
            part = v.shuffle(raw, raw, range(k * size, (k + 1) * size)) if len(places) > 1 else raw
            v.b.store(part, v.ptr(place, part.type)).align = 1
        return
    width = 2 if dtype == ROUNDED and v.mask is None and each % 2 == 0 else 1
    for n in range(0, len(values), width):
        at = v.add(places[n // each], STORED_BYTES.get(dtype, 4) * v.vl * (n % each))
        if width == 2:
            v.store_rounded(values[n : n + 2], at)
        else:
            v.store_as(values[n], at, dtype)


@dataclasses.dataclass(frozen=True)
class Haste:
    """A tile that is stored in haste, by an expression and kinds of its own, and where that fails computed once more:
    from block `begin` on, with `exactly` being true then.
    """

    expr: Expr
    kinds: tuple[Any, ...]
    begin: ir.Block
    exactly: ir.PhiInstr


def haste(v: Builder, expr: Expr, kinds: tuple[Any, ...]) -> Haste | None:
    """The beginning of a tile with that epilogue (see `gemm`). None where there are no bytes, where computing it again
    may read what it has written, and where the target lacks the instructions.
    """
    changed = _hastily(expr, kinds) if v.vl in NARROWED else None
    if changed is None:
        return None
    before, begin = v.b.block, v.b.append_basic_block("tile")
    v.b.branch(begin)
    v.b.position_at_end(begin)
    exactly = v.b.phi(ir.IntType(1))
    exactly.add_incoming(exactly.type(0), before)
    return Haste(*changed, begin, exactly)


def store_in(v: Builder, haste: Haste | None, write: Callable[[Haste | None], None]) -> None:
    """Has `write` store a tile: in haste, and exactly (None) where not all of that was right, or there is none."""
    if haste is None:
        write(None)
        return
    b = v.b
    fast, slow, end = (b.append_basic_block(n) for n in ("fast", "slow", "stored"))
    b.cbranch(haste.exactly, slow, fast).set_weights([1, 99])
    b.position_at_end(fast)
    v.hasty = []
    write(haste)
    met, v.hasty = v.hasty, None
    least = functools.reduce(lambda a, b: v.call(f"llvm.smin.v{2 * v.vl}i16", a.type, a, b), met)
    found, bits = b.icmp_signed("==", least, integers(16, (LEAST,) * 2 * v.vl)), ir.IntType(2 * v.vl)
    b.cbranch(b.icmp_signed("!=", b.bitcast(found, bits), bits(0)), haste.begin, end).set_weights([1, 99])
    haste.exactly.add_incoming(haste.exactly.type(1), b.block)
    b.position_at_end(slow)
    write(None)
    b.branch(end)
    b.position_at_end(end)


def _packed(v: Builder, found: Sequence[Bytes]) -> ir.Value:
    """The bytes of some vectors that were made in one way, one behind the other."""
    b, n, lanes, first = v.b, len(found), v.vl // LANE, found[0]
    assert n <= FILLING, "what one vector holds"
    whole = [(_whole if v.hasty is None else _converted)(v, f.source) for f in found]
    words, narrow = (vector(typ, n) for typ, n in ((S16, 2 * v.vl), (S8, 4 * v.vl)))
    to_words, to_bytes = NARROWED[v.vl]
    by_two = [v.call(to_words, words, *(whole[min(u, n - 1)] for u in (k, k + 1))) for k in range(0, n, 2)]
    if v.hasty is not None:
        v.hasty += by_two
    mixed = b.bitcast(v.call(to_bytes, narrow, by_two[0], by_two[-1]), v.ivec)
    order = [lane * FILLING + u for u in range(n) for lane in range(lanes)]
    raw = b.bitcast(v.shuffle(mixed, mixed, order), vector(S8, n * v.vl))
    for ends in first.bounds:
        raw = _bounded(v, raw, ends)
    return b.xor(raw, integers(8, (FLIPPED,) * n * v.vl)) if first.flipped else raw


# -- expressions ---------------------------------------------------------------------------------------


@functools.lru_cache(256)
def bounded_as_bytes(expr: Expr, node: int, alike: frozenset[int]) -> tuple[Expr, int]:
    """An expression and the number of a node that is a byte, with bounds of numbers below a scale made bounds of bytes;
    as they are where there are none. `alike`: operands that are one number for all pixels and channels.
    """
    head, *args = expr[node]
    if head in FORWARDS:
        inner, at = bounded_as_bytes(expr, args[0], alike)
        return ((*inner, (head, at)), len(inner)) if at != args[0] else (expr, node)
    path = _monotone(expr, args[0], alike) if head == "nearest" else []
    if not any(n[0] in BOUNDS for n in path):
        return expr, node
    out = list(expr)

    def byte(at: int, scales: Sequence[Node]) -> int:
        for name, _, by in (n for n in reversed(scales) if n[0] in SCALES):
            out.append((name, at, by))
            at = len(out) - 1
        out.append(("nearest", at))
        return len(out) - 1

    at = byte(path[-1][1], path)
    for k in reversed(range(len(path))):
        if path[k][0] in BOUNDS and (k == 0 or path[k - 1][0] not in BOUNDS):
            ends = []
            for end in _interval(expr, path[k:]):
                out.append(("lit", "f", repr(end)))
                ends.append(byte(len(out) - 1, path[:k]))
            out.append(("between", at, *ends))
            at = len(out) - 1
    return tuple(out), at


def _hastily(expr: Expr, kinds: tuple[Any, ...]) -> tuple[Expr, tuple[Any, ...]] | None:
    """The expression and the kinds with which `haste` has an epilogue stored."""
    found, some, alike = list(kinds), False, frozenset(1 + k for k, kind in enumerate(kinds) if kind == "p")
    for k, kind in enumerate(kinds):
        form = isinstance(kind, tuple)
        if kind in ("v", "h") or (form and kind[2]):  # the result is stored too, where partial sums were
            return None
        if form and kind[0] == "int8" and _is_nearest(expr, kind[1]):
            expr, node = bounded_as_bytes(expr, kind[1], alike)
            found[k], some = (kind[0], node, False), True
    return (expr, tuple(found)) if some else None


def _is_nearest(expr: Expr, node: int) -> bool:
    head, *args = expr[node]
    return head == "nearest" or (head in FORWARDS and _is_nearest(expr, args[0]))


def _monotone(expr: Expr, at: int, alike: frozenset[int]) -> list[Node]:
    """The scales and bounds that make a node, the last one first: (head, what is scaled or bounded, by what)."""
    path: list[Node] = []
    while True:
        head, *args = expr[at]
        if head not in SCALES and head not in BOUNDS:
            return path
        sides = [(a, b) for a, b in (args, args[::-1])[: 1 if head == "div" else 2] if _same(expr, b, alike)]
        bounds = [(a, b) for a, b in sides if expr[b][0] == "lit" and math.isfinite(float(expr[b][2]))]
        found = sides if head in SCALES else bounds
        if not found:
            return path
        path.append((head, *found[0]))
        at = found[0][0]


def _same(expr: Expr, node: int, alike: frozenset[int]) -> bool:
    """Whether a node is a literal of f32, or one of the operands `alike`."""
    head, *args = expr[node]
    return args[0] in alike if head == "in" else head == "lit" and args[0] == "f"


def _interval(expr: Expr, path: Sequence[Node]) -> list[float]:
    """What the bounds at the beginning of a path make of the least and the largest f32."""
    run = list(itertools.takewhile(lambda n: n[0] in BOUNDS, path))
    ends = [-LARGEST, LARGEST]
    for head, _, by in reversed(run):
        ends = [BOUNDS[head](end, float(expr[by][2])) for end in ends]
    return ends
