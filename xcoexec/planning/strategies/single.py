"""Everything on one half: the baselines, and what the other strategies have to beat."""

from __future__ import annotations

from ...ir.costs import Costs
from ...ir.layers import LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST


def device(graph: LayerGraph, costs: Costs) -> Plan:
    """All layers on the device half (XLA)."""
    places = tuple(Placement(x.name, DEVICE, 0.0, predicted=t) for x, t in zip(graph.layers, costs.device, strict=True))
    return Plan("device", places, graph.key, sum(costs.device), chosen="all layers on the device half")


def host(graph: LayerGraph, costs: Costs) -> Plan:
    """All layers that kernels can express on the host half, the others on the device half."""
    places = []
    total = costs.sync
    for layer, t_host, t_device in zip(graph.layers, costs.host, costs.device, strict=True):
        if t_host is None:
            places.append(Placement(layer.name, DEVICE, 0.0, predicted=t_device, note=layer.host_error))
            total += t_device + costs.sync
        else:
            places.append(Placement(layer.name, HOST, 1.0, predicted=t_host))
            total += t_host
    return Plan("host", tuple(places), graph.key, total, chosen="all layers that kernels can express on the host half")
