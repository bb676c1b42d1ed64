"""What handlers ask of the CUDA driver, as native code: launches, copies and events on a stream, and errors that XLA
understands.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .call_layout import COPY2D_WORDS, LOST, UNIFIED, Copy2D, Faults, Relay, Text
from .ffi import error
from .frame import INTERNAL
from .team import wake
from .words import atomic_add, atomic_load, atomic_store, call1, call2, call3, call4, call11, ld, scratch, st

BLOCK_THREADS = 256
ELEMENTS_A_BLOCK = 1024
NO_STREAM = 400  # the driver's code for an invalid handle
DRIVER, ORDER, HELD, CLOSED, MEMORY = Text.DRIVER, Text.ORDER, Text.HELD, Text.CLOSED, Text.MEMORY


def note(relay, faults, which):
    """Counts a fault of a program; the text of the first one is kept."""
    if atomic_add(faults + Faults.COUNT, 1) == 0:
        st(faults + Faults.FIRST, which)
        if which == DRIVER:
            st(faults + Faults.CODE, ld(relay + Relay.CODE))
    atomic_add(relay + Relay.ERRORS, 1)


def synchronised(relay, side):
    """Waits until the side stream at a word of the relay has done what it was given; the driver's code (0: none)."""
    return call1(ld(relay + Relay.SYNC), ld(relay + side)) & 0xFFFFFFFF


def settle(relay):
    """Until the side streams have done what they were given: XLA takes the arrays of a failed program back, and nothing
    may still write there.

    When the driver cannot even say that, the device is lost, and so is every open call."""
    code = synchronised(relay, Relay.OUT) | synchronised(relay, Relay.IN) | synchronised(relay, Relay.FETCH)
    if code != 0:
        atomic_store(relay + Relay.CLOSED, LOST)
        atomic_store(relay + Relay.SERVER, 0)
        wake(ld(relay + Relay.MUTEX), ld(relay + Relay.COND), ld(relay + Relay.LIBC))


def fail(frame, relay, faults, which):
    """An XLA error (internal) with the text of the program's first fault. The program runs no more: its other host
    calls may be half done.
    """
    note(relay, faults, which)
    atomic_store(faults + Faults.FAILED, 1)
    settle(relay)
    return error(frame, ld(ld(relay + Relay.MESSAGES) + ld(faults + Faults.FIRST)), INTERNAL)


def failed(faults):
    """Whether a program has failed, so that it runs no more."""
    return atomic_load(faults + Faults.FAILED) != 0


def answer(frame, relay, faults, code):
    """What a handler returns after calls of the driver: 0, or XLA's error."""
    return fail(frame, relay, faults, DRIVER) if code != 0 else 0


def launch(relay, function, elements, most, values, n, stream):
    """Launches a kernel for so many elements, in at most `most` blocks, with `n` parameters of 64 bits; returns the
    driver's code (0: none).
    """
    if stream == 0:
        return noted(relay, NO_STREAM)
    pointers = scratch(64)
    for i in range(n):
        st(pointers + 8 * i, values + 8 * i)
    blocks = min(max((elements + ELEMENTS_A_BLOCK - 1) // ELEMENTS_A_BLOCK, 1), most)
    return noted(
        relay, call11(ld(relay + Relay.LAUNCH), function, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, pointers, 0)
    )


def noted(relay, code):
    """A driver's code, kept when it is an error."""
    code = code & 0xFFFFFFFF
    if code != 0:
        st(relay + Relay.CODE, code)
    return code


def stamp(relay, target, stream):
    """The device's clock goes to `target` when the stream is there."""
    values = scratch(1)
    st(values, target)
    return launch(relay, ld(relay + Relay.STAMP), 1, 1, values, 1, stream)


def follow(relay, stream, event, other):
    """`stream` goes on only after all that `other` has been given so far."""
    if other == 0 or stream == 0:
        return noted(relay, NO_STREAM)
    code = noted(relay, call2(ld(relay + Relay.RECORD), event, other))
    return code if code != 0 else noted(relay, call3(ld(relay + Relay.FOLLOW), stream, event, 0))


def copy(relay, target, pitch, source, source_pitch, width, rows, stream):
    """Copies `rows` rows of `width` bytes with a copy engine; returns the driver's code (0: none).

    `pitch`, `source_pitch`: bytes from one row to the next.
    """
    if rows == 1 or (pitch == width and source_pitch == width):
        return noted(relay, call4(ld(relay + Relay.COPY), target, source, width * rows, stream))
    words = scratch(COPY2D_WORDS)
    for i in range(COPY2D_WORDS):
        st(words + 8 * i, 0)
    st(words + Copy2D.SOURCE_TYPE, UNIFIED)
    st(words + Copy2D.SOURCE, source)
    st(words + Copy2D.SOURCE_PITCH, source_pitch)
    st(words + Copy2D.TARGET_TYPE, UNIFIED)
    st(words + Copy2D.TARGET, target)
    st(words + Copy2D.TARGET_PITCH, pitch)
    st(words + Copy2D.WIDTH, width)
    st(words + Copy2D.HEIGHT, rows)
    return noted(relay, call2(ld(relay + Relay.COPY2D), words, stream))
