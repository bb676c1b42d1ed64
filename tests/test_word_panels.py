"""Products of two computed sides in bf16 and int8: panels of words as those of constant weights, and results beside
float64 and whole numbers.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.kernels import pairs
from xcoexec.codegen.kernels.word_panels import CHUNK
from xcoexec.codegen.native.build import kernel_address
from xcoexec.codegen.native.layout import MAX_RANK
from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import MATRIX_UNITS, Target, target
from xcoexec.partition.split import split

from .support import stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

HERE = target()
needs_bf16 = pytest.mark.skipif(HERE.unit("bfloat16", "gemm") is None, reason="a CPU without AVX512-BF16")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """F32, many of which bf16 does not have."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole_numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """F32 that int8 has, -128 among them."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.float32)


def rounded(x: np.ndarray) -> np.ndarray:
    return np.asarray(jnp.asarray(x).astype(jnp.bfloat16).astype(jnp.float32))


@pytest.mark.parametrize("isa", targets(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("name, step", [("avx512bf16", 1), ("avx512bf16", 16), ("avx512vnni", 1), ("s16", 16)])
@pytest.mark.parametrize("k, n", [(1, 1), (2, 5), (33, 40), (64, 16), (95, 7), (4 * CHUNK + 3, 19)])
def test_words_lie_as_those_of_constants(isa: Target, plain: bool, name: str, step: int, k: int, n: int) -> None:
    vectors, vl = 3, isa.vl
    unit = dataclasses.replace(MATRIX_UNITS[name], vl=0, step=step)
    bf16 = unit.dtype == "bfloat16"
    x, wide, filled = numbers(k, n) if bf16 else whole_numbers(k, n), vectors * vl, pairs.words(k, unit)
    blocks = -(-n // wide)
    kernel = kernel_address(("word_panel", vectors, step, plain, bf16, unit.per), isa)
    fn = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(kernel)
    laid = np.ascontiguousarray(x if plain else x.T)
    down, across = (laid.strides[0], 4) if plain else (4, laid.strides[0])
    out = np.full((blocks, filled * wide), np.nan, np.float32)
    words = np.array([n, k, filled, CHUNK, down, across], np.int64)
    for block in range(blocks):
        for chunk in range(-(-filled // CHUNK)):
            start = laid.ctypes.data + block * wide * across + unit.per * CHUNK * chunk * down
            where = np.array([start, out[block].ctypes.data + 4 * wide * CHUNK * chunk], np.int64)
            index = np.array([0] * (MAX_RANK - 2) + [block, chunk], np.int64)
            fn(where.ctypes.data, index.ctypes.data, words.ctypes.data)
    whole = np.zeros((1, 1, k, blocks * wide), np.float32)  # blocks as wide as the kernel's
    whole[0, 0, :, :n] = rounded(x) if bf16 else x
    want = pairs.pack_words(whole, vl, vectors, unit).reshape(blocks, filled // step, vectors, step, vl)
    got = out.reshape(want.shape)
    lanes = np.arange(blocks * wide).reshape(blocks, 1, vectors, 1, vl) < n
    there = np.broadcast_to(lanes, want.shape)
    np.testing.assert_array_equal(got.view(np.uint32)[there], want.view(np.uint32)[there])


def attention(x: Any, wq: Any, wk: Any, wv: Any, heads: int) -> tuple[Any, Any]:
    q, k, v = (jnp.reshape(x @ w, (*x.shape[:2], heads, -1)) for w in (wq, wk, wv))
    return jnp.einsum("bshd,bthd->bhst", q, k), jnp.einsum("bhst,bthd->bshd", jnp.einsum("bshd,bthd->bhst", q, k), v)


def run(fn: Any, *args: Any, weights: int) -> tuple[list[np.ndarray], set[str]]:
    """The results on kernels for this CPU, without its tiles, and the families that ran."""
    isa = dataclasses.replace(HERE, features=HERE.features.replace("+amx", "-amx"))
    folded, graph = stages_of(fn, *args, weights=weights)
    assert not [x.host_error for x in graph.layers if x.host_error]
    consts = folded.constants(args[:weights])
    segment = host.build(graph.program, 2, isa, pick=lambda groups, names, t: names[0], cut=split)
    inputs = [np.asarray(x).astype(np.float32) for x in args[weights:]]
    call = host.Call(segment, inputs, [consts[v] for v in graph.program.consts])
    return [np.array(x, np.float64) for x in call()], {a for s in segment.algorithms for a in s.split("+")}


@needs_bf16
@pytest.mark.parametrize(
    "batch, length, heads, depth", [(1, 128, 4, 64), (2, 33, 3, 19), (1, 47, 2, 1), (3, 17, 5, 8), (1, 300, 1, 80)]
)
def test_attention(batch: int, length: int, heads: int, depth: int) -> None:
    width = 24
    x = jnp.asarray(numbers(batch, length, width), jnp.bfloat16)
    made = [jnp.asarray(numbers(width, heads * depth, seed=s) / 5, jnp.bfloat16) for s in (1, 2, 3)]
    fn = lambda *args: attention(args[-1], *args[:-1], heads)
    found, families = run(fn, *made, x, weights=3)
    assert {"word_panel", "gemm(bfloat16)"} <= families
    assert depth == 1 or not {"panel", "gemm"} & families  # what one channel sums does not lie side by side
    for got, want, theirs in zip(found, exact(made, x, heads), jax.jit(fn)(*made, x), strict=True):
        wrong = lambda y, want=want: np.abs(np.asarray(y, np.float64).reshape(want.shape) - want).max()
        assert wrong(got) <= max(1.1 * wrong(theirs), 0.01 * np.abs(want).max())


def exact(weights: list[Any], x: Any, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """In float64, rounded to bf16 where the function has bf16."""
    bf16 = lambda y: rounded(np.asarray(y, np.float32)).astype(np.float64)
    q, k, v = (
        bf16(np.asarray(x, np.float64) @ np.asarray(w, np.float64)).reshape(*x.shape[:2], heads, -1) for w in weights
    )
    sums = bf16(np.einsum("bshd,bthd->bhst", q, k))
    return sums, np.einsum("bhst,bthd->bshd", sums, v)


@needs_bf16
@pytest.mark.parametrize("m, k, n", [(17, 31, 33), (40, 8, 100), (200, 257, 5), (64, 2, 1)])
@pytest.mark.parametrize("dims", [((1,), (0,)), ((1,), (1,))])
def test_products(m: int, k: int, n: int, dims: Any) -> None:
    """What computed sides come to is the same as with constants, to the last digit."""
    a = jnp.asarray(numbers(m, k), jnp.bfloat16)
    b = jnp.asarray(numbers(*((k, n) if dims[1] == (0,) else (n, k)), seed=1), jnp.bfloat16)
    two = jnp.asarray(2.0, jnp.bfloat16)
    computed = lambda two, a, b: jax.lax.dot_general(a * two, b * two, (dims, ((), ())))
    constant = lambda b, two, a: jax.lax.dot_general(a * two, b * 2, (dims, ((), ())))
    got, families = run(computed, two, a, b, weights=0)
    want, known = run(constant, b, two, a, weights=1)
    assert "word_panel" in families and "word_panel" not in known
    if "gemm(bfloat16)" in known:  # few channels are summed across lanes
        np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_allclose(got[0], np.asarray(computed(two, a, b), np.float64), rtol=0.02, atol=0.05)


@needs_bf16
def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    """An odd number of elements leaves half a word, which counts as 0 beside infinity and NaN."""
    a, b = numbers(20, 5), numbers(5, 18, seed=1)
    a[3, 4], b[2, 7] = np.inf, np.nan
    a, b, one = jnp.asarray(a, jnp.bfloat16), jnp.asarray(b, jnp.bfloat16), jnp.asarray(1.0, jnp.bfloat16)
    got, families = run(lambda one, a, b: (a * one) @ (b * one), one, a, b, weights=0)
    assert "word_panel" in families
    finite = np.isfinite(got[0])
    assert not finite[:, 7].any() and not finite[3].any() and np.delete(np.delete(finite, 3, 0), 7, 1).all()


def levels(x: Any, scale: float) -> Any:
    """Quantised to int8."""
    return jnp.clip(jnp.round(x * scale), -128, 127).astype(jnp.int8)


def quantised(x: Any, heads: int) -> tuple[Any, Any]:
    """Scores and weighted sums of int8 as qwix has them: transposed behind the scales."""
    q, k, v = (levels(x, s).reshape(*x.shape[:2], heads, -1) for s in (20.0, 31.0, 25.0))
    dims = (((3,), (3,)), ((2, 0), (2, 0)))
    scores = jax.lax.dot_general(k, q, dims, preferred_element_type=jnp.int32).astype(jnp.float32)
    scores = jnp.transpose(scores * 0.03, (1, 0, 3, 2)) / 8.0
    chances = levels(jax.nn.softmax(scores), 127.0)
    dims = (((1,), (3,)), ((2, 0), (1, 0)))
    sums = jax.lax.dot_general(v, chances, dims, preferred_element_type=jnp.int32).astype(jnp.float32)
    return scores, jnp.transpose(sums * 0.5, (1, 3, 0, 2))


@pytest.mark.parametrize("batch, length, heads, depth", [(1, 197, 3, 64), (2, 33, 3, 19), (3, 17, 5, 8), (1, 47, 2, 1)])
def test_attention_of_int8(batch: int, length: int, heads: int, depth: int) -> None:
    """Whole numbers are exact; nothing is transposed in a step of its own."""
    x = jnp.asarray(numbers(batch, length, heads * depth))
    fn = lambda x: quantised(x, heads)
    found, families = run(fn, x, weights=0)
    assert "word_panel" in families and (depth == 1 or not {"copy", "panel"} & families)
    for got, want in zip(found, jax.jit(fn)(x), strict=True):
        far = np.abs(got.reshape(want.shape) - np.asarray(want, np.float64))
        assert far.max() <= 2e-6 * np.abs(want).max() or (far > 0).mean() < 0.01  # a rounded level is the next one


@pytest.mark.parametrize("m, k, n", [(17, 31, 33), (40, 8, 100), (200, 1500, 5), (64, 2, 1), (33, 1030, 48)])
@pytest.mark.parametrize("dims", [((1,), (0,)), ((1,), (1,))])
def test_products_of_int8(m: int, k: int, n: int, dims: Any) -> None:
    a = jnp.asarray(whole_numbers(m, k))
    b = jnp.asarray(whole_numbers(*((k, n) if dims[1] == (0,) else (n, k)), seed=1))
    narrow = lambda x: (x + 0.0).astype(jnp.int8)
    fn = lambda a, b: jax.lax.dot_general(narrow(a), narrow(b), (dims, ((), ())), preferred_element_type=jnp.int32)
    got, families = run(fn, a, b, weights=0)
    assert "word_panel" in families
    exact = np.asarray(a, np.int64) @ (np.asarray(b, np.int64) if dims[1] == (0,) else np.asarray(b, np.int64).T)
    np.testing.assert_array_equal(got[0], exact)
