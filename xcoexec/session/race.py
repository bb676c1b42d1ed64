"""Whether a training step takes its plan or plain `jax.jit`: the caller's own calls are what is timed."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable

import jax
import numpy as np

from ..lowering.executable import Executable
from .adaptive import Monitor

LEAST_CALLS, LEAST_SECONDS, MOST_CALLS = 2, 0.005, 20  # of a block, behind one call that is not counted
MOST_BLOCKS = 12  # of both together
CLEAR = 0.85  # all calls of the faster one take less than this share of all calls of the other one
FAR = 0.4  # as `CLEAR`, where one call of the other one is enough
WORTH = 0.98  # the plan stays when it takes less than this share of plain jax.jit's time


class Race:
    """As `Choice`, for steps: the plan in use and plain `jax.jit` take blocks of the caller's calls in turn, and each
    of these calls is waited for. No call is made twice and no state is copied; what is timed are calls as their caller
    makes them. `compiled`: plain `jax.jit` is, so that its first call counts as any other.
    """

    def __init__(
        self,
        monitor: Monitor,
        plain: Callable[[], Executable],
        compiled: bool,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._monitor, self._plain, self._clock = monitor, plain, clock
        self._plan = monitor.current
        self.final = self._plan.lowered is None
        self._seconds: tuple[list[float], list[float]] = ([], [])  # of calls that count, with the plan and without
        self._cold = [True, not compiled]
        self._blocks = self._place = 0  # blocks that are over, calls of this one
        self._spent = 0.0  # seconds of this block's calls that count
        self._thread = 0
        self._began: float | None = None
        self._lock = threading.Lock()

    def takes(self) -> Executable:
        """The executable of the call that begins now."""
        me = threading.get_ident()
        if self.final or me != (self._thread or me):
            return self._monitor.current
        self._thread, self._began = me, self._clock()
        return self._plain() if self._jits else self._plan

    @property
    def _jits(self) -> bool:
        """Whether this block is plain jax.jit's: plan, jit, jit, plan and so on."""
        return self._blocks % 4 in (1, 2)

    def gave(self, results: object) -> None:
        """Notes what a call has returned, when that is there; nothing is kept."""
        if self._began is None or threading.get_ident() != self._thread:
            return
        with contextlib.suppress(RuntimeError):  # of the call itself: its caller sees it
            jax.block_until_ready(results)
        seconds, self._began = self._clock() - self._began, None
        if not self.final:
            self._note(seconds)

    def anew(self) -> None:
        """Goes on."""

    def _note(self, seconds: float) -> None:
        """A call of this block has taken so many seconds."""
        mine, others = self._seconds[self._jits], self._seconds[not self._jits]
        cold, self._cold[self._jits] = self._cold[self._jits], False
        if not cold and others and seconds * FAR > max(others):
            mine.append(seconds)
            return self._decide("far")
        self._place += 1
        if self._place == 1:
            return None
        mine.append(seconds)
        self._spent += seconds
        many = self._place - 1
        if many < LEAST_CALLS or (self._spent < LEAST_SECONDS and many < MOST_CALLS):
            return None
        self._blocks, self._place, self._spent = self._blocks + 1, 0, 0.0
        if others and (max(mine) < CLEAR * min(others) or max(others) < CLEAR * min(mine)):
            return self._decide("clear")
        return self._decide("median") if self._blocks == MOST_BLOCKS else None

    def _decide(self, how: str) -> None:
        plan, jit = (float(np.median(x)) for x in self._seconds)
        measured = {self._plan.plan.strategy: plan, "jit": jit}
        wins = plan < (WORTH if how == "median" else 1.0) * jit
        exe = self._plan if wins else self._plain()
        why = "fastest of " + ", ".join(measured) if wins else "no plan beats jax.jit"
        text = f"{why} in the caller's own calls"
        self._monitor.stay(dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=measured, chosen=text)))
        self._monitor.history.append(f"{text}: a step takes {1e3 * plan:.3f} ms with the plan, {1e3 * jit:.3f} ms without")
        self._plan = self._monitor.current  # a plan that has lost goes with its memory
        self.final = True


__all__ = ["Race"]
