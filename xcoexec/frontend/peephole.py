"""Forms that gradients have, as operations that do less: pairs of operations that are one, sums of what does not meet.

pad, reduce_window_sum    of the padded zeroes nothing is read: a window over elements that lie apart
pad + pad + ...           parts of an array that do not meet: they are concatenated
a + scatter-add(0, u)     the scatter adds to a
gather at a known place   a slice; its gradient a padding
scatter of one block      an update of a slice
indices as a column       a reshape
transpose, dot_general    the product takes the operand as it lies
dot_general, .., transpose  the product writes its result turned, and what follows elementwise is done to that
dot_general of one term   a product of two arrays that are spread
reduction over axes apart  two reductions, each over neighbouring axes
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
from jax import lax

from ..codegen.program import Literal, Op, Value, consumers
from ..codegen.rules.primitives import is_elementwise, is_reduction
from .decompose import reshaped, sliced

Outputs = tuple[Value | Literal, ...]
FLOATS = ("float32", "bfloat16", "float16")
LESS = 8  # of a reduction over axes apart: elements that are one, least, after the first of two
BLOCK = 16  # elements from which on a block is worth the operations that say where it lies


@dataclasses.dataclass(frozen=True)
class _Around:
    """What is known of the operations around one: who makes and who reads a value, which are a literal everywhere."""

    makers: Mapping[Value, Op]
    readers: Mapping[Value, Sequence[Op]]
    spread: Mapping[Value, Literal]
    outputs: Outputs
    known: Collection[Value]

    def made(self, v: Value | Literal, prim: str) -> Op | None:
        """The operation of that primitive that makes a value."""
        op = self.makers.get(v) if isinstance(v, Value) else None
        return op if op is not None and op.prim == prim else None

    def alone(self, v: Value | Literal, prim: str = "") -> Op | None:
        """As `made`, of any primitive if none is named, where nobody else reads the value, and its reader once."""
        op = self.made(v, prim) if prim else self.makers.get(v) if isinstance(v, Value) else None
        if op is None or len(op.outs) != 1 or op.out in self.outputs or len(self.readers[op.out]) != 1:
            return None
        return op if self.readers[op.out][0].ins.count(op.out) == 1 else None

    def zero(self, v: Value | Literal) -> bool:
        """Whether a value is 0 everywhere."""
        known = self.spread.get(v) if isinstance(v, Value) else v
        return known is not None and known.val == 0


def rewritten(
    ops: Sequence[Op], spread: Mapping[Value, Literal], outputs: Outputs, known: Collection[Value]
) -> list[Op]:
    """Operations in order with those forms replaced; what nobody reads any more is still there. `spread`: values that
    are a literal everywhere, `known`: those that are known at bind.
    """
    for rules in RULES:
        around = _Around({v: op for op in ops for v in op.outs}, consumers(ops), spread, outputs, known)
        ops = [o for op in ops for o in (rules[op.prim](op, around) if op.prim in rules else None) or [op]]
    return [_moved(op) for op in ops]


def _moved(op: Op) -> Op:
    """A reduction over axes of length 1 is a reshape."""
    x = op.ins[0] if op.ins else None
    if not is_reduction(op) or not isinstance(x, Value) or any(x.shape[d] != 1 for d in op.params["axes"]):
        return op
    return reshaped(x, op.out, op.name) if x.dtype == op.out.dtype else op


def _aligned(op: Op, around: _Around) -> list[Op] | None:
    """Indices as a column: a broadcast that repeats nothing is a reshape, which copies nothing."""
    x = op.ins[0]
    whole = isinstance(x, Value) and x.size == op.out.size and x.dtype == "int32"
    return [reshaped(x, op.out, op.name)] if whole and len(x.shape) else None


def _taken(op: Op, around: _Around) -> list[Op] | None:
    """A gather at one place that is known is a slice."""
    table, index = op.ins
    at = around.spread.get(index) if isinstance(index, Value) else None
    dn = op.params["dimension_numbers"]
    if at is None or len(index.shape) != 1 or not isinstance(table, Value):
        return None
    sizes = op.params["slice_sizes"]
    start = _place(table.shape, sizes, dn.start_index_map, int(at.val))
    block = Value(tuple(sizes), table.dtype)
    return None if start is None else [sliced(table, block, start, op.name), reshaped(block, op.out, op.name)]


def _place(shape: tuple[int, ...], sizes: Sequence[int], named: Sequence[int], at: int) -> tuple[int, ...] | None:
    """Where a block begins that one number names along some axes; None where it does not lie inside."""
    start = tuple(at if d in named else 0 for d in range(len(shape)))
    return start if all(0 <= a <= n - m for a, n, m in zip(start, shape, sizes, strict=True)) else None


def _put(op: Op, around: _Around) -> list[Op] | None:
    """A scatter that adds to nothing, at one place that is known, is a padding."""
    table, index, update = op.ins
    at = around.spread.get(index) if isinstance(index, Value) else None
    dn = op.params["dimension_numbers"]
    if at is None or len(index.shape) != 1 or not around.zero(table) or not isinstance(update, Value):
        return None
    rest = iter(update.shape)
    sizes = tuple(1 if d in dn.inserted_window_dims else next(rest) for d in range(len(table.shape)))
    start = _place(table.shape, sizes, dn.scatter_dims_to_operand_dims, int(at.val))
    if start is None or update.dtype != table.dtype:
        return None
    config = tuple((a, n - a - m, 0) for a, n, m in zip(start, table.shape, sizes, strict=True))
    if not any(map(any, config)):
        return [reshaped(update, op.out, op.name)]
    block, zero = Value(sizes, table.dtype), Literal(np.zeros((), table.dtype)[()], table.dtype)
    pad = Op("pad", (block, zero), op.outs, {"padding_config": config}, op.name, lax.pad_p)
    return [reshaped(update, block, op.name), pad]


def _windows(op: Op, around: _Around) -> list[Op] | None:
    """A sum over windows of elements with zeroes between and around them (the gradient of mean-pooling)."""
    pad = around.alone(op.ins[0], "pad")
    if pad is None or not around.zero(pad.ins[1]) or any(n != 1 for n in op.params["base_dilation"]):
        return None
    config = pad.params["padding_config"]
    padding = tuple((lo + a, hi + b) for (lo, hi), (a, b, _) in zip(op.params["padding"], config, strict=True))
    spaces = {"padding": padding, "base_dilation": tuple(gap + 1 for _, _, gap in config)}
    return [dataclasses.replace(op, ins=(pad.ins[0],), params={**op.params, **spaces})]


def _sum(op: Op, around: _Around) -> list[Op] | None:
    """A sum with a scatter that adds to nothing; or of parts that fill an array and do not meet (the gradient of the
    slices that are queries, keys and values).
    """
    for mine, other in (op.ins, op.ins[::-1]):
        scatter = around.alone(mine, "scatter-add")
        if scatter is not None and around.zero(scatter.ins[0]) and (other.shape, other.dtype) == _type(scatter.out):
            return [dataclasses.replace(scatter, ins=(other, *scatter.ins[1:]), outs=op.outs)]
    reader = around.readers.get(op.out, ())
    if len(reader) == 1 and reader[0].prim == op.prim and op.out not in around.outputs:
        return None  # a part of a larger sum
    pads = [around.alone(v, "pad") for v in _summands(op, around)]
    known = [p for p in pads if p is not None and around.zero(p.ins[1]) and isinstance(p.ins[0], Value)]
    return _side_by_side(op, known) if len(known) == len(pads) else None


def _type(v: Value) -> tuple[tuple[int, ...], str]:
    return v.shape, v.dtype


def _summands(op: Op, around: _Around) -> list[Value | Literal]:
    found: list[Value | Literal] = []
    todo = list(op.ins[::-1])
    while todo:
        v = todo.pop()
        inner = around.alone(v, op.prim)
        if inner is None:
            found.append(v)
        else:
            todo += inner.ins[::-1]
    return found


def _side_by_side(op: Op, pads: Sequence[Op]) -> list[Op] | None:
    """The concatenation of what is padded, if it fills the result."""
    configs = [p.params["padding_config"] for p in pads]
    axes = {d for config in configs for d, part in enumerate(config) if tuple(part) != (0, 0, 0)}
    if len(axes) != 1:
        return None
    (axis,) = axes
    order = sorted(range(len(pads)), key=lambda i: configs[i][axis][0])
    at = 0
    for i in order:
        low, high, gap = configs[i][axis]
        if low != at or gap != 0 or high < 0:
            return None
        at += pads[i].ins[0].shape[axis]
    parts = tuple(pads[i].ins[0] for i in order)
    if at != op.out.shape[axis]:
        return None
    return [Op("concatenate", parts, op.outs, {"dimension": axis}, op.name, lax.concatenate_p)]


def _product(op: Op, around: _Around) -> list[Op] | None:
    """A product of a transposed matrix takes it as it lies; one of one term is none."""
    if (outer := _outer(op)) is not None:
        return outer
    (contract, batch), ins = op.params["dimension_numbers"], list(op.ins)
    axes = list(contract)
    for side in (0, 1):
        turn = around.made(ins[side], "transpose")
        if turn is None or turn.ins[0] in around.known:
            continue  # what is known is transposed once
        if len(turn.out.shape) == 2 and not batch[side] and len(axes[side]) == 1:
            ins[side], axes[side] = turn.ins[0], (turn.params["permutation"][axes[side][0]],)
    if tuple(ins) == op.ins:
        return None
    numbers = ((tuple(axes[0]), tuple(axes[1])), batch)
    return [dataclasses.replace(op, ins=tuple(ins), params={**op.params, "dimension_numbers": numbers})]


def _outer(op: Op) -> list[Op] | None:
    """A product that sums nothing is one element by element, of both sides spread over the result."""
    contract, batch = op.params["dimension_numbers"]
    if any(x.shape[d] != 1 for x, axes in zip(op.ins, contract, strict=True) for d in axes):
        return None
    if any(x.dtype != op.out.dtype for x in op.ins) or op.out.dtype not in FLOATS:
        return None
    spread, ops, free = list[Value](), list[Op](), len(batch[0])
    for x, axes, shared in zip(op.ins, contract, batch, strict=True):
        mine = [d for d in range(len(x.shape)) if d not in axes]
        own = [d for d in mine if d not in shared]
        places = [shared.index(d) if d in shared else free + own.index(d) for d in mine]
        free += len(own)
        if places != sorted(places):
            return None
        held = Value(tuple(x.shape[d] for d in mine), x.dtype)
        whole = Value(op.out.shape, x.dtype)
        params = {"shape": op.out.shape, "broadcast_dimensions": tuple(places), "sharding": None}
        ops.append(reshaped(x, held, op.name))
        ops.append(Op("broadcast_in_dim", (held,), (whole,), params, op.name, lax.broadcast_in_dim_p))
        spread.append(whole)
    return [*ops, Op("mul", tuple(spread), op.outs, {}, op.name, lax.mul_p)]


def _turn(op: Op, around: _Around) -> list[Op] | None:
    """A transpose of a transpose is one, or none; that of what follows a product comes directly behind the product."""
    before = around.made(op.ins[0], "transpose")
    if before is None:
        return _sooner(op, around)
    first, second = before.params["permutation"], op.params["permutation"]
    order = tuple(first[d] for d in second)
    if order == tuple(range(len(order))):
        return [reshaped(before.ins[0], op.out, op.name)]
    return [dataclasses.replace(op, ins=before.ins, params={**op.params, "permutation": order})]


def _sooner(op: Op, around: _Around) -> list[Op] | None:
    """The transpose of a product, and then the elementwise operations that lay between the two, of operands that are
    turned as well: numbers, arrays that are known, and such of fewer elements than the product. None where the product
    could not write what it computes as the transpose has it.
    """
    between, x = list[Op](), op.ins[0]
    while (maker := around.alone(x)) is not None and is_elementwise(maker):
        mains = [v for v in maker.value_ins if v.shape == maker.out.shape and v not in around.known]
        if len(mains) != 1 or any(v.shape and len(v.shape) != len(op.out.shape) for v in maker.value_ins):
            return None
        between, x = [maker, *between], mains[0]
    product, order = around.alone(x, "dot_general"), op.params["permutation"]
    if not between or product is None or not _writable(product, order, around):
        return None
    turned, ops = dict[Value, Value](), list[Op]()
    made = {o.out for o in between}
    for v in (product.out, *(v for o in between for v in o.value_ins if v.shape and v not in made)):
        if v not in turned:
            turned[v] = Value(tuple(v.shape[d] for d in order), v.dtype)
            ops.append(dataclasses.replace(op, ins=(v,), outs=(turned[v],)))
    for o in between:
        turned[o.out] = op.out if o is between[-1] else Value(op.out.shape, o.out.dtype)
        ins = tuple(turned.get(v, v) if isinstance(v, Value) else v for v in o.ins)
        ops.append(dataclasses.replace(o, ins=ins, outs=(turned[o.out],)))
    return ops


def _writable(product: Op, order: Sequence[int], around: _Around) -> bool:
    """Whether a product of two matrices for each index of its batch can write its result with the axes in that order:
    the last one is that of a side which may have the channels, beside one with the rows.
    """
    (contract, batch), ins = product.params["dimension_numbers"], product.ins
    free = [len(x.shape) - len(c) - len(b) for x, c, b in zip(ins, contract, batch, strict=True)]
    side = order[-1] - len(batch[0])
    return free == [1, 1] and side >= 0 and (ins[side] in around.known or ins[1 - side] not in around.known)


def _renewed(op: Op, around: _Around) -> list[Op] | None:
    """A scatter of one block is an update of a slice. A block that would be dropped, because it does not lie inside, is
    what is there.
    """
    x, index, update = op.ins
    if not isinstance(x, Value) or not isinstance(index, Value) or not isinstance(update, Value):
        return None
    dn, one = op.params["dimension_numbers"], len(index.shape) == 1 and index.dtype == "int32"
    plain = x.dtype == update.dtype and not dn.operand_batching_dims and op.params.get("update_jaxpr") is None
    if not one or not plain or update.size < BLOCK:
        return None
    rest, axes = iter(update.shape), dn.scatter_dims_to_operand_dims
    sizes = tuple(1 if d in dn.inserted_window_dims else next(rest) for d in range(len(x.shape)))
    block, starts = Value(sizes, x.dtype), dict[int, Value]()
    ops = [reshaped(update, block, op.name)]
    for i, d in enumerate(axes):
        part, starts[d] = Value((1,), "int32"), Value((), "int32")
        ops += [sliced(index, part, (i,), op.name), reshaped(part, starts[d], op.name)]
    where = [starts.get(d, _whole(0)) for d in range(len(sizes))]
    if op.params["mode"] != lax.GatherScatterMode.CLIP:  # XLA drops what is promised to lie inside as well
        made = lambda prim, ins, out, **params: ops.append(Op(prim.name, ins, (out,), params, op.name, prim))
        there, kept = Value(sizes, x.dtype), Value(sizes, x.dtype)
        made(lax.dynamic_slice_p, (x, *where), there, slice_sizes=sizes)
        made(lax.select_n_p, (_inside(starts, x.shape, sizes, made), there, block), kept)
        block = kept
    return [*ops, Op("dynamic_update_slice", (x, block, *where), op.outs, {}, op.name, lax.dynamic_update_slice_p)]


def _inside(
    starts: Mapping[int, Value], shape: Sequence[int], sizes: Sequence[int], made: Callable[..., None]
) -> Value | Literal:
    """Whether a block of those sizes that begins at `starts`, by axis, lies inside; `made` appends an operation."""
    found: Value | Literal = Literal(np.bool_(True), "bool")
    for d, start in starts.items():
        for prim, bound in ((lax.ge_p, 0), (lax.le_p, shape[d] - sizes[d])):
            holds, both = Value((), "bool"), Value((), "bool")
            made(prim, (start, _whole(bound)), holds)
            made(lax.and_p, (found, holds), both)
            found = both
    return found


def _in_two(op: Op, around: _Around) -> list[Op] | None:
    """A reduction over axes that are no neighbours, as group norm has it: first over all but the last run of them, or
    over that one, whichever leaves little. What is next to each other then is read row by row, or column by column.
    """
    x, out = op.ins[0], op.out
    exact = op.prim != "reduce_sum"
    if not isinstance(x, Value) or out.dtype != x.dtype or x.dtype not in (FLOATS if exact else FLOATS[:1]):
        return None
    axes = sorted(op.params["axes"])
    breaks = [i for i, (a, b) in enumerate(pairwise(axes), 1) if any(x.shape[d] != 1 for d in range(a + 1, b))]
    if not breaks:
        return None
    parts = axes[: breaks[-1]], axes[breaks[-1] :]
    first, second = next(
        ((p, q) for p, q in (parts, parts[::-1]) if math.prod(x.shape[d] for d in p) >= LESS), ((), ())
    )
    if not first:
        return None
    between = Value(tuple(n for d, n in enumerate(x.shape) if d not in first), x.dtype)
    moved = tuple(d - sum(f < d for f in first) for d in second)
    made = lambda x, axes, out: dataclasses.replace(op, ins=(x,), outs=(out,), params={**op.params, "axes": axes})
    both = made(x, tuple(first), between), made(between, moved, out)
    return [o for half in both for o in (_in_two(half, around) or [half])]


def _whole(n: int) -> Literal:
    return Literal(np.int32(n), "int32")


Rule = Callable[[Op, _Around], list[Op] | None]  # what stands for an operation; None: it stays
#: primitive -> its rule; those of a later table see what those of an earlier one have made
RULES: tuple[dict[str, Rule], ...] = (
    {
        "gather": _taken,
        "scatter-add": _put,
        "scatter": _renewed,
        "reduce_window_sum": _windows,
        "dot_general": _product,
        "transpose": _turn,
        "broadcast_in_dim": _aligned,
        **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min"), _in_two),
    },
    {"add_any": _sum, "add": _sum},
)

__all__ = ["Outputs", "rewritten"]
