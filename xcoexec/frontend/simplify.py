"""Programs with less in them: what follows from literals, forms that are simpler, copies, results that nobody reads.

The bodies of loops are simplified too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
from jax.typing import ArrayLike

from ..codegen.program import Body, Literal, Op, Value, consumers
from ..codegen.rules import reference
from ..codegen.rules.primitives import is_broadcast, is_elementwise, is_movement, primitive
from ..compat import bind
from .peephole import Outputs, rewritten

_SHORT = ("bfloat16", "float16", "int8", "uint8", "int16", "uint16")
_MOVES = ("reshape", "transpose", "squeeze", "broadcast_in_dim")
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def simplified(ops: Sequence[Op], outputs: Outputs, known: Collection[Value]) -> tuple[list[Op], Outputs]:
    """Operations in order and their outputs, with less in them. `known`: values that are known at bind."""
    return _simplified(ops, outputs, known, {})


def _simplified(
    ops: Sequence[Op], outputs: Outputs, known: Collection[Value], spread: Mapping[Value, Literal]
) -> tuple[list[Op], Outputs]:
    """The same, of operations that read values of which some are a literal everywhere."""
    kept, spread, outputs = _without_literals(ops, outputs, spread)
    kept = _once(kept, outputs)
    kept = live(rewritten(kept, spread, outputs, known), outputs)
    turned = [op if op.body is None else dataclasses.replace(op, body=_turn(op, op.body, known, spread)) for op in kept]
    return turned, outputs


def _turn(op: Op, body: Body, known: Collection[Value], spread: Mapping[Value, Literal]) -> Body:
    """One turn of a loop with less in it; what it asks before stays as it is."""
    carried = body.inputs[body.same : body.same + body.carried]
    pairs = [(x, v) for x, v in zip(body.inputs, op.ins, strict=True) if x not in carried and isinstance(v, Value)]
    inside = {*body.consts, *(x for x, v in pairs if v in known)}
    ops, outputs = _simplified(body.ops, body.outputs, inside, {x: spread[v] for x, v in pairs if v in spread})
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


def _once(ops: Sequence[Op], outputs: Outputs) -> list[Op]:
    """Operations without those that compute whole numbers or truth values once more (each `x[i]` looks which indices
    are negative), or a floating-point number from a value of which nothing else is computed (each dense layer narrows
    what it reads). Others are computed again: with `jax.checkpoint` so that nobody has to keep them.
    """
    bodies = [op.body for op in ops if op.body is not None]
    named: set[Value | Literal | None] = {*outputs, *(v for b in bodies for v in b.consts)}
    named.update(x for op in ops for v in op.outs for x in (v.source, v.scale))
    alike = _alike(ops) - named
    same: dict[Value, Value] = {}
    made: dict[Hashable, Value] = {}
    kept = []
    for op in ops:
        op = dataclasses.replace(op, ins=tuple(same.get(v, v) if isinstance(v, Value) else v for v in op.ins))
        key = _form(op) if _may_be_once(op, alike) else None
        if key in made and op.out not in named:
            same[op.out] = made[key]
            continue
        if key is not None:
            made[key] = op.out
        kept.append(op)
    return kept


def _alike(ops: Sequence[Op]) -> set[Value]:
    """The values that are read by several operations which all compute the same."""
    several = ((v, r) for v, r in consumers(ops).items() if len(r) > 1 and len({op.prim for op in r}) == 1)
    simple = ((v, r) for v, r in several if is_elementwise(r[0]) or is_movement(r[0]))
    return {v for v, readers in simple if len({_form(op) for op in readers}) == 1}


def _may_be_once(op: Op, alike: Collection[Value]) -> bool:
    """Whether an operation is done once where another one computes the same."""
    if not (is_elementwise(op) or is_movement(op)) or len(op.outs) != 1:
        return False
    if is_broadcast(op) and op.out.size > math.prod(op.ins[0].shape):  # who reads it spreads a small array
        return False
    return _whole(op.out.dtype) or (len(op.reads) == 1 and op.reads[0] in alike)


def _form(op: Op) -> Hashable:
    """Equal for operations that compute the same."""
    ins = tuple(v if isinstance(v, Value) else (typed(v).tobytes(), v.dtype) for v in op.ins)
    return op.prim, ins, tuple((v.shape, v.dtype) for v in op.outs), repr(sorted(op.params.items()))


def _whole(dtype: str) -> bool:
    return dtype == "bool" or dtype.startswith(("int", "uint"))


def wide(x: ArrayLike) -> np.ndarray:
    """An array of f32 as f64, any other as it is."""
    found = np.asarray(x)
    with np.errstate(invalid="ignore"):  # of a signalling NaN
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


def bit_by_bit(op: Op) -> bool:
    """Whether NumPy computes an operation's very bits: it moves elements, or short numbers become f32."""
    if not all(isinstance(v, Value) for v in op.ins):
        return False
    widens = op.prim == "convert_element_type" and op.out.dtype == "float32" and op.ins[0].dtype in _SHORT
    return widens or op.prim in _MOVES


def _without_literals(
    ops: Sequence[Op], outputs: Outputs, known: Mapping[Value, Literal]
) -> tuple[list[Op], dict[Value, Literal], Outputs]:
    """Scalars that follow from literals become literals; a `select_n` whose predicate is one becomes its branch. The
    operations that are left, values that are a literal everywhere (`known` ones too), the outputs.
    """
    same: dict[Value, Value | Literal] = {}
    spread = dict(known)
    left = []
    kept = {*outputs, *(x for op in ops for v in op.outs for x in (v.source, v.scale))}  # read by these names
    for op in ops:
        op = dataclasses.replace(op, ins=tuple(same.get(v, v) if isinstance(v, Value) else v for v in op.ins))
        scalars = [v if isinstance(v, Literal) else spread.get(v) for v in op.ins]
        if is_broadcast(op) and scalars[0] is not None:
            spread[op.out] = scalars[0]
        case = _case(op, scalars[0]) if op.prim == "select_n" and scalars[0] is not None else None
        if case is not None and case.shape == op.out.shape:
            same[op.out] = case
        elif op.prim == "copy" and op.out not in kept:
            same[op.out] = op.ins[0]
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


__all__ = ["bit_by_bit", "in_f64", "simplified", "typed", "wide"]
