"""The step walker: how a thread works on the steps of a call, with others or alone.

Whoever takes part claims items one by one from the counters of a step's ranges, beginning with its own; a step is over
when all its items are done, not when all threads have arrived, so a worker that the operating system has put aside
never holds the others up.
"""

from __future__ import annotations

from .ahead import aim, aim_first, read_ahead
from .drivers import ends_loop, enter_loop, par, turn_loop
from .layout import (
    AHEAD_WORDS,
    COUNTER_BYTES,
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
    call5,
    compare_exchange,
    ld,
    now,
    pause,
    scratch,
    st,
    take_bit,
)


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
