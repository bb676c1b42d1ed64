"""Tiles of bytes are stored in haste where all numbers are near to some s16, and exactly where one is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels.whole_bytes import LARGEST, NARROWED, bounded_as_bytes
from xcoexec.codegen.native.build import kernel_text
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.codegen.target import Target
from xcoexec.partition.split import split

from .support import array, stages_of, targets
from .test_whole_numbers import whole

pytestmark = pytest.mark.usefixtures("quick_xla")

TARGETS = targets()
NAN, INF = float("nan"), float("inf")
#: what becomes of sums y, given one number: bytes
EPILOGUES: dict[str, Callable[[Any, Any], Any]] = {
    "relu6, then a scale": lambda y, p: jnp.round(jnp.clip(y, 0.0, 6.0) * p),
    "relu, then a scale": lambda y, p: jnp.round(jnp.maximum(y, 0.0) * p),
    "a scale on the left": lambda y, p: jnp.round(p * jnp.minimum(y, 2.5)),
    "a quotient": lambda y, p: jnp.round(jnp.clip(y, -1.0, 6.0) / p),
    "bounds of the type": lambda y, p: jnp.clip(jnp.round(y * p), -127, 127),
    "bounds on both sides": lambda y, p: jnp.clip(jnp.round(jnp.clip(y, -4.0, 6.0) * p), -100, 90),
    "bounds that cross": lambda y, p: jnp.round(jnp.minimum(jnp.maximum(y, 3.0), 1.5) * p),
    "two scales": lambda y, p: jnp.round(jnp.maximum(jnp.minimum(y, 5.0) * p, -2.0) * 3.5),
    "no bounds": lambda y, p: jnp.round(y * p),
    "cut": lambda y, p: y * p,
}
SCALES = (20.0, -20.0, 0.0, 1e30, INF, -INF, NAN)
#: what some channels begin with: beyond s16, s32 and f32, and no numbers
SPECIAL = (NAN, INF, -INF, 3e38, -3e38, -1e7, 2e9, 3e9, -3e9, 1e3, -1e3)
SHAPES = {
    "product": (1, 9, 7, 80, 1),
    "few channels": (2, 5, 5, 24, 1),
    "depthwise": (1, 9, 7, 80, 80),
    "two rows a vector": (2, 5, 6, 32, 32),
    "four rows a vector": (1, 7, 5, 16, 16),
}


def layers(shape: str, epilogue: str, special: bool) -> tuple[Any, list[Any], Any]:
    """(function of weights and an image, weights, image): a product or a depthwise convolution, and a product that
    reads its bytes.
    """
    *image, channels, groups = SHAPES[shape]
    k: dict[str, Any] = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "preferred_element_type": jnp.int32}
    window = (3, 3, 1) if groups > 1 else (1, 1, channels)
    first, last = whole(*window, channels, seed=1), whole(1, 1, channels, 8, seed=2)
    bias = np.array(array(channels, seed=3, low=-2, high=2))
    if special:
        bias[: len(SPECIAL)] = SPECIAL
    scale = np.full(channels, 2.0**-13, np.float32)
    x = array(*image, channels, seed=4, low=-7, high=7)

    def fn(weights: Any, x: Any, p: Any) -> Any:
        first, last, scale, bias = weights
        y = jnp.round(x * 16.0).astype(jnp.int8)
        y = lax.conv_general_dilated(y, first, (1, 1), "SAME", feature_group_count=groups, **k)
        y = EPILOGUES[epilogue](y.astype(jnp.float32) * scale + bias, p).astype(jnp.int8)
        return lax.conv_general_dilated(y, last, (1, 1), "VALID", **k)

    return fn, [first, last, scale, bias], x


def called(fn: Any, weights: Any, inputs: Any, isa: Target) -> tuple[np.ndarray, Segment]:
    """The result of `fn(weights, *inputs)` on kernels, and the segment."""
    folded, graph = stages_of(fn, weights, *inputs, weights=1)
    assert not [layer.host_error for layer in graph.layers if layer.host_error]
    consts, first = folded.constants(weights), lambda groups, names, threads: names[0]
    segment = host.build(graph.program, 2, isa, pick=first, cut=split)
    (y,) = host.Call(segment, inputs, [consts[v] for v in graph.program.consts])()
    return y.view(np.int32).copy(), segment


def hasty(segment: Segment, isa: Target) -> int:
    """How many kernels of a segment store tiles in haste."""
    specs = {w.spec for s in segment.steps for w in s.words if hasattr(w, "spec")}
    return sum("\ntile:" in kernel_text(spec, isa).replace('"', "") for spec in specs)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special numbers"])
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_are_exact(shape: str, epilogue: str, special: bool, isa: Target) -> None:
    """What reads the bytes gets those of `jax.jit`, for each scale; x86 stores them in haste."""
    fn, weights, x = layers(shape, epilogue, special)
    plain = jax.jit(fn)
    for p in SCALES:
        got, segment = called(fn, weights, [x, np.float32(p)], isa)
        np.testing.assert_array_equal(got, np.asarray(plain(weights, x, np.float32(p))), err_msg=f"scale {p}")
    unit = isa.unit("int8", "gemm")
    bytes_read = unit is not None and unit.per == 4 and isa.vl in NARROWED and epilogue != "cut"
    assert bool(hasty(segment, isa)) == (bytes_read and shape != "few channels")


# -- expressions ---------------------------------------------------------------------------------------


def value(expr: Any, node: int, operands: list[Any]) -> Any:
    """What a node is, in NumPy."""
    head, *args = expr[node]
    if head == "in":
        return operands[args[0]]
    if head == "lit":
        return np.float32(args[1])
    inner = [value(expr, a, operands) for a in args]
    near = lambda x: np.clip(np.rint(x.astype(np.float64)), -128, 127)
    between = lambda x, a, b: np.clip(x, np.minimum(a, b), np.maximum(a, b))
    how = {"max": np.maximum, "min": np.minimum, "mul": np.multiply, "div": np.divide, "nearest": near}
    return {**how, "between": between, "shifted": lambda x: x + 128, "copy": lambda x: x}[head](*inner)


X, P, C = ("in", 0), ("in", 1), ("in", 2)
LIT = lambda x: ("lit", "f", repr(x))
#: expressions over x and a number, and how many bounds of bytes they get
BOUNDED: dict[str, tuple[tuple[Any, ...], int]] = {
    "relu6": ((X, LIT(0.0), ("max", 0, 1), LIT(6.0), ("min", 3, 2), P, ("mul", 4, 5), ("nearest", 6)), 1),
    "on the left": ((X, LIT(0.0), ("max", 1, 0), P, ("mul", 3, 2), ("nearest", 4), ("shifted", 5)), 1),
    "twice": ((X, LIT(1.0), ("min", 0, 1), P, ("div", 2, 3), LIT(9.0), ("min", 4, 5), ("nearest", 6), ("copy", 7)), 2),
    "none": ((X, P, ("mul", 0, 1), ("nearest", 2)), 0),
    "by channel": ((X, LIT(0.0), ("max", 0, 1), C, ("mul", 2, 3), ("nearest", 4)), 0),
    "a number over x": ((X, LIT(1.0), ("max", 0, 1), P, ("div", 3, 2), ("nearest", 4)), 0),
    "no number": ((X, LIT(NAN), ("max", 0, 1), P, ("mul", 2, 3), ("nearest", 4)), 0),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_become_bounds_of_bytes(name: str) -> None:
    """The byte is the same for all scales that are numbers, and none of the numbers below is bounded any more."""
    expr, bounds = BOUNDED[name]
    changed, node = bounded_as_bytes(expr, len(expr) - 1, frozenset([1]))
    assert sum(n[0] == "between" for n in changed) == bounds
    assert (changed, node) == (expr, len(expr) - 1) if not bounds else changed[: len(expr)] == expr
    xs = np.float32([-3e38, -1e5, -7, -1, -0.5, 0, 0.3, 1, 2.5, 6, 1e4, 3e38, LARGEST])
    for x, p in itertools.product(xs, np.float32([-20, -0.3, 1e-3, 1, 17])):
        with np.errstate(over="ignore", invalid="ignore"):
            operands = [x, p, p]
            assert value(changed, node, operands) == value(expr, len(expr) - 1, operands) or name == "no number"
