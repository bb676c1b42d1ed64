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
from .adaptive import MOST_RETRY_SECONDS, Monitor
from .choice import MOST_LOSSES
from .planner import Planner
from .recording import recording

LEAST_CALLS, LEAST_SECONDS, MOST_CALLS = 2, 0.005, 20  # of a block, behind one call that is not counted
LONG_SECONDS = 0.2  # of a call that is a block of its own, as caches and threads make no difference to it
MOST_BLOCKS = 12  # of both together
STRETCH_SECONDS, MOST_TOGETHER = 0.02, 64  # of calls of a device that are waited for together, and their number
CLEAR = 0.85  # all calls of the faster one take less than this share of all calls of the other one
FAR = 0.4  # as `CLEAR`, where one call of the faster one is enough beside long ones of the other
GOES_ON = "; compared with plain jax.jit in the caller's next calls"
WORTH = 0.98  # the plan stays when it takes less than this share of plain jax.jit's time
#: the same of a plan whose kernels are the device's alone: graphs, all that is different, begin later for a caller who
#: waits for each step, and end sooner for one who does not
LAUNCHED = 0.9


class Race:
    """As `Choice`, for steps: the plan in use and plain `jax.jit` take blocks of the caller's calls in turn. No call is
    made twice and no state is copied; what is timed are calls as their caller makes them. `compiled`: plain `jax.jit`
    is, so that its first call counts as any other.

    What is timed is a stretch of calls, from the beginning of the first one until the results of the last one are
    there. With the plan a call begins with a look at its arguments, which plain `jax.jit` will not need once it has
    won. On cores a stretch is one call. A device goes on with a call when that has returned, so that a wait behind
    each one would cost the caller time: there a stretch is as many calls as take `STRETCH_SECONDS` seconds.

    What has won is remembered for the next process, which then begins with it. `again` compares once more, as the watch
    on times asks it to: a plan that loses then is tried again after a pause, and goes for good when it loses twice.

    `races`: calls are compared now.
    """

    def __init__(
        self, monitor: Monitor, planner: Planner, compiled: bool, clock: Callable[[], float] = time.perf_counter
    ):
        self._monitor, self._planner, self._clock = monitor, planner, clock
        self._cold = [True, not compiled]
        self._first, self._losses = not planner.decided, 0  # whether nothing was decided before
        self._most = MOST_TOGETHER if planner.machine.apart else 1
        self._thread = 0
        self._line_up(monitor.current)
        self.races = False

    def _line_up(self, plan: Executable) -> None:
        self._plan = plan
        self._seconds: tuple[list[float], list[float]] = ([], [])  # of calls that count, with the plan and without
        self._blocks = self._place = self._counted = 0  # blocks that are over, stretches of this one, those that count
        self._spent = 0.0  # seconds of this block's stretches that count
        self._began: float | None = None  # when this stretch did
        self._calls, self._usual = 0, 0.0  # calls of this stretch, and seconds of a call of the one before

    def takes(self, since: float | None = None) -> Executable:
        """The executable of the call that begins now; `since`: when the look at it has begun."""
        me = threading.get_ident()
        self.races &= not self._monitor.final
        if not self.races or me != (self._thread or me):
            current = self._monitor.current
            return current if self._may(current) else self._planner.plain
        self._thread = me
        if not self._may(self._plan):  # nothing of this call is compared
            self._began, self._calls = None, 0
            self._place, self._counted, self._spent = 0, 0, 0.0  # the block begins anew behind it
            self.races = recording.soon()  # else the plan has the calls when it may, if ever
            return self._planner.plain
        if not self._calls:
            self._began = self._clock() if since is None or self._jits else since
        if not self._jits:
            return self._plan
        if not self._place and self._plan.lowered is not None:
            self._plan.lowered.rest()  # jax.jit's own intermediates need the room
        return self._planner.plain

    def _may(self, exe: Executable) -> bool:
        """Whether an executable may have the call that begins now, for which `jax.jit` is there otherwise."""
        if exe.may is None or exe.may() or (self._cold[True] and recording.settles()):
            return True
        self._cold[True] = False
        return False

    @property
    def _jits(self) -> bool:
        """Whether this block is plain jax.jit's: jit, plan, plan, jit and so on."""
        return self._blocks % 4 in (0, 3)

    def gave(self, results: object) -> None:
        """Notes what a call has returned; when a stretch is over, waits until that is there. Nothing is kept."""
        if self._began is None or not self.races or threading.get_ident() != self._thread:
            return
        self._calls += 1
        if self._calls < self._together:
            return
        with contextlib.suppress(RuntimeError):  # of the call itself: its caller sees it
            jax.block_until_ready(results)
        seconds, calls, self._began, self._calls = self._clock() - self._began, self._calls, None, 0
        self._usual = seconds / calls
        self._note(seconds, calls)

    @property
    def _together(self) -> int:
        """The calls of this stretch. The first one of a block is alone: before it the other executable's have ended."""
        if not self._place or not self._usual:
            return 1
        return min(max(int(STRETCH_SECONDS / self._usual), 1), self._most)

    rest = 0  # steps are long enough for a look at each call
    trial = waited = seen = None  # of `Choice`

    def spare(self, exe: Executable) -> int:
        """Calls to come that a plan may answer without a look."""
        return 0

    def answered(self, calls: int) -> None:
        """No call goes by without a look."""

    def anew(self) -> None:
        """Begins, unless a process before has decided."""
        if self._first and self._monitor.current.lowered is not None:
            self._line_up(self._monitor.current)
            self.races = True

    def again(self) -> None:
        """Compares the plan in use, or the one that has lost, in the caller's next calls."""
        plan = next((e for e in (self._monitor.current, *self._monitor.past) if e.lowered is not None), None)
        if plan is None or self.races or self._cold[True]:  # no caller waits for a compilation
            return
        self._line_up(plan)
        self._thread, self._first, self._cold[False] = 0, False, False
        self._monitor.interval = min(2 * self._monitor.interval, MOST_RETRY_SECONDS)  # each one costs calls
        self.races = True

    def _note(self, seconds: float, calls: int) -> None:
        """So many calls of this block have taken so many seconds."""
        mine, others = self._seconds[self._jits], self._seconds[not self._jits]
        cold, self._cold[self._jits] = self._cold[self._jits], False
        self._place += 1
        if cold or (self._place == 1 and seconds < LONG_SECONDS):
            return
        mine.append(seconds / calls)
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
        """Whether one of the two clearly takes less; never by one call of the slower one, which may have waited for
        something else.
        """
        if not others:
            return False
        slower = max(mine, others, key=max)
        if len(slower) < LEAST_CALLS:
            return False
        several, long = min(len(mine), len(others)) >= LEAST_CALLS, max(slower) >= LONG_SECONDS
        share = min(max(mine) / min(others), max(others) / min(mine))
        return (several and share < CLEAR) or (long and share < FAR)

    def _decide(self, how: str) -> None:
        plan, jit = (float(np.median(x)) for x in self._seconds)
        lowered = self._plan.lowered
        launched = self._planner.machine.apart and lowered is not None and not lowered.segments
        worth = LAUNCHED if launched else WORTH
        wins = plan < (worth if how == "median" else 1.0) * jit
        measured = {self._plan.plan.strategy: plan, "jit": jit}
        why = "fastest of " + ", ".join(measured) if wins else "no plan beats jax.jit"
        took = f"a step takes {1e3 * plan:.3f} ms with the plan, {1e3 * jit:.3f} ms without"
        text = f"{why} in the caller's own calls: {took}"
        exe = self._plan if wins else self._planner.plain
        self._settle(dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=measured, chosen=text)))
        self._plan = self._monitor.current  # a plan that has lost for good goes with its memory
        self.races = False

    def _settle(self, exe: Executable) -> None:
        """What is in use from now on, and in the next process."""
        monitor, wins = self._monitor, exe.lowered is not None
        self._losses += not wins
        if self._first:
            self._planner.keep(exe)
        elif self._losses == MOST_LOSSES:
            self._planner.forget()
        if not wins and not self._first and self._losses < MOST_LOSSES:
            monitor.lost(monitor.current, exe)
            return
        monitor.history.append(exe.plan.chosen)
        if wins:
            monitor.take(exe)
            return
        monitor.stay(exe)
        monitor.past.clear()


__all__ = ["GOES_ON", "Race"]
