"""Products with few output channels, whose vectors hold what is summed: convolutions and dense layers, every target."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.kernels import across
from xcoexec.codegen.target import Target, target

from .support import array, error, oracle
from .test_algorithms import TARGETS, run_on

EXACT = 5e-6  # of the largest value: sums of up to 8,100 products
NHWC = ("NHWC", "HWIO", "NHWC")


def summed(ran: set[str]) -> bool:
    """Whether the family ran."""
    return any("across" in name.split("+") for name in ran)


def conv(
    strides: tuple[int, int] = (1, 1), padding: Any = "SAME", dilation: tuple[int, int] = (1, 1), groups: int = 1
) -> Any:
    def fn(w: Any, b: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(x, w, strides, padding, None, dilation, NHWC, feature_group_count=groups)
        return jnp.tanh(y / 20 + b) * 2

    return fn


CASES: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {  # function, weights, image
    "an image from features": (conv(), (3, 3, 64, 3), (1, 11, 13, 64)),
    "a mask": (conv(padding="VALID"), (3, 3, 48, 1), (2, 9, 7, 48)),
    "one pixel": (conv(padding="VALID"), (3, 3, 32, 2), (1, 3, 3, 32)),
    "a part of a vector is left": (conv(), (3, 3, 41, 2), (1, 5, 6, 41)),
    "all but one of a vector": (conv(dilation=(2, 1)), (3, 1, 127, 1), (1, 9, 4, 127)),
    "rows of the window are no run": (conv(dilation=(1, 2)), (3, 3, 80, 2), (1, 9, 11, 80)),
    "strides": (conv((2, 3)), (5, 4, 40, 2), (1, 17, 16, 40)),
    "a window of one": (conv(), (1, 1, 300, 2), (3, 5, 7, 300)),
    "groups": (conv(groups=3), (3, 3, 96, 6), (1, 6, 5, 288)),
    "long sums": (conv(padding="VALID"), (3, 3, 900, 2), (1, 6, 20, 900)),
}


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str, isa: Target) -> None:
    fn, weights, image = CASES[name]
    w, b, x = array(*weights, seed=1), array(weights[-1], seed=2), array(*image)
    got, ran = run_on(fn, w, b, x, isa=isa, weights=2)
    each = weights[-1] // (3 if name == "groups" else 1)
    assert summed(ran) is (each <= isa.vl // 2), ran
    assert error(got, oracle(fn, w, b, x)) < EXACT


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("channels", range(1, 10))
def test_as_many_channels_as_half_a_vector(channels: int, threads: int) -> None:
    w, b, x = array(3, 3, 112, channels, seed=1), array(channels, seed=2), array(1, 12, 17, 112)
    got, ran = run_on(conv(), w, b, x, isa=target(), weights=2, threads=threads)
    assert summed(ran) is (channels <= target().vl // 2)
    assert error(got, oracle(conv(), w, b, x)) < EXACT


def dense(w: Any, b: Any, x: Any) -> Any:
    return jax.nn.sigmoid(x @ w + b)


def residual(w: Any, b: Any, x: Any) -> Any:
    return jnp.einsum("bsk,kn->bsn", x, w) + b + x[..., : w.shape[1]]


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("fn", [dense, residual])
@pytest.mark.parametrize(("k", "n", "shape"), [(129, 1, (1, 37)), (200, 2, (3, 50)), (512, 2, (5, 41))])
def test_dense_layers_of_many_rows(fn: Any, k: int, n: int, shape: tuple[int, ...], isa: Target) -> None:
    w, b, x = array(k, n, seed=1), array(n, seed=2), array(*shape, k)
    got, ran = run_on(fn, w, b, x, isa=isa, weights=2)
    assert summed(ran), ran
    assert error(got, oracle(fn, w, b, x)) < EXACT


def test_what_lies_beside_a_run_does_not_count() -> None:
    """What is left of a run is less than a vector: the next pixel's numbers, infinite ones too, are not read."""
    x = np.ones((1, 1, 40, 41), np.float32)
    x[0, 0, 1::2] = np.inf
    fn = lambda w, x: lax.conv_general_dilated(x, w, (1, 2), "VALID", dimension_numbers=NHWC)
    w = array(1, 1, 41, 1, seed=1)
    big = jnp.tile(w, (1, 1, 1, 1))
    got, ran = run_on(fn, big, jnp.asarray(x), isa=target(), weights=1)
    assert summed(ran) is across.pays(target(), 1, 41, 1)
    assert np.isfinite(got).all() and error(got, np.full(got.shape, float(np.asarray(w, np.float64).sum()))) < 1e-5


def test_bf16_is_summed_in_f32() -> None:
    w, b, x = (v.astype(jnp.bfloat16) for v in (array(3, 3, 64, 3, seed=1), array(3, seed=2), array(1, 9, 10, 64)))
    fast = xcoexec.jit(conv(), strategy="host", strict=True).bind(w, b)
    got = fast(x)
    ran = {x.algorithm for x in fast.report().layers}
    assert summed(ran) is across.pays(target(), 3, 192, 3) and got.dtype == jnp.bfloat16
    assert error(got, oracle(conv(), *(np.asarray(v, np.float64) for v in (w, b, x)))) < 2**-8


def test_packed_weights_are_those_of_one_channel_after_the_other() -> None:
    w = np.arange(2 * 3 * 7 * 2, dtype=np.float32).reshape(2, 3, 7, 2)
    packed = across.pack(w, 4).reshape(2, 3, 14)
    for g, t in np.ndindex(2, 3):
        want = [*w[g, t, :4, 0], *w[g, t, :4, 1], *w[g, t, 4:, 0], *w[g, t, 4:, 1]]
        assert packed[g, t].tolist() == want


def test_what_does_not_pay() -> None:
    wide = target()
    assert not across.pays(wide, wide.vl // 2 + 1, 512, 9)  # vectors of channels are full enough
    assert not across.pays(wide, 1, wide.vl - 1, 9)  # a run is no vector
    assert not across.pays(wide, 1, wide.vl, 1)  # adding up takes longer than the products
