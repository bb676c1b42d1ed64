"""Depthwise convolutions whose weights come with the call, and their gradients, against float64 NumPy."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.rules.products import convolution
from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import Target

from .oracle import error, oracles
from .support import array, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

CLOSE = 1e-5


def convolved(x: Any, w: Any, stride: int = 1, padding: Any = "SAME", dilation: int = 1) -> Any:
    rank = x.ndim - 2
    layout = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[rank]
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * rank,
        padding,
        rhs_dilation=(dilation,) * rank,
        dimension_numbers=layout,
        feature_group_count=x.shape[-1],
    )


def wanted(x: Any, w: Any, g: Any, stride: int, padding: Any, dilation: int) -> tuple[np.ndarray, ...]:
    """The result [n, h, w, c] and both gradients in float64, tap by tap."""
    x, w, g = (np.asarray(a, np.float64) for a in (x, w, g))
    reach = [(k - 1) * dilation + 1 for k in w.shape[:2]]
    around = (
        lax.padtype_to_pads(x.shape[1:3], reach, (stride, stride), padding) if isinstance(padding, str) else padding
    )
    padded = np.pad(x, [(0, 0), *around, (0, 0)])
    y, dx, dw = np.zeros_like(g), np.zeros_like(padded), np.zeros_like(w)
    for i, j in np.ndindex(*w.shape[:2]):
        seen = tuple(
            slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
            for t, n in ((i, g.shape[1]), (j, g.shape[2]))
        )
        at = (slice(None), *seen)
        y += padded[at] * w[i, j, 0]
        dx[at] += g * w[i, j, 0]
        dw[i, j, 0] = (padded[at] * g).sum((0, 1, 2))
    inside = tuple(slice(lo, lo + n) for (lo, _), n in zip(around, x.shape[1:3], strict=True))
    return y, dx[(slice(None), *inside)], dw


def passes(x: Any, w: Any, g: Any, **how: Any) -> Any:
    """The result, and the gradients by image and by weights for a gradient `g` by the result."""
    y, back = jax.vjp(functools.partial(convolved, **how), x, w)
    return y, *back(g)


def on_kernels(fn: Any, *args: Any, threads: int = 1, isa: Target | None = None) -> tuple[list[np.ndarray], list[str]]:
    """All results of `fn` by kernels alone, with every array given at the call, and the families that ran."""
    folded, graph = stages_of(fn, *args)
    assert [(x.name, x.host_error) for x in graph.layers if x.host_error] == []
    segment = host.build(graph.program, threads, isa)
    out = host.Call(segment, [np.asarray(x) for x in args], [])()
    found = dict(zip(graph.program.outputs, out, strict=True))
    return [found[v].copy() for v in folded.outputs], [f for step in segment.steps for f in step.families]


def check(
    x: Any,
    w: Any,
    stride: int = 1,
    padding: Any = "SAME",
    dilation: int = 1,
    threads: int = 1,
    isa: Target | None = None,
) -> None:
    """All three passes on kernels, and that it was those of depthwise convolutions."""
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    fn = functools.partial(passes, **how)
    g = array(*jax.eval_shape(functools.partial(convolved, **how), x, w).shape, seed=3)
    got, ran = on_kernels(fn, x, w, g, threads=threads, isa=isa)
    assert "depthwise" in ran and "depthwise_sums" in ran
    assert "gemm" not in ran
    assert ("depthwise_transposed" in ran) == (stride > 1)
    for a, b in zip(got, wanted(x, w, g, **how), strict=True):
        assert error(a, b) < CLOSE


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_strides_and_windows(stride: int, window: int, padding: str) -> None:
    for c, h, w, n in ((5, 9, 12, 1), (17, 13, 8, 2)):
        check(array(n, h, w, c), array(window, window, 1, c, seed=1), stride=stride, padding=padding)


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40])
def test_channels(isa: Target, channels: int) -> None:
    for stride in (1, 2):
        check(array(1, 7, 6, channels), array(3, 3, 1, channels, seed=1), isa=isa, stride=stride)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(5, 11, 9, 33), (5, 40, 50, 3), (1, 64, 33, 16), (5, 3, 3, 80)])
def test_batches_and_threads(shape: tuple[int, ...], threads: int, stride: int) -> None:
    check(array(*shape), array(3, 3, 1, shape[-1], seed=1), threads=threads, stride=stride)


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((0, 3), (2, 0)), ((3, 3), (3, 3))])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 2), (1, 3), (2, 1), (2, 3), (3, 2)])
def test_dilation_and_padding(stride: int, dilation: int, padding: Any) -> None:
    check(array(2, 11, 12, 19), array(3, 3, 1, 19, seed=1), stride=stride, padding=padding, dilation=dilation)


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 3), (8, 1)])
@pytest.mark.parametrize("window", [(1, 3), (5, 2), (7, 7)])
def test_images_smaller_than_the_window(size: tuple[int, int], window: tuple[int, int]) -> None:
    for stride in (1, 2, 4):
        check(array(3, *size, 18), array(*window, 1, 18, seed=1), stride=stride)


def against_float64(fn: Any, *args: Any, threads: int = 2) -> list[str]:
    """Every result of `fn` by kernels; the families that ran."""
    got, ran = on_kernels(fn, *args, threads=threads)
    for a, b in zip(got, oracles(fn, *args), strict=True):
        assert error(a, b) < CLOSE
    return ran


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_one_dimension(stride: int) -> None:
    x, w = array(3, 17, 21), array(4, 1, 21, seed=1)
    g = array(3, -(-17 // stride), 21, seed=2)
    ran = against_float64(functools.partial(passes, stride=stride), x, w, g)
    back = "depthwise_transposed" if stride > 1 else "depthwise"
    assert {"depthwise", back, "depthwise_sums"} <= set(ran) and "gemm" not in ran


@pytest.mark.parametrize("stride", [1, 2])
def test_three_dimensions_and_large_windows(stride: int) -> None:
    x, w = array(2, 4, 5, 6, 3), array(2, 3, 2, 1, 3, seed=1)
    g = array(2, -(-4 // stride), -(-5 // stride), -(-6 // stride), 3, seed=2)
    against_float64(functools.partial(passes, stride=stride), x, w, g)
    x, w = array(1, 12, 11, 3), array(8, 8, 1, 3, seed=1)
    against_float64(functools.partial(passes, stride=stride), x, w, array(1, -(-12 // stride), -(-11 // stride), 3))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("times", [2, 3])
def test_channel_multipliers_run_as_groups(times: int, stride: int) -> None:
    x, w = array(2, 6, 7, 5), array(3, 3, 1, 5 * times, seed=1)
    against_float64(
        functools.partial(passes, stride=stride), x, w, array(2, -(-6 // stride), -(-7 // stride), 5 * times)
    )


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NHWC"), ("NCHW", "HWIO", "NHWC")])
def test_layouts(layout: tuple[str, str, str]) -> None:
    """Images and weights in another order are brought to channels-last."""
    sizes = {"N": 2, "C": 19, "H": 9, "W": 8, "O": 19, "I": 1}
    kernel = {**sizes, "H": 3, "W": 3}
    x, w = array(*(sizes[a] for a in layout[0])), array(*(kernel[a] for a in layout[1]), seed=1)
    g = array(*({**sizes, "H": 5, "W": 4}[a] for a in layout[2]), seed=2)

    def fn(x: Any, w: Any, g: Any) -> Any:
        conv = lambda x, w: lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=layout, feature_group_count=19
        )
        y, back = jax.vjp(conv, x, w)
        return y, *back(g)

    ran = against_float64(fn, x, w, g)
    assert {"depthwise", "depthwise_transposed", "depthwise_sums"} <= set(ran)


def test_a_gradient_of_a_transposed_convolution() -> None:
    """Its gradient by the image is strided, and that by the weights has a grown image."""

    def fn(x: Any, w: Any, g: Any) -> Any:
        up = lambda x, w: lax.conv_general_dilated(
            *(x, w, (1, 1), ((1, 2), (1, 2)), (2, 2)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=18,
        )
        y, back = jax.vjp(up, x, w)
        return y, *back(g)

    ran = against_float64(fn, array(2, 5, 6, 18), array(3, 3, 1, 18, seed=1), array(2, 10, 12, 18, seed=2))
    assert {"depthwise", "depthwise_transposed"} <= set(ran)


def test_nan_and_infinity_stay_where_they_belong() -> None:
    x, w, g = np.array(array(2, 9, 9, 20)), array(3, 3, 1, 20, seed=1), np.array(array(2, 5, 5, 20, seed=2))
    x[0, 4, 4, 3], x[1, 5, 2, 17], g[0, 2, 3, 5], g[1, 3, 3, 19] = np.nan, np.inf, np.inf, np.nan
    got, _ = on_kernels(functools.partial(passes, stride=2), x, w, g)
    want = wanted(x, w, g, stride=2, padding="SAME", dilation=1)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert not np.isfinite(b).all()


def test_long_sums_keep_their_digits() -> None:
    """100 352 products of one sign for each element: nearly exact, and always the same whichever thread is first."""
    rng = np.random.default_rng(0)
    x, g = (rng.uniform(0, 1, (8, 112, 112, 3)).astype(np.float32) for _ in range(2))
    fn = lambda x, g: jax.vjp(functools.partial(convolved, x), jnp.zeros((3, 3, 1, 3)))[1](g)
    want = wanted(x, np.zeros((3, 3, 1, 3)), g, stride=1, padding="SAME", dilation=1)[2]
    for threads in (1, 2, 3):
        bits = {on_kernels(fn, x, g, threads=threads)[0][0].tobytes() for _ in range(4)}
        assert len(bits) == 1
        assert error(np.frombuffer(bits.pop(), np.float32).reshape(want.shape), want) < 1e-6


def test_a_border_is_made_by_whoever_computes_the_image() -> None:
    """The gradient by the result is read with zeroes around it, and by the sums without: nothing copies it."""

    def fn(x: Any, w: Any, g: Any) -> Any:
        return jax.vjp(functools.partial(convolved, stride=2), jnp.tanh(x), w)[1](jnp.tanh(g))

    _, ran = on_kernels(fn, array(2, 9, 9, 16), array(3, 3, 1, 16, seed=1), array(2, 5, 5, 16, seed=2))
    passes_over_all = [name.removesuffix("_rows") for name in ran]
    assert sorted(passes_over_all) == ["depthwise_sums", "depthwise_transposed", "elementwise", "elementwise"]


def test_costs_and_splits() -> None:
    """FLOP are those of the forward pass; sums of windows are split by channels."""
    x, w = array(2, 8, 8, 32), array(3, 3, 1, 32, seed=1)
    _, graph = stages_of(functools.partial(passes, stride=2), x, w, array(2, 4, 4, 32, seed=2))
    convolutions = [x for x in graph.layers if x.flops]
    assert [x.flops for x in convolutions] == [2 * 9 * 2 * 16 * 32] * 3
    products = [convolution(x.group.anchor) for x in convolutions]
    assert {(m.kind, m.groups, m.columns, m.window) for m in products} == {("depthwise", 32, 1, 9)}
    sums = next(x for x in convolutions if x.out.shape == w.shape)
    assert sums.dims == {"channel": 1}


def test_a_whole_step_runs_on_kernels() -> None:
    def loss(weights: Any, x: Any) -> Any:
        first, second, third = weights
        y = jax.nn.relu(convolved(x, first))
        y = jax.nn.relu(convolved(y, second, stride=2))
        return (convolved(y, third) ** 2).mean()

    weights, x = tuple(array(k, k, 1, 20, seed=k) for k in (3, 5, 2)), array(2, 13, 14, 20)
    fn = jax.value_and_grad(loss)
    step = xcoexec.jit(fn, strategy="host", strict=True)
    for a, b in zip(jax.tree_util.tree_leaves(step(weights, x)), oracles(fn, weights, x), strict=True):
        assert error(a, b) < CLOSE
    report = step.report(weights, x)
    assert report.ran == "xco"
    ran = {name for layer in report.layers for name in layer.algorithm.split("+")}
    assert {"depthwise", "depthwise_transposed", "depthwise_sums"} <= ran
    assert "XLA" not in ran
