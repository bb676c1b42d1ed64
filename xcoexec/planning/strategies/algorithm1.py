"""CoDL's own search (Jia et al., MobiSys 2022): each operator's best division (section 4.1), then chains by
Algorithm 1.

As printed, Algorithm 1 sets the gain and the next operator once for a head, so that every ratio but the first begins
where the one before has stopped; it remembers the gain of the last operator that was appended, not of the chain; a head
that no chain gains for has none to append; and what a chain shares at its two ends is counted nowhere. Here, as the
text of section 4.2 has it, each ratio begins at the head, the gain is that of the whole chain over none, such a head
stays as it was, and a chain pays for what it shares at both ends (Figure 8).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from ...ir.costs import Costs
from ...ir.geometry import axis_of, cut
from ...ir.layers import LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST, SPLIT
from ..chain_shares import MAX_CHAIN, Chains

DELTA = 0.3  # of a chain's ratio around that of its head (section 4.2)
TENTHS = 10  # ratios are tried in tenths (section 3)
DIMS = ("rows", "channel")  # H, OC


@dataclasses.dataclass(frozen=True)
class ChainPart:
    """Layers `first:last` with the host half's share `p` (0..1) along `dim`, and their seconds with what is shared."""

    first: int
    last: int
    dim: str
    p: float
    seconds: float

    @property
    def half(self) -> str:
        """Where they run."""
        return SPLIT if 0 < self.p < 1 else HOST if self.p >= 1 else DEVICE


def algorithm1(graph: LayerGraph, costs: Costs, *, delta: float = DELTA) -> Plan:
    """Chains by Algorithm 1 over the base plan `ParPlan`; `delta`: how far a chain's ratio may be from its head's.

    A chain keeps the dimension of its head. Layers of a chain are predicted as in Equation 2: without what is shared,
    each by the slower half.
    """
    search = _Predictor(graph, costs)
    base = [search.best(i) for i in range(len(graph.layers))]
    parts: list[ChainPart] = []
    while (head := parts[-1].last if parts else 0) < len(base):
        parts.append(_chain(search, base, head, delta))
    places = []
    for number, part in enumerate(parts, 1):
        members = graph.layers[part.first : part.last]
        for x in members:
            note = x.host_error if part.half == DEVICE else ""
            chain = number if len(members) > 1 else 0
            places.append(Placement(x.name, part.half, part.p, part.dim, part.seconds / len(members), note, chain))
    text = f"CoDL's Algorithm 1 with delta {delta:g}"
    return Plan("algorithm1", tuple(places), graph.key, sum(p.seconds for p in parts), chosen=text)


def _chain(search: _Predictor, base: list[ChainPart], head: int, delta: float) -> ChainPart:
    """The chain from a head with the most gain over no chain; the head alone where none gains."""
    best, most = base[head], 0.0
    tenth = round(base[head].p * TENTHS)
    reach = round(delta * TENTHS)
    for p in (t / TENTHS for t in range(max(1, tenth - reach), min(TENTHS - 1, tenth + reach) + 1)):
        before = search.alone(head, base[head].dim, p)
        if before is None:
            continue
        seconds, without = before.seconds, base[head].seconds
        for last in range(head + 2, min(len(base), head + MAX_CHAIN) + 1):
            longer = search.chained(head, last, base[head].dim, p)
            if longer is None or longer.seconds > seconds + base[last - 1].seconds:
                break  # one more operator gains nothing
            seconds, without = longer.seconds, without + base[last - 1].seconds
            if without - seconds > most:
                best, most = longer, without - seconds
    return best


class _Predictor:
    """Seconds of operators that both halves compute, by Equation 2: what is shared, and the slower half."""

    def __init__(self, graph: LayerGraph, costs: Costs):
        self.graph, self.costs, self.chains = graph, costs, Chains(graph)

    def best(self, layer: int) -> ChainPart:
        """ParPlan's entry: the dimension and the ratio, 0 to 1 in tenths, with the least seconds."""
        return min(self._ways(layer), key=lambda part: part.seconds)

    def _ways(self, layer: int) -> Iterator[ChainPart]:
        costs, x = self.costs, self.graph.layers[layer]
        yield ChainPart(layer, layer + 1, next((d for d in DIMS if d in x.dims), DIMS[0]), 0.0, costs.device[layer])
        host = costs.host[layer]
        if host is None:
            return
        shared = costs.exchange(self.chains.read(layer, layer + 1) + x.out.nbytes)
        yield ChainPart(layer, layer + 1, DIMS[0], 1.0, host + shared)
        for dim in DIMS:
            for tenth in range(1, TENTHS):
                part = self.alone(layer, dim, tenth / TENTHS)
                if part is not None:
                    yield part

    def alone(self, layer: int, dim: str, p: float) -> ChainPart | None:
        """A layer that is divided and in no chain; None where it cannot be."""
        return self.chained(layer, layer + 1, dim, p)

    def chained(self, first: int, last: int, dim: str, p: float) -> ChainPart | None:
        """Layers `first:last` as one chain; None where they cannot be one."""
        costs, layer = self.costs, self.graph.layers[last - 1]
        axis = axis_of(layer.group, dim)
        if (
            costs.shared_cores
            or axis is None
            or dim not in layer.dims
            or any(costs.host[i] is None for i in range(first, last))
            or not self.chains.closed(first, last)
        ):
            return None
        size = layer.out.shape[axis]
        at = cut(size, self.chains.grain(first, last, dim) or 1, p)
        needed = self.chains.needed(first, last, dim, at) if 0 < at < size else None
        if needed is None:
            return None
        mine, other = needed
        computed = math.fsum(
            max(costs.part(HOST, i, dim, mine[i]), costs.part(DEVICE, i, dim, other[i])) for i in range(first, last)
        )
        share = 1.0 if self.chains.reads_whole(first, last, dim) else mine[first]
        shared = costs.exchange(self.chains.read(first, last) * share + layer.out.nbytes * at / size)
        return ChainPart(first, last, dim, at / size, computed * costs.contention + shared)
