"""The threads that serve host calls of a device, as native code.

A serving thread takes the calls of a relay in their order: it waits for the flag that says that the operands are there,
claims the call, runs the segment with the team, and raises the flag that the device waits for. One that is replaced
leaves at its next look at `Relay.SERVER`; what it has claimed until then it serves.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .ahead import aim_first, read_ahead
from .call_layout import ENTRY_WORDS, LOST, RELAY_CAPACITY, Entry, Page, Relay, Site
from .enqueue import MEMORY, note
from .layout import AHEAD_WORDS, Ahead, Job, Libc, Segment, Team
from .team import POLITE_NS, finish_job, give_arena, open_job, take_arena, wake
from .words import (
    atomic_add,
    atomic_load,
    atomic_store,
    call1,
    call2,
    compare_exchange,
    flush_denormals,
    ld,
    native,
    now,
    pause,
    restore_denormals,
    scratch,
    st,
)


@native(1)
def reserve(desc):
    """Makes the arena that the calls of a segment on a relay take in turn, so that none of them can be refused its
    bytes. 0 when memory is out.
    """
    libc = ld(desc + Segment.LIBC)
    arena = take_arena(desc, libc)
    if arena == 0:
        return 0
    give_arena(desc, libc, arena)
    return 1


def run_site(site, libc):
    """Runs a site's segment over its mapped buffers; returns 0 when memory is out."""
    desc = ld(site + Site.SEGMENT)
    job = open_job(desc, libc)
    if job == 0:
        return 0
    for i in range(ld(site + Site.BUFFER_COUNT)):
        st(ld(job + Job.BUFFERS) + 8 * i, ld(ld(site + Site.BUFFERS) + 8 * i))
    finish_job(desc, job, libc)
    return 1


def answered(site, seq, relay, me, libc):
    """Computes a call's results; 0 when this thread is to leave before memory has been found."""
    if ld(site + Site.SKIPPED) == seq or run_site(site, libc) != 0:
        return 1
    note(relay, ld(site + Site.FAULTS), MEMORY)
    while atomic_load(relay + Relay.SERVER) == me:
        if run_site(site, libc) != 0:
            return 1
        call1(ld(libc + Libc.YIELD), 0)
    return 0


def announce(team, site, number, ahead):
    """Tells the team which call comes next, so that it asks for the weights of that; this thread, where it is one of
    them, aims at its own.
    """
    desc = ld(site + Site.SEGMENT)
    st(ahead + Ahead.ITEMS, 0)
    st(ahead + Ahead.SUM, 0)
    if ld(desc + Segment.APART) == 0:
        aim_first(ahead, desc, ld(site + Site.BUFFERS), 0)
    st(team + Team.SITE, site)
    atomic_store(team + Team.COMING, number)


def withdraw(team):
    """Nobody looks at the site any more that was announced."""
    atomic_store(team + Team.COMING, 0)
    while atomic_load(team + Team.LOOKING) > 0:
        pause()


def await_flag(address, value, relay, me, libc, ahead):
    """Until a flag that the device raises has reached `value`; asks for what is aimed at, spins, and offers the core to
    others. False when this thread is to leave.
    """
    clock, team = ld(libc + Libc.CLOCK), ld(relay + Relay.TEAM)
    began, spins = now(clock), 0
    while atomic_load(address) < value:
        if read_ahead(ahead, atomic_load(team + Team.WORKERS) + 1, ld(team + Team.AHEAD)) == 0:
            pause()
        spins += 1
        if spins % 64 == 0:
            if atomic_load(relay + Relay.SERVER) != me:
                return False
            if now(clock) - began > POLITE_NS:
                call1(ld(libc + Libc.YIELD), 0)
    return True


def await_call(head, relay, me, libc):
    """Until there is a call behind the first `head` ones, or this thread is to leave; spins, then parks."""
    clock = ld(libc + Libc.CLOCK)
    began, spins = now(clock), 0
    while atomic_load(relay + Relay.TAIL) == head and atomic_load(relay + Relay.SERVER) == me:
        pause()
        spins += 1
        if spins % 64 != 0:
            continue
        waited = now(clock) - began
        if waited > POLITE_NS:
            call1(ld(libc + Libc.YIELD), 0)
        if waited > ld(relay + Relay.SPIN_NS):
            call1(ld(libc + Libc.LOCK), ld(relay + Relay.MUTEX))
            atomic_add(relay + Relay.SLEEPS, 1)
            while atomic_load(relay + Relay.TAIL) == head and atomic_load(relay + Relay.SERVER) == me:
                call2(ld(libc + Libc.WAIT), ld(relay + Relay.COND), ld(relay + Relay.MUTEX))
            atomic_add(relay + Relay.SLEEPS, -1)
            call1(ld(libc + Libc.UNLOCK), ld(relay + Relay.MUTEX))
            began = now(clock)


@native(2)
def serve(relay, me):
    """A serving thread's life: the next call of the ring, its flag, its segment, its answer; as long as the relay's
    server is number `me`.
    """
    before = flush_denormals()
    libc, team, ahead = ld(relay + Relay.LIBC), ld(relay + Relay.TEAM), scratch(AHEAD_WORDS)
    while atomic_load(relay + Relay.SERVER) == me:
        head = atomic_load(relay + Relay.HEAD)
        await_call(head, relay, me, libc)
        if atomic_load(relay + Relay.SERVER) != me:
            break
        entry = ld(relay + Relay.ENTRIES) + 8 * ENTRY_WORDS * (head % RELAY_CAPACITY)
        site, seq = ld(entry + Entry.SITE), ld(entry + Entry.SEQ)
        flags = ld(site + Site.PAGE)
        if atomic_load(team + Team.SLEEPERS) > 0:  # the team wakes while the device is still on its way
            wake(ld(team + Team.MUTEX), ld(team + Team.COND), libc)
        announce(team, site, head + 1, ahead)
        ready = await_flag(flags + Page.READY, seq, relay, me, libc, ahead)
        withdraw(team)
        if not ready:
            break
        if compare_exchange(relay + Relay.CLAIMED, head, head + 1) == 0:  # another thread has begun with it
            st(ahead + Ahead.ITEMS, 0)
            await_flag(relay + Relay.HEAD, head + 1, relay, me, libc, ahead)
            continue
        if answered(site, seq, relay, me, libc) == 0:
            break
        atomic_store(flags + Page.DONE, seq)
        st(site + Site.SERVED, seq)
        atomic_add(team + Team.PENDING, -1)
        atomic_add(relay + Relay.HEAD, 1)
    if atomic_load(relay + Relay.CLOSED) == LOST:  # the team need not expect the calls that are open
        atomic_add(team + Team.PENDING, atomic_load(relay + Relay.HEAD) - atomic_load(relay + Relay.TAIL))
    restore_denormals(before)
    return 0


@native(1)
def park(relay):
    """Where the watch sleeps while there is nothing to watch: no call is open, and a serving thread is parked, so that
    whoever makes one wakes both.
    """
    libc = ld(relay + Relay.LIBC)
    call1(ld(libc + Libc.LOCK), ld(relay + Relay.MUTEX))
    if (
        atomic_load(relay + Relay.SERVER) != 0
        and atomic_load(relay + Relay.SLEEPS) > 0
        and atomic_load(relay + Relay.TAIL) == atomic_load(relay + Relay.HEAD)
    ):
        call2(ld(libc + Libc.WAIT), ld(relay + Relay.COND), ld(relay + Relay.MUTEX))
    call1(ld(libc + Libc.UNLOCK), ld(relay + Relay.MUTEX))
    return 0
