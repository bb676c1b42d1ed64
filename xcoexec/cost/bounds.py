"""What no plan of both halves can go below."""

from __future__ import annotations

import math

from ..ir.costs import Costs
from ..ir.words import DEVICE, HOST

PAYS = 0.9  # of the device half's seconds: who cannot save a tenth at best saves nothing, as halves meet at a price
SHARES = tuple(k / 32 for k in range(1, 32))  # of the host half, that a layer may have
IN_TURN = 2.0  # times as long as alone each of two halves takes that share their cores: they work in turn


def least_seconds(costs: Costs) -> float:
    """Seconds that layers take at least on two halves, of which each layer may have any share: the linear programme
    over shares and over seconds in which one half works, or both, which slows both down by `costs.contention`.

    For seconds H and G of work on the halves that is max(H, G) + (contention - 1) min(H, G). It grows with both, so
    that layers go to the host half in the order of how little it is behind; on the way the least is at a whole layer,
    or where H is G.
    """
    slower = IN_TURN if costs.shared_cores else min(costs.contention, IN_TURN)
    seconds = lambda mine, others: max(mine, others) + (slower - 1) * min(mine, others)
    known = [(h, g) for h, g in zip(costs.host, costs.device, strict=True) if h is not None]
    mine, others = 0.0, math.fsum(costs.device)
    least = seconds(mine, others)
    for h, g in sorted(known, key=lambda x: x[0] / max(x[1], 1e-12)):
        after, left = mine + h, max(others - g, 0.0)
        if mine <= others and after >= left:
            even = (mine * g + others * h) / (h + g)
            least = min(least, seconds(even, even))
        mine, others = after, left
        least = min(least, seconds(mine, others))
    return least


def ideal_seconds(costs: Costs) -> float:
    """Seconds of a call if each half worked all the time at the rate of its whole layers: h g / (h + g), for h and g
    seconds of all layers that both can have; the device half has the others before.
    """
    both = [(h, g) for h, g in zip(costs.host, costs.device, strict=True) if h is not None]
    alone = math.fsum(g for h, g in zip(costs.host, costs.device, strict=True) if h is None)
    mine, others = math.fsum(h for h, _ in both), math.fsum(g for _, g in both)
    return alone + (mine * others / (mine + others) if mine + others else 0.0)


def attainable_seconds(costs: Costs) -> float:
    """Seconds of layers one behind the other, each on the half or at the share that takes the fewest by its measured
    parts, if nothing had to cross between the halves.
    """
    return math.fsum(_best(costs, i) for i in range(len(costs.device)))


def _best(costs: Costs, i: int) -> float:
    """Seconds of a layer on one half, or on both, which slow each other down."""
    host, device = costs.host[i], costs.device[i]
    found = [device] if host is None else [host, device]
    points = costs.parts.get(HOST, {}).get(i, {})
    for dim in points if host is not None else ():
        if dim in costs.parts.get(DEVICE, {}).get(i, {}):
            parts = ((costs.part(HOST, i, dim, p), costs.part(DEVICE, i, dim, 1 - p)) for p in SHARES)
            found.append(min(map(max, parts)) * costs.contention)
    return min(found)


def pays(costs: Costs) -> bool:
    """Whether a plan with layers on both halves may be worth its compilation and its measurement."""
    return least_seconds(costs) < PAYS * math.fsum(costs.device)


__all__ = ["attainable_seconds", "ideal_seconds", "least_seconds", "pays"]
