"""Watches the times of a bound function; a lasting change makes it plan again in the background."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..codegen.native.children import go_on
from ..ir.placement import bare
from ..lowering.executable import Executable
from .background import working
from .rebalance import span
from .recording import PLANNERS

log = logging.getLogger("xcoexec")

EVERY, LOOK_SECONDS = 8, 0.1  # least calls and seconds between two looks: a look costs up to 0.5 ms
DRIFT = 1.35  # ratio of medians, either way, that counts as a change
PATIENCE = 3  # looks in a row that must agree, so that noise does not flap
PAUSE_SECONDS = 2.0  # least time between two plannings
SETTLE_SECONDS = 5.0  # between the quick steps and a plan from fresh numbers
PAST = 2  # executables that are kept to go back to
# after a return to plain jax.jit: until what was in use before is tried again; twice as long every time
QUICK_RETRY_SECONDS = 2.0
RETRY_SECONDS = 30.0  # after a return to plain jax.jit: until a new plan is made; twice as long every time
MOST_RETRY_SECONDS = 600.0
LEAST_SECONDS = 1e-4  # a change of fewer seconds a call is not worth a planning


class Monitor:
    """`current` is the executable that calls use; it is swapped atomically (one attribute store).

    `steps` are ways to find a better one, called one after the other in a background thread, the quickest first, the
    last one a plan from fresh numbers; what gives None has the caller's own calls find it. `interval`: least seconds
    between two plannings. `final`: `current` stays. `past`: executables that were in use before, with
    other placements, the latest first.
    `clock`: seconds that pass.
    """

    def __init__(
        self, current: Executable, *steps: Callable[[], Executable | None], clock: Callable[[], float] = time.monotonic
    ):
        self.current = current
        self._steps, self._clock = steps, clock
        self._looked = 0.0
        self._calls = 0
        self._baseline: float | None = None
        self._drifts = 0
        self._busy, self._swapping = threading.Lock(), threading.Lock()
        self.final = False
        self._last = self._planned = 0.0
        self.interval = PAUSE_SECONDS
        self._retry, self._quick, self._pause = RETRY_SECONDS, QUICK_RETRY_SECONDS, RETRY_SECONDS
        self.keep, self.past = PAST, list[Executable]()
        self.history: list[str] = []

    def tick(self) -> None:
        """Counts a call; looks at the times once in a while (see `EVERY` and `LOOK_SECONDS`)."""
        self._calls += 1
        if self._calls < EVERY or self._clock() - self._looked < LOOK_SECONDS:
            return
        self._calls, self._looked = 0, self._clock()
        if self.current.lowered is None:
            self.again()
        else:
            self.look(_segment_seconds(self.current))

    def answered(self, calls: int) -> None:
        """Counts calls that went by without a look."""
        self._calls += calls

    def look(self, seconds: float | None) -> None:
        """Compares recent seconds of a call with the baseline; starts a planning when they differ for long enough. None
        where nothing was stamped: then nothing is compared.
        """
        if seconds is None:
            return
        if self._baseline is None:
            self._baseline = seconds
            return
        ratio = seconds / self._baseline
        changed = (ratio > DRIFT or ratio < 1 / DRIFT) and abs(seconds - self._baseline) > LEAST_SECONDS
        self._drifts = self._drifts + 1 if changed else 0
        if self._drifts < PATIENCE or self._clock() - self._last < self.interval or self._busy.locked():
            return
        self._drifts = 0
        self.history.append(
            f"host segments take {seconds * 1e3:.3f} ms where {self._baseline * 1e3:.3f} ms were usual: planning again"
        )
        self._begin(self._steps)

    def again(self) -> None:
        """While plain jax.jit is in use because co-execution stopped paying: measures now and then whether it pays
        again.

        What was in use before is tried soon and often, a new plan is made seldom; each after pauses that grow while
        nothing changes.
        """
        now = self._clock()
        full, quick = now - self._planned >= self._retry, bool(self.past) and now - self._last >= self._quick
        if not (full or quick) or self._busy.locked():
            return
        self._quick = min(2 * self._quick, MOST_RETRY_SECONDS)
        if full:
            self._retry = min(2 * self._retry, MOST_RETRY_SECONDS)
            self.history.append("plain jax.jit has been in use for a while: measuring again")
        self._begin(self._steps if full else self._steps[:1])

    def _begin(self, steps: Sequence[Callable[[], Executable | None]]) -> None:
        """Runs the steps in a thread. It takes the lock itself: an interrupt here could leave it locked for good."""
        self._last = self._clock()
        if steps == self._steps:
            self._planned = self._last
        # not a daemon (as the caller's thread may be): a thread inside XLA must not outlive the interpreter; at exit
        # `go_on` cuts it short
        threading.Thread(target=self._work, args=(steps,), name=PLANNERS[1], daemon=False).start()

    @contextlib.contextmanager
    def planning(self) -> Iterator[None]:
        """Nothing else is planned inside, nor soon after it without a cause."""
        with self._busy:
            try:
                yield
            finally:
                self._last = self._planned = self._clock()

    def stay(self, exe: Executable) -> None:
        """`exe` from now on, whatever a planning that still runs finds."""
        with self._swapping:
            self.current, self.final = exe, True

    def take(self, exe: Executable, old: Executable | None = None) -> bool:
        """`exe` from now on, as the caller's own calls have decided, unless another one stays, or another one than
        `old` is in use; whether it is.
        """
        with self._swapping:
            if self.final or (old is not None and self.current is not old):
                return False
            self.current = exe
        self._baseline = None
        return True

    def lost(self, old: Executable, new: Executable) -> bool:
        """`new` in the place of `old`, which was slower in use and is tried again after a pause that doubles; whether
        `old` was still in use.
        """
        with self._swapping:
            if self.final or self.current is not old:
                return False
            self.current = new
            self.past = [old, *(p for p in self.past if not _same(p, old))][: self.keep]
            self._last = self._planned = self._clock()
            self._retry = self._quick = self._pause
            self._pause = min(2 * self._pause, MOST_RETRY_SECONDS)
        self._baseline = None
        self.history.append(new.plan.chosen)
        return True

    def swap(self, new: Executable, seconds: float, quiet: bool) -> None:
        """`new` from now on, which a planning has found in so many seconds; `quiet`: the history need not say that
        nothing changes.
        """
        with self._swapping:
            if self.final:
                return
            old, self.current = self.current, new
        self._baseline = None
        if new.lowered is not None:
            self._retry, self._quick = RETRY_SECONDS, QUICK_RETRY_SECONDS
        if old.lowered is not None and old.lowered is not new.lowered:
            others = [old, *(p for p in self.past if not _same(p, old))]
            self.past = [p for p in others if not _same(p, new)][: self.keep]
        kept = "kept" if new is old or new.plan == old.plan else "swapped"
        if kept == "swapped" or not quiet:
            self.history.append(f"plan {new.plan.strategy!r} {kept} after {seconds:.2f} s: {new.plan.chosen}")

    def _settle(self) -> None:
        """The quick steps have helped: the last one, whose compilations disturb calls, waits for a while."""
        end = self._clock() + SETTLE_SECONDS
        while self._clock() < end:
            go_on()
            time.sleep(0.05)

    def _work(self, steps: Sequence[Callable[[], Executable | None]]) -> None:
        if not self._busy.acquire(blocking=False):  # another caller's thread was first
            return
        began, me = self._clock(), threading.current_thread()
        working.add(me)
        try:
            for i, step in enumerate(steps):
                if 0 < i == len(self._steps) - 1:
                    self._settle()
                found = step()
                if found is not None:
                    self.swap(found, self._clock() - began, i + 1 < len(self._steps))
        except InterruptedError:
            self.history.append("planning was cut short: the interpreter is ending")
        except Exception as e:  # the running plan stays; a failed planning must not take the process down
            log.warning("xcoexec: planning again failed (%s); the plan in use stays.", str(e))
            self.history.append(f"planning failed: {e}")
        finally:
            working.discard(me)
            self._busy.release()


def _same(a: Executable, b: Executable) -> bool:
    """Whether two executables place every layer alike: of these the newer one is enough, each holds packed weights."""

    shape = lambda exe: (exe.plan.engine, bare(exe.plan.placements))
    return a.lowered is b.lowered or (bool(a.plan.placements) and shape(a) == shape(b))


def _segment_seconds(exe: Executable) -> float | None:
    """Median seconds that a call spends in host segments, from their stamps; None without any.

    With a device of its own: seconds between the first host call's start and the last one's join, on the device's
    clock, so that a slower device is noticed as well.
    """
    if exe.lowered is None or not exe.lowered.segments:
        return None
    if exe.lowered.device.apart:
        return span(exe.lowered)
    total = 0.0
    for unit in exe.lowered.segments:
        stamps = unit.segment.stamps()
        if not len(stamps):
            return None
        total += float(np.median(stamps[:, -1] - stamps[:, 0])) * 1e-9
    return total
