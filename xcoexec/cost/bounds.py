"""What no plan of both halves can go below."""

from __future__ import annotations

import math

from ..ir.costs import Costs

PAYS = 0.9  # of the device half's seconds: who cannot save a tenth at best saves nothing, as halves meet at a price
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


def pays(costs: Costs) -> bool:
    """Whether a plan with layers on both halves may be worth its compilation and its measurement."""
    return least_seconds(costs) < PAYS * math.fsum(costs.device)


__all__ = ["least_seconds", "pays"]
