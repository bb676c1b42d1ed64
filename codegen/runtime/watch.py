"""The watch that keeps the host calls of a device going when a serving thread does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from ..native import call_layout as abi
from .host import function

TICK_SECONDS = 0.25  # between two looks of the watch


class Watched(Protocol):
    """A relay as its watch sees it."""

    address: int

    @property
    def served(self) -> bool: ...

    def oldest(self) -> tuple[int, bool, bool] | None: ...

    def replace(self, number: int, why: int) -> bool: ...

    def abandon(self, number: int) -> bool: ...


class Watch:
    """A thread that looks at the oldest open call of a relay a few times a second, while there is one, and sleeps
    otherwise.

    The device waits for that call, and everything that the call needs is in host memory, so it only takes somebody to
    do it: where no serving thread lives, another one is made at once; where the operands are there and nobody has begun
    for `limit_seconds`, another thread takes the serving one's place.

    Once somebody has begun, a slow segment is no fault. Only when it has not ended after `last_seconds` the call is
    given up, and the device stops with an error (see `ptx.py`): memory that a thread may still write to is never read
    as a result. Time in which the process itself stands still does not count.
    """

    def __init__(self, relay: Watched, limit_seconds: float, last_seconds: float):
        self._relay, self._limit, self._last = relay, limit_seconds, last_seconds
        self._tick = min(TICK_SECONDS, limit_seconds / 4)
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._work, name="xcoexec-watch", daemon=True)
        self.thread.start()

    def stop(self, wake: Callable[[], None]) -> None:
        """Ends the thread, for at most 2 seconds; `wake` brings it out of where it is parked."""
        self._over.set()
        end = time.monotonic() + 2.0
        while self.thread.is_alive() and time.monotonic() < end:
            wake()
            self.thread.join(timeout=0.01)

    def _work(self) -> None:
        park = function("park", 1, "serving")
        seen: tuple[int, bool, bool] | None = None
        waited = 0.0
        while not self._over.is_set():
            park(self._relay.address)
            before = time.monotonic()
            self._over.wait(self._tick)
            state = self._relay.oldest()
            waited = waited + min(time.monotonic() - before, 2 * self._tick) if state == seen else 0.0
            seen = state
            if state is not None and self._act(*state, waited):
                waited = 0.0

    def _act(self, head: int, ready: bool, claimed: bool, waited: float) -> bool:
        """Does what the oldest call needs; whether anything was done."""
        if not self._relay.served:
            return self._relay.replace(head, abi.Text.GONE)
        if claimed:
            return waited > self._last and self._relay.abandon(head)
        return ready and waited > self._limit and self._relay.replace(head, abi.Text.LATE)


__all__ = ["Watch", "Watched"]
