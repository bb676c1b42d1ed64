"""A network over several devices that exist as numbers: stages in order, each on a device of its own or the host."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

from ..ir.layers import LayerGraph
from ..ir.text import columns, milliseconds
from .device_cuts import DeviceCut, Kind, across, scaling
from .profiles import Profile
from .spans import crossing_bytes
from .waiting_calls import text as waiting_text
from .waiting_calls import waited_calls

MOST = 8  # devices of a kind up to which it is told whether they pay
ITEMS = 200  # of a stream that is simulated


@dataclasses.dataclass(frozen=True)
class Several:
    """A graph's layers on some devices. `kinds`: by name, the host half too; `crossing`: seconds for which a stage that
    begins with a layer receives what it reads; `growing`: the kind of which there may be more, that of `last`.
    """

    kinds: dict[str, Kind]
    crossing: tuple[float, ...]
    growing: str
    graph: LayerGraph
    last: Profile

    @classmethod
    def of(cls, graph: LayerGraph, devices: Sequence[Profile], memory: float = math.inf) -> Several:
        """The devices in the order given, beside the host half of the first; `memory`: bytes of weights that each may
        hold, beyond which they come over the bus with every item. Raises `ValueError` for profiles of one name that
        differ.
        """
        named = {p.name: p for p in devices}
        if any(named[p.name] != p for p in devices):
            raise ValueError("xcoexec plan: got devices of one name with other numbers; valid are names that differ.")
        weights, counts, first = weight_bytes(graph), Counter(p.name for p in devices), devices[0]
        costs = {name: p.costs(graph) for name, p in named.items()}
        kinds = {
            name: Kind(counts[name], costs[name].device, weights, memory, 1 / p.copy_rate.value)
            for name, p in named.items()
        }
        sizes = crossing_bytes(graph)[: len(graph.layers)]
        crossing = tuple(first.sync.value + n / first.copy_rate.value for n in sizes)
        last = devices[-1]
        return cls({**kinds, "host": Kind(1, costs[first.name].host)}, crossing, last.name, graph, last)

    @property
    def cut(self) -> DeviceCut:
        """The stages with the least seconds between results."""
        return across(self.kinds, self.crossing)

    def counts(self) -> list[DeviceCut]:
        """The cuts with 1 to `MOST` devices of the growing kind that are worth them."""
        return scaling(self.kinds, self.crossing, self.growing, MOST)

    def waited(self, width: int = 0) -> str:
        """What a call takes that is waited for, its layers divided by channel over 1 to `MOST` devices of the growing
        kind that are worth them.
        """
        return waiting_text(waited_calls(self.graph, self.last, MOST), self.growing, MOST, width)


def weight_bytes(graph: LayerGraph) -> tuple[int, ...]:
    """Bytes of the constants that each layer is the first to read."""
    left, found = set(graph.program.consts), list[int]()
    for x in graph.layers:
        mine = {v for v in x.ins if v in left}
        left -= mine
        found.append(sum(v.nbytes for v in mine))
    return tuple(found)


def replay(cut: DeviceCut, items: int = ITEMS) -> tuple[float, float]:
    """(seconds between results, seconds from an item's begin to its result) of a stream in which each stage takes the
    items in order, and the first one begins an item when the second has taken the one before.
    """
    free = [0.0] * (len(cut.seconds) + 1)  # when a stage has ended an item, and the second one has begun it
    begun, ended = list[float](), list[float]()
    for _ in range(items):
        now = max(free[0], free[-1])
        begun.append(now)
        for k, seconds in enumerate(cut.seconds):
            start = max(now, free[k])
            free[-1] = start if k == 1 else free[-1]
            now = free[k] = start + seconds
        ended.append(now)
    half = items // 2
    return (ended[-1] - ended[half - 1]) / (items - half), ended[-1] - begun[-1]


def text(several: Several, width: int = 0) -> str:
    """The stages, what a result takes, and behind how many devices more do not pay."""
    cut, weights = several.cut, next(iter(several.kinds.values())).weights
    rows = [["stage", "device", "layers", "calculated ms", "weights MB"]]
    for k, ((kind, a, b), seconds) in enumerate(zip(cut.stages, cut.seconds, strict=True), 1):
        rows.append([str(k), kind, f"{a} to {b - 1}", milliseconds(seconds), f"{sum(weights[a:b]) / 1e6:.1f}"])
    found = several.counts()
    table = [[f"devices {several.growing}", "stages", "calculated ms a result", "simulated", "times one"]]
    counts = [sum(kind == several.growing for kind, _, _ in c.stages) for c in found]
    for c, count in zip(found, counts, strict=True):
        times = f"{found[0].period / c.period:.2f}x"
        table.append([str(count), str(len(c.stages)), milliseconds(c.period), milliseconds(replay(c)[0]), times])
    used = max(counts)
    end = f"More than {used} do not pay." if used < MOST else f"All of {MOST} pay."
    waited = f"A call that is waited for takes {milliseconds(sum(cut.seconds))} ms (calculated)."
    return f"{columns(rows, (0, 3, 4), width)}\n{waited}\n\n{columns(table, range(5), width)}\n{end}"


__all__ = ["Several", "replay", "text", "weight_bytes"]
