"""llvmlite building blocks: pointers, loops, vectors of f32 and the elementary functions on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import llvmlite.ir as ir

F32, I32, I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)


class BFloat(ir.Type):
    """LLVM's bfloat, which llvmlite does not name."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


def i64(n: int) -> ir.Constant:
    return ir.Constant(I64, n)


class Builder:
    """An `ir.IRBuilder` for one exported function `void name(i64...)` with vectors of `vl` f32 lanes.

    `mask` (a vector of i1) makes every `load`/`store` touch only the lanes that are set.
    """

    def __init__(self, name: str, args: int, vl: int):
        self.module = ir.Module(name)
        self.vl = vl
        self.vec = ir.VectorType(F32, vl)
        self.ivec = ir.VectorType(I32, vl)
        self.fn = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [I64] * args), name)
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))
        self.mask: ir.Value | None = None

    @property
    def args(self) -> tuple[ir.Value, ...]:
        return tuple(self.fn.args)

    def scalar_view(self) -> Builder:
        """The same function, seen with vectors of one lane (for what is left of a vector loop)."""
        view = object.__new__(Builder)
        view.__dict__.update(self.__dict__, vl=1, vec=ir.VectorType(F32, 1), ivec=ir.VectorType(I32, 1), mask=None)
        return view

    def wrap(self, scalar: ir.Value) -> ir.Value:
        """A scalar f32 as a vector of one lane."""
        return self.b.insert_element(ir.Constant(self.vec, ir.Undefined), scalar, ir.Constant(I32, 0))

    # -- scalars and memory
    def ld64(self, addr: ir.Value, index: int = 0) -> ir.Value:
        return self.b.load(self.ptr(self.b.add(addr, i64(8 * index)) if index else addr, I64))

    def ptr(self, addr: ir.Value, typ: ir.Type) -> ir.Value:
        return self.b.inttoptr(addr, typ.as_pointer())

    def add(self, a: ir.Value, *rest: ir.Value | int) -> ir.Value:
        for r in rest:
            a = self.b.add(a, i64(r) if isinstance(r, int) else r)
        return a

    def mul(self, a: ir.Value, c: ir.Value | int) -> ir.Value:
        return self.b.mul(a, i64(c) if isinstance(c, int) else c)

    def set_mask(self, lanes: ir.Value | None) -> None:
        """Only the first `lanes` (i64) lanes are touched from here on; None: all of them."""
        if lanes is None:
            self.mask = None
            return
        iota = ir.Constant(self.ivec, list(range(self.vl)))
        count = self._splat(self.b.trunc(lanes, I32), self.ivec)
        self.mask = self.b.icmp_unsigned("<", iota, count)

    def load(self, addr: ir.Value) -> ir.Value:
        """A vector from any address; masked-out lanes are 0."""
        p = self.ptr(addr, self.vec)
        if self.mask is None:
            out = self.b.load(p)
            out.align = 4
            return out
        return self.call(f"llvm.masked.load.v{self.vl}f32.p0", self.vec, p, ir.Constant(I32, 4), self.mask, self.const(0.0))

    def load_stored(self, addr: ir.Value, dtype: str) -> ir.Value:
        """A vector of f32 from elements that are stored as `dtype`: float32, bfloat16, float16 or int8."""
        if dtype == "float32":
            return self.load(addr)
        bits = 8 if dtype == "int8" else 16
        typ = ir.VectorType(ir.IntType(bits), self.vl)
        p = self.ptr(addr, typ)
        if self.mask is None:
            raw = self.b.load(p)
            raw.align = bits // 8
        else:
            zero = ir.Constant(typ, [0] * self.vl)
            raw = self.call(f"llvm.masked.load.v{self.vl}i{bits}.p0", typ, p, ir.Constant(I32, bits // 8), self.mask, zero)
        if dtype == "int8":
            return self.b.sitofp(self.b.sext(raw, self.ivec), self.vec)
        if dtype == "float16":
            return self.b.fpext(self.b.bitcast(raw, ir.VectorType(ir.HalfType(), self.vl)), self.vec)
        return self.floats(self.b.shl(self.b.zext(raw, self.ivec), self.iconst(16)))

    def prefetch(self, addr: ir.Value) -> None:
        """Asks for a cache line that is read soon; any address is allowed."""
        arguments = (self.ptr(addr, ir.IntType(8)), ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1))
        self.call("llvm.prefetch.p0", ir.VoidType(), *arguments)

    def store(self, value: ir.Value, addr: ir.Value) -> None:
        p = self.ptr(addr, self.vec)
        if self.mask is None:
            self.b.store(value, p).align = 4
        else:
            self.call(f"llvm.masked.store.v{self.vl}f32.p0", ir.VoidType(), value, p, ir.Constant(I32, 4), self.mask)

    def broadcast(self, addr: ir.Value) -> ir.Value:
        return self._splat(self.b.load(self.ptr(addr, F32)), self.vec)

    def _splat(self, scalar: ir.Value, typ: ir.VectorType) -> ir.Value:
        undef = ir.Constant(typ, ir.Undefined)
        one = self.b.insert_element(undef, scalar, ir.Constant(I32, 0))
        return self.b.shuffle_vector(one, undef, ir.Constant(ir.VectorType(I32, self.vl), [0] * self.vl))

    def const(self, x: float) -> ir.Constant:
        return ir.Constant(self.vec, [float(x)] * self.vl)

    def iconst(self, n: int) -> ir.Constant:
        return ir.Constant(self.ivec, [n] * self.vl)

    def call(self, name: str, ret: ir.Type, *args: ir.Value) -> ir.Value:
        """Calls an LLVM intrinsic by name (`Module.declare_intrinsic` refuses vector types)."""
        fn = self.module.globals.get(name)
        if fn is None:
            fn = ir.Function(self.module, ir.FunctionType(ret, [a.type for a in args]), name)
        return self.b.call(fn, args)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.call(f"llvm.fma.v{self.vl}f32", self.vec, a, b, c)

    def across(self, x: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """All lanes of `x` combined, in every lane."""
        step = self.vl // 2
        while step:
            order = ir.Constant(ir.VectorType(I32, self.vl), [(i + step) % self.vl for i in range(self.vl)])
            x = combine(x, self.b.shuffle_vector(x, x, order))
            step //= 2
        return x

    def dot_bf16(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a0 b0 + a1 b1 for the pairs of bf16 in each lane of a and b (AVX512-BF16, 16 lanes)."""
        pairs = ir.VectorType(BFloat(), 2 * self.vl)
        return self.call("llvm.x86.avx512bf16.dpbf16ps.512", self.vec, c, self.b.bitcast(a, pairs), self.b.bitcast(b, pairs))

    # -- control flow
    @contextlib.contextmanager
    def loop(self, count: ir.Value) -> Iterator[ir.Value]:
        """`for i in range(count)`; yields i."""
        with self.carry(count, []) as (i, _, _done):
            yield i

    @contextlib.contextmanager
    def carry(self, count: ir.Value, init: list[ir.Value]) -> Iterator[tuple[ir.Value, list[ir.Value], Callable[[list[ir.Value]], None]]]:
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
        self.b.ret_void()
        return str(self.module)

    # -- elementwise arithmetic on vectors
    def select(self, op: str, a: ir.Value, b: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        """x where `a op b` (ordered: false for NaN) else y."""
        return self.b.select(self.b.fcmp_ordered(op, a, b), x, y)

    def maximum(self, a: ir.Value, b: ir.Value, op: str = ">") -> ir.Value:
        """max (or min with op "<") that passes NaN on, from either side."""
        if isinstance(b, ir.Constant):
            return self.select("<" if op == ">" else ">", a, b, b, a)
        if isinstance(a, ir.Constant):
            return self.maximum(b, a, op)
        pick = self.select(op, a, b, a, b)
        return self.b.select(self.b.fcmp_unordered("uno", a, a), a, pick)

    def poly(self, x: ir.Value, coefficients: list[float]) -> ir.Value:
        """Horner's rule, highest power first."""
        acc: ir.Value = self.const(coefficients[0])
        for c in coefficients[1:]:
            acc = self.fma(acc, x, self.const(c))
        return acc

    def bits(self, x: ir.Value) -> ir.Value:
        return self.b.bitcast(x, self.ivec)

    def floats(self, x: ir.Value) -> ir.Value:
        return self.b.bitcast(x, self.vec)

    def unary(self, name: str, x: ir.Value) -> ir.Value:
        return self.call(f"llvm.{name}.v{self.vl}f32", self.vec, x)

    def exp(self, x: ir.Value) -> ir.Value:
        """e**x to about 1 ulp: 2**n * p(r), |r| <= ln2/2, n applied in two steps (denormal results)."""
        lo, hi = self.const(-104.0), self.const(89.0)
        c = self.select("<", x, lo, lo, self.select(">", x, hi, hi, x))
        n = self.unary("rint", self.b.fmul(c, self.const(1.4426950408889634)))
        r = self.fma(n, self.const(-0.693359375), c)
        r = self.fma(n, self.const(2.12194440e-4), r)
        p = self.poly(r, [1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0])
        ni = self.b.fptosi(self.select("<", n, n, n, self._finite(n)), self.ivec)
        half = self.b.ashr(ni, self.iconst(1))
        for k in (half, self.b.sub(ni, half)):
            p = self.b.fmul(p, self.floats(self.b.shl(self.b.add(k, self.iconst(127)), self.iconst(23))))
        return self.b.select(self.b.fcmp_unordered("uno", x, x), x, p)

    def _finite(self, x: ir.Value) -> ir.Value:
        """x, with 0 where it is NaN (a NaN has no integer)."""
        return self.b.select(self.b.fcmp_unordered("uno", x, x), self.const(0.0), x)

    def log(self, x: ir.Value) -> ir.Value:
        """ln x to about 1 ulp: x = 2**e * m, m in [sqrt(1/2), sqrt 2), atanh series in (m-1)/(m+1)."""
        tiny = self.b.fcmp_ordered("<", x, self.const(1.17549435e-38))
        scaled = self.b.select(tiny, self.b.fmul(x, self.const(2.0**23)), x)
        i = self.b.sub(self.bits(scaled), self.iconst(0x3F3504F3))
        e = self.b.ashr(i, self.iconst(23))
        m = self.floats(self.b.add(self.b.and_(i, self.iconst(0x7FFFFF)), self.iconst(0x3F3504F3)))
        ef = self.b.fsub(self.b.sitofp(e, self.vec), self.b.select(tiny, self.const(23.0), self.const(0.0)))
        s = self.b.fdiv(self.b.fsub(m, self.const(1.0)), self.b.fadd(m, self.const(1.0)))
        z = self.b.fmul(s, s)
        p = self.b.fmul(self.poly(z, [2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3]), z)
        ln = self.fma(ef, self.const(0.693359375), self.fma(s, self.const(2.0), self.fma(s, p, self.b.fmul(ef, self.const(-2.12194440e-4)))))
        inf = float("inf")
        ln = self.select("==", x, self.const(inf), self.const(inf), ln)
        ln = self.select("==", x, self.const(0.0), self.const(-inf), ln)
        return self.b.select(self.b.fcmp_unordered("<", x, self.const(0.0)), self.const(float("nan")), ln)

    def tanh(self, x: ir.Value) -> ir.Value:
        """tanh: x + x**3 p(x**2) below 0.625, else 1 - 2/(e**2|x| + 1) with x's sign."""
        a = self.unary("fabs", x)
        z = self.b.fmul(x, x)
        series = [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1]
        small = self.fma(self.b.fmul(self.poly(z, series), z), x, x)
        e = self.exp(self.b.fadd(a, a))
        big = self.b.fsub(self.const(1.0), self.b.fdiv(self.const(2.0), self.b.fadd(e, self.const(1.0))))
        big = self.call(f"llvm.copysign.v{self.vl}f32", self.vec, big, x)
        return self.select("<", a, self.const(0.625), small, big)

    def logistic(self, x: ir.Value) -> ir.Value:
        e = self.exp(self.b.fneg(x))
        return self.b.fdiv(self.const(1.0), self.b.fadd(self.const(1.0), e))
