"""Elementary functions whose way leads over f64, because that of f32 would lose digits."""

from __future__ import annotations

import math

import llvmlite.ir as ir

from .simd import Builder

ROUND = 1.5 * 2.0**52  # adding it leaves a rounded integer in the low bits of the sum
HALVES = 52  # bits of the fraction
LEAST, MOST = -300.0, 300.0  # 2**x is 0 below and infinite above, in f32
ROOT = 0.7071067811865476
#: atanh(s) / s in s**2 for |s| <= 0.1716 (3e-15), and 2**r for |r| <= 1/2 by its series (1e-13)
ATANH = tuple(1.0 / (2 * k + 1) for k in range(10))
EXP2 = tuple(math.log(2.0) ** k / math.factorial(k) for k in range(12))


class _Doubles:
    """Vectors of f64, as many lanes as the builder's."""

    def __init__(self, v: Builder):
        self.v, self.b = v, v.b
        self.vec, self.ivec = ir.VectorType(ir.DoubleType(), v.vl), ir.VectorType(ir.IntType(64), v.vl)

    def const(self, x: float) -> ir.Constant:
        return ir.Constant(self.vec, [x] * self.v.vl)

    def iconst(self, n: int) -> ir.Constant:
        return ir.Constant(self.ivec, [n] * self.v.vl)

    def bits(self, x: ir.Value) -> ir.Value:
        return self.b.bitcast(x, self.ivec)

    def floats(self, x: ir.Value) -> ir.Value:
        return self.b.bitcast(x, self.vec)

    def poly(self, x: ir.Value, coefficients: tuple[float, ...]) -> ir.Value:
        """Horner's rule; the constant term comes first."""
        *rest, top = coefficients
        acc: ir.Value = self.const(top)
        for c in reversed(rest):
            acc = self.b.fadd(self.b.fmul(acc, x), self.const(c))
        return acc

    def log2(self, x: ir.Value) -> ir.Value:
        """log2 of positive numbers that are not denormal: x = 2**e * m, m in [sqrt(1/2), sqrt 2)."""
        b, low = self.b, self.bits(self.const(ROOT))
        i = b.sub(self.bits(x), low)
        e = b.sitofp(b.ashr(i, self.iconst(HALVES)), self.vec)
        m = self.floats(b.add(b.and_(i, self.iconst((1 << HALVES) - 1)), low))
        s = b.fdiv(b.fsub(m, self.const(1.0)), b.fadd(m, self.const(1.0)))
        series = b.fmul(b.fmul(s, self.const(2 / math.log(2.0))), self.poly(b.fmul(s, s), ATANH))
        return b.fadd(e, series)

    def exp2(self, x: ir.Value) -> ir.Value:
        """2**x of numbers between `LEAST` and `MOST`."""
        b = self.b
        t = b.fadd(x, self.const(ROUND))
        r = b.fsub(x, b.fsub(t, self.const(ROUND)))
        n = b.sub(self.bits(t), self.bits(self.const(ROUND)))
        return b.fmul(self.poly(r, EXP2), self.floats(b.shl(b.add(n, self.iconst(1023)), self.iconst(HALVES))))


def power(v: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x**y = 2**(y log2 |x|), rounded once, with the sign of x where y is odd; NaN where x < 0 and y is not whole.

    1 for y = 0 and for x = 1, whatever the other is.
    """
    d, b, one, inf = _Doubles(v), v.b, v.const(1.0), v.const(float("inf"))
    a, size = v.unary("fabs", x), v.unary("fabs", y)
    log = d.log2(b.fpext(a, d.vec))
    log = b.select(b.fcmp_ordered("==", a, v.const(0.0)), d.const(-math.inf), log)
    log = b.select(b.fcmp_unordered("==", a, inf), b.fpext(a, d.vec), log)
    t = b.fmul(b.fpext(y, d.vec), log)
    t = b.select(b.fcmp_ordered("<", t, d.const(LEAST)), d.const(LEAST), t)
    t = b.select(b.fcmp_ordered(">", t, d.const(MOST)), d.const(MOST), t)
    out = b.fptrunc(d.exp2(t), v.vec)
    half = b.fmul(y, v.const(0.5))
    whole = b.fcmp_ordered("==", v.unary("floor", y), y)
    odd = b.and_(whole, b.fcmp_unordered("!=", v.unary("floor", half), half))
    negative = b.icmp_signed("<", v.bits(x), v.iconst(0))
    out = b.select(b.and_(negative, odd), b.fneg(out), out)
    undefined = b.and_(b.fcmp_ordered("<", x, v.const(0.0)), b.fcmp_unordered("!=", v.unary("floor", y), y))
    undefined = b.and_(undefined, b.and_(b.fcmp_ordered("<", a, inf), b.fcmp_ordered("<", size, inf)))
    out = b.select(undefined, v.const(math.nan), out)
    always = b.or_(b.fcmp_ordered("==", y, v.const(0.0)), b.fcmp_ordered("==", x, one))
    always = b.or_(always, b.and_(b.fcmp_ordered("==", a, one), b.fcmp_ordered("==", size, inf)))
    return b.select(always, one, out)


__all__ = ["power"]
