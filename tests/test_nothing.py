"""Arrays of no elements, which `jnp.roll` by 0 and slices make, in all kinds of operations, inside of loops too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec

from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")

NHWC = ("NHWC", "HWIO", "NHWC")
CASES: dict[str, Callable[[Any], Any]] = {
    "roll": lambda g: jnp.roll(g, (0, 1), (0, 1)) * 2,
    "product": lambda g: g + g[:, :0] @ g[:0, :],
    "concatenate": lambda g: jnp.concatenate([g[:0], g, g[:0]]) + 1,
    "sums": lambda g: g + g[:0].sum(0) + g[:, :0].sum(1, keepdims=True) + g[:0].prod(),
    "softmax": lambda g: g + jax.nn.softmax(g[:0], 1).sum(),
    "sort": lambda g: g + jnp.sort(g[:, :0], 1).sum() + jnp.cumsum(g[:0], 0).sum(),
    "update": lambda g: lax.dynamic_update_slice(g, g[:0], (0, 0)) * 1.5,
    "slice": lambda g: g + lax.dynamic_slice(g, (jnp.int32(1), jnp.int32(0)), (0, 4)).sum(),
    "gather": lambda g: g + g[jnp.zeros((0,), int)].sum(),
    "scatter": lambda g: g.at[jnp.zeros((0,), int)].add(1.0),
    "pad": lambda g: jnp.pad(g[:0], ((1, 3), (0, 0))) + g,
    "pool": lambda g: g + lax.reduce_window(g[:0], 0.0, lax.add, (1, 2), (1, 1), "SAME").sum(),
    "convolution": lambda g: (
        g
        + lax.conv_general_dilated(
            g[None, :0, :, None], jnp.ones((1, 1, 1, 2)), (1, 1), "SAME", dimension_numbers=NHWC
        ).sum()
    ),
    "scan": lambda g: lax.scan(lambda c, t: (c + t, c * t), g[0], g[:0])[0] + g,
    "outer": lambda g: jnp.outer(g[:, 0], g[0, :0]).sum() + g,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("around", ["alone", "loop", "vmap"])
def test_results_are_those_of_jax(name: str, around: str) -> None:
    f, g = CASES[name], array(4, 4)
    if around == "loop":
        fn: Callable[[Any], Any] = lambda g: lax.fori_loop(0, 3, lambda i, g: f(g), g)
    else:
        fn = jax.vmap(f) if around == "vmap" else f
        g = jnp.stack([g, g + 1]) if around == "vmap" else g
    jitted = xcoexec.jit(fn, strategy="host", wait=True)
    np.testing.assert_allclose(np.asarray(jitted(g)), np.asarray(jax.jit(fn)(g)), rtol=1e-5, atol=1e-6)
    assert "error of xcoexec" not in str(jitted.report(g))
