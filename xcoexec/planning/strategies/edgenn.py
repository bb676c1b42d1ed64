"""EdgeNN (Zhang et al., ICDE 2023, section IV-D): each chain layer split by Equations 1 to 4, branches of a region
assigned to halves.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

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
    """One way to run a layer: half, share, seconds without the cost of entering a segment."""

    half: str
    p: float
    seconds: float


def edgenn(graph: LayerGraph, costs: Costs, *, intra: bool = True, inter: bool = True) -> Plan:
    """Regions first (every assignment of their branches), then the chains around them.

    Without `intra` no layer is split (intra-kernel co-running), without `inter` no branches are assigned to different
    halves (inter-kernel co-running), as in `functools.partial(edgenn, intra=False)`. Neither is an ablation of the
    paper: Figure 8 has all of hybrid execution without memory management, section V-F inter-kernel co-running against
    the GPU alone.
    """
    choices = [[c for c in _choices(x, costs) if intra or c.half != SPLIT] for x in graph.layers]
    together = [r for r in graph.regions if inter and len(r.branches) <= MAX_BRANCHES]
    overlap = sum(_assign(region, choices, graph, costs) for region in together)
    best, seconds = _cheapest(choices, costs.sync)
    places = tuple(
        Placement(x.name, c.half, c.p, predicted=c.seconds, note=x.host_error if c.half == DEVICE else "")
        for x, c in zip(graph.layers, best, strict=True)
    )
    return Plan(
        "edgenn", places, graph.key, max(seconds - overlap, 0.0), chosen="EdgeNN equations 1 to 4 with fixed costs"
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


def _assign(region: Region, choices: list[list[Choice]], graph: LayerGraph, costs: Costs) -> float:
    """Inter-kernel co-running: the assignment of branches to halves with the least time, if it beats running them in
    turn.

    Returns the seconds that the halves save by working at the same time.
    """
    if costs.shared_cores:  # nothing overlaps: the chains' own choice is the best assignment
        return 0.0
    layers = [i for b in region.branches for i in b]
    alone = sum(min(c.seconds for c in choices[i]) for i in layers)

    def side(branch: Sequence[int], half: str) -> float:
        return sum(next((c.seconds for c in choices[i] if c.half == half), float("inf")) for i in branch)

    def seconds(halves: Sequence[str]) -> float:
        sides = {
            h: sum(side(b, h) for b, x in zip(region.branches, halves, strict=True) if x == h) for h in (HOST, DEVICE)
        }
        moved = sum(
            graph.layers[b[-1]].out.nbytes for b, x in zip(region.branches, halves, strict=True) if x == HOST and b
        )
        return max(sides.values()) * costs.contention + moved / costs.copy_rate + costs.sync

    best = min(itertools.product((DEVICE, HOST), repeat=len(region.branches)), key=seconds)
    if seconds(best) >= (1 - MARGIN) * alone:
        return 0.0
    for branch, half in zip(region.branches, best, strict=True):
        for i in branch:
            choices[i] = [c for c in choices[i] if c.half == half]
    in_turn = sum(side(b, x) for b, x in zip(region.branches, best, strict=True)) + costs.sync
    return max(in_turn - seconds(best), 0.0)


def _cheapest(choices: Sequence[Sequence[Choice]], sync: float) -> tuple[list[Choice], float]:
    """Shortest path through (layer, choice): entering a host segment costs a synchronisation."""
    paths: dict[str, tuple[float, list[Choice]]] = {DEVICE: (0.0, [])}
    for options in choices:
        new: dict[str, tuple[float, list[Choice]]] = {}
        for c in options:
            enter = lambda before, c=c: 0.0 if c.half == DEVICE or (c.half == before == HOST) else sync
            before = min(paths, key=lambda b: paths[b][0] + enter(b))
            cost = paths[before][0] + enter(before) + c.seconds
            if c.half not in new or cost < new[c.half][0]:
                new[c.half] = (cost, [*paths[before][1], c])
        paths = new
    seconds, best = min(paths.values(), key=lambda x: x[0])
    return best, seconds
