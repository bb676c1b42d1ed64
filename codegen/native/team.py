"""The handler that XLA calls, the step walker and the team of worker threads, as native code.

A *segment* is a table of steps: driver address, parameter address, number of work items. Whoever takes
part claims items one by one from a counter; a step is over when all its items are done, not when all
threads have arrived, so a worker that the operating system has put aside never holds the others up.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from numba import int64, njit

from .layout import (
    ALIVE,
    APART,
    ARENA_BYTES,
    ARENA_SLOTS,
    ARGS,
    BROADCAST,
    BUSY,
    CALLS,
    CLOCK,
    COND,
    COUNTER_BYTES,
    DATA,
    DRIVER,
    FREE,
    INSIDE,
    ITEMS,
    JOB,
    JOB_BUFS,
    JOB_COUNTERS,
    JOB_DESC,
    JOB_TIMES,
    JOB_WORDS,
    LIBC,
    LOCK,
    MEMALIGN,
    MESSAGE,
    MUTEX,
    NSTEPS,
    OPEN,
    PARAMS,
    PENDING,
    RETS,
    RING,
    SEQ,
    SLEEPERS,
    SLOTS,
    SPARE,
    SPARE_COND,
    SPIN_NS,
    STEP_WORDS,
    STEPS,
    STOP,
    TEAM,
    TEAM_LIBC,
    THREADS,
    TICK_CLOCK,
    TICK_TARGET,
    TIMES,
    TRACE,
    TRACE_CAPACITY,
    TRACE_ENTRIES,
    TRACE_NEXT,
    TRACE_WORDS,
    UNLOCK,
    WAIT,
    WORKERS,
    YIELD,
    ZERO_BYTES,
)
from .words import (
    atomic_add,
    atomic_load,
    atomic_store,
    call1,
    call2,
    call3,
    call5,
    compare_exchange,
    exchange,
    ld,
    native,
    now,
    pause,
    scratch,
    st,
    st32,
)

POLITE_NS = 20_000  # of spinning before a thread offers its core to others


@njit
def wait_for(address, value, libc):
    """Until the counter at `address` has reached `value`; other threads get the core when it takes long."""
    spins = 0
    while atomic_load(address) < value:
        pause()
        spins += 1
        if spins > 20000:
            call1(ld(libc + YIELD), 0)


@njit
def wake(mutex, cond, libc):
    """Wakes every thread that is parked on a condition."""
    call1(ld(libc + LOCK), mutex)
    call1(ld(libc + BROADCAST), cond)
    call1(ld(libc + UNLOCK), mutex)


@njit
def note(trace, desc, step, who, began, ended):
    """One entry of the trace: a thread's work on a step."""
    i = atomic_add(trace + TRACE_NEXT, 1)
    if i < ld(trace + TRACE_CAPACITY):
        entry = trace + TRACE_ENTRIES + 8 * TRACE_WORDS * i
        st(entry, desc)
        st(entry + 8, step)
        st(entry + 16, who)
        st(entry + 24, began)
        st(entry + 32, ended)


@njit
def run_steps(job, libc, who, master):
    """Works on every step of a job until all are done, as thread number `who`; the master also stamps the clock."""
    desc, bufs, counters = ld(job + JOB_DESC), ld(job + JOB_BUFS), ld(job + JOB_COUNTERS)
    n, steps, times = ld(desc + NSTEPS), ld(desc + STEPS), ld(job + JOB_TIMES)
    clock, trace = ld(libc + CLOCK), atomic_load(ld(desc + TEAM) + TRACE)
    for s in range(n):
        step = steps + s * 8 * STEP_WORDS
        began, mine = now(clock) if trace != 0 else int64(0), 0
        items, driver, params = ld(step + ITEMS), ld(step + DRIVER), ld(step + PARAMS)
        claimed, finished = counters + COUNTER_BYTES * s, counters + COUNTER_BYTES * s + 64
        while True:
            i = atomic_add(claimed, 1)
            if i >= items:
                break
            call5(driver, params, bufs, i, i + 1, who)
            atomic_add(finished, 1)
            mine += 1
        if trace != 0 and mine > 0:
            note(trace, desc, s, who, began, now(clock))
        wait_for(finished, items, libc)
        if master:
            st(times + 8 * (s + 1), now(clock))


@njit
def run_alone(job, libc):
    """The same steps by the calling thread only: no counters."""
    desc, bufs = ld(job + JOB_DESC), ld(job + JOB_BUFS)
    n, steps, times = ld(desc + NSTEPS), ld(desc + STEPS), ld(job + JOB_TIMES)
    clock = ld(libc + CLOCK)
    for s in range(n):
        step = steps + s * 8 * STEP_WORDS
        call5(ld(step + DRIVER), ld(step + PARAMS), bufs, 0, ld(step + ITEMS), 0)
        st(times + 8 * (s + 1), now(clock))


@native(2)
def worker(team, index):
    """A worker's life: wait for a call (spinning, then parked unless one is announced by PENDING), help with it, until
    STOP.

    Worker 0 stamps the clock for a caller that stays apart. Spare workers, which calls of fewer threads than the team
    has do without, park too and are not woken for them: spinning, they would keep cores from others for nothing.
    """
    libc = ld(team + TEAM_LIBC)
    clock = ld(libc + CLOCK)
    seen, started = 0, now(clock)
    while atomic_load(team + STOP) == 0:
        spins = 0
        while atomic_load(team + SEQ) == seen and atomic_load(team + STOP) == 0:
            pause()
            spins += 1
            if spins % 64 != 0:
                continue
            waited = now(clock) - started
            if waited > POLITE_NS:  # whoever has to run on this core need not wait for the end of a time slice
                call1(ld(libc + YIELD), 0)
            spare = index >= atomic_load(team + WORKERS)
            if waited > ld(team + SPIN_NS) and (spare or atomic_load(team + PENDING) == 0):
                parked = team + (SPARE if spare else SLEEPERS)
                cond = ld(team + (SPARE_COND if spare else COND))
                call1(ld(libc + LOCK), ld(team + MUTEX))
                atomic_add(parked, 1)
                while (
                    atomic_load(team + SEQ) == seen
                    and atomic_load(team + STOP) == 0
                    and (spare or atomic_load(team + PENDING) == 0)
                ):
                    call2(ld(libc + WAIT), cond, ld(team + MUTEX))
                atomic_add(parked, -1)
                call1(ld(libc + UNLOCK), ld(team + MUTEX))
                started = now(clock)
        seen = atomic_load(team + SEQ)
        if index < atomic_load(team + WORKERS):
            atomic_add(team + INSIDE, 1)
            if atomic_load(team + OPEN) == seen and seen != 0:
                job = ld(team + JOB)
                run_steps(job, libc, index + 1, index == 0 and ld(ld(job + JOB_DESC) + APART) != 0)
            atomic_add(team + INSIDE, -1)
            started = now(clock)
    return 0


@njit
def run_job(desc, job, libc):
    """Runs a job with the team when it is free and wanted, else on this thread alone."""
    team, threads = ld(desc + TEAM), ld(desc + THREADS)
    counters, n = ld(job + JOB_COUNTERS), ld(desc + NSTEPS)
    apart = ld(desc + APART) != 0 and atomic_load(team + ALIVE) >= threads
    if team == 0 or (threads < 2 and not apart) or n == 0:
        run_alone(job, libc)
        return
    while compare_exchange(team + BUSY, 0, 1) == 0:
        if not apart:
            run_alone(job, libc)
            return
        call1(ld(libc + YIELD), 0)  # a call that must not use this thread's core waits for its team
    for i in range(n):
        st(counters + COUNTER_BYTES * i, int64(0))
        st(counters + COUNTER_BYTES * i + 64, int64(0))
    st(team + JOB, job)
    workers = threads if apart else threads - 1
    more = workers > atomic_load(team + WORKERS)
    atomic_store(team + WORKERS, workers)
    seq = atomic_load(team + SEQ) + 1
    atomic_store(team + OPEN, seq)
    atomic_store(team + SEQ, seq)
    if atomic_load(team + SLEEPERS) > 0:
        wake(ld(team + MUTEX), ld(team + COND), libc)
    if more and atomic_load(team + SPARE) > 0:
        wake(ld(team + MUTEX), ld(team + SPARE_COND), libc)
    if apart:
        wait_for(counters + COUNTER_BYTES * (n - 1) + 64, ld(ld(desc + STEPS) + (n - 1) * 8 * STEP_WORDS + ITEMS), libc)
    else:
        run_steps(job, libc, 0, True)
    atomic_store(team + OPEN, int64(0))
    while atomic_load(team + INSIDE) > 0:
        pause()
    atomic_store(team + BUSY, int64(0))


@njit
def take_arena(desc, libc):
    """An idle arena of this segment, or a new one with its zeroed part cleared; 0 when memory is out."""
    for i in range(ARENA_SLOTS):
        p = exchange(desc + SLOTS + 8 * i, 0)
        if p != 0:
            return p
    out = scratch(1)
    if call3(ld(libc + MEMALIGN), out, 64, ld(desc + ARENA_BYTES)) & 0xFFFFFFFF != 0:
        return int64(0)
    data = ld(out) + ld(desc + DATA)
    for i in range(ld(desc + ZERO_BYTES) // 8):
        st(data + 8 * i, int64(0))
    return ld(out)


@njit
def give_arena(desc, libc, p):
    for i in range(ARENA_SLOTS):
        if compare_exchange(desc + SLOTS + 8 * i, 0, p) == 1:
            return
    call1(ld(libc + FREE), p)


@njit
def keep_times(desc, job):
    """Copies the stamps of a call into the segment's ring, for profiles and timelines."""
    n = ld(desc + NSTEPS) + 1
    slot = atomic_add(desc + CALLS, 1) % RING
    ring, times = ld(desc + TIMES) + slot * 8 * n, ld(job + JOB_TIMES)
    for i in range(n):
        st(ring + 8 * i, ld(times + 8 * i))


@njit
def open_job(desc, libc):
    """A job of this segment: an arena with its head filled in, but for the buffers of arguments and results. 0 when
    memory is out.
    """
    job = take_arena(desc, libc)
    if job == 0:
        return int64(0)
    n, args, rets = ld(desc + NSTEPS), ld(desc + ARGS), ld(desc + RETS)
    bufs = job + JOB_WORDS * 8
    st(job + JOB_DESC, desc)
    st(job + JOB_BUFS, bufs)
    st(job + JOB_TIMES, bufs + 8 * (args + rets + 1))
    st(job + JOB_COUNTERS, bufs + 8 * (args + rets + n + 2))
    st(bufs + 8 * (args + rets), job + ld(desc + DATA))
    return job


@njit
def finish_job(desc, job, libc):
    """Runs an open job, keeps its stamps and gives its arena back."""
    st(ld(job + JOB_TIMES), now(ld(libc + CLOCK)))
    run_job(desc, job, libc)
    keep_times(desc, job)
    give_arena(desc, libc, job)


@njit
def registering(frame):
    """Whether XLA only asks for the API version (0.1, no traits)."""
    extension = ld(frame + 8)
    if extension == 0:
        return False
    metadata = ld(extension + 24)
    st32(metadata + 24, 0)
    st32(metadata + 28, 1)
    st32(metadata + 32, 0)
    return True


@njit
def attribute(frame):
    """The only attribute of a call: an address ({dtype, pointer to it})."""
    return ld(ld(ld(ld(frame + 120 + 40)) + 8))


@njit
def argument(frame, i):
    """Address of the i-th operand's data."""
    return ld(ld(ld(frame + 72) + 8 * i) + 24)


@njit
def result(frame, i):
    """Address of the i-th result's data."""
    return ld(ld(ld(frame + 112) + 8 * i) + 24)


@njit
def error(frame, message, code):
    """An XLA error with a text and one of XLA's codes (8: memory is out, 13: internal)."""
    args = scratch(4)
    st(args, int64(32))
    st(args + 8, int64(0))
    st(args + 16, message)
    st(args + 24, int64(code))
    return call1(ld(ld(frame + 16) + 48), args)


@native(1)
def handler(frame):
    """The XLA FFI call (CPU): finds its segment by attribute, gathers the buffers, runs the steps."""
    if registering(frame):
        return int64(0)
    desc = attribute(frame)
    libc = ld(desc + LIBC)
    job = open_job(desc, libc)
    if job == 0:
        return error(frame, ld(libc + MESSAGE), 8)
    bufs, args = ld(job + JOB_BUFS), ld(desc + ARGS)
    for i in range(args):
        st(bufs + 8 * i, argument(frame, i))
    for i in range(ld(desc + RETS)):
        st(bufs + 8 * (args + i), result(frame, i))
    finish_job(desc, job, libc)
    return int64(0)


@native(1)
def stamp(frame):
    """An XLA FFI call (CPU) that notes the time; operands: what has to be there before (aliased with the results)."""
    if registering(frame):
        return int64(0)
    site = attribute(frame)
    st(ld(site + TICK_TARGET), now(ld(site + TICK_CLOCK)))
    return int64(0)


@native(2)
def swap(address, value):
    """Atomic exchange, for Python."""
    return exchange(address, value)
