"""Depthwise convolutions whose weights come with the call, and their gradients, against float64 NumPy."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import Target

from .oracle import error
from .support import array, stages_of, targets

CLOSE = 1e-5


def convolved(x: Any, w: Any, stride: int = 1, padding: Any = "SAME", dilation: int = 1) -> Any:
    rank = x.ndim - 2
    layout = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[rank]
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * rank,
        padding,
        rhs_dilation=(dilation,) * rank,
        dimension_numbers=layout,
        feature_group_count=x.shape[-1],
    )


def wanted(x: Any, w: Any, g: Any, stride: int, padding: Any, dilation: int) -> tuple[np.ndarray, ...]:
    """The result [n, h, w, c] and both gradients in float64, tap by tap."""
    x, w, g = (np.asarray(a, np.float64) for a in (x, w, g))
    reach = [(k - 1) * dilation + 1 for k in w.shape[:2]]
    around = (
        lax.padtype_to_pads(x.shape[1:3], reach, (stride, stride), padding) if isinstance(padding, str) else padding
    )
    padded = np.pad(x, [(0, 0), *around, (0, 0)])
    y, dx, dw = np.zeros_like(g), np.zeros_like(padded), np.zeros_like(w)
    for i, j in np.ndindex(*w.shape[:2]):
        seen = tuple(
            slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
            for t, n in ((i, g.shape[1]), (j, g.shape[2]))
        )
        at = (slice(None), *seen)
        y += padded[at] * w[i, j, 0]
        dx[at] += g * w[i, j, 0]
        dw[i, j, 0] = (padded[at] * g).sum((0, 1, 2))
    inside = tuple(slice(lo, lo + n) for (lo, _), n in zip(around, x.shape[1:3], strict=True))
    return y, dx[(slice(None), *inside)], dw


def passes(x: Any, w: Any, g: Any, **how: Any) -> Any:
    """The result, and the gradients by image and by weights for a gradient `g` by the result."""
    y, back = jax.vjp(functools.partial(convolved, **how), x, w)
    return y, *back(g)


def on_kernels(fn: Any, *args: Any, threads: int = 1, isa: Target | None = None) -> tuple[list[np.ndarray], list[str]]:
    """All results of `fn` by kernels alone, with every array given at the call, and the families that ran."""
    folded, graph = stages_of(fn, *args)
    assert [(x.name, x.host_error) for x in graph.layers if x.host_error] == []
    segment = host.build(graph.program, threads, isa)
    out = host.Call(segment, [np.asarray(x) for x in args], [])()
    found = dict(zip(graph.program.outputs, out, strict=True))
    return [found[v].copy() for v in folded.outputs], [f for step in segment.steps for f in step.families]


def check(
    x: Any,
    w: Any,
    stride: int = 1,
    padding: Any = "SAME",
    dilation: int = 1,
    threads: int = 1,
    isa: Target | None = None,
) -> None:
    """All three passes on kernels, and that it was those of depthwise convolutions."""
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    fn = functools.partial(passes, **how)
    g = array(*jax.eval_shape(functools.partial(convolved, **how), x, w).shape, seed=3)
    got, ran = on_kernels(fn, x, w, g, threads=threads, isa=isa)
    assert "depthwise" in ran and "depthwise_sums" in ran
    assert "gemm" not in ran
    assert ("depthwise_transposed" in ran) == (stride > 1 and dilation == 1)
    for a, b in zip(got, wanted(x, w, g, **how), strict=True):
        assert error(a, b) < CLOSE


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_strides_and_windows(stride: int, window: int, padding: str) -> None:
    for c, h, w, n in ((5, 9, 12, 1), (17, 13, 8, 2)):
        check(array(n, h, w, c), array(window, window, 1, c, seed=1), stride=stride, padding=padding)


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40])
def test_channels(isa: Target, channels: int) -> None:
    for stride in (1, 2):
        check(array(1, 7, 6, channels), array(3, 3, 1, channels, seed=1), isa=isa, stride=stride)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(5, 11, 9, 33), (5, 40, 50, 3), (1, 64, 33, 16), (5, 3, 3, 80)])
def test_batches_and_threads(shape: tuple[int, ...], threads: int, stride: int) -> None:
    check(array(*shape), array(3, 3, 1, shape[-1], seed=1), threads=threads, stride=stride)
