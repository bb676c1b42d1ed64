"""What one traced update does at every call: gradients down, one pass of the host over each chunk, results up.

    device      ... backward ... | g3 | ... | g2 | ... | g1 |  waits for the flag | next step
    down              words, g3 ----->  g2 ---->  g1 ->
    host                         g3: pass, pass   g2: pass   g1: pass
    up                                  p3 ------>     p2 -->      p1 -> flag

A gradient crosses as soon as it is there, in chunks; the new values come back into the memory that held it. Nothing
waits for the host but what reads the new values.
"""

from __future__ import annotations

import atexit
import collections
import ctypes
import dataclasses
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen.program import itemsize
from ..codegen.runtime.host import Call
from ..codegen.segment.assembly import Segment
from ..devices.queues import Queues
from .balance import Timing
from .division import Division, HostLeaf
from .handlers import number_of
from .programs import changing
from .store import Store

CHUNK = 1 << 22  # elements that cross and are computed at a time
ALIGN, WORD = 64, 4
Program = Callable[[HostLeaf, int, str], Segment]


class _Worker:
    """The thread that gives the team its work, in the order in which calls ask for it."""

    def __init__(self) -> None:
        self._flags = 0  # a forked child counts on: flags stay raised
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.drain)  # a device waits for what is still to be computed

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, task: Callable[[], None]) -> None:
        """Runs a task, which does not raise, behind all others."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="xcoexec-offload", daemon=True)
                self._thread.start()
            self._tasks.put(task)

    def put_flag(self, task: Callable[[int], None]) -> int:
        """As `put`; the task gets the number of a flag, which grows from call to call."""
        with self._lock:
            self._flags += 1
            number = self._flags
            self.put(lambda: task(number))
        return number

    def drain(self) -> None:
        """Waits until all that it was given is done."""
        if self._thread is not None:
            done = threading.Event()
            self._tasks.put(done.set)
            done.wait()

    def _run(self) -> None:
        while True:
            self._tasks.get()()


WORKER = _Worker()


@dataclasses.dataclass(frozen=True, eq=False)
class _Chunk:
    """A part of a leaf: its first byte in the array that crosses, its bytes, and the pass over it."""

    offset: int
    nbytes: int
    run: Call


@dataclasses.dataclass(frozen=True, eq=False)
class Wire:
    """How a leaf crosses: its elements, and their type."""

    n: int
    dtype: str


class _Join:
    """When the device reaches a join: a copy behind all that comes before it is done."""

    def __init__(self, queues: Queues, event: int):
        self._queues, self._event = queues, event
        self._at: float | None = None
        self.look()

    def look(self) -> None:
        """Notes the time, when it has come."""
        if self._at is None and self._queues.done(self._event):
            self._at = time.perf_counter()

    def reached(self) -> float:
        """The time; waits until it has come. Called once."""
        self._queues.wait(self._event)
        self.look()
        return time.perf_counter() if self._at is None else self._at


class Movement:
    """The calls of one traced update. `wires`: one for each leaf of the division; `program`: the pass over so many
    elements of a leaf, of the type in which they cross. Raises `Unsupported` for what kernels
    cannot express, `RuntimeError` where memory that the device reaches cannot be had.
    """

    def __init__(self, store: Store, division: Division, wires: Sequence[Wire], queues: Queues, program: Program):
        self.store, self.division, self._queues = store, division, queues
        sizes = [-(-w.n * itemsize(w.dtype) // ALIGN) * ALIGN for w in wires]
        words = -(-4 * (2 + len(division.words)) // ALIGN) * ALIGN
        self._memory = queues.memory(words + sum(sizes))
        weakref.finalize(self, queues.free, self._memory).atexit = False
        self._words = _view(self._memory, 1 + len(division.words), np.dtype(np.uint32))
        starts = np.cumsum([self._memory + words, *sizes])[:-1]
        parts = zip(division.leaves, wires, map(int, starts), strict=True)
        self._starts = [int(a) for a in starts]
        self._chunks = [self._chunks_of(leaf, wire, at, program) for leaf, wire, at in parts]
        self._one_by_one = threading.Lock()  # XLA:CPU calls from several threads at a time
        self._began = self._wrong = False
        self._late: list[Callable[[], None]] = []  # passes that wait for numbers which all gradients make
        self._targets: dict[int, int] = {}
        self.timing, self._seconds = Timing(), dict[int, float]()  # of this step's passes, by parameter
        self._joins: collections.deque[_Join] = collections.deque()  # of steps that are measured and not over
        self.number = number_of(self)

    def _chunks_of(self, leaf: HostLeaf, wire: Wire, at: int, program: Program) -> list[_Chunk]:
        update, size = self.division.update, itemsize(wire.dtype)
        master = self.store.masters.get(leaf.index)
        numbers = [1 + self.division.words.index(w) for w in leaf.words]
        chunks = []
        for first in range(0, wire.n, CHUNK):
            n = min(CHUNK, wire.n - first)
            segment = program(leaf, n, wire.dtype)
            part = lambda x, a=first, b=first + n: x[a:b]
            crossing = _view(at + first * size, n * size, np.dtype(np.uint8))
            states = {j: part(self.store.states[j]) for j in leaf.states}
            mine = [] if master is None else [part(master)]
            words = [self._words[k : k + 1] for k in numbers]
            given = [crossing, *states.values(), *mine, *words, segment.pack({})]
            results = [crossing, *(states[j] for j in changing(update, leaf)), *mine]
            chunks.append(_Chunk(first * size, n * size, Call.on(segment, given, results)))
        return chunks

    # -- called by the program
    def start(self, leaf: int, stream: int, operands: list[int]) -> None:
        """The gradient of a leaf is at the first operand; the words, unless they are late, at the second one."""
        self.store.check()
        with self._one_by_one:
            target = self._targets[leaf] = operands[0]
            self._queues.after(stream)
            if not self.division.late:
                self._take_words(operands[1])
            at, chunks = self._starts[leaf], self._chunks[leaf]
            events = [self._queues.down(at + c.offset, target + c.offset, c.nbytes) for c in chunks]
            task = lambda: self._update(leaf, target, events)
            if self.division.late:
                self._late.append(task)
            else:
                WORKER.put(task)

    def join(self, stream: int, operands: list[int]) -> None:
        """What the program computes from here on reads the operands, which have to be those of `start`; the last one
        has the words.
        """
        with self._one_by_one:
            if [self._targets.pop(i, 0) for i in range(len(self._chunks))] != operands[: len(self._chunks)]:
                raise RuntimeError("xcoexec.optim.offload: XLA has moved a gradient while the host was reading it.")
            if self.division.late:
                self._queues.after(stream)
                self._take_words(operands[-1])
            late, self._late, self._began = self._late, [], False
            watched = self._watched(stream, operands[-1]) if self.timing.open else None
            for task in late:
                WORKER.put(task)
            number = WORKER.put_flag(lambda number: self._end(number, watched))
        self._queues.wait_flag(stream, number)  # on the CPU the calling thread stands still

    def _watched(self, stream: int, source: int) -> _Join:
        """A word that crosses when the device is here."""
        self._queues.after(stream)
        spare = self._words.ctypes.data + self._words.nbytes
        join = _Join(self._queues, self._queues.down(spare, source, WORD))
        self._joins.append(join)
        return join

    def _take_words(self, source: int) -> None:
        """Copies the words, once a call."""
        if not self._began:
            self._began = True
            event = self._queues.down(self._words.ctypes.data, source, self._words.nbytes)
            WORKER.put(lambda: self._check_words(event))

    # -- run by the worker
    def _check_words(self, event: int) -> None:
        self._wrong = False
        with self._noting():
            self._queues.wait(event)
            self.store.expect(int(self._words[0]))

    def _update(self, leaf: int, target: int, events: Sequence[int]) -> None:
        at, spent = self._starts[leaf], 0.0
        for chunk, event in zip(self._chunks[leaf], events, strict=True):
            with self._noting():
                self._queues.wait(event)
                if not self._wrong:
                    began = time.perf_counter()
                    chunk.run()
                    spent += time.perf_counter() - began
                    self._queues.up(target + chunk.offset, at + chunk.offset, chunk.nbytes)
                if self._joins:
                    self._joins[0].look()
        self._seconds[self.division.leaves[leaf].index] = spent

    def _end(self, number: int, watched: _Join | None) -> None:
        if not self._wrong:
            self.store.steps += 1
        with self._noting():
            self._queues.raise_flag(number)
        done, seconds, self._seconds = time.perf_counter(), self._seconds, {}
        if watched is None:
            return
        self._joins.popleft()
        with self._noting():
            self.timing.note(done - watched.reached(), seconds)

    def _noting(self) -> Any:
        return _Noting(self)

    def failed(self, e: BaseException) -> None:
        """The rest of this call computes nothing; the next one raises what went wrong."""
        self._wrong = True
        self.store.fail(str(e))


class _Noting:
    """What is raised inside is noted, as the device waits for the flag in any case."""

    def __init__(self, movement: Movement):
        self._movement = movement

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, e: BaseException | None, trace: object) -> bool:
        if e is not None:
            self._movement.failed(e)
        return True


def _view(address: int, count: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Memory at an address as an array."""
    raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(raw, dtype)


__all__ = ["WORKER", "Movement", "Wire"]
