"""The threads of a stream: a feeder, and those of each stage, which work on the items in order and hand them on.

They know what they share, not their `Stream`: dropping that ends them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from .arguments import told
from .cuts import Partly
from .power import Power

WHERE = "xcoexec.pipeline"
JOIN_SECONDS = 2.0
CLOSED_SECONDS = 0.05  # after which a thread that waits for another one's item looks whether the stream is closed
#: what stages do with an item: functions of the user's, of whatever items theirs are
Work = Callable[[Any], object]


class End(enum.Enum):
    """What stands behind the last item."""

    END = "end"


END: Final = End.END


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a stage does with each item, and how many threads do it (of different items at the same time).

    `further`: names and functions of what one of those threads leaves undone (`Partly`), each in a thread of its own.
    Items that need none of it pass none of them: a hand-over takes 30 us.
    """

    name: str
    run: Work
    workers: int = 1
    further: tuple[tuple[str, Work], ...] = ()

    @functools.cached_property
    def parts(self) -> tuple[tuple[str, Work], ...]:
        return ((self.name, self.run), *self.further)


@dataclasses.dataclass(eq=False)
class Item:
    """What moves through the stages; `error` came up in one of them, the later ones let the item pass.

    It is handed on, in its order, before a stage works on it: the next one waits until `unready` is released.
    """

    value: object
    error: BaseException | None = None
    spans: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    unready: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class Channel:
    """At most `depth` items between two stages; whoever waits is woken when the stream is closed.

    Two queues of the C library's kind, items one way and room the other: with conditions of `threading` every
    hand-over took 25 us of the interpreter's time, which the user's threads want too.
    """

    def __init__(self, depth: int):
        self._items = SimpleQueue[Item | End]()
        self._room = SimpleQueue[None]()
        self._closed = False
        for _ in range(depth):
            self._room.put(None)

    def put(self, item: Item | End) -> bool:
        """Waits for room; False once the stream is closed."""
        self._room.get()
        if self._closed:
            self._room.put(None)  # for who else waits
            return False
        self._items.put(item)
        return True

    def get(self, timeout: float | None = None) -> Item | End:
        """Waits for an item; `END` once the stream is closed. Raises `TimeoutError` where none comes within `timeout`
        seconds (None: no end).
        """
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


class Shared:
    """What the threads of a stream know; not the stream itself, so that dropping it ends them. `power`: put back at the
    end.
    """

    def __init__(self, stages: Sequence[Stage], depth: int, power: Power | None = None):
        self.power = power
        # what a stage's threads work on lies in the channel behind it already: `depth` more may wait there
        self.channels = [Channel(depth), *(Channel(depth + s.workers + len(s.further)) for s in stages)]
        self.further = {name: SimpleQueue[tuple[Item, threading.Lock] | End]() for s in stages for name, _ in s.further}
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


def feed(shared: Shared, items: Iterator[object]) -> None:
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


def _taken(items: Iterator[object]) -> Item | None:
    """The user's next input; None at the end."""
    try:
        return Item(next(items))
    except StopIteration:
        return None
    except BaseException as e:  # whatever the user's iterator raises comes up behind the items before it
        return Item(None, e)


def _next(shared: Shared, index: int) -> tuple[Item, threading.Lock, threading.Lock] | None:
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


def work(shared: Shared, index: int, stage: Stage) -> None:
    """The life of one of a stage's threads. What it has done is not kept while it waits."""
    while (taken := _next(shared, index)) is not None and _ready(shared, taken[1]):
        _do(shared, stage, 0, taken[0], taken[2])
        del taken
    _end(shared, stage, 0)


def _ready(shared: Shared, unready: threading.Lock) -> bool:
    """Waits until an item's stage has finished it; False once the stream is closed."""
    while not unready.acquire(timeout=CLOSED_SECONDS):
        if shared.closed:
            return False
    return True


def work_further(shared: Shared, stage: Stage, part: int) -> None:
    """The life of a thread that does what is left of some items."""
    queue = shared.further[stage.parts[part][0]]
    while (given := queue.get()) is not END and not shared.closed:
        _do(shared, stage, part, *given)
        del given
    _end(shared, stage, part)


def _end(shared: Shared, stage: Stage, part: int) -> None:
    """No item comes to the next part any more."""
    for name, _ in stage.parts[part + 1 : part + 2]:
        shared.further[name].put(END)


def _do(shared: Shared, stage: Stage, part: int, item: Item, mine: threading.Lock) -> None:
    """Does a part of a stage's work on an item, and gives it to the next part or lets it go."""
    if item.error is None:
        name, run = stage.parts[part]
        busy = shared.busy[name]
        me = threading.get_ident()
        begin = busy[me] = time.perf_counter()
        try:
            item.value = run(item.value)
        except BaseException as e:  # whatever a function of the user's raises comes up at its own item
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


__all__ = [
    "CLOSED_SECONDS",
    "END",
    "WHERE",
    "Channel",
    "End",
    "Item",
    "Shared",
    "Stage",
    "Work",
    "feed",
    "work",
    "work_further",
]
