"""A device without hardware: the driver's calls that host calls need, executed by real threads with random delays.

`launch` has the signature of cuLaunchKernel and only puts work into a stream's queue; the stream's thread does what the
device kernels and the copy engines do, with NumPy, on host memory. XLA:CPU stands for the device half. Because XLA:CPU
takes a call's results as ready when the call returns, a join on XLA's stream waits until the stream has executed it,
and so does XLA's stream when it is told to follow another one.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xcoexec.codegen.native import call_layout as abi
from xcoexec.codegen.native import layout
from xcoexec.codegen.runtime.faults import word
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices.cuda import RECORD as CUDA
from xcoexec.devices.record import Device
from xcoexec.devices.registry import register
from xcoexec.ir.words import DEVICE
from xcoexec.session import recording

CROSS4, CROSS16, STAMP, AWAIT = 1, 2, 3, 4
PARAMETERS = {CROSS4: abi.CROSS_PARAMETERS, CROSS16: abi.CROSS_PARAMETERS, STAMP: 1, AWAIT: 4}
MAIN, SIDES = 1, (2, 3, 4)
TRAPPED = 719  # what the driver says once a kernel has executed `trap`
CALLS = ("launch", "copy", "copy2d", "record", "follow")  # that handlers make


class StandIn:
    """`delay`: most seconds that a stream waits before an operation. Planted bugs: with `forget_flag` joins do not wait
    for the host, with `forget_event` streams do not wait for each other, and copies come too late for anybody to see
    (it is dropped: by then the memory belongs to others); with `forget_ready` no flag tells the host that operands are
    there.

    `fail_driver`: an error code for the calls named there; `fail_at`: (name, n) of the one call that fails, the n-th
    from now on (n counts down). What fails does nothing; with `lost` all calls fail from then on. `trapped`: a kernel
    has executed `trap`, and every call fails from then on.
    """

    platform = "stand-in cpu"
    functions = (CROSS4, CROSS16, STAMP, AWAIT)
    blocks = waiters = 16
    workspace = 0
    stream = MAIN
    sides = SIDES

    def __init__(self, delay: float = 0.0, seed: int = 0, forget_flag: bool = False, forget_event: bool = False):
        self.delay, self.forget_flag, self.forget_event = delay, forget_flag, forget_event
        self.fail_launch = self.fail_mapped = 0  # an error code for the next calls
        self.fail_driver: dict[str, int] = {}
        self.fail_at: tuple[str, int] = ("", -1)
        self.forget_ready = self.lost = False
        self.trapped = 0
        self.launches = self.copied = self.exchanges = 0
        self._joins = threading.Event()
        self._joins.set()
        self._random = random.Random(seed)
        self._memory: dict[int, np.ndarray] = {}
        self._names = itertools.count(100)
        self._events: dict[int, threading.Event] = {}
        self._streams: dict[int, queue.Queue[Callable[[], object]]] = {s: queue.Queue() for s in (MAIN, *SIDES)}
        self._kept: list[Any] = []
        self.launch = self._address(self._launch, 11)
        calls = ((self._copy, 4), (self._copy2d, 2), (self._record, 2), (self._follow, 3), (self._synchronize, 1))
        self.copies = tuple(self._address(fn, n) for fn, n in calls)
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
        if "words" in self.fail_driver:
            raise RuntimeError(f"xcoexec: cuMemAlloc failed: made up (code {self.fail_driver['words']}).")
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
            assert self._drained(s).wait(60)
        if self.trapped:
            raise RuntimeError(f"xcoexec: cuCtxSynchronize failed: made up (code {self.trapped}).")

    def describe(self, code: int) -> str:
        return f"made up (code {code})"

    @property
    def allocations(self) -> int:
        return len(self._memory) + len(self._events)

    @property
    def busy(self) -> bool:
        """Whether a side stream has not done all it was given."""
        return any(self._streams[s].unfinished_tasks for s in SIDES)

    # -- the streams
    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While it lasts the streams do nothing of what they are given."""
        end = threading.Event()
        for s in self._streams.values():
            s.put(end.wait)
        try:
            yield
        finally:
            end.set()

    @contextlib.contextmanager
    def unjoined(self) -> Iterator[None]:
        """While it lasts XLA does not get any further than to a join."""
        self._joins.clear()
        try:
            yield
        finally:
            self._joins.set()

    def _drained(self, stream: int) -> threading.Event:
        done = threading.Event()
        self._streams[stream].put(done.set)
        return done

    def _fails(self, name: str) -> int:
        """The error code of a call that is being made (0: it works)."""
        if self.fail_at[0] == name:
            self.fail_at = name, self.fail_at[1] - 1
            if self.fail_at[1] == -1:
                self.trapped = 700 if self.lost else self.trapped
                return 700
        return self.trapped or self.fail_driver.get(name, 0)

    def _waited(self, stream: int) -> int:
        """Waits as XLA:CPU has to (see above): the error code of the stream."""
        assert self._drained(stream).wait(60)
        return self.trapped

    def _launch(self, function: int, *rest: int) -> int:
        self.launches += 1
        stream, pointers = rest[7], rest[8]
        values = [
            ctypes.c_int64.from_address(ctypes.c_int64.from_address(pointers + 8 * i).value).value
            for i in range(PARAMETERS[function])
        ]
        joins = function in (CROSS4, CROSS16) and values[abi.Cross.SEQ // 8] != 0
        self.exchanges += joins and values[abi.Cross.READY_SEQ // 8] != 0
        if joins or function == AWAIT:
            assert self._joins.wait(60)
        if self.fail_launch or (code := self._fails("launch")):
            return self.fail_launch or code
        if function == STAMP and stream == MAIN:  # XLA:CPU, the device here, has done what comes before
            ctypes.c_int64.from_address(values[0]).value = time.monotonic_ns()
            return 0
        self._streams[stream].put(lambda: self._execute(function, values))
        return self._waited(stream) if joins else 0

    def _execute(self, function: int, values: list[int]) -> None:
        if self.trapped:
            return
        waits = function == AWAIT or (function != STAMP and values[abi.Cross.SEQ // 8] != 0)
        if not (self.forget_flag and waits):
            self._hesitate()
        if function == STAMP:
            ctypes.c_int64.from_address(values[0]).value = time.monotonic_ns()
        elif function == AWAIT:
            self._await(values)
        else:
            self._cross(values, 4 if function == CROSS16 else 1)

    def _hesitate(self) -> None:
        if self.delay:
            time.sleep(self._random.random() * self.delay)

    def _copy(self, target: int, source: int, nbytes: int, stream: int) -> int:
        return self._copied("copy", stream, lambda: ctypes.memmove(target, source, nbytes))

    def _copy2d(self, words: int, stream: int) -> int:
        w = [ctypes.c_int64.from_address(words + 8 * i).value for i in range(16)]
        assert w[2] == w[9] == 4

        def rows() -> None:
            for i in range(w[15]):
                ctypes.memmove(w[11] + i * w[13], w[4] + i * w[6], w[14])

        return self._copied("copy2d", stream, rows)

    def _copied(self, name: str, stream: int, work: Callable[[], Any]) -> int:
        self.copied += 1
        if code := self._fails(name):
            return code

        def late() -> None:
            self._hesitate()
            if not self.forget_event and not self.trapped:
                work()

        self._streams[stream].put(late)
        return 0

    def _record(self, event: int, stream: int) -> int:
        if code := self._fails("record"):
            return code
        self._events[event] = self._drained(stream)
        return 0

    def _follow(self, stream: int, event: int, _: int) -> int:
        """A wait for what was recorded last, as it is now: later records do not matter."""
        if code := self._fails("follow"):
            return code
        if self.forget_event:
            return 0
        until = self._events[event]
        self._streams[stream].put(lambda: until.wait(60))
        return self._waited(MAIN) if stream == MAIN else 0

    def _synchronize(self, stream: int) -> int:
        return self._waited(stream)

    def _run(self, stream: queue.Queue[Callable[[], object]]) -> None:
        while True:
            stream.get()()
            stream.task_done()

    def _await(self, values: list[int]) -> None:
        flags, _, seq, limit = values
        began = time.monotonic_ns()
        if self._answered(flags, seq, began + limit):
            _stamp(flags, seq, 2, began, began, time.monotonic_ns())

    def _answered(self, flags: int, seq: int, end: int) -> bool:
        done = ctypes.c_int64.from_address(flags + abi.Page.DONE)
        while not self.forget_flag and done.value < seq and time.monotonic_ns() < end:
            time.sleep(1e-5)
        if not self.forget_flag and not seq <= done.value < abi.ABANDONED:
            self.trapped = TRAPPED
        return not self.trapped

    def _cross(self, values: list[int], width: int) -> None:
        at = lambda word: values[word // 8]
        if at(abi.Cross.READY_SEQ) or values[abi.Sent.OUTER // 8]:
            _start(values, width, self.forget_ready)
        if at(abi.Cross.SEQ):
            self._join(values, width)

    def _join(self, values: list[int], width: int) -> None:
        flags, _, seq, limit, leads = values[abi.Cross.PAGE // 8 : abi.Cross.FIRST // 8 + 1]
        parts = _parts(values, abi.Cross.RESULTS, abi.BROUGHT_BYTES)
        results = [_words(out, outer * (nh + nd) * width).reshape(outer, -1) for out, _, _, outer, nh, nd in parts]
        for result, (_, _, dev, outer, nh, nd) in zip(results, parts, strict=True):
            if nd:
                result[:, nh * width :] = _words(dev, outer * nd * width).reshape(outer, -1)
        began = time.monotonic_ns()
        if not self._answered(flags, seq, began + limit):
            return
        for result, (_, host, _, outer, nh, _) in zip(results, parts, strict=True):
            result[:, : nh * width] = _words(host, outer * nh * width).reshape(outer, -1)
        if leads:
            _stamp(flags, seq, 2, began, began, time.monotonic_ns())
        _stamp(flags, seq, 5, time.monotonic_ns())


#: what XLA's compiler is asked for in plans whose kernels are launched as graphs; a test fills it
GRAPHS: dict[str, object] = {}
LIBRARIES: dict[str, object] = {}  # the same of plans that are tried
SINGLY: dict[str, object] = {}  # the same of plans whose kernels are launched one by one

recording.HARMLESS += (f"{__name__}.",)  # its threads are the device

register(
    Device(
        name=StandIn.platform,
        half=DEVICE,
        apart=True,
        shares_cores=False,
        handlers="cpu",
        title=lambda: "stand-in",
        connect=lambda cores: Relay(StandIn(), cores),
        tiles=((16, 16),),
        processors=lambda threads: 8,
        filters=CUDA.filters,
        graphs=lambda ops: dict(GRAPHS),
        singly=lambda: dict(SINGLY),
        libraries=lambda ops: dict(LIBRARIES),
    )
)


def _parts(values: list[int], begin: int, nbytes: int) -> list[list[int]]:
    """The parameters of each operand, or of each result, that there is: one without runs is none."""
    rows = [values[(begin + nbytes * k) // 8 :][: nbytes // 8] for k in range(abi.PARTS)]
    outer = abi.Sent.OUTER // 8 if begin == abi.Cross.OPERANDS else abi.Brought.OUTER // 8
    return [row for row in rows if row[outer]]


def _start(values: list[int], width: int, silent: bool) -> None:
    flags, _, seq = values[abi.Cross.READY_PAGE // 8 : abi.Cross.READY_SEQ // 8 + 1]
    began = time.monotonic_ns()
    for src, dst, outer, inner, stride, offset in _parts(values, abi.Cross.OPERANDS, abi.SENT_BYTES):
        target = _words(dst, outer * inner * width).reshape(outer, -1)
        for row in range(outer):
            target[row] = _words(src + 4 * width * (row * stride + offset), inner * width)
    if seq and not silent:
        _stamp(flags, seq, 0, began, time.monotonic_ns())
        ctypes.c_int64.from_address(flags + abi.Page.READY).value = seq


def _stamp(flags: int, seq: int, index: int, *values: int) -> None:
    at = flags + abi.Page.STAMPS + abi.STAMP_BYTES * (seq % abi.SITE_RING) + 8 * index
    for i, value in enumerate(values):
        ctypes.c_int64.from_address(at + 8 * i).value = value


def _words(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


_kept: list[Any] = []


@contextlib.contextmanager
def sleeping(segment: Any, seconds: float) -> Iterator[threading.Event]:
    """The first step of a segment sleeps before it works. Gives an event: it has begun."""
    address = word(word(segment.address + layout.Segment.STEPS).value + layout.Step.DRIVER)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
    real, began, end = kind(address.value), threading.Event(), threading.Event()

    def slow(*args: int) -> int:
        began.set()
        end.wait(seconds)
        return int(real(*args))

    replaced, callback = address.value, kind(slow)
    address.value = ctypes.cast(callback, ctypes.c_void_p).value or 0
    try:
        yield began
    finally:
        end.set()
        address.value = replaced
        _kept.append(callback)  # a thread may still be inside
