"""Elementary functions on vectors of f32, each to 4 units in the last place or better over its whole range.

Powers of two are found by adding 1.5 * 2**23, which leaves a rounded integer in the low bits of the sum. AVX-512 has
instructions that multiply with such powers and find reciprocals.
Coefficients are minimax fits of relative error, constant term first, rounded to f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import llvmlite.ir as ir

from .simd import Builder
from .vectors import I32, number

LONG = 16  # lanes of vectors with instructions for powers of two and for reciprocals
ALL = ir.Constant(ir.IntType(16), -1)  # a mask of them
NOW = ir.Constant(I32, 4)  # the thread's mode of rounding
ROUND = 1.5 * 2.0**23
LN2 = (0.693359375, -2.12194440e-4)  # ln 2 as a short number and the rest
LEAST, MOST = -104.0, 89.0  # exp is 0 below, infinite above
EXP2_LEAST, EXP2_MOST = -151.0, 129.0  # and exp2
EXPM1_LEAST, EXPM1_TINY = -20.0, 2.0**-26  # expm1 is -1 below; x itself so near to 0
LOG1P_LARGE = 1e30  # where log1p is log
TANH_BORDER = 0.625

#: (e**r - 1 - r) / r**2 for |r| <= ln2/2 (3e-9 of e**r; the longer one 2.4e-10 of e**r - 1)
EXP = (0.49999993, 0.1666652, 0.04166839, 0.00836874, 0.00138146)
EXPM1 = (0.5, 0.16666666, 0.04166636, 0.00833339, 0.00139406547, 0.000198458803)
#: 2**r for |r| <= 1/2 (1.9e-9)
EXP2 = (
    1.0,
    0.6931471824645996,
    0.24022646248340607,
    0.05550328642129898,
    0.009618489071726799,
    0.0013399930903688073,
    0.0001534581242594868,
)
#: tanh(x) / x - 1 over x**2, in x**2, for |x| below the border
TANH = (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3)
#: erf(x) / x in x**2 for |x| < 0.6 (8e-9), and -log2(erfc(x)) from there to 3.93 (4e-9 of erf)
ERF_SMALL = (1.1283791065216064, -0.37612512707710266, 0.112809918820858, -0.026646986603736877, 0.004512357991188765)
ERF_LARGE = (
    *(-4.362033723737113e-05, 1.62834894657135, 0.9166100025177002, 0.15244673192501068),
    *(-0.03336348757147789, 0.004738549701869488, -0.00032050441950559616),
)
ERF_BORDER, ERF_ONE = 0.6, 3.93
#: erfc(x) e**(x**2) (x + 2.5) in (x - 2.5) / (x + 2.5) for 0.6 <= x <= 10.1 (2e-9)
ERFC = (
    *(1.0540318489074707, -0.8046518564224243, 0.4539142847061157, -0.1712501347064972, 0.028357572853565216),
    *(0.008382685482501984, -0.004788330756127834, -0.0003989056858699769, 0.0006066508358344436),
)
ERFC_MIDDLE = 2.5
ERFC_NONE = 10.1  # erfc is 0 from here on


def _reduced(v: Builder, x: ir.Value, low: ir.Value | None = None) -> tuple[ir.Value, ir.Value]:
    """(ROUND + n, r) with x + low = n ln2 + r, |r| <= ln2/2; `low` is far below x."""
    t = v.fma(x, v.const(math.log2(math.e)), v.const(ROUND))
    n = v.b.fsub(t, v.const(ROUND))
    r = v.fma(n, v.const(-LN2[0]), x)
    r = r if low is None else v.b.fadd(r, low)
    return t, v.fma(n, v.const(-LN2[1]), r)


def _low_bits(v: Builder, t: ir.Value) -> ir.Value:
    """n of t = ROUND + n."""
    return v.b.sub(v.bits(t), v.bits(v.const(ROUND)))


def _power(v: Builder, n: ir.Value) -> ir.Value:
    """2**n for -126 <= n <= 127."""
    return v.floats(v.b.shl(v.b.add(n, v.iconst(127)), v.iconst(23)))


def raised(v: Builder, p: ir.Value, n: ir.Value) -> ir.Value:
    """p * 2**n for a whole number n, by the instruction of `LONG` vectors."""
    return v.call("llvm.x86.avx512.mask.scalef.ps.512", v.vec, p, n, p, ALL, NOW)


def near_inverse(v: Builder, d: ir.Value) -> ir.Value:
    """1 / d to 14 bits, by the instruction of `LONG` vectors."""
    return v.call("llvm.x86.avx512.rcp14.ps.512", v.vec, d, d, ALL)


def _scaled(v: Builder, p: ir.Value, t: ir.Value) -> ir.Value:
    """p * 2**n for t = ROUND + n: in two steps where no instruction does it, so that results may be denormal."""
    if v.vl == LONG:
        return raised(v, p, v.b.fsub(t, v.const(ROUND)))
    n = _low_bits(v, t)
    half = v.b.ashr(n, v.iconst(1))
    return v.b.fmul(v.b.fmul(p, _power(v, half)), _power(v, v.b.sub(n, half)))


def _over(v: Builder, a: ir.Value, d: ir.Value) -> ir.Value:
    """a / d for 2**-60 < d < 2**60: by Newton's step from the 14 bits that an instruction has, where there is one."""
    if v.vl != LONG:
        return v.b.fdiv(a, d)
    u = near_inverse(v, d)
    u = v.fma(v.fma(v.b.fneg(d), u, v.const(1.0)), u, u)
    return u if number(a) == 1.0 else v.b.fmul(a, u)


def factors(v: Builder, d: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Three numbers with which a division by d is three multiplications, to 1 unit in the last place: half of its power
    of two, towards zero, the reciprocal of the rest, and the other half. None of the products overflows, or falls below
    the normal numbers, where the quotient does not. Of 0, infinity and NaN the reciprocal alone counts.
    """
    bits = v.bits(d)
    exponent = v.b.and_(v.b.lshr(bits, v.iconst(23)), v.iconst(255))
    power = v.b.sub(exponent, v.iconst(127))
    half = v.b.ashr(v.b.add(power, v.b.lshr(power, v.iconst(31))), v.iconst(1))
    normal = v.b.icmp_unsigned("<", v.b.sub(exponent, v.iconst(1)), v.iconst(254))
    one = v.b.or_(v.b.and_(bits, v.iconst(-0x7F800001)), v.iconst(0x3F800000))  # the number with exponent 0
    rest = v.b.fdiv(v.const(1.0), v.b.select(normal, v.floats(one), d))
    low, high = (v.b.select(normal, _power(v, v.b.neg(n)), v.const(1.0)) for n in (half, v.b.sub(power, half)))
    return low, rest, high


def exp(v: Builder, x: ir.Value, low: ir.Value | None = None, times: ir.Value | None = None) -> ir.Value:
    """e**(x + low) * times."""
    x = v.maximum(v.maximum(x, v.const(LEAST)), v.const(MOST), "<")
    t, r = _reduced(v, x, low)
    p = v.fma(v.poly(r, EXP), r, v.const(1.0))
    p = v.fma(p, r, v.const(1.0)) if times is None else v.fma(v.b.fmul(p, r), times, times)
    return _scaled(v, p, t)


def exp2(v: Builder, x: ir.Value, near_1: Sequence[float] = EXP2) -> ir.Value:
    """2**x, given the coefficients of 2**r."""
    x = v.maximum(v.maximum(x, v.const(EXP2_LEAST)), v.const(EXP2_MOST), "<")
    t = v.b.fadd(x, v.const(ROUND))
    return _scaled(v, v.poly(v.b.fsub(x, v.b.fsub(t, v.const(ROUND))), near_1), t)


def expm1(v: Builder, x: ir.Value) -> ir.Value:
    """2 (2**(n-1) (e**r - 1) + 2**(n-1) - 1/2); x itself near 0, where its sign and denormals must last."""
    c = v.maximum(v.maximum(x, v.const(EXPM1_LEAST)), v.const(MOST), "<")
    t, r = _reduced(v, c)
    p = v.fma(v.b.fmul(r, r), v.poly(r, EXPM1), r)
    s = _power(v, v.b.sub(_low_bits(v, t), v.iconst(1)))
    y = v.fma(s, p, v.b.fsub(s, v.const(0.5)))
    return v.select("<", v.unary("fabs", x), v.const(EXPM1_TINY), x, v.b.fadd(y, y))


def log(v: Builder, x: ir.Value) -> ir.Value:
    """ln x: x = 2**e * m, m in [sqrt(1/2), sqrt 2), atanh series in (m-1)/(m+1)."""
    tiny = v.b.fcmp_ordered("<", x, v.const(1.17549435e-38))
    scaled = v.b.select(tiny, v.b.fmul(x, v.const(2.0**23)), x)
    i = v.b.sub(v.bits(scaled), v.iconst(0x3F3504F3))
    e = v.b.ashr(i, v.iconst(23))
    m = v.floats(v.b.add(v.b.and_(i, v.iconst(0x7FFFFF)), v.iconst(0x3F3504F3)))
    ef = v.b.fsub(v.b.sitofp(e, v.vec), v.b.select(tiny, v.const(23.0), v.const(0.0)))
    s = v.b.fdiv(v.b.fsub(m, v.const(1.0)), v.b.fadd(m, v.const(1.0)))
    z = v.b.fmul(s, s)
    p = v.b.fmul(v.poly(z, (2 / 3, 2 / 5, 2 / 7, 2 / 9, 2 / 11)), z)
    ln = v.fma(ef, v.const(LN2[0]), v.fma(s, v.const(2.0), v.fma(s, p, v.b.fmul(ef, v.const(LN2[1])))))
    inf = float("inf")
    ln = v.select("==", x, v.const(inf), v.const(inf), ln)
    ln = v.select("==", x, v.const(0.0), v.const(-inf), ln)
    return v.b.select(v.b.fcmp_unordered("<", x, v.const(0.0)), v.const(float("nan")), ln)


def log1p(v: Builder, x: ir.Value) -> ir.Value:
    """Kahan: log(u) x/(u-1) with u = 1+x rounded."""
    u = v.b.fadd(v.const(1.0), x)
    d = v.b.fsub(u, v.const(1.0))
    ln = log(v, u)
    exact = v.select("<", v.unary("fabs", x), v.const(LOG1P_LARGE), v.b.fdiv(v.b.fmul(ln, x), d), ln)
    return v.select("==", d, v.const(0.0), x, exact)


def tanh(v: Builder, x: ir.Value) -> ir.Value:
    """x + x**3 p(x**2) below 0.625, else 1 - 2 e/(1 + e) with e = e**-2|x| and x's sign."""
    a = v.unary("fabs", x)
    z = v.b.fmul(x, x)
    small = v.fma(v.b.fmul(v.poly(z, TANH), z), x, x)
    e = exp(v, v.b.fmul(a, v.const(-2.0)))
    big = v.b.fsub(v.const(1.0), _over(v, v.b.fadd(e, e), v.b.fadd(e, v.const(1.0))))
    return v.copysign(v.select("<", a, v.const(TANH_BORDER), small, big), x)


def logistic(v: Builder, x: ir.Value) -> ir.Value:
    """1/(1+e) or e/(1+e) with e = e**-|x|, which never overflows."""
    e = exp(v, v.b.fneg(v.unary("fabs", x)))
    top = v.select("<", x, v.const(0.0), e, v.const(1.0))
    return _over(v, top, v.b.fadd(v.const(1.0), e))


def _erf_near_0(v: Builder, x: ir.Value) -> ir.Value:
    return v.b.fmul(v.poly(v.b.fmul(x, x), ERF_SMALL), x)


def erf(v: Builder, x: ir.Value) -> ir.Value:
    """An odd polynomial near 0, else 1 - 2**-p(|x|) with x's sign."""
    a = v.unary("fabs", x)
    p = v.b.fneg(v.poly(v.maximum(a, v.const(ERF_ONE), "<"), ERF_LARGE))
    t = v.b.fadd(p, v.const(ROUND))
    r = v.b.fsub(p, v.b.fsub(t, v.const(ROUND)))
    rest = _scaled(v, v.poly(r, EXP2), t)
    return v.select("<", a, v.const(ERF_BORDER), _erf_near_0(v, x), v.copysign(v.b.fsub(v.const(1.0), rest), x))


def erfc(v: Builder, x: ir.Value) -> ir.Value:
    """1 - erf near 0, else e**-a**2 q(t) / (a + c) with t = (a-c)/(a+c) for a = |x|; 2 minus that for negative x.

    The square is held in two parts, so that no digit of the exponent is lost.
    """
    a = v.maximum(v.unary("fabs", x), v.const(ERFC_NONE), "<")
    u = _over(v, v.const(1.0), v.b.fadd(a, v.const(ERFC_MIDDLE)))
    q = v.b.fmul(v.poly(v.b.fmul(v.b.fsub(a, v.const(ERFC_MIDDLE)), u), ERFC), u)
    square = v.b.fmul(a, a)
    low = v.fma(a, a, v.b.fneg(square))
    y = exp(v, v.b.fneg(square), v.b.fneg(low), q)
    far = v.select("<", x, v.const(0.0), v.b.fsub(v.const(2.0), y), y)
    return v.select("<", a, v.const(ERF_BORDER), v.b.fsub(v.const(1.0), _erf_near_0(v, x)), far)
