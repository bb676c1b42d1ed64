"""Reductions over leading axes with what makes their operands, and batch norm in training, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import xcoexec
from xcoexec.codegen.program import Group
from xcoexec.codegen.runtime import host
from xcoexec.ir.layers import LayerGraph

from .oracle import oracles
from .support import array, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

CHANNELS = (1, 3, 8, 15, 16, 17, 33, 100)
ROWS = (1, 2, 7, 100, 12544 * 8 + 3)
ACCURATE = 1e-5  # of the sum of the absolute values that are joined


def kernels(graph: LayerGraph, group: Group) -> list[str]:
    """The kernels of a group's steps."""
    return [step.kernel for step in host.steps(group, set(graph.program.consts), 2)]


def passes(fn: Callable[..., Any], *args: Any) -> list[tuple[list[str], int, int]]:
    """The layers that read or write arrays of the greatest size there is: their reductions or last operation, how many
    such arrays they read, how many they write. Fails for a layer that kernels cannot run.
    """
    _, graph = stages_of(fn, *args)
    assert not [x.host_error for x in graph.layers if x.host_error]
    most = max(v.size for x in graph.layers for v in (*x.ins, *x.outs))
    large = lambda values: sum(v.size == most for v in values)
    return [
        ([op.prim for op in x.ops if op.prim.startswith("reduce")] or [x.ops[-1].prim], large(x.ins), large(x.outs))
        for x in graph.layers
        if large((*x.ins, *x.outs))
    ]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("channels", CHANNELS)
def test_several_sums_of_one_pass(channels: int, rows: int) -> None:
    """Batch norm's statistics and gradients, with a mask, in one pass each."""
    if rows > 1000 and channels > 17:
        rows = 12544 + 3

    def fn(x: Any, g: Any, m: Any) -> Any:
        g = jnp.where(x > m, g, 0.0)
        return jnp.sum(x, 0), jnp.sum(x * x, 0), jnp.sum(g, 0), jnp.sum(g * (x - m), 0), jnp.max(x, 0), jnp.min(g, 0)

    x, g, m = array(rows, channels, low=-0.5), array(rows, channels, seed=1), array(channels, seed=2)
    got = run_host(fn, x, g, m, threads=2)
    x64, g64, m64 = (np.asarray(a, np.float64) for a in (x, g, m))
    g64 = np.where(x64 > m64, g64, 0)
    for have, operand in zip(got[:4], (x64, x64**2, g64, g64 * (x64 - m64)), strict=True):
        assert np.abs(have - operand.sum(0)).max() <= ACCURATE * max(np.abs(operand).sum(0).max(), 1e-30)
    np.testing.assert_array_equal(got[4], np.asarray(x).max(0))
    np.testing.assert_array_equal(got[5], g64.min(0))
    if rows > 1:
        assert [n for _, n, _ in passes(fn, x, g, m)] == [2]


@pytest.mark.parametrize("how", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (3, 5, 17), (2, 3, 4, 33), (100_003,), (50_001, 3)], ids=str)
def test_over_leading_axes_and_over_all(how: str, shape: tuple[int, ...]) -> None:
    """One pass with the elementwise operand in it; the same bits for the same call."""
    x = array(*shape, low=0.9, high=1.1)
    for axes in {tuple(range(len(shape) - 1)), tuple(range(len(shape)))} - {()}:
        fn = lambda x, axes=axes: getattr(jnp, how)(jnp.exp(x * 1e-5) * 2 - 1, axes)
        got, again = (run_host(fn, x, threads=threads)[0] for threads in (2, 1))
        operand = np.exp(np.asarray(x, np.float64) * 1e-5) * 2 - 1
        want = getattr(np, how)(operand, axes)
        np.testing.assert_allclose(got, want, rtol=1e-5 if how != "prod" else 1e-2)
        np.testing.assert_array_equal(got, again)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("channels", [3, 16, 19])
def test_nan_and_infinities_pass_through(value: float, channels: int) -> None:
    x = np.array(array(203, channels))
    x[101, channels // 2] = value
    fn = lambda x: (jnp.sum(x, 0), jnp.max(x, 0), jnp.min(x, 0), jnp.sum(x), jnp.max(x), jnp.min(x))
    want = [np.asarray(w) for w in jax.jit(fn)(x)]
    for have, w in zip(run_host(fn, jnp.asarray(x)), want, strict=True):
        np.testing.assert_allclose(have, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_types(dtype: str) -> None:
    x = array(1000, 24).astype(dtype)
    fn = lambda x: (jnp.sum(x.astype(jnp.float32), 0), jnp.sum(jnp.square(x.astype(jnp.float32)), 0))
    wide = np.asarray(x.astype(jnp.float32), np.float64)
    for have, want in zip(run_host(fn, x), (wide.sum(0), (wide**2).sum(0)), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-3)


def test_large_mean_and_small_variance() -> None:
    """Sums of 100,000 numbers near 1000 are no worse than XLA's."""
    x = array(100_352, 8, low=999.9, high=1000.1)
    fn = lambda x: (jnp.mean(x, 0), jnp.mean(x * x, 0) - jnp.square(jnp.mean(x, 0)))
    wide = np.asarray(x, np.float64)
    for have, xla, want in zip(run_host(fn, x, threads=2), jax.jit(fn)(x), (wide.mean(0), wide.var(0)), strict=True):
        assert np.abs(have - want).max() <= max(2 * np.abs(np.asarray(xla) - want).max(), 1e-6 * np.abs(want).max())


def test_an_array_with_a_border_is_read_and_written_in_place() -> None:
    """The operand lies inside the zeroes that a convolution reads, and so does what is kept beside the sums."""
    w = array(3, 3, 6, 6, seed=1)

    def fn(w: Any, x: Any) -> Any:
        y = jnp.tanh(x)
        conv = jax.lax.conv_general_dilated(y, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return conv, jnp.sum(y, (0, 1, 2)), jnp.sum(y * x, (0, 1, 2))

    x = array(2, 9, 7, 6)
    _, graph = stages_of(fn, w, x, weights=1)
    assert sorted(len(layer.outs) for layer in graph.layers) == [1, 3]
    got = run_host(fn, w, x, weights=1, threads=2)
    y = np.tanh(np.asarray(x, np.float64))
    np.testing.assert_allclose(got[0], jax.jit(fn)(w, x)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], y.sum((0, 1, 2)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[2], (y * np.asarray(x)).sum((0, 1, 2)), rtol=1e-5)


def test_arrays_whose_columns_do_not_lie_side_by_side() -> None:
    """What a concatenation takes along the last axis of length 1, and numbers of groups of columns."""

    def fn(x: Any, s: Any) -> Any:
        y, z = jnp.tanh(x), jnp.exp(x)
        return jnp.concatenate([y, z, x], -1), jnp.sum(y * s, 0), jnp.sum(y, 0)

    x, s = array(5, 4, 3, 1), array(4, 1, 1, seed=1)
    close(run_host(fn, x, s, threads=2), oracles(fn, x, s))
    fn = lambda x, s: (jnp.sum(x * s, 0), jnp.sum(x, 0))
    x, s = array(50, 4, 8), array(4, 1, seed=1)
    close(run_host(fn, x, s, threads=2), oracles(fn, x, s))


def test_more_arrays_than_a_pass_can_read() -> None:
    xs = tuple(array(50, 5, seed=i) for i in range(24))
    fn = lambda *xs: (jnp.sum(jnp.tanh(sum(xs)), 0), *(jnp.sum(x * xs[0], 0) for x in xs))
    wide = [np.asarray(x, np.float64) for x in xs]
    want = [np.tanh(sum(wide)).sum(0), *((x * wide[0]).sum(0) for x in wide)]
    for have, w in zip(run_host(fn, *xs, threads=2), want, strict=True):
        np.testing.assert_allclose(have, w, rtol=1e-5, atol=1e-5)


def test_a_pass_runs_one_kernel_and_joins_its_parts() -> None:
    x = array(60_000, 8)
    _, graph = stages_of(lambda x: (jnp.sum(x * 2, 0), jnp.max(x, 0)), x)
    assert [kernels(graph, layer.group) for layer in graph.layers] == [["columns", "joined"]]


def test_a_group_with_several_results_runs_on_xla_too() -> None:
    fn = lambda x: (jnp.sum(x * 2, 0), jnp.tanh(x), jnp.sum(jnp.tanh(x) * x, 0))
    x = array(40, 6)
    want = fn(x)
    for strategy in ("device", "host"):
        for have, w in zip(xcoexec.jit(fn, strategy=strategy, strict=True)(x), want, strict=True):
            np.testing.assert_allclose(have, w, rtol=1e-5, atol=1e-5)


# -- batch norm --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Batch norm in training mode, an activation, and perhaps a residual."""

    activation: str
    residual: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.BatchNorm(use_running_average=False)(x)
        return getattr(nn, self.activation)(y + x[::-1] if self.residual else y)


def linen(block: Block, shape: tuple[int, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step's results, statistics and gradients, and what it takes."""
    x, g = array(*shape), array(*shape, seed=4)
    made = block.init(jax.random.key(0), x)
    made = jax.tree_util.tree_map(lambda a: a + 0.2 * array(*a.shape, seed=7), made)

    def fn(params: Any, x: Any, stats: Any, g: Any) -> Any:
        run = lambda p, x: block.apply({"params": p, "batch_stats": stats}, x, mutable=["batch_stats"])
        y, back, changed = jax.vjp(run, params, x, has_aux=True)
        return y, changed, back(g)

    return fn, (made["params"], x, made["batch_stats"], g)


def close(have: Any, want: Any) -> None:
    for a, b in zip(have, want, strict=True):
        assert np.abs(np.asarray(a) - b).max() <= ACCURATE * max(np.abs(b).max(), 1e-3)


@pytest.mark.parametrize("shape", [(2, 9, 7, 19), (4, 5, 5, 8), (20, 1, 1, 33), (64, 16)], ids=str)
@pytest.mark.parametrize("activation", ["relu", "relu6", "silu", "gelu"])
def test_batch_norm_of_linen(activation: str, shape: tuple[int, ...]) -> None:
    fn, args = linen(Block(activation), shape)
    found = passes(fn, *args)  # x; x -> y; x, dy; x, dy -> dx, where y need not wait for the last one
    assert [x for x in found if x[0][0] == "reduce_sum"] == [(["reduce_sum"] * 2, 1, 0), (["reduce_sum"] * 3, 2, 0)]
    assert sum(read + written for _, read, written in found) <= 8
    close(run_host(fn, *args, threads=2), oracles(fn, *args))


def test_batch_norm_with_a_residual() -> None:
    fn, args = linen(Block("relu", residual=True), (4, 6, 5, 24))
    close(run_host(fn, *args, threads=2), oracles(fn, *args))


def test_batch_norm_of_nnx() -> None:
    def fn(params: Any, rest: Any, x: Any, g: Any) -> Any:
        model = nnx.merge(graphdef, params, rest, copy=True)
        value, gradients = nnx.value_and_grad(lambda m, x: jnp.sum(nnx.relu(m(x)) * g), argnums=(0, 1))(model, x)
        return value, gradients, nnx.state(model, nnx.BatchStat)

    model = nnx.BatchNorm(19, use_running_average=False, rngs=nnx.Rngs(0))
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    args = (params, rest, array(3, 4, 5, 19), array(3, 4, 5, 19, seed=4))
    assert [(n, len(how)) for how, n, _ in passes(fn, *args)] == [(1, 2), (2, 1), (2, 3), (2, 1)]
    close(run_host(fn, *args, threads=2), oracles(fn, *args))


def test_a_training_step_end_to_end() -> None:
    """Statistics change and gradients flow, through `jit` on kernels alone."""
    fn, args = linen(Block("relu"), (8, 14, 14, 16))
    fast = xcoexec.jit(fn, strategy="host", strict=True)
    first, second = fast(*args), fast(*args)
    assert fast.report(*args).ran == "xco"
    close(jax.tree_util.tree_leaves(first), oracles(fn, *args))
    for a, b in zip(*map(jax.tree_util.tree_leaves, (first, second)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradients_of_biases_and_their_norm() -> None:
    """Clipping reads each gradient twice: for the norm, and to scale it."""
    shapes = [(33, 20), (20,), (3, 3, 4, 8), (8,)]
    grads = [array(*s, seed=i) for i, s in enumerate(shapes)]

    def fn(*grads: Any) -> Any:
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads))
        return [g * jnp.minimum(1.0, 1.0 / norm) for g in grads]

    close(run_host(fn, *grads, threads=2), oracles(fn, *grads))


def test_an_optimizer_updates_moments_and_weights_in_one_pass() -> None:
    """Adam reads a gradient, two moments and the weights once, and writes three arrays; clipping is on the way."""
    m, v, p, g = (array(33, 50, seed=i, low=0.01) for i in range(4))

    def fn(fade: Any, m: Any, v: Any, p: Any, g: Any) -> Any:
        g = g * jnp.minimum(1.0, 1.0 / jnp.sqrt(jnp.sum(g * g)))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        fair = m / (1 - fade[0]), v / (1 - fade[1])
        return m, v, p - 1e-3 * fair[0] / (jnp.sqrt(fair[1]) + 1e-8)

    args = (jnp.float32([0.729, 0.997]), m, v, p, g)
    assert [(n, made) for _, n, made in passes(fn, *args)] == [(1, 0), (4, 3)]
    close(run_host(fn, *args, threads=2), oracles(fn, *args))


@pytest.mark.parametrize("shape", [(3, 7, 5, 24), (2, 40, 41, 8), (5, 1, 3, 20)], ids=str)
def test_over_middle_axes(shape: tuple[int, ...]) -> None:
    """Averages over an image, and their gradients, as squeeze and excite has them."""

    def fn(x: Any, g: Any) -> Any:
        y = nn.silu(x)
        return jnp.mean(y, (1, 2)), jnp.sum(y * g, (1, 2)), jnp.max(g, (1, 2)), jnp.sum(x * g, (1, 2, 3))

    x, g = array(*shape), array(*shape, seed=1)
    assert next(n for _, n, _ in passes(fn, x, g)) == 2
    close(run_host(fn, x, g, threads=2), oracles(fn, x, g))


@pytest.mark.parametrize("norm", [nn.GroupNorm(4), nn.InstanceNorm()], ids=lambda n: type(n).__name__)
def test_norms_over_images(norm: nn.Module) -> None:
    x, g = array(4, 9, 7, 24), array(4, 9, 7, 24, seed=1)
    made = norm.init(jax.random.key(0), x)

    def fn(made: Any, x: Any, g: Any) -> Any:
        y, back = jax.vjp(lambda made, x: nn.relu(norm.apply(made, x)), made, x)
        return y, back(g)

    found = passes(fn, made, x, g)
    assert (["reduce_sum"] * 2, 1, 0) in found and len(found) <= 9
    close(run_host(fn, made, x, g, threads=2), oracles(fn, made, x, g))


class Residual(nn.Module):
    """A network of a strided block with a projection, and one without."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        norm = lambda x: nn.BatchNorm(use_running_average=False)(x)
        x = nn.relu(norm(nn.Conv(24, (3, 3), use_bias=False)(x)))
        y = nn.relu(norm(nn.Conv(32, (3, 3), (2, 2))(x)))
        y = norm(nn.Conv(32, (3, 3), use_bias=False)(y)) + norm(nn.Conv(32, (1, 1), (2, 2), use_bias=False)(x))
        x = nn.relu(y)
        y = nn.relu6(norm(nn.Conv(32, (3, 3), feature_group_count=32, use_bias=False)(x)))
        x = nn.relu(norm(nn.Conv(32, (1, 1), use_bias=False)(y)) + x)
        return nn.Dense(10)(nn.relu(nn.Dense(17)(x.mean((1, 2)))))


def test_a_step_of_a_residual_network() -> None:
    """Loss, statistics, momentum and weights against float64, on kernels alone."""
    net, x, y = Residual(), array(8, 14, 14, 3), jax.nn.one_hot(jnp.arange(8) % 10, 10)
    made = jax.jit(net.init)(jax.random.key(0), x)
    trace = jax.tree_util.tree_map(lambda p: 0.01 * array(*p.shape, seed=5), made["params"])

    def fn(params: Any, stats: Any, trace: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            logits, changed = net.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])
            return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), -1)), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(params)
        trace = jax.tree_util.tree_map(lambda t, g: 0.9 * t + g, trace, grads)
        return jax.tree_util.tree_map(lambda p, t: p - 0.1 * t, params, trace), changed, trace, value

    args = (made["params"], made["batch_stats"], trace, x, y)
    _, graph = stages_of(fn, *args)
    assert not [x.host_error for x in graph.layers if x.host_error]
    close(run_host(fn, *args, threads=2), oracles(fn, *args))


@pytest.mark.parametrize("how", ["sum", "max", "min"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((2, 5, 7, 4, 3), (1, 2, 4)),
        ((3, 6, 40, 5), (0, 2)),
        ((9, 4, 100), (0, 2)),
        ((4, 3, 6, 2, 5, 7), (0, 2, 4, 5)),
        ((2, 8, 1, 5, 9), (1, 2, 4)),
        ((3, 2, 3, 2, 3), (0, 2, 4)),
    ],
)
def test_axes_that_are_no_neighbours(how: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """They are joined one run after the other: nothing is copied to bring them together."""
    x = array(*shape)
    fn = lambda x: getattr(jnp, how)(x + 1, axes)
    _, graph = stages_of(fn, x)
    assert sum(op.prim.startswith("reduce") for op in graph.program.ops) >= 2
    (got,) = run_host(fn, x, threads=2)
    want = getattr(np, how)(np.asarray(x, np.float64) + 1, axes)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def group_norm(xp: Any, x: Any, groups: int) -> Any:
    """As people write it who do not call a library."""
    y = x.reshape(*x.shape[:-1], groups, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    centred = y - y.mean(axes, keepdims=True)
    return (centred / xp.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)).reshape(x.shape)


@pytest.mark.parametrize(("shape", "groups"), [((2, 9, 11, 48), 8), ((1, 32, 32, 64), 32), ((3, 50, 34), 17)])
def test_a_norm_of_groups(shape: tuple[int, ...], groups: int) -> None:
    """A group's mean and scale stand for its few channels: a pass has rows of all channels, not of a group's."""
    x, each = array(*shape), 7  # words of an operand in a nest's step, behind 11 of its own
    fn = lambda x: group_norm(jnp, x * 2, groups)
    _, graph = stages_of(fn, x)
    nests = [s.words for s in host.build(graph.program, 2).steps if s.kernel == "elementwise_rows"]
    sizes = [w[w[4] * each + 13] for w in nests if np.prod(w[5:11]) * w[w[4] * each + 11] > shape[0] * groups]
    assert sizes and all(n % shape[-1] == 0 for n in sizes)
    (got,) = run_host(fn, x, threads=2)
    np.testing.assert_allclose(got, group_norm(np, np.asarray(x, np.float64) * 2, groups), rtol=1e-4, atol=1e-5)
