"""Planners: graph x costs -> Plan. Pure functions of numbers; one file each, none imports another."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Costs, LayerGraph, Plan
from .codl import codl
from .edgenn import edgenn
from .single import device, host

Strategy = Callable[[LayerGraph, Costs], Plan]

STRATEGIES: dict[str, Strategy] = {"device": device, "host": host, "edgenn": edgenn, "codl": codl}
#: what `strategy=` takes; "auto" measures the plans of all others and plain jax.jit, and keeps the fastest
NAMES = (*STRATEGIES, "auto")

__all__ = ["NAMES", "STRATEGIES", "Strategy"]
