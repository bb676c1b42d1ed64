"""Gathers and scatters along an inner axis run on kernels, as ones of whole rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.compat.jaxprs import equations
from xcoexec.frontend.along import by_rows

from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")

AT = jnp.asarray([3, 0, 3, 5, 1, 6, 2], jnp.int32)  # some twice, one that no axis of 6 has
FAR = jnp.asarray([-9, -1, 2, 40], jnp.int32)
READS: dict[str, Callable[[Any], Any]] = {
    "the second axis": lambda x: x[:, AT[:5]],
    "the third axis": lambda x: x[:, :, AT],
    "the last axis": lambda x: x[..., AT[:3]],
    "clipped": lambda x: jnp.take(x, FAR, 1, mode="clip"),
    "filled": lambda x: jnp.take(x, FAR, 2, mode="fill"),
    "promised": lambda x: x.at[:, AT[:3]].get(mode="promise_in_bounds"),
    "a matrix of numbers": lambda x: x[:, AT[:6].reshape(2, 3)],
    "nearest": lambda x: jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 3 * x.shape[2], x.shape[3]), "nearest"),
    "nearest, smaller": lambda x: jax.image.resize(x, (x.shape[0], 3, 4, x.shape[3]), "nearest"),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "set": lambda x: x.at[:, jnp.asarray([3, 1])].set(2.0),
    "add": lambda x: x.at[:, :, AT].add(x[:, :, AT] * 2),
    "add, promised": lambda x: x.at[:, AT[:5]].add(1.5, mode="promise_in_bounds"),
    "mul": lambda x: x.at[:, FAR].mul(3.0),
    "min": lambda x: x.at[:, :, FAR].min(0.25),
    "max": lambda x: x.at[..., AT[:2]].max(0.75, mode="clip"),
    "derivative of reads": jax.grad(lambda x: (x[:, AT[:5]] ** 3).sum()),
    "derivative of nearest": jax.grad(
        lambda x: (jax.image.resize(x, (x.shape[0], 17, 12, x.shape[3]), "nearest") ** 2).sum()
    ),
}
CASES = READS | WRITES


def same(fast: Any, *args: Any, fn: Callable[..., Any], close: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(fast(*args)), np.asarray(jax.jit(fn)(*args)), rtol=close, atol=close)
    assert fast.report(*args).ran == "xco"
    left = {x.name: x.host_error for x in fast.graph(*args).layers if x.host_error}
    assert left == {}


@pytest.mark.parametrize("shape", [(2, 6, 7, 5), (1, 9, 8, 16), (3, 7, 7, 33)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_on_kernels(name: str, shape: tuple[int, ...]) -> None:
    same(xcoexec.jit(CASES[name], strategy="host"), array(*shape), fn=CASES[name])


@pytest.mark.parametrize("name", ["the second axis", "clipped", "a matrix of numbers"])
def test_beside_numpy(name: str) -> None:
    """JAX's own semantics are not the only oracle."""
    x = np.asarray(array(2, 6, 7, 5))
    at = {"the second axis": AT[:5], "clipped": np.clip(FAR, 0, 5), "a matrix of numbers": AT[:6].reshape(2, 3)}[name]
    wanted = np.take(x, np.minimum(np.asarray(at), 5), 1)
    np.testing.assert_array_equal(np.asarray(xcoexec.jit(READS[name], strategy="host")(x)), wanted)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "bool"])
def test_other_types(dtype: str) -> None:
    fn = lambda x: x[:, AT[:5]]
    same(xcoexec.jit(fn, strategy="host"), jnp.asarray(array(2, 6, 7, 5) * 4, dtype), fn=fn)


def test_inside_of_a_loop() -> None:
    """One such operation left all of a loop's body to XLA."""

    def fn(w: Any, x: Any) -> Any:
        def turn(_: Any, y: Any) -> Any:
            big = jax.image.resize(y, (2, 12, 12, 8), "nearest")
            return jnp.tanh(big[:, ::2, ::2] @ w)

        return jax.lax.fori_loop(0, 5, turn, x)

    same(xcoexec.jit(fn, strategy="host"), array(8, 8), array(2, 6, 6, 8), fn=fn, close=2e-5)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[AT[:2]],
        lambda x: x[AT[:2], AT[:2]],
        lambda x: jax.lax.dynamic_slice(x, (0, 1, 0, 0), (2, 3, 7, 5)),
        lambda x: x[:, jnp.zeros((0,), jnp.int32)],
        lambda x: x[:, 2],
        lambda x: jnp.tile(x, (200, 8, 8, 1))[..., AT],  # a number for each element
    ],
)
def test_what_is_none(fn: Callable[[Any], Any]) -> None:
    gathers = [e for e in equations(jax.make_jaxpr(fn)(array(2, 6, 7, 5))) if e.primitive.name == "gather"]
    assert all(by_rows(e) is None for e in gathers)
