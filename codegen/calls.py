"""Host calls inside a device program, as native code: the handlers `start` and `join`, and the thread that serves them.

`start` and `join` are XLA FFI handlers. They only enqueue: `start` launches a kernel that writes the operands into
mapped memory and raises a flag, `join` one that waits for the host's flag and merges. In between the serving
thread sees the flag, runs the segment with the team, and raises its own. Call sites are served in the order in
which they were enqueued, which is the stream's order, so nothing can wait for something behind it.

Arrays that the plan gives to the copy engines go over streams of our own, with events around them: a side stream
waits for what XLA's stream has done so far, and XLA's stream for the copy. `fetch` and `fetched` bring weights in the
same way.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from numba import int64, njit

from .enqueue import answer, copy, fail, follow, launch, noted, stamp, stream_of
from .layout import (
    CLOCK,
    COND,
    ENTRY_WORDS,
    FETCH_AFTER,
    FETCH_BEFORE,
    FETCH_BYTES,
    FETCH_RELAY,
    FETCH_SOURCE,
    FETCH_STAMPS,
    FLAG_DONE,
    FLAG_FAULT,
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
    JOB_BUFS,
    LOCK,
    M_DRIVER,
    M_LATE,
    M_ORDER,
    MUTEX,
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
    R_COND,
    R_ENTRIES,
    R_FETCH,
    R_FOLLOW,
    R_HEAD,
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
    R_SPIN_NS,
    R_START4,
    R_START16,
    R_STOP,
    R_TAIL,
    R_TEAM,
    R_WAITERS,
    SITE_AFTER,
    SITE_BEFORE,
    SITE_BUFS,
    SITE_COPIES,
    SITE_DESC,
    SITE_FLAGS,
    SITE_INS,
    SITE_NBUFS,
    SITE_NIN,
    SITE_NOUT,
    SITE_OUTS,
    SITE_RELAY,
    SITE_RING,
    SITE_SEQ,
    SITE_SERVED,
    SITE_TAKEN,
    SITE_WORK,
    SLEEPERS,
    STAMP_BYTES,
    TICK_RELAY,
    TICK_TARGET,
    UNLOCK,
    WAIT,
    YIELD,
)
from .native import atomic_add, atomic_load, atomic_store, call1, call2, call3, compare_exchange, ld, native, now, pause, scratch, st
from .team import POLITE_NS, argument, attribute, finish_job, open_job, registering, result, wake


@njit
def enqueue(site, relay, seq):
    """Puts a call into the ring of the serving thread (the relay's lock is held)."""
    libc = ld(relay + R_LIBC)
    while atomic_load(relay + R_TAIL) - atomic_load(relay + R_HEAD) >= R_CAPACITY:
        call1(ld(libc + YIELD), 0)
    entry = ld(relay + R_ENTRIES) + 8 * ENTRY_WORDS * (atomic_load(relay + R_TAIL) % R_CAPACITY)
    st(entry, site)
    st(entry + 8, seq)
    team = ld(relay + R_TEAM)
    atomic_add(team + PENDING, 1)
    atomic_add(relay + R_TAIL, 1)


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
            code = raise_flag(site, relay, seq if copies == 0 and i == n - 1 else int64(0), stream, row, argument(frame, i))
    if copies == 0 or code != 0:
        return code
    side = ld(relay + R_OUT)
    code = follow(relay, side, ld(site + SITE_BEFORE), stream)
    for i in range(n):
        row = ld(site + SITE_INS) + 8 * IN_WORDS * i
        if code == 0 and ld(row + IN_COPY) != 0:
            size = 16 if ld(row + IN_WIDE) != 0 else 4
            width, pitch = ld(row + IN_INNER) * size, ld(row + IN_STRIDE) * size
            code = copy(relay, ld(row + IN_MAPPED), width, argument(frame, i) + ld(row + IN_OFFSET) * size, pitch, width, ld(row + IN_OUTER), side)
    return raise_flag(site, relay, seq, side, int64(0), int64(0)) if code == 0 else code


@native(1)
def start(frame):
    """Operands: the segment's inputs (aliased with the results). Takes the site; another execution waits here until it is joined."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay = ld(site + SITE_RELAY)
    libc, flags = ld(relay + R_LIBC), ld(site + SITE_FLAGS)
    if atomic_load(flags + FLAG_FAULT) != 0:
        atomic_store(flags + FLAG_FAULT, int64(0))
        return fail(frame, relay, M_LATE)
    stream = stream_of(frame, relay)
    began = now(ld(libc + CLOCK))
    while compare_exchange(site + SITE_TAKEN, 0, 1) == 0:
        if now(ld(libc + CLOCK)) - began > ld(relay + R_LIMIT_NS):
            break  # a program failed between start and join
        call1(ld(libc + YIELD), 0)
    seq = ld(site + SITE_SEQ) + 1
    st(site + SITE_SEQ, seq)
    while compare_exchange(relay + R_LOCK, 0, 1) == 0:
        pause()
    enqueue(site, relay, seq)
    code = send(frame, site, relay, seq, stream)
    atomic_store(relay + R_LOCK, int64(0))
    if atomic_load(relay + R_SLEEPS) > 0:
        wake(ld(relay + R_MUTEX), ld(relay + R_COND), libc)
    if code != 0:  # nobody else will raise the flag that the serving thread waits for
        atomic_store(flags + FLAG_READY, seq)
        atomic_store(site + SITE_TAKEN, int64(0))
        return fail(frame, relay, M_DRIVER)
    return int64(0)


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
    """One result by copies: the host's part over a side stream, once the host has raised its flag; the device's beside it."""
    size, rows, side = 16 if ld(row + OUT_WIDE) != 0 else 4, ld(row + OUT_OUTER), ld(relay + R_IN)
    mine, other, seq = ld(row + OUT_HOST) * size, ld(row + OUT_DEVICE) * size, ld(site + SITE_SEQ)
    code = follow(relay, side, ld(site + SITE_BEFORE), stream)
    if code == 0:
        values = scratch(6)
        st(values, ld(row + OUT_MAPPED))
        st(values + 8, rows * mine // 4)
        st(values + 16, ld(site + SITE_FLAGS))
        st(values + 24, ld(site + SITE_WORK))
        st(values + 32, seq)
        st(values + 40, ld(relay + R_LIMIT_NS))
        code = launch(relay, ld(relay + R_AWAIT), 1, 1, values, 6, side)
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
    relay = ld(site + SITE_RELAY)
    if atomic_load(site + SITE_TAKEN) == 0:
        return fail(frame, relay, M_ORDER)
    stream, code = stream_of(frame, relay), int64(0)
    for i in range(ld(site + SITE_NOUT)):
        row = ld(site + SITE_OUTS) + 8 * OUT_WORDS * i
        part = argument(frame, ld(site + SITE_NIN)) if ld(row + OUT_DEVICE) > 0 else result(frame, i)
        if code == 0 and ld(row + OUT_COPY) != 0:
            code = bring(site, relay, row, result(frame, i), part, stream)
        elif code == 0:
            code = merge(site, relay, row, result(frame, i), part, stream)
    atomic_store(site + SITE_TAKEN, int64(0))
    return answer(frame, relay, code)


@native(1)
def tick(frame):
    """Operands: what has to be there before the clock is read (aliased with the results)."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay = ld(site + TICK_RELAY)
    return answer(frame, relay, stamp(relay, ld(site + TICK_TARGET), stream_of(frame, relay)))


@native(1)
def fetch(frame):
    """Operands: what has to be done before (its buffers may be written over then). Results: the weights, and a word that stands for them."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay = ld(site + FETCH_RELAY)
    side = ld(relay + R_FETCH)
    stamps = ld(site + FETCH_STAMPS)
    code = follow(relay, side, ld(site + FETCH_BEFORE), stream_of(frame, relay))
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps, side)
    if code == 0:
        code = copy(relay, result(frame, 0), int64(0), ld(site + FETCH_SOURCE), int64(0), ld(site + FETCH_BYTES), 1, side)
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps + 8, side)
    if code == 0:
        code = noted(relay, call2(ld(relay + R_RECORD), ld(site + FETCH_AFTER), side))
    return answer(frame, relay, code)


@native(1)
def fetched(frame):
    """Operands: what `fetch` returned (aliased with the results). XLA's stream goes on when the copy is complete."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    relay = ld(site + FETCH_RELAY)
    code = noted(relay, call3(ld(relay + R_FOLLOW), stream_of(frame, relay), ld(site + FETCH_AFTER), 0))
    return answer(frame, relay, code)


@njit
def run_site(site, libc):
    """Runs a site's segment over its mapped buffers; returns 0 when memory is out."""
    desc = ld(site + SITE_DESC)
    job = open_job(desc, libc)
    if job == 0:
        return int64(0)
    for i in range(ld(site + SITE_NBUFS)):
        st(ld(job + JOB_BUFS) + 8 * i, ld(ld(site + SITE_BUFS) + 8 * i))
    finish_job(desc, job, libc)
    return int64(1)


@njit
def await_flag(address, value, relay, libc):
    """Until a flag that the device raises has reached `value`; spins, and offers the core to others. False when stopped."""
    clock = ld(libc + CLOCK)
    began, spins = now(clock), 0
    while atomic_load(address) < value:
        pause()
        spins += 1
        if spins % 64 == 0:
            if atomic_load(relay + R_STOP) != 0:
                return False
            if now(clock) - began > POLITE_NS:
                call1(ld(libc + YIELD), 0)
    return True


@native(1)
def serve(relay):
    """The serving thread's life: the next call of the ring, its flag, its segment, its answer; until STOP."""
    libc, team = ld(relay + R_LIBC), ld(relay + R_TEAM)
    clock = ld(libc + CLOCK)
    while atomic_load(relay + R_STOP) == 0:
        head, began, spins = atomic_load(relay + R_HEAD), now(clock), 0
        while atomic_load(relay + R_TAIL) == head and atomic_load(relay + R_STOP) == 0:
            pause()
            spins += 1
            if spins % 64 != 0:
                continue
            waited = now(clock) - began
            if waited > POLITE_NS:
                call1(ld(libc + YIELD), 0)
            if waited > ld(relay + R_SPIN_NS):
                call1(ld(libc + LOCK), ld(relay + R_MUTEX))
                atomic_add(relay + R_SLEEPS, 1)
                while atomic_load(relay + R_TAIL) == head and atomic_load(relay + R_STOP) == 0:
                    call2(ld(libc + WAIT), ld(relay + R_COND), ld(relay + R_MUTEX))
                atomic_add(relay + R_SLEEPS, -1)
                call1(ld(libc + UNLOCK), ld(relay + R_MUTEX))
                began = now(clock)
        if atomic_load(relay + R_STOP) != 0:
            break
        entry = ld(relay + R_ENTRIES) + 8 * ENTRY_WORDS * (head % R_CAPACITY)
        site, seq = ld(entry), ld(entry + 8)
        flags = ld(site + SITE_FLAGS)
        if atomic_load(team + SLEEPERS) > 0:  # the team wakes while the device is still on its way
            wake(ld(team + MUTEX), ld(team + COND), libc)
        if not await_flag(flags + FLAG_READY, seq, relay, libc):
            break
        if run_site(site, libc) != 0:  # without memory the flag stays down: the watchdog makes the result NaN and says so
            atomic_store(flags + FLAG_DONE, seq)
        st(site + SITE_SERVED, seq)
        atomic_add(team + PENDING, -1)
        atomic_add(relay + R_HEAD, 1)
    return 0
