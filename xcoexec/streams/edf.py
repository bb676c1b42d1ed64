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
    def primary(self) -> Way:
        """Its own layers on their faster half."""
        return min((w for w in self.ways if not w.twin and w.half != BOTH), key=lambda w: w.seconds)

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
        return sum(min((w.seconds for w in b.ways if w.half == half and not w.twin), default=float("inf")) for b in self.blocks)

    @functools.cached_property
    def primary(self) -> str:
        return min(HALVES, key=self.seconds)

    @functools.cached_property
    def _rest(self) -> tuple[float, ...]:
        return tuple(itertools.accumulate((b.fastest for b in reversed(self.blocks)), initial=0.0))[::-1]

    def least(self, at: int) -> float:
        """Seconds that the blocks from `at` on take at least."""
        return self._rest[at]

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

    @functools.cached_property
    def deadline(self) -> float:
        return self.release + self.task.deadline

    @property
    def block(self) -> Block:
        return self.task.blocks[self.at]

    @functools.cached_property
    def key(self) -> tuple[float, str, int]:
        return (self.deadline, self.task.name, self.number)

    @property
    def missed(self) -> bool:
        return self.skipped or (self.end is not None and self.end > self.deadline)

    def moving(self, way: Way) -> float:
        """Seconds until its values are where a way needs them."""
        return self.block.moved if self.where and self.where not in way.halves else 0.0

    def due(self, way: Way) -> float:
        """Seconds that its next block was measured to take in a way, its values' move included."""
        return self.moving(way) + way.seconds

    def permits(self, way: Way) -> bool:
        """Whether the path stays within the accuracy bound, if all further blocks run their own layers."""
        return not way.twin or self.task.permits(self.twins | {self.at})


@dataclasses.dataclass(frozen=True)
class Start:
    """A decision: a job's next block begins in a way at a time; `expected`: when it should end."""

    job: Job
    way: Way
    time: float
    expected: float


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

    def see(self, took: float, due: float) -> None:
        """A block that took so many seconds and should have taken `due`."""
        if due > 0:
            self._took = REMEMBERED * self._took + min(took, MOST * due)
            self._due = REMEMBERED * self._due + due
            self.factor = self._took / self._due


class Core:
    """Jobs that wait (in the order in which they are asked for), what runs where, how fast the halves are, and a policy. `unlikely`: jobs
    that will hardly be in time at the pace of now, though they would be at the measured one."""

    def __init__(self, policy: Policy):
        self.policy = policy
        self.ready: list[Job] = []
        self.unlikely: list[Job] = []
        self.running: dict[str, Start] = {}
        self.pace = {half: Pace() for half in HALVES}
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
        while len(self.running) < len(HALVES):
            self._sort_out(now, gone)
            start = self._next(now)
            if start is None:
                break
            begun.append(start)
        return begun, gone

    def _sort_out(self, now: float, gone: list[Job]) -> None:
        """Takes late and unlikely jobs out of the first that wait."""
        while self.unlikely and self._late(self.unlikely[0], now):
            gone.append(self.unlikely.pop(0))
        share = max(self.fastest_pace, 1.0) if self.policy.early else 0.0  # of a job's least seconds that have to fit before its deadline
        while doubtful := [j for j in self.ready[:LOOKED_AT] if now + share * j.task.least(j.at) > j.deadline]:
            for job in doubtful:
                self.ready.remove(job)
                if self._late(job, now):
                    gone.append(job)
                else:
                    bisect.insort(self.unlikely, job, key=self._order)

    def _late(self, job: Job, now: float) -> bool:
        """Whether a job is skipped: its deadline is over or (early) it cannot be in time even at the measured pace."""
        job.skipped = now + (job.task.least(job.at) if self.policy.early else 0.0) > job.deadline
        return job.skipped

    def _next(self, now: float) -> Start | None:
        """The next block to begin, if any; what waited for another half looks again each time."""
        for half in HALVES:
            self.free[half] = max(now, self.running[half].expected) if half in self.running else now
        for job in self.ready[:LOOKED_AT] or (self.unlikely[:1] if not self.running else ()):
            way = self.policy.choose(self, job, now)
            if way is not None:
                return self._begin(job, way, now)
        return None

    def _begin(self, job: Job, way: Way, now: float) -> Start:
        assert self.idle(way), "a policy chose a half that is at work"
        start = Start(job, way, now, now + self.takes(job, way))
        job.running = True
        self.drop(job)
        self.running.update(dict.fromkeys(way.halves, start))
        return start

    def wait(self, job: Job, way: Way) -> None:
        """A job will wait for a way's halves: those behind it count with that."""
        for half in way.halves:
            self.free[half] += self.takes(job, way)

    def finish(self, start: Start, now: float, failed: bool = False) -> bool:
        """A block has ended; returns whether its job has."""
        job, way = start.job, start.way
        if not failed:
            for half in way.halves:
                self.pace[half].see(now - start.time, job.due(way))
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

    def idle(self, way: Way) -> bool:
        return not any(h in self.running for h in way.halves)

    def takes(self, job: Job, way: Way) -> float:
        """Seconds of a job's next block in a way, its values' move included, at the pace of now."""
        pace = max([p.factor for p in self.pace.values()]) if way.half == BOTH else self.pace[way.half].factor
        return job.due(way) * pace

    @property
    def fastest_pace(self) -> float:
        """Of the halves, now."""
        return min([p.factor for p in self.pace.values()])

    def free_at(self, way: Way) -> float:
        """When a way's halves should be free for a job."""
        return max(self.free.values()) if way.half == BOTH else self.free[way.half]


# -- policies -----------------------------------------------------------------------------------------


def _own(job: Job, half: str) -> Way | None:
    return next((w for w in job.block.ways if w.half == half and not w.twin), None)


def _if_idle(core: Core, way: Way | None) -> Way | None:
    return way if way is not None and core.idle(way) else None


def mono_sched(core: Core, job: Job, now: float) -> Way | None:
    """The whole network on its faster half."""
    return _if_idle(core, _own(job, job.task.primary))


def mono_adapt(core: Core, job: Job, now: float) -> Way | None:
    """The whole network on its faster half, or on the other one when only that is idle."""
    order = (job.where,) if job.where else sorted(HALVES, key=lambda h: h != job.task.primary)
    return next((w for w in (_if_idle(core, _own(job, h)) for h in order) if w is not None), None)


def layer_sched(core: Core, job: Job, now: float) -> Way | None:
    """Every block on its faster half."""
    return _if_idle(core, job.block.primary)


def _duo(core: Core, job: Job, order: Iterable[str]) -> Way | None:
    """A block's own layers on its primary half, its twin on the other one, whichever of them is idle first in an order of halves.

    A block without a twin (it did not deserve one: it is about as fast on either half, or short) runs its own layers there too; one whose
    twin the accuracy bound forbids waits for its primary half.
    """
    primary = job.block.primary
    others = [w for w in job.block.ways if w.half not in (primary.half, BOTH)]
    twins = [w for w in others if w.twin]
    ways = {primary.half: primary, **{w.half: w for w in (twins or others) if job.permits(w)}}
    return next((ways[h] for h in order if h in ways and core.idle(ways[h])), None)


def blastnet(core: Core, job: Job, now: float) -> Way | None:
    """Primary half first; its twin on the other half where the primary one is at work and the accuracy bound allows it (Figure 10)."""
    return _duo(core, job, sorted(HALVES, key=lambda h: h != job.block.primary.half))


def blastnet_any(core: Core, job: Job, now: float) -> Way | None:
    """Without primary-first: whichever half is idle."""
    return _duo(core, job, HALVES)


def slack(core: Core, job: Job, now: float) -> Way | None:
    """Ours: of all ways (twins, its own layers on either half, divided over both) the one that should end first, waiting included.

    A job waits for a busy half only if it ends there, behind the jobs before it, earlier than on the idle one. While nothing else is
    there, blocks may be divided, and twins are not used where their own layers are in time too.
    """
    alone = not core.running and len(core.ready) + len(core.unlikely) == 1
    ways = [w for w in job.block.ways if (alone or w.half != BOTH) and job.permits(w)]
    ends = [(core.free_at(w) + core.takes(job, w), w.twin, i) for i, w in enumerate(ways)]
    last = job.deadline - job.task.least(job.at + 1) * core.fastest_pace
    own = [e for e in ends if not e[1] and e[0] <= last] if alone else []
    way = ways[min(own or ends)[2]]
    if core.idle(way):
        return way
    core.wait(job, way)
    return None


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
    return sum(t.least(0) / t.period for t in tasks if t.period) / len(HALVES)


__all__ = ["BOTH", "HALVES", "POLICIES", "Accuracy", "Block", "Core", "Job", "Pace", "Policy", "Start", "Task", "Way", "policy", "utilisation"]
