"""Programs with less in them: what follows from literals, pairs of operations that are one, results that nobody reads.

The bodies of loops are simplified too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jax import lax
from jax.typing import ArrayLike

from ..codegen.program import Body, Literal, Op, Value, consumers
from ..codegen.rules import reference
from ..codegen.rules.primitives import is_broadcast, primitive
from ..compat import bind
from .decompose import reshaped, sliced

Outputs = tuple[Value | Literal, ...]
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def simplified(ops: Sequence[Op], outputs: Outputs) -> tuple[list[Op], Outputs]:
    """Operations in order and their outputs, with less in them."""
    kept, spread, outputs = _without_literals(ops, outputs)
    kept = [o for op in kept for o in _at_one_place(op, spread)]
    kept = live(_pooled(kept, spread, outputs), outputs)
    return [op if op.body is None else dataclasses.replace(op, body=_turn(op.body)) for op in kept], outputs


def _turn(body: Body) -> Body:
    """One turn of a loop with less in it; what it asks before stays as it is."""
    ops, outputs = simplified(body.ops, body.outputs)
    return dataclasses.replace(body, ops=tuple(ops), outputs=outputs)


def live(ops: Sequence[Op], outputs: Outputs) -> list[Op]:
    """Drops operations that no output needs."""
    needed = {v for v in outputs if isinstance(v, Value)}
    kept: list[Op] = []
    for op in reversed(ops):
        if any(v in needed for v in op.outs) or primitive(op).effect:
            needed.update(op.reads)
            kept.append(op)
    return kept[::-1]


# -- literals -----------------------------------------------------------------------------------------


def wide(x: ArrayLike) -> np.ndarray:
    """An array of f32 as f64, any other as it is."""
    found = np.asarray(x)
    return found.astype(np.float64) if found.dtype == np.float32 else found


def typed(i: Literal) -> np.ndarray:
    """A literal as an array of its type."""
    return np.asarray(i.val, i.dtype)


def in_f64(op: Op) -> bool:
    """Whether the reference's rule, in f64, means the same as the primitive: on floating-point numbers, where nothing
    jumps; a primitive that jumps where its operands cross a border sees operands of their own type.
    """
    operands = op.ins[1:] if op.prim == "select_n" else op.ins
    simple = reference.known(op) and op.body is None and not primitive(op).jumps
    return simple and all(v.dtype in _FLOATS for v in (*operands, *op.outs))


def _without_literals(ops: Sequence[Op], outputs: Outputs) -> tuple[list[Op], dict[Value, Literal], Outputs]:
    """Scalars that follow from literals become literals; a `select_n` whose predicate is one becomes its branch. The
    operations that are left, values that are a literal everywhere, the outputs.
    """
    same: dict[Value, Value | Literal] = {}
    spread: dict[Value, Literal] = {}
    left = []
    for op in ops:
        op = dataclasses.replace(op, ins=tuple(same.get(v, v) if isinstance(v, Value) else v for v in op.ins))
        scalars = [v if isinstance(v, Literal) else spread.get(v) for v in op.ins]
        if is_broadcast(op) and scalars[0] is not None:
            spread[op.out] = scalars[0]
        case = _case(op, scalars[0]) if op.prim == "select_n" and scalars[0] is not None else None
        if case is not None and case.shape == op.out.shape:
            same[op.out] = case
        elif op.ins and not op.value_ins and len(op.outs) == 1 and not op.out.shape and reference.known(op):
            operands = [typed(v) for v in op.ins if isinstance(v, Literal)]
            value = reference.apply(op, *operands) if in_f64(op) else bind(op.primitive, operands, dict(op.params))[0]
            same[op.out] = Literal(np.asarray(value, op.out.dtype)[()], op.out.dtype)
        else:
            left.append(op)
    return left, spread, tuple(same.get(v, v) if isinstance(v, Value) else v for v in outputs)


def _case(op: Op, predicate: Literal) -> Value | Literal:
    """The operand that `select_n` takes: the first one below the range of its predicate, the last one above."""
    cases = op.ins[1:]
    return cases[min(max(int(predicate.val), 0), len(cases) - 1)]


# -- pairs and special cases --------------------------------------------------------------------------


def _at_one_place(op: Op, spread: Mapping[Value, Literal]) -> list[Op]:
    """A gather at one place that is known is a slice, and a scatter that adds there to nothing is a padding."""
    if op.prim not in ("gather", "scatter-add"):
        return [op]
    table, index, *updates = op.ins
    at = spread.get(index) if isinstance(index, Value) and len(index.shape) == 1 else None
    known = updates[0] if updates else table
    if at is None or not isinstance(table, Value) or not isinstance(known, Value):
        return [op]
    dn = op.params["dimension_numbers"]
    named, gone = (
        (dn.scatter_dims_to_operand_dims, dn.inserted_window_dims)
        if updates
        else (dn.start_index_map, dn.collapsed_slice_dims)
    )
    rest = iter(known.shape)
    sizes = (
        tuple(1 if d in gone else next(rest) for d in range(len(table.shape))) if updates else op.params["slice_sizes"]
    )
    start = tuple(int(at.val) if d in named else 0 for d in range(len(table.shape)))
    if any(not 0 <= a <= n - m for a, n, m in zip(start, table.shape, sizes, strict=True)):
        return [op]
    block = Value(tuple(sizes), table.dtype)
    if not updates:
        return [sliced(table, block, start, op.name), reshaped(block, op.out, op.name)]
    nothing = spread.get(table)
    if nothing is None or nothing.val != 0 or known.dtype != table.dtype:
        return [op]
    config = tuple((a, n - a - m, 0) for a, n, m in zip(start, table.shape, sizes, strict=True))
    if not any(map(any, config)):
        return [reshaped(known, op.out, op.name)]
    zero = Literal(typed(Literal(0, table.dtype))[()], table.dtype)
    pad = Op("pad", (block, zero), op.outs, {"padding_config": config}, op.name, lax.pad_p)
    return [reshaped(known, block, op.name), pad]


def _pooled(ops: Sequence[Op], spread: Mapping[Value, Literal], outputs: Outputs) -> list[Op]:
    """A sum over windows of elements with zeroes between and around them (the gradient of mean-pooling) is one of the
    elements alone.
    """
    readers, makers = consumers(ops), {v: op for op in ops for v in op.outs}
    out = []
    for op in ops:
        pad = makers.get(op.value_ins[0]) if op.prim == "reduce_window_sum" and op.value_ins else None
        alone = pad is not None and pad.prim == "pad" and len(readers[pad.out]) == 1 and pad.out not in outputs
        if pad is None or not alone or not _zero(pad.ins[1], spread) or any(n != 1 for n in op.params["base_dilation"]):
            out.append(op)
            continue
        config = pad.params["padding_config"]
        around = tuple((lo + a, hi + b) for (lo, hi), (a, b, _) in zip(op.params["padding"], config, strict=True))
        spaces = {"padding": around, "base_dilation": tuple(gap + 1 for _, _, gap in config)}
        out.append(dataclasses.replace(op, ins=(pad.ins[0],), params={**op.params, **spaces}))
    return out


def _zero(v: Value | Literal, spread: Mapping[Value, Literal]) -> bool:
    known = spread.get(v) if isinstance(v, Value) else v
    return known is not None and known.val == 0


__all__ = ["Outputs", "in_f64", "live", "simplified", "typed", "wide"]
