"""Runs of layers in a graph's order: what goes on from one to the next, and what they cost."""

from __future__ import annotations

import dataclasses

from ..codegen.program import Value
from ..ir.layers import LayerGraph


@dataclasses.dataclass(frozen=True)
class Span:
    """Layers `start` to `stop` (not included) of a graph, in its order."""

    start: int
    stop: int


def crossing(graph: LayerGraph, at: int) -> tuple[Value, ...]:
    """The values (inputs of the call too) that layers from `at` on, or the caller, need of what is there before
    them.
    """
    later = {v for x in graph.layers[at:] for v in x.ins} | set(graph.program.outputs)
    before = [*graph.program.inputs, *(v for x in graph.layers[:at] for v in x.outs)]
    return tuple(v for v in dict.fromkeys(before) if v in later)


def crossing_bytes(graph: LayerGraph) -> list[int]:
    """Bytes that are needed behind a cut before each layer, and behind the last one."""
    return [sum(v.nbytes for v in crossing(graph, k)) for k in range(len(graph.layers) + 1)]


__all__ = ["Span", "crossing", "crossing_bytes"]
