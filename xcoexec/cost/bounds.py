"""What no plan of both halves can go below."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.costs import Costs

PAYS = 0.9  # of the device half's seconds: who cannot save a tenth at best saves nothing, as halves meet at a price


def both_halves(host: Sequence[float | None], device: Sequence[float]) -> float:
    """Seconds that layers take at least on two halves that work all the time: the fractional assignment of work to
    halves. The layers in which the host half is least behind go there until both take as long. `host`, `device`:
    seconds of each whole layer (None: it cannot run there).
    """
    others = math.fsum(device)
    mine = 0.0
    known = [(h, g) for h, g in zip(host, device, strict=True) if h is not None and g > 0]
    for h, g in sorted(known, key=lambda x: x[0] / x[1]):
        if mine + h >= others - g:  # the share x of this layer: mine + x h = others - x g
            return mine + h * (others - mine) / (h + g)
        mine, others = mine + h, others - g
    return max(mine, others)


def least_seconds(costs: Costs) -> float:
    """Seconds that no plan goes below, be it one that has each layer on its faster half, or one that has both work at
    once, which slows both down. Halves that share their cores never work at once.
    """
    each = math.fsum(g if h is None else min(h, g) for h, g in zip(costs.host, costs.device, strict=True))
    if costs.shared_cores:
        return each
    return min(each, costs.contention * both_halves(costs.host, costs.device))


def pays(costs: Costs) -> bool:
    """Whether a plan with layers on both halves may be worth its compilation and its measurement."""
    return least_seconds(costs) < PAYS * math.fsum(costs.device)


__all__ = ["both_halves", "least_seconds", "pays"]
