"""What handlers ask of the CUDA driver, as native code: launches, copies and events on a stream, and errors that XLA
understands.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from numba import int64, njit

from .layout import (
    LOST,
    M_DRIVER,
    P_CODE,
    P_COUNT,
    P_FAILED,
    P_FIRST,
    R_CLOSED,
    R_CODE,
    R_COND,
    R_COPY,
    R_COPY2D,
    R_ERRORS,
    R_FETCH,
    R_FOLLOW,
    R_IN,
    R_LAUNCH,
    R_LIBC,
    R_MESSAGES,
    R_MUTEX,
    R_OUT,
    R_RECORD,
    R_SERVER,
    R_STAMP,
    R_STREAM,
    R_SYNC,
)
from .team import error, wake
from .words import atomic_add, atomic_load, atomic_store, call1, call2, call3, call4, call11, ld, scratch, st

BLOCK_THREADS = 256
ELEMENTS_A_BLOCK = 1024


NO_STREAM = 400  # the driver's code for an invalid handle


@njit
def note(relay, faults, which):
    """Counts a fault of a program; the text of the first one is kept."""
    if atomic_add(faults + P_COUNT, 1) == 0:
        st(faults + P_FIRST, int64(which))
        if which == M_DRIVER:
            st(faults + P_CODE, ld(relay + R_CODE))
    atomic_add(relay + R_ERRORS, 1)


@njit
def settle(relay):
    """Until the side streams have done what they were given: XLA takes the arrays of a failed program back, and nothing
    may still write there.

    When the driver cannot even say that, the device is lost, and so is every open call."""
    code = int64(0)
    for side in (R_OUT, R_IN, R_FETCH):
        code |= call1(ld(relay + R_SYNC), ld(relay + side)) & 0xFFFFFFFF
    if code != 0:
        atomic_store(relay + R_CLOSED, int64(LOST))
        atomic_store(relay + R_SERVER, int64(0))
        wake(ld(relay + R_MUTEX), ld(relay + R_COND), ld(relay + R_LIBC))


@njit
def fail(frame, relay, faults, which):
    """An XLA error (internal) with the text of the program's first fault. The program runs no more: its other host
    calls may be half done.
    """
    note(relay, faults, which)
    atomic_store(faults + P_FAILED, int64(1))
    settle(relay)
    return error(frame, ld(ld(relay + R_MESSAGES) + ld(faults + P_FIRST)), 13)


@njit
def failed(faults):
    return atomic_load(faults + P_FAILED) != 0


@njit
def answer(frame, relay, faults, code):
    """What a handler returns after calls of the driver: 0, or XLA's error."""
    return fail(frame, relay, faults, M_DRIVER) if code != 0 else int64(0)


@njit
def stream_of(frame, relay):
    """The stream that XLA launches on; 0 when it does not say (stream 0 of the driver is another one, whose order is
    not XLA's).
    """
    own = ld(relay + R_STREAM)
    if own != 0:
        return own
    args = scratch(4)
    st(args, int64(32))
    st(args + 8, int64(0))
    st(args + 16, ld(frame + 24))
    st(args + 24, int64(0))
    if call1(ld(ld(frame + 16) + 80), args) != 0:
        return int64(0)
    return ld(args + 24)


@njit
def launch(relay, function, elements, most, values, n, stream):
    """Launches a kernel of at most `most` blocks with `n` parameters of 64 bits; returns the driver's code."""
    if stream == 0:
        return noted(relay, NO_STREAM)
    pointers = scratch(16)
    for i in range(n):
        st(pointers + 8 * i, values + 8 * i)
    blocks = min(max((elements + ELEMENTS_A_BLOCK - 1) // ELEMENTS_A_BLOCK, 1), most)
    return noted(
        relay, call11(ld(relay + R_LAUNCH), function, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, pointers, 0)
    )


@njit
def noted(relay, code):
    """A driver's code, kept when it is an error."""
    code = code & 0xFFFFFFFF
    if code != 0:
        st(relay + R_CODE, code)
    return code


@njit
def stamp(relay, target, stream):
    """The device's clock goes to `target` when the stream is there."""
    values = scratch(1)
    st(values, target)
    return launch(relay, ld(relay + R_STAMP), 1, 1, values, 1, stream)


@njit
def follow(relay, stream, event, other):
    """`stream` goes on only after all that `other` has been given so far."""
    if other == 0 or stream == 0:
        return noted(relay, NO_STREAM)
    code = noted(relay, call2(ld(relay + R_RECORD), event, other))
    return code if code != 0 else noted(relay, call3(ld(relay + R_FOLLOW), stream, event, 0))


@njit
def copy(relay, target, pitch, source, source_pitch, width, rows, stream):
    """Copies `rows` rows of `width` bytes with a copy engine; the words are CUDA_MEMCPY2D's, 4 stands for unified
    addresses.
    """
    if rows == 1 or (pitch == width and source_pitch == width):
        return noted(relay, call4(ld(relay + R_COPY), target, source, width * rows, stream))
    words = scratch(16)
    for i in range(16):
        st(words + 8 * i, int64(0))
    st(words + 16, int64(4))
    st(words + 32, source)
    st(words + 48, source_pitch)
    st(words + 72, int64(4))
    st(words + 88, target)
    st(words + 104, pitch)
    st(words + 112, width)
    st(words + 120, rows)
    return noted(relay, call2(ld(relay + R_COPY2D), words, stream))
