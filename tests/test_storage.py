"""The memory plan: live buffers never overlap, borders stay clean."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xcoexec.codegen.segment.storage import ALIGN, Buffer, Lifetime, place

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
