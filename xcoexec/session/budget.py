"""Where the seconds of a call on two halves go, against what both halves could do: a budget that adds up."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..cost.bounds import attainable_seconds, ideal_seconds
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.text import WIDTH, columns, number
from ..ir.words import DEVICE, HOST
from ..lowering.lower import Lowered
from ..lowering.work_units import DeviceUnit, HostUnit
from ..measure.timing import RECENT

HEAD = ["a call", "ms", "%", "by"]
CROSSING_HEAD = ["crossing", "host ms", "GPU ms", "waits", "operands", "merge"]
MOST_CROSSINGS = 10
#: stamps of a host call on the device's clock: its parts are what lies between two of them
START, OPERANDS, WORKED, ANSWERED, MERGED = 0, 1, 3, 4, 5


@dataclasses.dataclass(frozen=True)
class Crossing:
    """A host call, which computes `layers` or a part of them: median seconds of the host half's work; of one usual call
    the device half's beside it, the device's wait for the host, and the two ways between them.
    """

    layers: tuple[str, ...]
    host: float
    device: float
    waits: float
    operands: float
    merge: float

    @property
    def row(self) -> list[str]:
        """The cells below `CROSSING_HEAD`."""
        names = self.layers[0] if len(self.layers) == 1 else f"{self.layers[0]} and {len(self.layers) - 1} more"
        return [names, *(number(1e3 * s, 3) for s in (self.host, self.device, self.waits, self.operands, self.merge))]


@dataclasses.dataclass(frozen=True)
class Budget:
    """Seconds of a call. `call` is measured; it is the sum of `ideal` and all that is lost (less than 0: won).

    `ideal`: both halves at their whole layers' rates all the time, h g / (h + g) for h and g seconds of all layers
    alone; `parts`: what the best shares of each layer take more, by its measured parts and `Costs.contention`;
    `placement`: what the plan's shares take more than the best ones, as a crossing costs more than some are worth. All
    three are calculated from layers that were measured alone. `work`: what the same work takes longer within the call,
    `waits` of it while the device waits for the host; `operands`, `merges`: both ways between the halves. Their stamps
    are measured. `launch`: the rest, before the first host call and behind the last one, less the layers there.
    """

    call: float
    ideal: float
    parts: float
    placement: float
    work: float
    waits: float
    operands: float
    merges: float
    launch: float
    crossings: tuple[Crossing, ...]

    @property
    def attainable(self) -> float:
        """Seconds of the best shares of each layer, if crossings cost nothing."""
        return self.ideal + self.parts

    @property
    def lost(self) -> Mapping[str, float]:
        """What the call takes more than `ideal`, by its causes."""
        return {
            "parts that take more than their share": self.parts,
            "layers that are not split so": self.placement,
            f"work slower than alone (waits {number(1e3 * self.waits, 3)} ms)": self.work,
            "operands' way to the host": self.operands,
            "results' way back, merges": self.merges,
            "launch and return": self.launch,
        }

    def text(self, whole: bool = False) -> str:
        """Both tables in 80 columns: where the seconds go, and the crossings (the slowest ones, or all of them)."""
        row = lambda name, s, how: [name, number(1e3 * s, 3), f"{100 * s / self.call:.0f}", how]
        rows = [HEAD, row("both halves at their full rates", self.ideal, "calculated")]
        measured = ("calculated",) * 2 + ("measured",) * 3 + ("the rest",)
        pairs = zip(self.lost.items(), measured, strict=True)
        rows += [row(f"lost to {name}", s, how) for (name, s), how in pairs]
        rows.append(row("all", self.call, "measured"))
        bounds = f"{100 * self.attainable / self.call:.0f} % of what is attainable, {100 * self.ideal / self.call:.0f}"
        said = f"The call reaches {bounds} % of both halves' full rates."
        slowest = sorted(self.crossings, key=lambda c: c.device + c.waits + c.operands + c.merge, reverse=True)
        shown = self.crossings if whole else slowest[:MOST_CROSSINGS]
        below = [CROSSING_HEAD, *(c.row for c in shown)]
        return f"{columns(rows, (1, 2))}\n{said}\n\n{columns(below, range(1, len(CROSSING_HEAD)), WIDTH)}"


def budget(
    graph: LayerGraph, placements: Sequence[Placement], lowered: Lowered, costs: Costs, call: float | None
) -> Budget | None:
    """The budget of calls that take `call` seconds (None: as long as the stamps and the layers outside of them), from
    the stamps of recent ones; None before the first, and where the plan has no host call beside a device.
    """
    if not lowered.sites or not lowered.device.apart or (at := _usual_call(lowered)) is None:
        return None
    crossings = tuple(_crossing(graph, unit, s) for unit, s in zip(lowered.sites, at, strict=True))
    total = lambda name: math.fsum(getattr(c, name) for c in crossings)
    order = at[np.argsort(at[:, START])]
    between = float(np.maximum(order[1:, START] - order[:-1, MERGED], 0).sum())  # on one stream they follow each other
    span = float(at[:, MERGED].max() - at[:, START].min())
    ends = math.fsum(costs.device[i] for i in _ends(lowered))
    planned = math.fsum(map(lambda i, p: _planned(costs, i, p), range(len(placements)), placements))
    ideal, attainable = ideal_seconds(costs), attainable_seconds(costs)
    call = call or ends + span
    work = ends + between + total("device") + total("waits") - planned
    return Budget(
        call=call,
        ideal=ideal,
        parts=attainable - ideal,
        placement=planned - attainable,
        work=work,
        waits=total("waits"),
        operands=total("operands"),
        merges=total("merge"),
        launch=call - planned - work - total("operands") - total("merge"),
        crossings=crossings,
    )


def _usual_call(lowered: Lowered) -> np.ndarray | None:
    """The stamps in seconds, [host calls, 6], of the recent call whose span from the first one to the last one is the
    median: all of one call, so that its parts add up. None before a call is over at every site.
    """
    last = min(site.calls for site in lowered.sites.values()) - 1
    if last < 1:
        return None
    both = np.stack([site.phases(last)[-RECENT:] for site in lowered.sites.values()])
    spans = both[:, :, MERGED].max(axis=0) - both[:, :, START].min(axis=0)
    usual = both[:, np.argsort(spans)[len(spans) // 2]]
    found: np.ndarray = (usual - usual.min()) * 1e-9
    return found


def _crossing(graph: LayerGraph, unit: HostUnit, at: np.ndarray) -> Crossing:
    """A host call with these stamps, in seconds."""
    own = unit.segment.stamps()[-RECENT:]
    host = float(np.median(own[:, -1] - own[:, 0])) * 1e-9 if len(own) else 0.0
    names = tuple(dict.fromkeys(graph.layers[i].name for i in unit.layers))
    later = lambda a, b: max(float(at[b] - at[a]), 0.0)
    parts = (later(OPERANDS, WORKED), later(WORKED, ANSWERED), later(START, OPERANDS), later(ANSWERED, MERGED))
    return Crossing(names, host, *parts)


def _ends(lowered: Lowered) -> list[int]:
    """The layers of the device before the first host call, and behind the last one."""
    kinds = [isinstance(u, HostUnit) for u in lowered.units]
    first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
    outside = (*lowered.units[:first], *lowered.units[last + 1 :])
    beside = {i for u in lowered.units[first : last + 1] for i in u.layers}
    found = {i for u in outside if isinstance(u, DeviceUnit) for i in u.layers}
    return sorted(found - beside)


def _planned(costs: Costs, i: int, place: Placement) -> float:
    """Seconds of a layer as it is placed, by what its parts took alone."""
    if place.half == DEVICE:
        return costs.device[i]
    if place.half == HOST:
        return costs.host[i] or 0.0
    mine = costs.part(HOST, i, place.dim, place.p_cpu)
    others = costs.part(DEVICE, i, place.dim, 1 - place.p_cpu)
    return max(mine, others) * costs.contention


__all__ = ["Budget", "Crossing", "budget"]
