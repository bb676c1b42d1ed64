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

from .call_layout import (
    ENTRY_WORDS,
    PART_WORDS,
    RELAY_CAPACITY,
    SITE_RING,
    STAMP_BYTES,
    AwaitArgs,
    Entry,
    Fetch,
    JoinArgs,
    Operand,
    Page,
    Relay,
    Result,
    Site,
    Stamps,
    StartArgs,
    Tick,
)
from .enqueue import (
    CLOSED,
    DRIVER,
    HELD,
    NO_STREAM,
    ORDER,
    answer,
    copy,
    fail,
    failed,
    follow,
    launch,
    noted,
    stamp,
)
from .ffi import argument, attribute, keep_state, registering, result, stream_of
from .layout import Libc, Team
from .team import wake
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


@native(1)
def hold(frame):
    """An XLA FFI call (when an executable is made): the executable holds the site until it goes itself, which is after
    the last of its calls.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    atomic_add(site + Site.HOLDS, 1)
    failed = keep_state(frame, ld(ld(site + Site.RELAY) + Relay.STATE_TYPE), site)
    if failed != 0:
        atomic_add(site + Site.HOLDS, -1)
    return failed


@native(1)
def leave(site):
    """Gives up an executable's hold on a site."""
    atomic_add(site + Site.HOLDS, -1)
    return 0


def enqueue(site, relay, seq):
    """Puts a call into the ring of the serving thread (the relay's lock is held). 0 when no call is taken any more."""
    libc = ld(relay + Relay.LIBC)
    while (
        atomic_load(relay + Relay.TAIL) - atomic_load(relay + Relay.HEAD) >= RELAY_CAPACITY
        and atomic_load(relay + Relay.CLOSED) == 0
    ):
        call1(ld(libc + Libc.YIELD), 0)
    if atomic_load(relay + Relay.CLOSED) != 0:
        return 0
    entry = ld(relay + Relay.ENTRIES) + 8 * ENTRY_WORDS * (atomic_load(relay + Relay.TAIL) % RELAY_CAPACITY)
    st(entry + Entry.SITE, site)
    st(entry + Entry.SEQ, seq)
    team = ld(relay + Relay.TEAM)
    atomic_add(team + Team.PENDING, 1)
    atomic_add(relay + Relay.TAIL, 1)
    return 1


def raise_flag(site, relay, seq, stream, row, source):
    """Launches `start` for one operand (`row` 0: of nothing); it raises the site's flag unless `seq` is 0."""
    values = scratch(9)
    for i in range(9):
        st(values + 8 * i, 0)
    function, elements = ld(relay + Relay.START4), 1
    st(values + StartArgs.SOURCE, source)
    if row != 0:
        st(values + StartArgs.MAPPED, ld(row + Operand.MAPPED))
        st(values + StartArgs.OUTER, ld(row + Operand.OUTER))
        st(values + StartArgs.INNER, ld(row + Operand.INNER))
        st(values + StartArgs.STRIDE, ld(row + Operand.STRIDE))
        st(values + StartArgs.OFFSET, ld(row + Operand.OFFSET))
        elements = ld(row + Operand.OUTER) * ld(row + Operand.INNER)
        if ld(row + Operand.WIDE) != 0:
            function = ld(relay + Relay.START16)
    st(values + StartArgs.PAGE, ld(site + Site.PAGE))
    st(values + StartArgs.WORK, ld(site + Site.WORK))
    st(values + StartArgs.SEQ, seq)
    return launch(relay, function, elements, ld(relay + Relay.BLOCKS), values, 9, stream)


def send(frame, site, relay, seq, stream):
    """The operands on their way to the host, by kernels first, then by copies; the flag behind the last of them."""
    n, copies, code = ld(site + Site.OPERAND_COUNT), ld(site + Site.COPIES), 0
    for i in range(n):
        row = ld(site + Site.OPERANDS) + 8 * PART_WORDS * i
        last = copies == 0 and i == n - 1
        if code == 0 and ld(row + Operand.COPY) == 0 and (last or ld(row + Operand.INNER) > 0):
            code = raise_flag(site, relay, seq if last else 0, stream, row, argument(frame, i))
    if copies == 0 or code != 0:
        return code
    side = ld(relay + Relay.OUT)
    code = follow(relay, side, ld(site + Site.BEFORE), stream)
    for i in range(n):
        row = ld(site + Site.OPERANDS) + 8 * PART_WORDS * i
        if code == 0 and ld(row + Operand.COPY) != 0:
            size = 16 if ld(row + Operand.WIDE) != 0 else 4
            width, pitch = ld(row + Operand.INNER) * size, ld(row + Operand.STRIDE) * size
            code = copy(
                relay,
                ld(row + Operand.MAPPED),
                width,
                argument(frame, i) + ld(row + Operand.OFFSET) * size,
                pitch,
                width,
                ld(row + Operand.OUTER),
                side,
            )
    return raise_flag(site, relay, seq, side, 0, 0) if code == 0 else code


def take(site, relay, faults, libc):
    """Takes a site for one execution of its program, until it is joined and all sites have begun that keep its results.
    0 when the program has failed, or the execution that holds the site never joins: nothing of the relay has been in
    flight for the whole of the limit."""
    clock = ld(libc + Libc.CLOCK)
    began = now(clock)
    while compare_exchange(site + Site.TAKEN, 0, 1 + ld(site + Site.KEEPERS)) == 0:
        if failed(faults):
            return 0
        if atomic_load(relay + Relay.HEAD) != atomic_load(relay + Relay.TAIL):
            began = now(clock)
        elif now(clock) - began > ld(relay + Relay.HELD_NS):
            return 0
        call1(ld(libc + Libc.YIELD), 0)
    return 1


def begun(site):
    """The host calls of this execution that keep results of others are in the ring: nobody can get in between."""
    for i in range(ld(site + Site.SOURCE_COUNT)):
        atomic_add(ld(ld(site + Site.SOURCES) + 8 * i) + Site.TAKEN, -1)


@native(1)
def start(frame):
    """Operands: the segment's inputs, or what of them is not on the host yet. Result: a word that nobody reads. Takes
    the site; another execution waits here until it is joined.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, faults, flags = ld(site + Site.RELAY), ld(site + Site.FAULTS), ld(site + Site.PAGE)
    libc, stream = ld(relay + Relay.LIBC), stream_of(frame, relay)
    if take(site, relay, faults, libc) == 0:
        return fail(frame, relay, faults, HELD)
    while compare_exchange(relay + Relay.LOCK, 0, 1) == 0:
        pause()
    seq = ld(site + Site.SEQ) + 1
    if failed(faults) or enqueue(site, relay, seq) == 0:
        atomic_store(relay + Relay.LOCK, 0)
        error = fail(frame, relay, faults, CLOSED)
        atomic_store(site + Site.TAKEN, 0)
        return error
    st(site + Site.SEQ, seq)
    code = send(frame, site, relay, seq, stream)
    if code != 0:  # nobody else will raise the flag that the serving thread waits for, and there is nothing to compute
        st(site + Site.SKIPPED, seq)
        atomic_store(flags + Page.READY, seq)
    atomic_store(relay + Relay.LOCK, 0)
    begun(site)
    if atomic_load(relay + Relay.SLEEPS) > 0:
        wake(ld(relay + Relay.MUTEX), ld(relay + Relay.COND), libc)
    if code == 0:
        return 0
    error = fail(frame, relay, faults, DRIVER)
    atomic_store(site + Site.TAKEN, 0)
    return error


def merge(site, relay, row, out, part, first, stream):
    """One result by a kernel that waits for the host and writes both parts; `first`: whether the site's results begin
    with it.
    """
    values, nh, nd = scratch(11), ld(row + Result.HOST), ld(row + Result.DEVICE)
    st(values + JoinArgs.OUT, out)
    st(values + JoinArgs.MAPPED, ld(row + Result.MAPPED))
    st(values + JoinArgs.PART, part)
    st(values + JoinArgs.OUTER, ld(row + Result.OUTER))
    st(values + JoinArgs.HOST, nh)
    st(values + JoinArgs.DEVICE, nd)
    st(values + JoinArgs.PAGE, ld(site + Site.PAGE))
    st(values + JoinArgs.WORK, ld(site + Site.WORK))
    st(values + JoinArgs.SEQ, ld(site + Site.SEQ))
    st(values + JoinArgs.LIMIT_NS, ld(relay + Relay.LIMIT_NS))
    st(values + JoinArgs.FIRST, first)
    function = ld(relay + Relay.JOIN16) if ld(row + Result.WIDE) != 0 else ld(relay + Relay.JOIN4)
    # a side stream may still have to run the kernel that this one waits for: it leaves room on every multiprocessor
    return launch(relay, function, ld(row + Result.OUTER) * (nh + nd), ld(relay + Relay.WAITERS), values, 11, stream)


def bring(site, relay, row, out, part, stream):
    """One result by copies: the host's part over a side stream, once the host has raised its flag; the device's beside
    it.

    After an error the host's part may still be on its way to an array that XLA takes back: see `settle`."""
    size, rows, side = 16 if ld(row + Result.WIDE) != 0 else 4, ld(row + Result.OUTER), ld(relay + Relay.IN)
    mine, other, seq = ld(row + Result.HOST) * size, ld(row + Result.DEVICE) * size, ld(site + Site.SEQ)
    code = follow(relay, side, ld(site + Site.BEFORE), stream)
    if code == 0:
        values = scratch(4)
        st(values + AwaitArgs.PAGE, ld(site + Site.PAGE))
        st(values + AwaitArgs.WORK, ld(site + Site.WORK))
        st(values + AwaitArgs.SEQ, seq)
        st(values + AwaitArgs.LIMIT_NS, ld(relay + Relay.LIMIT_NS))
        code = launch(relay, ld(relay + Relay.AWAIT), 1, 1, values, 4, side)
    if code == 0:
        code = copy(relay, out, mine + other, ld(row + Result.MAPPED), mine, mine, rows, side)
    if code == 0 and other > 0:
        code = copy(relay, out + mine, mine + other, part, other, other, rows, stream)
    if code == 0:
        code = stamp(
            relay, ld(site + Site.PAGE) + Page.STAMPS + STAMP_BYTES * (seq % SITE_RING) + Stamps.JOIN_ENDED, side
        )
    return follow(relay, stream, ld(site + Site.AFTER), side) if code == 0 else code


@native(1)
def join(frame):
    """Operands: the segment's inputs, then the device half's part of each result that has one, and start's word. Gives
    the site free.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, faults = ld(site + Site.RELAY), ld(site + Site.FAULTS)
    if atomic_load(site + Site.TAKEN) == 0:
        return fail(frame, relay, faults, ORDER)
    stream, code, other = stream_of(frame, relay), 0, ld(site + Site.OPERAND_COUNT)
    for i in range(ld(site + Site.RESULT_COUNT)):
        row, part = ld(site + Site.RESULTS) + 8 * PART_WORDS * i, result(frame, i)
        if ld(row + Result.DEVICE) > 0:
            part = argument(frame, other)
            other += 1
        if code == 0 and ld(row + Result.COPY) != 0:
            code = bring(site, relay, row, result(frame, i), part, stream)
        elif code == 0:
            code = merge(site, relay, row, result(frame, i), part, i == 0, stream)
    error = answer(frame, relay, faults, code)
    atomic_add(site + Site.TAKEN, -1)
    return error


@native(1)
def tick(frame):
    """Operands: what has to be there before the clock is read (aliased with the results)."""
    if registering(frame):
        return 0
    site = attribute(frame)
    relay = ld(site + Tick.RELAY)
    return answer(frame, relay, ld(site + Tick.FAULTS), stamp(relay, ld(site + Tick.TARGET), stream_of(frame, relay)))


@native(1)
def fetch(frame):
    """Operands: what has to be done before (its buffers may be written over then). Results: the weights, and a word
    that stands for them.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, faults, stamps = ld(site + Fetch.RELAY), ld(site + Fetch.FAULTS), ld(site + Fetch.STAMPS)
    if failed(faults):
        return fail(frame, relay, faults, CLOSED)
    side = ld(relay + Relay.FETCH)
    code = follow(relay, side, ld(site + Fetch.BEFORE), stream_of(frame, relay))
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps, side)
    if code == 0:
        code = copy(relay, result(frame, 0), 0, ld(site + Fetch.SOURCE), 0, ld(site + Fetch.BYTES), 1, side)
    if code == 0 and stamps != 0:
        code = stamp(relay, stamps + 8, side)
    if code == 0:
        code = noted(relay, call2(ld(relay + Relay.RECORD), ld(site + Fetch.AFTER), side))
    return answer(frame, relay, faults, code)


@native(1)
def fetched(frame):
    """Operands: what `fetch` returned (aliased with the results). XLA's stream goes on when the copy is complete."""
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, stream, code = ld(site + Fetch.RELAY), stream_of(frame, ld(site + Fetch.RELAY)), NO_STREAM
    if stream != 0:
        code = call3(ld(relay + Relay.FOLLOW), stream, ld(site + Fetch.AFTER), 0)
    return answer(frame, relay, ld(site + Fetch.FAULTS), noted(relay, code))
