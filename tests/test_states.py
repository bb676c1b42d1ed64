"""States of bf16 and f16 that a call renews in part, key-value caches for example, stay in their own type."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.codegen.segment.sharing import shareable
from xcoexec.partition.split import split

from .support import stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

LENGTH, HEADS, DEPTH = 640, 4, 64


def numbers(*shape: int, dtype: Any = jnp.bfloat16, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def token(x: Any, keys: Any, values: Any, at: Any) -> tuple[Any, Any, Any]:
    """One more row of both caches, and attention over all rows up to it."""
    row = jnp.reshape(x, (1, 1, HEADS, DEPTH))
    keys, values = (lax.dynamic_update_slice(c, row * s, (0, at, 0, 0)) for c, s in ((keys, 1), (values, 2)))
    scores = jnp.einsum("bqhd,bkhd->bhqk", row, keys).astype(jnp.float32) / 8
    seen = jax.nn.softmax(jnp.where(jnp.arange(LENGTH) <= at, scores, -1e9)).astype(x.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", seen, values), keys, values


def arguments(dtype: Any, length: int = LENGTH) -> tuple[jax.Array, ...]:
    caches = (numbers(1, length, HEADS, DEPTH, dtype=dtype, seed=s) for s in (1, 2))
    return numbers(1, HEADS * DEPTH, dtype=dtype), *caches, jnp.asarray(100, jnp.int32)


def built(fn: Any, *args: Any) -> Segment:
    _, graph = stages_of(fn, *args, weights=0)
    assert not [x.host_error for x in graph.layers if x.host_error]
    return host.build(graph.program, 2, pick=lambda groups, names, t: names[0], cut=split, as_stored=True)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_a_cache_is_read_and_renewed_where_it_lies(dtype: Any) -> None:
    args = arguments(dtype)
    segment = built(token, *args)
    assert {"row_gemv", "gemv"} <= {f for a in segment.algorithms for f in a.split("+")}
    assert segment.arena_bytes < args[1].nbytes  # no copy of a cache is among what is between
    by_place = {i: v.shape for i, v in enumerate(segment.program.inputs)}
    renewed = {by_place[i] for i, _ in shareable(segment) if len(by_place[i]) == 4}
    assert renewed == {args[1].shape}


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("donated", [False, True])
def test_tokens(dtype: Any, donated: bool) -> None:
    """Row after row, beyond the end too, where the last row is renewed."""
    _, keys, values, _ = arguments(dtype)
    fast = xcoexec.jit(
        token, strategy="host", strict=True, wait=True, threads=2, donate_argnums=(1, 2) if donated else ()
    )
    mine, theirs = (keys + 0, values + 0), (keys, values)
    for step, at in enumerate((0, 5, LENGTH - 1, LENGTH + 7, -3)):
        x = numbers(1, HEADS * DEPTH, dtype=dtype, seed=10 + step)
        before = [np.asarray(c) for c in mine]
        given = mine
        got, *mine_now = fast(x, *mine, jnp.asarray(at, jnp.int32))
        want, *theirs_now = jax.jit(token)(x, *theirs, jnp.asarray(at, jnp.int32))
        for ours, true in zip(mine_now, theirs_now, strict=True):
            np.testing.assert_array_equal(np.asarray(ours, np.float32), np.asarray(true, np.float32))
        if not donated:
            for old, c in zip(before, given, strict=True):
                np.testing.assert_array_equal(np.asarray(c, np.float32), old.astype(np.float32))
        np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(want, np.float32), rtol=0.03, atol=0.03)
        mine, theirs = tuple(mine_now), tuple(theirs_now)
    layers = fast.report(x, *mine, jnp.asarray(1, jnp.int32)).layers
    assert any("row_gemv" in layer.algorithm for layer in layers)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int32])
@pytest.mark.parametrize("mode", [None, "clip", "drop", "promise_in_bounds"])
def test_rows_that_indexing_sets(dtype: Any, mode: str | None) -> None:
    """What does not lie inside is dropped, or moved inside, as JAX does it; no scatter is left."""
    random, set_mode = np.random.default_rng(0), {} if mode is None else {"mode": mode}
    x, u = (jnp.asarray(random.integers(-9, 9, size=shape), dtype) for shape in ((8, 6, 20), (8, 20)))
    cases = [
        lambda x, u, at: x.at[:, at].set(u, **set_mode),
        lambda x, u, at: x.at[at].set(u[:6], **set_mode),
        lambda x, u, at: x.at[2, at].set(u[0], **set_mode),
        lambda x, u, at: x.at[at, 1:4].set(u[:3], **set_mode),
        lambda x, u, at: x.at[at, at].set(u[1], **set_mode),
    ]
    for fn in cases:
        _, graph = stages_of(fn, x, u, jnp.asarray(0, jnp.int32), weights=0)
        assert {"scatter"}.isdisjoint(op.prim for op in graph.program.ops)
        fast, plain = xcoexec.jit(fn, strategy="host", wait=True, threads=2), jax.jit(fn)
        for at in (-40, -3, 0, 5, 6, 7, 30):
            where = jnp.asarray(at, jnp.int32)
            np.testing.assert_array_equal(np.asarray(fast(x, u, where)), np.asarray(plain(x, u, where)))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_a_cache_that_indexing_renews_stays_in_its_type(dtype: Any) -> None:
    def fn(x: Any, keys: Any, at: Any) -> tuple[Any, Any]:
        row = jnp.reshape(x, (1, 1, HEADS, DEPTH))
        keys = keys.at[:, at].set(row[:, 0])
        return jnp.einsum("bqhd,bkhd->bhqk", row, keys), keys

    x, keys, _, at = arguments(dtype)
    segment = built(fn, x, keys, at)
    assert segment.arena_bytes < keys.nbytes
    fast = xcoexec.jit(fn, strategy="host", strict=True, wait=True, threads=2, donate_argnums=1)
    for place in (0, 77, LENGTH + 5, -1):
        got, mine = fast(x, keys + 0, jnp.asarray(place, jnp.int32))
        want, theirs = jax.jit(fn)(x, keys, jnp.asarray(place, jnp.int32))
        np.testing.assert_array_equal(np.asarray(mine, np.float32), np.asarray(theirs, np.float32))
        np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(want, np.float32), rtol=0.02, atol=0.05)


def both(x: Any, u: Any, at: Any) -> Any:
    """What comes is read behind the update, in f32."""
    y = lax.dynamic_update_slice(x, u, (at, 0))
    return y, jnp.sum(x.astype(jnp.float32) * 2, axis=0), jnp.max(y.astype(jnp.float32), axis=0)


def twice(x: Any, u: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(x, u, (at, 0)), lax.dynamic_update_slice(x, u * 2, (at + 1, 0))


def kept(x: Any, u: Any, at: Any) -> Any:
    return x, lax.dynamic_update_slice(x, u, (at, 0))


def again(x: Any, u: Any, at: Any) -> Any:
    y = lax.dynamic_update_slice(x, u, (at, 0))
    return y, lax.dynamic_update_slice(y, u * 2, (at + 2, 0))


def computed(x: Any, u: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(x * 2, u, (at, 0)), x


def columns(x: Any, u: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(x, u[:, :4], (at, at)), x.astype(jnp.float32).sum()


def turned(x: Any, u: Any, at: Any) -> Any:
    """What is put in does not lie in rows."""
    return lax.dynamic_update_slice(x, (u.T * 2).T, (at, 0)), x[:, 0].astype(jnp.float32)


def product(x: Any, u: Any, at: Any) -> Any:
    """More rows than are read where the state lies."""
    y = lax.dynamic_update_slice(x, u, (at, 0))
    return y, jnp.tile(u, (20, 1)) @ y.T


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("width", [8, 7])
@pytest.mark.parametrize("donated", [False, True])
@pytest.mark.parametrize(
    "fn", [both, twice, kept, again, computed, columns, turned, product], ids=lambda fn: fn.__name__
)
def test_other_uses_of_a_state(fn: Any, donated: bool, width: int, dtype: Any) -> None:
    make = lambda: (numbers(50, width, dtype=dtype), numbers(3, width, dtype=dtype, seed=1), jnp.asarray(9, jnp.int32))
    donate = (0,) if donated else ()
    fast = xcoexec.jit(fn, strategy="host", strict=True, wait=True, threads=2, donate_argnums=donate)
    for _ in range(2):
        x, u, at = make()
        got = fast(x, u, at)
        if not donated:
            np.testing.assert_array_equal(np.asarray(x, np.float32), np.asarray(make()[0], np.float32))
        for ours, true in zip(got, jax.jit(fn)(*make()), strict=True):
            assert ours.dtype == true.dtype
            np.testing.assert_allclose(np.asarray(ours, np.float64), np.asarray(true, np.float64), rtol=0.02, atol=0.02)


def no_result(x: Any, y: Any) -> Any:
    """No result has the type of what it reads."""
    return jnp.tanh(x @ y).sum()


def one_unread(x: Any, y: Any) -> Any:
    """The result comes in the place of the second argument."""
    return jnp.tanh(y @ y)


def two_for_one(x: Any, y: Any) -> Any:
    """The result comes in the place of the first argument alone."""
    return jnp.tanh(x @ y)


def both_ways(x: Any, y: Any) -> Any:
    """One result goes through."""
    return jnp.tanh(x @ y), x


def a_constant(x: Any, y: Any) -> Any:
    """A number that is known comes in the place of the first argument."""
    return jnp.float32(1.0), jnp.tanh(y @ y) * jnp.sum(x)


@pytest.mark.parametrize("fn", [no_result, one_unread, two_for_one, both_ways, a_constant], ids=lambda fn: fn.__name__)
def test_what_no_result_takes_is_not_given_away(fn: Any, own_cache: None) -> None:
    """As with `jax.jit`, whose warning comes at its own compilation, and neither with a plan's nor while it is made."""
    shapes = ((), (32, 32)) if fn is a_constant else ((32, 32), (32, 32))
    make = lambda: [jnp.asarray(numbers(*shape), jnp.float32) for shape in shapes]
    plain, theirs = jax.jit(fn, donate_argnums=(0, 1)), make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        true = plain(*theirs)
    for options in ({"strategy": "host", "strict": True}, {"wait": False}):
        fast = xcoexec.jit(fn, donate_argnums=(0, 1), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fast(*make())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(300 if "wait" in options else 2):
                fast(*make())
            fast.ready()
            ours = make()
            got = fast(*ours)
        assert "fallback" not in fast.report(*make()).why
        assert [x.is_deleted() for x in ours] == [x.is_deleted() for x in theirs]
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(true), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
