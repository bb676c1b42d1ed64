"""A fleet of many hosts as numbers: a driver that hands batches out, actors that start and compute, bytes.

What goes in is measured on one host (`Measured`, made by `benchmarks.fleet_costs`). `calculated` is arithmetic on it,
`simulated` replays the fleet event by event: the driver does one thing at a time, an actor has up to `DEPTH` batches,
and one that dies starts again while its batches are handed out anew. Hosts are taken to be alike, links between them to
be free: bytes are counted, not timed.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Sequence
from typing import Any

from xcoexec.ir.text import columns

DEPTH = 2  # batches that an actor has at most, one of them in work: Ray Data's own default
HOSTS = (1, 2, 4, 8, 16, 32, 64)
MOST_BATCHES = 400  # of a host, that are replayed
BUSY = 0.75  # of the driver's time that batches may take, where it is to keep up
READY, HANDED, DONE, DIES = range(4)


@dataclasses.dataclass(frozen=True)
class Measured:
    """What one host says. `batch`: items of a batch; `calls`: seconds of an actor for a batch, one by one; `actors`: of
    a host; `start`: seconds from an actor's making to its first answer with a plan that came along, `start_alone`:
    until a plan of its own is in use; `making`: seconds of the driver for an actor; `handing`: seconds of the driver
    for a batch, and `handing_actor` more for each actor there is; `weights`: bytes in an object store; `item`: bytes of
    an item and its result.
    """

    model: str
    batch: int
    calls: tuple[float, ...]
    actors: int
    start: float
    start_alone: float
    making: float
    handing: float
    handing_actor: float
    weights: int
    item: int

    def batch_seconds(self) -> float:
        """Mean seconds of an actor for a batch."""
        return sum(self.calls) / len(self.calls)

    def driver_seconds(self, hosts: int) -> float:
        """Seconds of the driver for a batch, with so many hosts."""
        return self.handing + self.handing_actor * self.actors * hosts


@dataclasses.dataclass(frozen=True)
class Fleet:
    """What so many hosts do. `rate`: items a second once all have started; `core_ms`: milliseconds of a core for an
    item, once all have started; `started`: seconds until all have; `driver`: the share of that time in which the driver
    has work; `store`: bytes that object stores carry for weights, once a host; `done`: how often each batch was
    computed to its end.
    """

    hosts: int
    rate: float
    core_ms: float
    started: float
    driver: float
    store: int
    done: tuple[int, ...] = ()


def limit(measured: Measured) -> float:
    """The number of hosts, not always whole, that give the driver all the work that it can do: the positive root of
    hosts * actors * driver_seconds(hosts) = batch_seconds.
    """
    a, b = measured.handing_actor * measured.actors**2, measured.handing * measured.actors
    return 2 * measured.batch_seconds() / (b + math.sqrt(b * b + 4 * a * measured.batch_seconds()))


def batch_for(measured: Measured, hosts: int) -> int:
    """The least batch with which the driver keeps up with so many hosts and is busy for `BUSY` of the time, calculated
    for actors whose seconds grow as the batch does: an item then costs the same on so many hosts as on one.
    """
    needed = hosts * measured.actors * measured.driver_seconds(hosts) / BUSY
    return max(measured.batch, math.ceil(measured.batch * needed / measured.batch_seconds()))


def calculated(measured: Measured, hosts: int, planned: bool = True) -> Fleet:
    """By arithmetic: the lesser of what the actors compute and what the driver hands out."""
    actors, each = hosts * measured.actors, measured.driver_seconds(hosts)
    batches = min(actors / measured.batch_seconds(), 1 / each)  # a second
    started = measured.making * actors + (measured.start if planned else measured.start_alone)
    rate = measured.batch * batches
    return Fleet(hosts, rate, 1e3 * actors / rate, started, batches * each, measured.weights * hosts)


class _Replay:
    """Events of a fleet, in the order of their time."""

    def __init__(self, measured: Measured, hosts: int, batches: int, start: float, seed: int):
        self.measured, self.each, self.start = measured, measured.driver_seconds(hosts), start
        self.random = random.Random(seed)
        self.actors = hosts * measured.actors
        self.waiting = deque(range(batches))
        self.done = [0] * batches
        self.ended: list[float] = []  # when each batch was done
        self.lives = [0] * self.actors  # how often each actor has died: what belongs to an earlier life is void
        self.has: list[deque[int]] = [deque() for _ in range(self.actors)]  # the first one is in work
        self.slots: deque[tuple[int, int]] = deque()  # actors that may be given a batch, with their lives
        self.free, self.handing = measured.making * self.actors, False
        self.started = 0.0
        self.count = itertools.count()
        self.events: list[tuple[float, int, int, int, int, int]] = []
        for actor in range(self.actors):
            self.at(measured.making * (actor + 1) + start, READY, actor)

    def at(self, time: float, kind: int, actor: int, batch: int = -1) -> None:
        """Something to come."""
        life = self.lives[actor]
        heapq.heappush(self.events, (time, next(self.count), kind, actor, life, batch))

    def run(self) -> None:
        """All of it, until no batch is left."""
        while self.events and len(self.ended) < len(self.done):
            time, _, kind, actor, life, batch = heapq.heappop(self.events)
            there = life == self.lives[actor]
            if kind == HANDED:
                self.handing = False
                self.given(time, actor, batch) if there else self.waiting.appendleft(batch)
            elif kind == DIES:
                self.dies(time, actor)
            elif there and kind == READY:
                self.started = max(self.started, time)
                self.slots.extend([(actor, life)] * DEPTH)
            elif there and kind == DONE:
                self.finished(time, actor, batch)
            self.hand(time)

    def hand(self, time: float) -> None:
        """The driver takes the next batch for the next actor that may have one."""
        while self.slots and self.slots[0][1] != self.lives[self.slots[0][0]]:
            self.slots.popleft()
        if self.handing or not self.waiting or not self.slots:
            return
        actor, _ = self.slots.popleft()
        self.handing, self.free = True, max(time, self.free) + self.each
        self.at(self.free, HANDED, actor, self.waiting.popleft())

    def given(self, time: float, actor: int, batch: int) -> None:
        """A batch has come to its actor."""
        self.has[actor].append(batch)
        if len(self.has[actor]) == 1:
            self.work(time, actor)

    def work(self, time: float, actor: int) -> None:
        """The actor begins with the first of its batches."""
        seconds = self.random.choice(self.measured.calls)
        self.at(time + seconds, DONE, actor, self.has[actor][0])

    def finished(self, time: float, actor: int, batch: int) -> None:
        """A batch is done, and the actor may be given another one."""
        self.done[batch] += 1
        self.ended.append(time)
        self.has[actor].popleft()
        self.slots.append((actor, self.lives[actor]))
        if self.has[actor]:
            self.work(time, actor)

    def dies(self, time: float, actor: int) -> None:
        """An actor dies: what it had waits again, and it starts again."""
        self.lives[actor] += 1
        self.waiting.extendleft(reversed(self.has[actor]))
        self.has[actor].clear()
        self.at(time + self.start, READY, actor)


def simulated(
    measured: Measured,
    hosts: int,
    batches: int,
    *,
    planned: bool = True,
    deaths: Sequence[tuple[float, int]] = (),
    seed: int = 0,
) -> Fleet:
    """So many batches through so many hosts. `deaths`: the seconds at which an actor dies, and which one. Rates are
    those of the time in which the second and third quarter of the batches are done: all have started, none idles for
    lack of batches.
    """
    replay = _Replay(measured, hosts, batches, measured.start if planned else measured.start_alone, seed)
    for time, actor in deaths:
        replay.at(time, DIES, actor)
    replay.run()
    first, last = len(replay.ended) // 4, 3 * len(replay.ended) // 4
    seconds = (replay.ended[last] - replay.ended[first]) / (last - first)  # for a batch
    rate, busy, store = measured.batch / seconds, replay.each / seconds, measured.weights * hosts
    core_ms = 1e3 * hosts * measured.actors / rate
    return Fleet(hosts, rate, core_ms, replay.started, busy, store, tuple(replay.done))


def table(measured: Measured, whole: float, seconds: float = 30.0) -> list[dict[str, object]]:
    """For each number of hosts what is measured (`whole`: items a second of one host), calculated and simulated; each
    host is given work for so many seconds, and `MOST_BATCHES` at most.
    """
    rows: list[dict[str, object]] = []
    for hosts in HOSTS:
        batches = min(max(int(seconds * measured.actors / measured.batch_seconds()), 8), MOST_BATCHES) * hosts
        ways = {
            "calculated": (calculated(measured, hosts), calculated(measured, hosts, planned=False)),
            "simulated": (simulated(measured, hosts, batches), simulated(measured, hosts, batches, planned=False)),
        }
        row: dict[str, object] = {"hosts": hosts, "store": measured.weights * hosts, "batches": batches}
        for way, (along, alone) in ways.items():
            numbers = dict(rate=along.rate, core_ms=along.core_ms, driver=along.driver)
            row[way] = {**numbers, "started": along.started, "started_alone": alone.started}
        if hosts == 1:
            core_ms = 1e3 * measured.actors / whole
            row["measured"] = dict(
                rate=whole, core_ms=core_ms, started=measured.start, started_alone=measured.start_alone
            )
        rows.append(row)
    return rows


#: what a fleet is asked for -> (as a table says it, its format)
SHOWN = {
    "core_ms": ("core-ms an item", ".3f"),
    "rate": ("items/s", ".0f"),
    "started": ("start-up s", ".2f"),
    "started_alone": ("without a plan", ".2f"),
    "driver": ("driver busy", ".0%"),
}
WAYS = ("measured", "calculated", "simulated")


def text(measured: Measured, rows: Sequence[dict[str, Any]]) -> str:
    """A line for each quantity and number of hosts: measured (one host, this one), calculated and simulated."""
    lines = [["", "hosts", *WAYS]]
    for key, (said, form) in SHOWN.items():
        for row in rows:
            cells = (format(row[way][key], form) if key in row.get(way, {}) else "-" for way in WAYS)
            lines.append([said, str(row["hosts"]), *cells])
    for row in rows:
        lines.append(["weights carried, MB", str(row["hosts"]), "-", f"{row['store'] / 1e6:.1f}", "-"])
    return (
        f"{measured.model}, {measured.actors} actors a host, batches of {measured.batch}; measured:"
        f" {1e3 * measured.batch_seconds():.1f} ms a batch in an actor, {1e3 * measured.handing:.2f} ms of the driver"
        f" a batch and {1e3 * measured.handing_actor:.3f} more for each actor, {1e3 * measured.making:.0f} ms an actor"
        f" made,\n{measured.weights / 1e6:.2f} MB of weights in the object store (none where a file is mapped),"
        f" {measured.item} bytes an item. Calculated: a driver keeps up with {limit(measured):.1f} hosts,"
        f" with {HOSTS[-1]} from batches of {batch_for(measured, HOSTS[-1])} on.\n" + columns(lines, (1, 2, 3, 4))
    )
