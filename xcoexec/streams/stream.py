"""A stream at work: each stage has threads, works on the items in order, and hands them on. The threads do not know
their `Stream`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import jax
import numpy as np

from ..compat import worker
from ..ir.trace_events import event, rows
from ..session.timeline import write
from . import lifetime
from .arguments import checked, shown, told
from .cuts import Partly
from .power import Power

WHERE = "xcoexec.pipeline"
KEPT = 20_000  # items that statistics are kept of
MOST_SECONDS = threading.TIMEOUT_MAX / 2  # that a lock can wait
JOIN_SECONDS = 2.0
CLOSED_SECONDS = 0.05  # after which a thread that waits for another one's item looks whether the stream is closed
AROUND = ("preprocess", "postprocess")
POWER_ITEMS = 4  # after which clocks are set: the paper measures on about four
END = object()  # behind the last item


@dataclasses.dataclass(frozen=True)
class Stats:
    """Of the items that have left (the last 20,000 at most): how many, seconds from entering the first stage to leaving
    the last (median, 99th percentile), items a second, the seconds an item that each stage takes (medians; divided by
    its threads), and the share of the time that each was at work: a stream is as fast as its slowest stage allows
    when that comes near 1.
    """

    items: int
    latency: float
    latency_99: float
    throughput: float
    stages: dict[str, float]
    busy: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a stage does with each item, and how many threads do it (of different items at the same time).

    `further`: names and functions of what one of those threads leaves undone (`Partly`), each in a thread of its own.
    Items that need none of it pass none of them: a hand-over takes 30 us.
    """

    name: str
    run: Callable[[Any], Any]
    workers: int = 1
    further: tuple[tuple[str, Callable[[Any], Any]], ...] = ()

    @functools.cached_property
    def parts(self) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
        return ((self.name, self.run), *self.further)


@dataclasses.dataclass(eq=False)
class _Item:
    """What moves through the stages; `error` came up in one of them, the later ones let the item pass.

    It is handed on, in its order, before a stage works on it: the next one waits until `unready` is released.
    """

    value: Any
    error: BaseException | None = None
    spans: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    unready: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class _Channel:
    """At most `depth` items between two stages; whoever waits is woken when the stream is closed.

    Two queues of the C library's kind, items one way and room the other: with conditions of `threading` every
    hand-over took 25 us of the interpreter's time, which the user's threads want too.
    """

    def __init__(self, depth: int):
        self._items = SimpleQueue[Any]()
        self._room = SimpleQueue[None]()
        self._closed = False
        for _ in range(depth):
            self._room.put(None)

    def put(self, item: Any) -> bool:
        """Waits for room; False once the stream is closed."""
        self._room.get()
        if self._closed:
            self._room.put(None)  # for who else waits
            return False
        self._items.put(item)
        return True

    def get(self, timeout: float | None = None) -> Any:
        """Waits for an item; `END` once the stream is closed. Raises `TimeoutError`."""
        try:
            item = self._items.get(timeout=timeout)
        except Empty:
            raise TimeoutError from None
        if self._closed:
            self._items.put(END)  # for who else waits
            return END
        self._room.put(None)
        return item

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(Empty):
            while True:
                self._items.get_nowait()
        self._items.put(END)
        self._room.put(None)


class _Shared:
    """What the threads of a stream know; not the stream itself, so that dropping it ends them. `power`: put back at the
    end.
    """

    def __init__(self, stages: Sequence[Stage], depth: int, power: Power | None = None):
        self.power = power
        # what a stage's threads work on lies in the channel behind it already: `depth` more may wait there
        self.channels = [_Channel(depth), *(_Channel(depth + s.workers + len(s.further)) for s in stages)]
        self.further = {name: SimpleQueue[Any]() for s in stages for name, _ in s.further}
        # of each part: thread -> since when it works on its item
        self.busy: dict[str, dict[int, float]] = {name: {} for s in stages for name, _ in s.parts}
        self.turns = [threading.Lock() for _ in stages]  # whose thread takes the next item
        self.threads: list[threading.Thread] = []
        self.closed = False
        self.elsewhere = False  # the threads are those of the process that this one was forked from

    def abandon(self) -> None:
        """Ends the threads: each when it is done with its item."""
        self.closed = True
        for channel in self.channels:
            channel.close()
        for queue in self.further.values():
            queue.put(END)
        if self.power is not None and not self.elsewhere:
            self.power.restore()

    def stop(self) -> None:
        """Ends the threads, and waits for them a short while."""
        try:
            self.abandon()
        finally:
            for thread in self.threads:
                if thread.ident is not None and thread is not threading.current_thread():
                    thread.join(JOIN_SECONDS)

    def forked(self) -> None:
        self.closed = self.elsewhere = True


def _feed(shared: _Shared, items: Iterator[Any]) -> None:
    """Takes from the user's iterator what there is room for; an exception in it ends the stream after the items before
    it.
    """
    over = False
    while not over:
        if (item := _taken(items)) is None:
            break
        over = item.error is not None
        if not shared.channels[0].put(item):
            return
        del item
    shared.channels[0].put(END)


def _taken(items: Iterator[Any]) -> _Item | None:
    """The user's next input; None at the end."""
    try:
        return _Item(next(items))
    except StopIteration:
        return None
    except BaseException as e:
        return _Item(None, e)


def _next(shared: _Shared, index: int) -> tuple[_Item, threading.Lock, threading.Lock] | None:
    """The next item of a stage, handed on already, what says when the stage before and this one have finished it; None
    at the end.
    """
    before, behind = shared.channels[index], shared.channels[index + 1]
    with shared.turns[index]:
        item = before.get()
        if item is END:
            behind.put(END)
            before.put(END)  # for the stage's other threads
            return None
        there = item.unready
        mine = item.unready = threading.Lock()
        mine.acquire()
        return (item, there, mine) if behind.put(item) else None


def _work(shared: _Shared, index: int, stage: Stage) -> None:
    """The life of one of a stage's threads. What it has done is not kept while it waits."""
    while (taken := _next(shared, index)) is not None and _ready(shared, taken[1]):
        _do(shared, stage, 0, taken[0], taken[2])
        del taken
    _end(shared, stage, 0)


def _ready(shared: _Shared, unready: threading.Lock) -> bool:
    """Waits until an item's stage has finished it; False once the stream is closed."""
    while not unready.acquire(timeout=CLOSED_SECONDS):
        if shared.closed:
            return False
    return True


def _further(shared: _Shared, stage: Stage, part: int) -> None:
    """The life of a thread that does what is left of some items."""
    queue = shared.further[stage.parts[part][0]]
    while (given := queue.get()) is not END and not shared.closed:
        _do(shared, stage, part, *given)
        del given
    _end(shared, stage, part)


def _end(shared: _Shared, stage: Stage, part: int) -> None:
    """No item comes to the next part any more."""
    for name, _ in stage.parts[part + 1 : part + 2]:
        shared.further[name].put(END)


def _do(shared: _Shared, stage: Stage, part: int, item: _Item, mine: threading.Lock) -> None:
    """Does a part of a stage's work on an item, and gives it to the next part or lets it go."""
    if item.error is None:
        name, run = stage.parts[part]
        busy = shared.busy[name]
        me = threading.get_ident()
        begin = busy[me] = time.perf_counter()
        try:
            item.value = run(item.value)
        except BaseException as e:
            item.value = None
            item.error = told(f"{WHERE}: the stage {name!r}", e)
        del busy[me]
        end = time.perf_counter()
        item.spans.append((begin, end))
        if item.error is None and isinstance(item.value, Partly):
            shared.further[stage.parts[part + 1][0]].put((item, mine))
            return
        item.spans += [(end, end)] * (len(stage.further) - part)  # parts that it did not need
    mine.release()


class Stream:
    """Results in the order of the inputs; an iterator and a context manager. An error comes up at its own item, the
    next ones still come.

    It is closed at its end, by `close`, at the end of `with`, with its last reference, and at the exit of the
    process; who takes from a closed stream gets nothing more. In a process forked from its own a `RuntimeError` says
    so.
    """

    def __init__(
        self, stages: Sequence[Stage], depth: int, timeout: float, items: Iterable[Any], power: Power | None = None
    ):
        given = inputs(items)
        self._names = [name for s in stages for name, _ in s.parts]
        self._timeout = min(timeout, MOST_SECONDS)
        self._workers = [s.workers for s in stages for _ in s.parts]
        self._shared = shared = _Shared(stages, depth, power)
        self._spans: deque[list[tuple[float, float]]] = deque(maxlen=KEPT)
        self._ended = False
        self._power = power
        targets: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [("feed", _feed, (shared, given))]
        targets += [(s.name, _work, (shared, i, s)) for i, s in enumerate(stages) for _ in range(s.workers)]
        targets += [(name, _further, (shared, s, k)) for s in stages for k, (name, _) in enumerate(s.further, 1)]
        for name, target, args in targets:
            shared.threads.append(worker(target, args, f"xcoexec-stream-{name}"))
        lifetime.keep(self, shared)
        try:
            for thread in shared.threads:
                thread.start()
        except BaseException:  # no room for threads; Ctrl-C
            shared.abandon()
            raise

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        if self._shared.elsewhere:
            raise RuntimeError(
                f"{WHERE}: got a stream of the process that this one was forked from; valid is one that is made here."
            )
        if self._ended:
            raise StopIteration
        try:
            item = self._take()
        except TimeoutError:
            stuck = self._stuck()
            self.close()
            raise TimeoutError(
                f"{WHERE}: got no result within {self._timeout:g} s ({stuck}); the stream is closed."
            ) from None
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if item is END:
            self.close()
            raise StopIteration
        if item.error is not None:
            error, item.error = item.error, None
            try:
                raise error
            finally:
                del error  # its traceback knows this frame: without a circle the stream ends with its last reference
        self._spans.append(item.spans)
        if self._power is not None and len(self._spans) == POWER_ITEMS:
            self._power.apply(self._halves())
        return item.value

    def _take(self) -> Any:
        """The next item, finished; `END` at the end and once the stream is closed, by whichever thread."""
        end = time.monotonic() + self._timeout
        item = self._shared.channels[-1].get(self._timeout)
        while item is not END and not item.unready.acquire(
            timeout=min(CLOSED_SECONDS, max(0.0, end - time.monotonic()))
        ):
            if self._shared.closed:
                return END
            if time.monotonic() >= end:
                raise TimeoutError
        return item

    def __enter__(self) -> Stream:
        """Raises `RuntimeError` for one that has ended."""
        if self._ended or self._shared.elsewhere:
            raise RuntimeError(
                f"{WHERE}: got a stream that has ended; valid is a new one, which the pipeline makes of further inputs."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stuck(self) -> str:
        now = time.perf_counter()
        since = {name: min(busy.copy().values(), default=now) for name, busy in self._shared.busy.items()}
        working = [
            f"{name} works on its item since {now - begin:.1f} s" for name, begin in since.items() if begin < now
        ]
        return "; ".join(working) or "it waits for the iterator of inputs"

    def _halves(self) -> dict[str, float]:
        """Seconds an item that each half takes."""
        out = {"host": 0.0, "device": 0.0}
        for stage, seconds in self.stats().stages.items():
            out["host" if stage in AROUND or jax.default_backend() == "cpu" else "device"] += seconds
        return out

    def close(self) -> None:
        """Ends the threads; what is still on its way is dropped. A stage that never returns keeps its (daemon)
        thread.
        """
        self._ended = True
        self._shared.stop()

    def stats(self, last: int = 0) -> Stats:
        """Latency and throughput of what has left so far, or of the `last` so many items (0: all). Raises `ValueError`
        before the first.
        """
        last = checked(f"{WHERE}: stats()", "last", last, "last")
        found = list(self._spans)[-last:]
        if not found:
            raise ValueError(f"{WHERE}: got stats() before the first result; valid is to take one first.")
        latencies = [spans[-1][1] - spans[0][0] for spans in found]
        whole = max(found[-1][-1][1] - found[0][0][0], 1e-9)
        took = np.array([[end - begin for begin, end in spans] for spans in found]) / self._workers
        stages = dict(zip(self._names, np.median(took, 0).tolist(), strict=True))
        busy = dict(zip(self._names, (took.sum(0) / whole).tolist(), strict=True))
        return Stats(
            len(latencies),
            float(np.median(latencies)),
            float(np.percentile(latencies, 99)),
            len(latencies) / whole,
            stages,
            busy,
        )

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes when each stage worked on which item, for Perfetto."""
        checked(f"{WHERE}: timeline()", "path", path, "path")
        first = min((s[0][0] for s in self._spans), default=0.0)
        spans = [
            (f"item {number}", i, span) for number, found in enumerate(self._spans) for i, span in enumerate(found)
        ]
        write(
            path, [*rows(self._names), *(event(name, i, begin - first, end - first) for name, i, (begin, end) in spans)]
        )


def inputs(items: Iterable[Any]) -> Iterator[Any]:
    """An iterator of a stream's inputs. Raises `TypeError` for what is none; what its own `__iter__` raises comes
    through.
    """
    try:
        return iter(items)
    except TypeError:
        if hasattr(type(items), "__iter__") and getattr(items, "shape", None) != ():
            raise
        raise TypeError(f"{WHERE}: got items={shown(items)}; valid is an iterable of inputs.") from None


__all__ = ["WHERE", "Stage", "Stats", "Stream", "inputs"]
