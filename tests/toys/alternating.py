"""A strategy: every other layer on the host half."""

from __future__ import annotations

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan


def alternating(graph: LayerGraph, costs: Costs) -> Plan:
    """The layers with an even number on the host half, where kernels can run them."""
    places = []
    for x in graph.layers:
        here = x.index % 2 == 0 and not x.host_error
        places.append(Placement(x.name, "host" if here else "device", float(here), note=x.host_error))
    return Plan("alternating", tuple(places), graph.key)
