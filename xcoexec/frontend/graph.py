"""A folded trace -> layers (anchors with their elementwise tails), edges, chains and fork-join regions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax

from ..codegen.program import Body, Condition, Group, Literal, Op, Program, Unsupported, Value, consumers, external
from ..codegen.rules.loops import parts
from ..codegen.rules.primitives import is_anchor, is_broadcast, is_elementwise, is_movement, is_view, primitive
from ..codegen.rules.rows import is_row_reduction, recognise
from ..cost.features import flops, nbytes, uncounted
from ..ir.layers import Layer, LayerGraph, Region
from ..partition.split import granules
from .fold import Folded, fold
from .trace import paths, trace

LOOKAHEAD = 12
LOOKAHEAD_ROWS = 32


def graph_of(fn: Callable[..., object], args: Sequence[object], known: int) -> tuple[Folded, LayerGraph]:
    """Folded trace and graph of `fn(*args)`, whose first `known` arguments are weights; shapes (`jax.eval_shape`) are
    enough. Raises what `fn` raises, and `Unsupported` as `build_graph`.
    """
    values, tree = jax.tree_util.tree_flatten((tuple(args), {}))
    weights = len(jax.tree_util.tree_leaves(tuple(args[:known])))
    folded = fold(trace(fn, values, tree, paths(tree)), range(weights))
    return folded, build_graph(folded)


def build_graph(folded: Folded) -> LayerGraph:
    """The layer graph of one call. Raises `Unsupported` for an operation that has an effect and no result."""
    from ..codegen.runtime.host import unsupported  # with the kernels, which whoever imports this room need not load

    unread = next((op.prim for op in folded.ops if not op.outs), None)
    if unread is not None:
        raise Unsupported(f"{unread}, which has an effect and no result")
    made = {v for op in folded.ops for v in op.outs}
    data = {*folded.inputs, *made}
    outputs = tuple(dict.fromkeys(v for v in folded.outputs if isinstance(v, Value) and v in made))
    ops = [with_turns(op, data) for op in folded.ops]
    groups = group_ops(ops, data, outputs)
    consts = tuple(v for v in external(ops) if v not in data)
    program = Program(folded.inputs, consts, tuple(groups), outputs)
    names = _unique([_name(g) for g in groups])
    layers = []
    for i, (group, name) in enumerate(zip(groups, names, strict=True)):
        error = unsupported(group, consts)
        dims = granules(group) if len(group.outs) == 1 else {}
        work = sum(map(flops, group.ops))
        layers.append(Layer(i, name, group, work, nbytes(group.ops), error, dims, uncounted(group.ops)))
    owner = {v: x.index for x in layers for v in x.outs}
    edges = tuple(tuple(sorted({owner[v] for v in x.ins if v in owner})) for x in layers)
    return LayerGraph(program, tuple(layers), edges, _chains(edges), _regions(edges))


# -- loops -------------------------------------------------------------------------------------------


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
    groups = tuple(group_ops(ops, inner, outputs))
    asked = condition.ops if condition is not None else ()
    reads = tuple(v for v in external([*asked, *ops]) if v not in inner and v not in op.value_ins)
    turn = Body(body.inputs, reads, tuple(ops), tuple(outputs), groups, condition)
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


# -- grouping ----------------------------------------------------------------------------------------


def group_ops(ops: Sequence[Op], data: set[Value], outputs: Sequence[Value]) -> list[Group]:
    """Every operation in one group (broadcasts of constants: in each group that reads them). `data`: the values that
    are no constants; `outputs`: those of the program.
    """
    readers = consumers(ops)
    floating = {op.out: op for op in ops if is_broadcast(op) and not any(v in data - {op.out} for v in op.value_ins)}
    for op in list(floating.values()):
        if op.out in outputs or any(not (is_elementwise(r) or is_movement(r)) for r in readers.get(op.out, [])):
            del floating[op.out]
    makers, position = {v: op for op in ops for v in op.outs}, {op: i for i, op in enumerate(ops)}
    scope = _Scope(readers, makers, set(), set(), floating, set(outputs))
    groups = []
    for op in ops:
        if op in scope.taken or op.outs[0] in floating:
            continue
        group = _grow_rows(op, scope) or _grow(op, scope)
        scope.taken.update(group)
        scope.claimed.update(v for g in group for v in g.outs)
        groups.append(Group(tuple(sorted(group, key=position.__getitem__)), op))
    return groups


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
        """Untaken elementwise operations (with `rows` also row reductions) that `op` still needs, in order; None when
        it needs others.
        """
        out: list[Op] = []
        for v in op.value_ins:
            if v in inside or v in self.claimed or v in self.floating or v not in self.makers:
                continue
            maker = self.makers[v]
            if maker in self.taken or not (
                is_elementwise(maker) or is_broadcast(maker) or (rows and is_row_reduction(maker))
            ):
                return None
            deeper = self.missing(maker, inside, rows)
            if deeper is None or len(out) > LOOKAHEAD:
                return None
            out += [o for o in (*deeper, maker) if o not in out]
        return out


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


def _name(group: Group) -> str:
    """The module's path; where no module owns the operation alone, the primitive is added."""
    lead = group.leader
    path = lead.name or next((op.name for op in (group.anchor, *group.tail) if op.name), "")
    if primitive(lead).contraction:
        return path or lead.prim
    return f"{path}/{lead.prim}" if path else lead.prim


def _unique(names: Sequence[str]) -> list[str]:
    """Names with a number where one occurs again."""
    seen: dict[str, int] = {}
    out = []
    for n in names:
        seen[n] = seen.get(n, 0) + 1
        out.append(n if seen[n] == 1 else f"{n}#{seen[n]}")
    return out


# -- structure ---------------------------------------------------------------------------------------


def _chains(edges: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Longest runs in which each layer is the only reader of the one before and reads nothing else."""
    readers: dict[int, list[int]] = {i: [] for i in range(len(edges))}
    for i, reads in enumerate(edges):
        for r in reads:
            readers[r].append(i)
    chains, used = [], set()
    for i in range(len(edges)):
        if i in used:
            continue
        chain = [i]
        while len(readers[chain[-1]]) == 1 and len(edges[readers[chain[-1]][0]]) == 1:
            chain.append(readers[chain[-1]][0])
        used.update(chain)
        chains.append(tuple(chain))
    return tuple(chains)


def _regions(edges: Sequence[Sequence[int]]) -> tuple[Region, ...]:
    """Innermost fork-join parts: from a layer with several readers to the layer where all its paths meet."""
    n = len(edges)
    readers: dict[int, list[int]] = {i: [] for i in range(-1, n)}
    for i, reads in enumerate(edges):
        for r in reads or (-1,):
            readers[r].append(i)
    join = _post_dominators(readers, n)
    regions = []
    for fork in range(-1, n):
        if len(readers[fork]) < 2 or join.get(fork) is None or join[fork] >= n:
            continue
        branches = tuple(_reach(start, join[fork], readers) for start in readers[fork] if start != join[fork])
        flat = [i for b in branches for i in b]
        if len(flat) == len(set(flat)) and branches:
            regions.append(Region(fork, join[fork], branches))
    return tuple(regions)


def _post_dominators(readers: Mapping[int, Sequence[int]], n: int) -> dict[int, int]:
    """Layer -> the first later layer that every path to the end passes (n: the end)."""
    ipdom: dict[int, int] = {n: n}
    for i in range(n - 1, -2, -1):
        meet = None
        for r in readers[i] or [n]:
            meet = r if meet is None else _meet(meet, r, ipdom)
        assert meet is not None
        ipdom[i] = meet
    return ipdom


def _meet(a: int, b: int, ipdom: Mapping[int, int]) -> int:
    while a != b:
        if a < b:
            a = ipdom[a]
        else:
            b = ipdom[b]
    return a


def _reach(start: int, stop: int, readers: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    seen, todo = set(), [start]
    while todo:
        i = todo.pop()
        if i != stop and i not in seen:
            seen.add(i)
            todo += readers[i]
    return tuple(sorted(seen))
