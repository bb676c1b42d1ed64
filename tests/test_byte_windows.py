"""Depthwise convolutions of int8 whose bytes one instruction multiplies: exact, whatever the sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels import byte_windows
from xcoexec.codegen.kernels.byte_windows import Taps, blocks_of, together
from xcoexec.codegen.target import Target, target

from .support import array, targets
from .test_whole_numbers import run_on, whole

pytestmark = pytest.mark.usefixtures("quick_xla")

TARGETS = targets()
LAYOUT = ("NHWC", "HWIO", "NHWC")
#: image, window, stride, padding
SIZES: dict[str, tuple[tuple[int, int, int, int], tuple[int, int], tuple[int, int], Any]] = {
    "one block": ((1, 9, 9, 32), (3, 3), (1, 1), "SAME"),
    "blocks with channels in common": ((2, 6, 7, 144), (3, 3), (1, 1), "SAME"),
    "wide blocks": ((1, 8, 5, 192), (3, 3), (2, 2), "SAME"),
    "narrow blocks": ((1, 5, 9, 16), (5, 5), (2, 2), "SAME"),
    "few channels in common": ((1, 6, 6, 40), (4, 4), (1, 1), "SAME"),
    "two words a row": ((1, 8, 13, 64), (5, 5), (1, 1), "SAME"),
    "a long window": ((1, 12, 12, 72), (7, 7), (1, 1), "VALID"),
    "a window of one column": ((1, 6, 5, 48), (3, 1), (1, 1), "SAME"),
    "one pixel a row": ((1, 7, 1, 64), (3, 3), (1, 1), "SAME"),
    "one over": ((2, 5, 9, 32), (3, 3), (1, 1), "SAME"),
    "a stride of 3": ((1, 11, 10, 24), (3, 3), (3, 3), "SAME"),
    "uneven": ((1, 7, 9, 100), (2, 3), (1, 2), [(1, 0), (2, 1)]),
    "pixels that are no words": ((1, 5, 6, 17), (3, 3), (1, 1), "SAME"),
    "fewer channels than a block": ((1, 5, 6, 12), (3, 3), (1, 1), "SAME"),
    "dilated": ((1, 9, 9, 32), (3, 3), (1, 1), "DILATED"),
}
BYTES = [s for s in SIZES if s not in ("pixels that are no words", "fewer channels than a block", "dilated")]


def quantised(x: Any, scale: float) -> Any:
    return jnp.round(x / np.float32(scale)).astype(jnp.int8)


def layers(size: str, outputs: str) -> tuple[Any, tuple[Any, ...]]:
    """A quantised pass, a depthwise convolution, and, for `outputs` "bytes", one that reads its result as bytes."""
    shape, window, strides, padding = SIZES[size]
    channels, dilated = shape[-1], padding == "DILATED"
    deep, last = whole(*window, 1, channels, seed=1), whole(1, 1, channels, 8, seed=2)
    scale, bias = array(channels, low=1e-3, high=2e-3), array(channels, seed=1, low=-2, high=2)
    x = array(*shape, seed=2, low=-7, high=7)

    def fn(weights: Any, x: Any) -> Any:
        deep, last, scale, bias = weights
        kinds: dict[str, Any] = {"dimension_numbers": LAYOUT, "preferred_element_type": jnp.int32}
        around = [(2, 2), (2, 2)] if dilated else padding
        y = lax.conv_general_dilated(
            quantised(x * 1.0, 0.04),
            deep,
            strides,
            around,
            rhs_dilation=(2, 2) if dilated else (1, 1),
            feature_group_count=channels,
            **kinds,
        )
        if outputs == "sums":
            return y
        y = jnp.clip(y.astype(jnp.float32) * scale + bias, 0.0, 6.0)
        if outputs == "floats":
            return y
        return lax.conv_general_dilated(quantised(y, 0.05), last, (1, 1), "VALID", **kinds)

    return fn, ((deep, last, scale, bias), x)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("outputs", ["sums", "floats", "bytes"])
@pytest.mark.parametrize("size", SIZES)
def test_windows_of_bytes(size: str, outputs: str, isa: Target) -> None:
    """Sums are exact, and so is what reads them as bytes again; the instruction ran where there is one."""
    fn, (weights, x) = layers(size, outputs)
    flat = lambda *args: fn(args[:4], args[4])
    got, how = run_on(flat, *weights, x, isa=isa, weights=4)
    want = np.asarray(jax.jit(flat)(*weights, x))
    if outputs == "floats":
        np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-6)
    else:
        np.testing.assert_array_equal(got.view(np.int32), want)
    unit = isa.unit("int8", "gemm")
    ran = "depthwise_bytes" in {name for names in how for name in names.split("+")}
    assert ran == (size in BYTES and unit is not None and unit.shift == byte_windows.SHIFT)


@pytest.mark.parametrize("extreme", [False, True])
def test_largest_sums(extreme: bool) -> None:
    """The least number of all, everywhere: products of 128 times 128, and of what stands for the border."""
    x, w = np.full((1, 6, 6, 32), -128.0, np.float32), whole(3, 3, 1, 32, seed=1, extreme=extreme)

    def fn(w: Any, x: Any) -> Any:
        q = jnp.round(x * 1.0).astype(jnp.int8)
        kinds: dict[str, Any] = {"dimension_numbers": LAYOUT, "preferred_element_type": jnp.int32}
        return lax.conv_general_dilated(q, w, (1, 1), "SAME", feature_group_count=32, **kinds)

    got, _ = run_on(fn, w, x, isa=target(), weights=1)
    np.testing.assert_array_equal(got.view(np.int32), np.asarray(jax.jit(fn)(w, x)))


@pytest.mark.parametrize("channels", range(1, 300))
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_blocks_cover_all_channels(channels: int, rows: int) -> None:
    blocks = blocks_of(channels, rows)
    if blocks is None:
        assert channels < byte_windows.WIDE[-1]
        return
    begins = [i * blocks.apart for i in range(blocks.count)]
    assert begins[-1] + blocks.wide == channels
    assert blocks.stacked == 1 or (blocks.stacked <= rows and blocks.stacked * blocks.wide == byte_windows.WIDE[0])
    assert all(0 < b - a <= blocks.wide for a, b in zip(begins, begins[1:], strict=False))


@pytest.mark.parametrize(("channels", "rows", "stacked"), [(32, 9, 2), (32, 1, 1), (16, 9, 4), (16, 3, 1), (96, 9, 1)])
def test_vectors_of_several_rows(channels: int, rows: int, stacked: int) -> None:
    """Few channels leave vectors room for further rows, where there are any."""
    blocks = blocks_of(channels, rows)
    assert blocks is not None and blocks.stacked == stacked


@pytest.mark.parametrize("stacked", [2, 4])
def test_weights_of_several_rows(stacked: int) -> None:
    """Each row of a vector has the weights, and what sums begin with, of a row alone."""
    w, wide = whole(3, 3, 16, seed=3), 64 // stacked
    w = np.tile(w, wide // 16)
    alone = Taps(3, 3, 1, wide).pack(w, byte_windows.Blocks(1, wide, 0)).view(np.int32)
    packed = Taps(3, 3, 1, wide, stacked).pack(w, byte_windows.Blocks(1, wide, 0, stacked)).view(np.int32)
    np.testing.assert_array_equal(packed.reshape(-1, stacked, wide), np.stack([alone.reshape(-1, wide)] * stacked, 1))


@pytest.mark.parametrize("width", range(1, 40))
def test_pixels_computed_together(width: int) -> None:
    n = together(width)
    assert 1 <= n <= byte_windows.MOST
    assert width % n != 1 or width == 1 or n == 1 or width % byte_windows.MOST == 1


@pytest.mark.parametrize(("columns", "stride"), [(1, 1), (3, 1), (3, 2), (4, 1), (5, 1), (5, 2), (7, 3)])
def test_words_of_a_window(columns: int, stride: int) -> None:
    """Each tap stands once, at the byte at which a window that begins there meets it; all else is 0."""
    taps, w = Taps(2, columns, stride, 16), whole(2, columns, 16, seed=3)
    packed = taps.pack(w, byte_windows.Blocks(1, 16, 0)).view(np.int8)[0]
    assert packed.size == taps.nbytes
    np.testing.assert_array_equal(packed[:64].view(np.int32), -128 * w.sum((0, 1), dtype=np.int64))
    words = packed[64:].reshape(taps.begins, 2, taps.quads, 16, 4).swapaxes(3, 4).reshape(taps.begins, 2, -1, 16)
    for begin in range(taps.begins):
        np.testing.assert_array_equal(words[begin, :, begin : begin + columns], w)
        assert not words[begin, :, :begin].any() and not words[begin, :, begin + columns :].any()
