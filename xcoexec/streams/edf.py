"""Several networks with deadlines on both halves: jobs of blocks, in the order of their deadlines, and the policies that place them.

After BlastNet (Ling et al., SenSys 2022). `Core` knows no clock: a simulation drives it with one of numbers, the scheduler with
the real one, so that both decide alike.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

HALVES = ("device", "host")
BOTH = "both"
REMEMBERED = 0.95  # of what earlier blocks tell about a half's pace, from one block to the next
MOST = 8.0  # times what a block was measured to take that one delay (a page fault, another process) may count
LOOKED_AT = 16  # of the jobs that wait: those with the earliest deadlines


@dataclasses.dataclass(frozen=True)
class Way:
    """How a block can be run: on a half (or divided over "both"), seconds, and whether by its twin instead of its own layers."""

    half: str
    seconds: float
    twin: bool = False

    @functools.cached_property
    def halves(self) -> tuple[str, ...]:
        return HALVES if self.half == BOTH else (self.half,)


@dataclasses.dataclass(frozen=True)
class Block:
    """Layers that run without interruption. `moved`: seconds to bring its input to the other half."""

    name: str
    ways: tuple[Way, ...]
    moved: float = 0.0

    @functools.cached_property
    def own(self) -> Mapping[str, Way]:
        """Its own layers, by half."""
        return {w.half: w for w in self.ways if not w.twin}

    @functools.cached_property
    def undivided(self) -> tuple[Way, ...]:
        """Its own layers and twins on one half each, twins last."""
        return tuple(sorted((w for w in self.ways if w.half != BOTH), key=lambda w: w.twin))

    @functools.cached_property
    def primary(self) -> Way:
        """Its own layers on their faster half."""
        return min((w for w in self.undivided if not w.twin), key=lambda w: w.seconds)

    @functools.cached_property
    def duo(self) -> Mapping[str, Way]:
        """Its own layers on the primary half and its twin on the other one, by half, the primary one first.

        A block without a twin (it did not deserve one: it is about as fast on either half, or short) runs its own layers there too.
        """
        others = [w for w in self.undivided if w.half != self.primary.half]
        return {self.primary.half: self.primary, **{w.half: w for w in [w for w in others if w.twin] or others}}

    @functools.cached_property
    def fastest(self) -> float:
        return min(w.seconds for w in self.ways)


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """What each execution path of a duo-model was measured to reach (a share): twins used (their blocks' numbers) -> accuracy."""

    of_paths: Mapping[frozenset[int], float] = dataclasses.field(default_factory=dict)

    def of(self, twins: frozenset[int]) -> float:
        """Of a path that was not measured: the losses of the largest measured parts of it and of each other twin alone added, the worst sum."""
        if not self.of_paths:
            return 1.0
        if twins in self.of_paths:
            return self.of_paths[twins]
        full = self.of_paths[frozenset()]
        alone = {k: max(full - self.of_paths.get(frozenset({k}), 0.0), 0.0) for k in twins}
        parts = [p for p in self.of_paths if p <= twins]
        most = max(map(len, parts))
        return min(self.of_paths[p] - sum(alone[k] for k in twins - p) for p in parts if len(p) == most)


@dataclasses.dataclass(frozen=True)
class Task:
    """Blocks that are run for every job. `period` seconds between releases (None: jobs come when they are submitted), `deadline` seconds
    after the release; `bound`: the least accuracy (a share) that a job's path may have."""

    name: str
    blocks: tuple[Block, ...]
    deadline: float
    period: float | None = None
    accuracy: Accuracy = dataclasses.field(default_factory=Accuracy)
    bound: float = 0.0

    def __post_init__(self) -> None:
        for what, got in (("deadline", self.deadline), ("period", self.period)):
            if got is not None and not 0 < got < float("inf"):
                raise ValueError(f"xcoexec.Scheduler: got {what}={got!r} for the task {self.name!r}; valid is a positive number of seconds.")
        if not self.blocks:
            raise ValueError(f"xcoexec.Scheduler: got no blocks for the task {self.name!r}; valid is at least one.")
        if self.accuracy.of(frozenset()) < self.bound:
            reached = self.accuracy.of(frozenset())
            raise ValueError(f"xcoexec.Scheduler: got the accuracy bound {self.bound:g} for the task {self.name!r}; valid is up to {reached:g}.")

    def seconds(self, half: str) -> float:
        """Of the whole on one half, by its own layers; infinite where a block cannot run there."""
        return sum(b.own[half].seconds if half in b.own else float("inf") for b in self.blocks)

    @functools.cached_property
    def halves(self) -> tuple[str, ...]:
        """The faster one for the whole first."""
        return tuple(sorted(HALVES, key=self.seconds))

    @functools.cached_property
    def least(self) -> tuple[float, ...]:
        """Seconds that the blocks from each one on take at least (0 behind the last)."""
        return tuple(itertools.accumulate((b.fastest for b in reversed(self.blocks)), initial=0.0))[::-1]

    @functools.cached_property
    def _permitted(self) -> dict[frozenset[int], bool]:
        return {}

    def permits(self, twins: frozenset[int]) -> bool:
        """Whether a path stays within the accuracy bound."""
        known = self._permitted.get(twins)
        if known is None:
            known = self._permitted[twins] = self.accuracy.of(twins) >= self.bound
        return known


@dataclasses.dataclass(eq=False)
class Job:
    """One release of a task. `at`: its next block; `where`: the half that its values lie on; `twins`: blocks that their twins ran."""

    task: Task
    number: int
    release: float
    at: int = 0
    where: str = ""
    twins: frozenset[int] = frozenset()
    running: bool = False
    end: float | None = None
    skipped: bool = False

    def __post_init__(self) -> None:
        self.deadline = self.release + self.task.deadline
        self.key = (self.deadline, self.task.name, self.number)

    @property
    def block(self) -> Block:
        return self.task.blocks[self.at]

    @property
    def missed(self) -> bool:
        return self.skipped or (self.end is not None and self.end > self.deadline)

    def moving(self, way: Way) -> float:
        """Seconds until its values are where a way needs them."""
        return self.task.blocks[self.at].moved if self.where and self.where not in way.halves else 0.0

    def permits(self, way: Way) -> bool:
        """Whether the path stays within the accuracy bound, if all further blocks run their own layers."""
        return not way.twin or self.task.permits(self.twins | {self.at})


class Start(NamedTuple):
    """A decision: a job's next block begins in a way at a time; `expected`: when it should end at the pace of now; `due`: seconds that it was
    measured to take, its values' move included."""

    job: Job
    way: Way
    time: float
    expected: float
    due: float


Choose = Callable[["Core", Job, float], Way | None]


@dataclasses.dataclass(frozen=True)
class Policy:
    """How jobs are placed. `choose`: the way for a job's next block now, or None to wait; `whole`: a job keeps its half until it ends;
    `early`: a job that cannot be in time any more is skipped at once, not only when its deadline is over."""

    name: str
    choose: Choose
    whole: bool = False
    early: bool = False


class Pace:
    """By how much blocks take longer on a half than they were measured to: the other half at the same memory, other processes, clocks."""

    def __init__(self) -> None:
        self._took, self._due = 0.0, 0.0
        self.factor = 1.0

    def see(self, took: float, due: float) -> float:
        """A block that took so many seconds and should have taken `due`; returns the factor now."""
        if due > 0:
            self._took = REMEMBERED * self._took + min(took, MOST * due)
            self._due = REMEMBERED * self._due + due
            self.factor = self._took / self._due
        return self.factor


class Core:
    """Jobs that wait (in the order in which they are asked for), what runs where, how fast the halves are, and a policy. `unlikely`: jobs
    that will hardly be in time at the pace of now, though they would be at the measured one.

    Between two decisions the networks push this code and its data out of the caches: what counts is how little of both a decision touches.
    """

    def __init__(self, policy: Policy):
        self.policy = policy
        self.ready: list[Job] = []
        self.unlikely: list[Job] = []
        self.running: dict[str, Start] = {}
        self._seen = {half: Pace() for half in HALVES}
        self.pace = dict.fromkeys(HALVES, 1.0)  # by how much blocks take longer on a half now
        self.free = dict.fromkeys(HALVES, 0.0)  # when a half should be, behind what runs there and those who were looked at and wait for it
        self._order = (lambda j: (j.at == 0, *j.key)) if policy.whole else lambda j: j.key

    def release(self, job: Job) -> None:
        bisect.insort(self.ready, job, key=self._order)

    @property
    def waiting(self) -> list[Job]:
        return [*self.ready, *self.unlikely]

    def drop(self, job: Job) -> None:
        """Takes a job out that waits."""
        (self.ready if job in self.ready else self.unlikely).remove(job)

    def decide(self, now: float) -> tuple[list[Start], list[Job]]:
        """What begins now: jobs in the order of their deadlines, each in the way that the policy chooses; and those skipped on the way.

        Unlikely jobs come behind all others, and only while nothing runs. Nobody looks at the jobs behind as soon as both halves are at
        work, nor at more than the first 16.
        """
        begun: list[Start] = []
        gone: list[Job] = []
        if len(self.running) == len(HALVES):
            return begun, gone
        for half in HALVES:
            self.free[half] = max(now, self.running[half].expected) if half in self.running else now
        while self.unlikely and self._late(self.unlikely[0], now):
            gone.append(self.unlikely.pop(0))
        share = max(min(self.pace.values()), 1.0) if self.policy.early else 0.0  # of a job's least seconds that have to fit before its deadline
        at = 0
        while at < min(len(self.ready), LOOKED_AT) and len(self.running) < len(HALVES):
            job = self.ready[at]
            if now + share * job.task.least[job.at] > job.deadline:
                self._doubt(self.ready.pop(at), now, gone)
            elif (way := self.policy.choose(self, job, now)) is not None:
                begun.append(self._begin(self.ready.pop(at), way, now))
            else:
                at += 1
        if self.unlikely and not self.running and (way := self.policy.choose(self, self.unlikely[0], now)) is not None:
            begun.append(self._begin(self.unlikely.pop(0), way, now))
        return begun, gone

    def _doubt(self, job: Job, now: float, gone: list[Job]) -> None:
        """A job that will hardly be in time is skipped, or waits behind the others."""
        if self._late(job, now):
            gone.append(job)
        else:
            bisect.insort(self.unlikely, job, key=self._order)

    def _late(self, job: Job, now: float) -> bool:
        """Whether a job is skipped: its deadline is over or (early) it cannot be in time even at the measured pace."""
        job.skipped = now + (job.task.least[job.at] if self.policy.early else 0.0) > job.deadline
        return job.skipped

    def _begin(self, job: Job, way: Way, now: float) -> Start:
        assert self.running.keys().isdisjoint(way.halves), "a policy chose a half that is at work"
        start = Start(job, way, now, self.expected(job, way), way.seconds + job.moving(way))
        job.running = True
        for half in way.halves:
            self.running[half] = start
            self.free[half] = start.expected
        return start

    def finish(self, start: Start, now: float, failed: bool = False) -> bool:
        """A block has ended; returns whether its job has."""
        job, way = start.job, start.way
        if not failed:
            for half in way.halves:
                self.pace[half] = self._seen[half].see(now - start.time, start.due)
        for half in way.halves:
            del self.running[half]
        job.running = False
        job.twins = job.twins | {job.at} if way.twin else job.twins
        job.where = job.where if way.half == BOTH and job.where else way.halves[0]
        job.at += 1
        if job.at == len(job.task.blocks) or failed:
            job.end = now
            return True
        self.release(job)
        return False

    def expected(self, job: Job, way: Way) -> float:
        """When a job's next block should end in a way: behind what its halves have before it, its values' move included, at the pace of now."""
        due = way.seconds + job.moving(way) if job.where else way.seconds
        if way.half == BOTH:
            return max(self.free.values()) + due * max(self.pace.values())
        return self.free[way.half] + due * self.pace[way.half]


# -- policies -----------------------------------------------------------------------------------------


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


def _permitted(core: Core, job: Job, order: Iterable[str]) -> Way | None:
    """A block's own layers on its primary half, its twin on the other one; where the accuracy bound forbids the twin it waits."""
    way = _first(core, job.block.duo, order)
    return way if way is None or job.permits(way) else _first(core, job.block.duo, (job.block.primary.half,))


def blastnet(core: Core, job: Job, now: float) -> Way | None:
    """Primary half first; its twin on the other half where the primary one is at work and the accuracy bound allows it (Figure 10)."""
    return _permitted(core, job, job.block.duo)


def blastnet_any(core: Core, job: Job, now: float) -> Way | None:
    """Without primary-first: whichever half is idle."""
    return _permitted(core, job, HALVES)


def slack(core: Core, job: Job, now: float) -> Way | None:
    """Ours: of all ways (twins, its own layers on either half, divided over both) the one that should end first, waiting included.

    A job waits for a busy half only if it ends there, behind the jobs before it, earlier than on the idle one. While nothing else is
    there, blocks may be divided, and twins are not used where their own layers are in time too.
    """
    if not core.running and len(core.ready) + len(core.unlikely) == 1:
        return _alone(core, job)
    first, soonest = None, float("inf")
    for way in job.task.blocks[job.at].undivided:
        if not way.twin or job.permits(way):
            end = core.expected(job, way)
            if end < soonest:
                first, soonest = way, end
    if first is not None and first.half in core.running:
        core.free[first.half] = soonest  # those behind count with its wait
        return None
    return first


def _alone(core: Core, job: Job) -> Way:
    last = job.deadline - job.task.least[job.at + 1] * min(core.pace.values())
    ends = [(core.expected(job, w), w.twin, i) for i, w in enumerate(job.block.ways) if job.permits(w)]
    return job.block.ways[min([e for e in ends if not e[1] and e[0] <= last] or ends)[2]]


POLICIES: Mapping[str, Policy] = {
    p.name: p
    for p in (
        Policy("mono_sched", mono_sched, whole=True),
        Policy("layer_sched", layer_sched),
        Policy("mono_adapt", mono_adapt, whole=True),
        Policy("blastnet_any", blastnet_any),
        Policy("blastnet", blastnet),
        Policy("slack", slack, early=True),
    )
}


def policy(name: str | Policy) -> Policy:
    if isinstance(name, Policy):
        return name
    if name not in POLICIES:
        raise ValueError(f"xcoexec.Scheduler: got policy={name!r}; valid are {', '.join(POLICIES)}.")
    return POLICIES[name]


def utilisation(tasks: Sequence[Task]) -> float:
    """The share of both halves' time that the tasks need at least, every block where it is fastest (above 1: they cannot all be met)."""
    return sum(t.least[0] / t.period for t in tasks if t.period) / len(HALVES)


__all__ = ["BOTH", "HALVES", "POLICIES", "Accuracy", "Block", "Core", "Job", "Pace", "Policy", "Start", "Task", "Way", "policy", "utilisation"]
