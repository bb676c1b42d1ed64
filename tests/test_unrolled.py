"""Loops that callers ask to be written out, and products that sum nothing: what runs is no loop and no product."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.frontend.unrolled import MOST_EQUATIONS

from .support import array, error

pytestmark = pytest.mark.usefixtures("quick_xla")
EXACT = 2e-6
X = array(6, 4, 5)


def ran(fast: Any, *args: Any) -> set[str]:
    return {name for x in fast.report(*args).layers for name in x.algorithm.split("+")}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 4, 6, 9, True])
def test_as_many_turns_as_are_asked_for(unroll: int, reverse: bool) -> None:
    def turns(x: Any) -> Any:
        turn = lambda c, v: (jnp.tanh(c * 0.5 + v), {"sum": c.sum(), "twice": c * 2})
        return lax.scan(turn, jnp.zeros((4, 5)), x, unroll=unroll, reverse=reverse)

    fast = xcoexec.jit(turns, strategy="host", strict=True)
    for got, want in zip(jax.tree.leaves(fast(X)), jax.tree.leaves(jax.jit(turns)(X)), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype and error(got, want) < EXACT
    assert ("loop" in ran(fast, X)) is (unroll in (1, 4) and unroll is not True)


def test_products_and_long_loops_stay_loops() -> None:
    x = array(6, 5, 5, seed=3)
    product = lambda x: lax.scan(lambda c, v: (jnp.tanh(c @ v), None), jnp.ones((3, 5)), x, unroll=True)[0]
    long = lambda x: lax.scan(lambda c, _: (jnp.tanh(c), None), x, None, MOST_EQUATIONS + 1, unroll=MOST_EQUATIONS + 1)[
        0
    ]
    for fn in (product, long):
        fast = xcoexec.jit(fn, strategy="host", strict=True)
        assert error(fast(x), jax.jit(fn)(x)) < 1e-4 and "loop" in ran(fast, x)


def test_gradients_pass_through() -> None:
    fn = lambda x: jnp.polyval(jnp.array([0.5, -1.0, 2.0]), x).sum()
    got, want = jax.grad(xcoexec.jit(fn))(X), jax.grad(fn)(X)
    assert error(got, want) < EXACT


SIZES = {"b": 3, "h": 2, "i": 4, "j": 5, "k": 1, "l": 6}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "equation",
    (
        *("i,j->ij", "i,j->ji", "bi,bj->bij", "bi,bj->bji", "ib,bj->bij", "ij,kl->ikjl", "b,bij->bij", "bhi,bhj->bhij"),
        *("ik,jk->ij", "ki,kj->ij", "bik,bkj->bij", "k,k->"),
    ),
)
def test_a_product_that_sums_nothing(equation: str, dtype: str) -> None:
    sides = equation.split("->")[0].split(",")
    p, q = (array(*(SIZES[c] for c in s), seed=i).astype(dtype) for i, s in enumerate(sides))
    fn = lambda p, q: jnp.einsum(equation, p, q)
    fast = xcoexec.jit(fn, strategy="host", strict=True)
    got, exact = fast(p, q), np.einsum(equation, np.asarray(p, np.float64), np.asarray(q, np.float64))
    assert got.dtype == p.dtype and got.shape == exact.shape
    assert error(got, exact) < {"float32": EXACT, "bfloat16": 2**-8, "float16": 2**-11}[dtype]
    if equation not in ("i,j->ji", "bi,bj->bji", "ib,bj->bij"):  # sides in another order than the result
        assert not {"gemm", "gemv"} & ran(fast, p, q)


def test_whole_numbers_stay_products() -> None:
    p, q = jnp.arange(-4, 4, dtype=jnp.int8), jnp.arange(5, dtype=jnp.int8)
    fn = lambda p, q: lax.dot_general(p, q, (((), ()), ((), ())), preferred_element_type=jnp.int32)
    assert np.array_equal(xcoexec.jit(fn)(p, q), np.outer(np.arange(-4, 4), np.arange(5)))
