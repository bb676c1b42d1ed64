"""A plan -> one JAX function: device layers as their own equations, host layers as native segment calls."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..codegen.program import Literal, Unsupported, Value, external
from ..codegen.runtime.faults import Faults
from ..codegen.runtime.host import give_idle_back
from ..codegen.runtime.pages import in_large_pages
from ..codegen.runtime.relay import Relay
from ..codegen.runtime.sites import Fetch, Merge, Site, Window
from ..compat import as_array
from ..devices.record import Device
from ..devices.registry import connected, device_of
from ..frontend.fold import Folded
from ..ir.layers import LayerGraph
from ..ir.placement import Placement, bounds, chain_results, chains
from ..ir.words import HOST, SPLIT, SUMS
from ..partition.split import Slice
from .emit import Asynchronous, Halves, Synchronous, register, turned_back
from .work_units import Build, DeviceUnit, HostUnit, Join, Unit, Units


@dataclasses.dataclass(frozen=True, eq=False)
class Lowered:
    """The units of a plan in order; `consts` the constants that the function takes, in order, before the blobs;
    `inside`: those that are part of its program; `ends`: units before which one program of several ends.

    With a `relay` the device half is a device of its own and host units are asynchronous calls; `fetches`: weights that
    it takes from host memory at every call, in their order; `faults`: what went wrong in these calls.
    """

    units: tuple[Unit, ...]
    consts: tuple[Value, ...]
    slices: Mapping[Value, Slice]
    folded: Folded
    relay: Relay | None = None
    turned: Mapping[Value, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    sites: dict[HostUnit, Site] = dataclasses.field(default_factory=dict)
    fetches: dict[tuple[DeviceUnit, Value], Fetch] = dataclasses.field(default_factory=dict)
    faults: Faults = dataclasses.field(default_factory=Faults)
    inside: Mapping[Value, np.ndarray] = dataclasses.field(default_factory=dict)
    ends: tuple[int, ...] = ()

    @property
    def device(self) -> Device:
        """What the device half computes on."""
        return device_of(self.relay)

    @property
    def segments(self) -> tuple[HostUnit, ...]:
        """The units on the host half."""
        return tuple(u for u in self.units if isinstance(u, HostUnit))

    def rest(self) -> None:
        """Gives back the memory that calls keep for the next one, where there may be none for a while."""
        for unit in self.segments:
            give_idle_back(unit.segment)

    def arguments(
        self, weights: Sequence[ArrayLike], where: jax.Device | None = None, blobs: Sequence[jax.Array] | None = None
    ) -> list[jax.Array]:
        """Constants and packed blobs (bytes, one for each segment) for given weights, resident. With a relay the host
        half's stay in host memory. `where`: the device on which they are to lie (None: weights where they are, others
        on the default device); `blobs`: those of another device of the same memory. Raises `Unsupported` for a segment
        that reads no value of the call, `MemoryError` where its intermediates find no room.
        """
        known = _Sliced(self.folded.constants(weights), self.slices)
        stored = self._stored(weights, known)
        place = as_array if where is None else functools.partial(jax.device_put, device=where)
        args = [place(stored(v)) for v in self.consts]
        if not self.device.apart:
            in_large_pages((x.unsafe_buffer_pointer(), x.nbytes) for x in args if len(x.devices()) == 1)
            packed = (u.segment.pack(known) for u in self.segments) if blobs is None else map(np.asarray, blobs)
            # aligned: taken without a copy
            return [*args, *(jax.device_put(x, where, may_alias=True) for x in packed)]
        relay = connected(self.relay)
        for unit in self.segments:
            self.sites[unit] = _site(relay, unit, known, self.faults, self.sites)
        streamed = [(u, v) for u in self.units if isinstance(u, DeviceUnit) for v in u.streamed]
        self.fetches.update((key, Fetch(relay, known[key[1]], self.faults)) for key in streamed)
        return args

    def _stored(self, weights: Sequence[ArrayLike], known: Mapping[Value, np.ndarray]) -> Callable[[Value], ArrayLike]:
        """A constant as the program has it: a weight where it lies already, others computed, some with turned axes."""
        resident = identities(self.folded, weights)
        own = lambda v: resident[v] if v in resident and v not in self.slices else known[v]
        return lambda v: np.ascontiguousarray(np.transpose(known[v], self.turned[v])) if v in self.turned else own(v)

    def with_inside(self, weights: Sequence[ArrayLike], most: int) -> Lowered:
        """The same with constants for given weights, the smallest ones first, as parts of the program: `most` bytes of
        them at most, and none where the device half shares its memory with the host half.
        """
        if not self.device.apart or not most:
            return self
        stored = self._stored(weights, _Sliced(self.folded.constants(weights), self.slices))
        plain = (v for v in self.consts if not v.dtype.startswith("key<"))  # no keys of random numbers
        order = sorted(plain, key=lambda v: v.nbytes)
        held = itertools.accumulate(v.nbytes for v in order)
        inside = {v: np.asarray(stored(v)) for v, total in zip(order, held, strict=True) if total <= most}
        return dataclasses.replace(self, consts=tuple(v for v in self.consts if v not in inside), inside=inside)

    def _first(self) -> Value:
        """The smallest input that the first unit with any reads: what is enqueued before it comes before everything."""
        inputs = set(self.folded.inputs)
        for unit in self.units:
            reads = external(unit.ops) if isinstance(unit, DeviceUnit) else unit.segment.program.inputs
            mine = [v for v in map(unit.source, reads) if v in inputs]
            if mine:
                return min(mine, key=lambda v: v.nbytes)
        raise Unsupported("a function that reads no input")

    def __call__(
        self, consts: Sequence[jax.Array], inputs: Sequence[jax.Array], given: Sequence[int] = ()
    ) -> list[jax.Array]:
        """The computation as JAX traces it: flat constants (see `arguments`) and inputs in, flat results out. `given`:
        positions of inputs that a call gives away, whose memory results may take.
        """
        env: dict[Value, jax.Array] = dict(zip(self.folded.inputs, inputs, strict=True))
        env.update((v, jnp.asarray(x)) for v, x in self.inside.items())
        env.update(zip(self.consts, consts, strict=False))
        turned_back(env, self.turned)
        if not self.device.apart:
            blobs = dict(zip(self.segments, consts[len(self.consts) :], strict=True))
            pairs = self.folded.handed(given).items()
            handed = {self.folded.inputs[i]: self.folded.outputs[o] for i, o in pairs}
            halves: Halves = Synchronous(env, blobs, handed)
        else:
            halves = Asynchronous(env, self.sites, self.fetches, self._first() if self.fetches else None)
        halves.run(self.units)
        return [halves.result(v, weak) for v, weak in self.results]

    @property
    def results(self) -> list[tuple[Value | Literal, bool]]:
        """The function's results, and whether each is of weak type."""
        weak = self.folded.weak or (False,) * len(self.folded.outputs)
        return [*zip(self.folded.outputs, weak, strict=True)]


def _site(
    relay: Relay,
    unit: HostUnit,
    known: Mapping[Value, np.ndarray],
    faults: Faults,
    before: Mapping[HostUnit, Site],
) -> Site:
    """The call site of a host unit: what it reads of each operand, and where its results go. `before`: those of the
    units before it.
    """
    program = unit.segment.program
    inputs = [_window(unit, v) for v in program.inputs]
    if not inputs:
        raise Unsupported("a host segment that reads no value of the call")
    outputs = [_merge(unit, j) for j in unit.joins] or [Merge.whole(v.shape, v in unit.copied) for v in program.outputs]
    place = lambda k: (before[k.unit], k.unit.segment.program.outputs.index(k.mine))
    kept = {i: place(unit.kept[v]) for i, v in enumerate(program.inputs) if v in unit.kept}
    leader = before[unit.leader] if unit.leader is not None else None
    return Site(relay, unit.segment, inputs, outputs, known, faults, kept, leader)


def _window(unit: HostUnit, v: Value) -> Window:
    """What a host unit reads of an operand, or what of it the host half has not."""
    copied, part = v in unit.copied, unit.windows.get(v)
    if v in unit.kept:
        k = unit.kept[v]
        return Window(k.rest.shape, k.axis, 0, k.more, copied, k.at)
    if part is None:
        return Window.whole(v.shape, copied)
    return Window(part.source.shape, part.axis, part.start, part.stop, copied)


def _merge(unit: HostUnit, join: Join) -> Merge:
    """What becomes of the host half's part of a result."""
    mine, room = join.parts[0], unit.rooms.get(join.parts[0], 0)
    at = mine.shape[join.axis] - join.begin
    return Merge(join.out.shape, join.axis, at, mine in unit.copied, join.begin, room)


class _Sliced(Mapping[Value, np.ndarray]):
    """Constants, and the slices of them that halves of split layers read."""

    def __init__(self, constants: Mapping[Value, np.ndarray], slices: Mapping[Value, Slice]):
        self._constants, self._slices = constants, slices

    def __getitem__(self, v: Value) -> np.ndarray:
        s = self._slices.get(v)
        return (
            self._constants[v]
            if s is None
            else self._constants[s.source][(slice(None),) * s.axis + (slice(s.start, s.stop),)]
        )

    def __iter__(self) -> Iterator[Value]:
        yield from (*self._constants, *self._slices)

    def __len__(self) -> int:
        return len(self._constants) + len(self._slices)


def identities(folded: Folded, weights: Sequence[ArrayLike]) -> dict[Value, jax.Array]:
    """Weights that are resident already (immutable `jax.Array`s) and need no copy. Raises `ValueError` for more or
    fewer weights than the function has.
    """
    pairs = [*zip(folded.weights, weights, strict=True), *folded.closed]
    return {v: w for v, w in pairs if isinstance(w, jax.Array)}


def lower(
    graph: LayerGraph, folded: Folded, placements: Sequence[Placement], build: Build, relay: Relay | None = None
) -> Lowered:
    """Units for the placements, one for each layer of the graph. `build` makes a segment; it raises `Unsupported` for
    what kernels cannot do. Raises `SplitError` for a layer that has no such parts.
    """
    device = device_of(relay)
    register(device)
    plan = Units(graph, placements, build)
    for layers in chains(graph, placements):
        last = layers[-1]
        place = placements[last.index]
        at, resident, size = bounds(last, place, device.apart)
        if place.dim == SUMS and 0 < at < size:
            plan.summed(layers, at)
            continue
        if 0 < at < size or 0 < resident < size or (size and resident == 0 and place.pieces > 1):
            axes = {v: axis for v, axis in chain_results(graph, layers, place.dim).items() if axis is not None}
            plan.divided(layers, axes, at, resident, place.pieces, last.dims.get(place.dim, 1))
            continue
        for layer in layers:
            if place.half == HOST or (place.half == SPLIT and at == size):
                plan.host(layer)
            else:
                plan.device(layer, resident == 0 and device.apart and place.streamed > 0)
    plan.flush()
    consts = set(graph.program.consts) | set(plan.slices)
    needed: dict[Value, None] = {}
    for unit in plan.units:
        if isinstance(unit, DeviceUnit):
            needed.update(dict.fromkeys(v for v in external(unit.ops) if v in consts and v not in unit.streamed))
        elif not device.apart:
            needed.update(dict.fromkeys(unit.segment.raw))
    for v in folded.outputs:
        if isinstance(v, Value) and v not in set(folded.inputs) and all(v not in layer.outs for layer in graph.layers):
            needed[v] = None
    ops = [op for unit in plan.units if isinstance(unit, DeviceUnit) for op in unit.ops]
    filters = device.filters(ops, device.compiling(graph.program.ops))
    turned = {v: order for v, order in filters.items() if v in needed and v not in folded.outputs}
    return Lowered(tuple(plan.units), tuple(needed), plan.slices, folded, relay, turned)
