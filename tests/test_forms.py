"""Narrow forms of arrays, written by the step that makes them: the same bits as by a pass, and no pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels import pairs
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.codegen.target import Target
from xcoexec.partition.split import split

from .support import array, error, oracle, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

PASSES = ("narrow", "whole")
NHWC = ("NHWC", "HWIO", "NHWC")
TARGETS = [t for t in targets() if t.unit("bfloat16")]
BF16 = pytest.mark.skipif(not TARGETS, reason="no instructions for bf16")


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def built(fn: Any, weights: list[Any], x: Any, isa: Target) -> tuple[np.ndarray, Segment]:
    """The first result on kernels for `isa`, and the segment."""
    folded, graph = stages_of(fn, weights, x, weights=1)
    assert not [layer.host_error for layer in graph.layers if layer.host_error]
    consts = folded.constants(weights)
    segment = host.build(graph.program, 2, isa, pick=lambda groups, names, t: names[-1], cut=split)
    call = host.Call(segment, [np.asarray(x).astype(np.float32)], [consts[v] for v in graph.program.consts])
    call()
    return call()[0].copy(), segment


def kernels(segment: Segment) -> list[str]:
    """Of all steps, those of strips in order of their own."""
    found = []
    for step in segment.steps:
        inner = [s for word in step.words for s in getattr(word, "steps", ())]
        found += [s.kernel for s in inner] or [step.kernel]
    return found


def written(segment: Segment) -> list[list[Any]]:
    """The forms that each product's step writes: type, node, whether its result is stored too."""
    specs = [w.spec for s in segment.steps if s.driver == "gemm" for w in s.words if hasattr(w, "spec")]
    return [[k for k in spec[5] if isinstance(k, tuple)] for spec in specs]


def conv(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    out = jnp.int32 if x.dtype == jnp.int8 else x.dtype
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=NHWC, feature_group_count=groups, preferred_element_type=out
    )


def rounded(y: Any, scale: Any = 0.01) -> Any:
    return jnp.clip(jnp.round(y * scale), -127, 127).astype(jnp.int8)


def fl(y: Any) -> Any:
    return y.astype(jnp.float32)


def block(ws: Any, x: Any) -> Any:
    """A residual block in whole numbers: the sum is read as it is and rounded, with a border and without."""
    q = rounded(x, 30.0)
    a = jax.nn.relu(fl(conv(q, ws[0])) * 0.01)
    b = jax.nn.relu(fl(conv(rounded(a, 0.3), ws[1])) * 0.001 + a)
    c = fl(conv(rounded(b, 2.0), ws[2])) * 0.01
    return c + b


def scales(ws: Any, x: Any) -> Any:
    """Scales by row and by channel, with a bias, between dense layers; one of them reads rows seen as heads."""
    q = rounded(x, 40.0)
    y = fl(lax.dot(q, ws[0], preferred_element_type=jnp.int32)) * ws[3] + 0.5
    z = fl(lax.dot(rounded(y * ws[4]), ws[1], preferred_element_type=jnp.int32))
    return fl(lax.dot(rounded(jnp.tanh(z / 5e3) * ws[5], 99.0), ws[2], preferred_element_type=jnp.int32))


def normed(ws: Any, x: Any) -> Any:
    """A layer norm whose rows are rounded, and read as they are."""
    y = fl(lax.dot(rounded(x, 40.0), ws[0], preferred_element_type=jnp.int32))
    n = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-3)
    return fl(lax.dot(rounded(n, 50.0), ws[1], preferred_element_type=jnp.int32)) + n


def found_at_call(ws: Any, x: Any) -> Any:
    """A scale that is the largest number of what it scales: it is not known when the product is computed."""
    y = fl(lax.dot(rounded(x, 40.0), ws[0], preferred_element_type=jnp.int32))
    scale = 127 / jnp.abs(y).max()
    return fl(lax.dot(rounded(y, scale), ws[1], preferred_element_type=jnp.int32)) / scale


def separable(ws: Any, x: Any) -> Any:
    """A depthwise convolution of floats, rounded for the next one."""
    y = fl(conv(rounded(x, 40.0), ws[0]))
    d = jax.nn.relu(conv(y * 1e-3, ws[1], 2, ws[1].shape[-1]))
    return fl(conv(rounded(d, 9.0), ws[2]))


def twice(ws: Any, x: Any) -> Any:
    """Two layers that read one array."""
    y = rounded(fl(conv(rounded(x, 40.0), ws[0])))
    return fl(conv(y, ws[1], 2)) + fl(conv(y, ws[2], 2))


def joined(ws: Any, x: Any) -> Any:
    """Parts of a concatenation that is rounded as a whole."""
    q = rounded(x, 40.0)
    y = jnp.concatenate([fl(conv(q, ws[0])), fl(conv(q, ws[1]))], -1)
    return fl(conv(rounded(y), ws[2]))


CASES: dict[str, tuple[Callable[..., Any], list[Any], tuple[int, ...]]] = {
    "block": (block, [whole(3, 3, 8, 24), whole(3, 3, 24, 24, seed=1), whole(1, 1, 24, 24, seed=2)], (2, 7, 9, 8)),
    "wide block": (block, [whole(1, 1, 32, 64), whole(3, 3, 64, 64, seed=1), whole(1, 1, 64, 64)], (1, 14, 14, 32)),
    "scales": (
        scales,
        [*(whole(k, n, seed=k) for k, n in ((48, 36), (36, 64), (64, 20)))]
        + [np.array(array(*s, seed=5, low=0.5, high=2)) for s in ((1, 36), (11, 1), (11, 1))],
        (11, 48),
    ),
    "normed": (normed, [whole(48, 36), whole(36, 36, seed=1)], (13, 48)),
    "short rows": (normed, [whole(8, 4), whole(4, 4, seed=1)], (13, 8)),
    "found at the call": (found_at_call, [whole(48, 36), whole(36, 20, seed=1)], (13, 48)),
    "separable": (separable, [whole(1, 1, 8, 32), array(3, 3, 1, 32), whole(1, 1, 32, 16, seed=2)], (2, 9, 8, 8)),
    "twice": (twice, [whole(3, 3, 8, 24), whole(3, 3, 24, 8), whole(1, 1, 24, 8)], (1, 9, 8, 8)),
    "joined": (joined, [whole(3, 3, 8, 24), whole(1, 1, 8, 8), whole(3, 3, 32, 8)], (1, 9, 8, 8)),
    "odd": (block, [whole(3, 3, 8, 21), whole(3, 3, 21, 21, seed=1), whole(1, 1, 21, 21, seed=2)], (2, 7, 9, 8)),
}
#: passes that stay: of a part; of words that no whole number of elements fills
PASSED = {"joined": 1, "odd": 2}


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("case", CASES)
def test_whole_numbers(case: str, isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, ws, shape = CASES[case]
    x = array(*shape, seed=9, low=-4, high=4)
    got, segment = built(fn, ws, x, isa)
    monkeypatch.setattr(pairs, "written_by_maker", lambda *given: None)
    want, by_passes = built(fn, ws, x, isa)
    np.testing.assert_array_equal(got, want)
    near = np.asarray(jax.jit(fn)(ws, x))
    assert np.abs(got.reshape(near.shape) - near).max() <= 0.05 * np.abs(near).max()
    count = lambda s: sum(k in PASSES for k in kernels(s))
    unit = isa.unit("int8", "gemm")
    assert unit is not None
    if not unit.shift:  # where numbers are shifted, those with a border are written by a pass
        assert count(segment) <= PASSED.get(case, 0) < count(by_passes)
    assert len(segment.steps) <= len(by_passes.steps)


def halves(*shape: int, seed: int = 0) -> jax.Array:
    return array(*shape, seed=seed, low=-0.3, high=0.3).astype(jnp.bfloat16)


def residual(ws: Any, x: Any) -> Any:
    """A residual network's blocks in the weights' type, whose sums are read as bf16 where that is bf16."""
    x = x.astype(jnp.bfloat16).astype(ws[0].dtype)
    for a, b in zip(ws[::2], ws[1::2], strict=True):
        x = jax.nn.relu(conv(jax.nn.relu(conv(x, a)), b) + x)
    return fl(x)


@BF16
@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("size", "channels"), [(7, 32), (14, 64), (9, 40), (28, 16)])
def test_bf16(size: int, channels: int, isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = [halves(k, k, channels, channels, seed=k + i) for i in (0, 5) for k in (1, 3)]
    x = array(2, size, size, channels)
    got, segment = built(residual, ws, x, isa)
    want = np.asarray(jax.jit(residual)([w.astype(jnp.float32) for w in ws], x))
    assert error(got.reshape(want.shape), want) < 0.02
    assert sum(k in PASSES for k in kernels(segment)) <= 1
    monkeypatch.setattr(pairs, "written_by_maker", lambda *given: None)
    other, _ = built(residual, ws, x, isa)
    assert error(got, other) < 0.02


def test_what_nobody_reads_is_not_written() -> None:
    """Of an array that is read in its narrow form alone nothing else is stored; a pass whose form the step before it
    writes is gone.
    """
    _, segment = built(block, CASES["wide block"][1], array(1, 14, 14, 32, low=-4, high=4), targets()[-1])
    forms = written(segment)
    assert any(forms) and all(kept for found in forms for _, _, kept in found)  # each sum is read as it is too
    chain = lambda ws, x: fl(conv(rounded(fl(conv(rounded(x, 30.0), ws[0]))), ws[1]))
    _, segment = built(chain, CASES["wide block"][1][:2], array(1, 14, 14, 32, low=-4, high=4), targets()[-1])
    forms = written(segment)
    assert any(forms) and not any(kept for found in forms for _, _, kept in found)
    assert all(len(found) <= 1 for found in forms)


def test_readers_share_a_form() -> None:
    _, segment = built(*CASES["twice"][:2], array(1, 9, 8, 8, low=-4, high=4), targets()[-1])
    assert max(map(len, written(segment))) == 1


@BF16
@pytest.mark.parametrize("turned", [False, True])
def test_a_form_with_a_border_is_read_beside_none(turned: bool) -> None:
    """A residual in another shape has no border, which its form for a window has: the sum reads the array itself."""

    def fn(ws: Any, x: Any) -> Any:
        y = jnp.tanh(x.astype(jnp.bfloat16))
        y = (y.swapaxes(2, 3) if turned else y).reshape(3, 4, 4, 8)
        return (jnp.abs(conv(y, ws[0])) + y).astype(jnp.float32)

    ws, x = [halves(5, 5, 8, 8, seed=3)], array(3, 2, 2, 2, 2, 8)
    got, segment = built(fn, ws, x, TARGETS[0])
    assert TARGETS[0].unit("bfloat16").kernel == "tiles" or "gemm(bfloat16)" in "+".join(segment.algorithms)
    want = oracle(fn, ws, x)
    assert error(got.reshape(want.shape), want) < 0.01
