"""The threads that serve host calls of a device, as native code.

A serving thread takes the calls of a relay in their order: it waits for the flag that says that the operands are there,
claims the call, runs the segment with the team, and raises the flag that the device waits for. One that is replaced
leaves at its next look at `R_SERVER`; what it has claimed until then it serves.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from numba import int64, njit

from .enqueue import note
from .layout import (
    CLOCK,
    COND,
    ENTRY_WORDS,
    FLAG_DONE,
    FLAG_READY,
    JOB_BUFS,
    LIBC,
    LOCK,
    LOST,
    M_MEMORY,
    MUTEX,
    PENDING,
    R_CAPACITY,
    R_CLAIMED,
    R_CLOSED,
    R_COND,
    R_ENTRIES,
    R_HEAD,
    R_LIBC,
    R_MUTEX,
    R_SERVER,
    R_SLEEPS,
    R_SPIN_NS,
    R_TAIL,
    R_TEAM,
    SITE_BUFS,
    SITE_DESC,
    SITE_FAULTS,
    SITE_FLAGS,
    SITE_NBUFS,
    SITE_SERVED,
    SITE_SKIPPED,
    SLEEPERS,
    UNLOCK,
    WAIT,
    YIELD,
)
from .team import POLITE_NS, finish_job, give_arena, open_job, take_arena, wake
from .words import atomic_add, atomic_load, atomic_store, call1, call2, compare_exchange, ld, native, now, pause, st


@native(1)
def reserve(desc):
    """Makes the arena that the calls of a segment on a relay take in turn, so that none of them can be refused it. 0
    when memory is out.
    """
    libc = ld(desc + LIBC)
    arena = take_arena(desc, libc)
    if arena == 0:
        return int64(0)
    give_arena(desc, libc, arena)
    return int64(1)


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
def answered(site, seq, relay, me, libc):
    """Computes a call's results; 0 when this thread is to leave before memory has been found."""
    if ld(site + SITE_SKIPPED) == seq or run_site(site, libc) != 0:
        return int64(1)
    note(relay, ld(site + SITE_FAULTS), M_MEMORY)
    while atomic_load(relay + R_SERVER) == me:
        if run_site(site, libc) != 0:
            return int64(1)
        call1(ld(libc + YIELD), 0)
    return int64(0)


@njit
def await_flag(address, value, relay, me, libc):
    """Until a flag that the device raises has reached `value`; spins, and offers the core to others. False when this
    thread is to leave.
    """
    clock = ld(libc + CLOCK)
    began, spins = now(clock), 0
    while atomic_load(address) < value:
        pause()
        spins += 1
        if spins % 64 == 0:
            if atomic_load(relay + R_SERVER) != me:
                return False
            if now(clock) - began > POLITE_NS:
                call1(ld(libc + YIELD), 0)
    return True


@njit
def await_call(head, relay, me, libc):
    """Until there is a call behind the first `head` ones, or this thread is to leave; spins, then parks."""
    clock = ld(libc + CLOCK)
    began, spins = now(clock), 0
    while atomic_load(relay + R_TAIL) == head and atomic_load(relay + R_SERVER) == me:
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
            while atomic_load(relay + R_TAIL) == head and atomic_load(relay + R_SERVER) == me:
                call2(ld(libc + WAIT), ld(relay + R_COND), ld(relay + R_MUTEX))
            atomic_add(relay + R_SLEEPS, -1)
            call1(ld(libc + UNLOCK), ld(relay + R_MUTEX))
            began = now(clock)


@native(2)
def serve(relay, me):
    """A serving thread's life: the next call of the ring, its flag, its segment, its answer; as long as the relay's
    server is number `me`.
    """
    libc, team = ld(relay + R_LIBC), ld(relay + R_TEAM)
    while atomic_load(relay + R_SERVER) == me:
        head = atomic_load(relay + R_HEAD)
        await_call(head, relay, me, libc)
        if atomic_load(relay + R_SERVER) != me:
            break
        entry = ld(relay + R_ENTRIES) + 8 * ENTRY_WORDS * (head % R_CAPACITY)
        site, seq = ld(entry), ld(entry + 8)
        flags = ld(site + SITE_FLAGS)
        if atomic_load(team + SLEEPERS) > 0:  # the team wakes while the device is still on its way
            wake(ld(team + MUTEX), ld(team + COND), libc)
        if not await_flag(flags + FLAG_READY, seq, relay, me, libc):
            break
        if compare_exchange(relay + R_CLAIMED, head, head + 1) == 0:  # another thread has begun with it
            await_flag(relay + R_HEAD, head + 1, relay, me, libc)
            continue
        if answered(site, seq, relay, me, libc) == 0:
            break
        atomic_store(flags + FLAG_DONE, seq)
        st(site + SITE_SERVED, seq)
        atomic_add(team + PENDING, -1)
        atomic_add(relay + R_HEAD, 1)
    if atomic_load(relay + R_CLOSED) == LOST:  # the team need not expect the calls that are open
        atomic_add(team + PENDING, atomic_load(relay + R_HEAD) - atomic_load(relay + R_TAIL))
    return 0


@native(1)
def park(relay):
    """Where the watch sleeps while there is nothing to watch: no call is open, and a serving thread is parked, so that
    whoever makes one wakes both.
    """
    libc = ld(relay + R_LIBC)
    call1(ld(libc + LOCK), ld(relay + R_MUTEX))
    if (
        atomic_load(relay + R_SERVER) != 0
        and atomic_load(relay + R_SLEEPS) > 0
        and atomic_load(relay + R_TAIL) == atomic_load(relay + R_HEAD)
    ):
        call2(ld(libc + WAIT), ld(relay + R_COND), ld(relay + R_MUTEX))
    call1(ld(libc + UNLOCK), ld(relay + R_MUTEX))
    return 0
