"""What `docs/extending.md` says is enough: one file (in `tests/toys`) and one table line, undone after the test."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.kernels import block_shapes
from xcoexec.codegen.rules.numpy_rules import Array
from xcoexec.codegen.rules.primitives import PRIMITIVES
from xcoexec.codegen.target import MATRIX_UNITS, Target, target
from xcoexec.planning.strategies import STRATEGIES

from .support import array
from .toys import alternating, cumulative, tiled


def _algorithms(fast: Any, *args: Any) -> list[str]:
    return [layer.algorithm for layer in fast.report(*args).layers]


def test_a_kernel_family(monkeypatch: pytest.MonkeyPatch) -> None:
    fn = lambda x: jnp.tanh(jnp.cumsum(x * 0.5, 2))
    x = array(3, 4, 37)
    want = np.tanh(np.cumsum(np.asarray(x, np.float64) * 0.5, 2))
    without = xcoexec.jit(fn, strategy="host")
    np.testing.assert_allclose(without(x), want, rtol=1e-5, atol=1e-6)
    assert not any("toy_cumsum" in a for a in _algorithms(without, x))

    entry = dataclasses.replace(PRIMITIVES["cumsum"], reference=_reference, kernel=f"{cumulative.__name__}.cumsum")
    monkeypatch.setitem(PRIMITIVES, "cumsum", entry)
    fast = xcoexec.jit(fn, strategy="host", strict=True)
    np.testing.assert_allclose(fast(x), want, rtol=1e-5, atol=1e-6)
    assert any("toy_cumsum" in a for a in _algorithms(fast, x))


def _reference(op: Any, x: Array) -> Array:
    return np.cumsum(x, op.params["axis"])


def test_a_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    w = [array(16, 16, seed=i, low=-0.2, high=0.2) for i in range(3)]
    fn = lambda w, x: x @ w[0] @ w[1] @ w[2]
    x = array(5, 16)
    with pytest.raises(ValueError, match="got strategy='alternating'"):
        xcoexec.jit(fn, strategy="alternating")
    monkeypatch.setitem(STRATEGIES, "alternating", alternating.alternating)
    fast = xcoexec.jit(fn, strategy="alternating").bind(w)
    np.testing.assert_allclose(fast(x), x @ w[0] @ w[1] @ w[2], rtol=1e-4, atol=1e-5)
    assert fast.plan().strategy == "alternating"
    assert [p.half for p in fast.plan().placements] == ["host", "device", "host"]
    assert ["gemm" in a for a in _algorithms(fast)] == [True, False, True]


def test_a_matrix_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    w, v = array(3, 3, 4, 40, low=-0.2, high=0.2), array(40, 24, seed=1, low=-0.2, high=0.2)
    nhwc = ("NHWC", "HWIO", "NHWC")
    fn = lambda w, x: lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=nhwc) @ w[1]
    x = array(1, 6, 7, 4, seed=2)
    want = np.asarray(jax.jit(fn)((w, v), x))
    monkeypatch.setitem(MATRIX_UNITS, tiled.TILED.name, tiled.TILED)
    assert target().unit("float32") is tiled.TILED
    assert max(block_shapes.candidates(target(), tiled.TILED)) == (4, 2)
    fast = xcoexec.jit(fn, strategy="host", strict=True).bind((w, v))
    np.testing.assert_allclose(fast(x), want, rtol=1e-4, atol=1e-5)
    assert _algorithms(fast) == ["elementwise_rows+toy_tiled", "toy_tiled"]

    monkeypatch.delitem(MATRIX_UNITS, tiled.TILED.name)
    assert _algorithms(_called(fn, (w, v), x)) == ["elementwise_rows+gemm", "gemm"]


def _called(fn: Any, w: Any, x: Any) -> Any:
    fast = xcoexec.jit(fn, strategy="host", strict=True).bind(w)
    fast(x)
    return fast


def test_a_matrix_unit_is_for_targets_that_have_it() -> None:
    """AVX512-BF16 needs its feature and vectors of 16 lanes; the vector unit needs nothing."""
    wide = Target("avx512", 16, 32, "x", "+avx512f,+avx512bf16")
    assert wide.unit("bfloat16") is MATRIX_UNITS["avx512bf16"] and wide.unit("float32") is MATRIX_UNITS["vector"]
    for lacking in (dataclasses.replace(wide, features="+avx512f,-avx512bf16"), dataclasses.replace(wide, vl=8)):
        assert lacking.unit("bfloat16") is None and lacking.unit("float32") is MATRIX_UNITS["vector"]
