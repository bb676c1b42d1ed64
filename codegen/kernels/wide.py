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
#: sin(r) / r and cos(r) in r**2 for |r| <= pi/4, by their series (1e-14)
SIN = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(8))
COS = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(8))
#: pi/2 in parts of 29 bits and the rest, and the bits of 1 / (2 pi) behind the point, 32 in each number
QUARTER = (float.fromhex("0x1.921fb54p+0"), float.fromhex("0x1.10b461p-30"), float.fromhex("0x1.a62633145c06ep-58"))
TURN = (0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA)
NEAR = 2.0**23  # from here on numbers are whole, and their turns are counted in integers


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


def sine(v: Builder, x: ir.Value) -> ir.Value:
    """sin x for all x; with the sign of x."""
    d, b = _Doubles(v), v.b
    a = v.unary("fabs", x)
    quarters, r = _quarters(d, a)
    out = _of_quarter(d, r, quarters, 0)
    return _finite(v, x, b.select(b.icmp_signed("<", v.bits(x), v.iconst(0)), b.fneg(out), out))


def cosine(v: Builder, x: ir.Value) -> ir.Value:
    """cos x for all x."""
    d = _Doubles(v)
    quarters, r = _quarters(d, v.unary("fabs", x))
    return _finite(v, x, _of_quarter(d, r, quarters, 1))


def _finite(v: Builder, x: ir.Value, out: ir.Value) -> ir.Value:
    finite = v.b.fcmp_ordered("<", v.unary("fabs", x), v.const(math.inf))
    return v.b.select(finite, out, v.const(math.nan))


def _of_quarter(d: _Doubles, r: ir.Value, quarters: ir.Value, ahead: int) -> ir.Value:
    """sin(r + (quarters + ahead) pi/2), as f32."""
    b, z = d.b, d.b.fmul(r, r)
    q = b.add(quarters, d.iconst(ahead))
    odd = b.icmp_signed("!=", b.and_(q, d.iconst(1)), d.iconst(0))
    out = b.select(odd, d.poly(z, COS), b.fmul(r, d.poly(z, SIN)))
    down = b.icmp_signed("!=", b.and_(q, d.iconst(2)), d.iconst(0))
    return b.fptrunc(b.select(down, b.fneg(out), out), d.v.vec)


def _quarters(d: _Doubles, a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(n as an integer, r) with a = n pi/2 + r up to whole turns, |r| <= pi/4, for a >= 0 of f32."""
    b, x = d.b, d.b.fpext(a, d.vec)
    t = b.fadd(b.fmul(x, d.const(2 / math.pi)), d.const(ROUND))
    n = b.fsub(t, d.const(ROUND))
    r = x
    for part in QUARTER:
        r = b.fsub(r, b.fmul(n, d.const(part)))
    near = b.fcmp_ordered("<", x, d.const(NEAR))
    far, rest = _far_quarters(d, a)
    number = b.sub(d.bits(t), d.bits(d.const(ROUND)))
    return b.select(near, number, far), b.select(near, r, rest)


def _far_quarters(d: _Doubles, a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The same for a = m 2**k, k >= 0: m times those bits of 1 / (2 pi) that count less than a turn (Payne, Hanek)."""
    v, b = d.v, d.b
    bits = b.zext(v.bits(a), d.ivec)
    k = b.sub(b.lshr(bits, d.iconst(23)), d.iconst(150))
    m = b.or_(b.and_(bits, d.iconst(0x7FFFFF)), d.iconst(0x800000))
    word, shift = b.ashr(k, d.iconst(5)), b.and_(k, d.iconst(31))
    chosen = []
    for i in range(4):
        found: ir.Value = d.iconst(TURN[i])
        for w in range(1, 4):
            found = b.select(b.icmp_signed("==", word, d.iconst(w)), d.iconst(TURN[i + w]), found)
        chosen.append(found)
    pair = lambda i: b.or_(b.shl(chosen[i], d.iconst(32)), chosen[i + 1])
    window = lambda i: b.and_(b.lshr(pair(i), b.sub(d.iconst(32), shift)), d.iconst(0xFFFFFFFF))
    high, middle, low = window(0), window(1), window(2)
    turn = b.mul(m, b.or_(b.shl(high, d.iconst(32)), middle))
    turn = b.add(turn, b.lshr(b.mul(m, low), d.iconst(32)))
    n = b.lshr(b.add(turn, d.iconst(1 << 61)), d.iconst(62))
    rest = b.sitofp(b.sub(turn, b.shl(n, d.iconst(62))), d.vec)
    return n, b.fmul(rest, d.const(2 * math.pi / 2.0**64))


__all__ = ["cosine", "power", "sine"]
