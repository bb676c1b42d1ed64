"""Planners: graph x costs -> Plan. Pure functions of numbers; one file each, none imports another."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...ir.costs import Costs
from ...ir.layers import LayerGraph
from ...ir.plan import Plan
from . import capacity, codl, edgenn, layer_switch, single

Strategy = Callable[[LayerGraph, Costs], Plan]

STRATEGIES: dict[str, Strategy] = {
    "device": single.device,
    "host": single.host,
    "edgenn": edgenn.edgenn,
    "codl": codl.codl,
    "layer_switch": layer_switch.layer_switch,
    "capacity": capacity.capacity,
}
#: planners for a device without room for all weights
BOUNDED = ("capacity",)
#: planners whose plans are measured beside a strategy's own on a device: predictions of plans that differ this little
#: err by more
RIVALS: dict[str, tuple[Strategy, ...]] = {
    "codl": (functools.partial(codl.codl, dims=("channel",)), functools.partial(codl.codl, dims=("rows",)))
}
#: what `strategy=` takes; "auto" measures the plans of all others and plain jax.jit, and keeps the fastest
NAMES = (*STRATEGIES, "auto")


def strategy_name(strategy: str | Strategy) -> str:
    """A strategy's name in plans and messages."""
    inner = getattr(strategy, "func", strategy)  # of a functools.partial
    return strategy if isinstance(strategy, str) else str(getattr(inner, "__name__", type(inner).__name__))


__all__ = [
    "BOUNDED",
    "NAMES",
    "RIVALS",
    "STRATEGIES",
    "Strategy",
    "strategy_name",
]
