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
LONG_SECONDS = 0.2  # of a call that is a block of its own, as caches and threads make no difference to it
MOST_BLOCKS = 12  # of both together
CLEAR = 0.85  # all calls of the faster one take less than this share of all calls of the other one
FAR = 0.4  # as `CLEAR`, where one long call is enough
GOES_ON = "; compared with plain jax.jit in the caller's next calls"
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
        self._blocks = self._place = self._counted = 0  # blocks that are over, calls of this one, those that count
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
        if not self._jits:
            return self._plan
        if not self._place and self._plan.lowered is not None:
            self._plan.lowered.rest()  # jax.jit's own intermediates need the room
        return self._plain()

    @property
    def _jits(self) -> bool:
        """Whether this block is plain jax.jit's: jit, plan, plan, jit and so on."""
        return self._blocks % 4 in (0, 3)

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
        self._place += 1
        if cold or (self._place == 1 and seconds < LONG_SECONDS):
            return
        mine.append(seconds)
        self._counted += 1
        self._spent += seconds
        if self._apart(mine, others):
            self._decide("far")
        elif self._spent >= LONG_SECONDS or self._enough:
            self._blocks, self._place, self._counted, self._spent = self._blocks + 1, 0, 0, 0.0
            if self._blocks == MOST_BLOCKS:
                self._decide("median")

    @property
    def _enough(self) -> bool:
        """Whether a block of short calls is over."""
        return self._counted >= LEAST_CALLS and (self._spent >= LEAST_SECONDS or self._counted >= MOST_CALLS)

    @staticmethod
    def _apart(mine: list[float], others: list[float]) -> bool:
        """Whether one of the two clearly takes less."""
        if not others:
            return False
        several, long = min(len(mine), len(others)) >= LEAST_CALLS, max(*mine, *others) >= LONG_SECONDS
        share = min(max(mine) / min(others), max(others) / min(mine))
        return (several and share < CLEAR) or (long and share < FAR)

    def _decide(self, how: str) -> None:
        plan, jit = (float(np.median(x)) for x in self._seconds)
        measured = {self._plan.plan.strategy: plan, "jit": jit}
        wins = plan < (WORTH if how == "median" else 1.0) * jit
        exe = self._plan if wins else self._plain()
        why = "fastest of " + ", ".join(measured) if wins else "no plan beats jax.jit"
        text = f"{why} in the caller's own calls"
        self._monitor.stay(dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=measured, chosen=text)))
        self._monitor.history.append(
            f"{text}: a step takes {1e3 * plan:.3f} ms with the plan, {1e3 * jit:.3f} ms without"
        )
        self._plan = self._monitor.current  # a plan that has lost goes with its memory
        self.final = True


__all__ = ["GOES_ON", "Race"]
