"""From a strategy's name to the executable that is used: predictions choose candidates, a measurement decides."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence

from ..codegen.runtime import pages
from ..cost.bounds import pays
from ..errors import PlanError
from ..guard import asked
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan, UniformPlan
from ..ir.validate import check_plan
from ..ir.words import DEVICE, HOST, SPLIT
from ..lowering.executable import Executable
from ..measure.profile import host_placements
from ..measure.timing import ROUNDS, WINS, alternate, empty_call
from ..planning.memory import usage
from ..planning.strategies import CONTEST, RIVALS, STRATEGIES, Strategy, strategy_name
from .attempt import Attempt
from .realise import ENOUGH, NEAR, WORTH, bounded, briefly_balanced, own_kernels_too, realised
from .rebalance import rebalanced
from .ways import (
    AS_GRAPHS,
    IN_PROGRAMS,
    SINGLY,
    TURNED,
    as_graphs,
    callers,
    folded,
    in_programs,
    on_device,
    one_by_one,
    running,
    step_as_graphs,
    under,
)

QUICK_SECONDS = 0.02
CLEAR = 0.85  # a winner below this share of jax.jit's time needs no further candidate
MOST_PLANS = 2  # of strategies that are compiled and measured on a device of its own
WORTH_COMPILING = 0.97  # of the device half's predicted seconds, above which a plan of both halves is not compiled
SLOW = 1.5  # times the fastest one's time: what takes longer each time, twice at least, is out of the comparison
FEW, FEW_ROUNDS, FEW_WINS = 8, 3, 2  # the same of an early comparison, which the caller's own calls repeat
FOLDED = 0.9  # of jax.jit's time: the folded graph on a device, which is XLA's once more and whose calls need a look
ALONE = 1.05  # times the seconds of a plan of both halves that one half alone may take beside a device
OWN_KERNELS = ", with XLA's own products"  # what names of candidates end with for which XLA timed such kernels too
NEAR_OWN = 1.08  # times the fastest one's seconds, up to which that is tried
OTHER_WAYS = (AS_GRAPHS, SINGLY, IN_PROGRAMS, OWN_KERNELS)  # the same plan once more, which has to be clearly faster


def forced(graph: LayerGraph, request: Plan | UniformPlan) -> Plan:
    """A plan given by the user, checked; `Plan.uniform` is spelled out for the graph's layers. Raises `PlanError` for a
    plan that does not fit the graph.
    """
    if isinstance(request, Plan):
        check_plan(request, graph)
        return request
    places = []
    for x in graph.layers:
        if x.host_error or request.p_cpu <= 0:
            places.append(Placement(x.name, DEVICE, 0.0, note=x.host_error))
        elif request.p_cpu >= 1:
            places.append(Placement(x.name, HOST, 1.0))
        elif request.dim in x.dims:
            places.append(Placement(x.name, SPLIT, request.p_cpu, request.dim))
        else:
            places.append(Placement(x.name, DEVICE, 0.0, note=f"cannot be split along {request.dim}"))
    return Plan("forced", tuple(places), graph.key, chosen=f"every layer split {request.p_cpu:g} by {request.dim}")


def choose(s: Attempt, strategy: str | Strategy, request: Plan | UniformPlan | None) -> Executable:
    """The executable for a strategy (a name, or any function of graph and costs) or a forced plan. Raises `Asked` for
    what of the caller's does not fit the function or the device's memory.
    """
    if request is not None:
        plan = asked(forced, s.graph, request)
        asked(_check_fits, s, plan)
        return s.executable(plan)
    return _single(s, strategy)


def _single(s: Attempt, strategy: str | Strategy) -> Executable:
    if s.problem.hostless:
        return s.executable(
            Plan(
                strategy_name(strategy),
                host_placements(s.graph),
                s.graph.key,
                chosen="no layer that kernels can express",
            )
        )
    if strategy == "host" and s.problem.step:
        return s.all_host  # whatever its layers take: nothing has to be measured, which needs a state
    costs = s.measured_costs()
    if isinstance(strategy, str):
        plan = STRATEGIES[strategy](s.graph, costs)
        check_plan(plan, s.graph)
    else:
        plan = asked(strategy, s.graph, costs)
        asked(check_plan, plan, s.graph)
    asked(_check_fits, s, plan)
    if strategy == "capacity":
        return bounded(s, plan)
    if strategy == "host" and plan.placements == s.all_host.plan.placements:
        return s.all_host
    return own_kernels_too(s, realised(s, plan, strategy))


def _check_fits(s: Attempt, plan: Plan) -> None:
    if not s.fits(plan):
        need = usage(s.graph, plan.placements)
        raise PlanError(
            f"device_memory: got {s.machine.limit} bytes and a plan ({plan.strategy}) that keeps {need.total} there "
            f"({need.text}); "
            'valid are strategies that leave or stream weights: "auto", "capacity", "host".'
        )


def whole_halves(s: Attempt) -> dict[str, Executable]:
    """Plain jax.jit, everything possible on the host half, and the CPU alone where inputs are and it can have all."""
    found = {"jit": s.plain, "host": s.all_host}
    return found | {"local": s.local} if s.machine.apart and s.problem.on_host and s.problem.all_kernels else found


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The winner of a contest for callers who wait, with the candidates by name and seconds of a call of each; none
    where nothing was compared that calls in flight may want.
    """

    exe: Executable
    candidates: Mapping[str, Executable] = dataclasses.field(default_factory=dict)
    best: str = ""
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)


def contest(s: Attempt) -> Found:
    """Times plain jax.jit and the candidates alternately, in seconds, and takes the winner."""
    if s.too_large:
        return Found(_within(s))
    if s.problem.hostless:
        return Found(s.plain)
    candidates = whole_halves(s)
    # no layer has to be measured if a whole half wins clearly again
    if s.problem.sibling and s.problem.all_kernels:
        seconds = times(s, candidates)
        best = min(seconds, key=lambda k: seconds[k])
        if seconds[best] < CLEAR * seconds["jit"]:
            return _chosen(candidates, best, seconds)
    costs = s.measured_costs()
    candidates["host"] = under(s.all_host, STRATEGIES["host"](s.graph, costs))
    for name, plan in _promising(s, costs) or _if_halves_agree(s, costs):
        if _worth_a_try(plan, [c.plan for c in candidates.values()], not s.machine.apart):
            candidates[name] = realised(s, plan, name)
    seconds = times(s, candidates)
    s.plain_ready = True
    # a near thing: XLA on the folded graph may be better than on the function, of which a step's weights are no part
    if min(seconds.values()) > CLEAR * seconds["jit"] and not s.problem.step:
        candidates["device"] = folded(s)
        seconds |= _beside_the_best(s, candidates, seconds, (DEVICE,))
    launched = as_graphs(s, candidates, seconds) | one_by_one(s)
    if launched:
        candidates |= launched
        seconds |= _beside_the_best(s, candidates, seconds, launched)
    several = in_programs(s, candidates, seconds)
    if several:
        candidates |= several
        seconds |= _beside_the_best(s, candidates, seconds, several)
    return _chosen(candidates, best_of(s, seconds), seconds)


def _beside_the_best(
    s: Attempt, candidates: Mapping[str, Executable], seconds: Mapping[str, float], names: Iterable[str]
) -> dict[str, float]:
    """Seconds of further candidates, and of what they have to beat, measured in turn."""
    fastest = min(seconds, key=seconds.__getitem__)
    return times(s, {k: candidates[k] for k in dict.fromkeys((fastest, "jit", *names))})


def with_own_kernels(s: Attempt, found: Found) -> Found:
    """The winner of a contest, with the fastest plan that runs on the device compiled once more, so that XLA times the
    kernels of products that it makes itself beside those of libraries. It alone takes as long as that takes.
    """
    own = {k: t for k, t in found.seconds.items() if found.candidates and found.candidates[k].plan.libraries}
    own = {k: t for k, t in own.items() if on_device(found.candidates[k].plan)}
    name = min(own, key=own.__getitem__, default="")
    if not name or own[name] > NEAR_OWN * min(found.seconds.values()):
        return found
    plan = dataclasses.replace(found.candidates[name].plan, libraries=False)
    exe = running(s, f"{name}{OWN_KERNELS}", plan)
    if exe is None:
        return found
    candidates = {**found.candidates, f"{name}{OWN_KERNELS}": exe}
    seconds = {**found.seconds, **_beside_the_best(s, candidates, found.seconds, (name, f"{name}{OWN_KERNELS}"))}
    return _chosen(candidates, best_of(s, seconds), seconds)


def best_of(s: Attempt, seconds: Mapping[str, float]) -> str:
    """The name of the one that is taken: the fastest that is clearly faster than plain jax.jit, or that. On a device
    its folded graph has to be faster by more, and what needs one half alone goes before what needs both at their best.
    """
    usual = dict(seconds)
    if s.machine.apart:
        lowered = s.all_device.lowered
        bar = lambda k: TURNED if IN_PROGRAMS in k or (lowered is not None and lowered.turned) else FOLDED
        usual = {k: t for k, t in usual.items() if k.split(",")[0] != DEVICE or t <= bar(k) * usual["jit"]}
    handicap = lambda k: (
        WORTH if any(way in k for way in OTHER_WAYS) else ALONE if k in ("host", "local") and s.machine.apart else 1.0
    )
    order = sorted(usual.keys() - {"jit"}, key=lambda k: (usual[k] / handicap(k), k))
    return next((k for k in order if usual[k] < WORTH * usual["jit"]), "jit")


def quick_candidates(s: Attempt) -> dict[str, Executable]:
    """What can be had before layers are measured on the device: plain jax.jit, what else of `whole_halves` was faster,
    a step that is launched as graphs, and the first of these that is predicted to win clearly: whole layers on either
    half, for whose kernels XLA knows already which are the fastest; the strategies' plan that is predicted to be the
    fastest, of which XLA times kernels for seconds. Where none is, the folded graph on the device, but of a step: of
    that nothing is folded.
    """
    plain = s.seen["jit"]
    found = {k: e for k, e in whole_halves(s).items() if s.seen.get(k, plain) <= plain} | step_as_graphs(s)
    costs = s.quick_costs(max(plain - empty_call(), plain / 2))
    switched = ("layer_switch", STRATEGIES["layer_switch"](s.graph, costs))
    for name, plan in (switched, *_promising(s, costs)[:1]):
        wins = (plan.predicted or math.inf) + empty_call() < CLEAR * plain
        if wins and _worth_a_try(plan, [s.all_host.plan], False):
            return found | {name: briefly_balanced(s, s.candidate(plan))}
    return found if s.problem.step else found | {"device": s.all_device}


def _promising(s: Attempt, costs: Costs) -> list[tuple[str, Plan]]:
    """The strategies' plans; on a device, where each costs a compilation of seconds, the `MOST_PLANS` that are
    predicted to be the fastest, and none where nothing can be gained.
    """
    if not s.machine.apart:
        return [(name, STRATEGIES[name](s.graph, costs)) for name in CONTEST]
    return _winning(s, costs, CONTEST) if pays(costs) else []


def _if_halves_agree(s: Attempt, costs: Costs) -> list[tuple[str, Plan]]:
    """The plan for halves that do not slow each other down, for a device on which none is promising: by how much they
    do depends on the network, and this plan's calls tell.
    """
    return _winning(s, dataclasses.replace(costs, contention=1.0), RIVALS) if s.machine.apart and pays(costs) else []


def _winning(s: Attempt, costs: Costs, names: Iterable[str]) -> list[tuple[str, Plan]]:
    """The `MOST_PLANS` plans of strategies that are predicted to beat the device half, the fastest first."""
    whole = WORTH_COMPILING * (STRATEGIES["device"](s.graph, costs).predicted or math.inf)
    plans = ((name, STRATEGIES[name](s.graph, costs)) for name in names)
    split = [(name, p) for name, p in plans if _worth_a_try(p, [], False) and (p.predicted or math.inf) < whole]
    split.sort(key=lambda found: found[1].predicted or 0.0)
    return [(name, p) for name, p in split if (p.predicted or 0.0) < NEAR * (split[0][1].predicted or 0.0)][:MOST_PLANS]


def _within(s: Attempt) -> Executable:
    """The fastest plan of those that keep within the device's memory; plain jax.jit does not."""
    costs = s.measured_costs()
    candidates = {
        "capacity": bounded(s, STRATEGIES["capacity"](s.graph, costs)),
        "host": under(s.all_host, STRATEGIES["host"](s.graph, costs)),
    }
    if not s.fits(candidates["host"].plan):
        del candidates["host"]
    if s.problem.on_host and s.problem.all_kernels:
        candidates["local"] = s.local
    seconds = times(s, candidates)
    best = min(seconds, key=lambda k: seconds[k])
    exe = candidates[best]
    too_much = f"plain jax.jit needs more than {s.machine.limit} bytes on the device"
    reason = f"fastest of {', '.join(seconds)} by measurement; {too_much}"
    note = f"; {exe.plan.chosen}" if best == "capacity" else ""
    return dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=seconds, chosen=reason + note))


def known(s: Attempt, exe: Executable, past: Sequence[Executable]) -> Executable:
    """The fastest of what is there already: an executable, those used before it, plain jax.jit."""
    candidates = {"now": exe, **{f"before {i}": p for i, p in enumerate(past, 1)}}
    if not s.too_large and exe.lowered is not None and s.plain_ready:
        candidates["jit"] = s.plain
    return _better(s, candidates)


def moved(s: Attempt, exe: Executable) -> Executable:
    """An executable, or the same plan with each split's share as its halves now need it, whichever is faster."""
    if exe.lowered is None or not s.machine.apart:
        return exe
    plan = dataclasses.replace(exe.plan, placements=rebalanced(s.graph, exe.plan.placements, exe.lowered))
    if plan.placements == exe.plan.placements or not s.fits(plan):
        return exe
    return _better(s, {"now": exe, "shares moved": s.executable(plan)})


def _better(s: Attempt, candidates: Mapping[str, Executable]) -> Executable:
    """The fastest of a few, the one in use where it is a near thing."""
    if len(candidates) == 1:
        return candidates["now"]
    for exe in candidates.values():
        if exe.may is not None and exe.compiled is not None:
            exe.compiled(s.problem.example)  # no caller waits for it
    pages.settle()
    seconds = alternate(
        {k: functools.partial(s.stream, c) for k, c in candidates.items()},
        2,
        QUICK_SECONDS,
        s.progress,
        callers=callers(candidates),
    )
    if "now" not in seconds:  # nobody came who could call it
        return candidates["now"]
    name = min(seconds, key=lambda k: seconds[k] * (WORTH if k == "now" else 1.0))
    plan = dataclasses.replace(
        candidates[name].plan, measured=seconds, chosen=f"{name}: the fastest of {', '.join(seconds)}"
    )
    return candidates[name] if name == "now" else dataclasses.replace(candidates[name], plan=plan)


def _chosen(candidates: Mapping[str, Executable], best: str, seconds: Mapping[str, float]) -> Found:
    reason = (
        f"fastest of {', '.join(seconds)} by measurement" if best != "jit" else "no plan beats jax.jit by measurement"
    )
    reason += "; kernels are launched as graphs" * candidates[best].plan.graphs
    reason += "; kernels are launched one by one" * candidates[best].plan.singly
    reason += f"; a call is {candidates[best].plan.programs} programs" * (candidates[best].plan.programs > 1)
    return Found(why(candidates[best], seconds, reason), candidates, best, seconds)


def why(exe: Executable, seconds: Mapping[str, float], reason: str) -> Executable:
    """An executable whose plan says what was measured, in seconds, and why it was chosen."""
    return dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, measured=seconds, chosen=reason))


def times(s: Attempt, candidates: Mapping[str, Executable], early: bool = False) -> dict[str, float]:
    """Seconds of a call of each that could be called, fewer calls for an `early` plan; what was `SLOW` before in this
    planning is not measured again, but for plain jax.jit, with which all are compared.
    """
    calls = {k: functools.partial(s.stream, e) for k, e in candidates.items() if k == "jit" or k not in s.slow}
    enough, rounds, wins = (FEW, FEW_ROUNDS, FEW_WINS) if early else (ENOUGH, ROUNDS, WINS)
    rounds = rounds if len(calls) > 1 else 1
    warm = {"jit"} & set(s.seen)
    pages.settle()
    seconds = alternate(
        calls,
        rounds,
        progress=s.progress,
        clear=CLEAR,
        enough=enough,
        slow=SLOW,
        wins=wins,
        warm=warm,
        callers=callers(candidates),
    )
    s.untried |= len(seconds) < len(calls)
    s.seen |= seconds
    s.slow |= {k: t for k, t in seconds.items() if t > SLOW * min(seconds.values())}
    return {k: t for k in candidates if (t := seconds.get(k, s.slow.get(k))) is not None}


def _worth_a_try(plan: Plan, others: Sequence[Plan], predicted: bool) -> bool:
    """Different from what is measured anyway; with `predicted` also predicted to win (on a device the strategies'
    predictions are too close).
    """
    shape = [(p.half, p.p_cpu) for p in plan.placements]
    if all(h == DEVICE for h, _ in shape) or any([(p.half, p.p_cpu) for p in o.placements] == shape for o in others):
        return False
    if not predicted:
        return True
    rivals = [o.predicted for o in others if o.predicted is not None]
    return plan.predicted is None or all(plan.predicted < 0.97 * r for r in rivals)


__all__ = ["CLEAR", "WORTH", "Found", "best_of", "choose", "contest", "forced", "known", "moved"]
__all__ += ["quick_candidates", "times", "whole_halves", "why", "with_own_kernels"]
