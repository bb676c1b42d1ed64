"""The plan that needs no planning: plain `jax.jit`."""

from __future__ import annotations

from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..ir.words import DEVICE


def device_plan(graph: LayerGraph) -> Plan:
    """Plain `jax.jit` as a plan: every layer on the device half, in the user's own program."""
    layers = tuple(Placement(x.name, DEVICE, 0.0) for x in graph.layers)
    return Plan("device", layers, graph.key, chosen="no layer that kernels can express", engine="jit")
