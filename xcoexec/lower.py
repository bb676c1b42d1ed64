"""A plan -> one JAX function: device layers as their own equations, host layers as native segment calls."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .codegen import host
from .codegen.program import Literal, Op, Program, Value, consumers, external, kind
from .codegen.segment import Segment
from .compat import bind, ffi_call
from .fold import Folded
from .ir import Layer, LayerGraph, Placement
from .split import Slice, axis_of, cut, split

#: unique to this process, so that an executable from JAX's disk cache never meets addresses of another one
TARGET = f"xcoexec_{secrets.token_hex(8)}"
_registered: list[str] = []


def register() -> None:
    """Makes the native handler known to XLA:CPU (once)."""
    if not _registered:
        jax.ffi.register_ffi_target(TARGET, host.handler_capsule(), platform="cpu")
        _registered.append(TARGET)


@dataclasses.dataclass(frozen=True, eq=False)
class HostUnit:
    """Neighbouring host work in one call; `layers` its groups' layer indices."""

    segment: Segment
    layers: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceUnit:
    ops: tuple[Op, ...]
    layer: int


@dataclasses.dataclass(frozen=True, eq=False)
class SliceUnit:
    """A slice of a value of the call (constants are sliced at bind)."""

    part: Slice


@dataclasses.dataclass(frozen=True, eq=False)
class JoinUnit:
    """Concatenates the host half's and the device half's result."""

    parts: tuple[Value, Value]
    out: Value
    axis: int


Unit = HostUnit | DeviceUnit | SliceUnit | JoinUnit


@dataclasses.dataclass(frozen=True, eq=False)
class Lowered:
    """The units of a plan in order; `consts` the constants that the function takes, in order, before the blobs."""

    units: tuple[Unit, ...]
    consts: tuple[Value, ...]
    slices: Mapping[Value, Slice]
    folded: Folded

    @property
    def segments(self) -> tuple[HostUnit, ...]:
        return tuple(u for u in self.units if isinstance(u, HostUnit))

    def arguments(self, weights: Sequence[Any]) -> list[jax.Array]:
        """Constants and packed blobs for given weights, resident."""
        known = _Sliced(self.folded.constants(weights), self.slices)
        resident = identities(self.folded, weights)
        args = [resident[v] if v in resident and v not in self.slices else jnp.asarray(known[v]) for v in self.consts]
        blobs = [jax.device_put(u.segment.pack(known)) for u in self.segments]  # aligned: taken without a copy
        return [*args, *blobs]

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The computation as JAX traces it: flat constants (see `arguments`) and inputs in, flat results out."""
        env: dict[Value, Any] = dict(zip(self.folded.inputs, inputs, strict=True))
        env.update(zip(self.consts, consts, strict=False))
        blobs = dict(zip((id(u) for u in self.segments), consts[len(self.consts) :], strict=True))
        for unit in self.units:
            match unit:
                case HostUnit():
                    _call(unit.segment, blobs[id(unit)], env)
                case DeviceUnit():
                    run_ops(unit.ops, env)
                case SliceUnit():
                    s = unit.part
                    env[s.value] = lax.slice_in_dim(env[s.source], s.start, s.stop, axis=s.axis)
                case JoinUnit():
                    env[unit.out] = lax.concatenate([env[v] for v in unit.parts], unit.axis)
        return [env[v] if isinstance(v, Value) else jnp.asarray(v.val, v.dtype) for v in self.folded.outputs]


class _Sliced(Mapping[Value, np.ndarray]):
    """Constants, and the slices of them that halves of split layers read."""

    def __init__(self, constants: Mapping[Value, np.ndarray], slices: Mapping[Value, Slice]):
        self._constants, self._slices = constants, slices

    def __getitem__(self, v: Value) -> np.ndarray:
        s = self._slices.get(v)
        return self._constants[v] if s is None else self._constants[s.source][(slice(None),) * s.axis + (slice(s.start, s.stop),)]

    def __iter__(self) -> Iterator[Value]:
        yield from (*self._constants, *self._slices)

    def __len__(self) -> int:
        return len(self._constants) + len(self._slices)


def identities(folded: Folded, weights: Sequence[Any]) -> dict[Value, jax.Array]:
    """Weights that are resident already (immutable `jax.Array`s) and need no copy."""
    pairs = [*zip(folded.weights, weights, strict=True), *folded.closed]
    return {v: w for v, w in pairs if isinstance(w, jax.Array)}


def _call(segment: Segment, blob: Any, env: dict[Value, Any]) -> None:
    program = segment.program
    results = [jax.ShapeDtypeStruct(v.shape, _carried(v)) for v in program.outputs]
    args = [*(jnp.asarray(env[v], _carried(v)) for v in program.inputs), *(env[v] for v in segment.raw), blob]
    outs = ffi_call(TARGET, results, np.int64(segment.address), args)
    env.update((v, out.astype(v.dtype)) for v, out in zip(program.outputs, outs, strict=True))


def _carried(v: Value) -> Any:
    """The type in which kernels hold a value; where it is another one, XLA converts at the segment's edge."""
    return np.int32 if kind(v.dtype) == "i" else np.float32


def run_ops(ops: Sequence[Op], env: dict[Value, Any]) -> None:
    """Evaluates operations by their JAX primitives."""
    todo = list(ops)
    while todo:  # a group lists its anchor first: take whatever is ready
        ready = next(op for op in todo if all(v in env for v in op.value_ins))
        todo.remove(ready)
        args = [v.val if isinstance(v, Literal) else env[v] for v in ready.ins]
        args = [jnp.asarray(a, v.dtype) if isinstance(v, Literal) else a for a, v in zip(args, ready.ins, strict=True)]
        with jax.named_scope(ready.name or ready.prim):
            env.update(zip(ready.outs, bind(ready.primitive, args, dict(ready.params)), strict=True))


# -- from placements to units ------------------------------------------------------------------------

Build = Callable[[Program], Segment]


def lower(graph: LayerGraph, folded: Folded, placements: Sequence[Placement], build: Build) -> Lowered:
    """Units for the placements. `build` makes a segment; it raises `Unsupported` for what kernels cannot do."""
    register()
    plan = _Units(graph, build)
    for layer, place in zip(graph.layers, placements, strict=True):
        size = layer.out.shape[axis] if (axis := axis_of(layer.ops, place.dim)) is not None else 0
        at = cut(size, layer.dims.get(place.dim, 1), place.p_cpu) if place.half == "split" else 0
        if place.half == "host" or (place.half == "split" and at == size):
            plan.host(layer, layer.ops)
        elif place.half == "device" or at == 0:
            plan.device(layer, layer.ops)
        else:
            plan.both(layer, axis or 0, at, size)
    plan.flush()
    consts = set(graph.program.consts) | set(plan.slices)
    needed: dict[Value, None] = {}
    for unit in plan.units:
        if isinstance(unit, HostUnit):
            needed.update(dict.fromkeys(unit.segment.raw))
        elif isinstance(unit, DeviceUnit):
            needed.update(dict.fromkeys(v for v in external(unit.ops) if v in consts))
    for v in folded.outputs:
        if isinstance(v, Value) and v not in set(folded.inputs) and all(v not in layer.outs for layer in graph.layers):
            needed[v] = None
    return Lowered(tuple(plan.units), tuple(needed), plan.slices, folded)


class _Units:
    """Collects units; neighbouring host work waits in `groups` until a device layer cuts the segment."""

    def __init__(self, graph: LayerGraph, build: Build):
        self.graph, self.build = graph, build
        self.units: list[Unit] = []
        self.groups: list[tuple[int, tuple[Op, ...]]] = []
        self.slices: dict[Value, Slice] = {}
        self.consts = set(graph.program.consts)
        self.outputs = set(graph.program.outputs)
        self.readers = consumers(graph.program.ops)

    def host(self, layer: Layer, ops: tuple[Op, ...]) -> None:
        self.groups.append((layer.index, ops))

    def device(self, layer: Layer, ops: tuple[Op, ...]) -> None:
        self.flush()
        self.units.append(DeviceUnit(ops, layer.index))

    def both(self, layer: Layer, axis: int, at: int, size: int) -> None:
        first, second = split(layer.ops, axis, 0, at), split(layer.ops, axis, at, size)
        self.flush()
        for s in (*first.slices, *second.slices):
            if s.source in self.consts:
                self.slices[s.value] = s
                self.consts.add(s.value)
            else:
                self.units.append(SliceUnit(s))
        self.groups.append((layer.index, first.ops))
        self.flush((first.out,))
        self.units.append(DeviceUnit(second.ops, layer.index))
        self.units.append(JoinUnit((first.out, second.out), layer.out, axis))

    def flush(self, outputs: tuple[Value, ...] | None = None) -> None:
        """Makes a segment of the host work that waits."""
        if not self.groups:
            return
        groups = tuple(ops for _, ops in self.groups)
        inside = {op for g in groups for op in g}
        ops = [op for g in groups for op in g]
        made = [v for op in ops for v in op.outs]
        if outputs is None:
            outputs = tuple(v for v in dict.fromkeys(made) if v in self.outputs or any(r not in inside for r in self.readers.get(v, [])))
            floating = {op.out for op in ops if op.prim == "broadcast_in_dim" and all(v in self.consts for v in op.value_ins)}
            outputs = tuple(v for v in outputs if v not in floating or v in self.outputs)
        outside = [v for v in external(ops) if v not in set(made)]
        inputs = tuple(v for v in outside if v not in self.consts)
        consts = tuple(v for v in outside if v in self.consts)
        segment = self.build(Program(inputs, consts, groups, outputs))
        self.units.append(HostUnit(segment, tuple(i for i, _ in self.groups)))
        self.groups.clear()
