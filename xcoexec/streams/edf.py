"""Several networks with deadlines on both halves: jobs of blocks, in the order of their deadlines, placed by a policy.

After BlastNet (Ling et al., SenSys 2022, section 5.2). Jobs behind one that waits are looked at too, and nothing is
preempted; the paper says neither. `Core` knows no clock: a simulation drives it with one of
numbers, the scheduler with the real one, so that both decide alike.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..ir.words import HALVES
from .coming import Coming
from .demand import Demand
from .jobs import BOTH, Job, Task, Way

REMEMBERED = 0.95  # of what earlier blocks tell about a half's pace, from one block to the next
MOST = 8.0  # times what a block was measured to take that one delay (a page fault, another process) may count
EPSILON = 1e-9  # seconds: a job that comes when the one before it is due comes behind it, whatever the rounding
LOOKED_AT = 16  # of the jobs that wait: those with the earliest deadlines


class Start(NamedTuple):
    """A decision: a job's next block begins in a way at a time; `expected`: when it should end at the pace of now;
    `due`: seconds that it was measured to take, its values' move included."""

    job: Job
    way: Way
    time: float
    expected: float
    due: float


Choose = Callable[["Core", Job, float], Way | None]  # (core, job, now in seconds)


@dataclasses.dataclass(frozen=True)
class Policy:
    """How jobs are placed. `choose`: the way for a job's next block now, or None to wait; `whole`: a job keeps its half
    until it ends, and what it runs on each half; `ahead`: a job that cannot be in time any more is skipped at once, not
    only when its deadline is over, and the halves' time has prices; `sheds`: of more jobs than there is room for, those
    that take longest come behind all others; `foresees`: it asks which jobs are about to come; `layers`: what is placed
    are single layers; `renews`: a periodic task's job is skipped where the one before it has neither ended nor been
    discarded (BlastNet, section 5.2).
    """

    name: str
    choose: Choose
    whole: Callable[[Task], Mapping[str, tuple[Way, ...]]] | None = None
    ahead: bool = False
    sheds: bool = False
    foresees: bool = False
    layers: bool = False
    renews: bool = False


class Pace:
    """By how much blocks take longer on a half than they were measured to: the other half at the same memory, other
    processes, clocks.
    """

    def __init__(self) -> None:
        self._took = 0.0
        self._due = 0.0
        self.factor = 1.0

    def see(self, took: float, due: float) -> float:
        """A block that took so many seconds and should have taken `due` seconds; returns the factor now."""
        if due > 0:
            self._took = REMEMBERED * self._took + min(took, MOST * due)
            self._due = REMEMBERED * self._due + due
            self.factor = self._took / self._due
        return self.factor


class Core:
    """Jobs that wait (in the order in which they are asked for), what runs where, how fast the halves are, and a
    policy. `deferred`: jobs that come behind all others, because they will hardly be in time at the pace of now or
    there is no room for all.

    Between two decisions the networks push this code and its data out of the caches: what counts is how little of both
    a decision touches.
    """

    def __init__(self, policy: Policy):
        self.policy = policy
        self.ready: list[Job] = []
        self.deferred: list[Job] = []
        self.running: dict[str, Start] = {}
        self._demand = Demand() if policy.ahead else None
        self.coming = Coming() if policy.foresees else None
        self.price: Mapping[str, float] = self._demand.price if self._demand else {}
        self._seen = {half: Pace() for half in HALVES}
        self.pace = dict.fromkeys(HALVES, 1.0)  # by how much blocks take longer on a half now
        # when a half should be, behind what runs there and those who were looked at and wait for it
        self.free = dict.fromkeys(HALVES, 0.0)
        self._before: dict[str, Job] = {}  # the last job of each periodic task
        self._refused: list[Job] = []  # that nobody has been told of yet
        self._order = (lambda j: (j.at == 0, *j.key)) if policy.whole else lambda j: j.key

    def release(self, job: Job) -> None:
        """A job has come; it waits at its place in the order, or is skipped."""
        if self.policy.layers:
            job.task = job.task.by_layer
        if self.policy.renews and job.task.period and self._keeps_out(job):
            job.skipped = True
            self._refused.append(job)
            return
        if self.coming is not None:
            self.coming.see(job, self.pace)
        room = self._demand is None or self._demand.room_for(job, self.pace) or not self.policy.sheds
        bisect.insort(self.ready if room else self.deferred, job, key=self._order)

    def _keeps_out(self, job: Job) -> bool:
        """Whether the job before this one is still there; one that waits behind its deadline is discarded."""
        before = self._before.get(job.task.name)
        if before is not None and before.end is None and not before.skipped:
            if before.running or self._begun(before) or before.deadline > job.release + EPSILON:
                return True
            before.skipped = True
            self.drop(before)
            self._refused.append(before)
        self._before[job.task.name] = job
        return False

    def _begun(self, job: Job) -> bool:
        """Whether a job runs to its end whatever its deadline: a whole network that has begun."""
        return self.policy.whole is not None and job.at > 0

    @property
    def waiting(self) -> list[Job]:
        return [*self.ready, *self.deferred]

    def drop(self, job: Job) -> None:
        """Takes a job out that waits."""
        (self.ready if job in self.ready else self.deferred).remove(job)
        if self._before.get(job.task.name) is job:
            del self._before[job.task.name]

    def decide(self, now: float) -> tuple[list[Start], list[Job]]:
        """What begins now (`now`: seconds): jobs in the order of their deadlines, each in the way that the policy
        chooses; and those skipped on the way.

        Deferred jobs are begun on a half that the others leave idle, if they should be in time or nothing runs. Nobody
        looks at the jobs behind as soon as both halves are at work, nor at more than the first 16.
        """
        begun: list[Start] = []
        gone, self._refused = self._refused, []
        if len(self.running) == len(HALVES):
            return begun, gone
        for half in HALVES:
            self.free[half] = max(now, self.running[half].expected) if half in self.running else now
        while self.deferred and self._late(self.deferred[0], now):
            gone.append(self.deferred.pop(0))
        # the share of a job's least seconds that has to fit before its deadline
        share = max(min(self.pace.values()), 1.0) if self.policy.ahead else 0.0
        at = 0
        while at < min(len(self.ready), LOOKED_AT) and len(self.running) < len(HALVES):
            job = self.ready[at]
            if now + share * job.task.least[job.at] > job.deadline and not self._begun(job):
                self._doubt(self.ready.pop(at), now, gone)
            elif (way := self.policy.choose(self, job, now)) is not None:
                begun.append(self._begin(self.ready.pop(at), way, now))
            else:
                at += 1
        at = 0
        while at < min(len(self.deferred), LOOKED_AT) and len(self.running) < len(HALVES):
            job = self.deferred[at]
            way = self.policy.choose(self, job, now)
            if way is not None and (not self.running or self.expected(job, way) <= self.latest(job)):
                begun.append(self._begin(self.deferred.pop(at), way, now))
            else:
                at += 1
        return begun, gone

    def _doubt(self, job: Job, now: float, gone: list[Job]) -> None:
        """A job that will hardly be in time is skipped, or waits behind the others."""
        if self._late(job, now):
            gone.append(job)
        else:
            bisect.insort(self.deferred, job, key=self._order)

    def _late(self, job: Job, now: float) -> bool:
        """Whether a job is skipped."""
        job.skipped = self._lost(job, now)
        return job.skipped

    def _lost(self, job: Job, now: float) -> bool:
        """Whether a job's deadline is over or (ahead) it cannot be in time even at the measured pace."""
        return now + (job.task.least[job.at] if self.policy.ahead else 0.0) > job.deadline

    def alone(self, job: Job, now: float) -> bool:
        """Whether nothing runs, and no other job waits that could still be in time at `now` seconds (those that cannot
        may not have been skipped yet).
        """
        return not self.running and all(
            other is job or self._lost(other, now) for other in itertools.chain(self.ready, self.deferred)
        )

    def _begin(self, job: Job, way: Way, now: float) -> Start:
        assert self.running.keys().isdisjoint(way.halves), "a policy chose a half that is at work"
        start = Start(job, way, now, self.expected(job, way), job.due(way))
        job.running = True
        for half in way.halves:
            self.running[half] = start
            self.free[half] = start.expected
        return start

    def finish(self, start: Start, now: float, failed: bool = False) -> bool:
        """A block has ended, at `now` seconds; returns whether its job has."""
        job = start.job
        way = start.way
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
        bisect.insort(self.ready, job, key=self._order)
        return False

    def expected(self, job: Job, way: Way) -> float:
        """When, in seconds, a job's next block should end in a way: behind what its halves have before it, its values'
        move included, at the pace of now.
        """
        if way.half == BOTH:
            return max(self.free.values()) + job.due(way) * max(self.pace.values())
        return self.free[way.half] + self.takes(job, way)

    def latest(self, job: Job) -> float:
        """When, in seconds, a job's next block has to have ended, so that the others can end by the deadline at the
        pace of now.
        """
        return job.deadline - job.task.least[job.at + 1] * min(self.pace.values())

    def takes(self, job: Job, way: Way) -> float:
        """Seconds of a job's next block on one half, its values' move included, at the pace of now."""
        return job.due(way) * self.pace[way.half]


__all__ = ["Core", "Pace", "Policy", "Start"]
