"""Checks between the stages, always on: a broken record stops where it was made, not three stages later."""

from __future__ import annotations

from .codegen.program import Value
from .errors import PlanError
from .ir import HALVES, LayerGraph, Placement, Plan
from .split import axis_of


def check_graph(graph: LayerGraph) -> None:
    """Every value is made before it is read, and edges point backwards."""
    there: set[Value] = {*graph.program.inputs, *graph.program.consts}
    for layer, reads in zip(graph.layers, graph.edges, strict=True):
        missing = [v for v in layer.ins if v not in there]
        if missing:
            raise AssertionError(f"layer {layer.name!r} reads {missing[0]} before it is made")
        if any(i >= layer.index for i in reads):
            raise AssertionError(f"layer {layer.name!r} reads a later layer")
        there.update(layer.outs)
    if any(v not in there for v in graph.program.outputs):
        raise AssertionError("an output of the program is never made")


def check_plan(plan: Plan, graph: LayerGraph) -> None:
    """Raises `PlanError` that names the first placement which does not fit the graph."""
    if len(plan.placements) != len(graph.layers):
        raise PlanError(f"plan: got {len(plan.placements)} placements; the function has {len(graph.layers)} layers.")
    for layer, place in zip(graph.layers, plan.placements, strict=True):
        if layer.name != place.layer:
            raise PlanError(f"plan: got a placement for {place.layer!r} where the function has {layer.name!r}.")
        check_placement(place, graph, layer.index)
    if plan.graph and plan.graph != graph.key:
        raise PlanError(f"plan: got a plan made for the graph {plan.graph}; this function's is {graph.key} (another shape, model or library version).")


def check_placement(place: Placement, graph: LayerGraph, index: int) -> None:
    layer = graph.layers[index]
    if place.half not in HALVES:
        raise PlanError(f"plan: got half={place.half!r} for {layer.name!r}; valid are {', '.join(HALVES)}.")
    if place.half != "device" and layer.host_error:
        raise PlanError(f"plan: got {place.half!r} for {layer.name!r}, which kernels cannot run: {layer.host_error}.")
    if place.half == "split" and (place.dim not in layer.dims or axis_of(layer.ops, place.dim) is None):
        raise PlanError(f"plan: got a split of {layer.name!r} along {place.dim!r}; valid for it: {', '.join(layer.dims) or 'no split'}.")
    if not 0.0 <= place.p_cpu <= 1.0:
        raise PlanError(f"plan: got p_cpu={place.p_cpu!r} for {layer.name!r}; valid is 0 to 1.")
