"""Pages of 2 MiB for weights, where the system has them: what is read once a call takes an address for each page."""

from __future__ import annotations

import collections
import ctypes
import os
import sys
import threading
from collections.abc import Iterable

PAGE = 1 << 21
LEAST_BYTES = 1 << 22  # of weights that are read where they lie, from which on large pages are asked for
ADVICE = (14, 25)  # Linux' MADV_HUGEPAGE, MADV_COLLAPSE

_libc = ctypes.CDLL(None)


class Mover:
    """Moves what it is given, in a thread that lives while there is any."""

    def __init__(self) -> None:
        self._places = collections.deque[tuple[int, int]]()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def move(self, places: Iterable[tuple[int, int]]) -> None:
        """Moves (address, bytes) behind those before them."""
        with self._lock:
            self._places.extend(places)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="xcoexec-pages", daemon=True)
                self._thread.start()

    def settle(self) -> None:
        """Waits until all are moved."""
        while (thread := self._thread) is not None and thread.is_alive():
            thread.join()

    def _next(self) -> tuple[int, int] | None:
        with self._lock:
            if self._places:
                return self._places.popleft()
            self._thread = None
            return None

    def _work(self) -> None:
        while (place := self._next()) is not None:
            address, nbytes = place
            first = -(-address // PAGE) * PAGE
            size = (address + nbytes) // PAGE * PAGE - first
            for advice in ADVICE if size > 0 else ():
                _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), advice)


_mover = Mover()


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global _mover
    _mover = Mover()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def in_large_pages(places: Iterable[tuple[int, int]]) -> None:
    """Has the system hold what lies at (address, bytes) in large pages, where it can. It moves them there, which takes
    as long as reading them several times: behind the first calls, until `settle`. What is asked for changes no bytes,
    also where others have taken the place, and a refusal nothing.
    """
    large = [place for place in places if place[1] >= LEAST_BYTES]
    if large and sys.platform == "linux":
        _mover.move(large)


def settle() -> None:
    """Waits until all lie there: calls that are measured shall be as those to come."""
    _mover.settle()


__all__ = ["in_large_pages", "settle"]
