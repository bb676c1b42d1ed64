"""Planners: graph x costs -> Plan. Pure functions of numbers; one file each, none imports another."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...ir.costs import Costs
from ...ir.layers import LayerGraph
from ...ir.plan import Plan
from . import capacity, codl, edgenn, items, layer_switch, single

Strategy = Callable[[LayerGraph, Costs], Plan]

STRATEGIES: dict[str, Strategy] = {
    "device": single.device,
    "host": single.host,
    "edgenn": edgenn.edgenn,
    "codl": codl.codl,
    "codl_measured": functools.partial(codl.codl, dims=codl.ALL),
    "layer_switch": layer_switch.layer_switch,
    "items": items.items,
    "capacity": capacity.capacity,
}
#: planners for a device without room for all weights
BOUNDED = ("capacity",)
#: strategies whose plan is the best of several by measurement on a device, where predictions err by more than these
#: plans differ -> the planners of the others. CoDL's own way is "codl": one plan, the one predicted to be the fastest
RIVALS: dict[str, tuple[Strategy, ...]] = {
    "codl_measured": tuple(functools.partial(codl.codl, dims=d) for d in (codl.SMOOTH, ("rows",)))
}
#: strategies whose plans "auto" compares by measurement
CONTEST = tuple(n for n in STRATEGIES if n not in (*BOUNDED, "codl"))
#: what `strategy=` takes; "auto" measures the plans of all others and plain jax.jit, and keeps the fastest
NAMES = (*STRATEGIES, "auto")


def strategy_name(strategy: str | Strategy) -> str:
    """A strategy's name in plans and messages."""
    inner = getattr(strategy, "func", strategy)  # of a functools.partial
    return strategy if isinstance(strategy, str) else str(getattr(inner, "__name__", type(inner).__name__))


__all__ = [
    "BOUNDED",
    "CONTEST",
    "NAMES",
    "RIVALS",
    "STRATEGIES",
    "Strategy",
    "strategy_name",
]
