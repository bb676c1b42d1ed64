"""Every kernel family against float64 NumPy: op table x shapes, odd sizes and remainders; other types stay on the
device half.
"""

from __future__ import annotations

import random
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec

from .support import array, check_host, co, error, oracle, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

UNARY = {
    "neg": jnp.negative,
    "abs": jnp.abs,
    "exp": jnp.exp,
    "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid,
    "erf": lax.erf,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "sign": jnp.sign,
    "square": jnp.square,
    "cube": lambda x: x**3,
    "inverse": lambda x: x**-2,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "swish": jax.nn.swish,
    "hard_swish": jax.nn.hard_swish,
    "gelu": jax.nn.gelu,
    "gelu_exact": lambda x: jax.nn.gelu(x, approximate=False),
    "elu": jax.nn.elu,
    "softplus": jax.nn.softplus,
    "expm1": jnp.expm1,
    "clip": lambda x: jnp.clip(x, -0.5, 0.25),
    "leaky": jax.nn.leaky_relu,
    "softplus_tail": lambda x: x * 2 + 1,
}
POSITIVE = {"log1p": jnp.log1p, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt}
BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": jnp.divide,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "where": lambda a, b: jnp.where(a > b, a, b),
    "between": lambda a, b: jnp.where((a > b) & ~(a == b), a, 2 * b),
}
SHAPES = [(1,), (7,), (3, 5), (2, 17, 33), (1, 5, 6, 19), (4097,), (2, 1, 3, 1, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, shape: tuple[int, ...]) -> None:
    check_host(UNARY[name], array(*shape, low=-6, high=6), tolerance=2e-6 if name != "inverse" else 1e-5)


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_positive(name: str, shape: tuple[int, ...]) -> None:
    check_host(POSITIVE[name], array(*shape, low=1e-6, high=50), tolerance=1e-6)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "shapes", [((3, 5), (3, 5)), ((2, 3, 17), (17,)), ((4, 1, 7), (1, 5, 7)), ((6, 9), (6, 1)), ((2, 3), ())], ids=str
)
def test_binary(name: str, shapes: Any) -> None:
    check_host(BINARY[name], array(*shapes[0]), array(*shapes[1], seed=1, low=0.5, high=2), tolerance=1e-6)


@pytest.mark.parametrize("isa", ["avx2", "portable"])
def test_elementary_functions_on_other_vector_lengths(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from xcoexec.codegen.runtime import host
    from xcoexec.codegen.target import target

    try:
        other = target(isa)
    except ValueError:
        pytest.skip(f"this CPU does not run {isa}")
    monkeypatch.setattr(host, "host_target", lambda: other)
    x = array(3, 37, low=-5, high=5)
    check_host(lambda x: jnp.tanh(x) + jax.nn.sigmoid(x) * lax.erf(x), x, tolerance=2e-6)
    w = array(3, 3, 5, 21, seed=1)
    check_host(lambda w, x: jax.nn.relu(_conv(x, w)), w, array(2, 9, 7, 5), weights=1)
    check_host(lambda w, x: _conv(x, w, groups=10), array(3, 3, 1, 10, seed=1), array(2, 9, 7, 10), weights=1)
    check_host(lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"), array(2, 9, 7, 10))
    check_host(lambda x: jax.nn.softmax(x), x)


@pytest.mark.parametrize("x", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 88.8, -103.9, 1e-20])
def test_special_values(x: float) -> None:
    """NaN, infinities, denormals and the ends of the range, against NumPy in f32."""
    a = jnp.full((19,), x, jnp.float32)
    for name in ("relu", "relu6", "exp", "tanh", "logistic", "erf", "abs", "sign", "clip"):
        fn = UNARY[name]
        got = run_host(fn, a)[0]
        with np.errstate(all="ignore"):
            want = oracle(fn, a).astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-37, err_msg=name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_values_pass_through_max_pool_and_relu(value: float) -> None:
    x = np.asarray(array(1, 6, 6, 3)).copy()
    x[0, 2, 2, 1] = value
    w = array(3, 3, 3, 8, seed=1)

    def fn(w: Any, x: Any) -> Any:
        return nn.max_pool(jax.nn.relu(_conv(x, w)), (2, 2), (2, 2))

    got = np.asarray(co(fn, w, strategy="host")(jnp.asarray(x)))
    want = np.asarray(jax.jit(fn)(w, x))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


# -- convolution -------------------------------------------------------------------------------------


def _conv(
    x: Any, w: Any, stride: int = 1, padding: Any = "SAME", groups: int = 1, dilation: int = 1, up: int = 1
) -> Any:
    rank = x.ndim - 2
    dims = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[rank]
    if up > 1 and isinstance(padding, str):
        padding = [(1, 2)] * rank
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * rank,
        padding,
        lhs_dilation=(up,) * rank,
        rhs_dilation=(dilation,) * rank,
        dimension_numbers=dims,
        feature_group_count=groups,
    )


CONVS = {
    "3x3": ((1, 8, 8, 16), (3, 3, 16, 16), {}),
    "odd": ((2, 9, 7, 5), (3, 3, 5, 19), {}),
    "first layer": ((1, 23, 21, 3), (7, 7, 3, 24), dict(stride=2)),
    "valid 5x5": ((1, 13, 11, 6), (5, 5, 6, 7), dict(padding="VALID")),
    "stride 3": ((1, 14, 15, 4), (3, 3, 4, 33), dict(stride=3)),
    "dilated": ((1, 15, 16, 8), (3, 3, 8, 40), dict(dilation=2)),
    "transposed": ((1, 6, 5, 4), (3, 3, 4, 9), dict(up=2)),
    "transposed strided": ((1, 6, 5, 4), (3, 3, 4, 9), dict(up=3, stride=2)),
    "negative padding": ((1, 9, 9, 4), (3, 3, 4, 8), dict(padding=[(-1, 2), (0, -2)])),
    "grouped": ((1, 9, 9, 12), (3, 3, 3, 20), dict(groups=4)),
    "depthwise": ((2, 9, 10, 24), (3, 3, 1, 24), dict(groups=24)),
    "depthwise odd strided": ((1, 11, 12, 19), (5, 5, 1, 19), dict(groups=19, stride=2)),
    "depthwise dilated": ((1, 11, 13, 17), (3, 3, 1, 17), dict(groups=17, dilation=2)),
    "depthwise multiplier": ((1, 7, 7, 6), (3, 3, 1, 18), dict(groups=6)),
    "groups of 4": ((2, 9, 26, 40), (3, 3, 4, 40), dict(groups=10)),
    "groups of 2 strided": ((1, 11, 12, 34), (5, 3, 2, 34), dict(groups=17, stride=2)),
    "groups of 8 dilated": ((1, 9, 31, 24), (3, 3, 8, 24), dict(groups=3, dilation=2)),
    "1-D groups of 4": ((2, 17, 20), (3, 4, 20), dict(groups=5)),
    "1x1": ((3, 5, 6, 37), (1, 1, 37, 70), {}),
    "1x1 strided": ((1, 7, 9, 16), (1, 1, 16, 32), dict(stride=2)),
    "1-D": ((2, 17, 6), (4, 6, 21), {}),
    "1-D depthwise": ((2, 17, 6), (3, 1, 6), dict(groups=6)),
    "3-D": ((1, 5, 6, 7, 3), (3, 2, 3, 3, 18), {}),
    "3-D dilated": ((1, 7, 8, 9, 2), (2, 2, 3, 2, 5), dict(dilation=2)),
    "deep": ((1, 4, 4, 300), (3, 3, 300, 70), {}),
    "one pixel": ((1, 1, 1, 64), (3, 3, 64, 10), {}),
    "one channel": ((1, 28, 28, 1), (5, 5, 1, 6), {}),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CONVS)
def test_convolution(name: str, threads: int) -> None:
    x, w, options = CONVS[name]
    check_host(lambda w, x: _conv(x, w, **options), array(*w, seed=1), array(*x), weights=1, threads=threads)


@pytest.mark.parametrize(
    "name", ["3x3", "odd", "grouped", "depthwise", "depthwise odd strided", "groups of 4", "1x1", "3-D"]
)
@pytest.mark.parametrize(
    "tail", ["bias_relu", "norm_swish", "residual", "scaled_by_image", "scaled_by_channel", "two_readers"]
)
def test_epilogue(name: str, tail: str) -> None:
    """Fused tails: bias, folded norm, activations, residuals, squeeze-and-excite scales."""
    xs, ws, options = CONVS[name]
    w, x = array(*ws, seed=1), array(*xs)
    shape = _conv(x, w, **options).shape
    c = shape[-1]
    extra = {
        "residual": array(*shape, seed=2),
        "scaled_by_image": array(shape[0], *(1,) * (len(shape) - 2), c, seed=2),
        "scaled_by_channel": array(*shape[:-1], 1, seed=2),
    }.get(tail, array(1, seed=2))
    weights = {"w": w, "b": array(c, seed=3), "s": array(c, seed=4, low=0.5, high=2.0)}

    def fn(p: Any, x: Any, e: Any) -> Any:
        y = _conv(x, p["w"], **options)
        if tail == "bias_relu":
            return jax.nn.relu(y + p["b"])
        if tail == "norm_swish":
            return jax.nn.swish((y - p["b"]) * p["s"] / 1.5 + 0.25)
        if tail == "two_readers":
            return jnp.concatenate([jax.nn.relu(y), jnp.tanh(y)], -1)
        return jax.nn.relu6(y * e + p["b"]) if tail.startswith("scaled") else jax.nn.relu(y + p["b"] + e)

    check_host(fn, weights, x, extra, weights=1)


@pytest.mark.parametrize("spec", [("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NCHW"), ("CHWN", "IHWO", "CNHW")])
def test_convolution_layouts(spec: tuple[str, str, str]) -> None:
    sizes = dict(N=2, C=5, H=7, W=6, O=9, I=5)
    x = array(*(sizes[c] for c in spec[0]))
    w = array(*({**sizes, "H": 3, "W": 3}[c] for c in spec[1]), seed=1)
    check_host(
        lambda w, x: jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=spec)),
        w,
        x,
        weights=1,
    )


# -- products ----------------------------------------------------------------------------------------

DOTS = {
    "dense": ("mk,kn->mn", (5, 37), (37, 70)),
    "vector": ("k,kn->n", (37,), (37, 70)),
    "row": ("mk,kn->mn", (1, 300), (300, 301)),
    "transposed": ("mk,nk->mn", (4, 19), (23, 19)),
    "inner": ("k,k->", (33,), (33,)),
    "matrix vector": ("mk,k->m", (9, 17), (17,)),
    "outer": ("m,n->mn", (5,), (7,)),
    "attention": ("bqhd,bkhd->bhqk", (2, 5, 3, 8), (2, 7, 3, 8)),
    "batched": ("bmk,bkn->bmn", (3, 5, 9), (3, 9, 20)),
    "heads": ("btd,dhe->bthe", (2, 5, 12), (12, 3, 8)),
    "heads back": ("bthe,hed->btd", (2, 5, 3, 8), (3, 8, 12)),
    "deep": ("mk,kn->mn", (3, 3000), (3000, 65)),
    "large row": ("mk,kn->mn", (1, 515), (515, 1030)),
    "two free": ("abk,kcd->abcd", (2, 3, 5), (5, 4, 6)),
}


@pytest.mark.parametrize("constant", ["left", "right", "neither"])
@pytest.mark.parametrize("name", DOTS)
def test_dot(name: str, constant: str) -> None:
    spec, a, b = DOTS[name]
    a, b = array(*a), array(*b, seed=1)
    if constant == "right":
        check_host(lambda b, a: jax.nn.relu(jnp.einsum(spec, a, b) + 0.5), b, a, weights=1)
    elif constant == "left":
        check_host(lambda a, b: jax.nn.relu(jnp.einsum(spec, a, b) + 0.5), a, b, weights=1)
    else:
        check_host(lambda a, b: jax.nn.relu(jnp.einsum(spec, a, b) + 0.5), a, b)


def test_matrix_vector_reads_weights_where_they_lie() -> None:
    """A large dense layer at batch 1 keeps no packed copy of its weights."""
    w, b, x = array(700, 900, seed=1), array(900, seed=2), array(1, 700)
    _, graph = stages_of(lambda p, x: jax.nn.relu(x @ p[0] + p[1]), (w, b), x, weights=1)
    from xcoexec.codegen.runtime import host

    segment = host.build(graph.program, 2)
    assert segment.blob_bytes < w.nbytes // 10 and len(segment.raw) == 1
    check_host(lambda p, x: jax.nn.relu(x @ p[0] + p[1]), (w, b), x, weights=1, threads=2)


# -- pooling, reductions, movement -------------------------------------------------------------------

POOLS = {
    "max": lambda x: nn.max_pool(x, (2, 2), (2, 2)),
    "max same": lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"),
    "max padded": lambda x: nn.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1))),
    "min": lambda x: lax.reduce_window(x, np.float32(np.inf), lax.min, (1, 2, 3, 1), (1, 1, 2, 1), "VALID"),
    "average": lambda x: nn.avg_pool(x, (3, 2), (2, 2)),
    "average same": lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME"),
    "average uncounted": lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME", count_include_pad=False),
}


@pytest.mark.parametrize("shape", [(1, 8, 8, 16), (2, 9, 7, 5), (1, 13, 12, 35)], ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str, shape: tuple[int, ...]) -> None:
    check_host(POOLS[name], array(*shape, low=-3, high=-1))


def test_pool_over_one_and_three_dimensions() -> None:
    check_host(lambda x: nn.max_pool(x, (3,), (2,)), array(2, 11, 5))
    check_host(lambda x: nn.avg_pool(x, (2, 2, 2), (1, 2, 1)), array(1, 4, 5, 6, 7))


@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed: int) -> None:
    """Windows of any width and stride, clipped at no border, one or both, cut off by negative padding."""
    draw = random.Random(seed)
    sizes = [draw.randint(3, 15) for _ in range(2)]
    window = [draw.randint(1, 13 if seed % 4 == 0 else 4) for _ in sizes]
    strides = [draw.randint(1, 3) for _ in sizes]
    before = [draw.randint(-1, min(3, w - 1)) for w in window]
    after = [max(draw.randint(-1, min(3, w - 1)), w - n - lo) for w, n, lo in zip(window, sizes, before, strict=True)]
    padding = ((0, 0), *zip(before, after, strict=True), (0, 0))
    reduce, start = ((lax.max, -np.inf), (lax.add, 0.0))[seed % 2]
    x = array(1, *sizes, draw.choice((1, 6, 8, 19)), seed=seed)
    check_host(lambda x: lax.reduce_window(x, np.float32(start), reduce, (1, *window, 1), (1, *strides, 1), padding), x)


NUMPYS: dict[str, Any] = {
    "a pool": lambda x: lax.reduce_window(x, 0.0, lax.add, tuple(np.array([1, 3, 3, 1])), (1, 1, 1, 1), "SAME"),
    "padding": lambda x: lax.pad(x, 0.0, [tuple(p) for p in np.array([[0, 0, 0], [1, 2, 0], [1, 0, 1], [0, 0, 0]])]),
    "a slice": lambda x: lax.slice(x, np.array([0, 1, 1, 0]), np.array(x.shape), np.array([1, 2, 1, 1])) * 2,
    "a pool's derivative": jax.grad(lambda x: (nn.avg_pool(x, (3, 3), (1, 1), "SAME") ** 2).sum()),
}


@pytest.mark.parametrize("size", [4, 9, 16])
@pytest.mark.parametrize("name", NUMPYS)
def test_sizes_that_are_numpys(name: str, size: int) -> None:
    """As callers give them, and as JAX's own rules for derivatives do."""
    check_host(NUMPYS[name], array(4, size, size, 24))


OTHERS = {
    "sum": lambda x: x.sum((1, 2)),
    "mean": lambda x: x.mean((1, 2)),
    "max last": lambda x: x.max(-1),
    "min first": lambda x: x.min(0),
    "prod": lambda x: x.prod(1),
    "sum apart": lambda x: x.sum((0, 3)),
    "sum all": lambda x: x.sum(),
    "softmax": jax.nn.softmax,
    "softmax axis": lambda x: jax.nn.softmax(x, 1),
    "log_softmax": jax.nn.log_softmax,
    "layer norm": lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
    "transpose": lambda x: x.transpose(0, 3, 1, 2),
    "transpose tail": lambda x: jnp.tanh(x.transpose(3, 2, 1, 0)) + 1,
    "reshape": lambda x: x.reshape(x.shape[0], -1) * 2,
    "reshape out": lambda x: x.reshape(-1),
    "concatenate": lambda x: jnp.concatenate([x, jnp.tanh(x), x * 2], -1),
    "concatenate rows": lambda x: jnp.concatenate([x * 3, x], 1),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2), (0, 1), (2, 0))),
    "pad value": lambda x: lax.pad(jnp.tanh(x), np.float32(2.5), ((0, 0, 0), (1, 0, 1), (0, 2, 2), (0, 0, 0))),
    "pad less": lambda x: lax.pad(jnp.tanh(x), 0.5, ((0, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, 0))),
    "pad more and less": lambda x: lax.pad(jnp.tanh(x), 0.5, ((0, 0, 0), (-1, 2, 0), (1, -1, 0), (0, 1, 1))),
    "pad's derivative": jax.grad(lambda x: (jnp.pad(x, ((0, 0), (1, 2), (0, 1), (2, 0))) ** 3).sum()),
    "slice": lambda x: x[:, 1::2, :-1, :1] + 1,
    "reverse": lambda x: x[:, ::-1, :, ::-1] * 2,
    "squeeze": lambda x: (x[:1] * 2).squeeze(0),
    "broadcast": lambda x: jnp.broadcast_to(x[:, :1], x.shape) + x,
    "upsample": lambda x: lax.broadcast_in_dim(x, (*x.shape[:3], 2, x.shape[3]), (0, 1, 2, 4)),
    "swap": lambda x: jnp.swapaxes(x, 1, 3).reshape(x.shape[0], -1, x.shape[1]) + 0.5,
}


@pytest.mark.parametrize("shape", [(2, 5, 6, 19), (1, 4, 4, 16), (3, 2, 9, 1)], ids=str)
@pytest.mark.parametrize("name", OTHERS)
def test_reductions_and_movement(name: str, shape: tuple[int, ...]) -> None:
    check_host(OTHERS[name], array(*shape))


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 16), (3, 4, 37), (2, 1000), (9001, 3)], ids=str)
@pytest.mark.parametrize("place", [jnp.argmax, jnp.argmin])
def test_places(place: Any, shape: tuple[int, ...]) -> None:
    """The first of several; NaN counts as the greatest and as the least."""
    x = np.round(np.asarray(array(*shape)) * 5)
    gaps = np.where(np.arange(x.size).reshape(shape) % 5 == 4, np.nan, x)
    for value in (x, gaps, np.full(shape, np.where(x[..., :1] > 0, np.inf, -np.inf))):
        for threads in (1, 3):
            got = run_host(lambda x: place(x, -1), value.astype(np.float32), threads=threads)[0]
            np.testing.assert_array_equal(got, np.asarray(place(jnp.asarray(value, jnp.float32), -1)))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_embedding(mode: str) -> None:
    table, index = array(11, 13), jnp.asarray([[3, 10], [0, 99], [5, -40]], jnp.int32)
    dnums = lax.GatherDimensionNumbers((2,), (0,), (0,))
    fn = lambda t, i: lax.gather(t, i[..., None], dnums, (1, 13), mode=mode)
    got = np.asarray(co(fn, table, strategy="host")(index))
    np.testing.assert_array_equal(got, np.asarray(jax.jit(fn)(table, index)))


def test_reference_agrees_with_jax() -> None:
    """The oracle itself against JAX, for every family."""
    x = array(2, 6, 7, 5)
    for name, fn in {**OTHERS, **POOLS}.items():
        np.testing.assert_allclose(oracle(fn, x), np.asarray(jax.jit(fn)(x)), rtol=1e-4, atol=1e-5, err_msg=name)
    for xs, ws, options in CONVS.values():
        a, w = array(*xs), array(*ws, seed=1)
        fn = lambda w, a, options=options: _conv(a, w, **options)
        assert error(jax.jit(fn)(w, a), oracle(fn, w, a)) < 1e-4


# -- types that kernels hold as f32, or not at all ---------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "complex64"])
@pytest.mark.parametrize("op", ["add", "dot", "sum", "max_pool", "concatenate", "transpose"])
def test_other_types(op: str, dtype: str) -> None:
    if (op, dtype) == ("max_pool", "complex64"):
        pytest.skip("complex numbers have no maximum")
    x = (array(1, 4, 4, 8) * 8).astype(dtype)
    fn = {
        "add": lambda x: x + x,
        "dot": lambda x: x @ jnp.swapaxes(x, 2, 3),
        "sum": lambda x: x.sum(1),
        "max_pool": lambda x: nn.max_pool(x, (2, 2), (2, 2)),
        "concatenate": lambda x: jnp.concatenate([x, x], -1),
        "transpose": lambda x: x.T + x.T,
    }[op]
    _, graph = stages_of(fn, x)
    if dtype == "complex64":
        assert all(layer.host_error for layer in graph.layers)
    if dtype in ("float16", "bfloat16"):
        assert not any(layer.host_error for layer in graph.layers)
    got = xcoexec.jit(fn, strategy="host", strict=True)(x)
    want = jax.jit(fn)(x)
    assert got.dtype == want.dtype
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(
        dtype, 0.0
    )  # of one rounding: inside a layer kernels hold more digits
    np.testing.assert_allclose(
        np.asarray(got.astype("complex64")), np.asarray(want.astype("complex64")), rtol=tolerance
    )
