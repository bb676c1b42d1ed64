"""A function at one set of shapes with resident weights: the executable in use, and the watch on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax

from . import config
from .codegen.peaks import peaks
from .ir import Plan
from .report import Report, report
from .runtime import timeline
from .runtime.adaptive import Monitor, closing
from .runtime.executable import Executable
from .select import Stages, choose, contest


class Compiled:
    """One function at one set of shapes with resident weights; plans again when times drift."""

    def __init__(self, s: Stages, exe: Executable, strategy: str):
        self.stages, self._strategy = s, strategy
        self._adapt = config.adapt() and exe.plan.strategy != "forced" and exe.lowered is not None
        self.monitor = Monitor(exe, self._replan)

    def call(self, leaves: Sequence[Any]) -> Any:
        out = self.monitor.current.call(leaves)
        if self._adapt:
            self.monitor.tick()
        return jax.tree_util.tree_unflatten(self.stages.traced.out_tree, out)

    def _replan(self) -> Executable:
        """Plans from fresh numbers, as the strategy says; cut short when the interpreter ends."""
        progress = self.stages.progress

        def step(what: str, done: int, total: int) -> None:
            if closing():
                raise InterruptedError("the interpreter is ending")

        self.stages.progress, self.stages.costs = step, None
        try:
            return contest(self.stages) if self._strategy == "auto" else choose(self.stages, self._strategy, None)
        finally:
            self.stages.progress = progress
            self.stages.forget()

    @property
    def current(self) -> Executable:
        return self.monitor.current

    def plan(self) -> Plan:
        return self.current.plan

    def report(self) -> Report:
        exe = self.current
        if not exe.plan.placements:
            return Report("jit", exe.plan.chosen, (), {}, 0, peaks(self.stages.threads))
        return report(self.stages.graph, exe.plan, exe.lowered, self.stages.costs, self.stages.threads)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        timeline.write(path, timeline.events(self.stages.graph, self.current.lowered))
