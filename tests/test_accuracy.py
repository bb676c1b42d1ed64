"""Every entry of the vector code's tables over its whole range, on every instruction set, against float64.

A function of f32 holds 4 units in the last place everywhere. Powers repeat JAX's own multiplications; where those lose
more, XLA's own error at the very point is the bound. A function whose result is bf16 holds 2**-12 of it.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from scipy import special

from xcoexec.codegen.kernels import elementary, elementary_bf16
from xcoexec.codegen.kernels.expressions import CONVERT, EMIT, EMIT_BOOL, EMIT_FLOAT, EMIT_INT
from xcoexec.codegen.native.build import kernel_address
from xcoexec.codegen.rules import numpy_rules
from xcoexec.codegen.rules.expressions import SHORTER
from xcoexec.codegen.target import ISAS, target

Array = np.ndarray
LIMIT = 4.0  # units in the last place
ROUNDED = 0.5000001  # of what IEEE 754 rounds once
NEARLY = 0.6  # of what is computed in float64 and rounded once
POWERS = (-7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 13, 31)


def _zeros_kept(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.where(x == 0, x, fn(x))


#: operation -> its float64 meaning and what it may lose
UNARY: dict[str, tuple[Callable[[Array], Array], float]] = {
    "neg": (np.negative, 0),
    "abs": (np.abs, 0),
    "floor": (np.floor, 0),
    "ceil": (np.ceil, 0),
    "sign": (_zeros_kept(np.sign), 0),
    "stop_gradient": (lambda x: x, 0),
    "copy": (lambda x: x, 0),
    "square": (np.square, ROUNDED),
    "sqrt": (np.sqrt, ROUNDED),
    "rsqrt": (lambda x: 1 / np.sqrt(x), LIMIT),
    "exp": (np.exp, LIMIT),
    "log": (np.log, LIMIT),
    "tanh": (np.tanh, LIMIT),
    "logistic": (special.expit, LIMIT),
    "erf": (special.erf, LIMIT),
    "erfc": (special.erfc, LIMIT),
    "log1p": (np.log1p, LIMIT),
    "expm1": (np.expm1, LIMIT),
    "exp2": (np.exp2, LIMIT),
    "sin": (np.sin, NEARLY),
    "cos": (np.cos, NEARLY),
}
ROUND = {"0": lambda x: np.trunc(x + np.copysign(0.5, x)), "1": np.rint}  # by method: ties away from zero, or to even


def _larger(a: Array, b: Array) -> Array:
    """max with +0 above -0; NaN stays."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _smaller(a: Array, b: Array) -> Array:
    return -_larger(-a, -b)


BINARY: dict[str, tuple[Callable[..., Array], float]] = {
    "add": (np.add, ROUNDED),
    "add_any": (np.add, ROUNDED),
    "sub": (np.subtract, ROUNDED),
    "mul": (np.multiply, ROUNDED),
    "div": (np.divide, ROUNDED),
    "max": (_larger, 0),
    "min": (_smaller, 0),
    "pow": (np.power, NEARLY),
}
COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
SAME = {"stop_gradient": lambda x: x, "copy": lambda x: x}
CLAMP = {"clamp": lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi)}
INT_UNARY = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "not": np.invert, **SAME}


def _cut(a: Array, b: Array) -> Array:
    """The quotient towards zero; -1 where the divisor is 0; the least number by -1 wraps around."""
    exact = np.trunc(a.astype(np.float64) / np.where(b == 0, 1, b)).astype(np.int64)
    return np.where(b == 0, -1, exact).astype(np.int32)


def _left(a: Array, b: Array) -> Array:
    """What the quotient leaves, with the sign of a; a itself where the divisor is 0."""
    return np.where(b == 0, a, np.fmod(a.astype(np.int64), np.where(b == 0, 1, b).astype(np.int64))).astype(np.int32)


INT_BINARY = {
    **{"div": _cut, "rem": _left},
    **{"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum},
    **BITWISE,
    **COMPARE,
}
BOOL_UNARY = {"not": np.invert, **SAME}
BOOL_BINARY = {"max": np.logical_or, "min": np.logical_and, **BITWISE, **COMPARE}


def test_every_entry_is_swept() -> None:
    assert set(EMIT_FLOAT) == {
        *UNARY,
        *BINARY,
        *COMPARE,
        "integer_pow",
        "clamp",
        "round",
        "is_finite",
        "bfloat",
        "half",
    }
    assert set(EMIT_INT) == {*INT_UNARY, *INT_BINARY, "integer_pow", "clamp", "select_n"}
    assert set(EMIT_BOOL) == {*BOOL_UNARY, *BOOL_BINARY, "clamp", "select_n"}
    assert set(elementary_bf16.FUNCTIONS) == SHORTER <= set(UNARY)
    assert len(EMIT) == len(EMIT_FLOAT) + len(EMIT_INT) + len(EMIT_BOOL) + len(SHORTER)
    # the next two are in every test of s32, the last one in those of bytes (test_haste)
    assert set(CONVERT) == {*CONVERSIONS, "bits", "floats", "between"} - {"bfloat", "half"}


# -- a kernel of one operation -----------------------------------------------------------------------

ISA = pytest.mark.parametrize("isa", ISAS)
BEFORE = {"f": (), "i": ("bits",), "b": ("fb",)}
AFTER = {"f": (), "i": ("floats",), "b": ("bf",)}


def _kind(x: Array) -> str:
    return {"f": "f", "i": "i", "b": "b"}[x.dtype.kind]


def run(isa: str, head: str, result: str, *operands: Array) -> Array:
    """The vector code of one node on arrays of one size, of f32, s32 or bool; `result`: the kind that it makes."""
    try:
        chosen = target(isa)
    except ValueError:
        pytest.skip(f"this CPU does not run {isa}")
    expr: list[tuple[Any, ...]] = []
    places = []
    for k, x in enumerate(operands):
        expr.append(("in", k))
        expr += [(name, len(expr) - 1) for name in BEFORE[_kind(x)]]
        places.append(len(expr) - 1)
    expr.append((head, *places))
    expr += [(name, len(expr) - 1) for name in AFTER[result]]
    address = kernel_address(("elementwise", tuple(expr), ("v",) * (1 + len(operands))), chosen)
    carried = [np.ascontiguousarray(x if _kind(x) != "b" else x.astype(np.float32)) for x in operands]
    n = carried[0].size
    out = np.full(n, -7, np.int32 if result == "i" else np.float32)
    where = np.array([x.ctypes.data for x in (out, *carried)], np.int64)
    index, words = np.zeros(6, np.int64), np.array([n, n], np.int64)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)(where.ctypes.data, index.ctypes.data, words.ctypes.data)
    return out.astype(bool) if result == "b" else out


# -- points ------------------------------------------------------------------------------------------


def _around(centres: Array, steps: int = 8) -> Array:
    """Numbers, their negatives and the neighbours of both."""
    middle = np.asarray(centres, np.float32).view(np.int32).astype(np.int64)
    bits = np.unique(middle[:, None] + np.arange(-steps, steps + 1))
    x = bits[(bits >= 0) & (bits <= 0x7F800000)].astype(np.uint32).view(np.float32)
    return np.concatenate([x, -x])


def _borders() -> Array:
    """Where the implementation changes its way: its constants, ends of argument reductions and of ranges of results."""
    constants = (*vars(elementary).values(), *vars(elementary_bf16).values())
    named = [abs(x) for x in constants if isinstance(x, float)]
    halves = np.abs(np.arange(-152, 131) + 0.5) * math.log(2)
    binades = math.sqrt(2) * 2.0 ** np.arange(-126, 127)
    ends = [
        0.0,
        1.0,
        2.0,
        88.72284,
        87.33654,
        103.97208,
        9.194,
        10.0528,
        17.33,
        1.17549435e-38,
        3.4028235e38,
        2.0**-149,
        2.0**31,
        2.0**24,
        2.0**23,
    ]
    return _around(np.concatenate([named, halves, halves / 2, binades, ends]).astype(np.float32))


@functools.lru_cache
def points(coarse: bool) -> Array:
    """Every exponent (denormals too) and both signs, with mantissas at random; borders; infinities, zeros and NaN."""
    many = 25 if coarse else 400
    mantissas = np.random.default_rng(0).integers(0, 1 << 23, (2, 255, many), dtype=np.uint32)
    signs, exponents = np.arange(2, dtype=np.uint32) << 31, np.arange(255, dtype=np.uint32) << 23
    bits = signs[:, None, None] | exponents[:, None] | mantissas
    special_values = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0], np.float32)
    return np.concatenate([bits.ravel().view(np.float32), _borders(), special_values])


def coarse(isa: str) -> bool:
    return isa != target().name


def pairs(isa: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    x = points(coarse(isa))
    edges = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 2.0**-149, 3.4028235e38]
    some = np.concatenate([rng.choice(x, 250), edges]).astype(np.float32)
    a, b = (g.ravel() for g in np.meshgrid(some, some))
    near = rng.uniform(0.5, 2, x.size).astype(np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate([a, x, x]), np.concatenate([b, near * x, x])


def integers() -> Array:
    edges = [0, 1, -1, 2, -2, 7, -13, 46340, 46341, 65536, -(2**31), 2**31 - 1, 2**24 + 1, -(2**24) - 1, 2**30]
    others = np.random.default_rng(2).integers(-(2**31), 2**31, 400)
    return np.concatenate([edges, others]).astype(np.int32)


def ulps(got: Array, want: Array) -> Array:
    """Distance in units of the last place of f32; infinite where NaN, an infinity or the sign of a zero is wrong."""
    with np.errstate(all="ignore"):
        near = want.astype(np.float32)
        unit = np.maximum(np.spacing(np.abs(near)).astype(np.float64), 2.0**-149)
        unit = np.where(np.isinf(near), 2.0**104, unit)
        distance = np.abs(got.astype(np.float64) - want) / unit
        same_sign = (got != 0) | (np.signbit(got) == np.signbit(near))
        exact = ((got == near) | (np.isnan(got) & np.isnan(near))) & same_sign
    wrong = ~np.isfinite(want) | ~np.isfinite(got) | ((got == 0) & (np.signbit(got) != np.signbit(near)))
    return np.where(wrong, np.where(exact, 0.0, np.inf), distance)


def assert_within(got: Array, want: Array, limit: Any, *operands: Array) -> None:
    away = ulps(got, want) - limit
    worst = int(np.argmax(away))
    at = [float(x[worst]) for x in operands]
    assert away[worst] <= 0, f"{np.sum(away > 0)} points; at {at} got {got[worst]!r}, want {want[worst]!r}"


# -- f32 ---------------------------------------------------------------------------------------------


@ISA
@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str, isa: str) -> None:
    fn, limit = UNARY[name]
    x = points(coarse(isa))
    with np.errstate(all="ignore"):
        want = fn(x.astype(np.float64))
    assert_within(run(isa, name, "f", x), want, limit, x)


@ISA
@pytest.mark.parametrize("name", sorted(SHORTER))
def test_functions_whose_results_are_bf16(name: str, isa: str) -> None:
    """Where a result is no normal number it may be a zero."""
    x = points(coarse(isa))
    with np.errstate(all="ignore"):
        want = UNARY[name][0](x.astype(np.float64))
        near = want.astype(np.float32)
        got = run(isa, f"{name}@bf16", "f", x)
        endless = ~np.isfinite(near)
        np.testing.assert_array_equal(got[endless], near[endless])
        np.testing.assert_array_equal(np.signbit(got[x == 0]), np.signbit(near[x == 0]))
        away = np.abs(got - want) - 2.0**-12 * np.abs(want)
    away = np.where(endless, 0, np.where(np.abs(want) < 1.2e-38, away - 1.2e-38, away))
    worst = int(np.argmax(away))
    assert away[worst] <= 0, f"at {x[worst]} got {got[worst]!r}, want {want[worst]!r}"


@ISA
@pytest.mark.parametrize("method", ROUND)
def test_rounding(method: str, isa: str) -> None:
    x = points(coarse(isa))
    with np.errstate(all="ignore"):
        want = ROUND[method](x.astype(np.float64))
    assert_within(run(isa, f"round:{method}", "f", x), want, 0, x)


@ISA
def test_what_is_finite(isa: str) -> None:
    x = points(coarse(isa))
    np.testing.assert_array_equal(run(isa, "is_finite", "b", x), np.isfinite(x))


@ISA
@pytest.mark.parametrize("y", POWERS)
def test_powers(y: int, isa: str) -> None:
    x = points(coarse(isa))
    with np.errstate(all="ignore"):
        want = x.astype(np.float64) ** abs(y)
        want = want if y >= 0 else 1 / want
    xla = ulps(np.asarray(jax.jit(lambda x: lax.integer_pow(x, y))(x)), want)
    assert_within(run(isa, f"integer_pow:{y}", "f", x), want, np.maximum(LIMIT, xla), x)


@ISA
@pytest.mark.parametrize("name", [*BINARY, *COMPARE])
def test_pairs(name: str, isa: str) -> None:
    a, b = pairs(isa)
    if name in COMPARE:
        np.testing.assert_array_equal(run(isa, name, "b", a, b), COMPARE[name](a, b))
        return
    fn, limit = BINARY[name]
    with np.errstate(all="ignore"):
        want = fn(a.astype(np.float64), b.astype(np.float64))
    assert_within(run(isa, name, "f", a, b), want, limit, a, b)


@ISA
def test_clamp(isa: str) -> None:
    a, b = pairs(isa)
    lo = np.random.default_rng(3).permutation(a)
    want = _smaller(_larger(a, lo).astype(np.float64), b.astype(np.float64))
    assert_within(run(isa, "clamp", "f", lo, a, b), want, 0, lo, a, b)


# -- s32, bool, conversions --------------------------------------------------------------------------


@ISA
@pytest.mark.parametrize("name", [*INT_UNARY, *INT_BINARY, "clamp"])
def test_integers(name: str, isa: str) -> None:
    """s32 wraps around, as NumPy's int32 does."""
    a, b = (g.ravel() for g in np.meshgrid(integers(), integers()))
    least = np.random.default_rng(4).permutation(a)
    operands = (a,) if name in INT_UNARY else (a, b) if name in INT_BINARY else (least, a, b)
    fn = {**INT_UNARY, **INT_BINARY, **CLAMP}[name]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(isa, f"{name}@i", "b" if name in COMPARE else "i", *operands), fn(*operands))


@ISA
@pytest.mark.parametrize("y", [y for y in POWERS if y >= 0])
def test_powers_of_integers(y: int, isa: str) -> None:
    x = integers()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(isa, f"integer_pow@i:{y}", "i", x), x ** np.int32(y))


@ISA
@pytest.mark.parametrize("name", [*BOOL_UNARY, *BOOL_BINARY, "clamp"])
def test_bools(name: str, isa: str) -> None:
    lo, x, hi = (np.array([bool(i >> k & 1) for i in range(37)]) for k in range(3))
    operands = (x,) if name in BOOL_UNARY else (x, hi) if name in BOOL_BINARY else (lo, x, hi)
    fn = {**BOOL_UNARY, **BOOL_BINARY, "clamp": lambda lo, x, hi: (x | lo) & hi}[name]
    np.testing.assert_array_equal(run(isa, f"{name}@b", "b", *operands), fn(*operands))


@ISA
@pytest.mark.parametrize("kind", ["f", "i", "b"])
def test_selects(kind: str, isa: str) -> None:
    """A bool takes one of two, an integer one of several; one outside takes the nearest."""
    rng = np.random.default_rng(5)
    cases = [rng.integers(-9, 9, 301).astype({"f": np.float32, "i": np.int32, "b": bool}[kind]) for _ in range(4)]
    p, which = rng.integers(0, 2, 301).astype(bool), rng.integers(-3, 7, 301).astype(np.int32)
    np.testing.assert_array_equal(run(isa, "select_n@b", kind, p, *cases[:2]), np.where(p, cases[1], cases[0]))
    np.testing.assert_array_equal(run(isa, "select_n@i", kind, which, *cases), np.choose(np.clip(which, 0, 3), cases))
    np.testing.assert_array_equal(run(isa, "select_n@i", kind, which, *cases[:1]), cases[0])


#: conversion -> the kinds before and after, and its meaning
CONVERSIONS: dict[str, tuple[str, str, Callable[[Array], Array]]] = {
    "if": ("i", "f", lambda x: x.astype(np.float32)),
    "fi": ("f", "i", lambda x: np.clip(np.nan_to_num(x.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)),
    "bf": ("b", "f", lambda x: x.astype(np.float32)),
    "bi": ("b", "i", lambda x: x.astype(np.int32)),
    "fb": ("f", "b", lambda x: x != 0),
    "ib": ("i", "b", lambda x: x != 0),
    "half": ("f", "f", lambda x: x.astype(np.float16).astype(np.float32)),
    "bfloat": ("f", "f", lambda x: x.astype(jax.numpy.bfloat16).astype(np.float32)),
    "byte": ("f", "f", lambda x: np.trunc(np.clip(np.nan_to_num(x), -128, 127))),
    "nearest": ("f", "f", lambda x: np.rint(np.clip(np.nan_to_num(x), -128, 127))),
    "shifted": ("f", "f", lambda x: x + np.float32(128)),
    "factor": ("f", "f", lambda x: x),
    "wrapped": ("i", "i", lambda x: x.astype(np.int8).astype(np.int32)),
}


@ISA
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str, isa: str) -> None:
    before, after, fn = CONVERSIONS[name]
    x = {"f": points(coarse(isa)), "i": integers(), "b": np.arange(35) % 3 == 0}[before]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(isa, name, after, x), fn(x))


def test_conversion_to_integers_is_that_of_xla() -> None:
    x = points(True)
    np.testing.assert_array_equal(
        numpy_rules.converted(x, np.int32), np.asarray(jax.jit(lambda x: x.astype("int32"))(x))
    )
