"""Host calls inside a device program, as native code: the handlers `start` and `join`, and what they enqueue.

`start` and `join` are XLA FFI handlers. They only enqueue: `start` launches a kernel that writes the operands into
mapped memory and raises a flag, `join` one that waits for the host's flag and merges. In between the serving
thread sees the flag, runs the segment with the team, and raises its own. Call sites are served in the order in
which they were enqueued, which is the stream's order, so nothing can wait for something behind it.

All that a segment needs lies in host memory, so the device waits as long as the host takes. A thread claims a call
before it works on it; one that does not get there is replaced (see `relay.Watch`), and finds the call claimed when it
comes late. An error of the driver ends the program that had it: the handler waits until the side streams are done with
XLA's arrays, XLA gets an error, and no handler of that program begins anything any more.

Arrays that the plan gives to the copy engines go over streams of our own, with events around them: a side stream
waits for what XLA's stream has done so far, and XLA's stream for the copy. `fetch` and `fetched` bring weights in the
same way.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from numba import int64, njit

from .enqueue import NO_STREAM, answer, copy, fail, failed, follow, launch, noted, stamp, stream_of
from .layout import (
    CLOCK,
    ENTRY_WORDS,
    FETCH_AFTER,
    FETCH_BEFORE,
    FETCH_BYTES,
    FETCH_FAULTS,
    FETCH_RELAY,
    FETCH_SOURCE,
    FETCH_STAMPS,
    FLAG_READY,
    FLAG_STAMPS,
    IN_COPY,
    IN_INNER,
    IN_MAPPED,
    IN_OFFSET,
    IN_OUTER,
    IN_STRIDE,
    IN_WIDE,
    IN_WORDS,
    M_CLOSED,
    M_DRIVER,
    M_HELD,
    M_ORDER,
    OUT_COPY,
    OUT_DEVICE,
    OUT_HOST,
    OUT_MAPPED,
    OUT_OUTER,
    OUT_WIDE,
    OUT_WORDS,
    PENDING,
    R_AWAIT,
    R_BLOCKS,
    R_CAPACITY,
    R_CLOSED,
    R_COND,
    R_ENTRIES,
    R_FETCH,
    R_FOLLOW,
    R_HEAD,
    R_HELD_NS,
    R_IN,
    R_JOIN4,
    R_JOIN16,
    R_LIBC,
    R_LIMIT_NS,
    R_LOCK,
    R_MUTEX,
    R_OUT,
    R_RECORD,
    R_SLEEPS,
    R_START4,
    R_START16,
    R_TAIL,
    R_TEAM,
    R_WAITERS,
    SITE_AFTER,
    SITE_BEFORE,
    SITE_COPIES,
    SITE_FAULTS,
    SITE_FLAGS,
    SITE_INS,
    SITE_NIN,
    SITE_NOUT,
    SITE_OUTS,
    SITE_RELAY,
    SITE_RING,
    SITE_SEQ,
    SITE_SKIPPED,
    SITE_TAKEN,
    SITE_WORK,
    STAMP_BYTES,
    TICK_FAULTS,
    TICK_RELAY,
    TICK_TARGET,
    YIELD,
)
from .team import argument, attribute, registering, result, wake
from .words import (
    atomic_add,
    atomic_load,
    atomic_store,
    call1,
    call2,
    call3,
    compare_exchange,
    ld,
    native,
    now,
    pause,
    scratch,
    st,
)


@njit
def enqueue(site, relay, seq):
    """Puts a call into the ring of the serving thread (the relay's lock is held). 0 when no call is taken any more."""
    libc = ld(relay + R_LIBC)
    while (
        atomic_load(relay + R_TAIL) - atomic_load(relay + R_HEAD) >= R_CAPACITY and atomic_load(relay + R_CLOSED) == 0
    ):
        call1(ld(libc + YIELD), 0)
    if atomic_load(relay + R_CLOSED) != 0:
        return int64(0)
    entry = ld(relay + R_ENTRIES) + 8 * ENTRY_WORDS * (atomic_load(relay + R_TAIL) % R_CAPACITY)
    st(entry, site)
    st(entry + 8, seq)
    team = ld(relay + R_TEAM)
    atomic_add(team + PENDING, 1)
    atomic_add(relay + R_TAIL, 1)
    return int64(1)


@njit
def raise_flag(site, relay, seq, stream, row, source):
    """Launches `start` for one operand (`row` 0: of nothing); it raises the site's flag unless `seq` is 0."""
    values = scratch(9)
    for i in range(9):
        st(values + 8 * i, int64(0))
    function, elements = ld(relay + R_START4), int64(1)
    st(values, source)
    if row != 0:
        st(values + 8, ld(row + IN_MAPPED))
        st(values + 16, ld(row + IN_OUTER))
        st(values + 24, ld(row + IN_INNER))
        st(values + 32, ld(row + IN_STRIDE))
        st(values + 40, ld(row + IN_OFFSET))
        elements = ld(row + IN_OUTER) * ld(row + IN_INNER)
        if ld(row + IN_WIDE) != 0:
            function = ld(relay + R_START16)
    st(values + 48, ld(site + SITE_FLAGS))
    st(values + 56, ld(site + SITE_WORK))
    st(values + 64, seq)
    return launch(relay, function, elements, ld(relay + R_BLOCKS), values, 9, stream)


@njit
def send(frame, site, relay, seq, stream):
    """The operands on their way to the host, by kernels first, then by copies; the flag behind the last of them."""
    n, copies, code = ld(site + SITE_NIN), ld(site + SITE_COPIES), int64(0)
    for i in range(n):
        row = ld(site + SITE_INS) + 8 * IN_WORDS * i
        if code == 0 and ld(row + IN_COPY) == 0:
            code = raise_flag(
                site, relay, seq if copies == 0 and i == n - 1 else int64(0), stream, row, argument(frame, i)
            )
    if copies == 0 or code != 0:
        return code
    side = ld(relay + R_OUT)
    code = follow(relay, side, ld(site + SITE_BEFORE), stream)
    for i in range(n):
        row = ld(site + SITE_INS) + 8 * IN_WORDS * i
        if code == 0 and ld(row + IN_COPY) != 0:
            size = 16 if ld(row + IN_WIDE) != 0 else 4
            width, pitch = ld(row + IN_INNER) * size, ld(row + IN_STRIDE) * size
            code = copy(
                relay,
                ld(row + IN_MAPPED),
                width,
                argument(frame, i) + ld(row + IN_OFFSET) * size,
                pitch,
                width,
                ld(row + IN_OUTER),
                side,
            )
    return raise_flag(site, relay, seq, side, int64(0), int64(0)) if code == 0 else code


@njit
def take(site, relay, faults, libc):
    """Takes a site for one execution of its program. 0 when the program has failed, or the execution that holds the
    site never joins: nothing of the relay has been in flight for the whole of the limit."""
    clock = ld(libc + CLOCK)
    began = now(clock)
    while compare_exchange(site + SITE_TAKEN, 0, 1) == 0:
        if failed(faults):
            return int64(0)
        if atomic_load(relay + R_HEAD) != atomic_load(relay + R_TAIL):
            began = now(clock)
        elif now(clock) - began > ld(relay + R_HELD_NS):
            return int64(0)
        call1(ld(libc + YIELD), 0)
    return int64(1)


@native(1)
def start(frame):
    """Operands: the segment's inputs (aliased with the results). Takes the site; another execution waits here until it
    is joined.
    """
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay, faults, flags = ld(site + SITE_RELAY), ld(site + SITE_FAULTS), ld(site + SITE_FLAGS)
    libc, stream = ld(relay + R_LIBC), stream_of(frame, relay)
    if take(site, relay, faults, libc) == 0:
        return fail(frame, relay, faults, M_HELD)
    while compare_exchange(relay + R_LOCK, 0, 1) == 0:
        pause()
    seq = ld(site + SITE_SEQ) + 1
    if failed(faults) or enqueue(site, relay, seq) == 0:
        atomic_store(relay + R_LOCK, int64(0))
        error = fail(frame, relay, faults, M_CLOSED)
        atomic_store(site + SITE_TAKEN, int64(0))
        return error
    st(site + SITE_SEQ, seq)
    code = send(frame, site, relay, seq, stream)
    if code != 0:  # nobody else will raise the flag that the serving thread waits for, and there is nothing to compute
        st(site + SITE_SKIPPED, seq)
        atomic_store(flags + FLAG_READY, seq)
    atomic_store(relay + R_LOCK, int64(0))
    if atomic_load(relay + R_SLEEPS) > 0:
        wake(ld(relay + R_MUTEX), ld(relay + R_COND), libc)
    if code == 0:
        return int64(0)
    error = fail(frame, relay, faults, M_DRIVER)
    atomic_store(site + SITE_TAKEN, int64(0))
    return error


@njit
def merge(site, relay, row, out, part, stream):
    """One result by a kernel that waits for the host and writes both parts."""
    values, nh, nd = scratch(10), ld(row + OUT_HOST), ld(row + OUT_DEVICE)
    st(values, out)
    st(values + 8, ld(row + OUT_MAPPED))
    st(values + 16, part)
    st(values + 24, ld(row + OUT_OUTER))
    st(values + 32, nh)
    st(values + 40, nd)
    st(values + 48, ld(site + SITE_FLAGS))
    st(values + 56, ld(site + SITE_WORK))
    st(values + 64, ld(site + SITE_SEQ))
    st(values + 72, ld(relay + R_LIMIT_NS))
    function = ld(relay + R_JOIN16) if ld(row + OUT_WIDE) != 0 else ld(relay + R_JOIN4)
    # a side stream may still have to run the kernel that this one waits for: it leaves room on every multiprocessor
    return launch(relay, function, ld(row + OUT_OUTER) * (nh + nd), ld(relay + R_WAITERS), values, 10, stream)


@njit
def bring(site, relay, row, out, part, stream):
    """One result by copies: the host's part over a side stream, once the host has raised its flag; the device's beside
    it.

    After an error the host's part may still be on its way to an array that XLA takes back: see `settle`."""
    size, rows, side = 16 if ld(row + OUT_WIDE) != 0 else 4, ld(row + OUT_OUTER), ld(relay + R_IN)
    mine, other, seq = ld(row + OUT_HOST) * size, ld(row + OUT_DEVICE) * size, ld(site + SITE_SEQ)
    code = follow(relay, side, ld(site + SITE_BEFORE), stream)
    if code == 0:
        values = scratch(4)
        st(values, ld(site + SITE_FLAGS))
        st(values + 8, ld(site + SITE_WORK))
        st(values + 16, seq)
        st(values + 24, ld(relay + R_LIMIT_NS))
        code = launch(relay, ld(relay + R_AWAIT), 1, 1, values, 4, side)
    if code == 0:
        code = copy(relay, out, mine + other, ld(row + OUT_MAPPED), mine, mine, rows, side)
    if code == 0 and other > 0:
        code = copy(relay, out + mine, mine + other, part, other, other, rows, stream)
    if code == 0:
        code = stamp(relay, ld(site + SITE_FLAGS) + FLAG_STAMPS + STAMP_BYTES * (seq % SITE_RING) + 40, side)
    return follow(relay, stream, ld(site + SITE_AFTER), side) if code == 0 else code


@native(1)
def join(frame):
    """Operands: the segment's inputs, then the device half's part where there is one. Gives the site free."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay, faults = ld(site + SITE_RELAY), ld(site + SITE_FAULTS)
    if atomic_load(site + SITE_TAKEN) == 0:
        return fail(frame, relay, faults, M_ORDER)
    stream, code = stream_of(frame, relay), int64(0)
    for i in range(ld(site + SITE_NOUT)):
        row = ld(site + SITE_OUTS) + 8 * OUT_WORDS * i
        part = argument(frame, ld(site + SITE_NIN)) if ld(row + OUT_DEVICE) > 0 else result(frame, i)
        if code == 0 and ld(row + OUT_COPY) != 0:
            code = bring(site, relay, row, result(frame, i), part, stream)
        elif code == 0:
            code = merge(site, relay, row, result(frame, i), part, stream)
    error = answer(frame, relay, faults, code)
    atomic_store(site + SITE_TAKEN, int64(0))
    return error


@native(1)
def tick(frame):
    """Operands: what has to be there before the clock is read (aliased with the results)."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay = ld(site + TICK_RELAY)
    return answer(frame, relay, ld(site + TICK_FAULTS), stamp(relay, ld(site + TICK_TARGET), stream_of(frame, relay)))


@native(1)
def fetch(frame):
    """Operands: what has to be done before (its buffers may be written over then). Results: the weights, and a word
    that stands for them.
    """
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay, faults, stamps = ld(site + FETCH_RELAY), ld(site + FETCH_FAULTS), ld(site + FETCH_STAMPS)
    if failed(faults):
        return fail(frame, relay, faults, M_CLOSED)
    side = ld(relay + R_FETCH)
    code = follow(relay, side, ld(site + FETCH_BEFORE), stream_of(frame, relay))
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps, side)
    if code == 0:
        code = copy(
            relay, result(frame, 0), int64(0), ld(site + FETCH_SOURCE), int64(0), ld(site + FETCH_BYTES), 1, side
        )
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps + 8, side)
    if code == 0:
        code = noted(relay, call2(ld(relay + R_RECORD), ld(site + FETCH_AFTER), side))
    return answer(frame, relay, faults, code)


@native(1)
def fetched(frame):
    """Operands: what `fetch` returned (aliased with the results). XLA's stream goes on when the copy is complete."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay, stream, code = ld(site + FETCH_RELAY), stream_of(frame, ld(site + FETCH_RELAY)), int64(NO_STREAM)
    if stream != 0:
        code = call3(ld(relay + R_FOLLOW), stream, ld(site + FETCH_AFTER), 0)
    return answer(frame, relay, ld(site + FETCH_FAULTS), noted(relay, code))
