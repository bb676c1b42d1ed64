"""Products of rows in groups (`jax.lax.ragged_dot`) and mixtures by one-hot vectors: only what is chosen is read."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.runtime import host
from xcoexec.frontend.graph import graph_of

from .oracle import error
from .support import array, co

pytestmark = pytest.mark.usefixtures("quick_xla")

G, K, N = 7, 130, 133
SIZES = {
    "a few rows": [0, 2, 0, 0, 1, 1, 0],
    "rows of no group": [0, 2, 0, 0, 1, 0, 0],
    "as many as groups": [1] * G,
    "one group": [0, 0, 0, 40, 0, 0, 0],
    "uneven blocks": [9, 0, 31, 1, 16, 17, 3],
    "the last ones": [0, 0, 0, 0, 0, 5, 95],
    "blocks, and rows of no group": [3, 0, 0, 12, 0, 25, 1],
}
ROWS = {"rows of no group": 5, "blocks, and rows of no group": 64}


def _products(x: Any, w: Any, sizes: list[int]) -> np.ndarray:
    wide, out, at = np.asarray(w, np.float64), np.zeros((len(x), w.shape[2])), 0
    for g, n in enumerate(sizes):
        out[at : at + n] = np.asarray(x, np.float64)[at : at + n] @ wide[g]
        at += n
    return out


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("case", SIZES)
def test_rows_in_groups(case: str, dtype: str) -> None:
    sizes = SIZES[case]
    w, x = array(G, K, N, low=-9, high=9).astype(dtype), array(ROWS.get(case, sum(sizes)), K, seed=1)
    fn = lambda w, x, s: jax.lax.ragged_dot(x, w.astype(x.dtype), s) + 1
    group = jnp.asarray(sizes, jnp.int32)
    _, graph = graph_of(fn, (w, x, group), 1)
    assert not any(layer.host_error for layer in graph.layers)
    segment = host.build(graph.program, 2)
    assert "gemv" in {n for names in segment.algorithms for n in names.split("+")}
    assert {v.dtype for v in segment.raw} - {"int32"} == {dtype}, "the matrices are read as they are stored"
    assert error(co(fn, w, strategy="host")(x, group), _products(x, w, sizes) + 1) < 2e-6


def test_random_groups() -> None:
    rng = np.random.default_rng(0)
    w = array(G, K, N)
    for rows in (1, 6, 7, 8, 50, 113):
        fast = co(lambda w, x, s: jax.lax.ragged_dot(x, w, s), w, strategy="host")
        for _ in range(8):
            sizes = rng.multinomial(rng.integers(0, rows + 1), rng.dirichlet(np.full(G, 0.3)))
            x = array(rows, K, seed=rows)
            assert error(fast(x, jnp.asarray(sizes, jnp.int32)), _products(x, w, list(sizes))) < 2e-6


def test_a_layer_reads_the_matrices_of_its_rows() -> None:
    w, x = array(G, K, N), array(2, K, seed=1)
    _, graph = graph_of(lambda w, x, s: jax.lax.ragged_dot(x, w, s), (w, x, jnp.ones(G, jnp.int32)), 1)
    (layer,) = [x for x in graph.layers if any(op.prim == "gather" for op in x.ops)]
    assert layer.nbytes < 3 * 4 * K * N, "two of seven"


E = 12  # experts of K x H, more than 64 KiB each
H = 520


def _mixture(w: Any, x: Any, choice: Any) -> Any:
    """Each token's choices, added up."""
    hot = jax.nn.one_hot(choice, E, dtype=x.dtype)  # [tokens, choices, experts]
    each = jnp.einsum("tke,td->etd", hot, x)
    return jnp.einsum("etf,tke->tf", jnp.tanh(jnp.einsum("etd,edf->etf", each, w.astype(x.dtype)) / 99), hot)


def _with_room(w: Any, x: Any, choice: Any) -> Any:
    """Two places in each expert; who comes later is left out."""
    hot = jax.nn.one_hot(choice[:, 0], E)
    place = (jnp.cumsum(hot, 0) * hot - 1).astype(jnp.int32)
    dispatch = hot[..., None] * jax.nn.one_hot(place, 2)  # [tokens, experts, places]
    y = jnp.einsum("ecd,edf->ecf", jnp.einsum("tec,td->ecd", dispatch, x), w.astype(x.dtype))
    return jnp.einsum("ecf,tec->tf", y, dispatch)


CHOICES = jnp.asarray([[3, 7], [3, 3], [0, 11], [3, 1]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
@pytest.mark.parametrize("fn", [_mixture, _with_room])
def test_mixtures_by_one_hot_vectors(fn: Any, dtype: str) -> None:
    w, x = array(E, K, H, low=-9, high=9).astype(dtype), array(4, K, seed=1)
    _, graph = graph_of(fn, (w, x, CHOICES), 1)
    (layer,) = [g for g in graph.layers if any(op.prim == "gather" and op.out.shape[0] == E for op in g.ops)]
    assert not layer.host_error and layer.group.anchor.prim == "dot_general"
    with jax.enable_x64():
        wanted = fn(np.asarray(w, np.float64), np.asarray(x, np.float64), CHOICES)
    assert error(co(fn, w, strategy="host")(x, CHOICES), np.asarray(wanted)) < 5e-6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_is_read(odd: float, dtype: str) -> None:
    """0 times infinity is no 0, whoever has chosen it."""
    w, x = array(E, K, H).at[5, 3, 7].set(odd).astype(dtype), array(4, K, seed=1)
    got, wanted = co(_mixture, w, strategy="host")(x, CHOICES), jax.jit(_mixture)(w, x, CHOICES)
    assert np.array_equal(np.isnan(got), np.isnan(wanted)) and np.isnan(got).any()
    seen = ~np.isnan(np.asarray(wanted))
    assert error(np.asarray(got)[seen], np.asarray(wanted, np.float64)[seen]) < 5e-6


def test_products_of_other_rows_are_left_alone() -> None:
    w, x = array(E, K, H), array(E, 4, K, seed=1)
    _, graph = graph_of(lambda w, x: jnp.einsum("etd,edf->etf", x, w), (w, x), 1)
    assert [op.prim for layer in graph.layers for op in layer.ops] == ["dot_general"]


def test_other_products_of_groups_are_left_alone() -> None:
    """The gradient of the matrices sums over the rows of each group."""
    w, x, sizes = array(G, 9, 11), array(12, 9, seed=1), jnp.asarray([0, 2, 0, 4, 1, 5, 0])
    loss = lambda w, x: (jax.lax.ragged_dot(x, w, sizes) ** 2).sum()
    fast = co(lambda x, w: jax.grad(loss, (0, 1))(w, x), x)
    for got, want in zip(fast(w), jax.grad(loss, (0, 1))(w, x), strict=True):
        assert error(got, np.asarray(want, np.float64)) < 1e-5
