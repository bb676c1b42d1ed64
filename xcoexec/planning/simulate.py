"""A plan replayed as a discrete-event timeline: the device's stream, the copies and the team, without hardware.

Layers are taken in their order, as the runtime enqueues them. The device runs one layer at a time, the team one part at
a time, the link one transfer a direction at a time; a part begins when its operands are there and its half is free.
What the host half makes is brought over where it is first read, so that both halves work at the same time where the
graph allows it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

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
        other = self.there[v, STREAM if half == TEAM else TEAM]
        writes = self.placements[self.home[v]].writes if v in self.home else ""
        seconds = (
            self.move("read", reads, share * v.nbytes) if half == TEAM else self.move("write", writes, share * v.nbytes)
        )
        arrived = self.run(str(v), OUT if half == TEAM else BACK, other, seconds)
        if share == 1.0:
            self.there[v, half] = arrived
        return arrived


def replay(graph: LayerGraph, plan: Plan, costs: Costs) -> Timeline:
    """The timeline of one call, in seconds. Raises `PlanError` for a plan of another graph."""
    if [p.layer for p in plan.placements] != [x.name for x in graph.layers]:
        raise PlanError("simulate: got a plan for another function; valid is one made for this graph.")
    machine = _Machine(graph, plan, costs)
    for members in chains(graph, plan.placements):
        place = plan.placements[members[-1].index]
        if place.half == SPLIT and 0 < place.p_cpu < 1:
            _both(machine, members, place)
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


def _both(machine: _Machine, members: Sequence[Layer], place: Placement) -> None:
    """A split layer or chain: operands over, both halves on their shares, the host's part back."""
    costs, inside = machine.costs, {v for x in members for v in x.outs}
    results = chain_results(machine.graph, members, place.dim)
    mine, other = member_shares(members, place, results)
    outside = [v for x in members for v in x.ins if v not in inside]
    given = 1.0 if place.dim == SUMS else place.p_cpu  # of a result's bytes: sums come back as a whole
    whole = by_channels(place.dim, len(members))
    reads = machine.placements[members[0].index].reads
    ready = max(
        (machine.bring(v, TEAM, reads, 1.0 if whole else mine[members[0].index]) for v in dict.fromkeys(outside)),
        default=0.0,
    )
    near = max((machine.bring(v, STREAM) for v in dict.fromkeys(outside)), default=0.0)
    ends = []
    for row, begin, part in ((TEAM, ready, mine), (STREAM, near, other)):
        end = begin
        for x in members:
            seconds = costs.part(RUNS[row], x.index, place.dim, part[x.index]) * costs.contention
            end = machine.device(x, place, end, seconds) if row == STREAM else machine.run(x.name, row, end, seconds)
        ends.append(end)
    for out in results:
        back = machine.run(str(out), BACK, ends[0], machine.move("write", place.writes, given * out.nbytes))
        machine.there[out, STREAM] = max(back, ends[1])


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
