"""A function that is being planned behind its calls, which plain `jax.jit` answers meanwhile."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence

import jax

from ..codegen.native.children import go_on
from ..ir.plan import Plan
from ..measure.profile import Progress
from .background import submit
from .gate import Gate
from .plain_session import PlainSession
from .report import Report
from .session import Session
from .usage import held, there
from .waiting_line import Line

log = logging.getLogger("xcoexec")

RESULT_SECONDS = 10.0  # that planning waits for the first call
BEGIN_SECONDS = 0.05  # behind the first call, in which a function that is made for one call has gone
POLL_SECONDS = 0.002
HELP_SECONDS = 0.01  # between two looks of who waits for a plan at what its planning needs his thread for
# first calls that are looked at, then the calls, and seconds of calls, without a look between two that are
LOOKED, REST_CALLS, REST_SECONDS = 8, 64, 0.1
STEPS = {
    "build": "building kernels",
    "profile": "measuring layers",
    "compare": "comparing plans",
    "measure": "measuring",
    "learn": "measuring the machine",
}


def step(stage: str, done: int, total: int) -> str:
    """What a planning does, in words."""
    return STEPS.get(stage, stage) + (f", {done} of {total}" if total > 1 else "")


class PendingSession(PlainSession):
    """Plain `jax.jit` until `job` has made another session. `job` is given this session; it calls `at` with what it
    does, under `gate.alone` it measures.

    `misses`: calls in a row whose weights were others than the planned ones. `plain_seconds`: what plain `jax.jit` took
    for the first call, compilation and all, on cores of its own.
    """

    settled = False

    def __init__(self, strategy: str, job: Callable[[PendingSession], None]):
        super().__init__(strategy, "it is being planned")
        self._gate, self.misses = Gate(active=True), 0
        self.became: Session | PlainSession | None = None
        self._job: Callable[[PendingSession], None] | None = job
        self._begun, self._done, self._asked = threading.Lock(), threading.Event(), False
        self._made = time.perf_counter(), time.process_time()
        self.plain_seconds = 0.0
        self._first: weakref.ref[jax.Array] | None = None  # a result of the first call
        self._planner: threading.Thread | None = None
        self._at: tuple[str, int, int] = ("waiting for its turn", 0, 0)
        self._since, self._stopped = time.monotonic(), False
        self._looked = self._rest = 0  # calls that were looked at, and those that need no look behind one
        self._called = 0.0  # when the first call was over

    def ran(self, results: object = None) -> None:
        """Plain jax.jit has answered a call: planning begins, once, whichever thread called."""
        if results is not None:
            self._answered(jax.tree_util.tree_leaves(results))
        if self._begun.acquire(blocking=False):
            self._first = held(jax.tree_util.tree_leaves(results))
            wall, cores = self._made
            self.plain_seconds = min(time.perf_counter() - wall, time.process_time() - cores)
            submit(self._run)

    def _answered(self, results: Sequence[object]) -> None:
        self._gate.gave(results)
        self._looked += 1
        if not self._called:
            self._called = time.perf_counter()
        elif self._looked >= LOOKED and not self._rest:
            each = (time.perf_counter() - self._called) / (self._looked - 1)
            self._rest = min(REST_CALLS, int(REST_SECONDS / max(each, 1e-9)))

    @property
    def gate(self) -> Gate:
        """What calls pass while measurements go on."""
        return self._gate

    @property
    def rest(self) -> float:
        """Calls to come that plain `jax.jit` may answer without a look at their weights, while those before them had
        the planned ones.
        """
        return 0 if self.misses else self._rest

    def _run(self) -> None:
        self._planner = threading.current_thread()
        try:
            if (job := self._job) is not None:
                job(self)
        finally:
            self._done.set()
            self._job = None  # it holds the call's arrays

    def settle(self) -> None:
        """Waits while the first call's result is computed, for `RESULT_SECONDS` at most, so that planning does not slow
        it down, and for `BEGIN_SECONDS` where nobody waits for it. Raises what `at` raises.
        """
        began = time.monotonic()
        while (gone := time.monotonic() - began) < RESULT_SECONDS:
            self.at("waiting for the first result", 0, 0)
            array = self._first() if self._first is not None else None
            if (array is None or there(array)) and (self._asked or gone >= BEGIN_SECONDS):
                return
            del array
            time.sleep(POLL_SECONDS)

    def at(self, stage: str, done: int, total: int) -> None:
        """Progress of the planning. Raises `InterruptedError` where it is of no more use."""
        go_on()
        if self._stopped:
            raise InterruptedError("nobody has a use for the plan any more")
        self._at = stage, done, total
        log.debug("planning: %s", step(*self._at))

    def stop(self) -> None:
        """Its plan would not be used; what it would be made of is given up."""
        self._stopped, self._job = True, None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is a plan, for at most `timeout` seconds; whether there is one. Waits over 2 s say in a
        terminal or a notebook what they wait for. Who plans (in a progress callback) does not wait for itself.
        """
        self._asked = True
        self.ran()
        if threading.current_thread() is self._planner:
            return self._done.is_set()
        end = None if timeout is None else time.monotonic() + timeout
        line = Line()
        try:
            while not self._done.wait(min(HELP_SECONDS, math.inf if end is None else max(end - time.monotonic(), 0.0))):
                line.show(self.doing, *self._at[1:])
                self._gate.help()
                if end is not None and time.monotonic() >= end:
                    return False
        finally:
            line.end()
        return True

    @property
    def doing(self) -> str:
        """What the planning does."""
        return f"planning: {step(*self._at)} ({time.monotonic() - self._since:.1f} s)"

    def plan(self) -> Plan:
        """A plan without layers, which says what the planning does."""
        return dataclasses.replace(self._plan, chosen=self.doing)

    def report(self) -> Report:
        """A report without layers, which says what the planning does."""
        return Report("jit", self.doing, (), {}, 0, None)

    def found(self, wait: bool) -> PlainSession | Session:
        """What the planning has found; this session while it goes on, unless somebody waits."""
        if wait:
            self.wait()
        return self.became or self

    def tick(self) -> None:
        """Waits while a candidate is measured (tens of milliseconds)."""
        self.gate.wait()


def within(progress: Progress, seconds: float) -> Progress:
    """A progress that ends a planning which has taken so many seconds: it raises `InterruptedError`. What was measured
    until then is kept on disk, and the next start goes on from there.
    """
    end = time.monotonic() + seconds

    def bounded(stage: str, done: int, total: int) -> None:
        if time.monotonic() > end:
            raise InterruptedError(f"XCOEXEC_PLAN_SECONDS={seconds:g} are over; the next start goes on")
        progress(stage, done, total)

    return bounded


def shown(progress: Progress) -> tuple[Progress, Line]:
    """A progress that also shows a line, for plannings that a caller waits for."""
    line = Line()

    def both(stage: str, done: int, total: int) -> None:
        line.show(f"planning: {step(stage, done, total)}", done, total)
        progress(stage, done, total)

    return both, line


__all__ = ["PendingSession", "shown", "within"]
