"""A stream of results: an iterator over what its threads make, with statistics and a timeline."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..compat import worker
from ..devices.registry import device_half
from ..ir.text import columns, duration, html_table, html_text, number
from ..ir.trace_events import event, rows
from ..ir.words import DEVICE, HALVES, HOST
from ..session.timeline import write
from . import lifetime
from .arguments import checked, shown
from .power import Power
from .stage_threads import CLOSED_SECONDS, END, WHERE, End, Item, Shared, Stage, feed, work, work_further

KEPT = 20_000  # items that statistics are kept of
MOST_SECONDS = threading.TIMEOUT_MAX / 2  # that a lock can wait
AROUND = ("preprocess", "postprocess")
POWER_ITEMS = 4  # after which clocks are set: NeuroPipe measures on about four (section III-C)


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

    def _rows(self) -> list[list[str]]:
        rows = [["stage", "an item takes", "at work"]]
        return rows + [
            [name, duration(s), f"{100 * self.busy.get(name, 0.0):.0f} %"] for name, s in self.stages.items()
        ]

    def _first(self) -> str:
        latency = f"median {duration(self.latency)}, 99 % within {duration(self.latency_99)}"
        return f"{self.items} items, {number(self.throughput)} a second; latency: {latency}"

    def __repr__(self) -> str:
        return f"{self._first()}\n{columns(self._rows(), (1, 2))}"

    def _repr_html_(self) -> str:
        return html_text(self._first()) + html_table(self._rows(), (1, 2))


class Stream:
    """Results in the order of the inputs; an iterator and a context manager. An error comes up at its own item, the
    next ones still come.

    It is closed at its end, by `close`, at the end of `with`, with its last reference, and at the exit of the
    process; who takes from a closed stream gets nothing more. It raises `TimeoutError` where no result comes within
    `timeout` seconds, and `RuntimeError` in a process forked from its own.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        depth: int,
        timeout: float,
        items: Iterable[object],
        power: Power | None = None,
        halves: Callable[[], Mapping[str, Sequence[str]]] = dict,
    ):
        given = inputs(items)
        self._names = [name for s in stages for name, _ in s.parts]
        self._timeout = min(timeout, MOST_SECONDS)
        self._workers = [s.workers for s in stages for _ in s.parts]
        self._shared = shared = Shared(stages, depth, power)
        self._spans: deque[list[tuple[float, float]]] = deque(maxlen=KEPT)
        self._ended = False
        self._power = power
        self._at = halves
        targets: list[tuple[str, Callable[..., None], tuple[object, ...]]] = [("feed", feed, (shared, given))]
        targets += [(s.name, work, (shared, i, s)) for i, s in enumerate(stages) for _ in range(s.workers)]
        targets += [(name, work_further, (shared, s, k)) for s in stages for k, (name, _) in enumerate(s.further, 1)]
        for name, target, args in targets:
            shared.threads.append(worker(target, args, f"xcoexec-stream-{name}"))
        lifetime.keep(self, shared)
        try:
            for thread in shared.threads:
                thread.start()
        except BaseException:  # no room for threads, Ctrl-C: whatever it is, the threads that run must end
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
        except BaseException:  # Ctrl-C, a signal handler's own error: whatever it is, the threads must end
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

    def _take(self) -> Item | End:
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
        """Seconds an item that each half works: the user's functions are the host's, a part of a network belongs to the
        halves that compute it.
        """
        out = dict.fromkeys(HALVES, 0.0)
        at = self._at()
        whole = (HOST,) if device_half().shares_cores else (DEVICE,)
        for stage, seconds in self.stats().stages.items():
            for half in (HOST,) if stage in AROUND else at.get(stage, whole):
                out[half] += seconds
        return out

    def close(self) -> None:
        """Ends the threads; what is still on its way is dropped. A stage that never returns keeps its (daemon)
        thread.
        """
        self._ended = True
        self._shared.stop()

    def stats(self, last: int = 0) -> Stats:
        """Latency (seconds) and throughput (items a second) of what has left so far, or of the `last` so many items (0:
        all). Raises `ValueError` before the first, `TypeError` or `ValueError` for a `last` that is no integer from 0
        on.
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
        """Writes when each stage worked on which item, for Perfetto. Raises `TypeError` for what is no path."""
        checked(f"{WHERE}: timeline()", "path", path, "path")
        first = min((s[0][0] for s in self._spans), default=0.0)
        spans = [
            (f"item {number}", i, span) for number, found in enumerate(self._spans) for i, span in enumerate(found)
        ]
        write(
            path, [*rows(self._names), *(event(name, i, begin - first, end - first) for name, i, (begin, end) in spans)]
        )


def inputs(items: Iterable[object]) -> Iterator[object]:
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
