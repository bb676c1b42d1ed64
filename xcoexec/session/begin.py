"""Which functions begin with what has won in a process before: those whose plan is there sooner than plain `jax.jit`,
by what both took in the process that planned them.
"""

from __future__ import annotations

import functools
import hashlib
import time

from ..compat import ClosedJaxpr, programs_are_kept
from ..frontend.graph import build_graph
from ..lowering.work_units import DeviceUnit
from ..measure import kept as disk
from ..measure.records import BEGIN
from .session import Session

LOADING_SECONDS = 0.05  # of the native code, beside what grows with the function
SHARE_FACTOR = 2.0


class Beginning:
    """A function's beginning, as it is kept on disk under what can be told of a trace at once; whether a plan is
    remembered for it, only its graph can tell.
    """

    def __init__(self, closed: ClosedJaxpr, threads: int, devices: int = 1):
        self._closed, self._threads, self._devices = closed, threads, devices

    @functools.cached_property
    def _name(self) -> str:
        """A hash of the shapes and primitives of the outer equations."""
        jaxpr = self._closed.jaxpr
        shapes = lambda atoms: [(getattr(a.aval, "shape", ()), str(getattr(a.aval, "dtype", ""))) for a in atoms]
        parts = [(e.primitive.name, e.params.get("name"), shapes(e.outvars)) for e in jaxpr.eqns]
        text = repr((shapes(jaxpr.invars), parts))
        of = f"-of-{self._devices}" if self._devices > 1 else ""
        return f"begin-{hashlib.sha256(text.encode()).hexdigest()[:16]}-{self._threads}{of}"

    def with_plan(self) -> bool:
        """Whether the first call need not wait longer for the plan than for plain `jax.jit`."""
        known = disk.load(BEGIN, self._name)
        return known is not None and known["plan"] < known["plain"] and not programs_are_kept()

    def note(self, session: Session, plain: float) -> None:
        """Notes what has won, and what `jax.jit` took to compile (seconds); nothing where nothing is remembered."""
        if session.current.lowered is not None and session.planner.remembers():
            disk.store(BEGIN, self._name, {"plain": plain, "plan": _seconds(session, plain)})
        else:
            self.forget()

    def forget(self) -> None:
        """The plan is not remembered any more."""
        disk.forget(BEGIN, self._name)


def _seconds(session: Session, plain: float) -> float:
    """What it takes to have a plan once more: its graph and its lowering (which takes about as long), native code, the
    packing of its weights, and what XLA takes for the layers on the device half, of which a few may cost as much as
    many.
    """
    lowered = session.current.lowered
    assert lowered is not None
    began = time.thread_time()
    build_graph(session.problem.folded)  # once more: the first time it may have measured the machine
    graph = time.thread_time() - began
    ops = sum(len(u.ops) for u in lowered.units if isinstance(u, DeviceUnit))
    share = min(SHARE_FACTOR * ops / max(len(session.graph.program.ops), 1), 1.0)
    return 2 * graph + LOADING_SECONDS + session.current.seconds + share * plain


__all__ = ["Beginning"]
