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
from xcoexec.codegen.segment import storage
from xcoexec.codegen.segment.storage import ALIGN, Buffer, Lifetime, place
from xcoexec.codegen.target import Target

from .support import array, stages_of, targets

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
