"""A function in use, at one set of shapes with resident weights: the executable that calls take and its watch."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.typing import ArrayLike

from .. import config
from ..codegen.runtime import host
from ..codegen.runtime.faults import Faults
from ..compat import settings
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..lowering.executable import Executable
from ..measure.timing import Progress, measured_in
from . import timeline
from .adaptive import Monitor
from .choice import Choice
from .experts import Caches
from .gate import Gate
from .planner import Planner
from .problem import Machine, Problem
from .race import GOES_ON, Race
from .recording import OTHERS, recording
from .report import Report, report

log = logging.getLogger("xcoexec")

CALLS_TRACED = 3  # the last one is shown; the first ones wake the threads
OWN = "xcoexec: "  # how errors of our own handlers begin
ARGUMENT = "INVALID_ARGUMENT"  # in errors of XLA about what it was given


def deleted(leaves: Sequence[ArrayLike]) -> bool:
    """Whether one of these arrays has been deleted or given away."""
    return any(isinstance(x, jax.Array) and x.is_deleted() for x in leaves)


def _all(*executables: Executable) -> list[Executable]:
    """Executables with those for calls in flight."""
    return [e for exe in executables for e in (exe, exe.in_flight) if e is not None]


class Session:
    """One function at one set of shapes with resident weights; plans again when times drift.

    `problem` and `machine` never change; `current` is the executable in use, `costs()` what its plan was made from,
    `history` what the watch has noticed and decided. `compiles`: has plain `jax.jit` compiled, which has answered no
    call yet (None: it has, or is not compared with). Sessions come from `session()` of a function with resident
    weights.
    """

    def __init__(
        self,
        planner: Planner,
        exe: Executable,
        warn: Callable[[str, Plan], None],
        gate: Gate | None = None,
        compiles: Callable[[], object] | None = None,
    ):
        self.planner, self._warn = planner, warn
        self._link, tree = planner.machine.link, planner.problem.out_tree
        one = tree == jax.tree_util.tree_structure(0)
        self.unflatten: Callable[[Sequence[Any]], Any] = operator.itemgetter(0) if one else tree.unflatten
        self._errors = 0  # of the link, when this function last looked at its own
        self._failing = threading.Lock()
        self._failed: Executable | None = None  # what is used since a host call failed
        free = planner.races or not planner.problem.step  # else nothing of a step is timed
        self._free = config.adapt() and free and exe.plan.strategy != "forced"  # callers may be given another plan
        self._adapt = self._free and exe.lowered is not None
        self.gate, self._settings = gate or Gate(), settings()
        self.ends: Callable[[float | None], bool] | None = None  # waits for a planning that goes on behind calls
        steps = (self._compared,) if planner.races else (self._known, self._moved, self._again)
        self.monitor = Monitor(exe, *steps)
        # in the background plain jax.jit has answered calls already
        self.choice: Choice | Race = (
            Race(self.monitor, planner, gate is not None)
            if planner.races
            else Choice(self.monitor, planner, self._compares, gate is not None and compiles is None)
        )
        if compiles is not None and isinstance(self.choice, Choice):
            self.choice.compiles = functools.partial(self._compiled, compiles)
        self._counts(True)
        if gate is None:  # else `finish` has it begin
            self.choice.anew()
        if planner.machine.limit is not None:  # executables that are not in use hold weights on the device too
            self.monitor.keep = 0

    # -- calls
    def takes(self, since: float | None = None) -> Executable:
        """The executable of the call that begins now, or has begun with a look at it: `since`, as `time.perf_counter`
        has it.
        """
        return self.choice.takes(since)

    def _compiled(self, compiles: Callable[[], object]) -> None:
        """Has plain jax.jit compiled, which no call has waited for."""
        with self._settings():
            compiles()

    def _compares(self) -> bool:
        goes = self._free and not (self.monitor.final or self._races)
        return goes and self.ends is None and self.planner.strategy == "auto"

    @property
    def _watched(self) -> bool:
        """Whether the plan in use may change."""
        return self._adapt and not self.monitor.final and not self._races

    @property
    def _races(self) -> bool:
        """Whether the caller's calls are compared that come next."""
        return isinstance(self.choice, Race) and self.choice.races

    def call(self, leaves: Sequence[ArrayLike], exe: Executable | None = None) -> Any:
        """The function's results for the inputs' leaves; `exe`: what `takes` said. Raises what XLA raises, but for a
        host call that fails: then plain jax.jit computes them, with one warning (a `BindError` when strict).
        """
        exe = exe or self.takes()
        out = self.answer(leaves, exe)
        results = self.unflatten(out)  # a part of what the call takes with the plan
        self.choice.gave(out)
        if self.gate.active:
            self.gate.gave(out)
        if self._watched or self.ends is not None:
            self.tick()
        return results

    def answer(self, leaves: Sequence[ArrayLike], exe: Executable) -> Sequence[jax.Array]:
        """The flat results of a call that nothing is noted of. Raises what `call` raises."""
        failed = ""
        try:
            out = exe.call(leaves) if not self.gate.active else self.gate.through(exe.call, leaves)
        except FloatingPointError:  # of `jax_debug_nans`: plain jax.jit knows in which operation
            if exe.lowered is None or deleted(leaves):
                raise
            return self.problem.plain(leaves)
        except (jax.errors.JaxRuntimeError, ValueError) as e:  # what XLA makes of an error depends on where it looks
            failed = str(e)
            self._link.settle()  # nothing may still write to arrays that XLA has taken back
            if ARGUMENT in failed and exe.lowered is not None:
                return self.problem.plain(leaves)  # an array that is gone, or given away twice: said as jax.jit says it
            if OWN not in failed or exe.lowered is None or deleted(leaves):
                raise
        # XLA may keep an error until the results are read
        if self._link.errors != self._errors and exe.lowered is not None:
            fault = self._fault()
            failed = failed or (OWN + fault.text if fault is not None else "")
        if failed:
            plain = self._without_host(failed)
            if not deleted(leaves):  # else the results are right or raise when they are read
                out = plain.call(leaves)
        return out

    def spare(self, exe: Executable) -> int:
        """Calls to come that the executable, which has answered the last one, may answer without a look at how they are
        made.
        """
        if self.gate.active or self.ends is not None or exe.lowered is None or exe.caller is not None:
            return 0
        return 0 if exe.plan.engine == "local" else self.choice.spare(exe)  # its program has no configuration

    def passes(self, current: Executable) -> bool:
        """Whether `current` is still in use, is not to be compared, and no call has to wait for a measurement."""
        return self.monitor.current is self.choice.seen is current and not self.gate.active

    def answered(self, calls: int) -> None:
        """Notes that so many calls went by without a look."""
        self.choice.answered(calls)
        self.monitor.answered(calls)

    def _fault(self) -> Faults | None:
        """The faults of this function's own host calls, in the plan in use or one before it; None without any."""
        errors = self._link.errors
        used = [x.faults for e in _all(self.current, *self.monitor.past) for x in e.all_lowered]
        own = next((f for f in used if len(f)), None)
        if own is None:
            self._errors = errors
        return own

    def _without_host(self, error: str) -> Executable:
        """After a failed host call: plain jax.jit from now on, with one warning (an error when strict)."""
        with self._failing:
            if self._failed is not None:  # by another thread
                return self._failed
            why, fault = error[error.index(OWN) + len(OWN) :].splitlines()[0].strip(), self._fault()
            if fault is not None and fault.code:
                why += f" ({self._link.describe(fault.code)})"
            exe = self.planner.fallback(self.current.plan.strategy, why)
            self._warn(why, exe.plan)
            self.monitor.stay(exe)
            self._failed, self._adapt = exe, False
            return exe

    # -- planning
    def finish(self, progress: Progress) -> None:
        """Goes on with a planning of which an early winner is in use. Where it fails or is cut short that plan stays;
        the log and the history say so.
        """
        began = time.monotonic()
        try:
            with self.monitor.planning():
                for exe in self.planner.rest():
                    self.monitor.swap(exe, time.monotonic() - began, True)
                progress("learn", 0, 0)
                self.planner.learn()
        except InterruptedError as e:
            self.monitor.history.append(f"planning was cut short: {e}")
        except Exception as e:  # what is in use works
            log.warning("xcoexec: planning went no further (%s: %s); the plan in use stays.", type(e).__name__, str(e))
            self.monitor.history.append(f"planning failed: {e}")
        finally:
            self._let_go()
            self.ends = None
            self.choice.anew()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for at most `timeout` seconds until the first planning is over; whether it is."""
        ends = self.ends
        return ends(timeout) if ends is not None else True

    @contextlib.contextmanager
    def _planning(self) -> Iterator[None]:
        """Under the settings of JAX that the function was planned under; calls wait for blocks of measured ones, whose
        inputs are held no longer than that.
        """
        self.gate.active = True
        self._counts(False)
        try:
            with self._settings(), measured_in(self.gate.alone, self.gate.lend):
                yield
        finally:
            self._counts(True)
            self._let_go()

    def _counts(self, calls: bool) -> None:
        """Whether calls are the caller's, whose experts are counted."""
        if self.problem.uses is not None:
            self.problem.uses.counting = calls

    def _let_go(self) -> None:
        """Gives back what a planning has needed."""
        self.gate.active = False
        self.problem.feed.drop()
        host.give_freed_back()

    def _known(self) -> Executable:
        with self._planning():
            return self.planner.known(self.current, self.monitor.past)

    def _moved(self) -> Executable:
        with self._planning():
            return self.planner.moved(self.current)

    def _compared(self) -> None:
        """The caller's next calls compare the plan with plain jax.jit."""
        assert isinstance(self.choice, Race)
        self.choice.again()

    def _again(self) -> Executable:
        with self._planning():
            return self.planner.again()

    def looked(self, seconds: float) -> None:
        """Plain jax.jit takes a call that was looked at for so many seconds."""
        if self.choice.waited is not None:
            self.choice.waited.looks = seconds

    def rests(self, answered: Callable[[], int]) -> None:
        """Plain jax.jit answers the next calls without a look, so many as `answered` tells afterwards."""
        if self.choice.waited is not None:
            self.choice.waited.rests(answered)

    def ran(self, results: object) -> None:
        """Plain jax.jit has answered a call with these results."""
        if not self.settled:
            leaves = jax.tree_util.tree_leaves(results)
            self.choice.gave(leaves)
            if self.gate.active:
                self.gate.gave(leaves)

    def tick(self) -> None:
        """Counts a call for the watch on times; waits while another one is measured."""
        self.gate.wait()
        if self.ends is None and self._watched:
            self.monitor.tick()

    # -- what there is to see
    @property
    def problem(self) -> Problem:
        """What was planned."""
        return self.planner.problem

    @property
    def machine(self) -> Machine:
        """What it was planned for."""
        return self.planner.machine

    @property
    def graph(self) -> LayerGraph:
        """The layers of the function."""
        return self.problem.graph

    @property
    def plain(self) -> bool:
        """Whether plain jax.jit is in use, however calls are made."""
        return all(exe.lowered is None for exe in _all(self.monitor.current))

    @property
    def settled(self) -> bool:
        """Whether plain jax.jit is in use for good."""
        return self.plain and not (self._watched or self._races or self.ends is not None)

    @property
    def rest(self) -> float:
        """Calls to come that plain jax.jit may answer without a look at how they are made."""
        return math.inf if self.settled else self.choice.rest

    @property
    def current(self) -> Executable:
        """The executable that calls take."""
        return self.monitor.current

    @property
    def history(self) -> list[str]:
        """What the watch has noticed and decided since the first call."""
        return list(self.monitor.history)

    @property
    def known_costs(self) -> Costs | None:
        """The seconds of the layers that the plan in use was made from; None where none were measured."""
        return self.planner.costs

    def costs(self) -> Costs:
        """Seconds of every layer on both halves, measured now where they are not known."""
        return self.planner.measured_costs()

    def plan(self) -> Plan:
        """The plan in use."""
        return self.current.plan

    def report(self) -> Report:
        """Where each layer of the plan in use ran, how long (seconds), and against which bound."""
        exe = self.current
        if not exe.plan.placements:
            return Report("jit", exe.plan.chosen, (), {}, 0, None)
        found = report(self.graph, exe.plan, exe.lowered, self.known_costs, self.machine.threads)
        if isinstance(exe.caller, Caches):
            found = dataclasses.replace(found, experts=exe.caller.resident())
        found = dataclasses.replace(found, why=found.why + OTHERS) if exe.may and recording.others else found
        return dataclasses.replace(found, why=found.why + GOES_ON) if self._races else found

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes a call, made now with the inputs that the plan was made for, as a trace for Perfetto. Raises `OSError`
        where the file cannot be written.
        """
        exe = self.current
        fetches = tuple(exe.lowered.fetches.values()) if exe.lowered is not None else ()
        with host.team(self.machine.cpus).traced() as trace:
            for fetch in fetches:
                fetch.trace(True)
            try:
                for _ in range(CALLS_TRACED if exe.lowered is not None else 0):
                    self.problem.run(exe)
                timeline.write(path, timeline.events(self.graph, exe.lowered, trace()))
            finally:
                self.problem.feed.drop()
                for fetch in fetches:
                    fetch.trace(False)


__all__ = ["Session", "deleted"]
