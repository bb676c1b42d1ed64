"""One row times a large matrix of int4 or int8 with scales by group of rows, multiplied as whole numbers.

    x of a block of rows  =  2^e (65536 a + 256 b + c)        three digits of 8 bits
    y += 2^e scale (65536 (a . q) + 256 (b . q) + (c . q))

Four digits times four weights are added up exactly: by one instruction (VNNI), or by one that adds pairs in 16 bits and
one that adds these (AVX2, AVX-512BW). There digits of int8 have 7 bits, four of them, so that pairs have room. The
largest element of a block has 22 (26) bits, and what is rounded away of the others is as small as for it. An element
that is not finite makes all results NaN. Weights are stored 8 (128) too large; as many times the sum of the digits is
taken off. They are packed in panels of a few vectors, [8 rows, channels] of int4 and [4 rows, channels] of int8 each:

    byte j of vector u     row 4 h + j % 4, channel lanes u + j / 4; h = 0 in its lower half, h = 1 in its upper half
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Value, itemsize
from ..rules.expressions import Expr
from ..segment.context import Context
from ..segment.steps import Early, Kernel, Ref
from ..target import Target
from .elementwise import nest
from .kept_weights import Stored
from .lanes import Lane
from .nests import LAST, chunk_of
from .parts import add_up, walked
from .simd import Builder
from .vectors import F32, I32, i64

FOUR = 4  # rows that one instruction adds up
BLOCK, LEAST = 128, 16  # most rows of a block, of which f32 has sums exactly; fewest that are worth their digits
ITEMS = 2  # for each thread
AHEAD = 2048  # bytes by which weights are asked for in advance
LINE = 64
STREAMS = 4


@dataclasses.dataclass(frozen=True)
class Fours:
    """How s32 plus four products of u8 and s8 are had, in vectors of `vl` lanes: by the LLVM intrinsics `pairs` (sums
    of two products in s16) and `added` (of two of these), or by `pairs` alone, where `added` is "". `digits`: how many
    of how many bits, by the type of the weights.
    """

    feature: str
    vl: int
    pairs: str
    added: str
    digits: Mapping[str, tuple[int, int]]


_BYTES, _PAIRS = {"int4": (3, 8), "int8": (3, 8)}, {"int4": (3, 8), "int8": (4, 7)}
#: the first one that a target has is used
FOURS = (
    Fours("avx512vnni", 16, "llvm.x86.avx512.vpdpbusd.512", "", _BYTES),
    Fours("avx512bw", 16, "llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512", _PAIRS),
    Fours("avxvnni", 8, "llvm.x86.avx512.vpdpbusd.256", "", _BYTES),
    Fours("avx2", 8, "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd", _PAIRS),
)


@dataclasses.dataclass(frozen=True)
class Packed:
    """How weights lie in panels of `vectors` of `fours.vl` lanes: `count` of them in a byte, each `shift` too large.
    `digits` of x, of `bits` each.
    """

    fours: Fours
    vectors: int
    count: int
    shift: int
    digits: int
    bits: int

    @property
    def rows(self) -> int:
        """Rows that lie in one vector."""
        return FOUR * self.count

    @property
    def channels(self) -> int:
        """Channels of a panel."""
        return self.fours.vl * self.vectors

    def of(self, rows: int) -> int:
        """Bytes of so many rows of a panel."""
        return rows * self.channels // self.count

    @property
    def head(self) -> int:
        """Bytes before the digits of a block: its scale, and what the sum of each digit begins with."""
        return _head(self.digits)


def _head(digits: int) -> int:
    return -(-4 * (1 + digits) // 16) * 16


def packed_of(target: Target, dtype: str) -> Packed | None:
    """How a target reads weights of a type; None where it does not."""
    has = target.features.split(",")
    fours = next((f for f in FOURS if f"+{f.feature}" in has and f.vl == target.vl), None)
    if fours is None or dtype not in fours.digits:
        return None
    count, shift = (2, 8) if dtype == "int4" else (1, 128)
    return Packed(fours, 4 if target.registers >= 32 else 2, count, shift, *fours.digits[dtype])


def block_of(group: int, packed: Packed) -> int:
    """Rows of a block: the largest divisor of a group's that is a whole number of vectors and at most `BLOCK`; 0: there
    is none of `LEAST` or more.
    """
    return next((b for b in range(BLOCK, LEAST - 1, -packed.rows) if group % b == 0), 0)


def fits(target: Target, w: Stored) -> bool:
    """Whether these kernels read weights."""
    packed = packed_of(target, w.value.dtype)
    return packed is not None and block_of(w.group or w.rows, packed) > 0


def add_digits(ctx: Context, x: Lane, w: Stored, lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of x @ w and of the other lanes; x f32 [rows of w], side by side."""
    k, n, packed = w.rows, w.channels, packed_of(ctx.target, w.value.dtype)
    assert packed is not None
    group, channels, digits = w.group or k, packed.channels, packed.digits
    block = block_of(group, packed)
    blocks, panels, groups = k // block, -(-n // channels), k // group
    each, table, where = packed.head + digits * block, _digits_of(ctx, x, k, block, packed), _panels(ctx, w, packed)
    run, share = _items(ctx.threads, panels, blocks, group // block)
    parts, scale = -(-blocks // share), channels * itemsize(w.scale_dtype)
    y = ctx.scratch((parts, 1, panels * channels))
    operands = [
        walked(table, 0, share * each),
        walked(where, run * packed.of(k), share * packed.of(block)),
        walked(Ref(y.buffer, y.offset), run * channels * 4, y.strides[0]),
    ]
    if w.scale is not None:
        operands.append(walked(_scales(ctx, w, channels), run * groups * scale, share * block // group * scale))
    scales = w.scale_dtype if w.scale is not None else ""
    words = [blocks, share, panels, run, group // block, groups * scale]
    units = run * share * block // packed.rows * packed.vectors * (1 + packed.count * (1 + digits))
    kernel = Kernel(("digit_gemv", block, w.value.dtype, scales))
    item = share * packed.of(block) if parts > 1 else run * packed.of(k)
    early = Early(where, item, panels * packed.of(k), *_in_streams(item)) if blocks % share == 0 else None
    nest(ctx, kernel, words, (-(-panels // run), parts), operands, 2, 1, units, early=early)
    add_up(ctx, y.part(2, 0, n), lanes, expr)


def _in_streams(nbytes: int) -> tuple[int, int]:
    """As many streams as an item of so many bytes is asked for in, and how far apart they begin: all of it is read."""
    apart = nbytes // STREAMS // LINE * LINE
    return (STREAMS, apart) if apart else (1, 0)


def _digits_of(ctx: Context, x: Lane, k: int, block: int, packed: Packed) -> Ref:
    """The digits of x by blocks; those that an earlier product of the same x has made."""
    blocks, each = k // block, packed.head + packed.digits * block
    shape = (block, packed.shift, packed.digits, packed.bits)
    key = ("digits", x.ref.buffer, x.ref.offset, k, *shape)
    known = ctx.kept.get(key)
    if known is None:
        table = ctx.scratch((blocks * each // 4,))
        known = ctx.kept[key] = Ref(table.buffer, table.offset)
        operands = [walked(x.ref, 4 * block), walked(known, each)]
        nest(ctx, Kernel(("digits", *shape)), [], (blocks,), operands, 1, blocks, 4 * block)
    return known


def _items(threads: int, panels: int, blocks: int, whole: int) -> tuple[int, int]:
    """Panels and blocks of a work item: whole panels, `ITEMS` for each thread; where these are too few, parts of one of
    a multiple of `whole` blocks.
    """
    wanted = 1 if threads == 1 else ITEMS * threads
    parts = min(wanted // panels, blocks // whole) if panels < wanted else 1
    return max(1, -(-panels // wanted)), -(-blocks // (max(1, parts) * whole)) * whole


def _panels(ctx: Context, w: Stored, packed: Packed) -> Ref:
    """The weights as they are packed."""
    k, n, value, channels = w.rows, w.channels, w.value, packed.channels
    wide = -(-n // channels) * channels

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        whole = np.full((k, wide), packed.shift, np.uint8)
        whole[:, :n] = np.asarray(consts[value]).astype(np.int8).reshape(k, n).view(np.uint8) + np.uint8(packed.shift)
        parts = whole.reshape(k // packed.rows, packed.count, FOUR, wide // channels, channels)
        parts = parts.transpose(1, 3, 0, 4, 2)
        return (parts[0] | parts[1] << 4 if packed.count == 2 else parts[0]).ravel().view(np.float32)

    return ctx.pack(packed.of(k) * (wide // channels), packer, ("digit panels", value, k, n))


def _scales(ctx: Context, w: Stored, channels: int) -> Ref:
    """The scales [panels, groups, channels of a panel], in the type in which the model keeps them."""
    groups, wide, dtype = w.rows // w.group, -(-w.channels // channels) * channels, w.scale_dtype

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        whole = np.zeros((groups, wide), np.float32)
        whole[:, : w.channels] = w.scales(consts)
        panels = whole.reshape(groups, -1, channels).swapaxes(0, 1).ravel()
        if dtype == "float32":
            return panels
        exact = panels.astype(np.float16) if dtype == "float16" else (panels.view(np.uint32) >> 16).astype(np.uint16)
        return exact.view(np.float32)

    nbytes = itemsize(dtype) * groups * wide
    return ctx.pack(nbytes, packer, ("scales of panels", w.scale, w.lead, groups, w.channels))


@family("digits")
def digits(name: str, key: Spec, target: Target) -> str:
    """("digits", rows, shift, digits, bits): so many digits of the elements, f32, of a block.

    Operands: x, the block's table (see `Packed.head`): its scale f32, -shift times the sum of each digit s32, then each
    digit of all elements s8, the most significant one first.
    """
    _, rows, shift, count, bits = key
    precise, unused = count * bits - 2, 32 - bits
    head = _head(count)
    v = Builder(name, 3, target.vl)
    where = v.args[0]
    x, table = v.ld64(where, 0), v.ld64(where, 1)
    most = _most(v, x, rows)
    biggest = v.b.lshr(v.b.extract_element(v.bits(most), i64(0)), ir.Constant(I32, 23))  # an exponent of f32
    low = ir.Constant(I32, precise)
    exponent = v.b.select(v.b.icmp_unsigned("<", biggest, low), low, biggest)
    power = lambda e: v.b.bitcast(v.b.shl(e, ir.Constant(I32, 23)), F32)
    grown = v.splat(power(v.b.sub(ir.Constant(I32, 254 + precise - 1), exponent)), v.vec)
    scale = power(v.b.sub(exponent, ir.Constant(I32, precise - 1)))
    bad = v.b.icmp_unsigned("==", biggest, ir.Constant(I32, 255))
    v.b.store(v.b.select(bad, ir.Constant(F32, float("nan")), scale), v.ptr(table, F32))
    sums: list[ir.Value] = [v.iconst(0)] * count
    for at in range(0, rows, v.vl):
        v.set_mask(None if at + v.vl <= rows else i64(rows - at))
        rest = v.b.fptosi(v.unary("rint", v.b.fmul(v.load(v.add(x, 4 * at)), grown)), v.ivec)
        for d in reversed(range(count)):
            digit = v.b.ashr(v.b.shl(rest, v.iconst(unused)), v.iconst(unused))
            rest = v.b.ashr(v.b.sub(rest, digit), v.iconst(bits))
            sums[d] = v.b.add(sums[d], digit)
            _store_bytes(v, digit, v.add(table, head + rows * d + at))
    for d, total in enumerate(sums):
        whole = v.b.extract_element(v.across(total, v.b.add), i64(0))
        v.b.store(v.b.mul(whole, ir.Constant(I32, -shift)), v.ptr(v.add(table, 4 + 4 * d), I32))
    return v.finish()


def _most(v: Builder, x: ir.Value, rows: int) -> ir.Value:
    """The largest absolute value of so many elements, in every lane; of NaN and infinity the one that is."""
    found: ir.Value = v.iconst(0)
    larger = lambda a, b: v.b.select(v.b.icmp_signed(">", a, b), a, b)
    for at in range(0, rows, v.vl):
        v.set_mask(None if at + v.vl <= rows else i64(rows - at))
        found = larger(found, v.b.and_(v.bits(v.load(v.add(x, 4 * at))), v.iconst(0x7FFFFFFF)))
    v.set_mask(None)
    return v.floats(v.across(found, larger))


def _store_bytes(v: Builder, value: ir.Value, at: ir.Value) -> None:
    """Stores the lower bytes of a vector's lanes side by side."""
    typ = ir.VectorType(ir.IntType(8), v.vl)
    raw = v.b.trunc(value, typ)
    if v.mask is None:
        v.b.store(raw, v.ptr(at, typ)).align = 1
    else:
        v.store_lanes(raw, at, 1)


@family("digit_gemv")
def digit_gemv(name: str, key: Spec, target: Target) -> str:
    """("digit_gemv", rows of a block, dtype, type of the scales): y = x @ W for a run of panels and a part of the
    blocks, of whole groups.

    Loops end in (runs, parts). Operands, where they begin: the blocks' tables, W, y, and the scales (of type "": there
    are none). Words: blocks, those of a part, panels, those of a run, blocks of a group, bytes of a panel's scales.
    """
    _, block, dtype, kept = key
    packed = packed_of(target, dtype)
    assert packed is not None
    v, vectors, channels = Builder(name, 3, target.vl), packed.vectors, packed.channels
    where, index, words = v.args
    table, w, y = (v.ld64(where, i) for i in range(3))
    total, wide = v.ld64(words, 0), packed.of(block)
    blocks = chunk_of(v, v.ld64(index, LAST), total, v.ld64(words, 1))
    count = chunk_of(v, v.ld64(index, LAST - 1), v.ld64(words, 2), v.ld64(words, 3))
    with v.loop(count) as p:
        panel = v.add(w, v.mul(p, v.mul(total, wide)))
        mine = v.add(v.ld64(where, 3), v.mul(p, v.ld64(words, 5))) if kept else None
        with v.carry(blocks, [v.const(0.0)] * vectors) as (b, sums, done):
            at = v.add(table, v.mul(b, packed.head + packed.digits * block))
            found = _block(v, at, v.add(panel, v.mul(b, wide)), block, packed)
            factors = [v.broadcast(at)] * vectors
            if mine is not None:
                row = v.add(mine, v.mul(v.b.sdiv(b, v.ld64(words, 4)), itemsize(kept) * channels))
                found_scales = [v.load_stored(v.add(row, v.vl * itemsize(kept) * u), kept) for u in range(vectors)]
                factors = [v.b.fmul(f, s) for f, s in zip(factors, found_scales, strict=True)]
            done([v.fma(x, f, a) for x, f, a in zip(found, factors, sums, strict=True)])
        for u, total in enumerate(v.carried):
            v.store(total, v.add(y, v.mul(p, 4 * channels), 4 * v.vl * u))
    return v.finish()


def _block(v: Builder, table: ir.Value, w: ir.Value, rows: int, packed: Packed) -> list[ir.Value]:
    """What a block of rows adds to the channels of a panel, in units of its scale: of f32."""
    count, vectors, nbytes = packed.digits, packed.vectors, 4 * v.vl
    first = [v.splat(v.b.load(v.ptr(v.add(table, 4 + 4 * d), I32)), v.ivec) for d in range(count)]
    nibble = v.iconst(0x0F0F0F0F)
    with v.carry(i64(rows // packed.rows), first * vectors) as (r, acc, done):  # a loop: all has to fit the registers
        words = v.add(table, packed.head, v.mul(r, packed.rows))
        at = v.add(w, v.mul(r, nbytes * vectors))
        raw = [v.bits(v.load(v.add(at, nbytes * u))) for u in range(vectors)]
        for line in range(0, nbytes * vectors, LINE):
            v.prefetch(v.add(at, line + AHEAD), 2)
        for h in range(packed.count):
            bytes_ = [v.b.and_(v.b.lshr(x, v.iconst(4)) if h else x, nibble) for x in raw] if packed.count > 1 else raw
            fours = [v.b.load(v.ptr(v.add(words, rows * d + FOUR * h), I32)) for d in range(count)]
            wide = [v.splat(four, v.ivec) for four in fours]
            pairs = [(four, x) for four in bytes_ for x in wide]
            acc = [_add_fours(v, packed.fours, a, w4, x) for a, (w4, x) in zip(acc, pairs, strict=True)]
        done(acc)
    sums = v.carried
    floats = [v.b.sitofp(a, v.vec) for a in sums]
    found = []
    for u in range(vectors):
        *digits, total = floats[count * u : count * (u + 1)]
        for d, x in enumerate(reversed(digits), 1):
            total = v.fma(x, v.const(float(2 ** (packed.bits * d))), total)
        found.append(total)
    return found


def _add_fours(v: Builder, fours: Fours, acc: ir.Value, weights: ir.Value, digits: ir.Value) -> ir.Value:
    """`acc` s32 and the sums of four products of u8 and s8."""
    if not fours.added:
        return v.call(fours.pairs, v.ivec, acc, weights, digits)
    bytes_, halves = (ir.VectorType(ir.IntType(n), 32 // n * v.vl) for n in (8, 16))
    pairs = v.call(fours.pairs, halves, v.b.bitcast(weights, bytes_), v.b.bitcast(digits, bytes_))
    ones = ir.Constant(halves, [1] * halves.count)
    return v.b.add(acc, v.call(fours.added, v.ivec, pairs, ones))


__all__ = ["add_digits", "fits"]
