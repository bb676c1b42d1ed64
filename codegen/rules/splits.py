"""What a range of an operation's result needs of its operands, one rule a primitive.

A rule takes the operation and a range `start:stop` along `axis` of its result. It raises `Indivisible` where there is
no such part.
"""

from __future__ import annotations

import dataclasses
import math

from ..program import Indivisible, Literal, Op, Params, Value
from .convolution import Convolution, geometry
from .indexing import gathered

Request = tuple[int, int, int]  # axis, start, stop


@dataclasses.dataclass(frozen=True)
class Need:
    """What an equation needs for a request: one request an operand (None: all of it), new parameters, operands kept."""

    operands: tuple[Request | None, ...]
    params: Params = dataclasses.field(default_factory=dict)
    keep: tuple[bool, ...] | None = None


def elementwise(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range of each operand along `axis`; all of one that is spread along it."""

    def one(v: Value | Literal) -> Request | None:
        if isinstance(v, Literal) or not v.shape or (v.shape[axis] == 1 and op.out.shape[axis] != 1):
            return None
        return axis, start, stop

    return Need(tuple(one(v) for v in op.ins))


def _rows(
    axis: int, start: int, stop: int, size: int, window: int, stride: int, dilation: int, lo: int
) -> tuple[Request, tuple[int, int]]:
    """Input rows `S*(n-1)+F` that output rows start:stop read, and the padding that is left around them. Raises
    `Indivisible` where they read padding alone: a row to stand on would need negative padding, with which XLA:CPU
    computes other results (1x1 windows over one pixel).
    """
    first = start * stride - lo
    last = (stop - 1) * stride - lo + (window - 1) * dilation + 1
    a, b = min(max(first, 0), size), min(max(last, 0), size)
    if b <= a:
        raise Indivisible(f"{start}:{stop} of its results read padding alone; this range cannot be split off.")
    return (axis, a, b), (a - first, last - b)


def convolution(op: Op, axis: int, start: int, stop: int) -> Need:
    """Along the batch the same images, along channels their weights, along rows what their windows read.

    Raises `Indivisible` for batch groups but along channels, for channels that cut a group, and for rows of a
    transposed convolution or of padding alone.
    """
    conv = geometry(op)
    if axis == conv.result[1]:
        return _channels(op, conv, start, stop)
    if conv.batch_groups != 1:
        raise Indivisible(f"{op.prim} with batch_group_count > 1 can be split along its channels alone.")
    if axis == conv.result[0]:
        return Need(((conv.image[0], start, stop), None))
    d = conv.result.index(axis) - 2
    if conv.spread[d] != 1:
        raise Indivisible(f"{op.prim}: rows of a transposed convolution (lhs_dilation > 1) cannot be split.")
    dim, (lo, _) = conv.image[2 + d], conv.padding[d]
    size = op.ins[0].shape[dim]
    rows, pad = _rows(dim, start, stop, size, conv.window[d], conv.strides[d], conv.dilation[d], lo)
    padding = tuple(pad if i == d else q for i, q in enumerate(conv.padding))
    return Need((rows, None), {"padding": padding})


def _channels(op: Op, conv: Convolution, start: int, stop: int) -> Need:
    """Output channels need their weights, and of the image their group's channels, or part of the batch."""
    weights = (conv.weights[0], start, stop)
    if conv.all_groups == 1:
        return Need((None, weights))
    of_batch = conv.batch_groups > 1
    per_in, per_out = (conv.batch if of_batch else conv.channels_in) // conv.all_groups, conv.granule
    if start % per_out or stop % per_out:
        raise Indivisible(f"{op.prim}: channels {start}:{stop} cut a group; groups are of {per_out} output channels.")
    a, b = start // per_out, stop // per_out
    count = "batch_group_count" if of_batch else "feature_group_count"
    return Need(((conv.image[0 if of_batch else 1], a * per_in, b * per_in), weights), {count: b - a})


def window(op: Op, axis: int, start: int, stop: int) -> Need:
    """The elements along `axis` that the windows of the range read, with the padding that is left around them.

    Raises `Indivisible` for a window with base dilation, and for a part that reads padding alone.
    """
    p = op.params
    if p["base_dilation"][axis] != 1:
        raise Indivisible(f"{op.prim}: rows of a window with base dilation cannot be split.")
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
    return Need((rows,), {"padding": tuple(pad if i == axis else q for i, q in enumerate(p["padding"]))})


def unpooled(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range of source and image. Raises `Indivisible` for an axis along which windows have a size."""
    p = op.params
    if (p["window_dimensions"][axis], p["window_strides"][axis], tuple(p["padding"][axis])) != (1, 1, (0, 0)):
        raise Indivisible(f"{op.prim}: an axis along which windows lie cannot be split.")
    return Need(((axis, start, stop), (axis, start, stop)))


def product(op: Op, axis: int, start: int, stop: int) -> Need:
    """The range of whichever operand has the `axis` of the result: of both along a batch dimension."""
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


def reduce(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range along the operand's axis that this `axis` of the result is."""
    kept = [d for d in range(len(op.ins[0].shape)) if d not in op.params["axes"]]
    return Need(((kept[axis], start, stop),))


def broadcast(op: Op, axis: int, start: int, stop: int) -> Need:
    """The range of the operand where it has this `axis`, else all of it; the part's shape becomes a parameter."""
    dims, shape = op.params["broadcast_dimensions"], list(op.params["shape"])
    shape[axis] = stop - start
    source = op.ins[0].shape
    i = dims.index(axis) if axis in dims else None
    request = None if i is None or (source[i] == 1 and op.out.shape[axis] != 1) else (i, start, stop)
    return Need((request,), {"shape": tuple(shape)})


def transpose(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range along the axis that the permutation takes from."""
    return Need(((op.params["permutation"][axis], start, stop),))


def reshape(op: Op, axis: int, start: int, stop: int) -> Need:
    """An axis passes through when the reshape leaves it and everything before it alone (up to ones), and whole blocks
    of one where it splits that into blocks, or joins it with the axes behind it: heads of a model's features.

    Raises `Indivisible` for an axis that the reshape regroups otherwise, and for a range that cuts a block.
    """
    source, target = op.ins[0].shape, op.out.shape
    sizes = tuple(stop - start if d == axis else m for d, m in enumerate(op.params["new_sizes"]))
    for i, n in enumerate(source):
        if (n < 2 and n != target[axis]) or math.prod(source[:i]) != math.prod(target[:axis]):
            continue
        up, down = n % target[axis] == 0, target[axis] % n == 0
        many, few = n // target[axis] if up else 1, target[axis] // n if down else 1
        if (up or down) and start % few == 0 == stop % few:
            return Need(((i, start * many // few, stop * many // few),), {"new_sizes": sizes})
    raise Indivisible(
        f"reshape {source} -> {target} regroups dimension {axis}; a part of it is no part of the operand."
    )


def squeeze(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range along the operand's axis that this `axis` of the result is."""
    kept = [d for d in range(len(op.ins[0].shape)) if d not in op.params["dimensions"]]
    return Need(((kept[axis], start, stop),))


def concatenate(op: Op, axis: int, start: int, stop: int) -> Need:
    """Along the axis of concatenation the operands that lie in the range, else the same range of each."""
    if axis != op.params["dimension"]:
        return Need(tuple((axis, start, stop) for _ in op.ins))
    requests: list[Request | None] = []
    at = 0
    for v in op.ins:
        a, b = max(start - at, 0), min(stop - at, v.shape[axis])
        requests.append((axis, a, b) if a < b else None)
        at += v.shape[axis]
    return Need(tuple(requests), {}, tuple(r is not None for r in requests))


def pad(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range of the operand along `axis`. Raises `Indivisible` for an axis that is padded."""
    if tuple(op.params["padding_config"][axis]) != (0, 0, 0):
        raise Indivisible("pad: a padded dimension cannot be split.")
    return Need(((axis, start, stop), None))


def slice_(op: Op, axis: int, start: int, stop: int) -> Need:
    """The elements along `axis` that the range takes, and a slice of these with its own bounds."""
    p = op.params
    step = (p["strides"] or (1,) * len(op.out.shape))[axis]
    first = p["start_indices"][axis] + start * step
    last = p["start_indices"][axis] + (stop - 1) * step + 1
    begin = tuple(0 if d == axis else s for d, s in enumerate(p["start_indices"]))
    limit = tuple(last - first if d == axis else s for d, s in enumerate(p["limit_indices"]))
    return Need(((axis, first, last),), {"start_indices": begin, "limit_indices": limit})


def gather(op: Op, axis: int, start: int, stop: int) -> Need:
    """The same range of the indices. Raises `Indivisible` for an axis of the rows, and for another gather than of whole
    rows of one table.
    """
    rows = gathered(op)
    if rows is None or rows.tables > 1 or axis >= len(op.ins[1].shape) - 1:
        raise Indivisible("gather: rows of a table can be divided by their indices alone.")
    return Need((None, (axis, start, stop)))


def rev(op: Op, axis: int, start: int, stop: int) -> Need:
    """The range along `axis`, counted from the other end where the axis is reversed."""
    n = op.out.shape[axis]
    return Need(((axis, n - stop, n - start) if axis in op.params["dimensions"] else (axis, start, stop),))
