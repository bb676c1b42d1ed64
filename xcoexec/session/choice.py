"""Which executable calls take: by the habit of their callers, and by what their own loop shows."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable, Sequence

from ..lowering.executable import Executable
from .adaptive import Monitor
from .background import submit
from .planner import Planner
from .recording import recording
from .usage import CLEAR, MOST_EVERY, STEADY, FlowTrial, Guard, Habit, Trial

MOST_LOSSES = 2  # in use, after which a function stays with plain jax.jit
AS_BEFORE = 1.1  # times what a call of a plan took in a process before
PATIENCE_SECONDS = 2.0  # that it may take longer than that before plain jax.jit is compiled to be compared with
REST_CALLS, REST_SECONDS = 4096, 0.1  # the most calls of a plan, and their seconds, without a look
LEAST_CALLS = 16  # the same where nobody knows what one takes
PLAIN_CALLS, PLAIN_SECONDS = 1024, 0.3  # the same of plain jax.jit, by which nothing is measured


class Choice:
    """Takes the monitor's executable, the one that it has for calls in flight, or plain `jax.jit` for the calls that
    compare the two.

    `compares`: whether there is a comparison now. `compiled`: plain `jax.jit` is compiled already, so that no caller
    waits for it; `compiles`: has it compiled, in the background, when a comparison wants it (None: nothing does).
    `seen`: the executable of which there is a trial, or need not be one. `trial`, `guard`: what goes on; `flow`: the
    trial of calls in flight, which begins with the first of them.
    """

    def __init__(self, monitor: Monitor, planner: Planner, compares: Callable[[], bool], compiled: bool):
        self._monitor, self._planner, self._compares, self._compiled = monitor, planner, compares, compiled
        self.trial: Trial | None = None
        self.guard: Guard | None = None
        self.flow: FlowTrial | None = None
        self.compiles: Callable[[], object] | None = None
        self._habit, self._deciding = Habit(), threading.Lock()
        self._notes = False  # whether the call that began last is looked at
        self._losses = 0
        self._alone: float | None = None  # seconds of plain jax.jit, as they were measured last
        self.seen: Executable | None = None
        self._since, self.clock = 0.0, time.perf_counter

    def takes(self, since: float | None = None) -> Executable:
        """The executable of the call that begins now. What looks cost is measured apart (`waited`)."""
        exe = self._monitor.current
        if exe is not self.seen:
            self.seen, self.trial, self.guard, self.flow = exe, self._trial_of(exe), None, self._flow_of(exe)
            self._since = self.clock()
        if exe.may is not None and not exe.may():
            compiled = self._compiled or self._planner.plain_ready
            if compiled or not recording.settles():  # nothing of this call is compared
                self._notes, self._compiled = False, True
                return self._planner.plain
        guard, trial, flow = self.guard, self.trial, self.flow  # other threads may end them
        looks = guard is not None and guard.looks()
        flows = flow is not None and flow.begun
        self._notes = trial is not None or exe.in_flight is not None or looks or flows
        if not self._notes:
            return exe
        waited = self._habit.begins(exe.through and exe.in_flight is not None)
        if self._habit.in_flight:
            return self._flowing(exe, flow, waited)
        if flow is not None and flow.begun:
            flow.waits()
            self._decide_flow(exe, flow)
        if looks and guard is not None and guard.slow(waited):
            trial, self._since = self._trial_of(exe), self.clock()
            self.trial = trial
        if trial is None:
            return exe
        plain = trial.plain(waited)
        if trial.verdict:
            self.decide(exe, trial)
        if plain and not self._compiled:
            self._wait_for_plain(exe)
            return exe
        return self._planner.plain if plain else exe

    def _flowing(self, exe: Executable, flow: FlowTrial | None, waited: bool) -> Executable:
        """The executable of a call in flight."""
        if flow is not None:
            if flow.asks:
                flow.holds(self._habit.held)
            plain = flow.plain(waited)
            self._decide_flow(exe, flow)
            if plain:
                return self._planner.plain
        return exe.in_flight or exe

    @property
    def waited(self) -> Trial | None:
        """The comparison of calls that wait for their results, where the last ones did."""
        return None if self._habit.in_flight else self.trial

    @property
    def _looked(self) -> bool:
        """Whether enough calls were looked at: a caller whose habit becomes another one is answered otherwise."""
        steady = self._habit.steady
        return (self._monitor.current.in_flight is None and self.trial is None) or bool(steady and not steady % STEADY)

    @property
    def rest(self) -> int:
        """Calls to come that need no look, while plain `jax.jit` is in use for calls as they are made: where calls in
        flight have a plan of their own, behind every `STEADY` calls that were made as those before them.
        """
        if self.waited is not None:
            return self.waited.spare
        current, habit = self._monitor.current, self._habit
        used = (habit.in_flight and current.in_flight) or current
        if used.lowered is not None or self._alone is None or not self._looked:
            return 0
        return min(PLAIN_CALLS, int(PLAIN_SECONDS / self._alone))

    def spare(self, exe: Executable) -> int:
        """Calls to come that a plan, which has taken the last one, may answer without a look, while nothing is compared
        and until its guard looks; where calls in flight have a plan of their own, behind calls as `rest` asks for.
        """
        current, habit, flow, guard = self._monitor.current, self._habit, self.flow, self.guard
        if self.waited is not None or current is not self.seen:
            return 0
        if flow is not None and (flow.begun or habit.in_flight):
            return 0
        used = (habit.in_flight and current.in_flight) or current
        if used is not exe or not self._looked:
            return 0
        seconds = exe.plan.measured.get(exe.plan.strategy, self._alone)
        most = min(REST_CALLS, int(REST_SECONDS / seconds)) if seconds else LEAST_CALLS
        return most if guard is None else min(most, guard.spare)

    def answered(self, calls: int) -> None:
        """Notes that so many calls went by without a look."""
        if self.guard is not None:
            self.guard.answered(calls)

    def gave(self, results: Sequence[object]) -> None:
        """Notes what a call has returned; nothing is kept alive."""
        if self._notes:
            self._habit.gave(results)

    def anew(self) -> None:
        """Compares the executable in use, whatever was found out of it before."""
        self.seen = None

    def _trial_of(self, exe: Executable) -> Trial | None:
        """The comparison of an executable with plain jax.jit in the caller's loop; None where nothing is to decide."""
        self._alone = exe.plan.measured.get("jit", self._alone)
        self._compiled = self._compiled or self._planner.plain_ready
        can = self._compiled or self.compiles is not None
        if self._alone is None or exe.lowered is None or not can or not self._compares():
            return None
        planned = exe.plan.measured.get(exe.plan.strategy, 0.0)
        return Trial(self._alone, sure=0.0 if self._compiled else _remembered(exe), planned=planned)

    def _flow_of(self, exe: Executable) -> FlowTrial | None:
        """The same for calls in flight, where a plan takes them and plain jax.jit is there."""
        used = exe.in_flight or exe
        alone = used.plan.measured.get("jit", self._alone)
        if used.lowered is None or not self._compiled or alone is None or not self._compares():
            return None
        return FlowTrial(alone)

    def _wait_for_plain(self, exe: Executable) -> None:
        """The comparison begins anew: for a while with the plan alone, which others' work may have slowed down; then
        when plain jax.jit is compiled, once, in the background.
        """
        with self._deciding:
            if self.seen is not exe:  # another thread was first
                return
            if self.clock() - self._since < PATIENCE_SECONDS:
                self.trial = self._trial_of(exe)
                return
            compiles, self.compiles, self.trial = self.compiles, None, None
        if compiles is not None:
            submit(functools.partial(self._compile, compiles))

    def _compile(self, compiles: Callable[[], object]) -> None:
        compiles()
        self._compiled = True
        self.anew()

    def decide(self, exe: Executable, trial: Trial) -> None:
        """The end of a comparison: a plan that makes the caller's loop slower goes; one that does not is looked
        after.
        """
        with self._deciding:
            if self.trial is not trial or exe.lowered is None:  # another thread was first
                return
            self.trial = None
            every = min(2 * self.guard.every, MOST_EVERY) if self.guard is not None else 0
            self.guard = Guard(trial.limit, every)
            if trial.pairs and trial.limit < exe.plan.measured.get("jit", 0.0) and self._planner.remembers():
                self._planner.keep(_as_used(exe, trial))
            if trial.verdict == "jit":
                self._lost(exe, trial)

    def _decide_flow(self, exe: Executable, flow: FlowTrial) -> None:
        """What a comparison of calls in flight ends with: plain jax.jit takes them where it is faster."""
        if not flow.verdict:
            return
        with self._deciding:
            if self.flow is not flow:  # another thread was first
                return
            self.flow = None
            if flow.verdict == "jit":
                instead = None if exe.lowered is None else self._planner.plain
                said = f"{exe.plan.chosen.split('; ')[0]}; jit while calls are in flight, as they showed"
                found = dataclasses.replace(_told(exe, said), in_flight=instead)
                if self._monitor.take(found, exe):
                    self.seen = found  # what is known of calls that wait stays as it is
                    self._planner.keep(found)

    def _lost(self, exe: Executable, trial: Trial) -> None:
        """The plan for calls in flight takes all calls, where it is another one: callers who hold results seem to wait
        where each is there when the next call begins. Else plain jax.jit takes those that wait.
        """
        plan, jit = (f"{1e3 * x:.3f} ms" for x in trial.medians())
        turn = f"in use: a call's turn takes {plan} with {exe.plan.strategy!r}, {jit} without"
        other = exe.in_flight
        if other is not None and other.lowered is not None and other.lowered is not exe.lowered:
            self._monitor.lost(exe, _told(other, f"{other.plan.chosen}, and now for all; another one lost {turn}"))
            return
        instead = dataclasses.replace(_told(self._planner.plain, f"no plan beats jax.jit {turn}"), in_flight=other)
        if not self._monitor.lost(exe, instead):
            return
        self._losses += 1
        if self._losses == MOST_LOSSES:  # calls then go to jax.jit without a look
            self._monitor.stay(instead)
            self._planner.forget()


def _told(exe: Executable, why: str) -> Executable:
    """An executable whose plan says why it was chosen."""
    return dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, chosen=why))


def _as_used(exe: Executable, trial: Trial) -> Executable:
    """An executable whose plan says what calls took in their caller's loop, by which the next process goes: those that
    were measured while others worked took longer, with one executable more than with another.
    """
    plan, jit = trial.medians()
    measured = {**exe.plan.measured, exe.plan.strategy: plan, "jit": jit}
    return dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=measured))


def _remembered(exe: Executable) -> float:
    """Seconds of a call below which a plan of a process before is as good as it was there, where it clearly won: it is
    not worth the compilation of plain `jax.jit`, during which calls take longer.
    """
    measured = exe.plan.measured
    plan, jit = measured.get(exe.plan.strategy, math.inf), measured.get("jit", 0.0)
    return min(AS_BEFORE * plan, CLEAR * jit) if plan < CLEAR * jit else 0.0


__all__ = ["Choice"]
