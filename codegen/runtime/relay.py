"""The relay between a device's stream and the team: the serving thread, and what it does about calls that are late.

What it asks of a device is in `driver.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import os
import threading
import time

import numpy as np

from ..native import call_layout as abi
from .driver import Driver, Memory
from .faults import TEXTS, noted, word
from .host import function, site_number, team, wake
from .watch import Watch

# of the serving thread and the team: a parked thread costs tens of microseconds to wake, all of them hundreds
SPIN_SECONDS = 2e-3
# until a call that nobody begins is taken over, and at the end of the process until calls without progress are given up
LIMIT_SECONDS = 20.0
LAST_SECONDS = 600.0  # until a call that somebody has begun is given up
DEVICE_FACTOR = 6  # of these: until a device that nobody answers stops by itself


def _words(driver: Driver) -> dict[int, int]:
    """What native code has to know of a device: its kernels, its driver's functions, its streams."""
    r = abi.Relay
    words: dict[int, int] = {
        r.LAUNCH: driver.launch,
        r.STREAM: driver.stream,
        r.BLOCKS: driver.blocks,
        r.WAITERS: driver.waiters,
    }
    words.update(zip((r.CROSS4, r.CROSS16, r.STAMP, r.AWAIT), driver.functions, strict=True))
    words.update(zip((r.COPY, r.COPY2D, r.RECORD, r.FOLLOW, r.SYNC), driver.copies, strict=True))
    words.update(zip((r.OUT, r.IN, r.FETCH), driver.sides, strict=True))
    return words


@dataclasses.dataclass(frozen=True, eq=False)
class _Retired:
    """What a site left: its words, its memory, and what its calls in flight need besides."""

    words: np.ndarray
    memory: Memory
    keep: object

    @property
    def held(self) -> bool:
        """Whether an executable may still call the site."""
        return bool(self.words[abi.Site.HOLDS // 8])

    @property
    def served(self) -> bool:
        """Whether the host has answered all of its calls."""
        return bool(self.words[abi.Site.SERVED // 8] >= self.words[abi.Site.SEQ // 8])

    def free(self) -> None:
        """Gives the memory back; the words come from the C library, see `sites.py`."""
        self.memory.free()
        ctypes.CDLL(None).free(ctypes.c_void_p(self.words.ctypes.data))


class Relay:
    """Serves the host calls of one device with one team. `cpus`: the team's cores (none given: the process's team).

    `limit_seconds`, `last_seconds`: seconds that a call may wait to be begun, and to be ended (see `Watch`).
    """

    def __init__(
        self,
        driver: Driver,
        cpus: tuple[int, ...] = (),
        limit_seconds: float = LIMIT_SECONDS,
        last_seconds: float = LAST_SECONDS,
    ):
        self.driver, self._team = driver, team(cpus)
        self._limits = limit_seconds, last_seconds
        self._team.spin(SPIN_SECONDS)
        self._memory = np.zeros(abi.RELAY_BYTES + 64, np.uint8)
        self.address = -(-self._memory.ctypes.data // 64) * 64
        self._locks = np.zeros(512, np.uint8)
        self._entries = np.zeros(abi.RELAY_CAPACITY * abi.ENTRY_WORDS, np.int64)
        self._texts = [ctypes.create_string_buffer(f"xcoexec: {t}".encode()) for t in TEXTS]
        self._messages = np.array([ctypes.addressof(t) for t in self._texts], np.int64)
        self._retired: list[_Retired] = []
        self._lock = threading.RLock()  # a garbage collection inside may retire a site
        self._threads: list[threading.Thread] = []  # that serve, the one in charge last
        self._watch: Watch | None = None
        words = {
            abi.Relay.ENTRIES: self._entries.ctypes.data,
            abi.Relay.MUTEX: self._locks.ctypes.data,
            abi.Relay.COND: self._locks.ctypes.data + 256,
            abi.Relay.TEAM: self._team.address,
            abi.Relay.LIBC: self._team.libc.ctypes.data,
            abi.Relay.SPIN_NS: int(SPIN_SECONDS * 1e9),
            abi.Relay.LIMIT_NS: int(DEVICE_FACTOR * last_seconds * 1e9),
            abi.Relay.HELD_NS: int(limit_seconds * 1e9),
            abi.Relay.MESSAGES: self._messages.ctypes.data,
            abi.Relay.STATE_TYPE: site_number(driver.platform).ctypes.data,
            **_words(driver),
        }
        for at, value in words.items():
            self._word(at).value = value
        self._errors = self._word(abi.Relay.ERRORS)
        self._unlocked()
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forked)

    def _unlocked(self) -> None:
        """Mutex and condition as new."""
        self._locks[:] = 0
        c = ctypes.CDLL(None)
        c.pthread_mutex_init(ctypes.c_void_p(self._locks.ctypes.data), None)
        c.pthread_cond_init(ctypes.c_void_p(self._locks.ctypes.data + 256), None)

    def _word(self, at: int) -> ctypes.c_int64:
        return word(self.address + at)

    @property
    def code(self) -> int:
        """The driver's last error code (0: none)."""
        return self._word(abi.Relay.CODE).value

    @property
    def errors(self) -> int:
        """Faults of all programs so far; who sees that there are more looks at its own (`Faults`)."""
        return self._errors.value

    @property
    def served(self) -> bool:
        """Whether the thread that is in charge lives."""
        return (
            bool(self._threads)
            and self._threads[-1].is_alive()
            and self._word(abi.Relay.SERVER).value == len(self._threads)
        )

    @property
    def _lost(self) -> bool:
        return self._word(abi.Relay.CLOSED).value == abi.LOST

    def start(self) -> None:
        """Makes the serving thread and its watch (once). Raises `RuntimeError` when the relay has been stopped."""
        with self._lock:
            if self._word(abi.Relay.CLOSED).value:
                raise RuntimeError(f"xcoexec: {TEXTS[abi.Text.CLOSED // 8]}.")
            if not self._threads:
                self._swap = function("swap", 2)  # at the end of the process nothing is compiled any more
                self._serve()
            if self._watch is None:
                self._watch = Watch(self, *self._limits)

    def _serve(self) -> None:
        """Makes a serving thread that is in charge from now on (the lock is held)."""
        number = len(self._threads) + 1
        thread = threading.Thread(
            target=function("serve", 2, "serving"), args=(self.address, number), name="xcoexec-relay", daemon=True
        )
        self._threads.append(thread)
        self._word(abi.Relay.SERVER).value = number
        self._wake()
        thread.start()

    def _wake(self) -> None:
        wake(self._locks.ctypes.data, self._locks.ctypes.data + 256)

    def _open(self) -> int | None:
        """The number of the oldest open call; None without any (the lock is held, so that its site stays)."""
        head = self._word(abi.Relay.HEAD).value
        return head if head < self._word(abi.Relay.TAIL).value else None

    def _entry(self, number: int) -> tuple[int, int]:
        """(call site, sequence number) of a call."""
        site, seq = self._entries.reshape(-1, abi.ENTRY_WORDS)[number % abi.RELAY_CAPACITY]
        return int(site), int(seq)

    def oldest(self) -> tuple[int, bool, bool] | None:
        """(number, are its operands there, has a thread begun with it) of the oldest open call; None without any that
        can be served.
        """
        with self._lock:
            head = self._open()
            if head is None or self._lost:
                return None
            site, seq = self._entry(head)
            ready = word(word(site + abi.Site.PAGE).value + abi.Page.READY).value >= seq
            return head, ready, self._word(abi.Relay.CLAIMED).value > head

    def replace(self, number: int, why: int) -> bool:
        """Another thread takes the serving one's place, unless the call of that number has been served by now; noted on
        its program.
        """
        with self._lock:
            if self._open() != number or self._lost:
                return False
            noted(self.address, word(self._entry(number)[0] + abi.Site.FAULTS).value, why)
            self._serve()
            return True

    def abandon(self, number: int) -> bool:
        """Gives up the calls from that number on, unless it has been served by now: the device stops with an error, and
        the relay with it.
        """
        with self._lock:
            if self._open() != number or self._lost:
                return False
            self._word(abi.Relay.CLOSED).value = abi.LOST
            for i in range(number, self._word(abi.Relay.TAIL).value):
                site, _ = self._entry(i)
                noted(self.address, word(site + abi.Site.FAULTS).value, abi.Text.LOST)
                word(word(site + abi.Site.PAGE).value + abi.Page.DONE).value = abi.ABANDONED
            return True

    def stop(self) -> None:
        """Ends the service (at the end of the process): no call is taken any more, those in flight are served.

        A device that waits for the host must not wait in vain: calls that make no progress for `limit_seconds` are
        given up.
        """
        watch, self._watch = self._watch, None
        if watch is None:  # nothing was ever served, or it has ended
            self._word(abi.Relay.CLOSED).value = self._word(abi.Relay.CLOSED).value or 1
            return
        self._close()
        self._drain()
        watch.stop(self._wake)
        self._word(abi.Relay.SERVER).value = 0
        self._wake()
        for thread in self._threads:
            thread.join(timeout=2.0)

    def _close(self) -> None:
        """No call is taken any more; one that is being enqueued is in the ring when this returns."""
        end = time.monotonic() + self._limits[0]
        while self._swap(self.address + abi.Relay.LOCK, 1) and time.monotonic() < end:
            time.sleep(1e-4)
        self._word(abi.Relay.CLOSED).value = self._word(abi.Relay.CLOSED).value or 1
        self._word(abi.Relay.LOCK).value = 0

    def _drain(self) -> None:
        """Until no call is open, or those that are will never be served."""
        seen, since = self._open(), time.monotonic()
        while seen is not None and not self._lost:
            time.sleep(1e-3)
            now = self._open()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > self._limits[0]:
                self.abandon(seen)

    def _forked(self) -> None:
        """A forked child has neither the threads nor the device: no call is taken, and none of the parent's is waited
        for.
        """
        self._unlocked()
        self._lock, self._threads, self._watch = threading.RLock(), [], None
        for at in (abi.Relay.LOCK, abi.Relay.SLEEPS, abi.Relay.SERVER):
            self._word(at).value = 0
        for at in (abi.Relay.HEAD, abi.Relay.CLAIMED):
            self._word(at).value = self._word(abi.Relay.TAIL).value
        self._word(abi.Relay.CLOSED).value = 1

    def retire(self, words: np.ndarray, memory: Memory, keep: object) -> None:
        """Takes over the memory of a site that no object of Python has any more (`words`: as sites have them). An
        executable of XLA may still call it, and work of it may be in flight, which needs `keep` too.
        """
        with self._lock:
            self._retired.append(_Retired(words, memory, keep))

    def settle(self) -> None:
        """After a program that ended with an error: until the device has done what it was given, or says that it never
        will.
        """
        with contextlib.suppress(RuntimeError):
            self.driver.synchronize()

    def collect(self) -> None:
        """Frees what retired sites left, once nothing uses it.

        Raises `RuntimeError` when the driver does; then all of it stays.
        """
        with self._lock:
            left = [r for r in self._retired if not r.held]  # whatever they had to do is enqueued
        if not left:
            return
        self.driver.synchronize()
        with self._lock:
            if any(t.is_alive() for t in self._threads[:-1]):  # one that was replaced may still look at a site
                return
            done = {r for r in left if r.served} & {*self._retired}  # another thread may have freed some meanwhile
            for r in done:  # in place: a garbage collection may add one here
                self._retired.remove(r)
        for r in done:
            r.free()


__all__ = ["Driver", "Relay"]
