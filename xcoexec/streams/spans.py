"""A run of layers as a function of its own on one half: what pipelines hand from stage to stage, and schedulers run as
blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..codegen.program import Op, Unsupported, Value, external
from ..frontend.fold import Folded
from ..frontend.graph import build_graph
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..lowering.executable import Executable, executable, local
from ..lowering.lower import lower
from ..measure.profile import host_placements
from ..planning.baselines import device_plan
from ..planning.strategies import STRATEGIES
from ..session.session import Session

Env = Mapping[Value, Any]


@dataclasses.dataclass(frozen=True)
class Span:
    """Layers `start` to `stop` (not included) of a graph, in its order."""

    start: int
    stop: int


def crossing(graph: LayerGraph, at: int) -> tuple[Value, ...]:
    """The values (inputs of the call too) that layers from `at` on, or the caller, need of what is there before them."""
    later = {v for x in graph.layers[at:] for v in x.ins} | set(graph.program.outputs)
    before = [*graph.program.inputs, *(v for x in graph.layers[:at] for v in x.outs)]
    return tuple(v for v in dict.fromkeys(before) if v in later)


def cut_out(folded: Folded, graph: LayerGraph, span: Span) -> tuple[Folded, LayerGraph]:
    """The layers of a span as a program of their own, over the same weights: from what it reads to what is needed
    behind it.
    """
    ops: tuple[Op, ...] = tuple(op for x in graph.layers[span.start : span.stop] for op in x.ops)
    made = {v for op in ops for v in op.outs}
    consts = set(graph.program.consts)
    inputs = tuple(v for v in external(ops) if v not in consts)
    outputs = tuple(v for v in crossing(graph, span.stop) if v in made)
    part = dataclasses.replace(
        folded, inputs=inputs, input_index=tuple(range(len(inputs))), ops=ops, outputs=outputs, weak=()
    )
    return part, build_graph(part)


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """A span on a half ("host" or "device"): call it with the values that are there, to get them with its own.
    `handed`: the other half reads them next."""

    span: Span
    half: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    executable: Executable
    apart: bool  # the device half is a device of its own
    handed: bool = False

    def __call__(self, env: Env) -> dict[Value, Any]:
        """Waits for the results; where they lie on the device, they stay there until somebody on the host half asks."""
        given = [env[v] if self.half == "device" or not self.apart else np.asarray(env[v]) for v in self.inputs]
        out = self.executable.call(given)
        if self.handed and self.apart and self.half == "device":
            for x in out:
                x.copy_to_host_async()  # on its way while the next stage wakes up
        jax.block_until_ready(out)
        return {**env, **dict(zip(self.outputs, out, strict=True))}


def part(s: Session, span: Span, half: str) -> Part:
    """Compiles a span of a planned function for a half, or, as CoDL divides it, for "both". Kernels that the host half
    lacks run on XLA:CPU there. Raises `Unsupported` where nothing of it can run there."""
    folded, graph = cut_out(s.problem.folded, s.graph, span)
    on_host, apart = half == "host", s.machine.apart
    places = _places(s, span, graph, half)
    if all(p.half == "device" for p in places) and half != "device":
        raise Unsupported(f"layers {span.start} to {span.stop - 1} on {half}")
    plan = Plan(half, places, graph.key)
    if on_host and apart:
        exe = local(plan, lower(graph, folded, places, s.machine.build), s.problem.weights)
    else:
        exe = executable(
            plan,
            lower(graph, folded, places, s.machine.build, None if on_host else s.machine.relay),
            s.problem.weights,
            (),
        )
    return Part(span, half, folded.inputs, tuple(v for v in folded.outputs if isinstance(v, Value)), exe, apart)


def _places(s: Session, span: Span, graph: LayerGraph, half: str) -> tuple[Placement, ...]:
    if half == "host":
        return host_placements(graph)
    if half == "device":
        return device_plan(graph).placements
    if len(graph.layers) != span.stop - span.start:
        raise Unsupported("layers that are grouped differently on their own")
    return STRATEGIES["codl"](graph, part_costs(s.costs(), span)).placements


def part_costs(costs: Costs, span: Span) -> Costs:
    """The costs of a span's layers."""
    return costs.of_layers(span.start, span.stop)


def divisible(s: Session) -> bool:
    """Whether a function can be run in parts: all its results come from its layers or its inputs."""
    there = {*s.problem.folded.inputs, *s.graph.home}
    return all(isinstance(v, Value) and v in there for v in s.problem.folded.outputs) and len(s.graph.layers) > 1


def start(s: Session, leaves: Sequence[Any]) -> dict[Value, Any]:
    """The values at the beginning of a call."""
    return dict(zip(s.problem.folded.inputs, leaves, strict=True))


def finish(s: Session, env: Env) -> Any:
    """What the function returns."""
    return jax.tree_util.tree_unflatten(s.problem.out_tree, [env[v] for v in s.problem.folded.outputs])  # type: ignore[index]


__all__ = ["Env", "Part", "Span", "crossing", "cut_out", "divisible", "finish", "part", "start"]
