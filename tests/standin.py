"""A device without hardware: the driver's calls that host calls need, executed by a real thread with random delays.

`launch` has the signature of cuLaunchKernel and only puts work into a queue; the stream's thread does what the four
device kernels do, with NumPy, on host memory. XLA:CPU stands for the device half. Because XLA:CPU takes a call's
results as ready when the call returns, `launch` of a join waits until the stream has executed it.
"""

from __future__ import annotations

import ctypes
import queue
import random
import threading
import time
from typing import Any

import numpy as np
from xcoexec.codegen import layout as abi

START4, START16, JOIN4, JOIN16, STAMP = 1, 2, 3, 4, 5
PARAMETERS = {START4: 9, START16: 9, JOIN4: 10, JOIN16: 10, STAMP: 1}


class StandIn:
    """`delay`: most seconds that the stream waits before an operation. `forget_flag`: a planted bug, joins do not wait for the host."""

    platform = "stand-in cpu"
    functions = (START4, START16, JOIN4, JOIN16, STAMP)
    blocks = 16
    stream = 1

    def __init__(self, delay: float = 0.0, seed: int = 0, forget_flag: bool = False):
        self.delay, self.forget_flag = delay, forget_flag
        self.fail_launch = self.fail_mapped = 0  # an error code for the next calls
        self.launches = 0
        self._random = random.Random(seed)
        self._memory: dict[int, np.ndarray] = {}
        self._queue: queue.Queue[Any] = queue.Queue()
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 11)
        self._callback = signature(self._launch)
        self.launch = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        threading.Thread(target=self._run, daemon=True).start()

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

    def synchronize(self) -> None:
        done = threading.Event()
        self._queue.put(done)
        assert done.wait(30)

    def describe(self, code: int) -> str:
        return f"made up (code {code})"

    @property
    def allocations(self) -> int:
        return len(self._memory)

    # -- the stream
    def _launch(self, function: int, *rest: int) -> int:
        self.launches += 1
        if self.fail_launch:
            return self.fail_launch
        pointers = rest[8]
        values = [ctypes.c_int64.from_address(ctypes.c_int64.from_address(pointers + 8 * i).value).value for i in range(PARAMETERS[function])]
        if function == STAMP:  # XLA:CPU, the device here, has done what comes before
            ctypes.c_int64.from_address(values[0]).value = time.monotonic_ns()
            return 0
        done = threading.Event() if function in (JOIN4, JOIN16) else None
        self._queue.put((function, values, done))
        if done is not None:
            done.wait(60)
        return 0

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            if isinstance(work, threading.Event):
                work.set()
                continue
            function, values, done = work
            if self.delay and not (self.forget_flag and done):
                time.sleep(self._random.random() * self.delay)
            width = 4 if function in (START16, JOIN16) else 1
            (_start if function in (START4, START16) else self._join)(values, width)
            if done is not None:
                done.set()

    def _join(self, values: list[int], width: int) -> None:
        out, host, dev, outer, nh, nd, flags, _, seq, limit = values
        result = _words(out, outer * (nh + nd) * width).reshape(outer, -1)
        if nd:
            result[:, nh * width :] = _words(dev, outer * nd * width).reshape(outer, -1)
        began = time.monotonic_ns()
        while not self.forget_flag and ctypes.c_int64.from_address(flags + abi.FLAG_DONE).value < seq:
            if time.monotonic_ns() - began > limit:
                ctypes.c_int64.from_address(flags + abi.FLAG_FAULT).value = seq
                result[:, : nh * width] = np.nan
                return
            time.sleep(1e-5)
        result[:, : nh * width] = _words(host, outer * nh * width).reshape(outer, -1)
        _stamp(flags, seq, 2, began, began, time.monotonic_ns(), time.monotonic_ns())


def _start(values: list[int], width: int) -> None:
    src, dst, outer, inner, stride, offset, flags, _, seq = values
    began = time.monotonic_ns()
    target = _words(dst, outer * inner * width).reshape(outer, -1)
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
