"""Faults of host calls: what a program has had, and the watch that keeps calls going when a serving thread does not."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..native import layout as abi
from .host import function

if TYPE_CHECKING:
    from .relay import Relay

TEXTS = (  # in the order of the words M_...
    "the CUDA driver refused to launch a host call",
    "a host call was joined that nobody had started",
    "another execution of this program has begun a host call and never joins it",
    "no host call is taken any more: the process ends, or the device is lost",
    "no memory was left for the intermediates of a host call, which had to wait for some",
    "the thread that serves host calls was gone; another one has taken its place",
    "a host call was not begun in time; another thread has taken it over",
    "a host call never ended; the device was stopped, because its result cannot be had",
)
TICK_SECONDS = 0.25  # between two looks of the watch


def word(address: int) -> ctypes.c_int64:
    """The int64 at an address, to read and to write."""
    return ctypes.c_int64.from_address(address)


class Faults:
    """What went wrong in the host calls of one device program; `address` is what its call sites carry."""

    def __init__(self) -> None:
        self._words = np.zeros(abi.FAULTS_WORDS, np.int64)
        self.address = self._words.ctypes.data

    def __len__(self) -> int:
        return int(self._words[abi.Faults.COUNT // 8])

    @property
    def text(self) -> str:
        """What the first one was ("" without any)."""
        return TEXTS[int(self._words[abi.Faults.FIRST // 8]) // 8] if len(self) else ""

    @property
    def code(self) -> int:
        """The driver's error code of the first one (0: none)."""
        return int(self._words[abi.Faults.CODE // 8])

    @property
    def failed(self) -> bool:
        """Whether a handler has returned an error, so that the program runs no more."""
        return bool(self._words[abi.Faults.FAILED // 8])


def noted(relay: int, faults: int, which: int) -> None:
    """As the native `note`, from Python (addresses)."""
    count = word(faults + abi.Faults.COUNT)
    if count.value == 0:
        word(faults + abi.Faults.FIRST).value = which
    count.value += 1
    word(relay + abi.Relay.ERRORS).value += 1


class Watch:
    """A thread that looks at the oldest open call of a relay a few times a second, while there is one, and sleeps
    otherwise.

    The device waits for that call, and everything that the call needs is in host memory, so it only takes somebody to
    do it:
      * no serving thread lives: another one is made at once;
      * the operands are there and nobody has begun for `limit_seconds`: another thread takes the serving one's place;
      * somebody has begun: a slow segment is no fault. Only when it has not ended after `last_seconds` the call is
      given up, and
        the device stops with an error (see `device.py`): memory that a thread may still write to is never read as a
        result.
    Time in which the process itself stands still does not count.
    """

    def __init__(self, relay: Relay, limit_seconds: float, last_seconds: float):
        self._relay, self._limit, self._last = relay, limit_seconds, last_seconds
        self._tick = min(TICK_SECONDS, limit_seconds / 4)
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._work, name="xcoexec-watch", daemon=True)
        self.thread.start()

    def stop(self, wake: Callable[[], None]) -> None:
        """Ends the thread; `wake` brings it out of where it is parked."""
        self._over.set()
        end = time.monotonic() + 2.0
        while self.thread.is_alive() and time.monotonic() < end:
            wake()
            self.thread.join(timeout=0.01)

    def _work(self) -> None:
        park = function("park", 1, "serving")
        seen: Any = None
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


__all__ = ["TEXTS", "Faults", "Watch", "noted", "word"]
