"""Products and convolutions of int8 as int32 are exact, on every target; what is around them is fused or right too."""

from __future__ import annotations

import dataclasses
import functools
import math
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.kernels import elementwise, pairs
from xcoexec.codegen.kernels import product as product_kernels
from xcoexec.codegen.program import Value
from xcoexec.codegen.rules.signs import hardly_negative
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.makers import Makers
from xcoexec.codegen.segment.storage import temporary
from xcoexec.codegen.target import MATRIX_UNITS, Target, target
from xcoexec.partition.split import split

from .support import array, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

TARGETS = targets()
#: vectors of 4 lanes without any instruction that multiplies pairs
PLAIN = target("portable")
TARGETS.append(dataclasses.replace(PLAIN, name="plain", features=PLAIN.features.replace("+sse2", "")))
Array = np.ndarray
AXES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def whole(*shape: int, seed: int = 0, extreme: bool = False) -> Array:
    """Numbers of int8, the least one often among them; `extreme`: nothing else."""
    some = np.random.default_rng(seed).integers(-128, 128, shape)
    return np.where(some < -100, -128, some).astype(np.int8) if not extreme else np.full(shape, -128, np.int8)


def run_on(fn: Any, *args: Any, isa: Target, weights: int = 0, threads: int = 2) -> tuple[Array, set[str]]:
    """The first result of `fn` on kernels for `isa`, which take int8 as f32, and the families that ran."""
    folded, graph = stages_of(fn, *args, weights=weights)
    assert not [x.host_error for x in graph.layers if x.host_error]
    consts = folded.constants(args[:weights])
    segment = host.build(graph.program, threads, isa, pick=lambda groups, names, t: names[0], cut=split)
    inputs = [np.asarray(x).astype(np.int32 if x.dtype == np.int32 else np.float32) for x in args[weights:]]
    call = host.Call(segment, inputs, [consts[v] for v in graph.program.consts])
    return call()[0].copy(), set(segment.algorithms)


def product(x: Any, w: Any, dims: Any = (((1,), (0,)), ((), ()))) -> Any:
    return lax.dot_general(x, w, dims, preferred_element_type=jnp.int32)


def ran(isa: Target) -> str:
    """What multiplies int8 by the target's instructions."""
    unit = isa.unit("int8")
    assert unit is not None
    return "gemm(int8)" if unit.kernel == "gemm" else unit.kernel


def bound(fn: Any, *weights: Any, threads: int = 2) -> Any:
    return xcoexec.jit(fn, strategy="host", strict=True, threads=threads).bind(*weights)


def test_units() -> None:
    """VNNI needs its feature and vectors of 16 lanes; x86 multiplies pairs of s16, and other targets do without."""
    wide = Target("avx512", 16, 32, "x", "+sse2,+avx2,+avx512f,+avx512vnni")
    assert wide.unit("int8").name == "avx512vnni" and wide.unit("uint8") is None
    assert Target("avx512", 16, 32, "x", "+sse2,+avx2,+avx512f,-avx512vnni").unit("int8").name == "sse2"
    narrow = Target("avx2", 8, 16, "x", "+sse2,+avx2")
    assert narrow.unit("int8").name == "sse2" and narrow.unit("uint8").name == "avx2"
    assert Target("neon", 4, 32, "x", "+neon").unit("int8").name == "s16"


SIGNS = {"none": 1.0, "all": -1.0, "some": None}


def rectified(kind: str, *shape: int, extreme: bool) -> tuple[Array, Array, Array]:
    """Numbers, what scales them behind a ReLU so that so many are negative, and the int8 that come of it."""
    x = np.abs(whole(*shape, extreme=extreme).astype(np.float32))
    some = np.where(np.random.default_rng(3).random(shape[-1]) < 0.02, -1.0, 1.0)
    scale = np.float32(np.broadcast_to(some if SIGNS[kind] is None else SIGNS[kind], shape[-1:]))
    x = np.minimum(x, np.where(scale < 0, 128, 127)).astype(np.float32)
    return x, scale, (x * scale).astype(np.int8)


def behind_relu(x: Any, scale: Any) -> Any:
    return jnp.round(jax.nn.relu(x) * scale).astype(jnp.int8)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", SIGNS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 4, 1), (3, 12, 5), (7, 300, 65), (33, 64, 130), (65, 1036, 16), (9, 6, 9)]
)
def test_products_behind_a_relu(isa: Target, extreme: bool, kind: str, m: int, k: int, n: int) -> None:
    """Bytes of which none is negative are multiplied by other instructions; a scale that makes some is right too."""
    (x, scale, q), w = rectified(kind, m, k, extreme=extreme), whole(k, n, seed=1, extreme=extreme)
    fn = lambda w, scale, x: product(behind_relu(x, scale), w)
    got, how = run_on(fn, w, scale, x, isa=isa, weights=2)
    np.testing.assert_array_equal(got.view(np.int32), q.astype(np.int64) @ w.astype(np.int64))
    assert behind(isa, k) in {name for names in how for name in names.split("+")}


relu = jax.nn.relu
GUESSES: dict[str, tuple[Any, bool]] = {
    "scaled": (lambda s, x: jnp.round(relu(x) * s).astype(jnp.int8), True),
    "divided": (lambda s, x: relu(x) / s, True),
    "any sign": (lambda s, x: jnp.round(x * s).astype(jnp.int8), False),
    "added": (lambda s, x: relu(x) + jnp.abs(x * 2).reshape(x.shape), True),
    "taken off": (lambda s, x: relu(x) - jnp.exp(x), False),
    "turned": (lambda s, x: relu(x) * -2.0, False),
    "pooled": (lambda s, x: lax.reduce_window(relu(x), -jnp.inf, lax.max, (1, 2), (1, 1), "VALID").T, True),
    "clipped": (lambda s, x: jnp.clip(x, 0.0, 6.0) * s, True),
    "clipped around 0": (lambda s, x: jnp.clip(x, -1.0, 6.0) * s, False),
    "known alone": (lambda s, x: s * 2.0 + 0.0 * relu(x[0]), False),
}


@pytest.mark.parametrize("case", GUESSES)
def test_what_is_hardly_negative(case: str) -> None:
    fn, want = GUESSES[case]
    _, graph = stages_of(fn, array(5, low=0.1, high=1.0), array(3, 5, low=-1, high=1), weights=1)
    makers = {v: op for op in graph.program.ops for v in op.outs}
    assert hardly_negative(graph.program.outputs[0], makers, set(graph.program.consts)) == want


def behind(isa: Target, depth: int) -> str:
    """What multiplies int8 behind a ReLU."""
    return "gemm(uint8)" if isa.unit("uint8") and isa.unit("int8").per == 2 and depth % 4 == 0 else ran(isa)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (2, 1, 17), (3, 2, 5), (7, 301, 65), (33, 64, 130), (1, 4099, 70), (65, 1030, 16)]
)
def test_products(isa: Target, extreme: bool, m: int, k: int, n: int) -> None:
    w, x = whole(k, n, seed=1, extreme=extreme), whole(m, k, extreme=extreme)
    for threads in (1, 2):
        got, how = run_on(lambda w, x: product(x, w), w, x, isa=isa, weights=1, threads=threads)
        np.testing.assert_array_equal(got.view(np.int32), x.astype(np.int64) @ w.astype(np.int64))
        assert ran(isa) in {name for names in how for name in names.split("+")}


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_products_in_groups(isa: Target) -> None:
    w, x = whole(3, 37, 21, seed=1), whole(3, 9, 37)
    fn = lambda w, x: product(x, w, (((2,), (1,)), ((0,), (0,))))
    got, how = run_on(fn, w, x, isa=isa, weights=1)
    np.testing.assert_array_equal(got.view(np.int32), x.astype(np.int64) @ w.astype(np.int64))
    assert ran(isa) in {name for names in how for name in names.split("+")}


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("transposed", [False, True])
def test_computed_sides(isa: Target, transposed: bool) -> None:
    """As scores of attention have them: sums that f32 has exactly."""
    a, b = whole(3, 9, 64, extreme=True), whole(3, 11, 64, seed=1)
    dims = (((2,), (2,)), ((0,), (0,))) if not transposed else (((1,), (1,)), ((0,), (0,)))
    b = b if not transposed else whole(3, 9, 40, seed=1)
    got, how = run_on(lambda a, b: product(a, b, dims), a, b, isa=isa)
    equation = "bik,bjk->bij" if not transposed else "bki,bkj->bij"
    np.testing.assert_array_equal(got.view(np.int32), np.einsum(equation, a.astype(np.int64), b.astype(np.int64)))
    assert any("gemm" in family for family in how)


def test_long_sums_of_computed_sides_are_left_to_xla() -> None:
    a, b = jnp.asarray(whole(4, 1025, extreme=True)), jnp.asarray(whole(1025, 3, extreme=True))
    want = np.asarray(a, np.int64) @ np.asarray(b, np.int64)
    np.testing.assert_array_equal(xcoexec.jit(product, wait=True)(a, b), want)


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "first": ((1, 9, 11, 3), (7, 7, 3, 17), {"window_strides": (2, 2), "padding": "SAME"}),
    "pointwise": ((2, 8, 7, 33), (1, 1, 33, 20), {"window_strides": (1, 1), "padding": "VALID"}),
    "strided": ((1, 14, 14, 64), (1, 1, 64, 40), {"window_strides": (2, 2), "padding": "VALID"}),
    "uneven": ((2, 7, 9, 16), (3, 2, 16, 21), {"window_strides": (1, 2), "padding": [(2, 0), (1, 3)]}),
    "3x3": ((2, 9, 8, 32), (3, 3, 32, 48), {"window_strides": (1, 1), "padding": "SAME"}),
    "long": ((1, 5, 5, 130), (3, 3, 130, 16), {"window_strides": (1, 1), "padding": "SAME"}),
    "dilated": ((1, 7, 9, 16), (3, 2, 16, 21), {"padding": "SAME", "rhs_dilation": (2, 1)}),
    "grouped": ((1, 6, 6, 24), (3, 3, 12, 20), {"padding": "SAME", "feature_group_count": 2}),
    "grouped by 5": ((1, 6, 6, 20), (3, 3, 5, 12), {"padding": "SAME", "feature_group_count": 4}),
    "depthwise": (
        (2, 9, 7, 19),
        (3, 3, 1, 19),
        {"window_strides": (2, 2), "padding": "SAME", "feature_group_count": 19},
    ),
    "transposed": ((1, 5, 5, 5), (3, 3, 5, 12), {"padding": [(1, 2)] * 2, "lhs_dilation": (2, 2)}),
    "1-D": ((3, 12, 5), (4, 5, 6), {"window_strides": (1,), "padding": [(3, 0)]}),
    "3-D": ((1, 4, 5, 6, 8), (2, 3, 3, 8, 7), {"window_strides": (1, 1, 1), "padding": "SAME"}),
}
IN_F32 = ("grouped by 5", "depthwise")


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_convolutions(isa: Target, extreme: bool, case: str) -> None:
    image, kernel, options = CASES[case]
    x, w = whole(*image, extreme=extreme), whole(*kernel, seed=1, extreme=extreme)
    options = {"window_strides": (1, 1), **options}
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=AXES[len(image) - 2], **options)
    got, how = run_on(lambda w, x: conv(x, w, preferred_element_type=jnp.int32), w, x, isa=isa, weights=1)
    with jax.enable_x64(True):
        want = np.asarray(conv(jnp.asarray(x, jnp.float64), jnp.asarray(w, jnp.float64))).astype(np.int64)
    np.testing.assert_array_equal(got.view(np.int32), want)
    unit = isa.unit("int8")
    assert unit is not None
    narrow = case not in IN_F32 and (options.get("feature_group_count", 1) == 1 or kernel[-2] % unit.per == 0)
    assert any("(int8)" in family or "tiles" in family for family in how) == narrow, how


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", SIGNS)
@pytest.mark.parametrize("case", [c for c in CASES if c not in IN_F32])
def test_convolutions_behind_a_relu(isa: Target, extreme: bool, kind: str, case: str) -> None:
    image, kernel, options = CASES[case]
    x, scale, q = rectified(kind, *image, extreme=extreme)
    w, options = whole(*kernel, seed=1, extreme=extreme), {"window_strides": (1, 1), **options}
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=AXES[len(image) - 2], **options)
    fn = lambda w, scale, x: conv(behind_relu(x, scale), w, preferred_element_type=jnp.int32)
    got, how = run_on(fn, w, scale, x, isa=isa, weights=2)
    with jax.enable_x64(True):
        want = np.asarray(conv(jnp.asarray(q, jnp.float64), jnp.asarray(w, jnp.float64))).astype(np.int64)
    np.testing.assert_array_equal(got.view(np.int32), want)
    unit = isa.unit("int8")
    if options.get("feature_group_count", 1) == 1 or kernel[-2] % unit.per == 0:
        name = behind(isa, kernel[-2])
        ways = {name, "gemm(int8)"} if name == "tiles" else {name}  # images of few channels stay with vectors
        assert ways & {name for names in how for name in names.split("+")}


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", [None, *SIGNS])
def test_sums_in_several_blocks(isa: Target, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights beyond the second cache are summed block by block, and what sums begin with is added once."""
    blocks: list[Any] = []
    cut = product_kernels.reduction_blocks

    def seen(*given: Any) -> Any:
        blocks.append(cut(*given))
        return blocks[-1]

    monkeypatch.setattr(product_kernels, "reduction_blocks", seen)
    monkeypatch.setattr(product_kernels, "PANEL_BYTES", 1)
    monkeypatch.setattr(product_kernels, "TILES_PANEL", 1)
    monkeypatch.setattr(product_kernels, "_items", lambda *given: (3, 1))
    x, scale, q = rectified(kind or "none", 2, 12, 12, 132, extreme=False)
    w = whole(3, 3, 132, 40, seed=1)
    conv = functools.partial(lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=AXES[2])
    if kind is None:
        q = whole(2, 12, 12, 132)
        got, _ = run_on(lambda w, x: conv(x, w, preferred_element_type=jnp.int32), w, q, isa=isa, weights=1)
    else:
        fn = lambda w, scale, x: conv(behind_relu(x, scale), w, preferred_element_type=jnp.int32)
        got, _ = run_on(fn, w, scale, x, isa=isa, weights=2)
    assert max(map(len, blocks)) > 1
    with jax.enable_x64(True):
        want = np.asarray(conv(jnp.asarray(q, jnp.float64), jnp.asarray(w, jnp.float64))).astype(np.int64)
    np.testing.assert_array_equal(got.view(np.int32), want)


def test_two_halves_of_a_border() -> None:
    """An image with the border of another reader's: what is narrowed has it too."""
    w, v, x = whole(3, 3, 16, 16, seed=1), whole(1, 1, 16, 24, seed=2), array(1, 6, 5, 16, low=-90, high=90)

    def fn(w: Any, v: Any, x: Any) -> Any:
        q = jnp.round(x * 1.3).astype(jnp.int8)
        conv = functools.partial(lax.conv_general_dilated, dimension_numbers=AXES[2], preferred_element_type=jnp.int32)
        return conv(q, w, (1, 1), "SAME"), conv(q, v, (2, 2), "VALID")

    for got, want in zip(bound(fn, w, v)(x), jax.jit(fn)(w, v, x), strict=True):
        np.testing.assert_array_equal(got, want)


def quantised(w: Any, scale: Any, b: Any, x: Any) -> Any:
    """As qwix has a dense layer: rounded rows, a product as int32, scales, bias, and the next layer's rounding."""
    q = jnp.round(x / 0.031).astype(jnp.int8)
    y = product(q, w).astype(jnp.float32) * 0.031 * scale + b
    return jnp.clip(jnp.round(jax.nn.relu(y) * 3), -128, 127).astype(jnp.int8)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_around_a_product_is_fused(threads: int) -> None:
    w, scale, b = whole(67, 45, seed=1), array(1, 45, seed=2, low=0.001, high=0.01), array(45, seed=3)
    x = array(9, 67, low=-5, high=5)
    fast = bound(quantised, w, scale, b, threads=threads)
    got, want = np.asarray(fast(x)), np.asarray(jax.jit(quantised)(w, scale, b, x))
    assert got.dtype == np.int8 and np.max(np.abs(got.astype(int) - want)) <= 1
    assert ran(target()) in fast.report().layers[-1].algorithm.split("+")


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_conversions(isa: Target) -> None:
    x = np.array([0.4, -0.6, 126.9, 127.2, 300, -127.9, -128.7, -1e9, np.nan, np.inf, -np.inf, -0.0, 1.5], np.float32)
    i = np.array([0, 127, 128, -128, -129, 255, 256, 2**31 - 1, -(2**31), 65, -1, 1000, 7], np.int32)
    whole_of = lambda y: y.astype(jnp.float32) * 1.0
    got, _ = run_on(lambda x: whole_of(x.astype(jnp.int8)), x, isa=isa)
    np.testing.assert_array_equal(got, np.asarray(jax.jit(lambda x: x.astype(jnp.int8))(x)).astype(np.float32))
    assert not np.signbit(got[got == 0]).any()
    got, _ = run_on(lambda i: whole_of(i.astype(jnp.int8)), i, isa=isa)
    np.testing.assert_array_equal(got, i.astype(np.int8).astype(np.float32))


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("fn", [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, lambda a, b: -a, lambda a, b: abs(a)])
def test_arithmetic_wraps_around(isa: Target, fn: Any) -> None:
    a, b = whole(40), whole(40, seed=1)
    got, _ = run_on(lambda a, b: fn(a, b).astype(jnp.float32), a, b, isa=isa)
    np.testing.assert_array_equal(got, np.asarray(fn(jnp.asarray(a), jnp.asarray(b))).astype(np.float32))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.sum(x, -1, dtype=jnp.int8),
        lambda x: lax.integer_pow(x, 3),
        lambda x: lax.div(x, jnp.int8(3)),
        lambda x: x & jnp.int8(15),
    ],
)
def test_what_has_no_kernel_is_right(fn: Any) -> None:
    x = whole(5, 33)
    np.testing.assert_array_equal(xcoexec.jit(fn, wait=True)(x), fn(jnp.asarray(x)))


def test_sums_on_epilogues() -> None:
    """Operand 0 of an epilogue becomes an expression; its other nodes keep their meaning."""
    expr = (("in", 0), ("in", 1), ("add", 0, 1), ("lit", "f", "2.0"), ("mul", 2, 3))
    assert pairs.over(expr, pairs.FROM_FLOATS) == (
        *pairs.FROM_FLOATS,
        *(("in", 1), ("add", 2, 3), ("lit", "f", "2.0"), ("mul", 4, 5)),
    )
    assert target().unit("int8") is not None


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_rounding_to_the_nearest(isa: Target) -> None:
    x = np.array(
        [0.5, 1.5, -0.5, -2.5, 126.5, 127.4, 1e9, -128.5, -129, -1e9, np.nan, np.inf, -np.inf, -0.3], np.float32
    )
    fn = lambda x: jnp.round(x).astype(jnp.int8).astype(jnp.float32) * 1.0
    got, _ = run_on(fn, x, isa=isa)
    np.testing.assert_array_equal(got, np.asarray(jax.jit(fn)(x)))
    assert not np.signbit(got[got == 0]).any()


def test_scales_and_shifts_are_one_of_each() -> None:
    """What is known at bind is folded; the scale that the call brings stays."""

    def fn(weights: Any, x: Any, one: Any) -> Any:
        w, scale, mean, factor, bias, after = weights
        q = jnp.round(x / after).astype(jnp.int8)
        y = ((product(q, w).astype(jnp.float32) * one * scale - mean) * factor) + bias
        return jnp.round(jax.nn.relu(y) / after).astype(jnp.int8)

    row = lambda seed: array(1, 45, seed=seed, low=0.01, high=0.02)
    weights = (whole(67, 45, seed=1), row(1), row(2), row(3), row(4), np.full((1, 1), 0.031, np.float32))
    x, one = array(9, 67, low=-5, high=5), np.full((1, 1), 1.3, np.float32)
    _, graph = stages_of(fn, weights, x, one, weights=1)
    prims = [op.prim for op in graph.program.ops]
    assert prims.count("div") == 0 and prims.count("mul") == 4 and prims.count("add") == 1 and "sub" not in prims
    got = np.asarray(bound(fn, weights)(x, one)).astype(int)
    assert np.max(np.abs(got - np.asarray(jax.jit(fn)(weights, x, one)))) <= 1
    assert len(np.unique(got)) > 5


def test_a_loop_carries_int8() -> None:
    """Each turn wraps around, as the type does."""
    fn = lambda start, xs: lax.scan(lambda c, v: (c + v.astype(jnp.int8), c), start, xs)
    start, xs = jnp.asarray(whole(7)), array(9, 7, low=-100, high=100)
    got, want = xcoexec.jit(fn, strategy="host", strict=True)(start, xs), jax.jit(fn)(start, xs)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == jnp.int8
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("unit", [u for u in MATRIX_UNITS if u != "vector"])
@pytest.mark.parametrize("shape", [(1, 56, 56, 64), (1, 128, 768), (1, 7, 7, 2048), (3, 11, 52), (1, 64, 64, 3)])
def test_a_team_narrows_an_image_together(shape: tuple[int, ...], unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def nest(ctx: Any, kernel: Any, extra: Any, loops: Any, views: Any, outputs: int, chunk: int, work: float) -> None:
        seen.append((math.prod(loops), elementwise.even(math.prod(loops), chunk, ctx.threads)))
        assert chunk * extra[0] * (extra[1] if len(extra) > 1 else 1) <= max(elementwise.ITEM, extra[0])

    monkeypatch.setattr(pairs, "nest", nest)
    context: Any = SimpleNamespace(threads=16, target=Target("avx512", 16, 32, "", ""), makers=Makers(), arrived={})
    pairs.narrow(context, temporary(Value(shape, "float32"), ((0, 0),) * len(shape)), MATRIX_UNITS[unit])
    [(total, chunk)] = seen
    assert -(-total // chunk) >= min(12, math.prod(shape) // elementwise.ITEM)
