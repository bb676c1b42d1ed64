"""Jobs that are about to come: periodic tasks say when. Nothing is preempted, so that a block which begins now may
leave a job that comes a moment later without a half until it is too late.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from ..ir.words import DEVICE, HALVES, HOST
from .demand import LOOK_SECONDS, ROOM
from .jobs import Job, Task

OTHER: Mapping[str, str] = {DEVICE: HOST, HOST: DEVICE}
SHORTER = 2.0  # times: of two jobs about as long it makes no difference which is late
GONE = 3  # periods without a job: the task has ended


@dataclasses.dataclass(slots=True)
class _Next:
    """A task's next job: when it comes, how long it can wait for each half to be in time there, and the share of each
    half's time that the task takes."""

    task: Task
    release: float
    spare: dict[str, float] = dataclasses.field(default_factory=dict)
    share: dict[str, float] = dataclasses.field(default_factory=dict)

    def look(self, pace: Mapping[str, float]) -> None:
        """Takes in how fast the halves are now."""
        for half in HALVES:
            seconds = pace[half] * self.task.on_half[half]
            self.spare[half] = self.task.deadline - seconds
            self.share[half] = seconds / (self.task.period or math.inf)


class Coming:
    """The next job of each periodic task; times in seconds, as `Core` has them."""

    def __init__(self) -> None:
        self._next: dict[str, _Next] = {}
        self._looked = -math.inf
        self._least_spare = dict.fromkeys(HALVES, math.inf)

    def see(self, job: Job, pace: Mapping[str, float]) -> None:
        """A job has come; `pace`: by how much the seconds of blocks grow on each half now."""
        task = job.task
        if task.period is None:
            return
        known = self._next.get(task.name)
        if known is not None and known.task is task:
            known.release = job.release + task.period
        else:
            self._next[task.name] = _Next(task, job.release + task.period)
            self._looked = -math.inf
        if job.release - self._looked >= LOOK_SECONDS:
            self._look(job.release, pace)

    def _look(self, now: float, pace: Mapping[str, float]) -> None:
        self._next = {name: n for name, n in self._next.items() if not _over(n, now)}
        for n in self._next.values():
            n.look(pace)
        for half in HALVES:
            self._least_spare[half] = min(
                (s for n in self._next.values() if (s := n.spare[half]) >= 0), default=math.inf
            )
        self._looked = now

    def spoiled(self, job: Job, half: str, end: float, free: Mapping[str, float], now: float) -> bool:
        """Whether a job's block on a half until `end` would leave jobs that take at most half as long as its own
        (`SHORTER`) without a half, or all of them to the half that has less room for them. `free`: when each half
        should be.
        """
        if end - now <= self._least_spare[half]:
            return False  # nobody has to begin before that
        other = OTHER[half]
        here = there = 0.0
        for n in self._next.values():
            spare = n.spare[half]
            release = max(n.release, now)
            if end <= release + spare or SHORTER * n.task.least[0] > job.task.least[0] or _over(n, now):
                continue
            if n.spare[other] < 0 or free[other] > release + n.spare[other]:
                return True
            here += n.share[half]
            there += n.share[other]
        return there > ROOM and there > here


def _over(n: _Next, now: float) -> bool:
    return now - n.release > (GONE - 1) * (n.task.period or 0.0)


__all__ = ["Coming"]
