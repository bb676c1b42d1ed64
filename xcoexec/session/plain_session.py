"""Plain `jax.jit` in the place of a session."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from ..errors import BindError
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..lowering.executable import Executable
from ..measure.profile import Progress
from . import timeline
from .gate import Gate
from .planner import Planner
from .problem import Machine, Problem
from .report import Report


class PlainSession:
    """Plain jax.jit in the place of a `Session`; says why."""

    plain = settled = True
    known_costs = None

    def __init__(self, strategy: str, why: str):
        self.why, self.history = why, list[str]()
        self._plan = Plan(strategy, (), "", chosen=f"fallback: {why}", engine="jit")
        self.monitor = self  # what is in use is always the same
        self.current = Executable(self._plan, lambda leaves: [], None)

    @property
    def rest(self) -> float:
        """Calls to come that need no look."""
        return math.inf

    @property
    def gate(self) -> Gate | None:
        """Calls have to wait for no measurement."""
        return None

    def tick(self) -> None:
        """Nothing is watched."""

    def wait(self, timeout: float | None = None) -> bool:
        """Nothing is planned."""
        return True

    def finish(self, progress: Progress) -> None:
        """There is no more to plan."""

    def takes(self, since: float | None = None) -> Executable:
        """Plain jax.jit."""
        return self.current

    def looked(self, seconds: float) -> None:
        """Plain jax.jit takes a call that was looked at for so many seconds."""

    def rests(self, answered: Callable[[], int]) -> None:
        """Plain jax.jit answers the next calls without a look."""

    def ran(self, results: object) -> None:
        """Plain jax.jit has answered a call with these results."""

    def plan(self) -> Plan:
        """A plan without layers, which says why."""
        return self._plan

    def report(self) -> Report:
        """A report without layers, which says why."""
        return Report("jit", self._plan.chosen, (), {}, 0, None)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes an empty trace: XLA's program has no stamps. Raises `OSError` where the file cannot be written."""
        timeline.write(path, [])

    def _none(self) -> BindError:
        return BindError(f"xcoexec.jit: there are no layers for these arguments, they go to plain jax.jit: {self.why}.")

    @property
    def problem(self) -> Problem:
        """Raises `BindError`: there are no layers."""
        raise self._none()

    @property
    def machine(self) -> Machine:
        """Raises `BindError`: nothing was planned for."""
        raise self._none()

    @property
    def planner(self) -> Planner:
        """Raises `BindError`: nothing is planned."""
        raise self._none()

    @property
    def graph(self) -> LayerGraph:
        """Raises `BindError`: there are no layers."""
        raise self._none()

    def costs(self) -> Costs:
        """Raises `BindError`: there are no layers."""
        raise self._none()


__all__ = ["PlainSession"]
