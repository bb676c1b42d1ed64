"""The policies that are compared: BlastNet's (Ling et al., SenSys 2022, section 5.2), some like those that it compares
itself with (section 6.4), and ours.

By the names of section 6.4, `mono_adapt` here is Mono_Sched, `layer_sched` is Layer_Sched with blocks instead of
layers, and `blastnet_any` is BlastNet-w/o-PF with an accuracy bound, which belongs to primary-first there. `mono_sched`
is none of them, and Mono_Adapt, which runs whole networks with their twins, is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.words import HALVES
from .arguments import shown
from .edf import Core, Policy
from .jobs import Job, Way


def _first(core: Core, ways: Mapping[str, Way], order: Iterable[str]) -> Way | None:
    """The way on the first half, in an order of halves, that is idle."""
    return next((ways[h] for h in order if h in ways and h not in core.running), None)


def mono_sched(core: Core, job: Job, now: float) -> Way | None:
    """The whole network on its faster half."""
    return _first(core, job.block.own, job.task.halves[:1])


def mono_adapt(core: Core, job: Job, now: float) -> Way | None:
    """The whole network on its faster half, or on the other one when only that is idle."""
    return _first(core, job.block.own, (job.where,) if job.where else job.task.halves)


def layer_sched(core: Core, job: Job, now: float) -> Way | None:
    """Every block on its faster half."""
    way = job.block.primary
    return way if way.half not in core.running else None


def _duo(core: Core, job: Job, order: Iterable[str] | None = None) -> Way | None:
    """A block's own layers on its primary half or its twin on the other one; where the accuracy bound forbids the twin
    it waits.
    """
    ways = job.task.duo[job.at]
    way = _first(core, ways, order or ways)
    return way if way is None or job.permits(way) else _first(core, ways, (job.block.primary.half,))


def blastnet(core: Core, job: Job, now: float) -> Way | None:
    """Primary half first; its twin on the other half where the primary one is at work and the accuracy bound allows it
    (Figure 10).
    """
    return _duo(core, job)


def blastnet_any(core: Core, job: Job, now: float) -> Way | None:
    """Without primary-first: whichever half is idle."""
    return _duo(core, job, HALVES)


def slack(core: Core, job: Job, now: float) -> Way | None:
    """Ours: of all ways (twins, its own layers on either half, divided over both) the one that should end first,
    waiting included, and costs the others least: what it takes of a half's seconds counts too, at that half's price.

    So a job may wait for a busy half behind the jobs before it. Ways that end too late for the job are a choice only
    where all do. While nothing else is there, blocks may be divided, and twins are not used where their own layers are
    in time too.
    """
    if core.alone(job, now):
        return _alone(core, job)
    last = core.latest(job)
    first = None
    least = (True, float("inf"))
    behind = 0.0
    for way in job.task.blocks[job.at].undivided:
        if not way.twin or job.permits(way):
            takes = core.takes(job, way)
            end = core.free[way.half] + takes
            worth = (end > last, end + core.price[way.half] * takes)
            if worth < least:
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


POLICIES: Mapping[str, Policy] = {
    p.name: p
    for p in (
        Policy("mono_sched", mono_sched, whole=True),
        Policy("layer_sched", layer_sched),
        Policy("mono_adapt", mono_adapt, whole=True),
        Policy("blastnet_any", blastnet_any),
        Policy("blastnet", blastnet),
        Policy("slack_fair", slack, ahead=True),
        Policy("slack", slack, ahead=True, sheds=True),
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


__all__ = ["POLICIES", "policy"]
