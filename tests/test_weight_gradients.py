"""The gradient by weights, of convolutions and of dense layers, on kernels: against float64 NumPy, and through
`jax.grad`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from .support import array, error, run_host

pytestmark = pytest.mark.usefixtures("quick_xla")

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
TOLERANCE = 1e-5


def gradient(x: Any, w: Any, dy: Any, **how: Any) -> Any:
    """The gradient of a convolution by its weights `w`, for the gradient `dy` of its result."""
    numbers = LAYOUTS[x.ndim - 2]
    forward = lambda w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, **how)
    return jax.vjp(forward, w)[1](dy)[0]


def expected(
    x: Any, shape: Sequence[int], dy: Any, strides: Sequence[int], padding: Any, dilation: Sequence[int], groups: int
) -> np.ndarray:
    """Each element of the window on its own: what it saw of the image, times the gradient, in float64."""
    x, dy = np.asarray(x, np.float64), np.asarray(dy, np.float64)
    x = np.pad(x, [(0, 0), *padding, (0, 0)])
    out = np.zeros(shape)
    ci, co = shape[-2], shape[-1] // groups
    for tap in itertools.product(*(range(k) for k in shape[:-2])):
        seen = x[
            (
                slice(None),
                *(
                    slice(t * d, t * d + (n - 1) * s + 1, s)
                    for t, d, s, n in zip(tap, dilation, strides, dy.shape[1:-1], strict=True)
                ),
            )
        ]
        for g in range(groups):
            a, b = seen[..., g * ci : (g + 1) * ci], dy[..., g * co : (g + 1) * co]
            out[tap][:, g * co : (g + 1) * co] = a.reshape(-1, ci).T @ b.reshape(-1, co)
    return out


def check(
    image: Sequence[int],
    weights: Sequence[int],
    strides: Sequence[int],
    padding: str = "SAME",
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    threads: int = 1,
) -> None:
    """Kernels against `expected`, for an image [n, ..., c] and weights [..., ci, co]."""
    dilation = dilation or (1,) * len(strides)
    x, w = array(*image, seed=1), array(*weights, seed=2)
    how = {"window_strides": strides, "padding": padding, "rhs_dilation": dilation, "feature_group_count": groups}
    numbers = LAYOUTS[len(strides)]
    result = jax.eval_shape(lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, **how), x, w)
    dy = array(*result.shape, seed=3)
    reach = [(k - 1) * d + 1 for k, d in zip(weights, dilation, strict=False)]
    pads = lax.padtype_to_pads(image[1:-1], reach, strides, padding)
    got = run_host(lambda x, w, dy: gradient(x, w, dy, **how), x, w, dy, threads=threads)[0]
    assert error(got, expected(x, weights, dy, strides, pads, dilation, groups)) < TOLERANCE


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_windows_and_strides(window: int, stride: int, padding: str) -> None:
    for n, (h, w), (ci, co) in (
        (2, (9, 11), (5, 7)),
        (1, (8, 13), (16, 32)),
    ):
        check((n, h, w, ci), (window, window, ci, co), (stride, stride), padding)


@pytest.mark.parametrize("co", [1, 3, 16, 17, 33])
@pytest.mark.parametrize("ci", [1, 3, 16, 17, 33])
@pytest.mark.parametrize("n", [1, 8])
def test_channels(n: int, ci: int, co: int) -> None:
    check((n, 6, 7, ci), (3, 3, ci, co), (1, 1))
    check((n, 6, 7, ci), (1, 1, ci, co), (1, 1))


@pytest.mark.parametrize("dilation", [(2, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 3)])
def test_dilation(dilation: tuple[int, int], stride: tuple[int, int]) -> None:
    check((3, 12, 17, 6), (3, 2, 6, 18), stride, "SAME", dilation)


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_groups(groups: int) -> None:
    for each_in, each_out in ((3, 2), (16, 17), (8, 16)):
        check((2, 7, 9, groups * each_in), (3, 3, each_in, groups * each_out), (2, 1), groups=groups)
        check((2, 7, 9, groups * each_in), (1, 1, each_in, groups * each_out), (1, 1), groups=groups, threads=2)


@pytest.mark.parametrize("n", [1, 8])
def test_one_and_three_dimensions(n: int) -> None:
    check((n, 31, 6), (5, 6, 18), (2,))
    check((n, 31, 16), (3, 16, 16), (1,), "VALID", (4,))
    check((n, 5, 6, 7, 3), (3, 2, 3, 3, 17), (1, 2, 1))
    check((n, 5, 6, 7, 8), (1, 3, 3, 8, 16), (2, 1, 1), "VALID")


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("n", [1, 7, 8])
def test_tiny_results_of_many_pixels_are_summed_in_parts(n: int, threads: int) -> None:
    check((n, 28, 27, 16), (1, 1, 16, 24), (1, 1), threads=threads)
    check((n, 28, 27, 3), (3, 3, 3, 17), (2, 2), threads=threads)
