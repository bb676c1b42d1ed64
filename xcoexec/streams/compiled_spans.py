"""Runs of layers as functions of their own on one half: what pipelines hand from stage to stage, and schedulers run as
blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from ..codegen.program import Op, Unsupported, Value, external
from ..frontend.fold import Folded
from ..frontend.graph import build_graph
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..lowering.executable import INSIDE_BYTES, Executable, executable, local
from ..lowering.lower import lower
from ..measure.profile import host_placements
from ..planning.baselines import device_plan
from ..planning.spans import Span, crossing
from ..planning.strategies import STRATEGIES
from ..session.session import Session

Array = jax.Array | np.ndarray
#: the arrays that are there at some place of a call
Env = Mapping[Value, Array]
Shapes = tuple[tuple[tuple[int, ...], str], ...]  # (sizes, dtype) of each array of an input


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
class CompiledSpan:
    """A span on a half ("host" or "device"): call it with the values that are there, to get them with its own.

    `apart`: the device half is a device of its own; `handed`: the other half reads the span's values next.
    """

    span: Span
    half: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    executable: Executable
    apart: bool
    handed: bool = False

    def __call__(self, env: Env) -> dict[Value, Array]:
        """Waits for the results; where they lie on the device, they stay there until somebody on the host half asks."""
        given = [self._near(env[v]) for v in self.inputs]
        out = self.executable.call(given)
        if self.handed and self.apart and self.half == "device":
            for x in out:
                x.copy_to_host_async()  # on its way while the next stage wakes up
        jax.block_until_ready(out)
        return {**env, **dict(zip(self.outputs, out, strict=True))}

    def _near(self, x: Array) -> Array:
        """A value where this half reads it."""
        return np.asarray(x) if self.apart and self.half != "device" else x


def compile_span(s: Session, span: Span, half: str) -> CompiledSpan:
    """Compiles a span of a planned function for a half, or, as CoDL divides it, for "both".

    Kernels that the host half lacks run on XLA:CPU there. Raises `Unsupported` where nothing of it can run there.
    """
    folded, graph = cut_out(s.problem.folded, s.graph, span)
    places = _places(s, span, graph, half)
    if half != "device" and all(p.half == "device" for p in places):
        raise Unsupported(f"layers {span.start} to {span.stop - 1} on {half}")
    plan, inside = Plan(half, places, graph.key), INSIDE_BYTES if s.machine.limit is None else 0
    if half == "host":
        lowered = lower(graph, folded, places, s.machine.build)
        exe = (
            local(plan, lowered, s.problem.weights)
            if s.machine.apart
            else executable(plan, lowered, s.problem.weights, (), inside=inside)
        )
    else:
        lowered = lower(graph, folded, places, s.machine.build, s.machine.relay)
        exe = executable(plan, lowered, s.problem.weights, (), inside=inside)
    outputs = tuple(v for v in folded.outputs if isinstance(v, Value))
    return CompiledSpan(span, half, folded.inputs, outputs, exe, s.machine.apart)


def _places(s: Session, span: Span, graph: LayerGraph, half: str) -> tuple[Placement, ...]:
    if half == "host":
        return host_placements(graph)
    if half == "device":
        return device_plan(graph).placements
    if len(graph.layers) != span.stop - span.start:
        raise Unsupported("layers that are grouped differently on their own")
    return STRATEGIES["codl"](graph, s.costs().of_layers(span.start, span.stop)).placements


def divisible(s: Session) -> bool:
    """Whether a function can be run in parts: it has several layers, and all its results come from these or its
    inputs.
    """
    there = {*s.problem.folded.inputs, *s.graph.home}
    return all(isinstance(v, Value) and v in there for v in s.problem.folded.outputs) and len(s.graph.layers) > 1


def begin(s: Session, leaves: Sequence[Array]) -> dict[Value, Array]:
    """The arrays at the beginning of a call; `leaves`: of its input."""
    return dict(zip(s.problem.folded.inputs, leaves, strict=True))


def finish(s: Session, env: Env) -> object:
    """What the function returns, of the values at the end of a call. Only for what is `divisible`."""
    return jax.tree_util.tree_unflatten(
        s.problem.out_tree, [env[v] for v in s.problem.folded.outputs if isinstance(v, Value)]
    )


__all__ = ["Array", "CompiledSpan", "Env", "Shapes", "begin", "compile_span", "cut_out", "divisible", "finish"]
