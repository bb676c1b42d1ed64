"""What threads ask for while they wait: the weights that they read next, as native code.

Items of a step that reads much have owners, so that a thread knows what it will read. It asks for a few lines at a
time, into its second cache, and looks in between whether it is to go on.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .layout import LINE, STEP_WORDS, Ahead, Early, Segment, Step
from .words import ld, prefetch, st


def aim(ahead, desc, bufs, number, own):
    """Notes what thread `own` reads in step `number` of a segment; nothing where there is no such step."""
    n = ld(desc + Segment.STEP_COUNT)
    step = ld(desc + Segment.STEPS) + number * 8 * STEP_WORDS
    early = ld(step + Step.EARLY) if number < n else 0
    st(ahead + Ahead.STEP, number if early != 0 else n)
    st(ahead + Ahead.ITEM, own)
    st(ahead + Ahead.AT, 0)
    if early == 0:
        st(ahead + Ahead.ITEMS, 0)
        return
    st(ahead + Ahead.ITEMS, ld(step + Step.ITEMS))
    st(ahead + Ahead.NEXT, ld(step + Step.NEXT))
    st(ahead + Ahead.BEGIN, ld(bufs + 8 * ld(early + Early.BUFFER)) + ld(early + Early.OFFSET))
    st(ahead + Ahead.STRIDE, ld(early + Early.STRIDE))
    st(ahead + Ahead.BYTES, ld(early + Early.BYTES))
    st(ahead + Ahead.STREAMS, ld(early + Early.STREAMS))
    st(ahead + Ahead.APART, ld(early + Early.APART))


def aim_first(ahead, desc, bufs, own):
    """The same for the first step of a segment that reads something which may be asked for early."""
    first = ld(desc + Segment.STEPS)
    aim(ahead, desc, bufs, 0 if ld(first + Step.EARLY) != 0 else ld(first + Step.NEXT), own)


def read_ahead(ahead, threads, most):
    """Asks for a line of each stream of what one of so many threads aims at; whether there was one left to ask for, of
    at most so many bytes since the sum was set back.
    """
    item, at, streams = ld(ahead + Ahead.ITEM), ld(ahead + Ahead.AT), ld(ahead + Ahead.STREAMS)
    if item >= ld(ahead + Ahead.ITEMS) or ld(ahead + Ahead.SUM) >= most:
        return 0
    begin, apart = item * ld(ahead + Ahead.STRIDE), ld(ahead + Ahead.APART)
    if at * streams >= min(ld(ahead + Ahead.STRIDE), ld(ahead + Ahead.BYTES) - begin):
        st(ahead + Ahead.ITEM, item + threads)
        st(ahead + Ahead.AT, 0)
        return 1
    first = ld(ahead + Ahead.BEGIN) + begin + at
    for i in range(streams):
        prefetch(first + i * apart)
    st(ahead + Ahead.AT, at + LINE)
    st(ahead + Ahead.SUM, ld(ahead + Ahead.SUM) + LINE * streams)
    return 1
