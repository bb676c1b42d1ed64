"""A batch divided by item: each half computes the whole network for its items, and they exchange nothing on the way.

Where a batch has several items this is the split that crosses least (AlexNet's data parallelism, Krizhevsky 2014, of
which the halves are unequal). The longest run of layers that can be followed item by item, and whose values nobody else
reads, is one chain; what is before and behind it stays on the device.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable

from ...errors import SplitError
from ...ir.costs import Costs
from ...ir.geometry import axis_of
from ...ir.layers import LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST, SPLIT
from ...partition.split import parts_needed, split
from ..chain_shares import Chains

ITEMS = "items"


def items(graph: LayerGraph, costs: Costs) -> Plan:
    """The plan whose halves end together, in seconds; the faster half alone where there is nothing to divide or to
    gain.
    """
    chains = Chains(graph)
    found = None if costs.shared_cores else _longest(chains, costs)
    places, seconds, chosen = _faster_half(graph, costs)
    if found is not None:
        first, last = found
        count, chain = _division(chains, costs, first, last)
        rest = sum(costs.device) - sum(costs.device[first:last])
        if chain + rest < seconds:
            each, seconds, size = chain / (last - first), chain + rest, _size(graph, last)
            places = _on_device(graph, costs)
            for i in range(first, last):
                places[i] = Placement(graph.layers[i].name, SPLIT, count / size, ITEMS, each, chain=1)
            chosen = f"{count} of {size} items on the host half, {places[first].layer} to {places[last - 1].layer}"
    return Plan("items", tuple(places), graph.key, seconds, chosen=chosen)


def _on_device(graph: LayerGraph, costs: Costs) -> list[Placement]:
    return [Placement(x.name, DEVICE, 0.0, predicted=t) for x, t in zip(graph.layers, costs.device, strict=True)]


def _faster_half(graph: LayerGraph, costs: Costs) -> tuple[list[Placement], float, str]:
    """All layers on one half: the placements, their seconds, and why."""
    device, host = sum(costs.device), [t for t in costs.host if t is not None]
    moved = sum(v.nbytes for v in (*graph.program.inputs, *graph.program.outputs))
    crossed = sum(host) + costs.sync + moved / costs.copy_rate
    if len(host) < len(graph.layers) or crossed >= device:
        return _on_device(graph, costs), device, "nothing to gain by dividing the batch: the device half"
    places = [Placement(x.name, HOST, 1.0, predicted=t) for x, t in zip(graph.layers, costs.host, strict=True)]
    return places, crossed, "nothing to gain by dividing the batch: the host half"


def _size(graph: LayerGraph, last: int) -> int:
    """How many items the result of layer `last - 1` has."""
    layer = graph.layers[last - 1]
    return layer.out.shape[axis_of(layer.group, ITEMS) or 0]


def _longest(chains: Chains, costs: Costs) -> tuple[int, int] | None:
    """The layers `first:last` that can be a chain and take the device the most seconds; None where there are none."""
    graph, best, most = chains.graph, None, 0.0
    for last in range(len(graph.layers), 1, -1):
        if ITEMS not in graph.layers[last - 1].dims:
            continue
        start = max((i + 1 for i in range(last) if costs.host[i] is None), default=0)
        first = _least(start, last - 1, functools.partial(chains.closed, last=last))
        if sum(costs.device[first:last]) <= most:
            continue
        first = _least(first, last - 1, functools.partial(_divides, graph, last=last))
        if last - first > 1 and sum(costs.device[first:last]) > most:
            best, most = (first, last), sum(costs.device[first:last])
    return best


def _least(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """The least number from `first` on from which something holds, `last` where it does not before; it holds from there
    on.
    """
    return bisect.bisect_left(range(first, last), True, key=holds) + first


def _divides(graph: LayerGraph, first: int, last: int) -> bool:
    """Whether layers can be followed item by item, and no part needs all items of a value: that would be right, but
    computed by both halves.
    """
    size, axis = _size(graph, last), axis_of(graph.layers[last - 1].group, ITEMS) or 0
    ops = [op for x in graph.layers[first:last] for op in x.ops]
    try:
        for start, stop in ((0, 1), (1, size)):
            split(ops, axis, start, stop)
    except SplitError:
        return False
    needed = parts_needed(ops, {ops[-1].out: (axis, 0, 1)})
    whole = lambda v: needed.get(v) is None
    consts = set(graph.program.consts)
    batch = lambda v: len(v.shape) > max(axis, 1) and v.shape[axis] == size
    return not any(whole(v) and batch(v) for x in graph.layers[first:last] for v in x.ins if v not in consts)


def _division(chains: Chains, costs: Costs, first: int, last: int) -> tuple[int, float]:
    """How many items the host half takes, and the seconds of the chain then."""
    size = _size(chains.graph, last)
    moved = chains.read(first, last) + chains.graph.layers[last - 1].out.nbytes
    host = sum(costs.host[i] or 0.0 for i in range(first, last))

    def seconds(count: int) -> float:
        device = sum(costs.part(DEVICE, i, ITEMS, 1 - count / size) for i in range(first, last))
        both = max(host * count / size, device) * costs.contention
        return costs.sync + moved * count / size / costs.copy_rate + both

    count = min(range(1, size), key=seconds)
    return count, seconds(count)


__all__ = ["items"]
