"""EdgeNN (Zhang et al., ICDE 2023, section IV-D): each chain layer split by Equations 1 to 4, branches of a region
assigned to halves.

Every plan that is compared is judged by one function, `seconds_of`: the layers' own times, a synchronisation for each
call of the host half, and the bytes of every array that crosses.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from ...cost.edgenn import optimum, split_seconds
from ...ir.costs import Costs
from ...ir.geometry import axis_of, block
from ...ir.layers import Layer, LayerGraph, Region
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST, SPLIT

MARGIN = 0.03  # a split that is not predicted to win by this share is not made
MAX_BRANCHES = 8


@dataclasses.dataclass(frozen=True)
class Choice:
    """One way to run a layer: half, share, seconds without synchronisations and without whole arrays that cross."""

    half: str
    p: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class _Way:
    """How a graph runs: a choice for each layer, and the layers of regions whose halves work at the same time."""

    choices: tuple[Choice, ...]
    together: tuple[frozenset[int], ...] = ()


def edgenn(graph: LayerGraph, costs: Costs, *, intra: bool = True, inter: bool = True, whole: bool = True) -> Plan:
    """The chains' choices, then every assignment of each region's branches, where that is predicted to win.

    Without `intra` no layer is split (intra-kernel co-running), without `inter` no branches are assigned to different
    halves (inter-kernel co-running). Without `whole` no layer runs on the host half as a whole, except in an assigned
    branch: as in the paper, where p_op of Equation 4 is below 1. `functools.partial(edgenn, intra=False, whole=False)`
    is inter-kernel co-running alone (section V-F); a graph without branches is then the device half's alone.
    """
    choices = [
        [c for c in _choices(x, costs) if (intra or c.half != SPLIT) and (whole or c.half != HOST)]
        for x in graph.layers
    ]
    way = _Way(tuple(_cheapest(graph, choices, costs)))
    for region in graph.regions if inter and not costs.shared_cores else ():  # on shared cores nothing overlaps
        way = _assigned(region, way, graph, costs)
    places = tuple(
        Placement(x.name, c.half, c.p, predicted=c.seconds, note=x.host_error if c.half == DEVICE else "")
        for x, c in zip(graph.layers, way.choices, strict=True)
    )
    return Plan(
        "edgenn", places, graph.key, seconds_of(graph, costs, way), chosen="EdgeNN equations 1 to 4 with fixed costs"
    )


def _choices(layer: Layer, costs: Costs) -> list[Choice]:
    t_cpu, t_gpu = costs.host[layer.index], costs.device[layer.index]
    found = [Choice(DEVICE, 0.0, t_gpu)]
    if t_cpu is None:
        return found
    found.append(Choice(HOST, 1.0, t_cpu))
    granule = layer.dims.get("channel")
    if granule is not None:
        size = layer.out.shape[axis_of(layer.group, "channel") or 0]
        blocks = max(1, size // block(granule, size))
        p = round(optimum(max(t_cpu, 1e-9), t_gpu, layer.out.nbytes, costs.copy_rate) * blocks) / blocks
        t = split_seconds(p, t_cpu, t_gpu, layer.out.nbytes, costs)
        if 0 < p < 1 and t < (1 - MARGIN) * min(t_cpu, t_gpu):
            found.append(Choice(SPLIT, p, t - costs.sync))
    return found


def seconds_of(graph: LayerGraph, costs: Costs, way: _Way) -> float:
    """Seconds of a call: the layers in turn, of regions `together` the slower half; a synchronisation for each split
    and each run of layers on the host half; the bytes of every array that is read where it was not made, once a
    direction.
    """
    choices, rest = way.choices, set(range(len(way.choices)))
    seconds = 0.0
    for region in way.together:
        sides = [sum(choices[i].seconds for i in region if choices[i].half == half) for half in (HOST, DEVICE)]
        seconds += max(sides) * (costs.contention if min(sides) > 0 else 1.0)
        rest -= region
    seconds += sum(choices[i].seconds for i in rest)
    return seconds + costs.sync * _calls(choices) + crossing(graph, [c.half for c in choices]) / costs.copy_rate


def _calls(choices: Sequence[Choice]) -> int:
    """Calls of the host half: each split, and each run of layers there in their order."""
    before = [DEVICE, *(c.half for c in choices)]
    return sum(c.half == SPLIT or (c.half == HOST != b) for b, c in zip(before, choices, strict=False))


def crossing(graph: LayerGraph, halves: Sequence[str]) -> int:
    """Bytes that cross between the halves as whole arrays, once a direction: both halves read a split layer's
    operands, what it gives lies on the device.
    """
    consts, home = set(graph.program.consts), graph.home
    over: set[object] = set()
    nbytes = 0
    outputs = [(v, DEVICE) for v in graph.program.outputs]
    reads = [(v, halves[x.index]) for x in graph.layers for v in x.ins]
    for v, half in (*reads, *outputs):
        if v in consts:
            continue
        made = HOST if v in home and halves[home[v]] == HOST else DEVICE
        for side in (HOST, DEVICE) if half == SPLIT else (half,):
            if side != made and (v, side) not in over:
                over.add((v, side))
                nbytes += v.nbytes
    return nbytes


def _assigned(region: Region, way: _Way, graph: LayerGraph, costs: Costs) -> _Way:
    """Inter-kernel co-running: the assignment of a region's branches to halves with the least seconds of the whole
    call, if it beats what was chosen before.
    """
    layers = frozenset(i for b in region.branches for i in b)
    if len(region.branches) > MAX_BRANCHES or layers != frozenset(range(region.fork + 1, region.join)):
        return way
    best, seconds = way, seconds_of(graph, costs, way)
    margin = MARGIN * sum(way.choices[i].seconds for i in layers)
    found = []
    for halves in itertools.product((DEVICE, HOST), repeat=len(region.branches)):
        half_of = {i: half for b, half in zip(region.branches, halves, strict=True) for i in b}
        if any(half == HOST and costs.host[i] is None for i, half in half_of.items()):
            continue
        changed = tuple(_whole(i, half_of, costs) if i in half_of else c for i, c in enumerate(way.choices))
        found.append(_Way(changed, (*way.together, layers)))
    for other in found:
        t = seconds_of(graph, costs, other)
        if t < seconds and t < seconds_of(graph, costs, way) - margin:
            best, seconds = other, t
    return best


def _whole(layer: int, half_of: Mapping[int, str], costs: Costs) -> Choice:
    half = half_of[layer]
    return Choice(half, float(half == HOST), costs.seconds[half][layer] or 0.0)


def _cheapest(graph: LayerGraph, choices: Sequence[Sequence[Choice]], costs: Costs) -> list[Choice]:
    """Shortest path through (layer, choice): a split and the entry to a run on the host half cost a synchronisation
    and the operands' way over, the end of a run its last result's way back.
    """
    consts = set(graph.program.consts)
    paths: dict[str, tuple[float, list[Choice]]] = {DEVICE: (0.0, [])}
    back = 0.0
    for x, options in zip(graph.layers, choices, strict=True):
        over = costs.exchange(sum(v.nbytes for v in x.ins if v not in consts))
        new: dict[str, tuple[float, list[Choice]]] = {}
        for c in options:
            ways = {
                b: t
                + c.seconds
                + (over if c.half == SPLIT or c.half == HOST != b else 0.0)
                + (back if b == HOST != c.half else 0.0)
                for b, (t, _) in paths.items()
            }
            before = min(ways, key=ways.__getitem__)
            if c.half not in new or ways[before] < new[c.half][0]:
                new[c.half] = (ways[before], [*paths[before][1], c])
        paths, back = new, x.out.nbytes / costs.copy_rate
    ends = {half: t + (back if half == HOST else 0.0) for half, (t, _) in paths.items()}
    return paths[min(ends, key=ends.__getitem__)][1]
