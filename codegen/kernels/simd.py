"""llvmlite building blocks: pointers, loops, vectors of f32 and what arithmetic on them needs."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Iterator, Sequence

import llvmlite.ir as ir

from .vectors import (
    F32,
    FIRST,
    I32,
    I64,
    ROUNDED,
    STORED_BYTES,
    BFloat,
    Bytes,
    f32s,
    i64,
    integers,
    number,
    pointer,
    undefined,
    vector,
)

SHORT = 8  # lanes of vectors of processors without registers for masks
#: lanes -> the instruction of x86 that takes the larger (max) or smaller (min) of each lane of two vectors, the second
#: one's where either is NaN, and what it is told besides: to round as is set
LARGER: dict[int, tuple[str, tuple[int, ...]]] = {
    16: ("llvm.x86.avx512.{}.ps.512", (4,)),
    8: ("llvm.x86.avx.{}.ps.256", ()),
}
#: lanes -> what multiplies pairs of s16 and adds each, on x86
PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


class Builder:
    """An `ir.IRBuilder` for one exported function `void name(i64...)` with vectors of `vl` f32 lanes.

    `mask` (a vector of i1) makes every `load`/`store` touch only the lanes that are set.
    """

    def __init__(self, name: str, args: int, vl: int):
        self.module = ir.Module(name)
        self.vl = vl
        self.vec = vector(F32, vl)
        self.ivec = vector(I32, vl)
        self.fn = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [I64] * args), name)
        self.fn.attributes.add("nounwind")  # objects carry no unwinding tables
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))
        self.mask: ir.Value | None = None
        self.lanes: ir.Value | None = None  # how many the mask has
        self._later: dict[int, list[tuple[ir.Value, ir.Value]]] | None = None  # what is stored together, by bytes
        self.bytes_of: dict[ir.Value, Bytes] = {}  # vectors of f32 that were made of bytes
        self.hasty: list[ir.Value] | None = None  # vectors of s16 whose least number tells whether haste was too much

    @property
    def args(self) -> tuple[ir.Value, ...]:
        return tuple(self.fn.args)

    def scalar_view(self) -> Builder:
        """The same function, seen with vectors of one lane (for what is left of a vector loop)."""
        view = object.__new__(Builder)
        view.__dict__.update(self.__dict__, vl=1, vec=vector(F32, 1), ivec=vector(I32, 1), mask=None, lanes=None)
        return view

    def wrap(self, scalar: ir.Value) -> ir.Value:
        """A scalar f32 as a vector of one lane."""
        return self.b.insert_element(undefined(self.vec), scalar, FIRST)

    # -- scalars and memory
    def ld64(self, addr: ir.Value, index: int = 0) -> ir.Value:
        """The int64 that lies `index` words of 8 bytes behind an address."""
        return self.b.load(self.ptr(self.b.add(addr, i64(8 * index)) if index else addr, I64))

    def ptr(self, addr: ir.Value, typ: ir.Type) -> ir.Value:
        return self.b.inttoptr(addr, pointer(typ))

    def add(self, a: ir.Value, *rest: ir.Value | int) -> ir.Value:
        """The sum of scalars of i64; an int is a constant."""
        for r in rest:
            a = self.b.add(a, i64(r) if isinstance(r, int) else r)
        return a

    def mul(self, a: ir.Value, c: ir.Value | int) -> ir.Value:
        """The product of two scalars of i64; an int is a constant."""
        return self.b.mul(a, i64(c) if isinstance(c, int) else c)

    def set_mask(self, lanes: ir.Value | None) -> None:
        """Only the first `lanes` (i64) lanes are touched from here on; None: all of them."""
        if lanes is None:
            self.mask = self.lanes = None
            return
        self.lanes = self.b.select(self.b.icmp_unsigned("<", lanes, i64(self.vl)), lanes, i64(self.vl))
        iota = integers(32, tuple(range(self.vl)))
        count = self.splat(self.b.trunc(lanes, I32), self.ivec)
        self.mask = self.b.icmp_unsigned("<", iota, count)

    def load(self, addr: ir.Value) -> ir.Value:
        """A vector from any address; masked-out lanes are 0."""
        p = self.ptr(addr, self.vec)
        if self.mask is None:
            out = self.b.load(p)
            out.align = 4
            return out
        return self.call(
            f"llvm.masked.load.v{self.vl}f32.p0", self.vec, p, ir.Constant(I32, 4), self.mask, self.const(0.0)
        )

    def load_stored(self, addr: ir.Value, dtype: str) -> ir.Value:
        """A vector of f32 from elements that are stored as `dtype`: float32, bfloat16, float16 or int8."""
        if dtype == "float32":
            return self.load(addr)
        bits = 8 if dtype == "int8" else 16
        typ = vector(ir.IntType(bits), self.vl)
        p = self.ptr(addr, typ)
        if self.mask is None:
            raw = self.b.load(p)
            raw.align = bits // 8
        else:
            zero = integers(bits, (0,) * self.vl)
            raw = self.call(
                f"llvm.masked.load.v{self.vl}i{bits}.p0", typ, p, ir.Constant(I32, bits // 8), self.mask, zero
            )
        if dtype == "int8":
            return self.b.sitofp(self.b.sext(raw, self.ivec), self.vec)
        if dtype == "float16":
            return self.b.fpext(self.b.bitcast(raw, vector(ir.HalfType(), self.vl)), self.vec)
        return self.floats(self.b.shl(self.b.zext(raw, self.ivec), self.iconst(16)))

    def load_halves(self, addr: ir.Value) -> list[ir.Value]:
        """Two vectors of f32 from `vl` bytes: what is in their lower halves less 8, and 16 times what is in their upper
        halves less 8. Bits of whole numbers below the exponent of 2^23 are such numbers more than that.
        """
        raw = self.b.load(self.ptr(addr, vector(ir.IntType(8), self.vl)))
        raw.align = 1
        wide, found = self.b.zext(raw, self.ivec), []
        for factor in (1, 16):
            bits = self.b.or_(self.b.and_(wide, self.iconst(15 * factor)), self.iconst(0x4B000000))
            found.append(self.b.fsub(self.floats(bits), self.const(2.0**23 + 8 * factor)))
        return found

    def prefetch(self, addr: ir.Value, cache: int = 3, written: bool = False) -> None:
        """Asks for a cache line that is read, or `written`, soon; any address is allowed. `cache` as LLVM has it: 3 the
        first one, 2 the second one.
        """
        how = (ir.Constant(I32, n) for n in (int(written), cache, 1))
        self.call("llvm.prefetch.p0", ir.VoidType(), self.ptr(addr, ir.IntType(8)), *how)

    def store(self, value: ir.Value, addr: ir.Value, streamed: bool = False) -> None:
        """Stores a vector of f32 at any address; masked-out lanes are not written. A `streamed` whole vector goes past
        the caches, to an address that is a multiple of its bytes.
        """
        p = self.ptr(addr, self.vec)
        if self.mask is None:
            to = self.b.store(value, p)
            to.align = 4 * self.vl if streamed else 4
            if streamed:
                to.set_metadata("nontemporal", self.module.add_metadata([ir.Constant(I32, 1)]))
        else:
            self.store_lanes(value, addr, 4)

    def store_lanes(self, value: ir.Value, addr: ir.Value, nbytes: int) -> None:
        """Stores the lanes, of so many bytes each, that are not masked out. Short vectors are taken apart: their
        processors have no masked store of such elements, or one that takes as long as a dozen others (AMD's before
        Zen 4).
        """
        if self.vl <= SHORT:
            queue = self._later if self._later is not None else {}
            queue.setdefault(nbytes, []).append((value, addr))
            if queue is not self._later:
                self._store_parts(queue)
            return
        to = f"llvm.masked.store.v{self.vl}{'f' if value.type == self.vec else 'i'}{8 * nbytes}.p0"
        p = self.ptr(addr, value.type)
        self.call(to, ir.VoidType(), value, p, ir.Constant(I32, nbytes), self.mask)

    @contextlib.contextmanager
    def stored_together(self) -> Iterator[None]:
        """What is stored inside under one mask is stored at the end, so that its lanes are looked at once."""
        self._later = {}
        yield
        queue, self._later = self._later, None
        self._store_parts(queue)

    def _store_parts(self, queue: dict[int, list[tuple[ir.Value, ir.Value]]]) -> None:
        """Stores the lanes of vectors (with their addresses, by bytes of an element) that the mask has: a part of each
        for every bit of their number.
        """
        b = self.b
        for nbytes, stores in queue.items():
            size, at, values = self.vl, i64(0), [value for value, _ in stores]
            while size:
                has = b.icmp_unsigned("!=", b.and_(self.lanes, i64(size)), i64(0))
                low, high = (
                    [self._part(x, first, size) for x in values] if size < self.vl else values for first in (0, size)
                )
                with b.if_then(has):
                    for part, (_, addr) in zip(low, stores, strict=True):
                        b.store(part, self.ptr(b.add(addr, at), part.type)).align = nbytes
                at = b.add(at, b.select(has, i64(size * nbytes), i64(0)))
                values = [b.select(has, h, x) for h, x in zip(high, low, strict=True)]
                size //= 2

    def _part(self, x: ir.Value, first: int, count: int) -> ir.Value:
        return self.b.shuffle_vector(x, x, integers(32, tuple(range(first, first + count))))

    def store_as(self, value: ir.Value, addr: ir.Value, dtype: str) -> None:
        """Stores a vector of f32, whose numbers `dtype` has, as elements of float32, int32 (by their bits), bfloat16,
        float16, int16 or int8 at any address; masked-out lanes are not written. What int8 does not have is stored by
        its lowest 8 bits. `ROUNDED` takes any number (16 lanes).
        """
        if dtype not in STORED_BYTES:
            self.store(value, addr)
            return
        nbytes = STORED_BYTES[dtype]
        typ = vector(ir.IntType(8 * nbytes), self.vl)
        if dtype == ROUNDED:
            narrow = vector(BFloat(), self.vl)
            raw = self.b.bitcast(self.call("llvm.x86.avx512bf16.cvtneps2bf16.512", narrow, value), typ)
        elif dtype == "bfloat16":
            raw = self.b.trunc(self.b.lshr(self.bits(value), self.iconst(16)), typ)
        elif dtype == "float16":
            raw = self.b.bitcast(self.b.fptrunc(value, vector(ir.HalfType(), self.vl)), typ)
        elif dtype == "int8" and value in self.bytes_of:
            raw = self.bytes_of[value].narrow
        else:
            raw = self.b.trunc(self.b.fptosi(value, self.ivec), typ)
        if self.mask is None:
            self.b.store(raw, self.ptr(addr, typ)).align = nbytes
        else:
            self.store_lanes(raw, addr, nbytes)

    def store_rounded(self, pair: Sequence[ir.Value], addr: ir.Value) -> None:
        """Stores two whole vectors of f32 side by side as bf16, each number rounded (16 lanes)."""
        both = self.call("llvm.x86.avx512bf16.cvtne2ps2bf16.512", vector(BFloat(), 2 * self.vl), pair[1], pair[0])
        typ = vector(ir.IntType(16), 2 * self.vl)
        self.b.store(self.b.bitcast(both, typ), self.ptr(addr, typ)).align = 2

    def broadcast(self, addr: ir.Value) -> ir.Value:
        """The f32 at an address, in every lane."""
        return self.splat(self.b.load(self.ptr(addr, F32)), self.vec)

    def broadcast_pair(self, addr: ir.Value, one: bool) -> ir.Value:
        """Two bf16 at an address of any element, in every lane; `one`: a zero in the place of the second."""
        loaded = self.b.load(self.ptr(addr, I32))
        loaded.align = 2
        pair = self.splat(loaded, self.ivec)
        return self.floats(self.b.and_(pair, self.iconst(0xFFFF)) if one else pair)

    def splat(self, scalar: ir.Value, typ: ir.VectorType) -> ir.Value:
        """A scalar in every lane."""
        one = self.b.insert_element(undefined(typ), scalar, FIRST)
        return self.b.shuffle_vector(one, undefined(typ), integers(32, (0,) * self.vl))

    def const(self, x: float) -> ir.Constant:
        """A vector of f32 with the number in every lane."""
        return f32s(struct.pack("d", x), self.vl)

    def iconst(self, n: int) -> ir.Constant:
        """A vector of s32 with the number in every lane."""
        return integers(32, (n,) * self.vl)

    def bconst(self, value: bool) -> ir.Constant:
        """A vector of i1 with the truth value in every lane."""
        return integers(1, (int(value),) * self.vl)

    def call(self, name: str, ret: ir.Type, *args: ir.Value) -> ir.Value:
        """Calls an LLVM intrinsic by name (`Module.declare_intrinsic` refuses vector types)."""
        fn = self.module.globals.get(name)
        if fn is None:
            fn = ir.Function(self.module, ir.FunctionType(ret, [a.type for a in args]), name)
        return self.b.call(fn, args)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """a * b + c, rounded once."""
        return self.call(f"llvm.fma.v{self.vl}f32", self.vec, a, b, c)

    def shuffle(self, a: ir.Value, b: ir.Value, lanes: Sequence[int]) -> ir.Value:
        """The lanes of two vectors with these numbers; those of `b` follow those of `a`."""
        return self.b.shuffle_vector(a, b, integers(32, tuple(lanes)))

    def upper_half(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The upper half of the lanes of `a`, the lower half of those of `b`."""
        return self.b.select(integers(1, (0,) * (self.vl // 2) + (1,) * (self.vl // 2)), a, b)

    def across(self, x: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """All lanes of `x` combined, in every lane."""
        step = self.vl // 2
        while step:
            order = integers(32, tuple((i + step) % self.vl for i in range(self.vl)))
            x = combine(x, self.b.shuffle_vector(x, x, order))
            step //= 2
        return x

    def dot_bf16(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a0 b0 + a1 b1 for the pairs of bf16 in each lane of a and b (AVX512-BF16, 16 lanes)."""
        pairs = vector(BFloat(), 2 * self.vl)
        return self.call(
            "llvm.x86.avx512bf16.dpbf16ps.512", self.vec, c, self.b.bitcast(a, pairs), self.b.bitcast(b, pairs)
        )

    def dot_s16(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a0 b0 + a1 b1 for the pairs of s16 in each lane of a and b; c and the result are the bits of s32."""
        wide, total = vector(ir.IntType(16), 2 * self.vl), self.bits(c)
        a, b = (self.b.bitcast(x, wide) for x in (a, b))
        for first in (0, 1):
            which = range(first, 2 * self.vl, 2)
            x, y = (self.b.sext(self.shuffle(p, p, which), self.ivec) for p in (a, b))
            total = self.b.add(total, self.b.mul(x, y))
        return self.floats(total)

    def dot_pairs(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """As `dot_s16`, by the instruction of x86 that multiplies pairs and adds each."""
        return self._plus(c, self._pairs(*(self.b.bitcast(x, vector(ir.IntType(16), 2 * self.vl)) for x in (a, b))))

    def dot_u8(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """As `dot_s8`, for u8 below 128 (AVX2)."""
        bytes_, pairs = (vector(ir.IntType(n), 32 // n * self.vl) for n in (8, 16))
        twos = self.call("llvm.x86.avx2.pmadd.ub.sw", pairs, *(self.b.bitcast(x, bytes_) for x in (a, b)))
        return self._plus(c, self._pairs(twos, integers(16, (1,) * pairs.count)))

    def dot_bytes(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """As `dot_s8`, for the s8 of both (x86)."""
        pairs = vector(ir.IntType(16), 2 * self.vl)
        eight = integers(16, (8,) * pairs.count)
        a, b = (self.b.bitcast(x, pairs) for x in (a, b))
        odd = self._pairs(*(self.b.ashr(x, eight) for x in (a, b)))
        even = self._pairs(*(self.b.ashr(self.b.shl(x, eight), eight) for x in (a, b)))
        return self._plus(c, self.b.add(odd, even))

    def _pairs(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """a0 b0 + a1 b1 of s16 in each lane, s32."""
        return self.call(PAIRS[self.vl], self.ivec, a, b)

    def _plus(self, c: ir.Value, more: ir.Value) -> ir.Value:
        """c + more, of s32 as bits. The fence keeps LLVM from adding up what several steps add before it is added to c:
        more numbers than there are registers.
        """
        total = self.floats(self.b.add(self.bits(c), more))
        return self.call(f"llvm.arithmetic.fence.v{self.vl}f32", self.vec, total)

    def dot_s8(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a0 b0 + .. + a3 b3 for the four u8 in each lane of a and s8 of b (AVX512-VNNI); c and the result are the
        bits of s32, and nothing saturates.
        """
        operands = (self.bits(x) for x in (c, a, b))
        return self.floats(self.call(f"llvm.x86.avx512.vpdpbusd.{32 * self.vl}", self.ivec, *operands))

    def local(self, words: int) -> ir.Value:
        """The address of so many words of 4 bytes on the stack, at a multiple of 64; they are not set."""
        with self.b.goto_entry_block():
            place = self.b.alloca(vector(I32, words))
            place.align = 64
            return self.b.ptrtoint(place, I64)

    # -- control flow
    @contextlib.contextmanager
    def loop(self, count: ir.Value) -> Iterator[ir.Value]:
        """`for i in range(count)`; yields i."""
        with self.carry(count, []) as (i, _, _done):
            yield i

    @contextlib.contextmanager
    def carry(
        self, count: ir.Value, init: list[ir.Value]
    ) -> Iterator[tuple[ir.Value, list[ir.Value], Callable[[list[ir.Value]], None]]]:
        """A counted loop that carries values. Yields (i, carried, done); call `done(new)` in the body.

        After the block `self.carried` holds the carried values at the loop's end.
        """
        b = self.b
        before = b.block
        head, body, end = (b.append_basic_block(n) for n in ("head", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(i64(0), before)
        phis = [b.phi(v.type) for v in init]
        for p, v in zip(phis, init, strict=True):
            p.add_incoming(v, before)
        b.cbranch(b.icmp_signed("<", i, count), body, end)
        b.position_at_end(body)
        new: list[ir.Value] = []
        yield i, list(phis), new.extend
        i.add_incoming(b.add(i, i64(1)), b.block)
        for p, v in zip(phis, new, strict=True):
            p.add_incoming(v, b.block)
        b.branch(head)
        b.position_at_end(end)
        self.carried = list(phis)

    def finish(self) -> str:
        """Ends the function; the module's LLVM IR."""
        self.b.ret_void()
        return str(self.module)

    # -- elementwise arithmetic on vectors
    def select(self, op: str, a: ir.Value, b: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        """x where `a op b` (ordered: false for NaN) else y."""
        return self.b.select(self.b.fcmp_ordered(op, a, b), x, y)

    def maximum(self, a: ir.Value, b: ir.Value, op: str = ">") -> ir.Value:
        """max (or min with op "<") that passes NaN on, from either side. Which zero of two it takes is not said."""
        if number(a) is not None and number(b) is None:
            a, b = b, a
        c = number(b)
        if c is not None and c == c:
            return self.select("<" if op == ">" else ">", a, b, b, a)
        if self.vl in LARGER:  # a total waits for one instruction, not for comparisons with what comes
            name, more = LARGER[self.vl]
            told = [ir.Constant(I32, n) for n in more]
            pick = self.call(name.format("max" if op == ">" else "min"), self.vec, b, a, *told)
            return self.b.select(self.b.fcmp_unordered("uno", b, b), b, pick)
        pick = self.select(op, a, b, a, b)
        return self.b.select(self.b.fcmp_unordered("uno", a, a), a, pick)

    def maximum_signed(self, a: ir.Value, b: ir.Value, op: str = ">") -> ir.Value:
        """`maximum` where +0 is more than -0."""
        if number(a) is not None:
            a, b = b, a
        pick, c = self.maximum(a, b, op), number(b)
        if c is None:
            combine = self.b.and_ if op == ">" else self.b.or_
            both = self.floats(combine(self.bits(a), self.bits(b)))
            return self.b.select(self.b.fcmp_ordered("==", a, b), both, pick)
        if c == 0 and (math.copysign(1.0, c) > 0) == (op == ">"):
            return self.select("<=" if op == ">" else ">=", a, b, b, a)
        return pick

    def copysign(self, magnitude: ir.Value, sign: ir.Value) -> ir.Value:
        return self.call(f"llvm.copysign.v{self.vl}f32", self.vec, magnitude, sign)

    def poly(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Horner's rule; the constant term comes first."""
        *rest, top = coefficients
        acc: ir.Value = self.const(top)
        for c in reversed(rest):
            acc = self.fma(acc, x, self.const(c))
        return acc

    def bits(self, x: ir.Value) -> ir.Value:
        """A vector of f32 seen as s32."""
        return self.b.bitcast(x, self.ivec)

    def floats(self, x: ir.Value) -> ir.Value:
        """A vector of s32 seen as f32."""
        return self.b.bitcast(x, self.vec)

    def unary(self, name: str, x: ir.Value) -> ir.Value:
        return self.call(f"llvm.{name}.v{self.vl}f32", self.vec, x)

    def bfloat(self, x: ir.Value) -> ir.Value:
        """The bits of x rounded to bf16 (to nearest, ties to even; NaN stays NaN), in the upper half of each lane."""
        bits = self.bits(x)
        even = self.b.and_(self.b.lshr(bits, self.iconst(16)), self.iconst(1))
        rounded = self.b.add(bits, self.b.add(even, self.iconst(0x7FFF)))
        kept = self.b.select(self.b.fcmp_unordered("uno", x, x), self.b.or_(bits, self.iconst(0x400000)), rounded)
        return self.b.and_(kept, self.iconst(-0x10000))

    def wrapped(self, x: ir.Value) -> ir.Value:
        """The s8 in the lowest byte of each s32."""
        return self.b.ashr(self.b.shl(x, self.iconst(24)), self.iconst(24))

    def half(self, x: ir.Value) -> ir.Value:
        """x rounded to f16."""
        return self.b.fpext(self.b.fptrunc(x, vector(ir.HalfType(), self.vl)), self.vec)
