"""Every layer divided by output channels, whether that pays or not: mu-layer (Kim et al., EuroSys 2019) as CoDL's
rival (Jia et al., MobiSys 2022, section 7.1).
"""

from __future__ import annotations

from ...ir.costs import Costs
from ...ir.geometry import axis_of, cut
from ...ir.layers import Layer, LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST, SPLIT

SHARES = tuple(i / 16 for i in range(1, 16))


def mu_layer(graph: LayerGraph, costs: Costs, *, by_flops: bool = False) -> Plan:
    """Each layer that can be divided by channels is, at the share with the least predicted seconds; the others run on
    the device half.

    `by_flops`: at the share that the FLOP-based predictor of section 7.1 gives, one for all layers: what the host half
    computes of all FLOP a second that both halves compute. On shared cores the halves work in turn.
    """
    divided = {x.index for x in graph.layers if _shares(x) and costs.host[x.index] is not None}
    one = _by_flops(graph, costs, divided) if by_flops else None
    places, seconds = [], 0.0
    for x in graph.layers:
        if x.index not in divided:
            t = costs.device[x.index]
            places.append(Placement(x.name, DEVICE, 0.0, predicted=t, note=x.host_error))
        else:
            found = {p: _seconds(graph, x, costs, p) for p in _shares(x)}
            p = min(found, key=found.__getitem__) if one is None else min(found, key=lambda p: abs(p - one))
            t = found[p]
            places.append(Placement(x.name, SPLIT, p, predicted=t))
        seconds += t
    share = "by FLOP" if by_flops else "at its best share"
    return Plan("mu_layer", tuple(places), graph.key, seconds, chosen=f"every layer by channels, {share}")


def _shares(layer: Layer) -> list[float]:
    """The host half's shares that leave channels to both halves."""
    axis = axis_of(layer.group, "channel")
    if axis is None or "channel" not in layer.dims:
        return []
    size = layer.out.shape[axis]
    return [p for p in SHARES if 0 < cut(size, layer.dims["channel"], p) < size]


def _seconds(graph: LayerGraph, layer: Layer, costs: Costs, p: float) -> float:
    """A divided layer: its call, all of its operand over, the host half's part back, and the slower half."""
    consts = set(graph.program.consts)
    data = sum(v.nbytes for v in layer.ins if v not in consts) + p * layer.out.nbytes
    halves = (costs.part(HOST, layer.index, "channel", p), costs.part(DEVICE, layer.index, "channel", 1 - p))
    return costs.exchange(data) + (sum(halves) if costs.shared_cores else max(halves) * costs.contention)


def _by_flops(graph: LayerGraph, costs: Costs, divided: set[int]) -> float:
    """The host half's part (0..1) of the FLOP a second of both halves, over all layers that are divided."""
    host, device = (sum(costs.seconds[half][i] or 0.0 for i in divided) for half in (HOST, DEVICE))
    return device / (host + device) if host + device else 0.5
