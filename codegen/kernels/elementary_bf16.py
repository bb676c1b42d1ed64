"""Elementary functions whose results are rounded to bf16, on vectors of f32: each to 2**-12 of the result over its
whole range, an eighth of what the rounding may lose, at half the instructions of those to the last place.

Coefficients are minimax fits of relative error, constant term first, rounded to f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import llvmlite.ir as ir

from . import elementary
from .elementary import ALL, LONG, NOW, near_inverse, raised
from .simd import Builder
from .vectors import I32

LOG2E = math.log2(math.e)
NEAREST = ir.Constant(I32, 0)  # what is left by the nearest whole number

#: 2**r for |r| <= 1/2 (2.9e-6)
EXP2 = (1.0, 0.6931241750717163, 0.24024099111557007, 0.055906426161527634, 0.009582859463989735)
#: tanh(x) / x in x**2 for |x| <= 5 (5.2e-5), a quotient; from there on it is 1 - 9.1e-5 at least
TANH_MOST = 5.0
TANH = ((0.9999480247497559, 0.1024177074432373, 0.0006705656996928155), (1.0, 0.4354325234889984, 0.01281989086419344))
#: erf(x) / x in x**2 for |x| <= 2.8 (3.2e-5), a quotient; from there on it is 1 - 7.5e-5 at least
ERF_MOST = 2.8
ERF = (
    (1.1283432245254517, 0.17079445719718933, 0.029582472518086433),
    (1.0, 0.48416680097579956, 0.08901943266391754, 0.0035976553335785866),
)
#: erfc(x) e**(x**2) / u in u = 1 / (1 + 0.53 x) for 0 <= x <= 9.4 (2.8e-5)
ERFC_STEP = 0.53
ERFC = (0.2978699505329132, 0.3159216046333313, 0.16489185392856598, 0.4034687280654907, -0.1821659356355667)


def _inverse(v: Builder, d: ir.Value) -> ir.Value:
    """1 / d, to the 14 bits that an instruction has where there is one."""
    return near_inverse(v, d) if v.vl == LONG else v.b.fdiv(v.const(1.0), d)


def exp2(v: Builder, x: ir.Value) -> ir.Value:
    """2**x."""
    if v.vl != LONG:
        return elementary.exp2(v, x, EXP2)
    r = v.call("llvm.x86.avx512.mask.reduce.ps.512", v.vec, x, NEAREST, x, ALL, NOW)  # nothing of an infinite x
    return raised(v, v.poly(r, EXP2), v.b.fsub(x, r))


def exp(v: Builder, x: ir.Value) -> ir.Value:
    """2**(x log2 e)."""
    return exp2(v, v.b.fmul(x, v.const(LOG2E)))


def logistic(v: Builder, x: ir.Value) -> ir.Value:
    """1 / (1 + e**-x): 0 where that power is infinite."""
    return _inverse(v, v.b.fadd(v.const(1.0), exp2(v, v.b.fmul(x, v.const(-LOG2E)))))


def _odd(v: Builder, x: ir.Value, most: float, over: tuple[float, ...], under: tuple[float, ...]) -> ir.Value:
    """x times a quotient of polynomials in x**2, for x between -most and most; what it is there beyond."""
    x = v.maximum(v.maximum(x, v.const(-most)), v.const(most), "<")
    z = v.b.fmul(x, x)
    return v.b.fmul(v.b.fmul(x, v.poly(z, over)), _inverse(v, v.poly(z, under)))


def tanh(v: Builder, x: ir.Value) -> ir.Value:
    """An odd quotient that ends near 1."""
    return _odd(v, x, TANH_MOST, *TANH)


def erf(v: Builder, x: ir.Value) -> ir.Value:
    """An odd quotient that ends near 1."""
    return _odd(v, x, ERF_MOST, *ERF)


def erfc(v: Builder, x: ir.Value) -> ir.Value:
    """u q(u) e**-x**2 for positive x; 2 minus that of -x for negative ones."""
    a = v.unary("fabs", x)
    u = _inverse(v, v.fma(a, v.const(ERFC_STEP), v.const(1.0)))
    power = exp2(v, v.b.fmul(v.b.fmul(a, a), v.const(-LOG2E)))
    y = v.b.fmul(v.b.fmul(v.poly(u, ERFC), u), power)
    return v.select("<", x, v.const(0.0), v.b.fsub(v.const(2.0), y), y)


#: primitive -> its vector code where the result is bf16
FUNCTIONS: dict[str, Callable[[Builder, ir.Value], ir.Value]] = {
    f.__name__: f for f in (exp, exp2, logistic, tanh, erf, erfc)
}
