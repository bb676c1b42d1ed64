"""Products in bf16 where the caller or JAX's preset asks for them, and nowhere else."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.target import target

from .support import array, error, multiplies, stages_of

PRESETS = {"bf16": lax.DotAlgorithmPreset.BF16_BF16_F32, "bf16x3": lax.DotAlgorithmPreset.BF16_BF16_F32_X3}
NHWC = ("NHWC", "HWIO", "NHWC")


def dense(w: Any, x: Any) -> Any:
    return jax.nn.relu(x @ w) + 1


def conv(w: Any, x: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC) * 0.5


CASES = {
    "dense": (dense, (67, 35), (33, 67)),
    "row": (dense, (700, 513), (1, 700)),
    "conv": (conv, (3, 3, 9, 21), (2, 9, 7, 9)),
    "depthwise": (lambda w, x: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=9), (3, 3, 1, 9), (2, 9, 7, 9)),
}  # fmt: skip


def halves(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The nearest bf16, and what is left as bf16, in float64."""
    x = np.asarray(x, np.float32)
    high = x.astype(jnp.bfloat16).astype(np.float32)
    return high.astype(np.float64), (x - high).astype(jnp.bfloat16).astype(np.float64)


def exact(fn: Any, w: Any, x: Any) -> np.ndarray:
    """`fn` in float64."""
    with jax.enable_x64(True):
        return np.asarray(fn(jnp.asarray(w, jnp.float64), jnp.asarray(x, jnp.float64)))


@pytest.mark.parametrize("case", CASES)
def test_bf16(case: str) -> None:
    """The result is that of rounded operands, far nearer than f32's own is to it."""
    fn, w, x = CASES[case][0], array(*CASES[case][1], seed=1), array(*CASES[case][2])
    fast = xcoexec.jit(fn, strategy="host", strict=True, precision="bf16").bind(w)
    got, want = fast(x), exact(fn, halves(w)[0], halves(x)[0])
    assert error(got, want) < 1e-5 < 1e-4 < error(want, exact(fn, w, x))
    unit = target().unit("bfloat16")
    narrow = unit is not None and case in ("dense", "conv")
    assert multiplies("bfloat16", fast.report().layers[-1].algorithm) == narrow


@pytest.mark.parametrize("case", ["dense", "conv"])
def test_bf16_three_times(case: str) -> None:
    fn, w, x = CASES[case][0], array(*CASES[case][1], seed=1), array(*CASES[case][2])
    got = xcoexec.jit(fn, strategy="host", strict=True, precision="bf16x3").bind(w)(x)
    assert error(got, exact(fn, w, x)) < 3e-5  # bf16 alone is above 1e-4


@pytest.mark.parametrize("word", PRESETS)
def test_presets_of_jax_are_obeyed(word: str) -> None:
    fn = lambda w, x: jnp.matmul(x, w, precision=PRESETS[word])
    w, x = array(67, 35, seed=1), array(33, 67)
    _, graph = stages_of(fn, w, x, weights=1)
    assert [op.prim for op in graph.program.ops].count("dot_general") == (1 if word == "bf16" else 3)
    got = xcoexec.jit(fn, strategy="host", strict=True).bind(w)(x)
    plain = lambda w, x: x @ w
    want = exact(plain, halves(w)[0], halves(x)[0]) if word == "bf16" else exact(plain, w, x)
    assert error(got, want) < (1e-6 if word == "bf16" else 3e-5)


def test_a_product_that_names_a_precision_keeps_it() -> None:
    w, x = array(67, 35, seed=1), array(33, 67)
    fn = lambda w, x: jnp.matmul(x, w, precision="highest")
    got = xcoexec.jit(fn, strategy="host", strict=True, precision="bf16").bind(w)(x)
    assert error(got, exact(lambda w, x: x @ w, w, x)) < 1e-6


def test_scales_behind_a_product_stay_out_of_rounded_weights() -> None:
    """Weights are rounded before they are scaled, as the function has it."""
    w, x, scale, shift = array(3, 3, 8, 21, seed=1), array(1, 6, 5, 8), array(21, seed=2), array(21, seed=3)

    def fn(weights: Any, x: Any) -> Any:
        w, scale, shift = weights
        y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC)
        return (y - shift) * scale + shift

    fast = xcoexec.jit(fn, strategy="host", strict=True, precision="bf16").bind((w, scale, shift))
    y = exact(
        lambda w, x: lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC), halves(w)[0], halves(x)[0]
    )
    want = (y - np.asarray(shift, np.float64)) * np.asarray(scale, np.float64) + np.asarray(shift, np.float64)
    assert error(fast(x), want) < 1e-5


def test_an_unknown_word() -> None:
    with pytest.raises(ValueError, match="precision='f8'; valid are bf16, bf16x3"):
        xcoexec.jit(dense, precision="f8")
