"""The memory plan: live buffers never overlap, borders stay clean; large results are stored past the caches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import context, storage
from xcoexec.codegen.segment.storage import ALIGN, Buffer, Lifetime, place
from xcoexec.codegen.target import Target

from .support import array, check_host, error, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")


def bytes_of(s: Any) -> np.ndarray:
    """Where each element of an array lies, in its shape."""
    steps = np.array(s.strides, int).reshape(-1, *(1,) * len(s.shape))
    return s.offset + (np.indices(s.shape) * steps).sum(0) if s.shape else np.array(s.offset)


@given(st.data())
def test_an_array_in_another_shape_has_the_same_elements(data: Any) -> None:
    """In any axes of any array that may lie apart; None only where no strides reach them, as NumPy finds it."""
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=4)))
    outer = tuple(n + data.draw(st.sampled_from([0, 0, 2])) for n in shape)
    order = data.draw(st.permutations(range(len(shape))))
    lies = np.zeros(outer, np.float32)[(*(slice(n) for n in shape), ...)].transpose(order)
    s = storage.Storage(Buffer("temp", lies.nbytes), 64, lies.shape, lies.strides, ((0, 0),) * lies.ndim)
    left, other = lies.size, []
    for _ in range(data.draw(st.integers(0, 4))):
        other.append(data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0])))
        left //= other[-1]
    other += [left] * (left > 1)
    found = s.seen_as(tuple(other))
    seen = lies.reshape(other)
    assert (found is not None) == np.shares_memory(seen, lies)
    if found is not None:
        np.testing.assert_array_equal(bytes_of(found), bytes_of(s).reshape(other))


lives = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 6), st.sampled_from([None, None, "a", "b"])),
    max_size=30,
)


@given(lives)
def test_live_buffers_never_overlap(spec: list[tuple[int, int, int, str | None]]) -> None:
    sizes = {"a": 640, "b": 1000}
    lifetimes = [
        Lifetime(Buffer("temp", sizes.get(g or "", n), geometry=(g,) if g else None), first, first + length)
        for n, first, length, g in spec
    ]
    offsets, cleared, total = place(lifetimes)
    assert set(offsets) == {x.buffer for x in lifetimes}
    for i, a in enumerate(lifetimes):
        at, end = offsets[a.buffer], offsets[a.buffer] + a.buffer.nbytes
        assert at % ALIGN == 0 and at >= 0 and end <= total
        assert (end <= cleared) if a.buffer.geometry else (at >= cleared)
        for b in lifetimes[i + 1 :]:
            other = offsets[b.buffer]
            overlap = at < other + b.buffer.nbytes and other < end
            together = a.first <= b.last and b.first <= a.last
            assert not (overlap and together)
            if overlap:  # one after the other in one place: only with the same border, or without any
                assert a.buffer.geometry == b.buffer.geometry


def test_a_chain_needs_two_places() -> None:
    chain = [Lifetime(Buffer("temp", 1024), i, i + 1) for i in range(10)]
    assert place(chain)[2] == 2048


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("channels", [16, 48, 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_results_are_stored_past_the_caches(
    isa: Target, channels: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits as otherwise, with borders too; rows that begin between the multiples of 64 bytes are not."""

    def fn(x: jax.Array, w: jax.Array, g: jax.Array) -> Any:
        conv = lambda x, stride: lax.conv_general_dilated(
            x, w, stride, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=channels
        )
        y = jnp.tanh(conv(jnp.exp(x), (1, 1)) + g)
        back = jax.vjp(lambda x: conv(x, (2, 2)), y)[1](y[:, ::2, ::2])[0]
        return back.sum(2), jnp.exp(y * g).max(1)

    args = array(2, 9, 8, channels), array(3, 3, 1, channels, seed=1), array(channels, seed=2)
    found = {}
    for limit in (1 << 24, 0):
        monkeypatch.setattr(storage, "STREAMED_BYTES", limit)
        _, graph = stages_of(fn, *args)
        assert not any(x.host_error for x in graph.layers)
        segment = host.build(graph.program, threads, isa)
        out = host.Call(segment, [np.asarray(x) for x in args], [])()
        found[limit] = [x.copy() for x in out], str([step.words for step in segment.steps])
    (plain, before), (past, after) = found.values()
    assert all(np.array_equal(a, b) for a, b in zip(plain, past, strict=True))
    assert "('n'," not in before and "True, False)" not in before
    assert ("('n'," in after and "True, False)" in after) == (channels % 16 == 0)


SHAPES = {
    "heads": lambda x, w: (jnp.tanh(x @ w).reshape(2, 7, 4, -1),),
    "read again": lambda x, w: ((y := jnp.tanh(x @ w)).reshape(14, -1), (2 * y).sum(-1), y.mean(1)),
    "twice": lambda x, w: ((y := x @ w).reshape(-1), y.reshape(14, 8, -1), y + 1),
    "of another shape": lambda x, w: ((x @ w).reshape(14, -1).reshape(2, -1),),
    "both": lambda x, w: ((y := x @ w), y.reshape(-1)),
    "in a row": lambda x, w: (jnp.concatenate([(y := x @ w), y], 1).reshape(-1),),
    "in the place of a sum": lambda x, w: (jnp.exp(jnp.exp(x @ w).sum(1)).reshape(-1),),
    "of an operand": lambda x, w: (x.reshape(-1), (x * 2).reshape(14, -1)),
    "whole numbers": lambda x, w: ((x > 0).astype(jnp.int32).reshape(-1), (x > 0).reshape(14, -1)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_result_of_another_shape_is_written_where_it_lies(name: str, threads: int) -> None:
    x, w = array(2, 7, 9), array(9, 24, seed=1)
    want = [np.asarray(v) for v in jax.tree.leaves(jax.jit(SHAPES[name])(x, w))]
    _, graph = stages_of(SHAPES[name], x, w)
    segment = host.build(graph.program, threads)
    got = host.Call(segment, [np.asarray(x), np.asarray(w)], [])()
    for a, b in zip(got, want, strict=True):
        assert error(a.reshape(b.shape), b) < 1e-5
    copies = [s for s in segment.steps if s.driver == "nest" and len(s.reads) == 1 and s.kernel == "elementwise"]
    if name in ("heads", "of another shape"):
        assert not any(b.kind == "temp" for s in copies for b in s.reads if any(t.kind == "ret" for t in s.writes))


@pytest.mark.parametrize("rows", [6, 9])
def test_what_a_convolution_pads_lies_in_a_border(rows: int) -> None:
    """It is no result in another shape at the same time: that one is copied."""
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    fn = lambda x, w: ((y := jnp.tanh(conv(x, w))).reshape(-1), conv(y, w))
    x, w = array(1, rows, 5, 16), array(3, 3, 16, 16, seed=1)
    _, graph = stages_of(fn, x, w)
    got = host.Call(host.build(graph.program, 2), [np.asarray(x), np.asarray(w)], [])()
    for a, b in zip(got, jax.tree.leaves(jax.jit(fn)(x, w)), strict=True):
        assert error(a.reshape(b.shape), np.asarray(b)) < 1e-5


D = ("NHWC", "HWIO", "NHWC")
BEHIND = {
    "1x1": lambda y, k: lax.conv_general_dilated(y, k, (1, 1), "SAME", dimension_numbers=D),
    "3x3": lambda y, k: lax.conv_general_dilated(y, jnp.tile(k, (3, 3, 1, 1)), (2, 2), "SAME", dimension_numbers=D),
    "itself": lambda y, k: y,
    "residual": lambda y, k: jnp.tanh(y) + y * 2,
    "squeeze": lambda y, k: y * jax.nn.sigmoid(y.mean((1, 2), keepdims=True)),
    "concatenation": lambda y, k: jnp.concatenate([y, y * 2], -1),
    "turned": lambda y, k: y.transpose(0, 3, 1, 2).reshape(y.shape[0], -1) @ jnp.ones((y[0].size, 3)),
    "flat": lambda y, k: y.reshape(y.shape[0], -1) @ jnp.ones((y[0].size, 3)),
    "pool": lambda y, k: lax.reduce_window(y, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    "another": lambda y, k: lax.conv_general_dilated(
        y, jnp.ones((3, 3, 1, y.shape[-1])), (1, 1), "SAME", dimension_numbers=D, feature_group_count=y.shape[-1]
    ),
    "softmax": lambda y, k: jax.nn.softmax(y, -1),
}


def test_what_a_pool_reads_lies_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []

    def temporary(value: Any, halo: Any, apart: int = 0) -> storage.Storage:
        made.extend([value.shape] * bool(apart))
        return storage.temporary(value, halo, apart)

    monkeypatch.setattr(context, "temporary", temporary)
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    fn = lambda k, x: pool(jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=D)))
    check_host(fn, array(3, 3, 5, 64), array(2, 7, 6, 5, seed=3), threads=2, weights=1)
    assert set(made) == {(2, 7, 6, 64)}


def _walked(behind: str, stride: int) -> Any:
    """A depthwise convolution between what makes its image and what reads its result."""

    def fn(w: Any, x: Any) -> Any:
        k, d, b = w
        x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=D))
        c = x.shape[-1]
        y = lax.conv_general_dilated(x, d, (stride,) * 2, "SAME", dimension_numbers=D, feature_group_count=c) + b
        return BEHIND[behind](y, k.transpose(0, 1, 3, 2))

    return fn


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("behind", BEHIND)
def test_pixels_that_would_share_sets_of_the_caches(
    behind: str, stride: int, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that depthwise convolutions walk lie a line further apart; `every`: of any number of channels."""
    made: list[tuple[int, int]] = []

    def temporary(value: Any, halo: Any, apart: int = 0) -> storage.Storage:
        s = storage.temporary(value, halo, apart)
        if apart:
            made.append((value.shape[-1], s.strides[-2]))
        return s

    monkeypatch.setattr(context, "temporary", temporary)
    if every:
        monkeypatch.setattr(context, "SAME_SETS", 4)
    for c in (64, 37) if every else (64,):
        weights = array(1, 1, 5, c), array(3, 3, 1, c, seed=1), array(c, seed=2)
        made.clear()
        check_host(_walked(behind, stride), weights, array(2, 7, 6, 5, seed=3), threads=2, weights=1)
        assert made and all(stride == 4 * (n + 16) for n, stride in made)


def test_other_channels_lie_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[int] = []
    monkeypatch.setattr(context, "temporary", lambda v, halo, n=0: (apart.append(n), storage.temporary(v, halo, n))[1])
    weights = array(1, 1, 5, 48), array(3, 3, 1, 48, seed=1), array(48, seed=2)
    check_host(_walked("1x1", 1), weights, array(2, 7, 6, 5, seed=3), weights=1)
    assert set(apart) == {0}
