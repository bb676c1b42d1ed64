"""Checks between the stages, always on: a broken record stops where it was made, not three stages later."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.program import Value
from ..errors import PlanError
from .geometry import axis_of
from .layers import Layer, LayerGraph
from .placement import Placement, chain_results, chains
from .plan import Plan, fields
from .plan_json import check
from .words import DEVICE, HOST, PLACES, SPLIT, SUMS


def check_graph(graph: LayerGraph) -> None:
    """Every value is made before it is read, and edges point backwards. Raises `AssertionError` that names the layer
    where it is otherwise.
    """
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
    check(fields(plan), "plan")
    if len(plan.placements) != len(graph.layers):
        raise PlanError(f"plan: got {len(plan.placements)} placements; the function has {len(graph.layers)} layers.")
    for layer, place in zip(graph.layers, plan.placements, strict=True):
        if layer.name != place.layer:
            raise PlanError(f"plan: got a placement for {place.layer!r} where the function has {layer.name!r}.")
        check_placement(place, graph, layer.index)
    for members in chains(graph, plan.placements):
        check_chain([plan.placements[x.index] for x in members], members, graph)
    if plan.graph and plan.graph != graph.key:
        raise PlanError(
            f"plan: got a plan made for the graph {plan.graph}; "
            f"this function's is {graph.key} (another shape, model or library version)."
        )


def check_chain(places: Sequence[Placement], layers: Sequence[Layer], graph: LayerGraph) -> None:
    """One share and dimension for a whole chain, and what others read of it divided along it. Raises `PlanError` that
    says which chain is otherwise.
    """
    if not places[0].chain:
        return
    if len({(p.p_cpu, p.dim) for p in places}) > 1:
        raise PlanError(
            f"plan: got different shares or dimensions in the chain that ends with {places[-1].layer!r}; "
            "valid is one for all of it."
        )
    dim = places[-1].dim
    if dim == SUMS:
        _check_sums(layers, graph)
        return
    results = chain_results(graph, layers, dim)
    if results[layers[-1].out] is None:
        raise PlanError(f"plan: got a chain along {dim!r}; its last layer {places[-1].layer!r} has no such dimension.")
    for x in layers[:-1]:
        if any(v in results and results[v] is None for v in x.outs):
            raise PlanError(
                f"plan: got a chain along {dim!r} that ends with {places[-1].layer!r}, but {x.name!r} in it is read "
                "outside of it and has no such dimension of the same size."
            )


def _check_sums(layers: Sequence[Layer], graph: LayerGraph) -> None:
    """A chain that ends with a product whose sums can be divided, of which nothing else is read outside."""
    last, inner = layers[-1], chain_results(graph, layers, SUMS).keys() - {layers[-1].out}
    if last.sums is None:
        raise PlanError(
            f"plan: got a split along {SUMS!r} that ends with {last.name!r}; valid is a product with float32 results."
        )
    for x in layers[:-1]:
        if any(v in inner for v in x.outs):
            raise PlanError(
                f"plan: got a chain along {SUMS!r} that ends with {last.name!r}, but {x.name!r} in it is read outside "
                "of it."
            )


def check_placement(place: Placement, graph: LayerGraph, index: int) -> None:
    """A placement that the layer of that index can have. Raises `PlanError` that says what the layer cannot do, or
    which share (0..1) is none.
    """
    layer = graph.layers[index]
    if place.half not in PLACES:
        raise PlanError(f"plan: got half={place.half!r} for {layer.name!r}; valid are {', '.join(PLACES)}.")
    if place.half != DEVICE and layer.host_error:
        raise PlanError(f"plan: got {place.half!r} for {layer.name!r}, which kernels cannot run: {layer.host_error}.")
    if place.chain and place.half != SPLIT:
        raise PlanError(
            f"plan: got chain={place.chain} for {layer.name!r} on one half; valid is a chain of split layers."
        )
    if place.p_cpu + place.streamed > 1 + 1e-9 or (place.streamed and (place.chain or place.half == HOST)):
        got = f"streamed={place.streamed:g}, half={place.half!r}, p_cpu={place.p_cpu:g}"
        raise PlanError(
            f"plan: got {got} for {layer.name!r}; valid is a share of the device half's part, outside of chains."
        )
    if place.pieces < 1:
        raise PlanError(f"plan: got pieces={place.pieces} for {layer.name!r}; valid is 1 or more.")
    if (0 < place.streamed < 1 or place.pieces > 1) and (
        place.dim not in layer.dims or axis_of(layer.group, place.dim) is None
    ):
        raise PlanError(
            f"plan: got streamed={place.streamed:g} for {layer.name!r} along {place.dim!r}; "
            "valid for it is 0 or 1, in one piece."
        )
    if place.half == SPLIT and place.dim == SUMS and not place.chain:
        _check_sums([layer], graph)
    elif (
        place.half == SPLIT
        and not place.chain
        and (place.dim not in layer.dims or axis_of(layer.group, place.dim) is None)
    ):
        raise PlanError(
            f"plan: got a split of {layer.name!r} along {place.dim!r}; "
            f"valid for it: {', '.join(layer.dims) or 'no split'}."
        )
    if not 0.0 <= place.p_cpu <= 1.0:
        raise PlanError(f"plan: got p_cpu={place.p_cpu!r} for {layer.name!r}; valid is 0 to 1.")
