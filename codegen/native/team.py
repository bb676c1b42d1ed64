"""The handler that XLA calls and the team of worker threads, as native code.

A *segment* is a table of steps: driver address, parameter address, number of work items; `walk` works on them.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .ahead import aim_first, read_ahead
from .call_layout import Site, Tick
from .ffi import argument, attribute, error, keep_state, registering, result
from .frame import RESOURCE_EXHAUSTED
from .layout import (
    AHEAD_WORDS,
    ARENA_SLOTS,
    CALL_RING,
    COUNTER_BYTES,
    JOB_WORDS,
    LINE,
    STEP_WORDS,
    Ahead,
    Job,
    Libc,
    Segment,
    Step,
    Team,
)
from .walk import run_alone, run_steps, wait_for
from .words import (
    atomic_add,
    atomic_load,
    atomic_store,
    call1,
    call2,
    call3,
    compare_exchange,
    exchange,
    flush_denormals,
    ld,
    native,
    now,
    pause,
    restore_denormals,
    scratch,
    st,
)

POLITE_NS = 20_000  # of spinning before a thread offers its core to others
LONGER = 16  # calls of which a part of so many is more than a team's own time to spin have their workers spin as long
MOST_SPIN_NS = 1_000_000  # but no longer than this
BRIEF_NS = 50_000  # of a call that woke the workers, most, for another one to be tried without them
RECALLED = 64  # calls after which what the other kind of call took counts for two thirds less


def wake(mutex, cond, libc):
    """Wakes every thread that is parked on a condition."""
    call1(ld(libc + Libc.LOCK), mutex)
    call1(ld(libc + Libc.BROADCAST), cond)
    call1(ld(libc + Libc.UNLOCK), mutex)


def rest(team, seen, spare, libc):
    """Parks a worker until there is a call behind number `seen`, one is announced (not for a `spare` worker), or
    STOP.
    """
    parked = team + (Team.SPARE if spare else Team.SLEEPERS)
    cond = ld(team + (Team.SPARE_COND if spare else Team.COND))
    call1(ld(libc + Libc.LOCK), ld(team + Team.MUTEX))
    atomic_add(parked, 1)
    while (
        atomic_load(team + Team.SEQ) == seen
        and atomic_load(team + Team.STOP) == 0
        and (spare or atomic_load(team + Team.PENDING) == 0)
    ):
        call2(ld(libc + Libc.WAIT), cond, ld(team + Team.MUTEX))
    atomic_add(parked, -1)
    call1(ld(libc + Libc.UNLOCK), ld(team + Team.MUTEX))


def look(team, ahead, index):
    """Aims at what a worker reads first in the host call of a device that comes next. Its site is there while somebody
    looks.
    """
    atomic_add(team + Team.LOOKING, 1)
    threads = 0
    if atomic_load(team + Team.COMING) != 0:
        site = ld(team + Team.SITE)
        desc = ld(site + Site.SEGMENT)
        threads = ld(desc + Segment.THREADS)
        st(ahead + Ahead.SUM, 0)
        aim_first(ahead, desc, ld(site + Site.BUFFERS), index + 1 - ld(desc + Segment.APART))
    atomic_add(team + Team.LOOKING, -1)
    return threads


@native(2)
def worker(team, index):
    """A worker's life: wait for a call (spinning, then parked unless one is announced by PENDING), help with it, until
    STOP. Before a call of a device it asks for what it reads in it. Behind a long call the caller's code has left the
    caches, so that the next one begins later; who is parked then is woken when its first steps are over.

    Spare workers, which calls of fewer threads than the team has do without, park too and are not woken for them:
    spinning, they would keep cores from others for nothing.
    """
    before = flush_denormals()
    libc = ld(team + Team.LIBC)
    clock = ld(libc + Libc.CLOCK)
    seen, started, spin = 0, now(clock), 0
    ahead, coming, threads = scratch(AHEAD_WORDS), 0, 0
    st(ahead + Ahead.ITEMS, 0)
    while atomic_load(team + Team.STOP) == 0:
        spins = 0
        while atomic_load(team + Team.SEQ) == seen and atomic_load(team + Team.STOP) == 0:
            if atomic_load(team + Team.COMING) != coming:
                coming = atomic_load(team + Team.COMING)
                threads = look(team, ahead, index)
            if threads == 0 or read_ahead(ahead, threads, ld(team + Team.AHEAD)) == 0:
                pause()
            spins += 1
            if spins % 64 != 0:
                continue
            waited = now(clock) - started
            if waited > POLITE_NS:  # whoever has to run on this core need not wait for the end of a time slice
                call1(ld(libc + Libc.YIELD), 0)
            spare = index >= atomic_load(team + Team.WORKERS)
            most = max(0 if spare else spin, ld(team + Team.SPIN_NS))
            if waited > most and (spare or atomic_load(team + Team.PENDING) == 0):
                rest(team, seen, spare, libc)
                started = now(clock)
        began = now(clock)
        seen, threads = atomic_load(team + Team.SEQ), 0
        if index < atomic_load(team + Team.WORKERS):
            atomic_add(team + Team.INSIDE, 1)
            if atomic_load(team + Team.OPEN) == seen and seen != 0:
                job = ld(team + Team.JOB)
                run_steps(job, libc, index + 1)
            atomic_add(team + Team.INSIDE, -1)
            started = now(clock)
            spin = min((started - began) // LONGER, MOST_SPIN_NS)
    restore_denormals(before)
    return 0


def last(desc, job):
    """The address of a job's last stamp."""
    return ld(job + Job.TIMES) + 8 * ld(desc + Segment.STEP_COUNT)


def sooner_alone(desc, began, team):
    """Whether a call that begins while all workers are parked is over sooner if they stay so: it takes a few
    microseconds to wake them. Where one call follows another they are woken, as they stay awake for the next.
    """
    alone, woken = ld(desc + Segment.ALONE_NS), ld(desc + Segment.WOKEN_NS)
    if began - ld(team + Team.ENDED) < ld(team + Team.SPIN_NS) or woken == 0 or woken > BRIEF_NS:
        return 0
    if alone > woken:
        st(desc + Segment.ALONE_NS, alone - alone // RECALLED)
        return 0
    st(desc + Segment.WOKEN_NS, woken - woken // RECALLED)
    return 1


def run_job(desc, job, libc):
    """Runs a job with the team when it is free and wanted, and wakes it where that pays, else on this thread alone."""
    team, threads = ld(desc + Segment.TEAM), ld(desc + Segment.THREADS)
    counters, n = ld(job + Job.COUNTERS), ld(desc + Segment.STEP_COUNT)
    apart = ld(desc + Segment.APART) != 0 and atomic_load(team + Team.ALIVE) >= threads
    if team == 0 or (threads < 2 and not apart) or n == 0:
        run_alone(job, libc)
        return
    workers = threads if apart else threads - 1
    began, parked = ld(ld(job + Job.TIMES)), not apart and atomic_load(team + Team.SLEEPERS) >= workers
    if parked and sooner_alone(desc, began, team) != 0:
        run_alone(job, libc)
        st(desc + Segment.ALONE_NS, ld(last(desc, job)) - began)
        st(team + Team.ENDED, ld(last(desc, job)))
        return
    while compare_exchange(team + Team.BUSY, 0, 1) == 0:
        if not apart:
            run_alone(job, libc)
            return
        call1(ld(libc + Libc.YIELD), 0)  # a call that must not use this thread's core waits for its team
    for i in range(ld(desc + Segment.COUNTER_COUNT)):
        for word in range(LINE // 8 + 1):
            st(counters + COUNTER_BYTES * i + 8 * word, 0)
    st(team + Team.JOB, job)
    more = workers > atomic_load(team + Team.WORKERS)
    atomic_store(team + Team.WORKERS, workers)
    seq = atomic_load(team + Team.SEQ) + 1
    atomic_store(team + Team.OPEN, seq)
    atomic_store(team + Team.SEQ, seq)
    if atomic_load(team + Team.SLEEPERS) > 0:
        wake(ld(team + Team.MUTEX), ld(team + Team.COND), libc)
    if more and atomic_load(team + Team.SPARE) > 0:
        wake(ld(team + Team.MUTEX), ld(team + Team.SPARE_COND), libc)
    if apart:
        wait_for(
            counters + COUNTER_BYTES * (n - 1) + 64,
            ld(ld(desc + Segment.STEPS) + (n - 1) * 8 * STEP_WORDS + Step.ITEMS),
            libc,
        )
    else:
        run_steps(job, libc, 0)
    if parked:
        st(desc + Segment.WOKEN_NS, ld(last(desc, job)) - began)
    st(team + Team.ENDED, ld(last(desc, job)))
    atomic_store(team + Team.OPEN, 0)
    while atomic_load(team + Team.INSIDE) > 0:
        pause()
    atomic_store(team + Team.BUSY, 0)


def take_arena(desc, libc):
    """An idle arena of this segment, or a new one with its zeroed part cleared; 0 when memory is out."""
    for i in range(ARENA_SLOTS):
        p = exchange(desc + Segment.SLOTS + 8 * i, 0)
        if p != 0:
            return p
    out = scratch(1)
    if call3(ld(libc + Libc.MEMALIGN), out, 64, ld(desc + Segment.ARENA_BYTES)) & 0xFFFFFFFF != 0:
        return 0
    data = ld(out) + ld(desc + Segment.DATA)
    for i in range(ld(desc + Segment.ZERO_BYTES) // 8):
        st(data + 8 * i, 0)
    return ld(out)


def give_arena(desc, libc, p):
    """Keeps an arena for the next call of a segment, or frees it where enough are kept."""
    for i in range(ARENA_SLOTS):
        if compare_exchange(desc + Segment.SLOTS + 8 * i, 0, p) == 1:
            return
    call1(ld(libc + Libc.FREE), p)


def keep_times(desc, job):
    """Copies the stamps of a call, [steps + 1] nanoseconds, into the segment's ring, for profiles and timelines."""
    n = ld(desc + Segment.STEP_COUNT) + 1
    slot = atomic_add(desc + Segment.CALLS, 1) % CALL_RING
    ring, times = ld(desc + Segment.TIMES) + slot * 8 * n, ld(job + Job.TIMES)
    for i in range(n):
        st(ring + 8 * i, ld(times + 8 * i))


def open_job(desc, libc):
    """A job of this segment: an arena with its head filled in, but for the buffers of arguments and results. 0 when
    memory is out.
    """
    job = take_arena(desc, libc)
    if job == 0:
        return 0
    n, args, rets = ld(desc + Segment.STEP_COUNT), ld(desc + Segment.ARGUMENTS), ld(desc + Segment.RESULTS)
    bufs = job + JOB_WORDS * 8
    st(job + Job.SEGMENT, desc)
    st(job + Job.BUFFERS, bufs)
    st(job + Job.TIMES, bufs + 8 * (args + rets + 1))
    st(job + Job.COUNTERS, bufs + 8 * (args + rets + n + 2))
    st(bufs + 8 * (args + rets), job + ld(desc + Segment.DATA))
    return job


def finish_job(desc, job, libc):
    """Runs an open job, keeps its stamps and gives its arena back."""
    st(ld(job + Job.TIMES), now(ld(libc + Libc.CLOCK)))
    run_job(desc, job, libc)
    keep_times(desc, job)
    give_arena(desc, libc, job)


@native(1)
def handler(frame):
    """The XLA FFI call (CPU): finds its segment by attribute, gathers the buffers, runs the steps."""
    if registering(frame):
        return 0
    desc = attribute(frame)
    libc = ld(desc + Segment.LIBC)
    job = open_job(desc, libc)
    if job == 0:
        return error(frame, ld(libc + Libc.MESSAGE), RESOURCE_EXHAUSTED)
    bufs, args = ld(job + Job.BUFFERS), ld(desc + Segment.ARGUMENTS)
    for i in range(args):
        st(bufs + 8 * i, argument(frame, i))
    for i in range(ld(desc + Segment.RESULTS)):
        st(bufs + 8 * (args + i), result(frame, i))
    finish_job(desc, job, libc)
    return 0


@native(1)
def release(desc):
    """Gives up a hold on a segment's descriptor; with the last one its memory goes, and that of its idle arenas.

    Nobody can be in a call then: XLA keeps an executable until its last call is over.
    """
    if atomic_add(desc + Segment.HOLDS, -1) != 1:
        return 0
    libc = ld(desc + Segment.LIBC)
    for i in range(ARENA_SLOTS):
        arena = exchange(desc + Segment.SLOTS + 8 * i, 0)
        if arena != 0:
            call1(ld(libc + Libc.FREE), arena)
    call1(ld(libc + Libc.FREE), desc)
    return 0


@native(1)
def adopt(frame):
    """An XLA FFI call (CPU, when an executable is made): the executable holds the segment until it goes itself."""
    if registering(frame):
        return 0
    desc = attribute(frame)
    atomic_add(desc + Segment.HOLDS, 1)
    failed = keep_state(frame, ld(desc + Segment.STATE_TYPE), desc)
    if failed != 0:
        atomic_add(desc + Segment.HOLDS, -1)
    return failed


@native(1)
def stamp(frame):
    """An XLA FFI call (CPU) that notes the time; operands: what has to be there before (aliased with the results)."""
    if registering(frame):
        return 0
    site = attribute(frame)
    st(ld(site + Tick.TARGET), now(ld(site + Tick.CLOCK)))
    return 0


@native(2)
def swap(address, value):
    """Atomic exchange, for Python."""
    return exchange(address, value)
