"""The handler that XLA calls, the step walker and the team of worker threads, as native code.

A *segment* is a table of steps: driver address, parameter address, number of work items. Whoever takes
part claims items one by one from the counters of a step's ranges, beginning with its own; a step is over when all
its items are done, not when all threads have arrived, so a worker that the operating system has put aside never holds
the others up.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .ahead import aim, aim_first, read_ahead
from .call_layout import Site, Tick
from .drivers import ends_loop, enter_loop, par, turn_loop
from .ffi import argument, attribute, error, keep_state, registering, result
from .frame import RESOURCE_EXHAUSTED
from .layout import (
    AHEAD_WORDS,
    ARENA_SLOTS,
    CALL_RING,
    COUNTER_BYTES,
    JOB_WORDS,
    LINE,
    LOOP_BUFFERS,
    RANGES,
    STEP_WORDS,
    TAKEN,
    TRACED_WORDS,
    Ahead,
    Job,
    Libc,
    Loop,
    Segment,
    Step,
    Team,
    Trace,
    Traced,
)
from .words import (
    atomic_add,
    atomic_load,
    atomic_store,
    bit_of,
    call1,
    call2,
    call3,
    call5,
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
    take_bit,
)

POLITE_NS = 20_000  # of spinning before a thread offers its core to others
LONGER = 16  # calls of which a part of so many is more than a team's own time to spin have their workers spin as long
MOST_SPIN_NS = 1_000_000  # but no longer than this


def wait_for(address, value, libc):
    """Until the counter at `address` has reached `value`; other threads get the core when it takes long."""
    spins = 0
    while atomic_load(address) < value:
        pause()
        spins += 1
        if spins > 20000:
            call1(ld(libc + Libc.YIELD), 0)


def read_until(address, value, ahead, desc, bufs, own, libc):
    """Asks for what comes next until the counter at `address` has reached `value`."""
    threads, most = ld(desc + Segment.THREADS), ld(ld(desc + Segment.TEAM) + Team.AHEAD)
    while atomic_load(address) < value:
        if read_ahead(ahead, threads, most) == 0:
            if ld(ahead + Ahead.SUM) >= most or ld(ahead + Ahead.STEP) >= ld(desc + Segment.STEP_COUNT):
                wait_for(address, value, libc)
            else:
                aim(ahead, desc, bufs, ld(ahead + Ahead.NEXT), own)


def work_owned(step, bufs, claimed, finished, own, threads, who, stamp, clock):
    """Works on a step's items that have owners, on those of thread `own` first: it has asked for what they read. Then
    on what others have left. Returns how many.
    """
    items, driver, params, done = ld(step + Step.ITEMS), ld(step + Step.DRIVER), ld(step + Step.PARAMS), 0
    mine = (items - own + threads - 1) // threads
    for turn in range(max(mine, 0) + items):
        i = own + turn * threads if turn < mine else (own + turn - max(mine, 0)) % items
        word = claimed + TAKEN + 8 * (i // 64)
        if bit_of(atomic_load(word), i % 64) == 0 and take_bit(word, i % 64) == 1:
            call5(driver, params, bufs, i, i + 1, who)
            if atomic_add(finished, 1) == items - 1:
                st(stamp, now(clock))
            done += 1
    return done


def wake(mutex, cond, libc):
    """Wakes every thread that is parked on a condition."""
    call1(ld(libc + Libc.LOCK), mutex)
    call1(ld(libc + Libc.BROADCAST), cond)
    call1(ld(libc + Libc.UNLOCK), mutex)


def note(trace, desc, step, who, began, ended):
    """One entry of the trace: a thread's work on a step, from `began` to `ended` (nanoseconds)."""
    i = atomic_add(trace + Trace.NEXT, 1)
    if i < ld(trace + Trace.CAPACITY):
        entry = trace + Trace.ENTRIES + 8 * TRACED_WORDS * i
        st(entry + Traced.SEGMENT, desc)
        st(entry + Traced.STEP, step)
        st(entry + Traced.THREAD, who)
        st(entry + Traced.BEGAN, began)
        st(entry + Traced.ENDED, ended)


def run_loop(params, bufs, counters, ended, libc, who):
    """Works on every turn of a loop until all are over; tells whether it was this thread that ended the last one.

    The counters go on from turn to turn, so that nobody has to wait while somebody sets them back; who comes late finds
    the turns that are over claimed in full. Nothing is claimed beyond a turn's items, which are the next turn's. The
    word at `ended` tells in which turn (counted from 1) the condition has failed: who has computed it writes it down
    before others go on, as the condition itself is written over in the next turn.
    """
    table, mine = scratch(LOOP_BUFFERS), 0
    enter_loop(params, bufs, table)
    length, n, steps = par(params, Loop.LENGTH), par(params, Loop.STEP_COUNT), par(params, Loop.STEPS)
    for turn in range(length):
        turn_loop(params, table, turn)
        for s in range(n):
            step = steps + s * 8 * STEP_WORDS
            items, driver, inner = ld(step + Step.ITEMS), ld(step + Step.DRIVER), ld(step + Step.PARAMS)
            claimed, finished = counters + COUNTER_BYTES * s, counters + COUNTER_BYTES * s + 64
            before, stop = turn * items, (turn + 1) * items
            i = atomic_load(claimed)
            while i < stop:
                if compare_exchange(claimed, i, i + 1) == 1:
                    call5(driver, inner, table, i - before, i - before + 1, who)
                    if ends_loop(params, table, s):
                        atomic_store(ended, turn + 1)
                        mine = 1
                    if atomic_add(finished, 1) == length * items - 1 and s == n - 1:
                        mine = 1
                i = atomic_load(claimed)
            wait_for(finished, stop, libc)
            if atomic_load(ended) == turn + 1:
                return mine
    return mine


def work_claimed(desc, job, s, claimed, finished, who, clock, trace):
    """Works on items of step number `s` that nobody has claimed, on those of its own range first: neighbouring items
    read and write neighbouring memory, and the same thread has that part of the next step. Returns how many.
    """
    step, threads = ld(desc + Segment.STEPS) + s * 8 * STEP_WORDS, ld(desc + Segment.THREADS)
    items, ranges, done = ld(step + Step.ITEMS), min(threads, RANGES), 0
    own = (who - ld(desc + Segment.APART)) * ranges // threads
    for k in range(ranges):
        r = (own + k) % ranges
        first, stop = r * items // ranges, (r + 1) * items // ranges
        done += work_in_range(desc, job, s, claimed + 8 * r, first, stop, finished, who, clock, trace)
    return done


def work_in_range(desc, job, s, claimed, first, stop, finished, who, clock, trace):
    """Works on items `first` to `stop` of step number `s` that nobody has claimed; whoever takes a step of one item
    does those of one item behind it, too. Returns how many.
    """
    steps, bufs, times, done = ld(desc + Segment.STEPS), ld(job + Job.BUFFERS), ld(job + Job.TIMES), 0
    step = steps + s * 8 * STEP_WORDS
    items, more = ld(step + Step.ITEMS), ld(step + Step.MORE)
    while first + atomic_load(claimed) < stop:
        i = first + atomic_add(claimed, 1)
        if i >= stop:
            break
        began = now(clock) if more != 0 else 0
        call5(ld(step + Step.DRIVER), ld(step + Step.PARAMS), bufs, i, i + 1, who)
        for k in range(more):
            over = now(clock)
            st(times + 8 * (s + k + 1), over)
            if trace != 0:
                note(trace, desc, s + k, who, began, over)
            began, row = over, step + (k + 1) * 8 * STEP_WORDS
            call5(ld(row + Step.DRIVER), ld(row + Step.PARAMS), bufs, 0, 1, who)
        if trace != 0 and more != 0:
            note(trace, desc, s + more, who, began, now(clock))
        if atomic_add(finished, 1) == items - 1:
            st(times + 8 * (s + more + 1), now(clock))
        done += 1
    return done


def run_steps(job, libc, who):
    """Works on every step of a job until all are done, as thread number `who`.

    Who finishes a step's last item stamps the clock: a thread that the operating system has put aside meanwhile would
    find several steps over at once.
    """
    desc, bufs, counters = ld(job + Job.SEGMENT), ld(job + Job.BUFFERS), ld(job + Job.COUNTERS)
    n, steps, times = ld(desc + Segment.STEP_COUNT), ld(desc + Segment.STEPS), ld(job + Job.TIMES)
    clock, trace = ld(libc + Libc.CLOCK), atomic_load(ld(desc + Segment.TEAM) + Team.TRACE)
    apart, threads = ld(desc + Segment.APART), ld(desc + Segment.THREADS)  # then nobody is number 0
    own, ahead = who - apart, scratch(AHEAD_WORDS)
    aim_first(ahead, desc, bufs, own)
    st(ahead + Ahead.SUM, 0)
    s = 0
    while s < n:
        step = steps + s * 8 * STEP_WORDS
        began, mine = now(clock) if trace != 0 else 0, 0
        params, inner, owned = ld(step + Step.PARAMS), ld(step + Step.INNER), ld(step + Step.EARLY) != 0
        last, claimed = s + ld(step + Step.MORE), counters + COUNTER_BYTES * s
        finished = counters + COUNTER_BYTES * last + 64
        shares = inner != 0 and who < par(params, Loop.SHARERS) + apart
        if shares and run_loop(params, bufs, counters + COUNTER_BYTES * inner, claimed + 8, libc, who) != 0:
            st(times + 8 * (s + 1), now(clock))
            atomic_add(finished, 1)
            mine = 1
        if owned:
            mine = work_owned(step, bufs, claimed, finished, own, threads, who, times + 8 * (s + 1), clock)
        if ld(ahead + Ahead.STEP) <= s:
            aim(ahead, desc, bufs, ld(step + Step.NEXT), own)
        if owned:
            st(ahead + Ahead.SUM, 0)
        elif inner == 0:
            mine = work_claimed(desc, job, s, claimed, finished, who, clock, trace)
        if trace != 0 and mine > 0 and last == s:
            note(trace, desc, s, who, began, now(clock))
        read_until(finished, ld(step + Step.ITEMS), ahead, desc, bufs, own, libc)
        s = last + 1


def run_alone(job, libc):
    """The same steps by the calling thread only: no counters."""
    desc, bufs = ld(job + Job.SEGMENT), ld(job + Job.BUFFERS)
    n, steps, times = ld(desc + Segment.STEP_COUNT), ld(desc + Segment.STEPS), ld(job + Job.TIMES)
    clock = ld(libc + Libc.CLOCK)
    for s in range(n):
        step = steps + s * 8 * STEP_WORDS
        call5(ld(step + Step.DRIVER), ld(step + Step.PARAMS), bufs, 0, ld(step + Step.ITEMS), 0)
        st(times + 8 * (s + 1), now(clock))


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


def run_job(desc, job, libc):
    """Runs a job with the team when it is free and wanted, else on this thread alone."""
    team, threads = ld(desc + Segment.TEAM), ld(desc + Segment.THREADS)
    counters, n = ld(job + Job.COUNTERS), ld(desc + Segment.STEP_COUNT)
    apart = ld(desc + Segment.APART) != 0 and atomic_load(team + Team.ALIVE) >= threads
    if team == 0 or (threads < 2 and not apart) or n == 0:
        run_alone(job, libc)
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
    workers = threads if apart else threads - 1
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
