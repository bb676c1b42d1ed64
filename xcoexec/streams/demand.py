"""Whether there is room for all jobs that come, for which of them where there is not, and what each half's time is
worth.

Missed deadlines count alike whatever a job takes. Of more jobs than both halves can do, the most are in time when those
that take longest give way: Moore's rule (Management Science 15, 1968) for one machine and known jobs, here for rates of
jobs on two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..ir.words import HALVES
from .jobs import Job, Task

ROOM = 0.95  # of a half's time: blocks of various lengths leave gaps
REMEMBERED_SECONDS = 1.0  # how long ago jobs came that still count for their rate, about
LOOK_SECONDS = 0.1  # between two looks at the rates
SELDOM = 1e-3  # jobs a second that need no room
NEVER = 1e3  # times longer than on the other half: for blocks that cannot run on one

Work = tuple[float, float]  # seconds on the device, or else on the host
EVEN: Mapping[str, float] = MappingProxyType(dict.fromkeys(HALVES, 1.0))


def balance(work: Iterable[Work]) -> tuple[float, float]:
    """Seconds that both halves need at least for work that may be divided at will, and the ratio (device to host) of
    what is as well on either.

    What is relatively fastest on the device goes there until both take equally long: the exact solution of the linear
    program of two unrelated machines, and of its dual. The ratio is 1 without work.
    """
    ordered = sorted(work, key=lambda w: w[0] / w[1])
    device = 0.0
    host = sum(h for _, h in ordered)
    for d, h in ordered:
        if device + d > host - h:
            return device + (host - device) / (d + h) * d, d / h
        device += d
        host -= h
    return 0.0, 1.0


def least_work(task: Task, pace: Mapping[str, float] = EVEN, within: float | None = None) -> tuple[Work, ...]:
    """Of each block: seconds on either half at a pace, by its twin where that is faster and keeps the accuracy bound.

    A half on which a block takes so long that the job cannot be in time any more (`within` seconds, or by the task's
    deadline) is no choice for it, unless no job can be in time at all.
    """
    found = []
    for k, block in enumerate(task.blocks):
        ways = [w for w in block.undivided if not w.twin or task.permits(frozenset({k}))]
        found.append(
            [min((pace[half] * w.seconds for w in ways if w.half == half), default=math.inf) for half in HALVES]
        )
    left = (within or task.deadline) - sum(map(min, found))
    longest = [min(by) + left if left >= 0 else math.inf for by in found]
    return tuple(
        (_allowed(by[0], by, most), _allowed(by[1], by, most)) for by, most in zip(found, longest, strict=True)
    )


def _allowed(seconds: float, by: Sequence[float], most: float) -> float:
    """Seconds of a block on one half, out of those on each, where they are no more than `most`."""
    return min(seconds if seconds <= most else math.inf, NEVER * min(by))


def shares(rates: Mapping[str, float], work: Mapping[str, Sequence[Work]], room: float = ROOM) -> dict[str, float]:
    """Of each task's jobs the share that there is room for, where that is not all; `rates`: jobs a second, `work`: of
    one job.

    The tasks whose jobs take least come first; one that does not fit gets what is left.
    """
    parts = {name: [(rate * d, rate * h) for d, h in work[name]] for name, rate in rates.items()}
    out: dict[str, float] = {}
    taken: list[Work] = []
    used = 0.0
    for name in sorted(parts, key=lambda n: sum(map(min, work[n]))):
        with_it, _ = balance([*taken, *parts[name]])
        share = _fitting(room, used, with_it)
        if share < 1:
            out[name] = share
        taken += [(share * d, share * h) for d, h in parts[name] if share > 0]
        used, _ = balance(taken)
    return out


def _fitting(room: float, used: float, needed: float) -> float:
    """The share of a task's jobs that there is room for, where `used` is needed without any of them and `needed` with
    all; what is needed is convex in the share, so that at least as many fit.
    """
    if needed <= room:
        return 1.0
    return (room - used) / (needed - used) if used < room else 0.0


def least_missing(tasks: Sequence[Task], pace: Mapping[str, float] = EVEN) -> float:
    """The missing rate that no schedule of these periodic tasks can go below for long, however early it knew what
    comes.

    A linear program: of each task's jobs a share, of each of its blocks a part on the device, both halves at work for a
    second each second.
    """
    from scipy.optimize import linprog

    periodic = [t for t in tasks if t.period]
    jobs = np.array([1 / (t.period or 1.0) for t in periodic])
    blocks = [least_work(t, pace) for t in periodic]
    of = np.repeat(np.arange(len(periodic)), list(map(len, blocks)))  # the task of each block
    device, host = jobs[of] * np.array([w for b in blocks for w in b]).T
    part = np.eye(len(of))
    share = np.eye(len(jobs))[of]  # no more of a block is on the device than there is of its jobs
    limits = np.block([[np.zeros(len(jobs)), device], [host @ share, -host], [-share, part]])
    found = linprog(
        [*-jobs, *np.zeros(len(of))], limits, [1, 1, *np.zeros(len(of))], bounds=[(0, 1)] * (len(jobs) + len(of))
    )
    return 1 + found.fun / jobs.sum()


class Demand:
    """Counts the jobs of each task as they come, and says for which share of them there is room at the pace of now, and
    `price`: what a second of a half is worth, in seconds of somebody's waiting (1 on average)."""

    def __init__(self) -> None:
        self._last: dict[str, Job] = {}  # of each task
        self._come: Counter[str] = Counter()  # since the last look
        self._before: dict[str, float] = {}  # jobs until then, older ones counting less
        self._began = self._looked = -math.inf
        self._shares: dict[str, float] = {}
        self._credit: dict[str, float] = {}
        self.price = dict.fromkeys(HALVES, 1.0)

    def room_for(self, job: Job, pace: Mapping[str, float]) -> bool:
        """Whether a job that comes now is among those that there is room for; `pace`: by how much the seconds of blocks
        grow on each half now.
        """
        name = job.task.name
        self._last[name] = job
        self._come[name] += 1
        if job.release - self._looked >= LOOK_SECONDS:
            self._look(job.release, pace)
        share = self._shares.get(name)
        if share is None:
            return True
        credit = self._credit.get(name, 0.0) + share
        self._credit[name] = credit % 1
        return credit >= 1

    def _look(self, now: float, pace: Mapping[str, float]) -> None:
        if math.isinf(self._looked):  # the first job says nothing about how many come
            self._began = self._looked = now
            return
        kept = math.exp((self._looked - now) / REMEMBERED_SECONDS)
        self._before = {name: kept * self._before.get(name, 0.0) + kept**0.5 * self._come[name] for name in self._last}
        self._come.clear()
        span = REMEMBERED_SECONDS * (1 - math.exp((self._began - now) / REMEMBERED_SECONDS))
        rates = {name: jobs / span for name, jobs in self._before.items() if jobs > SELDOM * span}
        work = {name: least_work(last.task, pace, last.within) for name, last in self._last.items() if name in rates}
        needed, ratio = balance((rates[name] * d, rates[name] * h) for name, blocks in work.items() for d, h in blocks)
        self._shares = shares(rates, work) if needed > ROOM else {}
        # the dual's prices: what is as well on either half costs the same there
        self.price.update(zip(HALVES, (2 / (1 + ratio), 2 * ratio / (1 + ratio)), strict=True))
        self._looked = now


__all__ = ["Demand", "Work", "balance", "least_missing", "least_work", "shares"]
