"""Groups with several results: rows, numbers of rows, elements against the float64 oracle; optimizers in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

from xcoexec.codegen.native import layout
from xcoexec.codegen.runtime import host
from xcoexec.frontend import clusters

from .oracle import error, oracles
from .support import array, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")


def _norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = jnp.maximum(0.0, (x * x).mean(-1, keepdims=True) - mean * mean)
    return (x - mean) * (lax.rsqrt(var + 1e-6) * scale) + bias


def _rms(x: Any, scale: Any, bias: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale + bias


def _both_ways(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Result and gradients, as a training step has them."""

    def both(g: Any, *args: Any) -> Any:
        out, back = jax.vjp(fn, *args)
        return out, back(g)

    return both


SHAPES = [(2, 9, 37), (3, 8), (1, 33, 16), (2, 3, 5, 64), (40, 129)]
ROWS: dict[str, Callable[[tuple[int, ...]], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "layer norm": lambda s: (_both_ways(_norm), (array(*s, seed=1), array(*s), array(s[-1]), array(s[-1], seed=2))),
    "rms norm": lambda s: (_both_ways(_rms), (array(*s, seed=1), array(*s), array(s[-1]), array(s[-1], seed=2))),
    "softmax": lambda s: (_both_ways(jax.nn.softmax), (array(*s, seed=1), array(*s, low=-9, high=9))),
    "log softmax": lambda s: (_both_ways(jax.nn.log_softmax), (array(*s, seed=1), array(*s, low=-9, high=9))),
    "numbers and rows": lambda s: (
        lambda x: (jnp.exp(x - x.max(-1, keepdims=True)), x.max(-1), x.min(-1, keepdims=True), (x * x).sum(-1) + 1),
        (array(*s),),
    ),
    "a gate": lambda s: (
        lambda x, y: (jnp.tanh(x) * y, jnp.tanh(x), (jnp.tanh(x) * y).sum(-1)),
        (array(*s), array(*s)),
    ),
}


def _check(fn: Callable[..., Any], args: tuple[Any, ...], tolerance: float, threads: int = 1) -> None:
    got, want = run_host(fn, *args, threads=threads), oracles(fn, *args)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert error(a, b) < tolerance


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows_with_several_results(name: str, shape: tuple[int, ...]) -> None:
    fn, args = ROWS[name](shape)
    _check(fn, args, 3e-6, threads=2)


def _steps(fn: Callable[..., Any], *args: Any) -> tuple[str, ...]:
    return host.build(stages_of(fn, *args)[1].program, 1).algorithms


@pytest.mark.parametrize("name", ["softmax", "numbers and rows", "a gate"])
def test_rows_are_read_once(name: str) -> None:
    fn, args = ROWS[name]((40, 129))
    assert [a for a in _steps(fn, *args) if a != "view"] == ["rowwise"]


OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(1e-3),
    "adamw": lambda: optax.adamw(optax.exponential_decay(1e-2, 3, 0.7), weight_decay=0.1),
    "rmsprop": lambda: optax.rmsprop(1e-3, momentum=0.9),
    "lion": lambda: optax.lion(1e-3),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-3)),
    "finite": lambda: optax.apply_if_finite(optax.adam(1e-3), 3),
}
#: how often memory is passed for a leaf, where one pass makes all
ONE_PASS = ("momentum", "adam", "adamw", "rmsprop", "lion")


def _update(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    tx = OPTIMIZERS[name]()
    params = {"a": array(3, 37), "b": array(129, seed=1), "c": array(2, 3, 4, 5, seed=2)}
    grads = jax.tree.map(lambda p: 0.3 * p + 0.1, params)
    state = tx.init(params)
    for _ in range(2):
        _, state = tx.update(grads, state, params)

    def update(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return update, (params, state, grads)


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "finite"])
def test_optimizers(name: str) -> None:
    _check(*_update(name), 2e-6)


@pytest.mark.parametrize("name", ONE_PASS)
def test_an_optimizer_passes_once_over_each_leaf(name: str) -> None:
    fn, args = _update(name)
    layers = stages_of(fn, *args)[1].layers
    for leaf in jax.tree_util.tree_leaves(args[0]):
        assert sum(x.out.shape == leaf.shape for x in layers) == 1, [(x.out, x.kind) for x in layers]


@pytest.mark.parametrize("shape", [(40, 24), (5, 3, 17), (2, 1025)])
def test_results_of_rows_that_share_an_operand(shape: tuple[int, ...]) -> None:
    """Rows short enough for a loop in the kernel, and longer ones."""

    def fn(p: Any, m: Any, s: Any) -> Any:
        momentum = 0.9 * m + p * s
        return p - momentum, momentum

    _check(fn, (array(*shape), array(*shape, seed=1), array(shape[-1], seed=2)), 1e-6)


def test_as_many_arrays_as_a_nest_reads() -> None:
    assert clusters.MOST_ARRAYS == layout.MAX_OPERANDS


def test_groups_with_constant_weights_stay_as_they_are() -> None:
    """They are divided between devices, as those with several results are not."""
    fn = lambda w, x: (x @ w, x + 1, (x + 1) * 2)
    assert not any(x.group.also for x in stages_of(fn, array(8, 8), array(4, 8), weights=1)[1].layers)
    assert any(x.group.also for x in stages_of(fn, array(8, 8), array(4, 8))[1].layers)


def test_a_cluster_waits_for_nothing_that_waits_for_it() -> None:
    """What is between two of its operations, and is no part of it, keeps them apart."""
    w = np.asarray(array(8, 8))
    fn = lambda x, w: (jnp.tanh(x), jnp.tanh(x) @ w + jnp.tanh(x), (jnp.tanh(x) @ w).sum(-1) * jnp.exp(x)[:, 0])
    _check(fn, (array(8, 8, seed=1), w), 1e-6)


def test_xla_gives_all_results_of_a_group() -> None:
    """A step whose groups with several results are XLA's gives what jax.jit gives."""
    import xcoexec

    fn, args = _update("adam")
    want = jax.jit(fn)(*args)
    for strategy in ("device", "host"):
        got = xcoexec.jit(fn, strategy=strategy, strict=True)(*args)
        for a, b in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-7)
