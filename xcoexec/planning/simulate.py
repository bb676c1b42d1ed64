"""A plan replayed as a discrete-event timeline: the device's stream, the copies and the team, without hardware.

Layers are taken in their order, as the runtime enqueues them. The device runs one layer at a time, the team one part at
a time, the link one transfer a direction at a time; a part begins when its operands are there and its half is free.
What the host half makes is brought over where it is first read, so that both halves work at the same time where the
graph allows it. Of rows that are divided both before and behind, only those cross that the other half has made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..codegen.program import Value
from ..errors import PlanError
from ..ir.costs import Costs
from ..ir.geometry import by_channels
from ..ir.layers import Layer, LayerGraph
from ..ir.placement import Placement, chain_results, chains
from ..ir.plan import Plan
from ..ir.streaming import Ahead
from ..ir.trace_events import event, rows
from ..ir.words import DEVICE, HOST, SPLIT, SUMS
from ..partition.split import part_shares, parts_needed
from .memory import large

ROWS = ("host half: team", "device half: stream", "copies to the host", "copies to the device", "copies of weights")
TEAM, STREAM, OUT, BACK, WEIGHTS = range(5)
RUNS = {TEAM: HOST, STREAM: DEVICE}  # row -> the device whose layers it shows


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that keeps one row busy, seconds since the call began."""

    name: str
    row: int
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Timeline:
    """What `replay` returns: events in the order in which they begin."""

    events: tuple[Event, ...]

    @property
    def seconds(self) -> float:
        """When the last event ends, in seconds since the call began."""
        return max((e.end for e in self.events), default=0.0)

    def busy(self, row: int) -> float:
        """Seconds in which a row has work."""
        return sum(e.end - e.start for e in self.events if e.row == row)

    def trace(self) -> list[dict[str, object]]:
        """The events as `xcoexec.session.timeline.write` takes them: the same file as a real run's."""
        return [*rows(ROWS), *(event(e.name, e.row, e.start, e.end) for e in self.events)]


class _Machine:
    """When each row is free, and since when each value lies on each half."""

    def __init__(self, graph: LayerGraph, plan: Plan, costs: Costs):
        self.graph, self.costs, self.home, self.placements = graph, costs, graph.home, plan.placements
        self.free = [0.0] * len(ROWS)
        self.events: list[Event] = []
        self.there: dict[tuple[Value, int], float] = {(v, STREAM): 0.0 for v in graph.program.inputs}
        self.lying: dict[Value, tuple[float, float]] = {}  # rows of one image: the host half's share, made when
        self.consts = set(graph.program.consts)
        pieces = [
            x.streamed * large(layer, self.consts) / x.pieces
            for layer, x in zip(graph.layers, plan.placements, strict=True)
            if x.streamed
        ]
        self.ahead = Ahead(pieces)

    def run(self, name: str, row: int, ready: float, seconds: float) -> float:
        """Adds an event as soon as its row is free; returns when it ends. On shared cores both halves are one row in
        time.
        """
        both = (TEAM, STREAM) if self.costs.shared_cores and row in (TEAM, STREAM) else (row,)
        start = max(ready, *(self.free[r] for r in both))
        for r in both:
            self.free[r] = start + seconds
        if seconds > 0:
            self.events.append(Event(name, row, start, start + seconds))
        return start + seconds

    def device(self, layer: Layer, place: Placement, ready: float, seconds: float) -> float:
        """A layer's part on the device: from resident weights first, then piece by piece as streamed ones arrive;
        returns its end.
        """
        part = 1.0 - (place.p_cpu if place.half == SPLIT else 0.0)
        if not place.streamed or part <= 0:
            return self.run(layer.name, STREAM, ready, seconds)
        if part > place.streamed:
            ready = self.run(layer.name, STREAM, ready, seconds * (1 - place.streamed / part))
        size = place.streamed * large(layer, self.consts) / place.pieces
        for i in range(place.pieces):
            arrived = self.run(
                f"{layer.name} weights {i}", WEIGHTS, self.ahead.take(size), size / self.costs.stream_rate
            )
            ready = self.run(layer.name, STREAM, max(ready, arrived), seconds * place.streamed / part / place.pieces)
            self.ahead.used(size, ready)
        return ready

    def move(self, what: str, way: str, nbytes: float) -> float:
        """Seconds of an array on its way to the host half ("read") or from it ("write")."""
        fixed, rate = self.costs.moves.get(f"{what} {way or 'mapped'}", (self.costs.sync / 2, self.costs.copy_rate))
        return fixed + nbytes / rate

    def bring(self, v: Value, half: int, reads: str = "", share: float = 1.0) -> float:
        """When a value (or a share of it) lies on a half; `reads`: how the host half takes it."""
        if v in self.consts:
            return 0.0
        if (v, half) in self.there:
            return self.there[v, half]
        mine, made = self.lying.get(v, (0.0, 0.0)) if half == TEAM else (0.0, 0.0)
        if share <= mine:
            return made
        other = self.there[v, STREAM if half == TEAM else TEAM]
        writes = self.placements[self.home[v]].writes if v in self.home else ""
        nbytes = (share - mine) * v.nbytes
        seconds = self.move("read", reads, nbytes) if half == TEAM else self.move("write", writes, nbytes)
        arrived = self.run(str(v), OUT if half == TEAM else BACK, other, seconds)
        if share == 1.0:
            self.there[v, half] = arrived
        return max(arrived, made)


def replay(graph: LayerGraph, plan: Plan, costs: Costs) -> Timeline:
    """The timeline of one call, in seconds. Raises `PlanError` for a plan of another graph."""
    if [p.layer for p in plan.placements] != [x.name for x in graph.layers]:
        raise PlanError("simulate: got a plan for another function; valid is one made for this graph.")
    machine = _Machine(graph, plan, costs)
    parts = [(members, plan.placements[members[-1].index]) for members in chains(graph, plan.placements)]
    split = lambda x: x.half == SPLIT and 0 < x.p_cpu < 1
    both = {members[0].index: _Both.of(graph, members, x) for members, x in parts if split(x)}
    begins = _begins(graph, both.values())
    for members, place in parts:
        if members[0].index in both:
            _both(machine, both[members[0].index], begins)
            continue
        half = TEAM if place.half == HOST or place.p_cpu >= 1 else STREAM
        for x in members:
            ready = max((machine.bring(v, half, place.reads) for v in x.ins), default=0.0)
            seconds = costs.seconds[RUNS[half]][x.index] or 0.0
            end = (
                machine.device(x, place, ready, seconds)
                if half == STREAM
                else machine.run(x.name, half, ready, seconds)
            )
            machine.there.update(((v, half), end) for v in x.outs)
    for v in graph.program.outputs:
        if v not in machine.consts:
            machine.bring(v, STREAM)
    return Timeline(tuple(sorted(machine.events, key=lambda e: (e.start, e.row))))


@dataclasses.dataclass(frozen=True)
class _Both:
    """A split layer or chain: what each half computes of each layer, by index, and its results."""

    members: Sequence[Layer]
    place: Placement
    mine: Mapping[int, float]
    other: Mapping[int, float]
    results: Mapping[Value, int | None]

    @classmethod
    def of(cls, graph: LayerGraph, members: Sequence[Layer], place: Placement) -> _Both:
        results = chain_results(graph, members, place.dim)
        return cls(members, place, *member_shares(members, place, results), results)

    @property
    def outside(self) -> tuple[Value, ...]:
        """What it reads and does not make."""
        inside = {v for x in self.members for v in x.outs}
        return tuple(dict.fromkeys(v for x in self.members for v in x.ins if v not in inside))

    @property
    def leaves_rows(self) -> bool:
        """Whether its results stay divided by rows, for who reads them so."""
        return self.place.dim == "rows" and all(v.shape[:1] == (1,) for v in self.results)


def _begins(graph: LayerGraph, split: Iterable[_Both]) -> dict[Value, float]:
    """Value -> the share of it from which on the device half reads it, where all who read it divide it by rows."""
    rows = [x for x in split if x.leaves_rows]
    inside = {y.index for x in rows for y in x.members}
    elsewhere = {v for y in graph.layers if y.index not in inside for v in y.ins} | {*graph.program.outputs}
    begins: dict[Value, float] = {}
    for x in rows:
        for v in x.outside:
            begins[v] = min(begins.get(v, 1.0), 1 - x.other[x.members[0].index])
    return {v: begin for v, begin in begins.items() if v not in elsewhere}


def _both(machine: _Machine, both: _Both, begins: Mapping[Value, float]) -> None:
    """A split layer or chain: operands over, both halves on their shares, the host's part back."""
    costs, members, place = machine.costs, both.members, both.place
    given = 1.0 if place.dim == SUMS else place.p_cpu  # of a result's bytes: sums come back as a whole
    whole = by_channels(place.dim, len(members))
    reads = machine.placements[members[0].index].reads
    ready = max(
        (machine.bring(v, TEAM, reads, 1.0 if whole else both.mine[members[0].index]) for v in both.outside),
        default=0.0,
    )
    near = max((machine.bring(v, STREAM) for v in both.outside), default=0.0)
    ends = []
    for row, begin, part in ((TEAM, ready, both.mine), (STREAM, near, both.other)):
        end = begin
        for x in members:
            seconds = costs.part(RUNS[row], x.index, place.dim, part[x.index]) * costs.contention
            end = machine.device(x, place, end, seconds) if row == STREAM else machine.run(x.name, row, end, seconds)
        ends.append(end)
    for out in both.results:
        share = max(given - begins.get(out, 0.0), 0.0) if both.leaves_rows else given
        back = machine.run(str(out), BACK, ends[0], machine.move("write", place.writes, share * out.nbytes))
        machine.there[out, STREAM] = max(back, ends[1])
        if both.leaves_rows:
            machine.lying[out] = place.p_cpu, ends[0]


def member_shares(
    members: Sequence[Layer], place: Placement, results: Mapping[Value, int | None]
) -> tuple[dict[int, float], dict[int, float]]:
    """Layer index -> the share (0..1) of it that the host half and the device half compute; in chains of rows both
    compute the border. `results`: along which axes the chain's results are divided.
    """
    last = members[-1]
    size = last.extent(place.dim)
    if len(members) == 1 or not size:
        return {x.index: place.p_cpu for x in members}, {x.index: 1 - place.p_cpu for x in members}
    at = min(max(round(place.p_cpu * size), 1), size - 1)
    ops = [op for x in members for op in x.ops]
    found = []
    for start, stop in ((0, at), (at, size)):
        wanted = {v: (a, start, stop) for v, a in results.items() if a is not None}
        known = part_shares(parts_needed(ops, wanted | last.requests(place.dim, start, stop)))
        found.append({x.index: known.get(x.out, 1.0) for x in members} | {last.index: (stop - start) / size})
    return found[0], found[1]


__all__ = ["ROWS", "Event", "Timeline", "member_shares", "replay"]
