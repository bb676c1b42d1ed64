"""The partitioner: a layer and a range of one output dimension -> the operations that compute just that range.

A request (axis, start, stop) on the result is propagated backwards through the layer, one rule a
primitive: which range of each operand is needed, and how the parameters change. Complementary ranges
concatenate to the layer's result; both halves of a split come from here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..codegen.program import Group, Indivisible, Literal, Op, Value
from ..codegen.rules.convolution import convolution
from ..codegen.rules.primitives import PRIMITIVES, primitive
from ..codegen.rules.splits import Need, Request
from ..errors import SplitError
from ..ir.geometry import Sums, axis_of
from ..ir.words import AXES


@dataclasses.dataclass(frozen=True)
class Slice:
    """`value` is `source[start:stop]` along `axis`; their shapes differ in that axis alone."""

    value: Value
    source: Value
    axis: int
    start: int
    stop: int


@dataclasses.dataclass(frozen=True)
class Part:
    """The operations of one half, the slices of outside values that they read, and the result.

    `origin`: the operation that each one is a part of (of a slice between layers: the operation that reads it).
    """

    ops: tuple[Op, ...]
    slices: tuple[Slice, ...]
    out: Value
    origin: Mapping[Op, Op]

    def groups(self, layers: Sequence[Group]) -> tuple[tuple[Group, ...], ...]:
        """The operations layer by layer: for each layer the groups that compute its part (none where nothing of it is
        needed), the slices that they read in groups of their own.
        """
        out = []
        for layer in layers:
            mine = [op for op in self.ops if self.origin[op] in layer.ops]
            cuts = [op for op in mine if op.prim == "slice" and self.origin[op].prim != "slice"]
            rest = tuple(op for op in mine if op not in cuts)
            anchor = next((op for op in rest if self.origin[op] is layer.anchor), None)
            also = self._also(layer, rest)
            out.append((*map(Group.of, cuts), *((Group(rest, anchor or rest[0], also),) if rest else ())))
        return tuple(out)

    def _also(self, layer: Group, ops: Sequence[Op]) -> tuple[Value, ...]:
        """What operations of a layer's part make beside the last one's result, and others of the part read."""
        read = {v for op in self.ops if op not in ops for v in op.value_ins}
        return tuple(op.out for op in ops[:-1] if self.origin[op].out in layer.outs and op.out in read)


def split(ops: Sequence[Op], axis: int, start: int, stop: int) -> Part:
    """The part of operations in program order that computes `start:stop` along `axis` of the last one's result.

    Raises `SplitError` that names the primitive and the reason when there is no such part, or where the range is empty
    or lies outside of the result.
    """
    ops = tuple(dict.fromkeys(ops))  # the spread of a constant may stand in several layers
    out = ops[-1].out
    if not 0 <= axis < len(out.shape) or not 0 <= start < stop <= out.shape[axis]:
        raise SplitError(
            f"split: got axis {axis}, range {start}:{stop} for a result {out}; valid is a non-empty range inside it."
        )
    work = _split(ops, {out: (axis, start, stop)})
    return Part(tuple(work.origin), tuple(work.slices.values()), work.new[out], work.origin)


def split_all(ops: Sequence[Op], wanted: Mapping[Value, Request | None]) -> tuple[Part, Mapping[Value, Value]]:
    """The part of operations that computes a range (None: all) of each of several of their results, and what stands for
    these; its `out` is the last one's. Raises `SplitError` as `split`, and where another wanted result needs more of
    one than its own range.
    """
    work = _split(tuple(dict.fromkeys(ops)), wanted)
    more = next((v for v, request in wanted.items() if work.requests[v] != request), None)
    if more is not None:
        raise SplitError(f"a result {more} is needed in a larger part than {wanted[more]}; it cannot be split there.")
    new = {v: work.new[v] for v in wanted}
    last = next(new[op.out] for op in reversed(ops) if op.out in new)
    return Part(tuple(work.origin), tuple(work.slices.values()), last, work.origin), new


def split_sums(layers: Sequence[Group], sums: Sums, start: int, stop: int) -> Part:
    """The part of layers in program order whose last one has these sums that adds them up over the indices
    `start:stop`: its result has the product's shape, and the parts of all indices add up to it. Raises `SplitError` as
    `split`.
    """
    ops = dict.fromkeys((*(op for x in layers[:-1] for op in x.ops), *sums.before, sums.anchor))
    need = Need(tuple(sums.requests(start, stop)[v] for v in sums.operands))
    work = _split(tuple(ops), {sums.anchor.out: None}, {sums.anchor: need})
    return Part(tuple(work.origin), tuple(work.slices.values()), work.new[sums.anchor.out], work.origin)


def _split(ops: Sequence[Op], wanted: Mapping[Value, Request | None], given: Mapping[Op, Need] | None = None) -> _Work:
    """A part of operations in program order that makes ranges of some of their results; `given`: what operations need
    whose rules do not say it.
    """
    made = {v: op for op in ops for v in op.outs}
    requests: dict[Value, Request | None] = dict(wanted)
    needs: dict[Op, Need] = {}
    for op in reversed(ops):
        if any(v in requests for v in op.outs):
            needs[op] = given[op] if given and op in given else _need(op, requests)
            _record(op, needs[op], requests, made)
    work = _Work(requests, made)
    for op, need in reversed(needs.items()):
        work.rewrite(op, need)
    return work


def _record(op: Op, need: Need, requests: dict[Value, Request | None], made: Mapping[Value, Op]) -> None:
    for i, (v, request) in enumerate(zip(op.ins, need.operands, strict=True)):
        if not isinstance(v, Value) or (need.keep and not need.keep[i]):
            continue
        before = requests.get(v, request)
        if v in made or (request is not None and before is not None):
            requests[v] = _hull(op, before, request)
        elif request is None and primitive(op).contraction:
            requests[v] = None  # there as a whole: who needs a part of it takes a slice


def _hull(op: Op, a: Request | None, b: Request | None) -> Request | None:
    """The smallest range that holds both: readers with windows of different sizes meet at a value."""
    if a == b:
        return a
    if a is None or b is None or a[0] != b[0]:
        raise SplitError(
            f"{op.prim}: one value is needed in two different parts, {a} and {b}; the layer cannot be split there."
        )
    return a[0], min(a[1], b[1]), max(a[2], b[2])


class _Work:
    """A part in the making. `requests`: which range of a value is there (None: all of it); `made`: value -> the
    operation that makes it; `new`: value -> what stands for it in the part; `origin`: as `Part.origin`, in the part's
    order.
    """

    def __init__(self, requests: Mapping[Value, Request | None], made: Mapping[Value, Op]):
        self.requests, self.made = requests, made
        self.slices: dict[Value, Slice] = {}
        self.new: dict[Value, Value] = {}
        self.origin: dict[Op, Op] = {}

    def rewrite(self, op: Op, need: Need) -> None:
        """Appends the operation that computes what is requested of the result, behind the slices that it reads."""
        kept = need.keep or (True,) * len(op.ins)
        ins = tuple(self._operand(v, r, op) for v, r, k in zip(op.ins, need.operands, kept, strict=True) if k)
        out = self.new[op.out] = Value(_part_shape(op.out.shape, self.requests[op.out]), op.out.dtype)
        part = dataclasses.replace(op, ins=ins, outs=(out,), params={**op.params, **need.params})
        self.origin[part] = op

    def _operand(self, v: Value | Literal, request: Request | None, reader: Op) -> Value | Literal:
        """What the reader takes in the place of an operand of which it needs `request` (None: all of it)."""
        if isinstance(v, Literal):
            return v
        there = self.requests.get(v)
        if request is None and v not in self.made:
            if there is not None:
                raise SplitError(f"a value {v} is needed whole and in part; the layer cannot be split there.")
            return v
        held = self._held(v, there)
        if request == there or request is None:
            return held
        first = there[1] if there is not None else 0
        piece = _slice_of(held, request[0], request[1] - first, request[2] - first)
        self.origin[piece] = reader
        return piece.out

    def _held(self, v: Value, there: Request | None) -> Value:
        """What of a value is there: its part, a slice that the part takes, or all of it."""
        if v in self.made:
            return self.new[v]
        if there is None:
            return v
        if v not in self.slices:
            self.slices[v] = Slice(Value(_part_shape(v.shape, there), v.dtype), v, *there)
        return self.slices[v].value


def _slice_of(v: Value, axis: int, start: int, stop: int) -> Op:
    """The operation that takes `start:stop` of a value along `axis`."""
    begin = tuple(start if d == axis else 0 for d in range(len(v.shape)))
    limit = tuple(stop if d == axis else n for d, n in enumerate(v.shape))
    params = {"start_indices": begin, "limit_indices": limit, "strides": None}
    return Op("slice", (v,), (Value(_part_shape(v.shape, (axis, start, stop)), v.dtype),), params)


def parts_needed(ops: Sequence[Op], wanted: Mapping[Value, Request]) -> dict[Value, Request | None]:
    """Value -> the range (axis, start, stop) of it that the ranges `wanted` of some results need, None for all of it;
    back to the first operation that cannot be split, whose result is left out.
    """
    requests: dict[Value, Request | None] = dict(wanted)
    made = {v: op for op in ops for v in op.outs}
    for op in reversed(tuple(dict.fromkeys(ops))):
        if not any(v in requests for v in op.outs):
            continue
        try:
            _record(op, _need(op, requests), requests, made)
        except SplitError:
            return {v: request for v, request in requests.items() if v not in op.outs}
    return requests


def part_shares(needed: Mapping[Value, Request | None]) -> dict[Value, float]:
    """Value -> the share of it (0..1) that is needed, where that is only a part of it; `needed` as `parts_needed` gives
    it.
    """
    return {v: (r[2] - r[1]) / v.shape[r[0]] for v, r in needed.items() if r is not None}


def _part_shape(shape: tuple[int, ...], request: Request | None) -> tuple[int, ...]:
    if request is None:
        return shape
    axis, start, stop = request
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _need(op: Op, requests: Mapping[Value, Request | None]) -> Need:
    if len(op.outs) != 1:
        raise SplitError(f"{op.prim} has {len(op.outs)} results; only operations with one can be split.")
    request = requests[op.out]
    if request is None:
        return Need((None,) * len(op.ins))
    rule = primitive(op).split
    if rule is None:
        known = ", ".join(sorted(p.name for p in PRIMITIVES.values() if p.split and not p.vector))
        raise SplitError(f"{op.prim} has no split rule; primitives that have one: {known} and elementwise ones.")
    try:
        return rule(op, *request)
    except Indivisible as e:
        raise SplitError(str(e)) from None


# -- which dimensions a layer can be split along -----------------------------------------------------


def granules(group: Group) -> dict[str, int]:
    """Split dim -> its granule, the smallest block in indices of its axis, for the dims along which this group can be
    split at all.
    """
    found = {}
    out, conv = group.out, convolution(group.anchor)
    for dim in AXES:
        axis = axis_of(group, dim)
        if axis is None or out.size == 0:
            continue
        granule = conv.granule if conv is not None and dim == "channel" else 1
        size = out.shape[axis]
        if size < 2 * granule:
            continue
        last = (size - 1) // granule * granule
        try:  # where the first and the last block can be split off, those between them can
            for start, stop in ((0, granule), (granule, size), (last, size)):
                split(group.ops, axis, start, stop)
        except SplitError:
            continue
        found[dim] = granule
    return found
