"""Bodies of loops: their operations in groups, with the constants of the program around them under its names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..codegen.program import Body, Condition, Literal, Op, Value, external
from ..codegen.rules.loops import parts
from .clusters import clustered
from .groups import group_ops


def with_turns(op: Op, data: set[Value]) -> Op:
    """A loop with its body's operations in groups, as `data`, the values that are no constants, lets them be; any other
    operation as it is.
    """
    if op.body is None:
        return op
    body, p = op.body, parts(op)
    same = zip(p.of(body.inputs)[0], p.of(op.ins)[0], strict=True)
    names = {x: v for x, v in same if v not in data}
    inner = data | {v for v in body.inputs if v not in names} | {v for o in body.all_ops for v in o.outs}
    condition = None if body.condition is None else _condition(body.condition, names, inner)
    ops, outputs = _with_places([_renamed(o, names) for o in body.ops], body, names)
    inner |= {v for o in ops for v in o.outs}
    ops = [with_turns(o, inner) for o in ops]
    groups = tuple(clustered(group_ops(ops, inner, outputs), inner, outputs))
    asked = condition.ops if condition is not None else ()
    reads = tuple(v for v in external([*asked, *ops]) if v not in inner and v not in op.value_ins)
    turn = dataclasses.replace(
        body, consts=reads, ops=tuple(ops), outputs=tuple(outputs), groups=groups, condition=condition
    )
    return dataclasses.replace(op, body=turn)


def _with_places(ops: list[Op], body: Body, names: Mapping[Value, Value | Literal]) -> tuple[list[Op], list[Value]]:
    """Operations and outputs of a body with an operation that writes each output to a place of its own. What a turn of
    an unending loop hands on as it was needs none.
    """
    made, outputs = {v for o in ops for v in o.outs}, []
    for i, v in enumerate(body.outputs):
        known = names.get(v, v) if isinstance(v, Value) else v
        kept = body.condition is not None and known is body.inputs[len(body.inputs) - len(body.outputs) + i]
        if not kept and (known not in made or known in outputs):
            ops.append(Op("copy", (known,), (Value(known.shape, known.dtype),), {}))
            known = ops[-1].out
        assert isinstance(known, Value)
        outputs.append(known)
    return ops, outputs


def _condition(condition: Condition, names: Mapping[Value, Value | Literal], data: set[Value]) -> Condition:
    """A condition with its operations in groups; one of them makes its value."""
    ops, value = [_renamed(o, names) for o in condition.ops], names.get(condition.value, condition.value)
    if all(value not in o.outs for o in ops):
        ops.append(Op("copy", (value,), (Value((), "bool"),), {}))
        value = ops[-1].out
    assert isinstance(value, Value)
    inner = data | {v for o in ops for v in o.outs}
    ops = [with_turns(o, inner) for o in ops]
    return Condition(value, tuple(ops), tuple(group_ops(ops, inner, [value])))


def _renamed(op: Op, names: Mapping[Value, Value | Literal]) -> Op:
    """An operation that reads other values by `names`, inside of it too."""
    body = op.body
    if body is not None:
        condition = body.condition
        if condition is not None:
            condition = dataclasses.replace(condition, ops=tuple(_renamed(o, names) for o in condition.ops))
        body = dataclasses.replace(body, ops=tuple(_renamed(o, names) for o in body.ops), condition=condition)
    ins = tuple(names.get(v, v) if isinstance(v, Value) else v for v in op.ins)
    return dataclasses.replace(op, ins=ins, body=body)
