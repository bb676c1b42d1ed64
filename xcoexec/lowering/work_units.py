"""Placements -> units: what runs as one native call, what as JAX operations, and how parts come together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from ..codegen.program import Group, Op, Program, Value, consumers, external
from ..codegen.rules.primitives import is_broadcast
from ..codegen.segment.assembly import Segment
from ..errors import SplitError
from ..ir.layers import Layer, LayerGraph
from ..ir.placement import Placement
from ..ir.streaming import STREAMED_BYTES
from ..partition.split import Part, Slice, split_all, split_sums


@dataclasses.dataclass(frozen=True, eq=False)
class Join:
    """The host half's and the device half's part of `out`, one behind the other along `axis`; `begin`: indices of the
    host half's part that `out` begins behind.
    """

    parts: tuple[Value, Value]
    out: Value
    axis: int
    begin: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Kept:
    """An operand of which the host half has its first indices along `axis`: `at` of them lie where the unit `unit` has
    made `mine`. The next `more` ones come from `rest`, the device half's part.
    """

    unit: HostUnit
    mine: Value
    rest: Value
    axis: int
    at: int
    more: int


@dataclasses.dataclass(frozen=True, eq=False)
class HostUnit:
    """Neighbouring host work in one call; `layers` its groups' layer indices, `windows` its inputs that are parts of
    other values.

    `joins`: what becomes of each result when the device half makes the rest of them; `partial`: the result is a part of
    sums, to which the device half adds its own. `copied`: inputs and results that
    copy engines move, where the device half is a device of its own. `kept`: inputs that the host half has, or the
    beginning of them; `rooms`: results that lie where later inputs begin, and how many indices those have. `leader`: a
    unit that is joined once this one has begun, and not before.
    """

    segment: Segment
    layers: tuple[int, ...]
    windows: Mapping[Value, Slice] = dataclasses.field(default_factory=dict)
    joins: tuple[Join, ...] = ()
    copied: frozenset[Value] = frozenset()
    partial: bool = False
    kept: Mapping[Value, Kept] = dataclasses.field(default_factory=dict)
    rooms: Mapping[Value, int] = dataclasses.field(default_factory=dict)
    leader: HostUnit | None = None

    def source(self, v: Value) -> Value:
        """What an input comes from, or what of it the host half has not."""
        return self.kept[v].rest if v in self.kept else _source(self, v)

    @property
    def beside(self) -> bool:
        """Whether the device half computes a part of the same layers."""
        return bool(self.joins) or self.partial


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceUnit:
    """Operations on the device half in program order, for the layers `layers`; `windows` as in `HostUnit`; `streamed`:
    constants that come over at every call; `outs`: its results (none given: the last operation's).
    """

    ops: tuple[Op, ...]
    layers: tuple[int, ...]
    windows: Mapping[Value, Slice] = dataclasses.field(default_factory=dict)
    streamed: tuple[Value, ...] = ()
    outs: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "outs", self.outs or self.ops[-1].outs)

    def source(self, v: Value) -> Value:
        """What an operand comes from."""
        return _source(self, v)


def _source(unit: Unit, v: Value) -> Value:
    return unit.windows[v].source if v in unit.windows else v


Unit = HostUnit | DeviceUnit
Build = Callable[[Program], Segment]


class Units:
    """Collects units; neighbouring host work waits in `groups` until a device layer cuts the segment."""

    def __init__(self, graph: LayerGraph, placements: Sequence[Placement], build: Build):
        self.graph, self.placements, self.build = graph, placements, build
        self.units: list[Unit] = []
        self.groups: list[tuple[int, Group]] = []
        self.slices: dict[Value, Slice] = {}
        self.consts = set(graph.program.consts)
        self.outputs = set(graph.program.outputs)
        self.readers = consumers(graph.program.ops)

    def host(self, layer: Layer) -> None:
        """Adds a layer to the host work that waits."""
        self.groups.append((layer.index, layer.group))

    def device(self, layer: Layer, streamed: bool = False) -> None:
        """A layer on the device half, behind the host work that waits; `streamed`: its weights of `STREAMED_BYTES` or
        more come over at every call.
        """
        self.flush()
        self.units.append(DeviceUnit(layer.ops, (layer.index,), streamed=self._large(layer.ops) if streamed else ()))

    def divided(
        self, layers: Sequence[Layer], axes: Mapping[Value, int], at: int, resident: int, pieces: int, granule: int
    ) -> None:
        """A chain whose results are divided, each along its axis in `axes`: up to index `at` the host half's, up to
        `resident` the device half's from resident weights, then from streamed ones in `pieces` (of one result, each of
        whole granules). Each computes what its parts need, on its own. Raises `SplitError` where it has no such parts.
        """
        ops, out = [op for layer in layers for op in layer.ops], layers[-1].out
        axis = axes[out]
        self.flush()
        blocks = (out.shape[axis] - resident) // granule
        cuts = [at, *(resident + blocks * i // pieces * granule for i in range(pieces)), out.shape[axis]]
        found = [self._part(ops, axes, a, b) for a, b in zip(cuts, cuts[1:], strict=False) if a < b]
        rest = found[0][1] if len(found) == 1 else {out: Value(_part_shape(out, axis, at), out.dtype)}
        if at > 0:
            first, mine = self._part(ops, axes, 0, at)
            for layer, groups in zip(layers, first.groups([x.group for x in layers]), strict=True):
                self.groups += [(layer.index, g) for g in groups]
            self.flush(tuple(Join((mine[v], rest[v]), v, axes[v]) for v in axes), first.slices)
        rest = rest if at > 0 or len(found) == 1 else {out: out}
        indices = tuple(x.index for x in layers)
        for i, (part, made) in enumerate(found):
            streamed = self._large(part.ops) if i > 0 or at == resident < out.shape[axis] else ()
            outs = tuple(made.values())
            self.units.append(DeviceUnit(part.ops, indices, _outside(part.slices, self.consts), streamed, outs))
        if len(found) > 1:
            pieces_of = tuple(part.out for part, _ in found)
            joined = Op("concatenate", pieces_of, (rest[out],), {"dimension": axis})
            self.units.append(DeviceUnit((joined,), indices))

    def summed(self, layers: Sequence[Layer], at: int) -> None:
        """A chain that ends with a product: the host half sums over the indices up to `at`, the device half over the
        rest; that one adds both, and computes what is behind the product. Raises `SplitError` where there are no such
        parts.
        """
        self.flush()
        sums, groups = layers[-1].sums, [x.group for x in layers]
        if sums is None:
            raise SplitError(f"{layers[-1].name} is no product with float32 sums; it cannot be split along them.")
        mine, rest = (split_sums(groups, sums, a, b) for a, b in ((0, at), (at, sums.size)))
        for part in (mine, rest):
            self._sliced(part)
        for layer, own in zip(layers, mine.groups(groups), strict=True):
            self.groups += [(layer.index, g) for g in own]
        self.flush((), mine.slices, mine.out)
        indices = tuple(x.index for x in layers)
        self.units.append(DeviceUnit(rest.ops, indices, _outside(rest.slices, self.consts)))
        both = Op("add", (mine.out, rest.out), (sums.anchor.out,), {})
        self.units.append(DeviceUnit((both, *sums.behind), (layers[-1].index,)))

    def _part(
        self, ops: Sequence[Op], axes: Mapping[Value, int], start: int, stop: int
    ) -> tuple[Part, Mapping[Value, Value]]:
        """The part that makes `start:stop` of each result along its axis, and what stands for each of them."""
        part, made = split_all(ops, {v: (axis, start, stop) for v, axis in axes.items()})
        self._sliced(part)
        return part, made

    def _sliced(self, part: Part) -> None:
        """Slices of constants are constants."""
        for s in part.slices:
            if s.source in self.consts:
                self.slices[s.value] = s
                self.consts.add(s.value)

    def _large(self, ops: Sequence[Op]) -> tuple[Value, ...]:
        whole = lambda v: self.slices[v].source if v in self.slices else v
        return tuple(v for v in external(ops) if v in self.consts and whole(v).nbytes >= STREAMED_BYTES)

    def _copied(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> frozenset[Value]:
        """What the layers that read and write first say of the way."""
        found = set()
        for index, group in self.groups:
            place = self.placements[index]
            found |= {v for v in external(group.ops) if v in inputs and place.reads == "copy"}
            found |= {v for op in group.ops for v in op.outs if v in outputs and place.writes == "copy"}
        return frozenset(found)

    def flush(self, joins: tuple[Join, ...] = (), slices: Sequence[Slice] = (), partial: Value | None = None) -> None:
        """Makes a segment of the host work that waits; `joins`: what becomes of its results, `slices`: what it reads of
        other values, `partial`: its only result, a part of sums. Raises what `build` raises.
        """
        if not self.groups:
            return
        groups = tuple(group for _, group in self.groups)
        ops = [op for g in groups for op in g.ops]
        inside = set(ops)
        made = [v for op in ops for v in op.outs]
        if joins or partial is not None:
            outputs: tuple[Value, ...] = tuple(j.parts[0] for j in joins) if partial is None else (partial,)
        else:
            outputs = tuple(
                v
                for v in dict.fromkeys(made)
                if v in self.outputs or any(r not in inside for r in self.readers.get(v, []))
            )
            floating = {op.out for op in ops if is_broadcast(op) and all(v in self.consts for v in op.value_ins)}
            outputs = tuple(v for v in outputs if v not in floating or v in self.outputs)
        outside = [v for v in external(ops) if v not in set(made)]
        inputs = tuple(v for v in outside if v not in self.consts)
        consts = tuple(v for v in outside if v in self.consts)
        segment = self.build(Program(inputs, consts, groups, outputs))
        self.units.append(
            HostUnit(
                segment,
                tuple(i for i, _ in self.groups),
                _outside(slices, self.consts),
                joins,
                self._copied(inputs, outputs),
                partial is not None,
            )
        )
        self.groups.clear()


def _outside(slices: Sequence[Slice], consts: set[Value]) -> dict[Value, Slice]:
    """The slices of values of the call."""
    return {s.value: s for s in slices if s.source not in consts}


def _part_shape(v: Value, axis: int, start: int) -> tuple[int, ...]:
    return (*v.shape[:axis], v.shape[axis] - start, *v.shape[axis + 1 :])
