"""Layer-switched inference (Aghapour et al., DSD 2022): every layer as a whole on one half, switches priced by the
bytes that cross.

One request at a time: halves work in turn, so the time of a placement is the sum of its layers' times and of the
transfers between layers on different halves. The least such sum over a graph of any shape is a minimum cut; it is found
exactly as a linear program whose vertices are whole numbers (`greedy=True`: the paper's rule along the layers' order
instead).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...codegen.program import Value
from ...ir.costs import Costs
from ...ir.layers import LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST


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
    """The paper's regression of a transfer's seconds on its bytes: a fixed part and a rate of this machine."""
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
    """`min sum(t) + sum(transfers)`: for a value made by layer m, `up >= x[r] - x[m]` and `down >= x[m] - x[r]` for
    each reader r.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    values = _values(graph)
    home = graph.home
    n, count = len(graph.layers), len(graph.layers) + 2 * len(values)
    cost = np.zeros(count)
    possible = np.array([*(t is not None for t in costs.host), *[True] * (count - n)])
    cost[:n] = [_host(costs, i) - costs.device[i] if possible[i] else 0.0 for i in range(n)]
    entries: list[tuple[int, int, float]] = []
    rows = 0
    for k, (v, readers) in enumerate(values.items()):
        up, down = n + 2 * k, n + 2 * k + 1
        cost[up] = cost[down] = switch_seconds(v.nbytes, costs)
        for r in readers:
            # name - sign * (x[r] - x[made]) >= 0; whoever called is on the device
            for name, sign in ((up, 1.0), (down, -1.0)):
                entries.append((rows, name, 1.0))
                entries += [(rows, r, -sign)] if r >= 0 else []
                entries += [(rows, home[v], sign)] if v in home else []
                rows += 1
    matrix = coo_array(
        ([e for *_, e in entries], ([r for r, *_ in entries], [c for _, c, _ in entries])), (rows, count)
    ).tocsr()
    scaled = cost / max(np.abs(cost).max(), 1e-30)  # the solver's tolerances are absolute
    constraints = LinearConstraint(matrix, np.zeros(rows), np.full(rows, math.inf))
    result = milp(
        scaled, constraints=constraints, bounds=Bounds(0, possible.astype(float)), integrality=np.zeros(count)
    )
    return [bool(x > 0.5) for x in result.x[:n]]
