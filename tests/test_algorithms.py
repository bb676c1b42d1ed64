"""Every algorithm of the host half on every instruction set that this machine runs, against float64 NumPy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels import conv, expressions, product, winograd, winograd_steps
from xcoexec.codegen.kernels.digits import packed_of
from xcoexec.codegen.program import Group, Op, Value
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import patterns
from xcoexec.codegen.segment.cuts import Cut
from xcoexec.codegen.segment.steps import Kernel
from xcoexec.codegen.target import Target, target
from xcoexec.partition.split import split

from .support import TOLERANCE, array, check_host, error, multiplies, oracle, stages_of, targets
from .test_ops import _conv as grouped

pytestmark = pytest.mark.usefixtures("quick_xla")

TARGETS = targets()


def run_on(
    fn: Callable[..., Any],
    *args: Any,
    isa: Target,
    how: str = "direct",
    weights: int = 0,
    threads: int = 2,
    cut: Cut = split,
) -> tuple[np.ndarray, set[str]]:
    """The first result of `fn` on kernels for `isa` by the algorithm `how`, and the families that ran."""
    folded, graph = stages_of(fn, *args, weights=weights)
    assert not [x.host_error for x in graph.layers if x.host_error]
    leaves = jax.tree_util.tree_leaves(args)
    n = len(jax.tree_util.tree_leaves(args[:weights]))
    consts = folded.constants(leaves[:n])
    segment = host.build(
        graph.program, threads, isa, pick=lambda groups, names, t: how if how in names else names[0], cut=cut
    )
    call = host.Call(segment, [np.asarray(x) for x in leaves[n:]], [consts[v] for v in graph.program.consts])
    return call()[0].copy(), set(segment.algorithms)


def by_strips(ran: set[str]) -> bool:
    """Whether some layers were computed strip by strip."""
    return any("strips" in names.split("+") for names in ran)


def _conv(padding: Any = "SAME", residual: bool = False, precision: Any = None) -> Any:
    def fn(w: Any, b: Any, x: Any) -> Any:
        y = (
            lax.conv_general_dilated(
                x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision
            )
            + b
        )
        return jax.nn.relu(y + x) if residual else jax.nn.relu(y)

    return fn


# -- Winograd ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("how", conv.ALGORITHMS)
@pytest.mark.parametrize(
    ("h", "w", "c", "oc", "n"),
    [(8, 8, 16, 16, 1), (7, 13, 9, 17, 1), (1, 5, 8, 33, 2), (4, 1, 40, 8, 1), (17, 6, 12, 64, 3)],
)
def test_winograd_shapes(isa: Target, how: str, h: int, w: int, c: int, oc: int, n: int) -> None:
    k, b, x = array(3, 3, c, oc, seed=1), array(oc, seed=2), array(n, h, w, c)
    got, ran = run_on(_conv(), k, b, x, isa=isa, how=how, weights=2)
    assert error(got, oracle(_conv(), k, b, x)) < TOLERANCE
    assert any("winograd" in a for a in ran) == how.startswith("winograd")


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("how", ["winograd4", "winograd2"])
@pytest.mark.parametrize("weights", [0, 1])
@pytest.mark.parametrize(
    ("window", "options"),
    [
        (3, {}),
        (2, dict(window_strides=(2, 1, 1))),
        (1, {}),
        (1, dict(window_strides=(2, 1, 1))),
        (3, dict(rhs_dilation=(2, 1, 1))),
        (3, dict(padding=((0, 2), (1, 1), (0, 3)))),
        (3, dict(padding=((-1, 0), (1, 1), (1, 1)))),
        (5, dict(padding="VALID")),
    ],
)
def test_winograd_along_planes(isa: Target, how: str, weights: int, window: int, options: Any) -> None:
    """Of three dimensions the last two are filtered; what the first one reads is added up."""
    k, b, x = array(window, 3, 3, 9, 20, seed=1), array(20, seed=2), array(2, 6, 7, 5, 9)
    settings = {"window_strides": (1, 1, 1), "padding": "SAME", **options}
    dims = ("NDHWC", "DHWIO", "NDHWC")
    fn = lambda k, b, x: jax.nn.relu(lax.conv_general_dilated(x, k, dimension_numbers=dims, **settings) + b)
    got, ran = run_on(fn, k, b, x, isa=isa, how=how, weights=2 * weights)
    assert error(got, oracle(fn, k, b, x)) < TOLERANCE
    assert any("winograd" in a for a in ran)


@pytest.mark.parametrize("how", ["winograd4", "winograd2"])
@pytest.mark.parametrize("padding", ["VALID", ((1, 1), (1, 1)), ((0, 2), (2, 0)), ((3, 3), (3, 3))])
def test_winograd_padding_and_threads(how: str, padding: Any) -> None:
    k, b, x = array(3, 3, 16, 24, seed=1), array(24, seed=2), array(2, 11, 10, 16)
    want = oracle(_conv(padding), k, b, x)
    for threads in (1, 2, 5):
        got, _ = run_on(_conv(padding), k, b, x, isa=target(), how=how, weights=2, threads=threads)
        assert error(got, want) < TOLERANCE


@pytest.mark.parametrize("how", ["winograd4", "winograd2"])
def test_winograd_residual_and_chain(how: str) -> None:
    """A residual epilogue, and an intermediate whose border is read by whole tiles."""
    k, b, x = array(3, 3, 16, 16, seed=1), array(16, seed=2), array(1, 9, 14, 16)

    def fn(k: Any, b: Any, x: Any) -> Any:
        return _conv(residual=True)(k, b, _conv(residual=True)(k, b, x))

    got, _ = run_on(fn, k, b, x, isa=target(), how=how, weights=2)
    assert error(got, oracle(fn, k, b, x)) < TOLERANCE


BF16_UNIT = target().unit("bfloat16")


@pytest.mark.skipif(BF16_UNIT is None, reason="a CPU without instructions for bf16")
@pytest.mark.parametrize("how", conv.ALGORITHMS)
@pytest.mark.parametrize("channels", [16, 33])
def test_winograd_of_bf16(how: str, channels: int) -> None:
    """Pairs of bf16 are faster products, Winograd's are fewer, in f32: between products of bf16, whose words its last
    step writes, it has f32's error. Tiles are faster than both.
    """

    def fn(k: Any, b: Any, w: Any, x: Any) -> Any:
        dot = lambda x, w: lax.dot_general(x, w, (((3,), (0,)), ((), ())), preferred_element_type=jnp.float32)
        x = jax.nn.relu(dot(x.astype(w.dtype), w)).astype(w.dtype)
        nhwc = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=nhwc, preferred_element_type=jnp.float32)
        return dot(jax.nn.relu(y + b).astype(w.dtype), w.T)

    k, w = (a.astype(jnp.bfloat16) for a in (array(3, 3, channels, channels, seed=1), array(24, channels, seed=3)))
    b, x = array(channels, seed=2), array(2, 7, 10, 24).astype(jnp.bfloat16).astype(jnp.float32)
    got, ran = run_on(fn, k, b, w, x, isa=target(), how=how, weights=3)
    rounded = lambda a: np.asarray(jnp.asarray(a, jnp.float32).astype(jnp.bfloat16), np.float64)
    k, w, x = (np.asarray(a, np.float64) for a in (k, w, x))
    first = rounded(np.maximum(x @ w, 0))
    padded = np.pad(first, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    want = rounded(np.maximum(np.einsum("nhwcij,ijco->nhwo", windows, k) + np.asarray(b), 0)) @ w.T
    assert error(got, want) < 2e-3  # what one element that is rounded to the other neighbour adds
    assert any("winograd" in a for a in ran) == (how != "direct" and BF16_UNIT is not None and BF16_UNIT.step == 1)
    assert channels % 2 or sum("narrow" in a for a in ran) <= 1, "words are written by the steps before"


def _adversarial(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Images that make the transforms cancel: alternating signs, one huge pixel, a ramp, a constant with noise."""
    rng = np.random.default_rng(0)
    index = np.indices(shape).sum(0)
    images = {
        "random": rng.standard_normal(shape),
        "alternating": np.where(index % 2, 1.0, -1.0) * (1 + 1e-3 * rng.standard_normal(shape)),
        "spike": np.where(index == 7, 1e4, 1e-3 * rng.standard_normal(shape)),
        "ramp": index * 1.0,
        "offset": 1e3 + rng.standard_normal(shape),
        "tiny": 1e-30 * rng.standard_normal(shape),
    }
    return images[kind].astype(np.float32)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("kind", ["random", "alternating", "spike", "ramp", "offset", "tiny"])
@pytest.mark.parametrize("c", [8, 64, 300])
def test_winograd_error_is_within_its_bound(m: int, kind: str, c: int) -> None:
    x = _adversarial(kind, (1, 12, 12, c))
    w = np.random.default_rng(1).standard_normal((3, 3, c, 16)).astype(np.float32)
    if kind == "alternating":
        w = np.sign(w)
    fn = lambda w, x: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    got, _ = run_on(fn, jnp.asarray(w), jnp.asarray(x), isa=target(), how=f"winograd{m}", weights=1)
    want = oracle(fn, w, x)
    assert np.max(np.abs(got - want)) <= winograd.error_bound(x, w, m)
    if kind == "random":  # and typically it is a small multiple of the direct sum's
        direct, _ = run_on(fn, jnp.asarray(w), jnp.asarray(x), isa=target(), weights=1)
        assert np.max(np.abs(got - want)) < 8 * max(np.max(np.abs(direct - want)), 1e-7)


@pytest.mark.parametrize(
    "precision", ["high", "highest", lax.Precision.HIGHEST, (lax.Precision.DEFAULT, lax.Precision.HIGHEST)]
)
def test_winograd_needs_the_default_precision(precision: Any) -> None:
    k, b, x = array(3, 3, 16, 16, seed=1), array(16, seed=2), array(1, 8, 8, 16)
    got, ran = run_on(_conv(precision=precision), k, b, x, isa=target(), how="winograd4", weights=2)
    assert ran and all("gemm" in families and "winograd" not in families for families in ran)
    assert error(got, oracle(_conv(), k, b, x)) < 1e-6


@pytest.mark.parametrize("m", [2, 4])
def test_winograd_matrices_are_exact(m: int) -> None:
    """A'[(G g) * (B' d)] is the correlation of g with d, in f64."""
    mats = winograd.matrices(m)
    d, g = np.random.default_rng(m).standard_normal((2, m + 2))
    got = mats.at @ ((mats.g @ g[:3]) * (mats.bt @ d))
    assert np.allclose(got, [d[i : i + 3] @ g[:3] for i in range(m)], atol=1e-12)


# -- rows: softmax and norms ---------------------------------------------------------------------------


ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: jax.nn.softmax(x),
    "log_softmax": lambda x: jax.nn.log_softmax(x),
    "layer norm": lambda x: nn.LayerNorm().apply(
        {"params": {"scale": jnp.arange(x.shape[-1]) / 7.0, "bias": jnp.ones(x.shape[-1])}}, x
    ),
    "rms norm": lambda x: nn.RMSNorm().apply({"params": {"scale": jnp.arange(x.shape[-1]) / 7.0}}, x),
    "standardise": lambda x: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-3),
    "share of the largest": lambda x: x / jnp.max(jnp.abs(x), -1, keepdims=True),
}


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", [(3, 2), (1, 17), (2, 5, 64), (5, 129), (1, 2, 3, 700)])
def test_rows(isa: Target, name: str, shape: tuple[int, ...]) -> None:
    x = array(*shape, low=-4.0, high=4.0)
    got, ran = run_on(ROWS[name], x, isa=isa)
    assert error(got, oracle(ROWS[name], x)) < 1e-5
    assert ran == {"rowwise"}


def test_softmax_of_extreme_rows() -> None:
    x = np.zeros((4, 33), np.float32)
    x[0], x[1, 5], x[2, ::2], x[3] = 1e4, 80.0, -np.inf, np.linspace(-100, 100, 33)
    got, _ = run_on(ROWS["softmax"], jnp.asarray(x), isa=target())
    want = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    assert np.allclose(got, want / want.sum(-1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_rows_that_one_number_divides(isa: Target) -> None:
    """Of any size, as `float32` divides; what is below the normal numbers may be 0."""
    random, first = np.random.default_rng(0), np.where(np.arange(37) == 0, -0.0, -np.inf).astype(np.float32)
    x = (random.uniform(1, 2, (600, 37)) * 2.0 ** random.integers(-126, 128, (600, 37))).astype(np.float32)
    x *= random.choice([-1, 1], x.shape).astype(np.float32)
    x[:9, 0] = 0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 2.0**-126, 2.0**127
    got, ran = run_on(lambda x: x / jnp.max(x + first, -1, keepdims=True), x, isa=isa)
    with np.errstate(all="ignore"):
        want = x / x[:, :1]
        wrong = np.abs(got - want) > np.maximum(2.0**-23 * np.abs(want), np.finfo(np.float32).tiny)
    assert ran == {"rowwise"}
    special = ~np.isfinite(want)
    assert np.array_equal(got[special], want[special], equal_nan=True) and not wrong[~special].any()


def test_rows_that_are_read_elsewhere_too() -> None:
    """An intermediate of a row group with a second reader ends the group there."""

    def fn(x: Any) -> Any:
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) + e.mean((0, 1))

    check_host(fn, array(4, 3, 19))


# -- what transformers and decoders need ------------------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("t", "s", "h", "d"), [(1, 7, 1, 4), (5, 5, 3, 16), (17, 33, 2, 24)])
def test_attention(isa: Target, t: int, s: int, h: int, d: int) -> None:
    from xcoexec.models.transformer import attention

    q, k, v = array(2, t, h, d), array(2, s, h, d, seed=1), array(2, s, h, d, seed=2)
    got, _ = run_on(attention, q, k, v, isa=isa)
    assert error(got, oracle(attention, q, k, v)) < TOLERANCE


@pytest.mark.parametrize(
    "spec",
    [
        "ij,jk->ik",
        "ij,kj->ik",
        "ij,jk->ki",
        "bij,bjk->bki",
        "bij,bkj->bik",
        "nthd,nshd->nhts",
        "nhts,nshd->nthd",
        "ngrts,nsgd->ntgrd",
    ],
)
@pytest.mark.parametrize("constant", [0, 1])
def test_products_in_any_order(spec: str, constant: int) -> None:
    sizes = dict(zip("abcdeghijknrst", (2, 2, 3, 6, 3, 2, 3, 5, 19, 34, 2, 2, 18, 7), strict=True))
    a, b = (array(*(sizes[c] for c in part), seed=i) for i, part in enumerate(spec.split("->")[0].split(",")))
    check_host(lambda b, a: jnp.einsum(spec, a, b), b, a, weights=constant)


@pytest.mark.parametrize("at", [-5, 0, 2, 3, 100])
def test_dynamic_slices(at: int) -> None:
    x, new, i = array(2, 6, 5, 8), array(2, 3, 5, 8, seed=1), jnp.int32(at)
    check_host(lambda x, i: lax.dynamic_slice_in_dim(x, i, 3, 1) * 2, x, i)
    check_host(lambda x, i: lax.dynamic_slice(x, (0, i, 1, 0), (2, 3, 2, 8)), x, i)
    check_host(lambda x, new, i: lax.dynamic_update_slice(x, new, (0, i, 0, 0)) + 1, x, new, i)


def test_integers_and_truth_values() -> None:
    i = jnp.arange(-7, 12, dtype=jnp.int32).reshape(1, 19)
    x = array(3, 19)
    check_host(lambda x, i: jnp.where((i * 2 + 1 > 3) & (i != 4), x, -x), x, i)
    check_host(lambda i: (jnp.clip(i, -2, 5) - i).astype(jnp.float32), i)
    check_host(lambda x: (x > 0).astype(jnp.float32) + x.astype(jnp.int32), x * 9)
    got, _ = run_on(lambda i: jnp.maximum(i, 3) * i, i, isa=target())
    assert got.dtype == np.int32 and (got == np.maximum(i, 3) * np.asarray(i)).all()


def test_truth_values_and_half_precision_cross_the_edge_of_a_segment() -> None:
    import xcoexec

    def fn(x: Any, h: Any) -> Any:
        return x > 0, (h * 2 + 1).astype(jnp.bfloat16), jnp.sum(h.astype(jnp.float32))

    x, h = array(4, 5), array(3, 7, seed=1).astype(jnp.bfloat16)
    fast = xcoexec.jit(fn, strategy="host", strict=True)
    got, want = fast(x, h), fn(x, h)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and np.allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=1e-2)


def test_split_stack_unstack() -> None:
    x = array(3, 4, 10)
    check_host(lambda x: jnp.concatenate([b * (k + 1) for k, b in enumerate(jnp.split(x, (3, 7), -1))], -1), x)
    check_host(lambda x: jnp.stack([x * 2, x + 1], 1), x)
    check_host(lambda x: sum(row * (k + 1) for k, row in enumerate(x)), x)


def test_embedding() -> None:
    table, ids = array(50, 24), jnp.asarray([[1, 49, 0], [7, 7, 3]], jnp.int32)
    check_host(lambda table, ids: nn.Embed(50, 24).apply({"params": {"embedding": table}}, ids), table, ids, weights=1)


def test_upsampling_and_reflection() -> None:
    from xcoexec.models.layers import upsample

    x = array(2, 5, 4, 9)
    check_host(lambda x: upsample(x, 2) + 1, x)
    check_host(lambda x: jnp.pad(x, ((0, 0), (2, 2), (1, 1), (0, 0)), mode="reflect"), x)


@pytest.mark.parametrize("at", [-3, 0, 3, 9])
def test_reference_agrees_with_jax_on_dynamic_slices(at: int) -> None:
    x, new, i = array(4, 6), array(2, 6, seed=1), jnp.int32(at)
    for fn in (
        lambda x, new, i: lax.dynamic_slice_in_dim(x, i, 2, 0),
        lambda x, new, i: lax.dynamic_update_slice(x, new, (i, 0)),
    ):
        assert np.allclose(oracle(fn, x, new, i), fn(x, new, i))


# -- groups of channels of which a vector holds several ---------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("group", [2, 4, 8])
@pytest.mark.parametrize("groups", [5, 8])
@pytest.mark.parametrize(
    ("options", "width"), [({}, 29), (dict(stride=2), 12), (dict(dilation=2), 7), (dict(padding="VALID"), 3)]
)
@pytest.mark.parametrize("weights", [0, 1])
def test_small_groups(isa: Target, group: int, groups: int, options: Any, width: int, weights: int) -> None:
    """Blocks of pixels and what is left of a row, masked vectors, weights packed at bind and read where they lie."""
    c = group * groups
    k, x, b = array(3, 3, group, c, seed=1), array(2, 5, width, c), array(c, seed=2)
    fn = lambda k, x, b: jax.nn.relu(grouped(x, k, groups=groups, **options) + b)
    got, ran = run_on(fn, k, x, b, isa=isa, weights=weights)
    assert error(got, oracle(fn, k, x, b)) < TOLERANCE
    assert any("depthwise" in a for a in ran) == (group < isa.vl)


@pytest.mark.parametrize("spec", [("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NHWC"), ("NHWC", "IHWO", "NCHW")])
@pytest.mark.parametrize("weights", [0, 1])
def test_layouts_of_small_groups(spec: tuple[str, str, str], weights: int) -> None:
    shapes = [dict(N=2, H=6, W=9, C=20), dict(H=3, W=2, I=2, O=20)]
    x, k = (array(*(sizes[d] for d in dims), seed=i) for i, (dims, sizes) in enumerate(zip(spec, shapes, strict=False)))
    fn = lambda k, x: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=spec, feature_group_count=10)
    got, ran = run_on(fn, k, x, isa=target(), weights=weights)
    assert error(got, oracle(fn, k, x)) < TOLERANCE
    assert any("depthwise" in a for a in ran)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    ("window", "options"),
    [
        ((101,), {}),
        ((61,), dict(stride=2)),
        ((9, 9), {}),
        ((8, 7), dict(dilation=2)),
        ((1, 53), {}),
        ((25, 3), dict(stride=3)),
        ((13, 13), dict(padding="VALID")),
        ((3, 3, 3), {}),
        ((3, 1, 2), dict(stride=2)),
        ((2, 3, 3), dict(dilation=2)),
        ((3, 5, 7), dict(padding="VALID")),
    ],
)
@pytest.mark.parametrize("weights", [0, 1])
def test_windows_of_any_size(isa: Target, group: int, window: tuple[int, ...], options: Any, weights: int) -> None:
    """Windows of more taps than a kernel keeps in registers, and of three dimensions: of channels on their own and of
    small groups, whole vectors and masked ones.
    """
    c = group * 20
    sizes = {1: (130,), 2: (31, 67), 3: (6, 9, 14)}[len(window)]
    k, x, b = array(*window, group, c, seed=1), array(2, *sizes, c), array(c, seed=2)
    fn = lambda k, x, b: jax.nn.relu(grouped(x, k, groups=c // group, **options) + b)
    got, ran = run_on(fn, k, x, b, isa=isa, weights=weights)
    assert error(got, oracle(fn, k, x, b)) < TOLERANCE
    assert any("depthwise" in a for a in ran) == (group < isa.vl)
    assert not any("gemm" in a for a in ran) or group >= isa.vl


@pytest.mark.parametrize("window", [(9, 9), (3, 3, 3)])
def test_windows_of_any_size_in_bf16(window: tuple[int, ...]) -> None:
    """An image that is more than the caches keep is read as bf16."""
    isa, sizes = dataclasses.replace(target(), kept=1 << 12), {2: (31, 67), 3: (6, 9, 14)}[len(window)]
    k, x = array(*window, 1, 36, seed=1).astype("bfloat16"), array(2, *sizes, 36)
    fn = lambda k, x: jax.nn.relu(grouped(jax.nn.relu(x.astype("bfloat16")), k, groups=36)).astype(jnp.float32)
    got, ran = run_on(fn, k, x, isa=isa, weights=1)
    assert error(got, np.asarray(fn(k, x))) < 1e-2
    assert any("depthwise" in a for a in ran)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("by", ["weights", "image"])
def test_a_gradient_of_small_groups(stride: int, by: str) -> None:
    k, x = array(3, 3, 4, 24, seed=1), array(2, 8, 10, 24)
    loss = lambda k, x: (jnp.sin(grouped(x, k, groups=6, stride=stride)) ** 2).sum()
    check_host(jax.grad(loss, ["weights", "image"].index(by)), k, x)


# -- strips: neighbouring layers on one core ------------------------------------------------------------------


def _depthwise_block(expand: bool, stride: int, kernel: int = 3, residual: bool = False, padding: Any = "SAME") -> Any:
    def fn(ws: Any, x: Any) -> Any:
        conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        first, middle, last, b = ws
        h = jnp.clip(conv(x, first, (1, 1), "SAME") + b, 0, 6) if expand else x
        h = jnp.clip(conv(h, middle, (stride, stride), padding, feature_group_count=h.shape[-1]) + b, 0, 6)
        y = conv(h, last, (1, 1), "SAME")
        return x + y if residual else y

    return fn


def _block_weights(c: int, wide: int, out: int, kernel: int) -> Any:
    return (
        array(1, 1, c, wide, seed=1),
        array(kernel, kernel, 1, wide, seed=2),
        array(1, 1, wide, out, seed=3),
        array(wide, seed=4),
    )


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("stride", "residual", "kernel", "padding"),
    [(1, True, 3, "SAME"), (2, False, 3, ((1, 1), (1, 1))), (1, False, 5, "VALID"), (2, False, 5, "SAME")],
)
@pytest.mark.parametrize(("n", "h", "w"), [(1, 14, 9), (2, 7, 7), (1, 33, 5)])
def test_inverted_bottleneck_by_strips(
    isa: Target, stride: int, residual: bool, kernel: int, padding: Any, n: int, h: int, w: int
) -> None:
    ws, x = _block_weights(8, 24, 8 if residual else 13, kernel), array(n, h, w, 8)
    fn = _depthwise_block(True, stride, kernel, residual, padding)
    got, ran = run_on(fn, ws, x, isa=isa, how="strips", weights=1)
    assert by_strips(ran)
    assert error(got, oracle(fn, ws, x)) < TOLERANCE
    apart, ran = run_on(fn, ws, x, isa=isa, weights=1)
    assert not by_strips(ran) and np.allclose(got, apart, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("h", [2, 5, 40])
def test_separable_and_chain_by_strips(threads: int, h: int) -> None:
    """Two blocks behind each other: the second reads what strips of the first have written."""
    ws, x = _block_weights(24, 24, 24, 3), array(1, h, 11, 24)
    block = _depthwise_block(False, 1)
    fn = lambda ws, x: block(ws, jax.nn.relu(block(ws, x)))
    got, ran = run_on(fn, ws, x, isa=target(), how="strips", weights=1, threads=threads)
    assert by_strips(ran) and error(got, oracle(fn, ws, x)) < TOLERANCE


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("group", "stride"), [(1, 1), (1, 2), (4, 1), (3, 2)])
@pytest.mark.parametrize(("n", "h", "w"), [(1, 14, 9), (2, 7, 7), (1, 33, 5)])
def test_expansion_by_strips(isa: Target, group: int, stride: int, n: int, h: int, w: int) -> None:
    """A 1x1 convolution and the depthwise or grouped one behind it, whose result has two readers."""
    conv = functools.partial(lax.conv_general_dilated, padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def fn(ws: Any, x: Any) -> Any:
        y = jax.nn.swish(
            conv(jax.nn.swish(conv(x, ws[0], (1, 1))), ws[1], (stride,) * 2, feature_group_count=24 // group)
        )
        return y * jax.nn.sigmoid(jnp.mean(y, axis=(1, 2), keepdims=True) @ ws[2])

    ws, x = (array(1, 1, 10, 24, seed=1), array(3, 3, group, 24, seed=2), array(24, 24, seed=3)), array(n, h, w, 10)
    got, ran = run_on(fn, ws, x, isa=isa, how="strips", weights=1)
    assert by_strips(ran) and error(got, oracle(fn, ws, x)) < TOLERANCE


@pytest.mark.parametrize(("n", "t", "h", "d"), [(1, 19, 3, 16), (2, 7, 2, 8), (1, 2, 4, 4), (7, 5, 3, 8)])
def test_attention_by_strips(n: int, t: int, h: int, d: int) -> None:
    from xcoexec.models.transformer import attention

    q, k, v = (array(n, t, h, d, seed=i) for i in range(3))
    got, ran = run_on(attention, q, k, v, isa=target(), how="strips")
    assert by_strips(ran) and error(got, oracle(attention, q, k, v)) < TOLERANCE


@pytest.mark.parametrize(
    ("n", "t", "s", "h", "threads", "strips"),
    [(1, 70, 70, 1, 2, 2), (2, 99, 33, 3, 9, 18), (1, 197, 197, 6, 16, 30), (1, 131, 40, 2, 5, 4), (1, 63, 9, 1, 4, 0)],
)
@pytest.mark.parametrize("axes", ["nthd", "nhtd"])
def test_heads_are_cut_where_threads_outnumber_them(
    axes: str, n: int, t: int, s: int, h: int, threads: int, strips: int
) -> None:
    """A mask differs by row; blocks of rows have a shorter last one; half a block is not made."""
    keys = axes.replace("t", "s")

    def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = jax.nn.softmax(jnp.einsum(f"{axes},{keys}->nhts", q, k) + mask)
        return jnp.einsum(f"nhts,{keys}->{axes}", scores, v)

    sizes = dict(n=n, t=t, s=s, h=h, d=16)
    shaped = lambda names, seed: array(*(sizes[a] for a in names), seed=seed)
    values = tuple(shaped(names, seed) for seed, names in enumerate((axes, keys, keys, "ts")))
    program = stages_of(attention, *values)[1].program
    segment = host.build(program, threads, pick=lambda groups, names, t: names[-1], cut=split)
    assert [step.items for step in segment.steps if "strips" in step.families] == [strips] * bool(strips)
    got = host.Call(segment, [np.asarray(x) for x in values], [])()[0]
    assert error(got, oracle(attention, *values)) < TOLERANCE


@pytest.mark.parametrize("turned", [False, True])
def test_strips_of_many_images_are_cut_three_times(turned: bool) -> None:
    """The first two and the last one; all of them where they do not lie evenly. Those of one form share one table."""
    ws, shape, seen = _block_weights(8, 24, 8, 3), (9, 12, 7, 8), list[tuple[int, int]]()
    order = [0, 1, 8, 3, 4, 5, 6, 7, 2] if turned else list(range(9))
    fn, x = _depthwise_block(True, 1, 3, True), array(*shape)

    def cut(ops: Any, axis: int, start: int, stop: int) -> Any:
        seen.append((axis, start))
        return split(ops, axis, order[start], order[start] + 1) if axis == 0 else split(ops, axis, start, stop)

    got, ran = run_on(fn, ws, x, isa=target(), how="strips", weights=1, cut=cut)
    assert by_strips(ran) and error(got, oracle(fn, ws, x)[np.array(order)]) < TOLERANCE
    rows = len({start for axis, start in seen if axis == 1}) or 1
    images = [start for axis, start in seen if axis == 0]
    assert len(images) == rows * (3 + 9 if turned else 3)


def test_no_strips_behind_what_reads_nothing() -> None:
    numbers, out = Value((8,), "float32"), Value((8,), "float32")
    groups = Group.of(Op("iota", (), (numbers,), {})), Group.of(Op("neg", (numbers,), (out,), {}))
    assert not patterns.fusible(groups, target())


def test_strips_are_not_made_where_a_value_between_them_is_needed() -> None:
    ws, x = _block_weights(8, 24, 8, 3), array(1, 9, 9, 8)

    def fn(ws: Any, x: Any) -> Any:
        h = lax.conv_general_dilated(x, ws[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = lax.conv_general_dilated(
            h, ws[1], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=24
        )
        return lax.conv_general_dilated(y, ws[2], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), y, h

    got, ran = run_on(fn, ws, x, isa=target(), how="strips", weights=1)
    assert not by_strips(ran) and error(got, oracle(fn, ws, x)) < TOLERANCE


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("groups", [1, 40])
@pytest.mark.parametrize("turned", [False, True])
def test_a_norm_of_sums(isa: Target, groups: int, turned: bool) -> None:
    """(sum - mean) * scale + bias of the channels is one operation for each sum, and not where they change by pixel;
    numbers that are none stay none, and infinite ones infinite.
    """
    w, x = array(3, 3, 40 // groups, 40), np.array(array(1, 6, 7, 40))
    x[0, 2, 3, 5], x[0, 5, 6, 7] = np.nan, np.inf
    mean, scale, bias = 10 * array(40, seed=1), array(40, seed=2), array(40, seed=3)
    pixels = array(1, 6, 7, 40, seed=4)

    def fn(ws: Any, x: Any) -> Any:
        w, mean, scale, bias = ws[:4]
        y = _convolved(x, w, groups)
        normed = bias + scale * (y - mean) if turned else (y - mean) * scale + bias
        return normed, (y - ws[4]) * scale + bias, normed + jax.nn.relu(normed)

    for k in range(3):
        got, _ = run_on(lambda ws, x, k=k: fn(ws, x)[k], [w, mean, scale, bias, pixels], x, isa=isa, weights=1)
        with np.errstate(all="ignore"):
            want = np.asarray(fn([w, mean, scale, bias, pixels], x)[k])
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want))
        there = np.isfinite(want)
        assert there.sum() > 1000 and error(got[there], want[there]) < TOLERANCE


def _convolved(x: Any, w: Any, groups: int) -> Any:
    axes = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=axes, feature_group_count=groups)


def test_what_is_a_norm() -> None:
    """Of what is said of operands alone: three that all sums have in common, behind operand 0 itself."""
    expr = (("in", 0), ("in", 1), ("sub", 0, 1), ("in", 2), ("mul", 3, 2), ("in", 3), ("add", 5, 4), ("in", 4))
    expr = (*expr, ("add", 6, 7))
    assert expressions._normed(expr, frozenset((1, 2, 3))) == {6: (0, 1, 3, 5)}
    assert not expressions._normed(expr, frozenset((1, 2)))
    other = (("in", 4), *expr[1:])
    assert not expressions._normed(other, frozenset((1, 2, 3, 4)))


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("expand", [True, False])
def test_strips_of_bf16(isa: Target, dtype: str, expand: bool) -> None:
    """Images that steps make as bf16, as the next ones multiply them, are not f32 for strips alone."""
    ws, x = _block_weights(8 if expand else 24, 24, 8, 3), array(1, 9, 9, 8 if expand else 24)
    rounded = tuple(w.astype(dtype) for w in ws)
    fn = lambda ws, x: _depthwise_block(expand, 1)(ws, x.astype(dtype)).astype(jnp.float32)
    got, ran = run_on(fn, rounded, x, isa=isa, how="strips", weights=1)
    unit = isa.unit(dtype) if dtype == "bfloat16" else None
    assert by_strips(ran) == (unit is None or unit.step > 1)
    assert error(got, np.asarray(fn(rounded, x))) < (TOLERANCE if dtype == "float32" else 2e-2)


# -- large matrices that few rows are multiplied with ----


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("resident, steady", [(0, False), (1 << 30, False), (0, True)])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("k", "n"), [(700, 513), (1024, 260), (263, 1040)])
def test_matrices_from_memory_and_from_the_last_cache(
    isa: Target, resident: int, steady: bool, rows: int, k: int, n: int
) -> None:
    """All ways of reading give the same results, of columns and of rows."""
    isa, w, x = dataclasses.replace(isa, resident=resident, steady=steady), array(k, n), array(rows, k, seed=1)
    how = "steady" if steady else "cached" if resident else "far" if isa.vl == 16 else "near"
    for fn, ws in (
        (lambda w, x: jax.nn.relu(x @ w), w),
        (lambda w, x: jax.nn.relu(x @ w.T), np.ascontiguousarray(w.T)),
    ):
        _, graph = stages_of(fn, ws, x, weights=1)
        steps = host.build(graph.program, 2, isa, cut=split).steps
        found = [
            word.spec[-1] for s in steps for word in s.words if isinstance(word, Kernel) and "gemv" in word.spec[0]
        ]
        assert found == [how]
        got, ran = run_on(fn, ws, x, isa=isa, weights=1)
        assert "gemv" in " ".join(ran) and error(got, oracle(fn, ws, x)) < TOLERANCE


# -- weights that the model keeps in fewer bits ------------------------------------------------------------------


def _bound(fn: Callable[..., Any], *weights: Any) -> Any:
    import xcoexec

    return xcoexec.jit(fn, strategy="host", strict=True, threads=2).bind(*weights)


@pytest.mark.parametrize("stored", ["bfloat16", "float16", "int8"])
@pytest.mark.parametrize(("k", "n"), [(700, 513), (1024, 1040), (601, 1000)])
def test_a_row_reads_weights_as_they_are_stored(stored: str, k: int, n: int) -> None:
    """Weight-only quantisation: no f32 copy is packed. The argument is the user's own array, but for int8 where rows
    are multiplied as whole numbers: then a byte a weight is packed, in panels of channels.
    """
    w = (array(k, n, low=-127, high=127) if stored == "int8" else array(k, n)).astype(stored)
    scale, x = array(n, seed=1, low=0.01, high=0.02), array(1, k, seed=2)

    def fn(w: Any, scale: Any, x: Any) -> Any:
        return jax.nn.relu((x @ w.astype(jnp.float32)) * scale)

    fast = _bound(fn, w, scale)
    want = np.maximum(np.asarray(x, np.float64) @ np.asarray(w, np.float64) * np.asarray(scale, np.float64), 0)
    assert error(fast(x), want) < 1e-5
    whole = stored == "int8" and packed_of(target(), stored) is not None and k % 4 == 0
    assert fast.report().layers[-1].algorithm == ("digits+digit_gemv+parts" if whole else "gemv+parts")
    (unit,) = fast.session().current.lowered.segments
    assert [v.dtype for v in unit.segment.raw] == ([] if whole else [stored])
    assert unit.segment.blob_bytes <= (k * -(-n // 64) * 64 + 4 * n + 256 if whole else k * n - 1)


@pytest.mark.parametrize(("m", "k", "n"), [(2, 1, 17), (3, 2, 5), (7, 301, 65), (33, 64, 130), (16, 515, 16)])
def test_bf16_products(m: int, k: int, n: int) -> None:
    w, x = array(k, n, seed=1).astype(jnp.bfloat16), array(m, k).astype(jnp.bfloat16)
    fn = lambda w, x: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    fast = _bound(fn, w)
    assert error(fast(x), np.asarray(x, np.float64) @ np.asarray(w, np.float64)) < 1e-5
    unit = target().unit("bfloat16")
    product = "gemm" if unit is None else "tiles" if unit.kernel == "tiles" else "gemm(bfloat16)"
    passes = {"elementwise", "elementwise_rows", "narrow"}  # of the input as it is stored, which may write words too
    assert set(fast.report().layers[-1].algorithm.split("+")) - passes == {product}


def test_bf16_rounds_to_nearest_and_keeps_nan() -> None:
    x = jnp.asarray([[1.00390625, 1.01171875, np.nan, np.inf, -3.0e38, 1e-40]], jnp.float32)
    fn = lambda w, x: (x * 1.0).astype(jnp.bfloat16) @ w
    eye = jnp.eye(6, dtype=jnp.bfloat16)
    got = np.asarray(_bound(fn, eye)(jnp.where(jnp.isfinite(x), x, 0).repeat(2, 0)), np.float32)
    want = np.asarray(jnp.where(jnp.isfinite(x), x, 0).astype(jnp.bfloat16), np.float32)
    assert np.allclose(got[0], want[0], rtol=0, atol=1e-37)
    assert np.isnan(np.asarray(_bound(fn, eye)(x.repeat(2, 0)), np.float32)).any()


# -- transposed convolutions: phase by phase -----------------------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (4, 2), (5, 3), (16, 8), (3, 3), (7, 2)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 0), (2, 3))])
def test_transposed_convolutions(isa: Target, kernel: int, stride: int, padding: Any) -> None:
    w, b, x = array(kernel, kernel, 5, 19, seed=1), array(19, seed=2), array(2, 6, 3, 5)

    def fn(w: Any, b: Any, x: Any) -> Any:
        return jax.nn.relu(lax.conv_transpose(x, w, (stride, stride), padding) + b)

    got, ran = run_on(fn, w, b, x, isa=isa, weights=2)
    assert error(got, oracle(fn, w, b, x)) < TOLERANCE and ran <= {"gemm", "elementwise+gemm", "elementwise_rows+gemm"}


@pytest.mark.parametrize("rank", [1, 3])
def test_transposed_convolutions_in_other_dimensions(rank: int) -> None:
    dims = {1: ("NHC", "HIO", "NHC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[rank]
    w, x = array(*(4,) * rank, 3, 7, seed=1), array(1, *(5, 4, 3)[:rank], 3)
    check_host(lambda w, x: lax.conv_transpose(x, w, (2,) * rank, "SAME", dimension_numbers=dims) * 2, w, x, weights=1)


@pytest.mark.skipif(not any(t.unit("bfloat16") for t in TARGETS), reason="no instructions for bf16")
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize(("kernel", "stride", "channels", "by_unit"), [
    (2, 2, 16, True), (3, 2, 24, True), (4, 2, 34, True), (5, 3, 12, True), (2, 3, 16, None), (4, 2, 3, False),
])  # fmt: skip
def test_phases_of_narrow_types(dtype: str, kernel: int, stride: int, channels: int, by_unit: bool | None) -> None:
    """A unit multiplies the phases; one that reads nothing (`by_unit` None) is not one of whole numbers'."""
    isa = next(t for t in TARGETS if t.unit("bfloat16"))
    numbers = lambda x: (x * (100 if dtype == "int8" else 1)).astype(dtype)
    w, x = array(kernel, kernel, channels, 19, seed=1), array(2, 6, 5, channels)
    wide = {"preferred_element_type": jnp.int32} if dtype == "int8" else {}

    def fn(w: Any, x: Any) -> Any:
        y = lax.conv_transpose(numbers(x), numbers(w), (stride, stride), "SAME", **wide)
        return jax.nn.relu(y.astype(jnp.float32) + 1)

    got, ran = run_on(fn, w, x, isa=isa, weights=1)
    if dtype == "int8":
        np.testing.assert_array_equal(got, jax.jit(fn)(w, x))
    else:
        assert error(got, oracle(fn, w, x)) < 0.02
    units = {name for names in ran for name in names.split("+") if name == "tiles" or name.startswith("gemm(")}
    if isa.unit(dtype).kernel == "gemm":  # tiles are for more channels
        assert bool(units) == (dtype != "int8" if by_unit is None else by_unit), ran


def test_a_transposed_convolution_with_a_skip() -> None:
    """FCN's step: the skip is an epilogue operand of every phase."""
    w, x, skip = array(4, 4, 9, 9, seed=1), array(1, 5, 6, 9), array(1, 10, 12, 9, seed=2)
    check_host(lambda w, x, skip: lax.conv_transpose(x, w, (2, 2), "SAME") + skip, w, x, skip, weights=1)


# -- block shapes, channels and addresses ---------------------------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_every_block_shape(isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution and a product with every (rows, vectors) that fits the registers, with remainders of both."""
    from xcoexec.codegen.kernels import block_shapes, dot

    w, x = array(3, 3, 3, 2 * isa.vl + 1, seed=1), array(1, 5, 7, 3)
    v, y = array(33, 3 * isa.vl - 1, seed=2), array(19, 33, seed=3)
    conv_fn = lambda w, x: jax.nn.relu(
        lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )
    dot_fn = lambda v, y: jnp.tanh(y @ v)
    wants = oracle(conv_fn, w, x), oracle(dot_fn, v, y)
    for shape in block_shapes.measured_shapes(isa):
        for module in (conv, dot):
            monkeypatch.setattr(module, "block_shape", lambda *_, shape=shape, **more: shape)
        assert error(run_on(conv_fn, w, x, isa=isa, weights=1)[0], wants[0]) < TOLERANCE, shape
        assert error(run_on(dot_fn, v, y, isa=isa, weights=1)[0], wants[1]) < TOLERANCE, shape


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("c", "oc"), [(1, 1), (2, 3), (1, 1025), (2051, 1), (1537, 17), (3, 64)])
def test_huge_and_tiny_channels(isa: Target, c: int, oc: int) -> None:
    w, b, x = array(3, 3, c, oc, seed=1), array(oc, seed=2), array(1, 4, 3, c)
    got, _ = run_on(_conv(), w, b, x, isa=isa, weights=2)
    assert error(got, oracle(_conv(), w, b, x)) < TOLERANCE


@pytest.mark.parametrize("how", conv.ALGORITHMS)
@pytest.mark.parametrize("shift", [4, 12, 36])
def test_misaligned_inputs(how: str, shift: int) -> None:
    """Arrays that begin at any multiple of four bytes."""
    w, b, x = array(3, 3, 16, 24, seed=1), array(24, seed=2), array(1, 9, 10, 16)
    folded, graph = stages_of(_conv(), w, b, x, weights=2)
    consts = folded.constants([w, b])
    segment = host.build(graph.program, 2, pick=lambda groups, names, t: how)
    moved = np.zeros(x.size + 32, np.float32)
    start = (-moved.ctypes.data % 64 + shift) // 4
    moved[start : start + x.size] = np.asarray(x).ravel()
    args = [moved[start : start + x.size].reshape(x.shape), segment.pack({v: consts[v] for v in graph.program.consts})]
    assert args[0].ctypes.data % 64 == shift
    got = host.Call.on(segment, args)()[0]
    assert error(got, oracle(_conv(), w, b, x)) < TOLERANCE


@pytest.mark.parametrize("n", [1, 403, 404, 405, 4096, 5000])
@pytest.mark.parametrize("m", [16, 36])
def test_products_of_one_thread_are_products(m: int, n: int) -> None:
    """Also where the columns are no multiple of what one product takes, and fewer than that."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((m, 9)).astype(np.float32), rng.standard_normal((9, n)).astype(np.float32)
    got = winograd_steps.one_thread(a, b)
    assert got.dtype == np.float32 and got.flags["C_CONTIGUOUS"]
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("channels", "vl", "nv"), [(1, 8, 2), (8, 8, 2), (37, 8, 3), (64, 16, 3), (100, 16, 4)])
def test_panels_hold_every_weight_and_zeros_behind(channels: int, vl: int, nv: int) -> None:
    w = np.random.default_rng(channels).standard_normal((3, 5, channels)).astype(np.float32)
    packed, at = product.pack_panels(w, vl, nv), 0
    for first, vectors, _ in product.channel_blocks(channels, vl, nv):
        width = vectors * vl
        panel = packed[:, at : at + 5 * width].reshape(3, 5, width)
        piece = w[:, :, first : first + width]
        np.testing.assert_array_equal(panel[:, :, : piece.shape[2]], piece)
        assert not panel[:, :, piece.shape[2] :].any()
        at += 5 * width
    assert at == packed.shape[1]


@pytest.mark.parametrize(
    ("image", "kernel", "options"),
    [
        ((1, 9, 11, 3), (7, 7, 3, 17), {"window_strides": (2, 2), "padding": "SAME"}),
        ((2, 8, 7, 33), (1, 1, 33, 20), {"window_strides": (1, 1), "padding": "VALID"}),
        ((1, 14, 14, 64), (1, 1, 64, 40), {"window_strides": (2, 2), "padding": "VALID"}),
        ((2, 7, 9, 16), (3, 2, 16, 21), {"window_strides": (1, 2), "padding": [(2, 0), (1, 3)]}),
        ((1, 7, 9, 16), (3, 2, 16, 21), {"window_strides": (1, 1), "padding": "SAME", "rhs_dilation": (2, 1)}),
        ((1, 6, 6, 24), (3, 3, 6, 20), {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 4}),
        ((1, 6, 6, 20), (3, 3, 5, 12), {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 4}),
        ((1, 5, 5, 5), (3, 3, 5, 12), {"window_strides": (1, 1), "padding": [(1, 2)] * 2, "lhs_dilation": (2, 2)}),
        ((3, 12, 5), (4, 5, 6), {"window_strides": (1,), "padding": [(3, 0)]}),
    ],
)
def test_bf16_convolutions(image: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any]) -> None:
    """Products in pairs, also with an odd number of channels; groups of an odd number are computed in f32."""
    x, w = array(*image).astype(jnp.bfloat16), array(*kernel, seed=1).astype(jnp.bfloat16)
    axes = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}[len(image) - 2]
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=axes, **options)
    fn = lambda w, x: jax.nn.relu(conv(x, w, preferred_element_type=jnp.float32)) + 1
    fast = _bound(fn, w)
    want = oracle(lambda w, x: jax.nn.relu(conv(x, w)) + 1, w.astype(jnp.float32), x.astype(jnp.float32))
    assert error(fast(x), want) < 1e-5
    odd = options.get("feature_group_count", 1) > 1 and kernel[-2] % 2
    unit = target().unit("bfloat16")
    alike = options.get("feature_group_count", 1) == 1 and options.get("rhs_dilation", (1,))[-1] == 1
    words = -(-kernel[-2] // 2) * (kernel[-3] if alike and kernel[-2] < 16 else 1)  # of a run
    few = unit is not None and 2 * words < unit.step  # most of a tile's words were filling
    phases = "lhs_dilation" in options and unit is not None and kernel[-2] < unit.step  # of runs that are filled up
    paired = unit is not None and not odd and not few and not phases
    assert multiplies("bfloat16", fast.report().layers[-1].algorithm) == paired
