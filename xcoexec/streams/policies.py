"""The policies that are compared: BlastNet and its four baselines (Ling et al., SenSys 2022, sections 5.2 and 6.4), and
ours. One queue by absolute deadline for all of them.

| policy | what is placed | where | accuracy bound |
|---|---|---|---|
| `mono_sched` | a whole network | either half, as soon as it is idle | none |
| `layer_sched` | a layer | either half, as soon as it is idle | none |
| `mono_adapt` | a whole network with its twins | as `mono_sched` | none |
| `blastnet_no_pf` | a duo-block | either half, as soon as it is idle | none |
| `blastnet` | a duo-block | primary half first, else its twin on the other one | Figure 10 |
| `pinned` | a whole network | its faster half | none |
| `layer_fastest` | a layer | its faster half | none |
| `merged_blocks` | a block | its faster half | none |
| `duo_either` | a duo-block | as `blastnet_no_pf` | kept by every path |
| `slack_fair`, `slack` | a block, also divided | where it should end first | kept by every path |
| `foresight` | as `slack` | as `slack`, where jobs that are about to come are left a half | kept by every path |

The first five are the paper's (Mono_Sched, Layer_Sched, Mono_Adapt, BlastNet-w/o-PF, BlastNet); a job of theirs comes
only when its task's last one has ended or was discarded (`renews`). What the paper does not print is ours: of two idle
halves a whole network and a layer take the faster one, and a block without primary-first the first one. For
`layer_sched` the paper names no processor at all; that a layer takes any idle one is what the CPU's time in Figure
13(c) asks for (244.84 ms of a job, beside 101.78 ms on the GPU). That `blastnet_no_pf` has no bound is read from "70%
as the accuracy bound in our primary-first execution mechanism" (section 6.4). The other rows are all ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

from ..ir.words import HALVES
from .arguments import shown
from .edf import Core, Policy
from .jobs import BOTH, Job, Task, Way

Whole = Callable[[Task], Mapping[str, tuple[Way, ...]]]


def _first(core: Core, ways: Mapping[str, Way], order: Iterable[str]) -> Way | None:
    """The way on the first half, in an order of halves, that is idle."""
    return next((ways[h] for h in order if h in ways and h not in core.running), None)


def _whole(core: Core, job: Job, now: float, *, through: Whole, most: int = len(HALVES)) -> Way | None:
    """The next block of a whole network: on the half where it has begun, else on the first idle one of the `most`
    fastest that run all of it.
    """
    ways = through(job.task)
    order = (job.where,) if job.at else list(ways)[:most]
    return next((ways[h][job.at] for h in order if h not in core.running), None)


def _own(task: Task) -> Mapping[str, tuple[Way, ...]]:
    return task.monolithic


def _adapted(task: Task) -> Mapping[str, tuple[Way, ...]]:
    return task.adapted


def layer_sched(core: Core, job: Job, now: float) -> Way | None:
    """Its own layers on either half, the faster one first."""
    own = sorted((w for w in job.block.undivided if not w.twin), key=lambda w: w.seconds)
    return next((w for w in own if w.half not in core.running), None)


def faster_half(core: Core, job: Job, now: float) -> Way | None:
    """Its own layers on its faster half."""
    way = job.block.primary
    return way if way.half not in core.running else None


def blastnet(core: Core, job: Job, now: float) -> Way | None:
    """Primary half first; its twin on the other half where the primary one is at work and the highest accuracy that the
    job can still reach is within the bound (Figure 10).
    """
    ways = job.task.duo[job.at]
    return _first(core, {h: w for h, w in ways.items() if job.can_reach(w)}, ways)


def blastnet_no_pf(core: Core, job: Job, now: float) -> Way | None:
    """Whichever half is idle."""
    return _first(core, job.task.duo[job.at], HALVES)


def duo_either(core: Core, job: Job, now: float) -> Way | None:
    """Whichever half is idle; where the accuracy bound forbids the twin there, its primary one."""
    return _first(core, {h: w for h, w in job.task.duo[job.at].items() if job.permits(w)}, HALVES)


def slack(core: Core, job: Job, now: float) -> Way | None:
    """Ours: of all ways (twins, its own layers on either half, divided over both) the one that should end first,
    waiting included, and costs the others least: what it takes of a half's seconds counts too, at that half's price.

    So a job may wait for a busy half behind the jobs before it. Ways that end too late for the job are a choice only
    where all do. While nothing else is there, blocks may be divided, and twins are not used where their own layers are
    in time too.
    """
    return _first_to_end(core, job, now, _always)


def foresight(core: Core, job: Job, now: float) -> Way | None:
    """Ours: as `slack`, but no block begins that would leave much shorter jobs which are about to come without a half
    in time, unless nothing runs.
    """
    way = _first_to_end(core, job, now, _leaves_room)
    return slack(core, job, now) if way is None and not core.running else way


def _always(core: Core, job: Job, half: str, end: float, now: float) -> bool:
    return True


def _leaves_room(core: Core, job: Job, half: str, end: float, now: float) -> bool:
    """Whether shorter jobs that are about to come can be in time beside a job's block on a half until `end`."""
    return core.coming is None or not core.coming.spoiled(job, half, end, core.free, now)


def _first_to_end(core: Core, job: Job, now: float, may: Callable[[Core, Job, str, float, float], bool]) -> Way | None:
    """The way that should end first at the halves' prices, of those that may begin."""
    if core.alone(job, now):
        way = _alone(core, job)
        if way.half == BOTH or may(core, job, way.half, core.expected(job, way), now):
            return way
    last = core.latest(job)
    first = None
    least = (True, float("inf"))
    behind = 0.0
    for way in job.task.blocks[job.at].undivided:
        if not way.twin or job.permits(way):
            takes = core.takes(job, way)
            end = core.free[way.half] + takes
            worth = (end > last, end + core.price[way.half] * takes)
            if worth < least and may(core, job, way.half, end, now):
                first = way
                least = worth
                behind = end
    if first is not None and first.half in core.running:
        if behind <= last:
            core.free[first.half] = behind  # those behind count with its wait
        return None
    return first


def _alone(core: Core, job: Job) -> Way:
    """The way that ends first where nothing else is there: by the block's own layers where one of theirs is in time."""
    last = core.latest(job)
    ends = [(core.expected(job, w), w.twin, i) for i, w in enumerate(job.block.ways) if job.permits(w)]
    own_in_time = [(end, twin, i) for end, twin, i in ends if not twin and end <= last]
    *_, number = min(own_in_time or ends)
    return job.block.ways[number]


def _monolithic(name: str, through: Whole, most: int = len(HALVES), renews: bool = False) -> Policy:
    return Policy(name, functools.partial(_whole, through=through, most=most), whole=through, renews=renews)


#: BlastNet and its baselines, by the paper's names
PAPER: Mapping[str, Policy] = {
    p.name: p
    for p in (
        _monolithic("mono_sched", _own, renews=True),
        Policy("layer_sched", layer_sched, layers=True, renews=True),
        _monolithic("mono_adapt", _adapted, renews=True),
        Policy("blastnet_no_pf", blastnet_no_pf, renews=True),
        Policy("blastnet", blastnet, renews=True),
    )
}
POLICIES: Mapping[str, Policy] = {
    p.name: p
    for p in (
        *PAPER.values(),
        _monolithic("pinned", _own, most=1),
        Policy("layer_fastest", faster_half, layers=True),
        Policy("merged_blocks", faster_half),
        Policy("duo_either", duo_either),
        Policy("slack_fair", slack, ahead=True),
        Policy("slack", slack, ahead=True, sheds=True),
        Policy("foresight", foresight, ahead=True, sheds=True, foresees=True),
    )
}


def policy(name: str | Policy) -> Policy:
    """A policy by its name. Raises `ValueError` for an unknown name, `TypeError` for what is neither a name nor a
    policy.
    """
    if isinstance(name, Policy) and callable(name.choose):
        return name
    if not isinstance(name, str) or name not in POLICIES:
        error = ValueError if isinstance(name, str) else TypeError
        raise error(
            f"xcoexec.Scheduler: got policy={shown(name)}; valid are {', '.join(POLICIES)}, or a Policy whose `choose`"
            " is a function."
        )
    return POLICIES[name]


__all__ = ["PAPER", "POLICIES", "policy"]
