"""Schedules on a clock of numbers: the same decisions as the real scheduler's, deterministic, on any device that exists
as numbers.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from .arguments import checked
from .edf import Core, Policy, Start
from .jobs import Job, Task
from .policies import policy

Load = Callable[[Start], float]  # by which factor a block takes longer than usual


@dataclasses.dataclass(frozen=True)
class Schedule:
    """What happened: the jobs in the order of their release, and every block (its start, when it ended)."""

    jobs: tuple[Job, ...]
    blocks: tuple[tuple[Start, float], ...]

    @property
    def missing_rate(self) -> float:
        """BlastNet's Equation 3, a share (0..1): (overtime + skipped) / released."""
        return missing_rate(self.jobs)

    @property
    def missing_rates(self) -> Mapping[str, float]:
        """Equation 3 as it is printed, of each task: a share (0..1) of its jobs."""
        names = dict.fromkeys(j.task.name for j in self.jobs)
        return {name: missing_rate(j for j in self.jobs if j.task.name == name) for name in names}

    @property
    def paths(self) -> Mapping[str, Mapping[frozenset[int], int]]:
        """Each task's jobs that ran to their ends, by the blocks whose twins they ran (none: own layers alone)."""
        found: dict[str, Counter[frozenset[int]]] = {j.task.name: Counter() for j in self.jobs}
        for job in self.jobs:
            if job.end is not None:
                found[job.task.name][job.twins] += 1
        return found

    @property
    def accuracy(self) -> float:
        """The mean share (0..1) over the jobs that ended, by their paths."""
        return float(np.mean([j.task.accuracy.of(j.twins) for j in self.jobs if j.end is not None] or [1.0]))

    def busy(self, half: str) -> float:
        """Seconds in which a half was at work."""
        return sum(end - s.time for s, end in self.blocks if half in s.way.halves)


def missing_rate(jobs: Iterable[Job]) -> float:
    """BlastNet's Equation 3, a share (0..1): (overtime + skipped) / released."""
    jobs = list(jobs)
    return sum(j.missed for j in jobs) / max(len(jobs), 1)


def releases(
    tasks: Sequence[Task],
    seconds: float,
    offsets: Sequence[float] = (),
    where: str = "xcoexec.streams.virtual.releases",
) -> list[Job]:
    """The periodic jobs of so many seconds, in order; `offsets`: seconds until each task releases its first one. Raises
    `TypeError` or `ValueError` for other seconds or offsets, and `ValueError` for more offsets than tasks.
    """
    seconds = checked(where, "seconds", seconds, "span")
    offsets = checked(where, "offsets", offsets, "offsets")
    if len(offsets) > len(tasks):
        raise ValueError(f"{where}: got {len(offsets)} offsets for {len(tasks)} tasks; valid is one for each.")
    jobs: list[Job] = []
    for task, offset in zip(tasks, itertools.chain(offsets, itertools.repeat(0.0)), strict=False):
        count = int(np.ceil((seconds - offset) / task.period)) if task.period else 0
        jobs += [Job(task, i, offset + i * task.period) for i in range(max(count, 0)) if task.period]
    return sorted(jobs, key=lambda j: (j.release, j.task.name, j.number))


def simulate(jobs: Sequence[Job], by: str | Policy, load: Load | None = None) -> Schedule:
    """Runs jobs that nobody has run yet under a policy; blocks take their seconds times what `load` says. Raises
    `TypeError` or `ValueError` for another policy.
    """
    core = Core(policy(by))
    blocks = []
    waiting = sorted(jobs, key=lambda j: (j.release, j.task.name, j.number))
    ends: list[tuple[float, int, Start]] = []
    count = itertools.count()
    now = 0.0
    arrived = 0
    while arrived < len(waiting) or ends or core.waiting:
        times = [waiting[arrived].release] if arrived < len(waiting) else []
        times += [ends[0][0]] if ends else []
        if not times:
            times = [min(j.deadline for j in core.waiting) + 1e-9]  # nothing will ever become idle for them
            if math.isinf(times[0]):
                for job in core.waiting:  # no deadline ends them either
                    job.skipped = True
                break
        now = max(now, min(times))
        while ends and ends[0][0] <= now:
            end, _, start = heapq.heappop(ends)
            core.finish(start, end)
            blocks.append((start, end))
        while arrived < len(waiting) and waiting[arrived].release <= now:
            core.release(waiting[arrived])
            arrived += 1
        for start in core.decide(now)[0]:
            seconds = start.job.moving(start.way) + start.way.seconds * (load(start) if load else 1.0)
            heapq.heappush(ends, (now + seconds, next(count), start))
    return Schedule(tuple(waiting), tuple(blocks))


__all__ = ["Load", "Schedule", "missing_rate", "releases", "simulate"]
