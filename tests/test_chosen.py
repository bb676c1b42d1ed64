"""Products with matrices that indices choose (experts), with large computed matrices (a key-value cache), and rows of
narrow tables: read where they lie, against float64 NumPy.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec import models
from xcoexec.codegen.rules.products import FAR_BYTES
from xcoexec.codegen.runtime import host
from xcoexec.frontend.graph import graph_of

from .oracle import error
from .support import array, co

pytestmark = pytest.mark.usefixtures("quick_xla")

E, K, N = 6, 130, 133
TYPES = ("float32", "bfloat16", "float16", "int8")
INDEX = jnp.asarray([[1, 5], [0, 0], [4, 3]])

#: einsum of x and the chosen matrices -> (x's shape, which indices)
PRODUCTS = {
    "d,kdf->kf": ((K,), INDEX[0]),
    "kd,kdf->kf": ((2, K), INDEX[0]),
    "kd,kdf->fk": ((2, K), INDEX[0]),
    "kmd,kdf->kmf": ((2, 11, K), INDEX[0]),
    "td,tkdf->tkf": ((3, K), INDEX),
    "td,tkdf->ktf": ((3, K), INDEX),
    "tmd,tkdf->mtkf": ((3, 4, K), INDEX),
    "kd,kdf->f": ((2, K), INDEX[0]),
    "tkd,tkdf->tf": ((3, 2, K), INDEX),
    "tmkd,tkdf->tmf": ((3, 9, 2, K), INDEX),
}


def _experts(dtype: str) -> jax.Array:
    return (array(E, K, N, low=-9, high=9)).astype(dtype)


def _wide(*arrays: Any) -> list[np.ndarray]:
    return [np.asarray(a, np.float64) for a in arrays]


def _segment(fn: Any, weights: Any, *args: Any) -> tuple[host.Segment, set[str]]:
    """The kernels of a function, and the names of their families."""
    segment = host.build(graph_of(fn, (weights, *args), 1)[1].program, 1)
    return segment, set("+".join(segment.algorithms).split("+"))


@pytest.mark.parametrize(("how", "dtype"), itertools.product(PRODUCTS, TYPES))
def test_chosen_matrices(how: str, dtype: str) -> None:
    (shape, index), w = PRODUCTS[how], _experts(dtype)
    x = array(*shape, seed=1)

    def fn(w: Any, x: Any, i: Any) -> Any:
        return jnp.einsum(how, x, w[i].astype(x.dtype)) * 2 + 1

    segment, families = _segment(fn, w, x, index)
    assert "gather" not in families and "gemv" in families
    assert [v.dtype for v in segment.raw] == [dtype], "the table is an operand as it is stored"
    wide_x, wide_w = _wide(x, w)
    assert error(co(fn, w, strategy="host")(x, index), np.einsum(how, wide_x, wide_w[np.asarray(index)]) * 2 + 1) < 2e-6


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_an_index_outside(mode: str, threads: int) -> None:
    w, x, index = _experts("bfloat16"), array(4, K, seed=1), jnp.asarray([1, E, -E - 1, 2])

    def fn(w: Any, x: Any, i: Any) -> Any:
        return jnp.einsum("kd,kdf->kf", x, jnp.take(w, i, axis=0, mode=mode).astype(x.dtype))

    assert "gemv" in _segment(fn, w, x, index)[1]
    out = np.asarray(co(fn, w, threads=threads, strategy="host")(x, index))
    wide_x, wide_w = _wide(x, w)
    near = np.einsum("kd,kdf->kf", wide_x, wide_w[np.clip([1, E, -E - 1, 2], 0, E - 1)])
    rows = [0, 3] if mode == "fill" else [0, 1, 2, 3]
    assert error(out[rows], near[rows]) < 2e-6
    assert np.isnan(out[[1, 2]]).all() == (mode == "fill")


def test_what_is_chosen_is_also_a_result() -> None:
    w, x = _experts("float32"), array(2, K, seed=1)

    def fn(w: Any, x: Any, i: Any) -> Any:
        mine = w[i]
        return mine, jnp.einsum("kd,kdf->kf", x, mine)

    taken, out = co(fn, w, strategy="host")(x, INDEX[0])
    wide_x, wide_w = _wide(x, w)
    assert np.array_equal(taken, np.asarray(w)[np.asarray(INDEX[0])])
    assert error(out, np.einsum("kd,kdf->kf", wide_x, wide_w[np.asarray(INDEX[0])])) < 2e-6


def test_both_sides_are_the_same_chosen_matrices() -> None:
    w = _experts("float32")
    fn = lambda w, i: jnp.einsum("kdf,kef->kde", w[i], w[i])
    (wide,) = _wide(w)
    taken = wide[np.asarray(INDEX[0])]
    assert error(co(fn, w, strategy="host")(INDEX[0]), np.einsum("kdf,kef->kde", taken, taken)) < 2e-6


def test_a_layer_of_experts_reads_the_chosen_ones() -> None:
    experts = models.moe.Experts(models.moe.Routing(experts=12, chosen=2, hidden=200))
    x = array(1, 2, 160, seed=3)
    variables = experts.init(jax.random.key(0), x)
    graph = graph_of(experts.apply, (variables, x), 1)[1]
    layers = [layer for layer in graph.layers if any(op.prim == "gather" for op in layer.group.ops)]
    assert len(layers) == 3 and all(layer.group.anchor.prim == "dot_general" for layer in layers)
    matrix = 160 * 200 * 4
    assert all(4 * matrix <= layer.nbytes < 5 * matrix for layer in layers), "four of twelve matrices are read"
    with jax.enable_x64():
        wide = jax.tree.map(lambda v: v.astype(np.float64), variables)
        wanted = experts.apply(wide, x.astype(np.float64))
    assert error(co(experts.apply, variables, strategy="host")(x), wanted) < 2e-6


@pytest.mark.parametrize("positions", [300, 1025, 8200])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("heads", "tokens"), [(8, 1), (3, 1), (2, 3), (1, 1)])
def test_attention_over_a_cache(positions: int, threads: int, heads: int, tokens: int) -> None:
    groups, dim = 4, 72
    q = array(1, tokens, groups, heads, dim)
    keys, values = (array(1, positions, groups, dim, seed=i) for i in (1, 2))

    def fn(q: Any, keys: Any, values: Any, position: Any) -> Any:
        scores = jnp.einsum("ntgrd,nsgd->ngrts", q, keys) / 8
        seen = jnp.arange(positions)[None, :] <= position + jnp.arange(tokens)[:, None]
        scores = jax.nn.softmax(jnp.where(seen, scores, -1e30))
        return jnp.einsum("ngrts,nsgd->ntgrd", scores, values)

    graph = graph_of(fn, (q, keys, values, jnp.int32(7)), 0)[1]
    segment = host.build(graph.program, threads)
    families = set("+".join(segment.algorithms).split("+"))
    far = 4 * positions * groups * dim >= (FAR_BYTES // 4 if heads * tokens == 1 else FAR_BYTES)
    assert "row_gemv" in families and ("gemv" in families) == far, segment.algorithms
    wide_q, wide_k, wide_v = _wide(q, keys, values)
    scores = np.einsum("ntgrd,nsgd->ngrts", wide_q, wide_k) / 8
    seen = np.arange(positions)[None, :] <= 7 + np.arange(tokens)[:, None]
    scores = np.exp(np.where(seen, scores, -np.inf) - np.where(seen, scores, -np.inf).max(-1, keepdims=True))
    wanted = np.einsum("ngrts,nsgd->ntgrd", scores / scores.sum(-1, keepdims=True), wide_v)
    call = co(fn, threads=threads, strategy="host")
    assert error(call(q, keys, values, jnp.int32(7)), wanted) < 2e-6


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3001, 131), (600_000,), (70, 40, 131)])
def test_rows_of_a_narrow_table(dtype: str, shape: tuple[int, ...]) -> None:
    w, index = (array(*shape, low=-9, high=9)).astype(dtype), jnp.asarray([[0, 5, shape[0] - 1], [7, -1, 3]])

    def fn(w: Any, i: Any) -> Any:
        return w[i].astype(jnp.float32) * 2

    segment, _ = _segment(fn, w, index)
    assert [v.dtype for v in segment.raw] == [dtype]
    assert np.array_equal(co(fn, w, strategy="host")(index), np.asarray(w)[np.asarray(index)].astype(np.float32) * 2)
