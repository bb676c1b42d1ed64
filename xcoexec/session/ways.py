"""The same plan in another way: how kernels are launched, and of how many programs a call is made."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping

import jax

from ..ir.plan import Plan
from ..ir.words import DEVICE, HOST
from ..lowering.executable import Executable
from ..measure.timing import NotCalled
from ..planning.strategies import STRATEGIES
from .attempt import Attempt

log = logging.getLogger("xcoexec")

TURNED = 0.95  # of jax.jit's time: the folded graph on a device where its weights lie as kernels read them
NEAR_GRAPHS = 1.3  # times the fastest one's seconds, up to which a plan of both halves is tried as graphs
AS_GRAPHS = ", launched as graphs"  # what names of candidates end with whose kernels are
SINGLY = ", launched one by one"  # the same of kernels of which none is part of a graph
IN_PROGRAMS = ", in several programs"  # the same of calls of more than one
LAYERS_A_PROGRAM, FEWEST_LAYERS = 25, 16  # of a call that is tried in several programs
MOST_PROGRAMS = 3  # each takes the launching thread 50 us more, of which calls in flight see all


def under(exe: Executable, plan: Plan) -> Executable:
    """An executable under the plan that a strategy has for the same placements."""
    return dataclasses.replace(exe, plan=dataclasses.replace(plan, libraries=exe.plan.libraries))


def folded(s: Attempt) -> Executable:
    """The folded graph on a device."""
    return under(s.all_device, STRATEGIES["device"](s.graph, s.measured_costs()))


def as_graphs(s: Attempt, candidates: Mapping[str, Executable], seconds: Mapping[str, float]) -> dict[str, Executable]:
    """The folded graph on a device, and the fastest plan of both halves, with kernels that are launched as graphs: a
    device with many processors waits for the thread that launches them.
    """
    if not _may_be_graphs(s):
        return {}
    plans = {DEVICE: folded(s).plan}
    both = {k: t for k, t in seconds.items() if k != DEVICE and on_device(candidates[k].plan)}
    fastest = min(both, key=both.__getitem__, default=DEVICE)
    if fastest != DEVICE and both[fastest] < NEAR_GRAPHS * min(seconds.values()):
        plans[fastest] = candidates[fastest].plan
    return _all_running(s, {f"{k}{AS_GRAPHS}": dataclasses.replace(p, graphs=True) for k, p in plans.items()})


def step_as_graphs(s: Attempt) -> dict[str, Executable]:
    """A training step on a device with kernels that are launched as graphs, before layers are measured: where the step
    gives its state away, it finds it at the same addresses each time, and graphs stay as they are.
    """
    if not s.problem.step or not _may_be_graphs(s):
        return {}
    return _all_running(s, {f"{DEVICE}{AS_GRAPHS}": dataclasses.replace(s.all_device.plan, graphs=True)})


def _may_be_graphs(s: Attempt) -> bool:
    """Whether there is a device that launches this function's kernels otherwise when it is asked to."""
    return s.machine.apart and bool(s.machine.device.graphs(s.graph.program.ops))


def one_by_one(s: Attempt) -> dict[str, Executable]:
    """The folded graph on several devices at once, with kernels that are launched each by itself: calls in flight may
    need that.
    """
    shards = s.problem.shards
    several = shards is not None and len(shards.devices) > 1
    if not several or not s.machine.apart or s.problem.step or not s.machine.device.singly():
        return {}
    return _all_running(s, {f"{DEVICE}{SINGLY}": dataclasses.replace(folded(s).plan, singly=True)})


def in_programs(
    s: Attempt, candidates: Mapping[str, Executable], seconds: Mapping[str, float]
) -> dict[str, Executable]:
    """The fastest of what runs on a device, or on both halves, as several programs in a row: it works on the first one
    while the next is prepared.
    """
    layers = len(s.graph.layers)
    own = {k: t / (TURNED if k.split(",")[0] == DEVICE else 1.0) for k, t in seconds.items()}  # as `best_of` takes it
    own = {k: t for k, t in own.items() if on_device(candidates[k].plan)}
    if not s.machine.apart or s.problem.step or s.problem.shards is not None or layers < FEWEST_LAYERS or not own:
        return {}
    name = min(own, key=own.__getitem__)
    count = min(max(round(layers / LAYERS_A_PROGRAM), 2), MOST_PROGRAMS)
    return _all_running(s, {f"{name}{IN_PROGRAMS}": dataclasses.replace(candidates[name].plan, programs=count)})


def _all_running(s: Attempt, plans: Mapping[str, Plan]) -> dict[str, Executable]:
    """Those of plans, by name, that can run."""
    return {name: exe for name, plan in plans.items() if (exe := running(s, name, plan))}


def running(s: Attempt, name: str, plan: Plan) -> Executable | None:
    """A plan's executable, which has run once; None where XLA cannot record its kernels, it has no room, or nobody
    came who may run it.
    """
    exe = s.executable(plan)
    try:
        s.run(exe)
    except (jax.errors.JaxRuntimeError, NotCalled) as e:
        s.untried |= type(e) is NotCalled
        log.info("%s: %s", name, str(e))
        return None
    return exe


def callers(candidates: Mapping[str, Executable]) -> set[str]:
    """The names of those that only callers' threads may call."""
    return {name for name, exe in candidates.items() if exe.may is not None}


def on_device(plan: Plan) -> bool:
    """Whether layers of a plan with an engine of our own run on the device."""
    return plan.engine == "xco" and any(p.half != HOST for p in plan.placements)


__all__ = ["AS_GRAPHS", "IN_PROGRAMS", "SINGLY", "TURNED", "as_graphs", "callers", "folded", "in_programs"]
__all__ += ["on_device", "one_by_one", "running", "step_as_graphs", "under"]
