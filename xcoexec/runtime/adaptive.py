"""Watches the times of a bound function; a lasting change makes it plan again in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import numpy as np

from ..balance import span
from .executable import Executable

log = logging.getLogger("xcoexec")

EVERY, LOOK_SECONDS = 8, 0.1  # least calls and seconds between two looks: a look costs up to 0.5 ms
DRIFT = 1.35  # ratio of medians, either way, that counts as a change
PATIENCE = 3  # looks in a row that must agree, so that noise does not flap
PAUSE_SECONDS = 5.0  # least time between two plannings
RETRY_SECONDS = 30.0  # after a return to plain jax.jit: until co-execution is measured again; twice as long every time
MOST_RETRY_SECONDS = 600.0
LEAST_SECONDS = 1e-4  # a change of fewer seconds a call is not worth a planning


def closing() -> bool:
    """Whether the interpreter is on its way out."""
    return not threading.main_thread().is_alive()


class Monitor:
    """`current` is the executable that calls use; it is swapped atomically (one attribute store).

    `steps` are ways to find a better one, called one after the other in a background thread: a quick one that moves what is
    there, then one that plans from fresh numbers.
    """

    def __init__(self, current: Executable, *steps: Callable[[], Executable]):
        self.current = current
        self._steps = steps
        self._looked = 0.0
        self._calls = 0
        self._baseline: float | None = None
        self._drifts = 0
        self._busy = threading.Lock()
        self._last = 0.0
        self._retry = RETRY_SECONDS
        self.history: list[str] = []

    def tick(self) -> None:
        """Counts a call; looks at the times once in a while."""
        self._calls += 1
        if self._calls % EVERY or time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if self.current.lowered is None:
            self.again()
        else:
            self.look(_segment_seconds(self.current))

    def look(self, seconds: float | None) -> None:
        """Compares recent seconds with the baseline; starts a planning when they differ for long enough."""
        if seconds is None:
            return
        if self._baseline is None:
            self._baseline = seconds
            return
        ratio = seconds / self._baseline
        changed = (ratio > DRIFT or ratio < 1 / DRIFT) and abs(seconds - self._baseline) > LEAST_SECONDS
        self._drifts = self._drifts + 1 if changed else 0
        if self._drifts < PATIENCE or time.monotonic() - self._last < PAUSE_SECONDS or not self._busy.acquire(blocking=False):
            return
        self._drifts, self._last = 0, time.monotonic()
        self.history.append(f"host segments take {seconds * 1e3:.3f} ms where {self._baseline * 1e3:.3f} ms were usual: planning again")
        # not a daemon: a thread inside XLA must not outlive the interpreter; at exit `closing` cuts it short
        threading.Thread(target=self._work, name="xcoexec-replan").start()

    def again(self) -> None:
        """While plain jax.jit is in use because co-execution stopped paying: measures now and then whether it pays again."""
        if time.monotonic() - self._last < self._retry or not self._busy.acquire(blocking=False):
            return
        self._last, self._retry = time.monotonic(), min(2 * self._retry, MOST_RETRY_SECONDS)
        self.history.append("plain jax.jit has been in use for a while: measuring again")
        threading.Thread(target=self._work, name="xcoexec-replan").start()

    def _work(self) -> None:
        began = time.monotonic()
        try:
            for step in self._steps:
                new = step()
                old, self.current = self.current, new
                self._baseline = None
                self._retry = self._retry if new.lowered is None else RETRY_SECONDS
                kept = "kept" if new.plan == old.plan else "swapped"
                self.history.append(f"plan {new.plan.strategy!r} {kept} after {time.monotonic() - began:.2f} s: {new.plan.chosen}")
        except InterruptedError:
            self.history.append("planning was cut short: the interpreter is ending")
        except Exception as e:  # the running plan stays; a failed planning must not take the process down
            log.warning("xcoexec: planning again failed (%s); the plan in use stays.", e)
            self.history.append(f"planning failed: {e}")
        finally:
            self._busy.release()


def _segment_seconds(exe: Executable) -> float | None:
    """Median seconds that a call spends in host segments, from their stamps; None without any.

    With a device of its own: seconds between the first host call's start and the last one's join, on the device's clock,
    so that a slower device is noticed as well.
    """
    if exe.lowered is None or not exe.lowered.segments:
        return None
    if exe.lowered.relay is not None:
        return span(exe.lowered)
    total = 0.0
    for unit in exe.lowered.segments:
        stamps = unit.segment.stamps()
        if not len(stamps):
            return None
        total += float(np.median(stamps[:, -1] - stamps[:, 0])) * 1e-9
    return total
