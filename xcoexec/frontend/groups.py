"""Operations -> groups: anchors with their elementwise tails, passes over rows, sums of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..codegen.program import Group, Op, Value, consumers
from ..codegen.rules import chosen
from ..codegen.rules.convolution import convolution
from ..codegen.rules.indexing import scattered_rows
from ..codegen.rules.primitives import is_anchor, is_broadcast, is_elementwise, is_movement, is_view, primitive
from ..codegen.rules.rows import is_row_reduction, recognise
from ..codegen.rules.sums import summed

LOOKAHEAD = 12
LOOKAHEAD_ROWS = 32


def group_ops(
    ops: Sequence[Op], data: set[Value], outputs: Sequence[Value], passes: Sequence[Group] = ()
) -> list[Group]:
    """Every operation in one group (broadcasts of constants, turned weights and weights that indices choose: in each
    group that reads them).

    `data`: the values that are no constants; `outputs`: those of the program; `passes`: groups that are made already.
    """
    readers = consumers(ops)
    floating = {op.out: op for op in ops if is_broadcast(op) and not any(v in data for v in op.value_ins)}
    for op in list(floating.values()):
        if op.out in outputs or any(not (is_elementwise(r) or is_movement(r)) for r in readers.get(op.out, [])):
            del floating[op.out]
    floating |= _turned(ops, readers, data, outputs) | chosen.floating(ops, readers, data, outputs)
    makers, position = {v: op for op in ops for v in op.outs}, {op: i for i, op in enumerate(ops)}
    made = {group.ops[0]: group for group in passes}
    scope = _Scope(readers, makers, set(), {op for group in passes for op in group.ops}, floating, set(outputs))
    groups = []
    for op in ops:
        if op in made:
            groups.append(made[op])
            scope.claimed.update(made[op].outs)
        if op in scope.taken or op.outs[0] in floating:
            continue
        summed = _grow_sum(op, scope)
        group = summed or _grow_rows(op, scope) or _grow(op, scope)
        scope.taken.update(group)
        scope.claimed.update(v for g in group for v in g.outs)
        anchor = summed[-1] if summed else op
        groups.append(Group(tuple(sorted(group, key=position.__getitem__)), anchor))
    return groups


def _turned(
    ops: Sequence[Op], readers: Mapping[Value, list[Op]], data: set[Value], outputs: Sequence[Value]
) -> dict[Value, Op]:
    """Views of data that only convolutions read, as their weights: packing follows them without a pass of their own."""
    found: dict[Value, Op] = {}
    for op in reversed(ops):
        read = readers.get(op.outs[0], []) if op.outs else []
        if not read or not is_movement(op) or not is_view(op) or op.out in outputs or op.ins[0] not in data:
            continue
        if all(r.out in found or (convolution(r) is not None and op.out not in r.ins[:1]) for r in read):
            found[op.out] = op
    return found


@dataclasses.dataclass(eq=False)
class _Scope:
    """What growing a group has to know: who reads what, which values are there, which operations are taken."""

    readers: Mapping[Value, list[Op]]
    makers: Mapping[Value, Op]
    claimed: set[Value]
    taken: set[Op]
    floating: Mapping[Value, Op]
    outputs: set[Value]

    def missing(self, op: Op, inside: Sequence[Value], rows: bool = False) -> list[Op] | None:
        """Untaken elementwise operations and columns of indices (with `rows` also row reductions) that `op` still
        needs, in order; None when it needs others.
        """
        out: list[Op] = []
        for v in op.value_ins:
            if v in inside or v in self.claimed or v in self.floating or v not in self.makers:
                continue
            maker = self.makers[v]
            known = is_elementwise(maker) or is_broadcast(maker) or (rows and is_row_reduction(maker))
            if maker in self.taken or not (known or _indices(maker)):
                return None
            deeper = self.missing(maker, inside, rows)
            if deeper is None or len(out) > LOOKAHEAD:
                return None
            out += [o for o in (*deeper, maker) if o not in out]
        return out


def _indices(op: Op) -> bool:
    """Whether an operation lists indices as a column."""
    return op.prim == "reshape" and is_view(op) and op.out.dtype == "int32"


def _grow(anchor: Op, scope: _Scope) -> list[Op]:
    """The anchor and the longest run of elementwise operations that leaves only one result visible."""
    floats = _floats(anchor, scope.floating)
    group = [*floats, anchor]
    if len(anchor.outs) != 1 or not (is_anchor(anchor) or is_elementwise(anchor) or is_movement(anchor)):
        return group
    current = anchor.out
    if primitive(anchor).turns:  # its result is stored as a transpose has it
        reader = scope.readers.get(current, [])
        if (
            len(reader) == 1
            and reader[0].prim == "transpose"
            and reader[0] not in scope.taken
            and current not in scope.outputs
        ):
            group.append(reader[0])
            current = reader[0].out
    batch: list[Op] = []
    moving = is_view(anchor) and not is_anchor(anchor)
    while len(batch) < LOOKAHEAD and current not in scope.outputs:
        inside = [current, *(v for b in batch for v in b.outs)]
        found = _next(inside, batch, scope)
        if found is None:
            break
        nxt = found[-1]
        if not (is_elementwise(nxt) or (moving and is_view(nxt))) or (nxt.out.shape != current.shape and not moving):
            break
        batch += found
        moving = moving and is_view(nxt)
        hidden = [current, *(b.out for b in batch[:-1])]
        if all(all(r in batch for r in scope.readers.get(v, [])) and v not in scope.outputs for v in hidden):
            for b in batch:
                group += [f for f in _floats(b, scope.floating) if f not in group] + [b]
            current, batch = batch[-1].out, []
    return group


def _grow_rows(anchor: Op, scope: _Scope) -> list[Op] | None:
    """The longest group from `anchor` on that is one pass structure over rows (softmax, a norm), or None."""
    if not (is_elementwise(anchor) or is_row_reduction(anchor)) or len(anchor.outs) != 1 or not anchor.out.shape:
        return None
    row = anchor.ins[0].shape if is_row_reduction(anchor) else anchor.out.shape
    group, best, reductions = [anchor], None, is_row_reduction(anchor)
    while len(group) < LOOKAHEAD_ROWS:
        inside = [op.out for op in group]
        found = _next(inside, group, scope, rows=True)
        if found is None or not all(_fits_row(op, row) for op in found):
            break
        group += found
        reductions = reductions or any(map(is_row_reduction, found))
        hidden = [op.out for op in group[:-1]]
        closed = all(all(r in group for r in scope.readers.get(v, [])) and v not in scope.outputs for v in hidden)
        if closed and reductions and group[-1].out.shape == row:
            best = list(group)
        if group[-1].out in scope.outputs:
            break
    if best is None:
        return None
    whole = list(dict.fromkeys(op for b in best for op in (*_floats(b, scope.floating), b)))
    return whole if recognise(tuple(whole)) else None


def _grow_sum(gather: Op, scope: _Scope) -> list[Op] | None:
    """From a gather of rows on: the elementwise operations that lead to a scatter of the same rows, which nobody else
    reads, and the scatter. None where there is no such, or its kernel cannot read what they read.
    """
    group, current = [gather], gather.out
    while gather.prim == "gather" and len(group) < LOOKAHEAD:
        readers = scope.readers.get(current, [])
        if len(readers) != 1 or current in scope.outputs or readers[0] in scope.taken:
            return None
        found = scope.missing(readers[0], [op.out for op in group])
        if found is None or readers[0].out in scope.floating:
            return None
        group += [op for op in found if op not in group] + [readers[0]]
        current = readers[0].out
        if scattered_rows(readers[0]):
            whole = list(dict.fromkeys(op for b in group for op in (*_floats(b, scope.floating), b)))
            hidden = {op.out for op in group[:-1]}
            inside = all(r in group for v in hidden for r in scope.readers.get(v, [])) and not hidden & scope.outputs
            return whole if inside and summed(tuple(whole)) else None
        if not is_elementwise(readers[0]):
            return None
    return None


def _fits_row(op: Op, row: tuple[int, ...]) -> bool:
    """Whether `op` computes rows, or one number a row."""
    if is_row_reduction(op):
        return op.ins[0].shape == row
    known = is_elementwise(op) or is_broadcast(op) or (op.prim == "reshape" and is_view(op))
    return known and len(op.outs) == 1 and op.out.shape in (row, row[:-1], (*row[:-1], 1))


def _next(inside: Sequence[Value], batch: Sequence[Op], scope: _Scope, rows: bool = False) -> list[Op] | None:
    """The first untaken reader of `inside`, behind the elementwise operations that it still needs."""
    for v in inside:
        for r in scope.readers.get(v, []):
            if r in scope.taken or r in batch:
                continue
            needed = scope.missing(r, inside, rows)
            if needed is not None:
                return [*needed, r]
    return None


def _floats(op: Op, floating: Mapping[Value, Op]) -> list[Op]:
    out: list[Op] = []
    for v in op.value_ins:
        if v in floating:
            out += [*_floats(floating[v], floating), floating[v]]
    return list(dict.fromkeys(out))
