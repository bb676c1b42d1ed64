"""Steps for dot_general with any dimension numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..program import Op, Unsupported, Value, itemsize, kind
from ..rules.chosen import Chosen, chosen
from ..rules.expressions import COPY, Expr
from ..rules.products import FAR_BYTES, few_rows
from ..segment.context import RAW_BYTES, Context
from ..segment.steps import Ref
from ..segment.storage import Storage
from ..target import MatrixUnit
from . import across
from .block_shapes import block_shape
from .elementwise import copy, dense
from .gemv import Blocks, Index, add_blocks, add_gemv
from .in_place import Axis, Sides, add_product, even, merged
from .kept_weights import Stored, as_cast, stored
from .lanes import Lane, Product
from .pairs import FROM_FLOATS, check_exact, check_whole, narrow, over, pack_words, unit_of, unshifted, words
from .panels import packed
from .product import add_gemm, collapse, epilogue, pack_panels, panel_bytes
from .row_gemv import Channels, add_row_gemv, channels_of
from .word_panels import packed_words, unshifted_sums

READ_ONCE = 4  # rows, most, whose products with f32 weights are as fast as these are read where they lie
FEW_ROWS = 16  # up to so many, packing the other side takes longer than it saves


@dataclasses.dataclass(frozen=True)
class Side:
    """One operand of a product and its dimensions by role."""

    value: Value
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contract: tuple[int, ...]

    def sizes(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The lengths of some axes."""
        return tuple(self.value.shape[d] for d in dims)

    def step(self, s: Storage, dims: Sequence[int]) -> int | None:
        """Bytes from one index of some axes, taken as one, to the next in `s`; None where they do not lie evenly."""
        return collapse(self.sizes(dims), [s.strides[d] for d in dims])

    def in_order(self, ctx: Context, dims: Sequence[int]) -> Storage:
        """A copy with the axes in that order, whose elements lie side by side."""
        s, target = ctx.storage(self.value), ctx.scratch(self.sizes(dims))
        copy(ctx, s, target, tuple(s.strides[d] for d in dims))
        return target


def _side(v: Value, contract: tuple[int, ...], batch: tuple[int, ...]) -> Side:
    return Side(v, tuple(batch), tuple(d for d in range(len(v.shape)) if d not in (*contract, *batch)), tuple(contract))


def dot(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """dot_general with any dimension numbers; constant weights are packed at bind, others before the product.

    The side with the weights gives the channels. Returns what of the tail is not fused. Raises `Unsupported` for
    operands that are literals or of another kind than floating point.
    """
    a, b = op.ins
    if not isinstance(a, Value) or not isinstance(b, Value) or {kind(a.dtype), kind(b.dtype)} != {"f"}:
        raise Unsupported(f"a product of {[getattr(v, 'dtype', 'literal') for v in op.ins]}; kernels are f32")
    whole = check_whole(a, b, op.out)
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    left, right = _side(a, ac, ab), _side(b, bc, bb)
    picked = chosen(op, {r.out: r for r in rest})
    rest = tuple(r for r in rest if picked is None or r not in picked.ops)
    op, rest, moved = _transposed(op, rest)
    swapped = picked.side == 0 if picked else _swapped(ctx, left, right, moved)
    if swapped:
        left, right = right, left
    if picked:
        return _written(ctx, op, rest, *_picked(ctx, left, right, picked, moved))
    batch, m, n = left.sizes(left.batch), left.sizes(left.free), right.sizes(right.free)
    order = _order(moved, len(batch), len(m), len(n), swapped)
    product: Make = lambda lanes, expr: _product(ctx, left, right, lanes, expr, whole)
    return _written(ctx, op, rest, (batch, m, n), order, product)


Sizes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # of batch, rows and channels
Make = Callable[[list[Lane], Expr], None]  # appends a product to lanes[0] with an expression of it and the others


def _written(
    ctx: Context, op: Op, rest: tuple[Op, ...], sizes: Sizes, order: tuple[int, ...], product: Make
) -> tuple[Op, ...]:
    """Appends a product and what of its tail is fused, and returns what is not; `order`: where the dimensions (batch,
    rows, channels) are in the result.
    """
    batch, m, n = sizes
    tail = epilogue(ctx, op, rest)
    out = ctx.output(tail.result if tail else op.out)
    tensors = [(Ref(out.buffer, out.offset), out.strides)]
    tensors += [(Ref(s.buffer, s.offset + at), strides) for s, strides, at in (tail.operands if tail else ())]
    lanes = [_lane(ref, [strides[i] for i in order], batch, m, n) for ref, strides in tensors]
    found = [lane for lane in lanes if lane is not None]
    walked = len(found) == len(lanes) and all(lane.channel in (0, 4) for lane in found)
    if tail is not None and walked and (found[0].channel == 4 or math.prod(n) == 1):
        product(found, tail.expr)
        return ()
    final = ctx.output(op.out)
    lane = _lane(Ref(final.buffer, final.offset), [final.strides[i] for i in order], batch, m, n)
    if lane is not None and (lane.channel == 4 or math.prod(n) == 1):
        product([lane], COPY)
        return rest
    y = ctx.scratch((*batch, *m, *n))
    inner = _lane(Ref(y.buffer, y.offset), y.strides, batch, m, n)
    assert inner is not None
    product([inner], COPY)
    copy(ctx, y, final, tuple(y.strides[order.index(i)] for i in range(len(order))))
    return rest


def _picked(
    ctx: Context, left: Side, right: Side, picked: Chosen, moved: tuple[int, ...]
) -> tuple[Sizes, tuple[int, ...], Make]:
    """A product with matrices of a table as rows [batch, the index's other axes, rows] by channels, for `_written`."""
    nb = picked.batch
    pairs = sorted(zip(right.contract, left.contract, strict=True))  # as the matrices have them
    left = dataclasses.replace(left, contract=tuple(mine for _, mine in pairs))
    more = 0 if picked.summed else len(picked.index.shape) - 1 - nb
    batch, m = left.sizes(left.batch), left.sizes(left.free)
    others, n = right.sizes(right.free[:more]), right.sizes(right.free[more:])
    right_first, left_first = (nb, nb + len(right.free)) if picked.side == 0 else (nb + len(m), nb)
    rows, own = range(left_first, left_first + len(m)), range(right_first, right_first + len(right.free))
    order = tuple(map(moved.index, (*range(nb), *own[:more], *rows, *own[more:])))
    index, named = dense(ctx, ctx.storage(picked.index)), picked.named
    at = Ref(index.buffer, index.offset)
    each = math.prod(picked.index.shape[nb:-1])
    which = Blocks(math.prod(batch), each, picked.summed, 0, Index(at, named.limits[0], named.mode))
    x, w = _rows(ctx, left), Stored(as_cast(picked.table), picked.rows, picked.columns)
    product: Make = lambda lanes, expr: add_blocks(ctx, x, math.prod(m), w, which, lanes, expr)
    return ((), (*batch, *others, *m), n), order, product


def _swapped(ctx: Context, left: Side, right: Side, moved: tuple[int, ...]) -> bool:
    """Whether the left side gives the channels: it alone has weights, or, where neither has, its dimension lies side by
    side in the result.
    """
    if right.value in ctx.consts or left.value in ctx.consts:
        return right.value not in ctx.consts
    innermost = moved[-1] if moved else 0
    return len(left.batch) <= innermost < len(left.batch) + len(left.free)


def _order(moved: tuple[int, ...], batch: int, m: int, n: int, swapped: bool) -> tuple[int, ...]:
    """Where the dimensions (batch, of the side with the rows, of the side with the channels) are in the result, given
    how many of each there are.
    """
    first, second = (n, 0) if swapped else (0, m)
    rows, channels = (range(batch + at, batch + at + count) for at, count in ((first, m), (second, n)))
    return tuple(map(moved.index, (*range(batch), *rows, *channels)))


def _transposed(op: Op, rest: tuple[Op, ...]) -> tuple[Op, tuple[Op, ...], tuple[int, ...]]:
    """The product as it is after a transpose that follows it: (operation, what is left of the tail, dimensions of the
    product in order).
    """
    turn = next((r for r in rest if r.prim == "transpose" and r.ins[0] is op.out), None)
    if turn is None:
        return op, rest, tuple(range(len(op.out.shape)))
    left = tuple(r for r in rest if r is not turn)
    return dataclasses.replace(op, outs=turn.outs), left, tuple(turn.params["permutation"])


def _narrow(ctx: Context, left: Side, right: Side, lanes: list[Lane], expr: Expr, unit: MatrixUnit) -> None:
    """A product that the model asks for in bf16 or int8: rows are narrowed to words, which one instruction multiplies
    and adds.
    """
    batch, m, k, n = (
        math.prod(s.sizes(d))
        for s, d in ((left, left.batch), (left, left.free), (left, left.contract), (right, right.free))
    )
    x, g = _rows(ctx, left), Product((1, 1, 1, m), (0,), words(k, unit), n, batch)
    shape, turned = block_shape(ctx.target, m, n, unit, g.run), batch > 1 and x.group < x.pixels[3]
    order = (1, 0, 2) if turned else (0, 1, 2)  # as they lie, so that the step that makes them can write words
    sizes, strides = (tuple(walk[d] for d in order) for walk in ((batch, m, k), (x.group, x.pixels[3], x.channel)))
    rows = narrow(ctx, Storage(x.ref.buffer, x.ref.offset, sizes, strides, ((0, 0),) * 3), unit)
    row, group = (rows.strides[order.index(d)] for d in (1, 0))
    if right.value in ctx.consts:
        weights, more = _constant_words(ctx, right, g, k, shape[1], unit)
        lanes = [*lanes, *more]
    else:
        weights = _words(ctx, right, shape[1], unit)
        if unit.shift:
            lanes = [*lanes, unshifted_sums(ctx, weights, batch, k, n, shape[1], unit)]
    pixels = Lane(Ref(rows.buffer, rows.offset), (0, 0, 0, row), 4, group)
    add_gemm(ctx, g, pixels, weights, lanes[0], expr, lanes[1:], shape, unit)


def _constant_words(
    ctx: Context, side: Side, g: Product, k: int, nv: int, unit: MatrixUnit
) -> tuple[Ref, Sequence[Lane]]:
    """Packs constants as words, in channel blocks of `nv` vectors, and what sums of a unit with a shift begin with."""
    order, (batch, n) = (*side.batch, *side.contract, *side.free), (g.groups, g.channels)
    laid = lambda consts: np.transpose(consts[side.value], order).reshape(batch, 1, k, n)
    key, size = (unit.name, side.value, order, batch, k, n), panel_bytes(g, ctx.target.vl, nv) * batch
    weights = ctx.pack(size, lambda consts: pack_words(laid(consts), ctx.target.vl, nv, unit), ("panels", *key, nv))
    if not unit.shift:
        return weights, ()
    sums = ctx.pack(4 * batch * n, lambda consts: unshifted(laid(consts), unit), ("sums", *key))
    return weights, [Lane(sums, (0, 0, 0, 0), 4, 4 * n, begins=True)]


def _words(ctx: Context, side: Side, nv: int, unit: MatrixUnit) -> Ref:
    """Packs a right side that the model computes as words, in channel blocks of `nv` vectors."""
    s, k, n = ctx.storage(side.value), math.prod(side.sizes(side.contract)), math.prod(side.sizes(side.free))
    down, across = side.step(s, side.contract), side.step(s, side.free)
    walks = [(side.value.shape[d], s.strides[d]) for d in side.batch]
    if down is None or across is None or (4 not in (down, across) and n > 1):
        s, down, across = side.in_order(ctx, (*side.batch, *side.contract, *side.free)), 4 * n, 4
        walks = list(zip(s.shape, s.strides, strict=True))[: len(side.batch)]
    return packed_words(ctx, (s, (), 0), walks, (k, down), (n, across), nv, unit)


def _lane(
    ref: Ref, strides: Sequence[int], batch: tuple[int, ...], m: tuple[int, ...], n: tuple[int, ...]
) -> Lane | None:
    """A tensor over (batch, m, n) as a lane with m collapsed to one pixel dimension, or None."""
    cut, end = len(batch), len(batch) + len(m)
    group, pixel, channel = collapse(batch, strides[:cut]), collapse(m, strides[cut:end]), collapse(n, strides[end:])
    if group is None or pixel is None or channel is None:
        return None
    return Lane(ref, (0, 0, 0, pixel), channel, group)


def _product(ctx: Context, left: Side, right: Side, lanes: list[Lane], expr: Expr, whole: bool) -> None:
    """Appends the product of two sides; lanes[0] is the output, the others are the epilogue's operands. `whole`: sums
    are s32.
    """
    batch, m, k, n = (
        math.prod(s.sizes(d))
        for s, d in ((left, left.batch), (left, left.free), (left, left.contract), (right, right.free))
    )
    constant = right.value in ctx.consts
    unit = unit_of(ctx, left.value, right.value, whole, k)
    beside = not constant and left.step(ctx.storage(left.value), left.contract) == 4 and m > FEW_ROWS
    if whole and unit is not None and (constant or beside):
        return _narrow(ctx, left, right, lanes, expr, unit)
    if whole:
        check_exact(k)
        expr = over(expr, FROM_FLOATS)
    few, most = constant and batch == 1 and m <= FEW_ROWS, READ_ONCE if unit is None else 1
    if few and _by_rows(right):
        kept = stored(right.value, k, n)
        wide = kept.value is not right.value  # packed it would be several times as large
        if kept.value.nbytes >= RAW_BYTES and (m <= most or wide):
            return add_gemv(ctx, _rows(ctx, left), m, kept, lanes, expr)
    if few and _by_channels(right):
        laid = channels_of(right.value, n, k)
        if laid and laid.value.nbytes >= RAW_BYTES and (m <= most or laid.value is not right.value):
            return add_row_gemv(ctx, _rows(ctx, left), m, laid, lanes, expr)
    summed = constant and not whole and across.pays(ctx.target, n, k, 1)
    if constant and unit is not None and not summed:
        return _narrow(ctx, left, right, lanes, expr, unit)
    if (batch > 1 or not constant) and few_rows(m, k, n, batch) and _beside_data(ctx, left, right, lanes, expr):
        return None
    if unit is not None and beside:
        return _narrow(ctx, left, right, lanes, expr, unit)
    if not constant and (sides := _sides(ctx, left, right)) is not None:
        return add_product(ctx, sides, lanes[0], expr, lanes[1:])
    x = _rows(ctx, left)
    g = Product((1, 1, 1, m), (0,), k, n, batch)
    unit = across.ACROSS if summed else None
    shape = block_shape(ctx.target, m, n, unit, k)
    order = (*right.batch, *right.contract, *right.free)
    if summed:
        runs = lambda consts: np.transpose(consts[right.value], order).reshape(batch, 1, k, n)
        key = ("across", right.value, order, batch, k, n)
        weights = ctx.pack(4 * batch * k * n, lambda consts: across.pack(runs(consts), ctx.target.vl), key)
    elif constant:
        w = right.value

        def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
            return pack_panels(np.transpose(consts[w], order).reshape(batch, k, n), ctx.target.vl, shape[1])

        weights = ctx.pack(
            panel_bytes(g, ctx.target.vl, shape[1]) * batch, packer, ("panels", w, order, batch, k, n, shape[1])
        )
    else:
        weights = _panels(ctx, right, shape[1])
    return add_gemm(ctx, g, x, weights, lanes[0], expr, lanes[1:], shape, unit)


def _beside_data(ctx: Context, left: Side, right: Side, lanes: list[Lane], expr: Expr) -> bool:
    """Appends the product of a few rows with large matrices that the model computes, a key-value cache for example, as
    these lie; whether they lie in a way that kernels can follow.
    """
    batch, m, k, n = (
        math.prod(s.sizes(d))
        for s, d in ((left, left.batch), (left, left.free), (left, left.contract), (right, right.free))
    )
    s = ctx.stored(right.value)
    dtype = s.narrow or "float32"
    each = itemsize(dtype)
    step, row, column = (right.step(s, dims) for dims in (right.batch, right.contract, right.free))
    flat = [_all_rows(lane, batch, m) for lane in lanes]
    if step is None or row is None or column is None or each not in (row, column) or None in flat:
        return False
    if column == 4 and 4 * batch * k * n < (FAR_BYTES // 4 if m == 1 else FAR_BYTES):
        return False  # tiles read them in place as well, and hold more sums
    found, x, matrix = [lane for lane in flat if lane is not None], _rows(ctx, left), Value((k, n), dtype)
    if column == each:
        blocks = Blocks(batch, step=step, place=(Ref(s.buffer, s.offset), row))
        add_blocks(ctx, x, m, Stored(matrix, k, n), blocks, found, expr)
    else:
        blocks = Blocks(batch, step=step, place=(Ref(s.buffer, s.offset), column))
        add_row_gemv(ctx, x, m, Channels(matrix, n, k), found, expr, blocks)
    return True


def _all_rows(lane: Lane, batch: int, m: int) -> Lane | None:
    """A lane whose pixels are the rows of all groups, or None where they do not lie in a row."""
    step = collapse((batch, m), (lane.group, lane.pixels[3]))
    return None if step is None else dataclasses.replace(lane, pixels=(0, 0, 0, step), group=0)


def _sides(ctx: Context, left: Side, right: Side) -> Sides | None:
    """Two computed sides as they lie, or None where one has to be turned or packed first, or is better packed: where
    the elements of a row that are summed lie side by side, and many rows read the other side.
    """
    a, b = ctx.storage(left.value), ctx.storage(right.value)
    groups = left.step(a, left.batch), right.step(b, right.batch)
    row, channel = left.step(a, left.free), right.step(b, right.free)
    m, n, batch = (math.prod(s.sizes(d)) for s, d in ((left, left.free), (right, right.free), (left, left.batch)))
    lengths = left.sizes(left.contract)
    walks = zip(lengths, (a.strides[d] for d in left.contract), (b.strides[d] for d in right.contract), strict=True)
    axes = merged([Axis(*walk) for walk in walks])
    beside = m == 1 or row == 4 or (axes[-1].left == 4 and m <= FEW_ROWS)
    if None in groups or row is None or not beside or (channel != 4 and n > 1) or not even(axes):
        return None
    starts = [(Ref(s.buffer, s.offset), group or 0) for s, group in zip((a, b), groups, strict=True)]
    return Sides(axes, (1, 1, 1, m), (0, 0, 0, row), n, batch, *starts)


def _by_rows(right: Side) -> bool:
    """Whether the channels of the weights lie side by side, and their rows in the order of the sums."""
    return not right.batch and (*right.contract, *right.free) == tuple(range(len(right.value.shape)))


def _by_channels(right: Side) -> bool:
    """Whether what is summed of the weights lies side by side, for one channel after the other."""
    return not right.batch and (*right.free, *right.contract) == tuple(range(len(right.value.shape)))


def _rows(ctx: Context, side: Side) -> Lane:
    """The left side as [batch, m, k] with k contiguous: a lane over it, or over a copy."""
    s = ctx.storage(side.value)
    order = (*side.batch, *side.free, *side.contract)
    strides = [s.strides[d] for d in order]
    lane = _lane(
        Ref(s.buffer, s.offset), strides, side.sizes(side.batch), side.sizes(side.free), side.sizes(side.contract)
    )
    if lane is not None and lane.channel in (0, 4):
        return lane
    target = side.in_order(ctx, order)
    lane = _lane(
        Ref(target.buffer, target.offset),
        target.strides,
        side.sizes(side.batch),
        side.sizes(side.free),
        side.sizes(side.contract),
    )
    assert lane is not None
    return lane


def _panels(ctx: Context, side: Side, nv: int) -> Ref:
    """Packs a right side that the model computes, in channel blocks of `nv` vectors."""
    s, n = ctx.storage(side.value), math.prod(side.sizes(side.free))
    across = side.step(s, side.free)
    order = (*side.batch, *side.contract, *side.free)
    walk = [(side.value.shape[d], s.strides[d]) for d in order]
    if across is None:  # several dimensions of channels are cut into blocks as one
        s, across = side.in_order(ctx, order), 4
        walk = list(zip(s.shape, s.strides, strict=True))
    batch, end = len(side.batch), len(side.batch) + len(side.contract)
    return packed(ctx, (s, (), 0), walk[:batch], walk[batch:end], (n, across), nv)
