"""One row times a large matrix of int4 or int8 with scales by group of rows, multiplied as whole numbers.

    x of a block of rows  =  2^e (65536 a + 256 b + c)        three digits of 8 bits
    y += 2^e scale (65536 (a . q) + 256 (b . q) + (c . q))

One instruction multiplies four digits with four weights and adds them up exactly (AVX512-VNNI). The largest element of
a block has 22 bits, and what is rounded away of the others is as small as for it. An element that is not finite makes
all results NaN. Weights are stored 8 (128) too large; as many times the sum of the digits is taken off. They are packed
in panels of 64 channels, [8 rows, 64] of int4 and [4 rows, 64] of int8 each:

    byte j of vector u     row 4 h + j % 4, channel 16 u + j / 4; h = 0 in its lower half, h = 1 in its upper half
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..program import Value, itemsize
from ..rules.expressions import Expr
from ..segment.assembly import Context
from ..segment.steps import Early, Kernel, Ref
from ..target import Target
from .elementwise import nest
from .kept_weights import Stored
from .nests import LAST, chunk_of
from .parts import add_up, walked
from .product import Lane
from .simd import F32, I32, Builder, i64

VECTORS = 4  # of a panel
CHANNELS = 16 * VECTORS
FOUR = 4  # rows that one instruction adds up
BLOCK, LEAST = 128, 16  # most rows of a block, of which f32 has sums exactly; fewest that are worth their digits
DIGITS = 3
BITS = 22
HEAD = 16  # bytes before the digits of a block: its scale, and what the sum of each digit begins with
ITEMS = 2  # for each thread
AHEAD = 2048  # bytes by which weights are asked for in advance
LINE = 64
STREAMS = 4
FOURS = "llvm.x86.avx512.vpdpbusd.512"  # s32 plus four products of u8 and s8


@dataclasses.dataclass(frozen=True)
class Packed:
    """How weights lie in panels: `count` of them in a byte, each `shift` too large."""

    count: int
    shift: int

    @property
    def rows(self) -> int:
        """Rows that lie in one vector."""
        return FOUR * self.count

    def of(self, rows: int) -> int:
        """Bytes of so many rows of a panel."""
        return rows * CHANNELS // self.count


PACKED = {"int4": Packed(2, 8), "int8": Packed(1, 128)}


def block_of(group: int, packed: Packed) -> int:
    """Rows of a block: the largest divisor of a group's that is a whole number of vectors and at most `BLOCK`; 0: there
    is none of `LEAST` or more.
    """
    return next((b for b in range(BLOCK, LEAST - 1, -packed.rows) if group % b == 0), 0)


def fits(target: Target, w: Stored) -> bool:
    """Whether these kernels read weights."""
    able, packed = "+avx512vnni" in target.features.split(",") and target.vl == 16, PACKED.get(w.value.dtype)
    return able and packed is not None and block_of(w.group or w.rows, packed) > 0


def add_digits(ctx: Context, x: Lane, w: Stored, lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of x @ w and of the other lanes; x f32 [rows of w], side by side."""
    k, n, packed = w.rows, w.channels, PACKED[w.value.dtype]
    group = w.group or k
    block = block_of(group, packed)
    blocks, panels, groups = k // block, -(-n // CHANNELS), k // group
    each, table, where = HEAD + DIGITS * block, _digits_of(ctx, x, k, block, packed), _panels(ctx, w, packed)
    run, share = _items(ctx.threads, panels, blocks, group // block)
    parts, scale = -(-blocks // share), CHANNELS * itemsize(w.scale_dtype)
    y = ctx.scratch((parts, 1, panels * CHANNELS))
    operands = [
        walked(table, 0, share * each),
        walked(where, run * packed.of(k), share * packed.of(block)),
        walked(Ref(y.buffer, y.offset), run * CHANNELS * 4, y.strides[0]),
    ]
    if w.scale is not None:
        operands.append(walked(_scales(ctx, w), run * groups * scale, share * block // group * scale))
    scales = w.scale_dtype if w.scale is not None else ""
    words = [blocks, share, panels, run, group // block, groups * scale]
    units = run * share * block // packed.rows * VECTORS * (1 + packed.count * (1 + DIGITS))
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
    blocks, each = k // block, HEAD + DIGITS * block
    key = ("digits", x.ref.buffer, x.ref.offset, k, block, packed.shift)
    known = ctx.kept.get(key)
    if known is None:
        table = ctx.scratch((blocks * each // 4,))
        known = ctx.kept[key] = Ref(table.buffer, table.offset)
        operands = [walked(x.ref, 4 * block), walked(known, each)]
        nest(ctx, Kernel(("digits", block, packed.shift)), [], (blocks,), operands, 1, blocks, 4 * block)
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
    k, n, value = w.rows, w.channels, w.value
    wide = -(-n // CHANNELS) * CHANNELS

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        whole = np.full((k, wide), packed.shift, np.uint8)
        whole[:, :n] = np.asarray(consts[value]).astype(np.int8).reshape(k, n).view(np.uint8) + np.uint8(packed.shift)
        parts = whole.reshape(k // packed.rows, packed.count, FOUR, wide // CHANNELS, CHANNELS)
        parts = parts.transpose(1, 3, 0, 4, 2)
        return (parts[0] | parts[1] << 4 if packed.count == 2 else parts[0]).ravel().view(np.float32)

    return ctx.pack(packed.of(k) * (wide // CHANNELS), packer, ("digit panels", value, k, n))


def _scales(ctx: Context, w: Stored) -> Ref:
    """The scales [panels, groups, channels of a panel], in the type in which the model keeps them."""
    groups, wide, dtype = w.rows // w.group, -(-w.channels // CHANNELS) * CHANNELS, w.scale_dtype

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        whole = np.zeros((groups, wide), np.float32)
        whole[:, : w.channels] = w.scales(consts)
        panels = whole.reshape(groups, -1, CHANNELS).swapaxes(0, 1).ravel()
        if dtype == "float32":
            return panels
        exact = panels.astype(np.float16) if dtype == "float16" else (panels.view(np.uint32) >> 16).astype(np.uint16)
        return exact.view(np.float32)

    nbytes = itemsize(dtype) * groups * wide
    return ctx.pack(nbytes, packer, ("scales of panels", w.scale, w.lead, groups, w.channels))


@family("digits")
def digits(name: str, key: Spec, target: Target) -> str:
    """("digits", rows, shift): the digits of a block of so many elements of f32.

    Operands: x, the block's table: its scale f32, -shift times the sum of each digit s32, then each digit of all
    elements s8, the most significant one first.
    """
    _, rows, shift = key
    v = Builder(name, 3, target.vl)
    where = v.args[0]
    x, table = v.ld64(where, 0), v.ld64(where, 1)
    most = _most(v, x, rows)
    biggest = v.b.lshr(v.b.extract_element(v.bits(most), i64(0)), ir.Constant(I32, 23))  # an exponent of f32
    low = ir.Constant(I32, BITS)
    exponent = v.b.select(v.b.icmp_unsigned("<", biggest, low), low, biggest)
    power = lambda e: v.b.bitcast(v.b.shl(e, ir.Constant(I32, 23)), F32)
    grown = v.splat(power(v.b.sub(ir.Constant(I32, 254 + BITS - 1), exponent)), v.vec)
    scale = power(v.b.sub(exponent, ir.Constant(I32, BITS - 1)))
    bad = v.b.icmp_unsigned("==", biggest, ir.Constant(I32, 255))
    v.b.store(v.b.select(bad, ir.Constant(F32, float("nan")), scale), v.ptr(table, F32))
    sums: list[ir.Value] = [v.iconst(0)] * DIGITS
    for at in range(0, rows, v.vl):
        v.set_mask(None if at + v.vl <= rows else i64(rows - at))
        rest = v.b.fptosi(v.unary("rint", v.b.fmul(v.load(v.add(x, 4 * at)), grown)), v.ivec)
        for d in reversed(range(DIGITS)):
            digit = v.b.ashr(v.b.shl(rest, v.iconst(24)), v.iconst(24))
            rest = v.b.ashr(v.b.sub(rest, digit), v.iconst(8))
            sums[d] = v.b.add(sums[d], digit)
            _store_bytes(v, digit, v.add(table, HEAD + rows * d + at))
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
    raw, p = v.b.trunc(value, typ), v.ptr(at, typ)
    if v.mask is None:
        v.b.store(raw, p).align = 1
    else:
        v.call(f"llvm.masked.store.v{v.vl}i8.p0", ir.VoidType(), raw, p, ir.Constant(I32, 1), v.mask)


@family("digit_gemv")
def digit_gemv(name: str, key: Spec, target: Target) -> str:
    """("digit_gemv", rows of a block, dtype, type of the scales): y = x @ W for a run of panels and a part of the
    blocks, of whole groups.

    Loops end in (runs, parts). Operands, where they begin: the blocks' tables, W, y, and the scales (of type "": there
    are none). Words: blocks, those of a part, panels, those of a run, blocks of a group, bytes of a panel's scales.
    """
    _, block, dtype, kept = key
    packed = PACKED[dtype]
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    table, w, y = (v.ld64(where, i) for i in range(3))
    total, wide = v.ld64(words, 0), packed.of(block)
    blocks = chunk_of(v, v.ld64(index, LAST), total, v.ld64(words, 1))
    count = chunk_of(v, v.ld64(index, LAST - 1), v.ld64(words, 2), v.ld64(words, 3))
    with v.loop(count) as p:
        panel = v.add(w, v.mul(p, v.mul(total, wide)))
        mine = v.add(v.ld64(where, 3), v.mul(p, v.ld64(words, 5))) if kept else None
        with v.carry(blocks, [v.const(0.0)] * VECTORS) as (b, sums, done):
            at = v.add(table, v.mul(b, HEAD + DIGITS * block))
            found = _block(v, at, v.add(panel, v.mul(b, wide)), block, packed)
            factors = [v.broadcast(at)] * VECTORS
            if mine is not None:
                row = v.add(mine, v.mul(v.b.sdiv(b, v.ld64(words, 4)), itemsize(kept) * CHANNELS))
                found_scales = [v.load_stored(v.add(row, 16 * itemsize(kept) * u), kept) for u in range(VECTORS)]
                factors = [v.b.fmul(f, s) for f, s in zip(factors, found_scales, strict=True)]
            done([v.fma(x, f, a) for x, f, a in zip(found, factors, sums, strict=True)])
        for u, total in enumerate(v.carried):
            v.store(total, v.add(y, v.mul(p, 4 * CHANNELS), 64 * u))
    return v.finish()


def _block(v: Builder, table: ir.Value, w: ir.Value, rows: int, packed: Packed) -> list[ir.Value]:
    """What a block of rows adds to the channels of a panel, in units of its scale: of f32."""
    first = [v.splat(v.b.load(v.ptr(v.add(table, 4 + 4 * d), I32)), v.ivec) for d in range(DIGITS)]
    nibble = v.iconst(0x0F0F0F0F)
    with v.carry(i64(rows // packed.rows), first * VECTORS) as (r, acc, done):  # a loop: all has to fit the registers
        words = v.add(table, HEAD, v.mul(r, packed.rows))
        at = v.add(w, v.mul(r, LINE * VECTORS))
        raw = [v.bits(v.load(v.add(at, LINE * u))) for u in range(VECTORS)]
        for u in range(VECTORS):
            v.prefetch(v.add(at, LINE * u + AHEAD), 2)
        for h in range(packed.count):
            bytes_ = [v.b.and_(v.b.lshr(x, v.iconst(4)) if h else x, nibble) for x in raw] if packed.count > 1 else raw
            fours = [v.b.load(v.ptr(v.add(words, rows * d + FOUR * h), I32)) for d in range(DIGITS)]
            wide = [v.splat(four, v.ivec) for four in fours]
            pairs = [(four, x) for four in bytes_ for x in wide]
            acc = [v.call(FOURS, v.ivec, a, w4, x) for a, (w4, x) in zip(acc, pairs, strict=True)]
        done(acc)
    sums = v.carried
    weights = [v.const(float(256 ** (DIGITS - 1 - d))) for d in range(DIGITS)]
    floats = [v.b.sitofp(a, v.vec) for a in sums]
    mine = [floats[DIGITS * u : DIGITS * (u + 1)] for u in range(VECTORS)]
    return [v.fma(a, weights[0], v.fma(b, weights[1], c)) for a, b, c in mine]


__all__ = ["add_digits", "fits"]
