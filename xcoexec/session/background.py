"""Plans functions behind their callers' backs: one after the other, in one thread, whose compilers give way to calls.

The thread itself keeps its priority: the team's threads that it starts serve calls later on.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator

from ..codegen.native.children import giving_way
from .recording import PLANNERS

log = logging.getLogger("xcoexec")

TURN_SECONDS = 1e-6

working: set[threading.Thread] = set()  # threads that plan


@atexit.register
def _join() -> None:
    """The interpreter has waited for these threads; an interrupt may have ended that wait, and they are inside XLA."""
    for thread in tuple(working):
        thread.join()


class Background:
    """A queue of jobs with a thread, which lives while there are any. It is no daemon (a thread inside XLA must not
    outlive the interpreter): jobs ask `go_on` now and then.
    """

    def __init__(self) -> None:
        self._jobs = collections.deque[Callable[[], None]]()
        self._lock = threading.Lock()
        self._runs = False

    def submit(self, job: Callable[[], None]) -> None:
        """Does a job after those before it. What a job raises is logged."""
        with self._lock:
            self._jobs.append(job)
            if self._runs:
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name=PLANNERS[0], daemon=False).start()
        except BaseException:  # no thread can be had: the next job tries again
            with self._lock:
                self._runs = False
            raise

    def _work(self) -> None:
        me = threading.current_thread()
        working.add(me)
        try:
            while (job := self._next()) is not None:
                try:
                    with giving_way(), _brief_turns():
                        job()
                except Exception as e:  # one function's planning must not keep the others from theirs
                    log.warning("xcoexec: planning in the background failed (%s: %s).", type(e).__name__, str(e))
        finally:
            working.discard(me)

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._runs = False
            return None


@contextlib.contextmanager
def _brief_turns() -> Iterator[None]:
    """A caller that wants Python's lock has it after `TURN_SECONDS`, not after the 5 ms that are usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, TURN_SECONDS))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:
            sys.setswitchinterval(before)


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global background
    working.clear()
    background = Background()


background = Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def submit(job: Callable[[], None]) -> None:
    """Does a job in the background, after those before it."""
    background.submit(job)


__all__ = ["submit", "working"]
