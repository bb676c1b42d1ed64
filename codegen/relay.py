"""The relay between a device's stream and the team: the serving thread, and call sites with their mapped memory.

What a driver has to provide is in `Driver`; `xcoexec.runtime.cuda` is the real one, the tests have a stand-in that
executes the same stream operations with threads and delays.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import math
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from . import layout as abi
from .faults import TEXTS, Faults, Watch, noted, word
from .host import function, libc, team, wake
from .segment import Segment

SPIN_SECONDS = 2e-3  # of the serving thread and the team: a parked thread costs tens of microseconds to wake, all of them hundreds
LIMIT_SECONDS = 20.0  # until a call that nobody begins is taken over, and at the end of the process until calls without progress are given up
LAST_SECONDS = 600.0  # until a call that somebody has begun is given up
DEVICE_FACTOR = 6  # of these: until a device that nobody answers stops by itself


class Driver(Protocol):
    """A device as the relay sees it. Addresses and handles are integers."""

    platform: str  # where XLA looks for the handlers
    launch: int  # address of cuLaunchKernel, or of a function with its signature
    functions: tuple[int, ...]  # as device.KERNELS
    workspace: int  # bytes of device memory that XLA's libraries use beside a program's own
    blocks: int  # most blocks of one launch
    waiters: int  # most blocks of a kernel that waits: another kernel still has room beside it on every multiprocessor
    stream: int  # 0: the stream on which XLA launches
    copies: tuple[int, ...]  # addresses of cuMemcpyAsync, cuMemcpy2DAsync, cuEventRecord, cuStreamWaitEvent, cuStreamSynchronize
    sides: tuple[int, ...]  # streams beside XLA's: operands to the host, results from it, weights from it

    def mapped(self, nbytes: int) -> tuple[int, int]:
        """Host-mapped memory: (host address, device address). Raises `RuntimeError` when refused."""
        ...

    def free_mapped(self, host: int) -> None: ...

    def words(self, nbytes: int) -> int:
        """Zeroed device memory."""
        ...

    def free_words(self, address: int) -> None: ...

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""
        ...

    def event(self) -> int: ...

    def free_event(self, event: int) -> None: ...

    def synchronize(self) -> None:
        """Waits until the device has nothing to do."""
        ...

    def describe(self, code: int) -> str:
        """The driver's words for an error code."""
        ...


@dataclasses.dataclass(frozen=True)
class Window:
    """`start:stop` along `axis` of an operand; the segment's input. `copied`: by a copy engine, not by a kernel."""

    shape: tuple[int, ...]
    axis: int
    start: int
    stop: int
    copied: bool = False

    @classmethod
    def whole(cls, shape: tuple[int, ...], copied: bool = False) -> Window:
        return cls(shape or (1,), 0, 0, (shape or (1,))[0], copied)

    def words(self) -> tuple[int, int, int, int]:
        """(outer, inner, stride, offset) in elements."""
        inner = math.prod(self.shape[self.axis + 1 :])
        return math.prod(self.shape[: self.axis]), (self.stop - self.start) * inner, self.shape[self.axis] * inner, self.start * inner


@dataclasses.dataclass(frozen=True)
class Merge:
    """A result of `shape` whose first `at` indices along `axis` the host half makes, the others the device half; `copied` as above."""

    shape: tuple[int, ...]
    axis: int
    at: int
    copied: bool = False

    @classmethod
    def whole(cls, shape: tuple[int, ...], copied: bool = False) -> Merge:
        return cls(shape or (1,), 0, (shape or (1,))[0], copied)

    def words(self) -> tuple[int, int, int]:
        """(outer, the host's, the device's) in elements."""
        inner = math.prod(self.shape[self.axis + 1 :])
        return math.prod(self.shape[: self.axis]), self.at * inner, (self.shape[self.axis] - self.at) * inner


class Relay:
    """Serves the host calls of one device with one team. `cpus`: the team's cores (none given: the process's team).

    `limit_seconds`, `last_seconds`: how long a call may wait to be begun, and to be ended (see `Watch`).
    """

    def __init__(self, driver: Driver, cpus: tuple[int, ...] = (), limit_seconds: float = LIMIT_SECONDS, last_seconds: float = LAST_SECONDS):
        self.driver, self._team = driver, team(cpus)
        self._limits = limit_seconds, last_seconds
        self._team.spin(SPIN_SECONDS)
        self._memory = np.zeros(abi.RELAY_BYTES + 64, np.uint8)
        self.address = -(-self._memory.ctypes.data // 64) * 64
        self._locks = np.zeros(512, np.uint8)
        self._entries = np.zeros(abi.R_CAPACITY * abi.ENTRY_WORDS, np.int64)
        self._texts = [ctypes.create_string_buffer(f"xcoexec: {t}".encode()) for t in TEXTS]
        self._messages = np.array([ctypes.addressof(t) for t in self._texts], np.int64)
        self._retired: list[tuple[np.ndarray, Memory, Any]] = []
        self._lock = threading.RLock()  # a garbage collection inside may retire a site
        self._threads: list[threading.Thread] = []  # that serve, the one in charge last
        self._watch: Watch | None = None
        words = {
            abi.R_ENTRIES: self._entries.ctypes.data,
            abi.R_MUTEX: self._locks.ctypes.data,
            abi.R_COND: self._locks.ctypes.data + 256,
            abi.R_TEAM: self._team.address,
            abi.R_LIBC: self._team.libc.ctypes.data,
            abi.R_SPIN_NS: int(SPIN_SECONDS * 1e9),
            abi.R_LAUNCH: driver.launch,
            abi.R_STREAM: driver.stream,
            abi.R_BLOCKS: driver.blocks,
            abi.R_WAITERS: driver.waiters,
            abi.R_LIMIT_NS: int(DEVICE_FACTOR * last_seconds * 1e9),
            abi.R_HELD_NS: int(limit_seconds * 1e9),
            abi.R_MESSAGES: self._messages.ctypes.data,
            **dict(zip((abi.R_START4, abi.R_START16, abi.R_JOIN4, abi.R_JOIN16, abi.R_STAMP, abi.R_AWAIT), driver.functions, strict=True)),
            **dict(zip((abi.R_COPY, abi.R_COPY2D, abi.R_RECORD, abi.R_FOLLOW, abi.R_SYNC), driver.copies, strict=True)),
            **dict(zip((abi.R_OUT, abi.R_IN, abi.R_FETCH), driver.sides, strict=True)),
        }
        for at, value in words.items():
            self._word(at).value = value
        self._errors = self._word(abi.R_ERRORS)
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
        return self._word(abi.R_CODE).value

    @property
    def errors(self) -> int:
        """Faults of all programs so far; who sees that there are more looks at its own (`Faults`)."""
        return self._errors.value

    @property
    def served(self) -> bool:
        """Whether the thread that is in charge lives."""
        return bool(self._threads) and self._threads[-1].is_alive() and self._word(abi.R_SERVER).value == len(self._threads)

    @property
    def _lost(self) -> bool:
        return self._word(abi.R_CLOSED).value == abi.LOST

    def start(self) -> None:
        """Makes the serving thread and its watch (once). Raises `RuntimeError` when the relay has been stopped."""
        with self._lock:
            if self._word(abi.R_CLOSED).value:
                raise RuntimeError(f"xcoexec: {TEXTS[abi.M_CLOSED // 8]}.")
            if not self._threads:
                self._serve()
            if self._watch is None:
                self._watch = Watch(self, *self._limits)

    def _serve(self) -> None:
        """Makes a serving thread that is in charge from now on (the lock is held)."""
        number = len(self._threads) + 1
        thread = threading.Thread(target=function("serve", 2, "serving"), args=(self.address, number), name="xcoexec-relay", daemon=True)
        self._threads.append(thread)
        self._word(abi.R_SERVER).value = number
        self._wake()
        thread.start()

    def _wake(self) -> None:
        wake(self._locks.ctypes.data, self._locks.ctypes.data + 256)

    def _open(self) -> int | None:
        """The number of the oldest open call; None without any (the lock is held, so that its site stays)."""
        head = self._word(abi.R_HEAD).value
        return head if head < self._word(abi.R_TAIL).value else None

    def _entry(self, number: int) -> tuple[int, int]:
        """(call site, sequence number) of a call."""
        site, seq = self._entries.reshape(-1, abi.ENTRY_WORDS)[number % abi.R_CAPACITY]
        return int(site), int(seq)

    def oldest(self) -> tuple[int, bool, bool] | None:
        """(number, are its operands there, has a thread begun with it) of the oldest open call; None without any that can be served."""
        with self._lock:
            head = self._open()
            if head is None or self._lost:
                return None
            site, seq = self._entry(head)
            ready = word(word(site + abi.SITE_FLAGS).value + abi.FLAG_READY).value >= seq
            return head, ready, self._word(abi.R_CLAIMED).value > head

    def replace(self, number: int, why: int) -> bool:
        """Another thread takes the serving one's place, unless the call of that number has been served by now; noted on its program."""
        with self._lock:
            if self._open() != number or self._lost:
                return False
            noted(self.address, word(self._entry(number)[0] + abi.SITE_FAULTS).value, why)
            self._serve()
            return True

    def abandon(self, number: int) -> bool:
        """Gives up the calls from that number on, unless it has been served by now: the device stops with an error, and the relay with it."""
        with self._lock:
            if self._open() != number or self._lost:
                return False
            self._word(abi.R_CLOSED).value = abi.LOST
            for i in range(number, self._word(abi.R_TAIL).value):
                site, _ = self._entry(i)
                noted(self.address, word(site + abi.SITE_FAULTS).value, abi.M_LOST)
                word(word(site + abi.SITE_FLAGS).value + abi.FLAG_DONE).value = abi.ABANDONED
            return True

    def stop(self) -> None:
        """Ends the service (at the end of the process): no call is taken any more, those in flight are served.

        A device that waits for the host must not wait in vain: calls that make no progress for `limit_seconds` are given up.
        """
        watch, self._watch = self._watch, None
        if watch is None:  # nothing was ever served, or it has ended
            self._word(abi.R_CLOSED).value = self._word(abi.R_CLOSED).value or 1
            return
        self._close()
        self._drain()
        watch.stop(self._wake)
        self._word(abi.R_SERVER).value = 0
        self._wake()
        for thread in self._threads:
            thread.join(timeout=2.0)

    def _close(self) -> None:
        """No call is taken any more; one that is being enqueued is in the ring when this returns."""
        swap, end = function("swap", 2), time.monotonic() + self._limits[0]
        while swap(self.address + abi.R_LOCK, 1) and time.monotonic() < end:
            time.sleep(1e-4)
        self._word(abi.R_CLOSED).value = self._word(abi.R_CLOSED).value or 1
        self._word(abi.R_LOCK).value = 0

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
        """A forked child has neither the threads nor the device: no call is taken, and none of the parent's is waited for."""
        self._unlocked()
        self._lock, self._threads, self._watch = threading.RLock(), [], None
        for at in (abi.R_LOCK, abi.R_SLEEPS, abi.R_SERVER):
            self._word(at).value = 0
        for at in (abi.R_HEAD, abi.R_CLAIMED):
            self._word(at).value = self._word(abi.R_TAIL).value
        self._word(abi.R_CLOSED).value = 1

    def retire(self, words: np.ndarray, memory: Memory, keep: Any) -> None:
        """Takes over the memory of a site that nobody calls any more; work of it may still be in flight."""
        with self._lock:
            self._retired.append((words, memory, keep))

    def settle(self) -> None:
        """After a program that ended with an error: until the device has done what it was given, or says that it never will."""
        with contextlib.suppress(RuntimeError):
            self.driver.synchronize()

    def collect(self) -> None:
        """Frees what retired sites left, once nothing uses it. Raises what the driver raises; then all of it stays."""
        with self._lock:
            waiting = len(self._retired)
        if not waiting:
            return
        self.driver.synchronize()
        with self._lock:
            if any(t.is_alive() for t in self._threads[:-1]):  # one that was replaced may still look at a site
                return
            old, self._retired = self._retired[:waiting], self._retired[waiting:]
            done = [r for r in old if r[0][abi.SITE_SERVED // 8] >= r[0][abi.SITE_SEQ // 8]]
            self._retired += [r for r in old if not any(r is d for d in done)]
        for _, memory, _ in done:
            memory.free()


class Memory:
    """Mapped memory, device words and events of one site; given back together, also when only a part could be had."""

    def __init__(self, driver: Driver, mapped: int, words: int, events: int):
        self._driver = driver
        self.host = self.device = self.work = 0
        self.events: list[int] = []
        try:
            self.host, self.device = driver.mapped(mapped)
            self.work = driver.words(words) if words else 0
            for _ in range(events):
                self.events.append(driver.event())
        except Exception:
            self.free()
            raise

    def free(self) -> None:
        if self.host:
            self._driver.free_mapped(self.host)
        if self.work:
            self._driver.free_words(self.work)
        for event in self.events:
            self._driver.free_event(event)
        self.host = self.work = 0
        self.events.clear()


def _filled(count: int, words: Mapping[int, int]) -> np.ndarray:
    """A block of int64 words, given by their byte offsets."""
    block = np.zeros(count, np.int64)
    for at, value in words.items():
        block[at // 8] = value
    return block


class Site:
    """One segment inside a device program: its weights in host memory, its operands and results in mapped memory.

    `address` is what the FFI attribute carries. `inputs`: what of each operand the segment reads; `outputs`: where its
    results go. `consts`: the segment's constants by value. `faults`: those of its program (none given: of its own).
    Raises `MemoryError`, and `RuntimeError` from the driver.
    """

    def __init__(self, relay: Relay, segment: Segment, inputs: Sequence[Window], outputs: Sequence[Merge], consts: Any, faults: Faults | None = None):
        relay.collect()
        self.segment, self.faults = segment, Faults() if faults is None else faults
        if not function("reserve", 1, "serving")(segment.address):
            raise MemoryError(f"xcoexec: no memory is left for the {segment.arena_bytes} bytes of a host segment's intermediates.")
        self._keep = [*(np.ascontiguousarray(consts[v]) for v in segment.raw), segment.pack(consts)]
        sizes = [4 * math.prod(w.words()[:2]) for w in inputs] + [4 * math.prod(m.words()[:2]) for m in outputs]
        places = np.cumsum([abi.FLAG_BYTES, *(-(-n // 256) * 256 for n in sizes)])
        copies = sum(w.copied for w in inputs) + sum(m.copied for m in outputs)
        memory = Memory(relay.driver, int(places[-1]), 256, 2 if copies else 0)
        self._host, device = memory.host, memory.device
        ctypes.memset(self._host, 0, abi.FLAG_BYTES)
        n = len(inputs)
        hosts = [self._host + int(p) for p in places[:-1]]
        self._bufs = np.array([*hosts[:n], *(a.ctypes.data for a in self._keep), *hosts[n:]], np.int64)
        self._ins = self._table([self._row(w, device + int(p)) for w, p in zip(inputs, places[:n], strict=True)])
        self._outs = self._table([self._row(m, device + int(p)) for m, p in zip(outputs, places[n:-1], strict=True)])
        words = {
            abi.SITE_DESC: segment.address,
            abi.SITE_RELAY: relay.address,
            abi.SITE_FLAGS: self._host,
            abi.SITE_WORK: memory.work,
            abi.SITE_BUFS: self._bufs.ctypes.data,
            abi.SITE_NBUFS: len(self._bufs),
            abi.SITE_NIN: n,
            abi.SITE_INS: self._ins.ctypes.data,
            abi.SITE_NOUT: len(outputs),
            abi.SITE_OUTS: self._outs.ctypes.data,
            abi.SITE_COPIES: sum(w.copied for w in inputs),
            abi.SITE_FAULTS: self.faults.address,
            **dict(zip((abi.SITE_BEFORE, abi.SITE_AFTER), memory.events, strict=False)),
        }
        self._words = _filled(abi.SITE_WORDS, words)
        self.address = self._words.ctypes.data
        weakref.finalize(self, relay.retire, self._words, memory, (self._keep, self._bufs, self._ins, self._outs, segment, self.faults))
        relay.start()

    @staticmethod
    def _table(rows: Sequence[Sequence[int]]) -> np.ndarray:
        return np.array([list(r) + [0] * (abi.IN_WORDS - len(r)) for r in rows], np.int64).reshape(-1)

    @staticmethod
    def _row(part: Window | Merge, address: int) -> list[int]:
        """A part's words, in elements of 16 bytes where all of them allow it."""
        outer, *sizes = part.words()
        wide = all(s % 4 == 0 for s in sizes)
        return [address, outer, *(s // 4 if wide else s for s in sizes), int(wide), int(part.copied)]

    @property
    def calls(self) -> int:
        """Calls that the host has served."""
        return int(self._words[abi.SITE_SERVED // 8])

    def stamps(self, last: int | None = None) -> np.ndarray:
        """[calls kept, 6] nanoseconds of the device's clock, oldest call first: start began, ended; join began, asked for the host,
        left, ended. `last`: number of the last call that counts (none given: the last one that the host has served)."""
        last = self.calls if last is None else last
        rows = [seq % abi.SITE_RING for seq in range(max(1, last - abi.SITE_RING + 1), last + 1)]
        raw = np.ctypeslib.as_array(ctypes.cast(self._host + abi.FLAG_STAMPS, ctypes.POINTER(ctypes.c_int64)), (abi.SITE_RING, abi.STAMP_BYTES // 8))
        return raw[rows, :6]


class Fetch:
    """Weights in mapped host memory that a device program takes at every call; `address` is what the FFI attribute carries.

    `faults`: those of the program (none given: of its own).
    """

    def __init__(self, relay: Relay, weights: np.ndarray, faults: Faults | None = None):
        relay.collect()
        self.faults = Faults() if faults is None else faults
        self.nbytes = weights.nbytes
        behind = -(-weights.nbytes // 8) * 8  # where the stamps are
        memory = Memory(relay.driver, behind + 16, 0, 2)
        raw = np.ctypeslib.as_array(ctypes.cast(memory.host, ctypes.POINTER(ctypes.c_uint8)), (behind + 16,))
        raw[: weights.nbytes].view(weights.dtype).reshape(weights.shape)[...] = weights
        self._stamps, self._stamped = raw[behind:].view(np.int64), memory.device + behind
        self._stamps[:] = 0
        words = {
            abi.FETCH_RELAY: relay.address,
            abi.FETCH_SOURCE: memory.device,
            abi.FETCH_BYTES: weights.nbytes,
            abi.FETCH_BEFORE: memory.events[0],
            abi.FETCH_AFTER: memory.events[1],
            abi.FETCH_FAULTS: self.faults.address,
        }
        self._words = _filled(abi.FETCH_WORDS, words)
        self.address = self._words.ctypes.data
        weakref.finalize(self, relay.retire, np.zeros(abi.SITE_WORDS, np.int64), memory, (self._words, self.faults))

    def trace(self, on: bool) -> None:
        """Whether the copies of the calls from now on leave stamps; two more kernels each."""
        self._words[abi.FETCH_STAMPS // 8] = self._stamped if on else 0

    def stamps(self) -> tuple[int, int]:
        """Nanoseconds of the device's clock at which the last traced copy began and ended; zeros where none was traced."""
        return int(self._stamps[0]), int(self._stamps[1])


class Clock:
    """Places in a device program where the device's clock is read: `address(i)` is what the FFI attribute of the i-th carries."""

    def __init__(self, relay: Relay, count: int):
        self._relay, self._faults = relay, Faults()
        self._host, device = relay.driver.mapped(8 * count)
        self._rows = np.array([[relay.address, device + 8 * i, self._faults.address] for i in range(count)], np.int64)
        self._times = np.ctypeslib.as_array(ctypes.cast(self._host, ctypes.POINTER(ctypes.c_int64)), (count,))

    def address(self, i: int) -> int:
        return int(self._rows.ctypes.data) + 8 * abi.TICK_WORDS * i

    def times(self) -> np.ndarray:
        """Nanoseconds at each place in the last finished run."""
        return self._times.copy()

    def close(self) -> None:
        """Gives the memory back; no program that uses it may run any more."""
        self._relay.driver.synchronize()
        self._relay.driver.free_mapped(self._host)


class HostClock:
    """As `Clock`, of a program on the CPU."""

    def __init__(self, count: int):
        self._times = np.zeros(count, np.int64)
        self._rows = np.array([[libc("clock_gettime"), self._times.ctypes.data + 8 * i, 0] for i in range(count)], np.int64)

    def address(self, i: int) -> int:
        return int(self._rows.ctypes.data) + 8 * abi.TICK_WORDS * i

    def times(self) -> np.ndarray:
        return self._times.copy()

    def close(self) -> None:
        """Nothing to give back."""


__all__ = ["Clock", "Driver", "Faults", "Fetch", "HostClock", "Merge", "Relay", "Site", "Window"]
