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
from .codegen.program import Literal, Op, Program, Unsupported, Value, consumers, external, kind
from .codegen.relay import Merge, Relay, Site, Window
from .codegen.segment import Segment
from .compat import MADE, bind, ffi_call, host_call
from .fold import Folded
from .ir import Layer, LayerGraph, Placement, chains
from .split import Slice, axis_of, cut, split

#: unique to this process, so that an executable from JAX's disk cache never meets addresses of another one
TARGET = f"xcoexec_{secrets.token_hex(8)}"
_registered: set[str] = set()


def register(platform: str = "cpu") -> None:
    """Makes the native handlers known to XLA (once): the synchronous call on the CPU, `start`, `join` and `tick` on a device."""
    if platform in _registered:
        return
    if platform == "cpu":
        jax.ffi.register_ffi_target(TARGET, host.handler_capsule(), platform="cpu")
    else:
        for name in ("start", "join", "tick"):
            jax.ffi.register_ffi_target(f"{TARGET}_{name}", host.handler_capsule("calls", name), platform=platform.removeprefix("stand-in "))
    _registered.add(platform)


@dataclasses.dataclass(frozen=True, eq=False)
class Join:
    """The host half's and the device half's part of `out`, one behind the other along `axis`."""

    parts: tuple[Value, Value]
    out: Value
    axis: int


@dataclasses.dataclass(frozen=True, eq=False)
class HostUnit:
    """Neighbouring host work in one call; `layers` its groups' layer indices, `windows` its inputs that are parts of other values.

    `join`: what becomes of the result when the device half makes the rest of it.
    """

    segment: Segment
    layers: tuple[int, ...]
    windows: Mapping[Value, Slice] = dataclasses.field(default_factory=dict)
    join: Join | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceUnit:
    """Operations on the device half, for the layers `layers`; `windows` as in `HostUnit`."""

    ops: tuple[Op, ...]
    layers: tuple[int, ...]
    windows: Mapping[Value, Slice] = dataclasses.field(default_factory=dict)


Unit = HostUnit | DeviceUnit


@dataclasses.dataclass(frozen=True, eq=False)
class Lowered:
    """The units of a plan in order; `consts` the constants that the function takes, in order, before the blobs.

    With a `relay` the device half is a device of its own and host units are asynchronous calls.
    """

    units: tuple[Unit, ...]
    consts: tuple[Value, ...]
    slices: Mapping[Value, Slice]
    folded: Folded
    relay: Relay | None = None
    sites: dict[HostUnit, Site] = dataclasses.field(default_factory=dict)

    @property
    def segments(self) -> tuple[HostUnit, ...]:
        return tuple(u for u in self.units if isinstance(u, HostUnit))

    def arguments(self, weights: Sequence[Any]) -> list[jax.Array]:
        """Constants and packed blobs for given weights, resident. With a relay the host half's stay in host memory."""
        known = _Sliced(self.folded.constants(weights), self.slices)
        resident = identities(self.folded, weights)
        args = [jnp.asarray(resident[v]) if v in resident and v not in self.slices else jnp.asarray(known[v]) for v in self.consts]
        if self.relay is None:
            return [*args, *(jax.device_put(u.segment.pack(known)) for u in self.segments)]  # aligned: taken without a copy
        self.sites.update((u, _site(self.relay, u, known)) for u in self.segments)
        return args

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The computation as JAX traces it: flat constants (see `arguments`) and inputs in, flat results out."""
        env: dict[Value, Any] = dict(zip(self.folded.inputs, inputs, strict=True))
        env.update(zip(self.consts, consts, strict=False))
        if self.relay is None:
            halves: _Halves = _Synchronous(env, dict(zip(self.segments, consts[len(self.consts) :], strict=True)))
        else:
            halves = _Asynchronous(env, self.sites)
        for unit in self.units:
            if isinstance(unit, HostUnit):
                halves.host(unit)
            else:
                halves.device(unit)
        return [halves.get(v) if isinstance(v, Value) else jnp.asarray(v.val, v.dtype) for v in self.folded.outputs]


class _Halves:
    """Values of a call being traced, and how units run; what both ways have in common."""

    def __init__(self, env: dict[Value, Any]):
        self.env = env

    def get(self, v: Value) -> Any:
        return self.env[v]

    def window(self, v: Value, windows: Mapping[Value, Slice]) -> Any:
        s = windows.get(v)
        return self.get(v) if s is None else lax.slice_in_dim(self.get(s.source), s.start, s.stop, axis=s.axis)

    def host(self, unit: HostUnit) -> None:
        raise NotImplementedError

    def device(self, unit: DeviceUnit) -> None:
        made = {v for op in unit.ops for v in op.outs}
        env = {v: self.window(v, unit.windows) for v in external(unit.ops)}
        run_ops(unit.ops, env)
        self.env.update((v, env[v]) for v in made)


class _Synchronous(_Halves):
    """On the CPU a host unit is one blocking call."""

    def __init__(self, env: dict[Value, Any], blobs: Mapping[HostUnit, Any]):
        super().__init__(env)
        self.blobs = blobs
        self.joins: dict[Value, Join] = {}  # by the device half's part

    def host(self, unit: HostUnit) -> None:
        segment = unit.segment
        program = segment.program
        results = [jax.ShapeDtypeStruct(v.shape, _carried(v)) for v in program.outputs]
        args = [self.window(v, unit.windows).astype(_carried(v)) for v in program.inputs]
        outs = ffi_call(TARGET, results, np.int64(segment.address), [*args, *(self.env[v] for v in segment.raw), self.blobs[unit]])
        self.env.update((v, out.astype(v.dtype)) for v, out in zip(program.outputs, outs, strict=True))
        if unit.join:
            self.joins[unit.join.parts[1]] = unit.join

    def device(self, unit: DeviceUnit) -> None:
        super().device(unit)
        for v in unit.ops[-1].outs:
            if v in self.joins:
                join = self.joins[v]
                self.env[join.out] = lax.concatenate([self.env[p] for p in join.parts], join.axis)


@dataclasses.dataclass(eq=False)
class _Pending:
    """A host unit that runs: its operands (alive until the join), and the last device result since it was started."""

    unit: HostUnit
    operands: list[Any]
    after: Any = None


class _Asynchronous(_Halves):
    """On a device a host unit is started as soon as its operands are there, and joined where a result is first read.

    `start` returns its operands: who reads them afterwards is ordered behind it. `join` takes them once more, so that
    XLA keeps them, and a device result, so that it is not joined before that.
    """

    def __init__(self, env: dict[Value, Any], sites: Mapping[HostUnit, Site]):
        super().__init__(env)
        self.sites = sites
        self.pending: dict[Value, _Pending] = {}

    def get(self, v: Value) -> Any:
        if v not in self.env:
            self._join(self.pending[v], None)
        return self.env[v]

    def host(self, unit: HostUnit) -> None:
        program = unit.segment.program
        sources = [unit.windows[v].source if v in unit.windows else v for v in program.inputs]
        args = [self.get(s).astype(_carried(s)) for s in sources]
        results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        started = host_call(f"{TARGET}_start", results, self.sites[unit].address, args, True)
        for s, x in zip(sources, started, strict=True):
            if np.dtype(_carried(s)).name == s.dtype:
                self.env[s] = x
        rest = _Pending(unit, started)
        self.pending.update((v, rest) for v in ((unit.join.parts[1],) if unit.join else program.outputs))

    def device(self, unit: DeviceUnit) -> None:
        super().device(unit)
        out = unit.ops[-1].out
        if out in self.pending and out in self.env:
            self._join(self.pending.pop(out), self.env[out])
        for p in self.pending.values():
            p.after = self.env[out]

    def _join(self, rest: _Pending, part: Any) -> None:
        unit, program = rest.unit, rest.unit.segment.program
        outputs = (unit.join.out,) if unit.join else program.outputs
        results = [jax.ShapeDtypeStruct(v.shape, _carried(v)) for v in outputs]
        extra = part.astype(_carried(outputs[0])) if part is not None else rest.after
        outs = host_call(f"{TARGET}_join", results, self.sites[unit].address, [*rest.operands, *([] if extra is None else [extra])], False)
        self.env.update((v, out.astype(v.dtype)) for v, out in zip(outputs, outs, strict=True))
        self.pending = {v: p for v, p in self.pending.items() if p is not rest}


def _site(relay: Relay, unit: HostUnit, known: Mapping[Value, np.ndarray]) -> Site:
    """The call site of a host unit: what it reads of each operand, and where its results go."""
    program = unit.segment.program
    inputs = [_window(v, unit.windows.get(v)) for v in program.inputs]
    if not inputs:
        raise Unsupported("a host segment that reads no value of the call")
    if unit.join:
        outputs = [Merge(unit.join.out.shape, unit.join.axis, unit.join.parts[0].shape[unit.join.axis])]
    else:
        outputs = [Merge.whole(v.shape) for v in program.outputs]
    return Site(relay, unit.segment, inputs, outputs, known)


def _window(v: Value, part: Slice | None) -> Window:
    return Window.whole(v.shape) if part is None else Window(part.source.shape, part.axis, part.start, part.stop)


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
            env.update(zip(ready.outs, bind(ready.primitive or MADE[ready.prim], args, dict(ready.params)), strict=True))


# -- from placements to units ------------------------------------------------------------------------

Build = Callable[[Program], Segment]


def lower(graph: LayerGraph, folded: Folded, placements: Sequence[Placement], build: Build, relay: Relay | None = None) -> Lowered:
    """Units for the placements. `build` makes a segment; it raises `Unsupported` for what kernels cannot do."""
    register("cpu" if relay is None else relay.driver.platform)
    plan = _Units(graph, build)
    for layers in chains(graph, placements):
        last = layers[-1]
        place = placements[last.index]
        size = last.out.shape[axis] if (axis := axis_of(last.ops, place.dim)) is not None else 0
        at = cut(size, last.dims.get(place.dim, 1), place.p_cpu) if place.half == "split" else 0
        if 0 < at < size:
            plan.both(layers, axis or 0, at, size)
            continue
        for layer in layers:
            if place.half == "host" or (place.half == "split" and at == size):
                plan.host(layer, layer.ops)
            else:
                plan.device(layer)
    plan.flush()
    consts = set(graph.program.consts) | set(plan.slices)
    needed: dict[Value, None] = {}
    for unit in plan.units:
        if isinstance(unit, DeviceUnit):
            needed.update(dict.fromkeys(v for v in external(unit.ops) if v in consts))
        elif relay is None:
            needed.update(dict.fromkeys(unit.segment.raw))
    for v in folded.outputs:
        if isinstance(v, Value) and v not in set(folded.inputs) and all(v not in layer.outs for layer in graph.layers):
            needed[v] = None
    return Lowered(tuple(plan.units), tuple(needed), plan.slices, folded, relay)


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

    def device(self, layer: Layer) -> None:
        self.flush()
        self.units.append(DeviceUnit(layer.ops, (layer.index,)))

    def both(self, layers: Sequence[Layer], axis: int, at: int, size: int) -> None:
        """A chain whose last result is divided: both halves compute what their part of it needs, each on its own."""
        ops = [op for layer in layers for op in layer.ops]
        first, second = split(ops, axis, 0, at), split(ops, axis, at, size)
        self.flush()
        for s in (*first.slices, *second.slices):
            if s.source in self.consts:
                self.slices[s.value] = s
                self.consts.add(s.value)
        for layer, groups in zip(layers, first.groups([x.ops for x in layers]), strict=True):
            self.groups += [(layer.index, g) for g in groups]
        self.flush(Join((first.out, second.out), layers[-1].out, axis), first.slices)
        self.units.append(DeviceUnit(_last(second.ops, second.out), tuple(x.index for x in layers), _outside(second.slices, self.consts)))

    def flush(self, join: Join | None = None, slices: Sequence[Slice] = ()) -> None:
        """Makes a segment of the host work that waits."""
        if not self.groups:
            return
        groups = tuple(ops for _, ops in self.groups)
        inside = {op for g in groups for op in g}
        ops = [op for g in groups for op in g]
        made = [v for op in ops for v in op.outs]
        if join is not None:
            outputs: tuple[Value, ...] = (join.parts[0],)
        else:
            outputs = tuple(v for v in dict.fromkeys(made) if v in self.outputs or any(r not in inside for r in self.readers.get(v, [])))
            floating = {op.out for op in ops if op.prim == "broadcast_in_dim" and all(v in self.consts for v in op.value_ins)}
            outputs = tuple(v for v in outputs if v not in floating or v in self.outputs)
        outside = [v for v in external(ops) if v not in set(made)]
        inputs = tuple(v for v in outside if v not in self.consts)
        consts = tuple(v for v in outside if v in self.consts)
        segment = self.build(Program(inputs, consts, groups, outputs))
        self.units.append(HostUnit(segment, tuple(i for i, _ in self.groups), _outside(slices, self.consts), join))
        self.groups.clear()


def _outside(slices: Sequence[Slice], consts: set[Value]) -> dict[Value, Slice]:
    """The slices of values of the call."""
    return {s.value: s for s in slices if s.source not in consts}


def _last(ops: Sequence[Op], out: Value) -> tuple[Op, ...]:
    """Operations with the one that makes `out` at the end."""
    return (*(op for op in ops if out not in op.outs), *(op for op in ops if out in op.outs))
