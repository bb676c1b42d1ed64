"""A function at one set of shapes with resident weights: the executable in use, and the watch on it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from .. import config
from ..codegen.native.children import go_on
from ..codegen.runtime import host
from ..codegen.runtime.faults import Faults
from ..compat import settings
from ..errors import BindError
from ..ir.records import LayerGraph, Plan
from ..planning.strategies import Strategy
from . import timeline
from .adaptive import Gate, Monitor
from .contest import choose, contest, known, moved
from .executable import Executable
from .report import Report, report
from .stages import Stages

CALLS_TRACED = 3  # the last one is shown; the first ones wake the threads
OWN = "xcoexec: "  # how errors of our own handlers begin


def deleted(leaves: Sequence[Any]) -> bool:
    """Whether one of these arrays has been deleted or given away."""
    return any(isinstance(x, jax.Array) and x.is_deleted() for x in leaves)


class Compiled:
    """One function at one set of shapes with resident weights; plans again when times drift."""

    def __init__(self, s: Stages, exe: Executable, strategy: str | Strategy, warn: Callable[[str, Plan], None]):
        self.stages, self._strategy, self._warn = s, strategy, warn
        self._relay, self._unflatten = s.relay, s.traced.out_tree.unflatten
        self._errors = 0  # of the relay, when this function last looked at its own
        self._failing = threading.Lock()
        self._failed: Executable | None = None  # what is used since a host call failed
        self._adapt = config.adapt() and exe.plan.strategy != "forced" and exe.lowered is not None
        self.gate, self._settings = Gate(), settings()
        self.monitor = Monitor(exe, self._known, self._move, self._replan)
        if s.limit is not None:  # executables that are not in use hold weights on the device too
            self.monitor.keep = 0

    def call(self, leaves: Sequence[Any]) -> Any:
        exe, relay, failed = self.monitor.current, self._relay, ""
        try:
            out = exe.call(leaves)
        except (
            jax.errors.JaxRuntimeError,
            ValueError,
        ) as e:  # what XLA makes of an error depends on where it looks for it
            failed = str(e)
            if relay is not None:  # nothing may still write to arrays that XLA has taken back
                relay.settle()
            if OWN not in failed or exe.lowered is None or deleted(leaves):
                raise
        if (
            relay is not None and relay.errors != self._errors and exe.lowered is not None
        ):  # XLA may keep an error until the results are read
            fault = self._fault()
            failed = failed or (OWN + fault.text if fault is not None else "")
        if failed:
            plain = self._without_host(failed)
            if not deleted(leaves):  # else the results are right or raise when they are read
                out = plain.call(leaves)
        if self._adapt:
            self.tick()
        return self._unflatten(out)

    def _fault(self) -> Faults | None:
        """The faults of this function's own host calls, in the plan in use or one before it; None without any."""
        errors = self.stages.relay.errors if self.stages.relay is not None else 0
        used = [e.lowered.faults for e in (self.current, *self.monitor.past) if e.lowered is not None]
        own = next((f for f in used if len(f)), None)
        if own is None:
            self._errors = errors
        return own

    def _without_host(self, error: str) -> Executable:
        """After a failed host call: plain jax.jit from now on, with one warning (an error when strict)."""
        with self._failing:
            if self._failed is not None:  # by another thread
                return self._failed
            why, relay, fault = (
                error[error.index(OWN) + len(OWN) :].splitlines()[0].strip(),
                self.stages.relay,
                self._fault(),
            )
            if relay is not None and fault is not None and fault.code:
                why += f" ({relay.driver.describe(fault.code)})"
            exe = self.stages.fallback(self.current.plan.strategy, why)
            self._warn(why, exe.plan)
            self.monitor.stay(exe)
            self._failed, self._adapt = exe, False
            return exe

    @contextlib.contextmanager
    def _planning(self) -> Iterator[None]:
        """Measurements have the machine for themselves, a block of calls at a time; planning is cut short when the
        interpreter ends.
        """
        progress, s = self.stages.progress, self.stages

        def step(what: str, done: int, total: int) -> None:
            go_on()

        s.progress, s.alone = step, self.gate.alone
        try:
            with self._settings():
                yield
        finally:
            s.progress, s.alone = progress, contextlib.nullcontext
            s.forget()

    def _known(self) -> Executable:
        """The best of what is there: can be had at once."""
        with self._planning():
            return known(self.stages, self.current, self.monitor.past)

    def _move(self) -> Executable:
        """The plan in use with its shares moved: needs a compilation."""
        with self._planning():
            return moved(self.stages, self.current)

    def _replan(self) -> Executable:
        """Plans from fresh numbers, as the strategy says."""
        self.stages.costs = None
        with self._planning():
            return contest(self.stages) if self._strategy == "auto" else choose(self.stages, self._strategy, None)

    def tick(self) -> None:
        """Counts a call for the watch on times; waits while another one is measured."""
        if self._adapt:
            self.gate.wait()
            self.monitor.tick()

    @property
    def plain(self) -> bool:
        """Whether plain jax.jit is in use: the caller then need not take arguments and results apart."""
        return self.monitor.current.lowered is None

    @property
    def current(self) -> Executable:
        return self.monitor.current

    @property
    def graph(self) -> LayerGraph:
        return self.stages.graph

    @property
    def history(self) -> list[str]:
        return list(self.monitor.history)

    def plan(self) -> Plan:
        return self.current.plan

    def report(self) -> Report:
        exe = self.current
        if not exe.plan.placements:
            return Report("jit", exe.plan.chosen, (), {}, 0, None)
        return report(self.stages.graph, exe.plan, exe.lowered, self.stages.costs, self.stages.threads)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes a call, made now with the inputs that the plan was made for, as a trace."""
        exe, s = self.current, self.stages
        fetches = tuple(exe.lowered.fetches.values()) if exe.lowered is not None else ()
        with host.team(s.cpus).traced() as trace:
            for fetch in fetches:
                fetch.trace(True)
            try:
                for _ in range(CALLS_TRACED if exe.lowered is not None else 0):
                    s.run(exe)
                timeline.write(path, timeline.events(s.graph, exe.lowered, trace()))
            finally:
                for fetch in fetches:
                    fetch.trace(False)


class Fallback:
    """Plain jax.jit in the place of a `Compiled`; says why."""

    plain = True

    def __init__(self, strategy: str, why: str):
        self.why, self.history = why, list[str]()
        self._plan = Plan(strategy, (), "", chosen=f"fallback: {why}", engine="jit")
        self.monitor = self  # what is in use is always the same
        self.current = Executable(self._plan, lambda leaves: [], None)

    def tick(self) -> None:
        """Nothing is watched."""

    def plan(self) -> Plan:
        return self._plan

    def report(self) -> Report:
        return Report("jit", self._plan.chosen, (), {}, 0, None)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes an empty trace: XLA's program has no stamps."""
        timeline.write(path, [])

    @property
    def stages(self) -> Stages:
        raise BindError(f"xcoexec.jit: there are no layers for these arguments, they go to plain jax.jit: {self.why}.")

    @property
    def graph(self) -> LayerGraph:
        return self.stages.graph
