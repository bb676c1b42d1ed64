"""A device without hardware: the driver's calls that host calls need, executed by real threads with random delays.

`launch` has the signature of cuLaunchKernel and only puts work into a stream's queue; the stream's thread does what the
device kernels and the copy engines do, with NumPy, on host memory. XLA:CPU stands for the device half. Because XLA:CPU
takes a call's results as ready when the call returns, a join on XLA's stream waits until the stream has executed it,
and so does XLA's stream when it is told to follow another one.
"""

from __future__ import annotations

import ctypes
import itertools
import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from xcoexec.codegen import layout as abi

START4, START16, JOIN4, JOIN16, STAMP, AWAIT = 1, 2, 3, 4, 5, 6
PARAMETERS = {START4: 9, START16: 9, JOIN4: 10, JOIN16: 10, STAMP: 1, AWAIT: 6}
MAIN, SIDES = 1, (2, 3, 4)


class StandIn:
    """`delay`: most seconds that a stream waits before an operation. Planted bugs: with `forget_flag` joins do not wait for the
    host, with `forget_event` streams do not wait for each other, and copies come too late for anybody to see
    (it is dropped: by then the memory belongs to others). `fail_driver`: an error code for the calls named there."""

    platform = "stand-in cpu"
    functions = (START4, START16, JOIN4, JOIN16, STAMP, AWAIT)
    blocks = waiters = 16
    workspace = 0
    stream = MAIN
    sides = SIDES

    def __init__(self, delay: float = 0.0, seed: int = 0, forget_flag: bool = False, forget_event: bool = False):
        self.delay, self.forget_flag, self.forget_event = delay, forget_flag, forget_event
        self.fail_launch = self.fail_mapped = 0  # an error code for the next calls
        self.fail_driver: dict[str, int] = {}
        self.launches = self.copied = 0
        self._random = random.Random(seed)
        self._memory: dict[int, np.ndarray] = {}
        self._names = itertools.count(100)
        self._events: dict[int, threading.Event] = {}
        self._streams: dict[int, queue.Queue[Callable[[], None]]] = {s: queue.Queue() for s in (MAIN, *SIDES)}
        self._kept: list[Any] = []
        self.launch = self._address(self._launch, 11)
        self.copies = (self._address(self._copy, 4), self._address(self._copy2d, 2), self._address(self._record, 2), self._address(self._follow, 3))
        for s in self._streams.values():
            threading.Thread(target=self._run, args=(s,), daemon=True).start()

    def _address(self, fn: Callable[..., int], arguments: int) -> int:
        callback = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)(fn)
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    # -- what the relay calls
    def mapped(self, nbytes: int) -> tuple[int, int]:
        if self.fail_mapped:
            raise RuntimeError("xcoexec: cuMemHostAlloc failed: out of memory (code 2).")
        return (self.words(nbytes),) * 2

    def words(self, nbytes: int) -> int:
        raw = np.zeros(nbytes + 64, np.uint8)
        address = -(-raw.ctypes.data // 64) * 64
        self._memory[address] = raw
        return address

    def free_mapped(self, host: int) -> None:
        del self._memory[host]

    free_words = free_mapped

    def memory(self) -> tuple[int, int]:
        return 1 << 30, 1 << 30

    def event(self) -> int:
        if "event" in self.fail_driver:
            raise RuntimeError(f"xcoexec: cuEventCreate failed: made up (code {self.fail_driver['event']}).")
        name = next(self._names)
        self._events[name] = threading.Event()
        return name

    def free_event(self, event: int) -> None:
        del self._events[event]

    def synchronize(self) -> None:
        for s in self._streams:
            assert self._drained(s).wait(30)

    def describe(self, code: int) -> str:
        return f"made up (code {code})"

    @property
    def allocations(self) -> int:
        return len(self._memory) + len(self._events)

    # -- the streams
    def _drained(self, stream: int) -> threading.Event:
        done = threading.Event()
        self._streams[stream].put(done.set)
        return done

    def _launch(self, function: int, *rest: int) -> int:
        self.launches += 1
        if self.fail_launch:
            return self.fail_launch
        stream, pointers = rest[7], rest[8]
        values = [ctypes.c_int64.from_address(ctypes.c_int64.from_address(pointers + 8 * i).value).value for i in range(PARAMETERS[function])]
        if function == STAMP and stream == MAIN:  # XLA:CPU, the device here, has done what comes before
            ctypes.c_int64.from_address(values[0]).value = time.monotonic_ns()
            return 0
        self._streams[stream].put(lambda: self._execute(function, values))
        if function in (JOIN4, JOIN16):
            self._drained(stream).wait(60)
        return 0

    def _execute(self, function: int, values: list[int]) -> None:
        if not (self.forget_flag and function in (JOIN4, JOIN16, AWAIT)):
            self._hesitate()
        if function == STAMP:
            ctypes.c_int64.from_address(values[0]).value = time.monotonic_ns()
        elif function == AWAIT:
            self._await(values)
        else:
            (_start if function in (START4, START16) else self._join)(values, 4 if function in (START16, JOIN16) else 1)

    def _hesitate(self) -> None:
        if self.delay:
            time.sleep(self._random.random() * self.delay)

    def _copy(self, target: int, source: int, nbytes: int, stream: int) -> int:
        return self._copied(stream, lambda: ctypes.memmove(target, source, nbytes))

    def _copy2d(self, words: int, stream: int) -> int:
        w = [ctypes.c_int64.from_address(words + 8 * i).value for i in range(16)]
        assert w[2] == w[9] == 4

        def rows() -> None:
            for i in range(w[15]):
                ctypes.memmove(w[11] + i * w[13], w[4] + i * w[6], w[14])

        return self._copied(stream, rows)

    def _copied(self, stream: int, work: Callable[[], Any]) -> int:
        self.copied += 1

        def late() -> None:
            self._hesitate()
            if not self.forget_event:
                work()

        self._streams[stream].put(late)
        return self.fail_driver.get("copy", 0)

    def _record(self, event: int, stream: int) -> int:
        self._events[event] = self._drained(stream)
        return self.fail_driver.get("record", 0)

    def _follow(self, stream: int, event: int, _: int) -> int:
        """A wait for what was recorded last, as it is now: later records do not matter."""
        if not self.forget_event:
            until = self._events[event]
            self._streams[stream].put(lambda: until.wait(60))
            if stream == MAIN:
                self._drained(stream).wait(60)
        return self.fail_driver.get("follow", 0)

    def _run(self, stream: queue.Queue[Callable[[], None]]) -> None:
        while True:
            stream.get()()

    def _await(self, values: list[int]) -> None:
        host, n, flags, _, seq, limit = values
        began = time.monotonic_ns()
        if not self._answered(flags, seq, began + limit):
            _words(host, n)[:] = np.nan
        _stamp(flags, seq, 2, began, began, time.monotonic_ns())

    def _answered(self, flags: int, seq: int, end: int) -> bool:
        while not self.forget_flag and ctypes.c_int64.from_address(flags + abi.FLAG_DONE).value < seq:
            if time.monotonic_ns() > end:
                ctypes.c_int64.from_address(flags + abi.FLAG_FAULT).value = seq
                return False
            time.sleep(1e-5)
        return True

    def _join(self, values: list[int], width: int) -> None:
        out, host, dev, outer, nh, nd, flags, _, seq, limit = values
        result = _words(out, outer * (nh + nd) * width).reshape(outer, -1)
        if nd:
            result[:, nh * width :] = _words(dev, outer * nd * width).reshape(outer, -1)
        began = time.monotonic_ns()
        if not self._answered(flags, seq, began + limit):
            result[:, : nh * width] = np.nan
            return
        result[:, : nh * width] = _words(host, outer * nh * width).reshape(outer, -1)
        _stamp(flags, seq, 2, began, began, time.monotonic_ns(), time.monotonic_ns())


def _start(values: list[int], width: int) -> None:
    src, dst, outer, inner, stride, offset, flags, _, seq = values
    began = time.monotonic_ns()
    target = _words(dst, outer * inner * width).reshape(outer, -1) if outer else np.zeros((0, 0))
    for row in range(outer):
        target[row] = _words(src + 4 * width * (row * stride + offset), inner * width)
    if seq:
        _stamp(flags, seq, 0, began, time.monotonic_ns())
        ctypes.c_int64.from_address(flags + abi.FLAG_READY).value = seq


def _stamp(flags: int, seq: int, index: int, *values: int) -> None:
    at = flags + abi.FLAG_STAMPS + abi.STAMP_BYTES * (seq % abi.SITE_RING) + 8 * index
    for i, value in enumerate(values):
        ctypes.c_int64.from_address(at + 8 * i).value = value


def _words(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))
