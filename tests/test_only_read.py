"""Results of which slices alone are read: the part is computed, with the same numbers as in all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.cost.features import flops

from .support import TOLERANCE, array, check_host, error, oracle, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

W = [array(32, 64, seed=1), array(64, 32, seed=2), array(32, 96, seed=3)]
X = array(2, 12, 32)


def norm(x: Any) -> Any:
    m = jnp.mean(x, -1, keepdims=True)
    return (x - m) * lax.rsqrt(jnp.mean(jnp.square(x - m), -1, keepdims=True) + 1e-6)


def mlp(w: Any, x: Any) -> Any:
    return x + jax.nn.gelu(norm(x) @ w[0], approximate=False) @ w[1]


def block(w: Any, x: Any) -> Any:
    q, k, v = (y.reshape(*y.shape[:2], 4, 8) for y in jnp.split(norm(x) @ w[2], 3, -1))
    p = jax.nn.softmax(jnp.einsum("nqhd,nkhd->nhqk", q, k) / 8**0.5, -1)
    return mlp(w, x + jnp.einsum("nhqk,nkhd->nqhd", p, v).reshape(x.shape))


def conv(w: Any, x: Any, far: int) -> Any:
    dims = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(x, w[0][None], (1,), [(0, 0)], rhs_dilation=(far,), dimension_numbers=dims)


def all_flops(fn: Callable[..., Any]) -> float:
    return sum(map(flops, stages_of(fn, W, X, weights=1)[0].ops))


two = lambda w, x: mlp(w, mlp(w, x))
blocks = lambda w, x: block(w, block(w, x))
CASES: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], float]] = {  # all, what is read, what is left of work
    "a layer": (mlp, lambda y: y[:, 0], 1 / 12),
    "the last token's logits": (lambda w, x: jnp.tanh(x) @ w[0], lambda y: y[:, -1], 1 / 12),
    "behind an attention": (blocks, lambda y: y[:, 0], 0.72),
    "a range that stays": (mlp, lambda y: y[:, 2:5], 3 / 12),
    "every other one of a range": (mlp, lambda y: y[:, 2:6:2], 3 / 12),
    "read twice": (mlp, lambda y: y[:, 3] * jnp.tanh(y[:, 3]), 1 / 12),
    "two of one range": (mlp, lambda y: y[:, 1] + y[:, 3], 3 / 12),
    "two axes": (two, lambda y: y[:1, 4], 1 / 24),
    "channels of what has no weights": (lambda w, x: jnp.tanh(jnp.exp(x)), lambda y: y[..., 3:7] * 2, 4 / 32),
    "channels behind weights": (lambda w, x: jnp.tanh(jnp.exp(x) @ w[0]), lambda y: y[..., 3:7], 1.0),
    "a slice of a slice": (mlp, lambda y: y[:, 2:8][:, 1:2], 1 / 12),
    "windows": (lambda w, x: conv(w, jnp.tanh(x), 2), lambda y: y[:, -1], 1 / 12),
    "the result itself": (mlp, lambda y: y[:, 4:5], 1 / 12),
    "another reader": (two, lambda y: jnp.concatenate([y[:, :1], y[:, -1:]], 1), 1.0),
    "nothing of a branch": (lambda w, x: jnp.concatenate([mlp(w, x), x], 1), lambda y: y[:, 12:], 0.0),
    "most of it": (mlp, lambda y: y[:, 1:], 1.0),
    "all of it too": (mlp, lambda y: (y[:, :1] * 2, y), 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rest_is_not_computed(name: str) -> None:
    whole, read, most = CASES[name]
    fn = lambda w, x: read(whole(w, x))
    full, less = all_flops(whole), all_flops(fn)
    assert less <= most * full + 3000  # what is done to the slices
    assert most < 1 or less >= 0.9 * full
    check_host(fn, W, X, weights=1)
    check_host(fn, W, X)


def test_weights_are_read_as_they_are() -> None:
    """A product's weights are not cut, which may be stored as int8 or bf16."""
    _, graph = stages_of(lambda w, x: (x @ w[0])[..., :4] + 1, W, X, weights=1)
    assert [v.shape for v in graph.program.consts] == [(32, 64)]


def test_it_takes_no_longer_than_the_program_is() -> None:
    """Thousands of slices of one value, and of one after the other."""

    def fn(x: Any) -> Any:
        for i in range(400):
            x = jnp.tanh(x)[: len(x) - (i % 2)]
        return sum(jnp.sin(x)[i] for i in range(150))

    assert error(run_host(fn, array(256))[0], oracle(fn, array(256))) < TOLERANCE


def test_padding_is_no_part() -> None:
    """Of a convolution whose first results lie in the padding: XLA:CPU takes 1x1 windows over one pixel with negative
    padding for a product.
    """
    dims = ("NHWC", "HWIO", "NHWC")
    fn = lambda w, x: lax.conv_general_dilated(x, w, (1, 1), ((1, 0), (0, 0)), dimension_numbers=dims)[:, :1, :1]
    w, x = array(1, 1, 4, 8), array(1, 4, 4, 4)
    for strategy in ("host", "device"):
        fast = xcoexec.jit(fn, strategy=strategy, strict=True).bind(w)
        assert not np.asarray(fast(x)).any()


@pytest.mark.parametrize("strategy", ["auto", "host", "device"])
def test_calls(strategy: str) -> None:
    fast = xcoexec.jit(lambda w, x: blocks(w, x)[:, 0], strategy=strategy, strict=True).bind(W)
    want = oracle(lambda w, x: blocks(w, x)[:, 0], W, X)
    assert error(fast(X), want) < TOLERANCE
