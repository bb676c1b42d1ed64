"""A strategy's plan as an executable: the fastest of it and its rivals, with the shares that both halves need."""

from __future__ import annotations

import dataclasses
import functools
import logging
import time
from collections.abc import Sequence

import numpy as np

from ..codegen.runtime import pages
from ..errors import PlanError
from ..ir.placement import Placement, bare
from ..ir.plan import Plan
from ..ir.words import SPLIT
from ..lowering.executable import Executable
from ..measure.timing import ROUND_SECONDS, alone, alternate
from ..planning.memory import usage
from ..planning.strategies import RIVALS, STRATEGIES, Strategy
from .attempt import Attempt, lowered_of
from .rebalance import Seen, rebalanced, slowdown

log = logging.getLogger("xcoexec")

NEAR = 1.08  # a rival that is predicted to take longer than this times the plan's time is not compiled
BALANCING = 2  # corrections of a plan's shares by what its halves measured
BALANCE_CALLS = 12
ENOUGH = 24  # calls of one plan in one round of a comparison
QUICK_COMPILATION = 2.0  # seconds that XLA may take for an early plan which is made once more, with other shares
BOUNDED = 3  # more plans for less and less memory, while XLA's programs hold more than may be
WORTH = 0.98  # a plan replaces plain jax.jit, or another plan, when it takes less than this share of its time
OTHERWISE = 0.03  # of the contention that a plan was made with: what calls have to differ from it for another one


def realised(s: Attempt, plan: Plan, strategy: str | Strategy) -> Executable:
    """A strategy's plan as an executable; on a device balanced, and where the strategy has `RIVALS` the fastest of it,
    those that are near and the plan for the contention that calls show.
    """
    if not s.machine.apart or not isinstance(strategy, str) or strategy not in RIVALS:
        return _balanced(s, s.candidate(plan))
    plans = [plan]
    for rival in RIVALS[strategy]:
        other = rival(s.graph, s.measured_costs())
        if (
            s.fits(other)
            and (other.predicted or 0.0) < NEAR * (plan.predicted or 0.0)
            and all(other.placements != p.placements for p in plans)
        ):
            plans.append(other)
    made = [s.candidate(p) for p in plans]
    own, *others = _briefly(s, made) if len(made) > 1 else [0.0]
    return _balanced(s, _planned_again(s, made[int(np.argmin([WORTH * own, *others]))], STRATEGIES[strategy]))


def bounded(s: Attempt, plan: Plan) -> Executable:
    """The plan for the bytes that may lie on the device as an executable. What XLA holds beside what a plan counts is
    kept from the next plan, from its rivals and from shares that are moved, where both together are too much.
    """
    exe = realised(s, plan, "capacity")
    try:
        for _ in range(BOUNDED):
            if not (excess := s.excess(exe)):
                return exe
            s.reserved = excess + (s.machine.limit or 0) - usage(s.graph, exe.plan.placements).total
            exe = realised(s, STRATEGIES["capacity"](s.graph, s.measured_costs()), "capacity")
    except PlanError:  # no plan has so little room: the last one stays
        pass
    finally:
        s.reserved = 0
    if excess := s.excess(exe):
        log.warning("xcoexec: XLA's program holds %d bytes more on the device than device_memory allows.", excess)
    return exe


def _planned_again(s: Attempt, exe: Executable, strategy: Strategy) -> Executable:
    """An executable, or that of a strategy's plan for the contention that its halves show in calls, whichever is
    faster. What the halves do to each other depends on the network: products at the memory's rate slow each other
    down, convolutions hardly do.
    """
    _called(s, exe)
    costs = s.measured_costs()
    factor = slowdown(s.graph, exe.plan.placements, lowered_of(exe), costs)
    if factor is None or abs(factor / costs.contention - 1) < OTHERWISE:
        return exe
    plan = strategy(s.graph, dataclasses.replace(costs, contention=factor))
    divides = any(p.half == SPLIT for p in plan.placements)
    if not divides or bare(plan.placements) == bare(exe.plan.placements) or not s.fits(plan):
        return exe
    tried = [exe, s.candidate(plan)]
    now, again = _briefly(s, tried)
    return tried[again < WORTH * now]


def own_kernels_too(s: Attempt, exe: Executable) -> Executable:
    """An executable, or the same for which XLA also times the kernels of products that it makes itself, whichever is
    faster.
    """
    if not exe.plan.libraries:
        return exe
    tried = [exe, s.executable(dataclasses.replace(exe.plan, libraries=False))]
    libraries, all_kernels = _briefly(s, tried)
    return tried[all_kernels < WORTH * libraries]


def _balanced(s: Attempt, exe: Executable) -> Executable:
    """An executable; on a device with shares that are moved until what both halves measured agrees with them."""
    tried, seen = [exe], Seen()
    for _ in range(BALANCING if s.machine.apart else 0):
        places = _measured_shares(s, tried[-1], seen)
        moved = dataclasses.replace(exe.plan, placements=places)
        if any(places == e.plan.placements for e in tried) or not s.fits(moved):
            break
        tried.append(s.executable(moved))
    if len(tried) == 1:
        return exe
    return tried[int(np.argmin(_briefly(s, tried)))]


def _measured_shares(s: Attempt, exe: Executable, seen: Seen | None = None) -> tuple[Placement, ...]:
    """The placements of an executable's plan with shares as both halves measured them in a few calls; `seen`: what they
    measured at other shares.
    """
    _called(s, exe)
    return rebalanced(s.graph, exe.plan.placements, lowered_of(exe), seen)


def _called(s: Attempt, exe: Executable) -> None:
    """Makes a few calls, whose stamps stay."""
    s.run(exe)  # compiles
    pages.settle()
    with alone():
        for _ in range(BALANCE_CALLS):
            s.run(exe)


def _briefly(s: Attempt, tried: Sequence[Executable]) -> list[float]:
    """Seconds of each."""
    calls = {str(i): functools.partial(s.stream, e) for i, e in enumerate(tried)}
    pages.settle()
    return list(alternate(calls, 3, ROUND_SECONDS / 2, s.progress, enough=ENOUGH).values())


def briefly_balanced(s: Attempt, exe: Executable) -> Executable:
    """An executable with shares as its halves measured them, where another compilation is no long one."""
    began = time.perf_counter()
    places = _measured_shares(s, exe)
    moved = dataclasses.replace(exe.plan, placements=places)
    if time.perf_counter() - began > QUICK_COMPILATION or places == exe.plan.placements or not s.fits(moved):
        return exe
    return s.executable(moved)


__all__ = ["ENOUGH", "NEAR", "WORTH", "bounded", "briefly_balanced", "own_kernels_too", "realised"]
