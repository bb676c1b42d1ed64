"""Layer-switched inference (Aghapour et al., DSD 2022): every layer as a whole on one half, switches priced by the
bytes that cross.

One request at a time: halves work in turn, so the time of a placement is the sum of its layers' times and of the
transfers between layers on different halves. The least such sum over a graph of any shape is a minimum cut; it is found
exactly (`greedy=True`: along the layers' order instead, a switch where it pays at once, as section VI has it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...codegen.program import Value
from ...ir.costs import Costs
from ...ir.layers import LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST
from ..min_cut import Edge, minimum_cut


def layer_switch(graph: LayerGraph, costs: Costs, *, greedy: bool = False) -> Plan:
    """The placement of whole layers with the least predicted seconds; inputs and results lie on the device."""
    on_host = _greedy(graph, costs) if greedy else _exact(graph, costs)
    places = []
    for x, host in zip(graph.layers, on_host, strict=True):
        t = costs.host[x.index] if host else costs.device[x.index]
        places.append(
            Placement(x.name, HOST if host else DEVICE, float(host), predicted=t, note="" if host else x.host_error)
        )
    chosen = (
        "layer by layer, a switch where it pays at once"
        if greedy
        else "the least sum of layers and switches (a minimum cut)"
    )
    return Plan("layer_switch", tuple(places), graph.key, total(graph, costs, on_host), chosen=chosen)


def _host(costs: Costs, layer: int) -> float:
    """Seconds of a layer on the host half; no end of them where kernels cannot run it."""
    t = costs.host[layer]
    return math.inf if t is None else t


def switch_seconds(nbytes: float, costs: Costs) -> float:
    """Seconds of a transfer by its bytes, a fixed part and a rate of this machine: the kind of regression that section
    VI names without its coefficients.
    """
    return costs.sync / 2 + nbytes / costs.copy_rate


def total(graph: LayerGraph, costs: Costs, on_host: Sequence[bool]) -> float:
    """Seconds of a placement: its layers in turn, and every value that crosses, once in a direction."""
    seconds = sum(_host(costs, i) if host else costs.device[i] for i, host in enumerate(on_host))
    home = graph.home
    for v, readers in _values(graph).items():
        made = on_host[home[v]] if v in home else False
        sides = {on_host[i] if i >= 0 else False for i in readers}
        seconds += switch_seconds(v.nbytes, costs) * ((True in sides and not made) + (False in sides and made))
    return seconds


def _values(graph: LayerGraph) -> dict[Value, list[int]]:
    """Value of a call -> the layers that read it (-1: whoever called)."""
    consts = set(graph.program.consts)
    found: dict[Value, list[int]] = {}
    for x in graph.layers:
        for v in x.ins:
            if v not in consts:
                found.setdefault(v, []).append(x.index)
    for v in graph.program.outputs:
        if v not in consts:
            found.setdefault(v, []).append(-1)
    return found


def _greedy(graph: LayerGraph, costs: Costs) -> list[bool]:
    """In the layers' order: the other half when its time and the transfers to get there are less than this half's."""
    on_host: list[bool] = []
    home = graph.home
    consts = set(graph.program.consts)
    for x in graph.layers:
        seconds = {}
        for half in (False, True):
            t = _host(costs, x.index) if half else costs.device[x.index]
            crossing = [v for v in x.ins if v not in consts and (on_host[home[v]] if v in home else False) != half]
            seconds[half] = t + sum(switch_seconds(v.nbytes, costs) for v in crossing)
        on_host.append(seconds[True] < seconds[False])
    return on_host


def _exact(graph: LayerGraph, costs: Costs) -> list[bool]:
    """The least sum of layers and transfers: a minimum cut between the host (source) and the device (sink). A layer is
    cut from the half where it does not run, at its time on the other one.

    A value that is made on the device and read on the host crosses once: `up` is on the host when any reader is, and is
    cut from a maker that is not. `down` is on the host when the maker is, and is cut from it when a reader is not.
    """
    n, home, values = len(graph.layers), graph.home, _values(graph)
    host, device = n, n + 1
    edges: list[Edge] = []
    for i in range(n):
        edges += [(host, i, costs.device[i]), (i, device, _host(costs, i))]
    for up, (v, readers) in zip(range(n + 2, n + 2 + 2 * len(values), 2), values.items(), strict=True):
        down, made = up + 1, home.get(v, device)  # whoever called is on the device
        seconds = switch_seconds(v.nbytes, costs)
        edges += [(up, made, seconds), (made, down, seconds)]
        for r in readers:
            reader = r if r >= 0 else device
            edges += [(reader, up, math.inf), (down, reader, math.inf)]
    found = minimum_cut(n + 2 + 2 * len(values), edges, host, device)
    return [i in found for i in range(n)]
