"""Host calls inside a device program, as native code: the handlers `start` and `join`, and what they enqueue.

`start` and `join` are XLA FFI handlers. They only enqueue: `start` launches a kernel that writes the operands into
mapped memory and raises a flag, `join` one that waits for the host's flag and merges. In between the serving thread
sees the flag, runs the segment with the team, and raises its own. Where a call begins just before the one before it is
joined, one kernel does both: it raises the next call's flag and waits for that of the one before. Call sites are
served in the order in which they were enqueued, which is the stream's order, so nothing can wait for something behind
it.

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
    CROSS_WORDS,
    ENTRY_WORDS,
    PART_WORDS,
    PARTS,
    RELAY_CAPACITY,
    SITE_RING,
    STAMP_BYTES,
    AwaitArgs,
    Cross,
    Entry,
    Fetch,
    Operand,
    Page,
    Relay,
    Result,
    Site,
    Stamps,
    Tick,
)
from .crossing import await_host, clear, collect_operand, collect_result, cross, raise_flag
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


def send(values, site, relay, seq, stream):
    """The operands on their way to the host, by kernels first, then by copies; the flag behind the last of them.
    Without copies the last ones, and the flag, are only collected.
    """
    n, code = ld(site + Site.OPERAND_COUNT), 0
    for i in range(n):
        row = ld(site + Site.OPERANDS) + 8 * PART_WORDS * i
        if ld(row + Operand.COPY) == 0 and ld(row + Operand.INNER) > 0:
            if code == 0 and ld(values + Cross.SENT) == PARTS:
                code = cross(values, relay, stream)
            if code == 0:
                collect_operand(values, row)
    if ld(site + Site.COPIES) == 0 or code != 0:
        raise_flag(values, site, seq)
        return code
    if ld(values + Cross.SENT) > 0:
        code = cross(values, relay, stream)
    side = ld(relay + Relay.OUT)
    if code == 0:
        code = follow(relay, side, ld(site + Site.BEFORE), stream)
    for i in range(n):
        row = ld(site + Site.OPERANDS) + 8 * PART_WORDS * i
        if code == 0 and ld(row + Operand.COPY) != 0:
            width, pitch = 4 * ld(row + Operand.INNER), 4 * ld(row + Operand.STRIDE)
            source = ld(row + Operand.SOURCE) + 4 * ld(row + Operand.OFFSET)
            code = copy(relay, ld(row + Operand.MAPPED), width, source, pitch, width, ld(row + Operand.OUTER), side)
    raise_flag(values, site, seq)
    return cross(values, relay, side) if code == 0 else code


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


def begin(frame, site, relay, faults, stream, leader):
    """Puts a call into the ring, and its operands on their way. `leader`: a site whose results come with the same
    kernel (0: none). Returns 0, or XLA's error.
    """
    libc, flags, values = ld(relay + Relay.LIBC), ld(site + Site.PAGE), scratch(CROSS_WORDS)
    clear(values)
    while compare_exchange(relay + Relay.LOCK, 0, 1) == 0:
        pause()
    seq = ld(site + Site.SEQ) + 1
    if failed(faults) or enqueue(site, relay, seq) == 0:
        atomic_store(relay + Relay.LOCK, 0)
        error = fail(frame, relay, faults, CLOSED)
        atomic_store(site + Site.TAKEN, 0)
        return error
    st(site + Site.SEQ, seq)
    code = send(values, site, relay, seq, stream)
    if code == 0 and leader != 0:
        code = bring_all(values, frame, leader, relay, stream)
    elif code == 0 and ld(values + Cross.READY_SEQ) != 0:
        code = cross(values, relay, stream)
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


@native(1)
def start(frame):
    """Operands: the segment's inputs, or what of them is not on the host yet; then the words of starts that come before
    this one, which nobody reads. Result: a word. Takes the site; another execution waits here until it is joined.
    Operands that go with another site's results wait for those: nothing lies between this and that join.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, faults = ld(site + Site.RELAY), ld(site + Site.FAULTS)
    if take(site, relay, faults, ld(relay + Relay.LIBC)) == 0:
        return fail(frame, relay, faults, HELD)
    for i in range(ld(site + Site.OPERAND_COUNT)):
        st(ld(site + Site.OPERANDS) + 8 * PART_WORDS * i + Operand.SOURCE, argument(frame, i))
    leader = ld(site + Site.LEADER)
    if leader != 0 and ld(leader + Site.JOINED) < ld(leader + Site.SEQ):
        atomic_store(site + Site.DEFERRED, 1)
        return 0
    return begin(frame, site, relay, faults, stream_of(frame, relay), 0)


def bring_all(values, frame, site, relay, stream):
    """The results of a site, by kernels that wait for the host and write both parts, or by copies; with the first of
    them what is collected already.
    """
    code, other, first = 0, ld(site + Site.OPERAND_COUNT), 1
    for i in range(ld(site + Site.RESULT_COUNT)):
        row, part = ld(site + Site.RESULTS) + 8 * PART_WORDS * i, result(frame, i)
        if ld(row + Result.DEVICE) > 0:
            part = argument(frame, other)
            other += 1
        if code == 0 and ld(row + Result.COPY) != 0:
            code = bring(site, relay, row, result(frame, i), part, stream)
        elif code == 0:
            if ld(values + Cross.BROUGHT) == PARTS:
                code = cross(values, relay, stream)
                first = 0
            if code == 0:
                collect_result(values, row, result(frame, i), part)
                await_host(values, site, relay, first)
    left = ld(values + Cross.BROUGHT) > 0 or ld(values + Cross.READY_SEQ) != 0
    return cross(values, relay, stream) if code == 0 and left else code


def bring(site, relay, row, out, part, stream):
    """One result by copies: the host's part over a side stream, once the host has raised its flag; the device's beside
    it.

    After an error the host's part may still be on its way to an array that XLA takes back: see `settle`."""
    rows, side = ld(row + Result.OUTER), ld(relay + Relay.IN)
    mine, other, seq = 4 * ld(row + Result.HOST), 4 * ld(row + Result.DEVICE), ld(site + Site.SEQ)
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
    """Operands: the segment's inputs, then the device half's part of each result that has one; then what has to come
    before, which nobody reads: start's word among it. Gives the site free.
    """
    if registering(frame):
        return 0
    site = attribute(frame)
    relay, faults, follower = ld(site + Site.RELAY), ld(site + Site.FAULTS), ld(site + Site.FOLLOWER)
    if atomic_load(site + Site.TAKEN) == 0:
        return fail(frame, relay, faults, ORDER)
    stream = stream_of(frame, relay)
    st(site + Site.JOINED, ld(site + Site.SEQ))
    if follower != 0 and compare_exchange(follower + Site.DEFERRED, 1, 0) != 0:
        error = begin(frame, follower, relay, faults, stream, site)
    else:
        values = scratch(CROSS_WORDS)
        clear(values)
        error = answer(frame, relay, faults, bring_all(values, frame, site, relay, stream))
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
