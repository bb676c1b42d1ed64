"""The partitioner: a layer and a range of one output dimension -> the operations that compute just that range.

A request (axis, start, stop) on the result is propagated backwards through the layer, one rule a
primitive: which range of each operand is needed, and how the parameters change. Complementary ranges
concatenate to the layer's result; both halves of a split come from here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.kernels.expressions import is_elementwise
from ..codegen.program import Group, Literal, Op, Value
from ..errors import SplitError
from ..ir.geometry import axis_of

Request = tuple[int, int, int]  # axis, start, stop
CONTRACTIONS = (
    "conv_general_dilated",
    "dot_general",
)  # they read all of an operand's channels, whatever part of the result is asked for


@dataclasses.dataclass(frozen=True)
class Slice:
    """`value` is `source[start:stop]` along `axis`."""

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
            out.append((*map(Group.of, cuts), *((Group(rest, anchor or rest[0]),) if rest else ())))
        return tuple(out)


@dataclasses.dataclass(frozen=True)
class Need:
    """What an equation needs for a request: one request an operand (None: all of it), new parameters, operands kept."""

    operands: tuple[Request | None, ...]
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    keep: tuple[bool, ...] | None = None


def split(ops: Sequence[Op], axis: int, start: int, stop: int) -> Part:
    """The part of operations in program order that computes `start:stop` along `axis` of the last one's result.

    Raises `SplitError` that names the primitive and the reason when there is no such part.
    """
    ops = tuple(dict.fromkeys(ops))  # the spread of a constant may stand in several layers
    out = ops[-1].out
    if not 0 <= axis < len(out.shape) or not 0 <= start < stop <= out.shape[axis]:
        raise SplitError(
            f"split: got axis {axis}, range {start}:{stop} for a result {out}; valid is a non-empty range inside it."
        )
    made = {v: op for op in ops for v in op.outs}
    requests: dict[Value, Request | None] = {out: (axis, start, stop)}
    needs: dict[Op, Need] = {}
    for op in reversed(ops):
        if op.out in requests:
            needs[op] = _need(op, requests[op.out])
            _record(op, needs[op], requests, made)
    return _rebuild(needs, requests, made, out)


def _record(op: Op, need: Need, requests: dict[Value, Request | None], made: Mapping[Value, Op]) -> None:
    for i, (v, request) in enumerate(zip(op.ins, need.operands, strict=True)):
        if not isinstance(v, Value) or (need.keep and not need.keep[i]):
            continue
        before = requests.get(v, request)
        if v in made or (request is not None and before is not None):
            requests[v] = _hull(op, before, request)
        elif request is None and op.prim in CONTRACTIONS:
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


def _rebuild(
    needs: dict[Op, Need],
    requests: Mapping[Value, Request | None],
    made: Mapping[Value, Op],
    out: Value,
) -> Part:
    slices: dict[Value, Slice] = {}
    new: dict[Value, Value] = {}
    result: list[Op] = []
    origin: dict[Op, Op] = {}

    def add(op: Op, source: Op) -> None:
        result.append(op)
        origin[op] = source

    def operand(v: Value | Literal, request: Request | None, reader: Op) -> Value | Literal:
        if isinstance(v, Literal):
            return v
        there = requests.get(v)
        if v in made:
            held = new[v]
        elif request is None:
            if there is not None:
                raise SplitError(f"a value {v} is needed whole and in part; the layer cannot be split there.")
            return v
        elif there is None:
            held = v
        else:
            if v not in slices:
                slices[v] = Slice(Value(_part_shape(v.shape, there), v.dtype), v, *there)
            held = slices[v].value
        if request == there or request is None:
            return held
        first = there[1] if there is not None else 0
        piece = _slice_of(held, request[0], request[1] - first, request[2] - first)
        add(piece, reader)
        return piece.out

    for op, need in reversed(needs.items()):
        kept = need.keep or (True,) * len(op.ins)
        ins = tuple(operand(v, r, op) for v, r, k in zip(op.ins, need.operands, kept, strict=True) if k)
        new[op.out] = Value(_part_shape(op.out.shape, requests[op.out]), op.out.dtype)
        add(dataclasses.replace(op, ins=ins, outs=(new[op.out],), params={**op.params, **need.params}), op)
    return Part(tuple(result), tuple(slices.values()), new[out], origin)


def _slice_of(v: Value, axis: int, start: int, stop: int) -> Op:
    """The operation that takes `start:stop` of a value along `axis`."""
    begin = tuple(start if d == axis else 0 for d in range(len(v.shape)))
    limit = tuple(stop if d == axis else n for d, n in enumerate(v.shape))
    params = {"start_indices": begin, "limit_indices": limit, "strides": None}
    return Op("slice", (v,), (Value(_part_shape(v.shape, (axis, start, stop)), v.dtype),), params)


def parts_needed(ops: Sequence[Op], axis: int, start: int, stop: int) -> dict[Value, Request | None]:
    """Value -> the range of it that `start:stop` of the last result needs, back to the first operation that cannot be
    split.
    """
    requests: dict[Value, Request | None] = {ops[-1].out: (axis, start, stop)}
    made = {v: op for op in ops for v in op.outs}
    for op in reversed(tuple(dict.fromkeys(ops))):
        if op.out not in requests:
            continue
        try:
            _record(op, _need(op, requests[op.out]), requests, made)
        except SplitError:
            break
    return requests


def part_shares(ops: Sequence[Op], axis: int, start: int, stop: int) -> dict[Value, float]:
    """Value -> the share of it that `start:stop` of the last result needs, where only a part of it is needed and that
    can be followed.
    """
    needed = parts_needed(ops, axis, start, stop)
    return {v: (r[2] - r[1]) / v.shape[r[0]] for v, r in needed.items() if r is not None}


def _part_shape(shape: tuple[int, ...], request: Request | None) -> tuple[int, ...]:
    if request is None:
        return shape
    axis, start, stop = request
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


# -- rules -------------------------------------------------------------------------------------------


def _need(op: Op, request: Request | None) -> Need:
    if request is None:
        return Need((None,) * len(op.ins))
    if len(op.outs) != 1:
        raise SplitError(f"{op.prim} has {len(op.outs)} results; only layers with one can be split.")
    if is_elementwise(op) or op.prim == "convert_element_type":
        return _elementwise(op, *request)
    rule = RULES.get(op.prim)
    if rule is None:
        raise SplitError(
            f"{op.prim} has no split rule; primitives that have one: {', '.join(sorted(RULES))} and elementwise ones."
        )
    return rule(op, *request)


def _elementwise(op: Op, axis: int, start: int, stop: int) -> Need:
    def one(v: Value | Literal) -> Request | None:
        if isinstance(v, Literal) or not v.shape or (v.shape[axis] == 1 and op.out.shape[axis] != 1):
            return None
        return axis, start, stop

    return Need(tuple(one(v) for v in op.ins))


def _rows(
    axis: int, start: int, stop: int, size: int, window: int, stride: int, dilation: int, lo: int
) -> tuple[Request, tuple[int, int]]:
    """Input rows `S*(n-1)+F` that output rows start:stop read, and the padding that is left around them."""
    first = start * stride - lo
    last = (stop - 1) * stride - lo + (window - 1) * dilation + 1
    a, b = min(max(first, 0), size), min(max(last, 0), size)
    if b <= a:  # a part that sees padding only still needs one row to stand on
        a = min(a, size - 1)
        b = a + 1
    return (axis, a, b), (a - first, last - b)


def _conv(op: Op, axis: int, start: int, stop: int) -> Need:
    p = op.params
    dn = p["dimension_numbers"]
    lhs, rhs, out = dn.lhs_spec, dn.rhs_spec, dn.out_spec
    if p["batch_group_count"] != 1:
        raise SplitError("conv_general_dilated with batch_group_count > 1 cannot be split.")
    if axis == out[0]:
        return Need(((lhs[0], start, stop), None))
    if axis == out[1]:
        groups = p["feature_group_count"]
        weights = (rhs[0], start, stop)
        if groups == 1:
            return Need((None, weights))
        per_in, per_out = op.ins[0].shape[lhs[1]] // groups, op.out.shape[axis] // groups
        if start % per_out or stop % per_out:
            raise SplitError(
                f"conv_general_dilated: channels {start}:{stop} cut a group; groups are of {per_out} output channels."
            )
        a, b = start // per_out, stop // per_out
        return Need(((lhs[1], a * per_in, b * per_in), weights), {"feature_group_count": b - a})
    d = out.index(axis) - 2
    if p["lhs_dilation"][d] != 1:
        raise SplitError("conv_general_dilated: rows of a transposed convolution (lhs_dilation > 1) cannot be split.")
    window, dim = op.ins[1].shape[rhs[2 + d]], lhs[2 + d]
    lo = p["padding"][d][0]
    rows, pad = _rows(dim, start, stop, op.ins[0].shape[dim], window, p["window_strides"][d], p["rhs_dilation"][d], lo)
    padding = tuple(pad if i == d else q for i, q in enumerate(p["padding"]))
    return Need((rows, None), {"padding": padding})


def _window(op: Op, axis: int, start: int, stop: int) -> Need:
    p = op.params
    if p["base_dilation"][axis] != 1:
        raise SplitError(f"{op.prim}: rows of a window with base dilation cannot be split.")
    size = op.ins[0].shape[axis]
    rows, pad = _rows(
        axis,
        start,
        stop,
        size,
        p["window_dimensions"][axis],
        p["window_strides"][axis],
        p["window_dilation"][axis],
        p["padding"][axis][0],
    )
    if any(q < 0 for q in pad):
        raise SplitError(f"{op.prim}: the part would need negative padding {pad}; this range cannot be split off.")
    return Need((rows,), {"padding": tuple(pad if i == axis else q for i, q in enumerate(p["padding"]))})


def _dot(op: Op, axis: int, start: int, stop: int) -> Need:
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    a, b = op.ins
    afree = [d for d in range(len(a.shape)) if d not in (*ac, *ab)]
    bfree = [d for d in range(len(b.shape)) if d not in (*bc, *bb)]
    if axis < len(ab):
        return Need(((ab[axis], start, stop), (bb[axis], start, stop)))
    axis -= len(ab)
    if axis < len(afree):
        return Need(((afree[axis], start, stop), None))
    return Need((None, (bfree[axis - len(afree)], start, stop)))


def _reduce(op: Op, axis: int, start: int, stop: int) -> Need:
    kept = [d for d in range(len(op.ins[0].shape)) if d not in op.params["axes"]]
    return Need(((kept[axis], start, stop),))


def _broadcast(op: Op, axis: int, start: int, stop: int) -> Need:
    dims, shape = op.params["broadcast_dimensions"], list(op.params["shape"])
    shape[axis] = stop - start
    source = op.ins[0].shape
    i = dims.index(axis) if axis in dims else None
    request = None if i is None or (source[i] == 1 and op.out.shape[axis] != 1) else (i, start, stop)
    return Need((request,), {"shape": tuple(shape)})


def _transpose(op: Op, axis: int, start: int, stop: int) -> Need:
    return Need(((op.params["permutation"][axis], start, stop),))


def _reshape(op: Op, axis: int, start: int, stop: int) -> Need:
    """An axis passes through when the reshape leaves it and everything before it alone (up to ones)."""
    source, target = op.ins[0].shape, op.out.shape
    for i, n in enumerate(source):
        if n == target[axis] and _product(source[:i]) == _product(target[:axis]):
            sizes = tuple(stop - start if d == axis else m for d, m in enumerate(op.params["new_sizes"]))
            return Need(((i, start, stop),), {"new_sizes": sizes})
    raise SplitError(f"reshape {source} -> {target} regroups dimension {axis}; a part of it is no part of the operand.")


def _product(xs: Sequence[int]) -> int:
    out = 1
    for x in xs:
        out *= x
    return out


def _squeeze(op: Op, axis: int, start: int, stop: int) -> Need:
    kept = [d for d in range(len(op.ins[0].shape)) if d not in op.params["dimensions"]]
    return Need(((kept[axis], start, stop),))


def _concatenate(op: Op, axis: int, start: int, stop: int) -> Need:
    if axis != op.params["dimension"]:
        return Need(tuple((axis, start, stop) for _ in op.ins))
    requests: list[Request | None] = []
    at = 0
    for v in op.ins:
        a, b = max(start - at, 0), min(stop - at, v.shape[axis])
        requests.append((axis, a, b) if a < b else None)
        at += v.shape[axis]
    return Need(tuple(requests), {}, tuple(r is not None for r in requests))


def _pad(op: Op, axis: int, start: int, stop: int) -> Need:
    if tuple(op.params["padding_config"][axis]) != (0, 0, 0):
        raise SplitError("pad: a padded dimension cannot be split.")
    return Need(((axis, start, stop), None))


def _slice(op: Op, axis: int, start: int, stop: int) -> Need:
    p = op.params
    step = (p["strides"] or (1,) * len(op.out.shape))[axis]
    first = p["start_indices"][axis] + start * step
    last = p["start_indices"][axis] + (stop - 1) * step + 1
    begin = tuple(0 if d == axis else s for d, s in enumerate(p["start_indices"]))
    limit = tuple(last - first if d == axis else s for d, s in enumerate(p["limit_indices"]))
    return Need(((axis, first, last),), {"start_indices": begin, "limit_indices": limit})


def _rev(op: Op, axis: int, start: int, stop: int) -> Need:
    n = op.out.shape[axis]
    return Need(((axis, n - stop, n - start) if axis in op.params["dimensions"] else (axis, start, stop),))


RULES: dict[str, Callable[[Op, int, int, int], Need]] = {
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "concatenate": _concatenate,
    "pad": _pad,
    "slice": _slice,
    "rev": _rev,
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _window),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _reduce),
}


# -- which dimensions a layer can be split along -----------------------------------------------------


def granules(group: Group) -> dict[str, int]:
    """Split dim -> smallest block, for the dims along which this group can be split at all."""
    found = {}
    anchor, out = group.anchor, group.out
    for dim in ("channel", "rows"):
        axis = axis_of(group, dim)
        if axis is None or out.size == 0:
            continue
        granule = 1
        if dim == "channel" and anchor.prim == "conv_general_dilated" and anchor.params["feature_group_count"] > 1:
            granule = out.shape[axis] // anchor.params["feature_group_count"]
        if out.shape[axis] < 2 * granule:
            continue
        try:
            split(group.ops, axis, 0, granule)
            split(group.ops, axis, granule, out.shape[axis])
        except SplitError:
            continue
        found[dim] = granule
    return found
