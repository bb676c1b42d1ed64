"""A stream of inputs through stages that overlap: each stage has a thread, works on the items in order, and hands them on.

After NeuroPipe (Kim et al., IEEE Access 2020): while the network computes item i, item i + 1 is prepared and item i - 1 is finished; on a
machine with a device of its own the network itself is cut into stages on both halves (see `neuropipe`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import jax
import numpy as np

from ..bound import Bound
from ..compat import worker
from ..runtime.timeline import event, rows, write
from .cuts import Networks, Partly, functions, named
from .neuropipe import Around, Cut
from .power import Power

TIMEOUT_SECONDS = 600.0
MOST_SECONDS = threading.TIMEOUT_MAX / 2  # that a lock can wait
JOIN_SECONDS = 2.0
CLOSED_SECONDS = 0.05  # after which a thread that waits for another one's item looks whether the stream is closed
AROUND = ("preprocess", "postprocess")
POWER_ITEMS = 4  # after which clocks are set: the paper measures on about four
REMEMBERED, QUIET = 32, 25  # items whose seconds the user's functions are judged by, and the percentile: some were disturbed by compilation
END = object()  # behind the last item


@dataclasses.dataclass(frozen=True)
class Stats:
    """Of the items that have left: how many, seconds from entering the first stage to leaving the last (median, 99th percentile), items a
    second, the seconds an item that each stage takes (medians; divided by its threads), and the share of the time that each was at work:
    a stream is as fast as its slowest stage allows when that comes near 1."""

    items: int
    latency: float
    latency_99: float
    throughput: float
    stages: dict[str, float]
    busy: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a stage does with each item, and how many threads do it (of different items at the same time).

    `further`: names and functions of what one of those threads leaves undone (`Partly`), each in a thread of its own. Items that need
    none of it pass none of them: a hand-over takes 30 us.
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

    Two queues of the C library's kind, items one way and room the other: with conditions of `threading` every hand-over took 25 us of the
    interpreter's time, which the user's threads want too.
    """

    def __init__(self, depth: int):
        self._items, self._room, self._closed = SimpleQueue[Any](), SimpleQueue[None](), False
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
    """What the threads of a stream know; not the stream itself, so that dropping it ends them."""

    def __init__(self, stages: Sequence[Stage], depth: int):
        # what a stage's threads work on lies in the channel behind it already: `depth` more may wait there
        self.channels = [_Channel(depth), *(_Channel(depth + s.workers + len(s.further)) for s in stages)]
        self.further = {name: SimpleQueue[Any]() for s in stages for name, _ in s.further}
        self.busy: dict[str, dict[int, float]] = {name: {} for s in stages for name, _ in s.parts}  # thread -> since when it works on its item
        self.turns = [threading.Lock() for _ in stages]  # whose thread takes the next item
        self.threads: list[threading.Thread] = []
        self.closed = False

    def close(self) -> None:
        self.closed = True
        for channel in self.channels:
            channel.close()
        for queue in self.further.values():
            queue.put(END)


def _feed(shared: _Shared, items: Iterator[Any]) -> None:
    """Takes from the user's iterator what there is room for; an exception in it ends the stream after the items before it."""
    while True:
        try:
            item = _Item(next(items))
        except StopIteration:
            break
        except BaseException as e:
            item = _Item(None, e)
        if not shared.channels[0].put(item):
            return
        if item.error is not None:
            break
    shared.channels[0].put(END)


def _next(shared: _Shared, index: int) -> tuple[_Item, threading.Lock, threading.Lock] | None:
    """The next item of a stage, handed on already, what says when the stage before and this one have finished it; None at the end."""
    before, behind = shared.channels[index], shared.channels[index + 1]
    with shared.turns[index]:
        item = before.get()
        if item is END:
            behind.put(END)
            before.put(END)  # for the stage's other threads
            return None
        there, item.unready = item.unready, threading.Lock()
        mine = item.unready
        mine.acquire()
        return (item, there, mine) if behind.put(item) else None


def _work(shared: _Shared, index: int, stage: Stage) -> None:
    """The life of one of a stage's threads."""
    while (taken := _next(shared, index)) is not None:
        item, there, mine = taken
        while not there.acquire(timeout=CLOSED_SECONDS):
            if shared.closed:
                return
        _do(shared, stage, 0, item, mine)
    _end(shared, stage, 0)


def _further(shared: _Shared, stage: Stage, part: int) -> None:
    """The life of a thread that does what is left of some items."""
    queue = shared.further[stage.parts[part][0]]
    while (given := queue.get()) is not END and not shared.closed:
        _do(shared, stage, part, *given)
    _end(shared, stage, part)


def _end(shared: _Shared, stage: Stage, part: int) -> None:
    """No item comes to the next part any more."""
    for name, _ in stage.parts[part + 1 : part + 2]:
        shared.further[name].put(END)


def _do(shared: _Shared, stage: Stage, part: int, item: _Item, mine: threading.Lock) -> None:
    """Does a part of a stage's work on an item, and gives it to the next part or lets it go."""
    if item.error is None:
        name, run = stage.parts[part]
        busy, me = shared.busy[name], threading.get_ident()
        begin = busy[me] = time.perf_counter()
        try:
            item.value = run(item.value)
        except BaseException as e:
            item.error = e
        del busy[me]
        end = time.perf_counter()
        item.spans.append((begin, end))
        if item.error is None and isinstance(item.value, Partly):
            shared.further[stage.parts[part + 1][0]].put((item, mine))
            return
        item.spans += [(end, end)] * (len(stage.further) - part)  # parts that it did not need
    mine.release()


def _close(shared: _Shared, power: Power | None) -> None:
    shared.close()
    if power is not None:
        power.restore()


class Stream:
    """Results in the order of the inputs; an iterator and a context manager. An error comes up at its own item, the next ones still come."""

    def __init__(self, stages: Sequence[Stage], depth: int, timeout: float, items: Iterable[Any], power: Power | None = None):
        self._names, self._timeout = [name for s in stages for name, _ in s.parts], min(timeout, MOST_SECONDS)
        self._workers = [s.workers for s in stages for _ in s.parts]
        self._shared = shared = _Shared(stages, depth)
        self._spans: list[list[tuple[float, float]]] = []
        self._ended, self._power = False, power
        targets: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [("feed", _feed, (shared, iter(items)))]
        targets += [(s.name, _work, (shared, i, s)) for i, s in enumerate(stages) for _ in range(s.workers)]
        targets += [(name, _further, (shared, s, k)) for s in stages for k, (name, _) in enumerate(s.further, 1)]
        for name, target, args in targets:
            shared.threads.append(worker(target, args, f"xcoexec-stream-{name}"))
        self._closing = weakref.finalize(self, _close, shared, power)
        for thread in shared.threads:
            thread.start()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            end = time.monotonic() + self._timeout
            item = self._shared.channels[-1].get(self._timeout)
            if item is not END and not item.unready.acquire(timeout=max(0.0, end - time.monotonic())):
                raise TimeoutError
        except TimeoutError:
            stuck = self._stuck()
            self.close()
            raise TimeoutError(f"xcoexec.pipeline: got no result within {self._timeout:g} s ({stuck}); the stream is closed.") from None
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if item is END:
            self.close()
            raise StopIteration
        if item.error is not None:
            raise item.error
        self._spans.append(item.spans)
        if self._power is not None and len(self._spans) == POWER_ITEMS:
            self._power.apply(self._halves())
        return item.value

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stuck(self) -> str:
        now = time.perf_counter()
        since = {name: min(busy.copy().values(), default=now) for name, busy in self._shared.busy.items()}
        working = [f"{name} works on its item since {now - begin:.1f} s" for name, begin in since.items() if begin < now]
        return "; ".join(working) or "it waits for the iterator of inputs"

    def _halves(self) -> dict[str, float]:
        """Seconds an item that each half takes."""
        out = {"host": 0.0, "device": 0.0}
        for stage, seconds in self.stats().stages.items():
            out["host" if stage in AROUND or jax.default_backend() == "cpu" else "device"] += seconds
        return out

    def close(self) -> None:
        """Ends the threads; what is still on its way is dropped. A stage that never returns keeps its (daemon) thread."""
        self._ended = True
        self._closing()
        for thread in self._shared.threads:
            if thread is not threading.current_thread():
                thread.join(JOIN_SECONDS)

    def stats(self, last: int = 0) -> Stats:
        """Latency and throughput of what has left so far, or of the `last` so many items. Raises `ValueError` before the first result."""
        found = self._spans[-last:]
        if not found:
            raise ValueError("xcoexec.pipeline: got stats() before the first result; valid is to take one first.")
        latencies = [spans[-1][1] - spans[0][0] for spans in found]
        whole = max(found[-1][-1][1] - found[0][0][0], 1e-9)
        took = np.array([[end - begin for begin, end in spans] for spans in found]) / self._workers
        stages = dict(zip(self._names, np.median(took, 0).tolist(), strict=True))
        busy = dict(zip(self._names, (took.sum(0) / whole).tolist(), strict=True))
        return Stats(len(latencies), float(np.median(latencies)), float(np.percentile(latencies, 99)), len(latencies) / whole, stages, busy)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes when each stage worked on which item, for Perfetto."""
        first = min((s[0][0] for s in self._spans), default=0.0)
        spans = [(f"item {number}", i, span) for number, found in enumerate(self._spans) for i, span in enumerate(found)]
        write(path, [*rows(self._names), *(event(name, i, begin - first, end - first) for name, i, (begin, end) in spans)])


class Pipeline:
    """What `pipeline` returns: call it with an iterable of inputs to get a `Stream` of results. `networks`: how the network is cut."""

    def __init__(self, stages: Sequence[Stage], depth: int, timeout: float, networks: Networks | None = None, power: Power | None = None):
        self._stages, self._depth, self._timeout, self.networks, self._power = stages, depth, timeout, networks, power

    def __call__(self, items: Iterable[Any]) -> Stream:
        if self.networks is not None:
            self.networks.again()
        return Stream(self._stages, self._depth, self._timeout, items, self._power)

    @property
    def cuts(self) -> tuple[Cut | None, ...]:
        """The cut for each shape of item seen so far; None where the network is one stage."""
        return tuple(t.chosen.cut for t in self.networks.known.values()) if self.networks else ()

    @property
    def decided(self) -> bool:
        """Whether it is known for every shape of item seen so far which way of computing gives results fastest: the stream tries them."""
        return self.networks is None or self.networks.decided

    def periods(self, around: Around | None = None) -> tuple[float, ...]:
        """Seconds between results that the model predicts for each shape of item seen so far; `around`: the user's work, as measured by default."""
        if self.networks is None:
            return ()
        return self.networks.periods(around or self.networks.host_operations())


class _Timed:
    """A user's function that remembers what it takes."""

    def __init__(self, fn: Callable[[Any], Any]):
        self.fn, self.seconds = fn, deque[float](maxlen=REMEMBERED)

    def __call__(self, x: Any) -> Any:
        begin = time.perf_counter()
        out = self.fn(x)
        self.seconds.append(time.perf_counter() - begin)
        return out

    @property
    def usual(self) -> float:
        return float(np.percentile(self.seconds, QUIET)) if self.seconds else 0.0


def pipeline(
    fn: Callable[[Any], Any],
    *,
    preprocess: Callable[[Any], Any] | None = None,
    postprocess: Callable[[Any], Any] | None = None,
    depth: int = 2,
    workers: int = 1,
    cut: str | Cut | None = None,
    timeout: float = TIMEOUT_SECONDS,
    power: Power | None = None,
) -> Pipeline:
    """A stream of inputs through `preprocess`, `fn` and `postprocess`, which work on consecutive items at the same time.

    Args:
      fn: the network, such as what `xcoexec.jit(...).bind(weights)` returns; its results are waited for in its own thread.
      preprocess, postprocess: the user's work on the host around it (decode, resize, label); each has a thread of its own.
      depth: items that may wait in front of each stage; the input iterator is not asked for more.
      workers: threads that prepare items (different ones at the same time; results stay in order). The network's host half gets as
        many threads fewer where that is quicker, unless `threads=` said how many.
      cut: how a bound network is cut into stages on both halves: "auto" (the best cuts by measured seconds, the device alone and the
        network as a whole, which may have split layers: the stream tries them on its first items), "neuropipe" (the paper's rule), "neuropipe, printed"
        (with the paper's misprint), "none", or a `Cut`. Without a device of its own nothing is cut by "auto".
      power: clocks that are just high enough (`xcoexec.streams.Power`), set after the first items and put back at the end.
      timeout: seconds after which a result that does not come is a `TimeoutError` that names the stage that is busy.

    Raises `TypeError` or `ValueError` that says what is valid.
    """
    for name, stage in (("preprocess", preprocess), ("network", fn), ("postprocess", postprocess)):
        if not callable(stage) and not (stage is None and name != "network"):
            raise TypeError(f"xcoexec.pipeline: got {name}={stage!r}; valid is a callable.")
    for name, count in (("depth", depth), ("workers", workers)):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(f"xcoexec.pipeline: got {name}={count!r}; valid is an integer from 1 on.")
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError(f"xcoexec.pipeline: got timeout={timeout!r}; valid is a positive number of seconds.")
    if power is not None and not isinstance(power, Power):
        raise TypeError(f"xcoexec.pipeline: got power={power!r}; valid is a Power.")
    wanted = named(cut, fn)
    before, behind = (_Timed(f) if f is not None else None for f in (preprocess, postprocess))
    around = lambda: Around(before.usual if before else 0.0, behind.usual if behind else 0.0, workers)
    networks = Networks(fn, wanted, around, before is not None) if isinstance(fn, Bound) else None
    (name, run), *further = functions(networks) if networks else [("network", lambda x: jax.block_until_ready(fn(x)))]
    stages = [Stage("preprocess", before, workers)] if before else []
    stages += [Stage(name, run, further=tuple(further))]
    stages += [Stage("postprocess", behind)] if behind else []
    return Pipeline(stages, depth, timeout, networks, power)


__all__ = ["Pipeline", "Stage", "Stats", "Stream", "pipeline"]
