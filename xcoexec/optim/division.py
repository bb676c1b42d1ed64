"""What of an optimizer's update the host computes, found in the operations that it traces to.

    gradients ----+----------------------------> norms, schedules, corrections   the device: everything that is a number
                  |                                        |  words
                  v  one array a parameter                 v
    moments, master weights --> elementwise operations --> new moments, new parameter   the host: one pass over memory

A parameter is the host's if its update is elementwise in the parameter, its gradient (or one array that follows from
gradients and parameters) and its own state, with numbers that no state of the host's is needed for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..codegen.program import Literal, Op, Value
from ..codegen.rules.primitives import is_broadcast, is_elementwise

Result = Value | Literal
WORDS = ("float32", "int32", "bool")  # types of numbers that cross as words of 4 bytes
ARRAYS = ("float32", "bfloat16", "float16", "int32")  # of state that kernels read and write as it is stored


@dataclasses.dataclass(frozen=True, eq=False)
class Update:
    """An update as it was traced: `gradients`, `parameters` and their `updates`, one each; `states` and the
    `new_states`, one each.
    """

    ops: tuple[Op, ...]
    gradients: tuple[Value, ...]
    states: tuple[Value, ...]
    parameters: tuple[Value, ...]
    updates: tuple[Result, ...]
    new_states: tuple[Result, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class HostLeaf:
    """A parameter (its position) whose update the host computes: `ops` from the array `wire` that crosses, the `words`
    (numbers), the `states` (their positions), and the parameter itself where `reads_parameter`.
    """

    index: int
    ops: tuple[Op, ...]
    wire: Value
    words: tuple[Value, ...]
    states: tuple[int, ...]
    reads_parameter: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Division:
    """An update with the leaves that are the host's. `words`: all numbers that cross; `late`: some of them are known
    only when all gradients are.
    """

    update: Update
    leaves: tuple[HostLeaf, ...]
    words: tuple[Value, ...]
    late: bool

    def device_ops(self) -> list[Op]:
        """The operations of the device, in program order: for numbers and arrays that cross, and for all that is not
        the host's.
        """
        mine = {leaf.index for leaf in self.leaves}
        states = {j for leaf in self.leaves for j in leaf.states}
        wanted: list[Result] = [*self.words, *(leaf.wire for leaf in self.leaves)]
        wanted += [v for i, v in enumerate(self.update.updates) if i not in mine]
        wanted += [v for j, v in enumerate(self.update.new_states) if j not in states]
        return _needed(self.update.ops, wanted)


def divide(update: Update, offered: Collection[int], masters: Collection[int]) -> Division:
    """The division in which as many of the `offered` parameters (their positions) as can be are the host's. One without
    state is not, unless it is among the `masters`, whose weights are kept in another type.
    """
    makers = {v: op for op in update.ops for v in op.outs}
    owners = _owners(update)
    taken = {i for i in offered if i in owners and (owners[i] or i in masters)}
    while True:
        own = [update.states[j] for i in taken for j in owners[i]]
        hidden = _behind(update.ops, [*own, *(update.parameters[i] for i in taken if i in masters)])
        leaves = {i: _leaf_of(update, i, owners[i], makers, hidden) for i in sorted(taken)}
        found = [leaf for leaf in leaves.values() if leaf is not None]
        bad = {i for i, leaf in leaves.items() if leaf is None} | _missed(update, found, owners, makers, hidden)
        if not bad:
            break
        taken -= bad
    words = tuple(dict.fromkeys(w for leaf in found for w in leaf.words))
    late = not _behind(update.ops, update.gradients).isdisjoint(words)
    return Division(update, tuple(found), words, late)


def _is_simple(op: Op) -> bool:
    """Whether an operation computes each element of an array from numbers and the same element of others."""
    if len(op.outs) != 1 or op.body is not None or not op.out.shape:
        return False
    alike = all(v.shape in ((), op.out.shape) for v in op.ins)
    return alike and (is_elementwise(op) or is_broadcast(op) or op.prim == "convert_element_type")


def _owners(update: Update) -> dict[int, tuple[int, ...]]:
    """Parameter -> the positions of its state, for those whose gradient meets no other one element by element."""
    root: dict[Value, Value] = {}

    def find(v: Value) -> Value:
        while root.get(v, v) is not v:
            root[v] = root.get(root[v], root[v])
            v = root[v]
        return v

    for op in filter(_is_simple, update.ops):
        for v in op.value_ins:
            if v.shape:
                root[find(v)] = find(op.out)
    for g, p, u in zip(update.gradients, update.parameters, update.updates, strict=True):
        if isinstance(u, Value):
            for v in (p, u):
                root[find(v)] = find(g)
    for s, new in zip(update.states, update.new_states, strict=True):
        if isinstance(new, Value) and new.shape == s.shape and s.shape:
            root[find(s)] = find(new)
    roots = [find(g) for g in update.gradients]
    found: dict[int, tuple[int, ...]] = {}
    for i, r in enumerate(roots):
        states = tuple(j for j, s in enumerate(update.states) if find(s) is r)
        fits = all(update.states[j].shape == update.gradients[i].shape for j in states)
        if roots.count(r) == 1 and fits:
            found[i] = states
    return found


def _behind(ops: Iterable[Op], values: Iterable[Value]) -> set[Value]:
    """Values, and all that is computed from them."""
    found = set(values)
    for op in ops:
        if not found.isdisjoint(op.reads):
            found.update(op.outs)
    return found


def _needed(ops: Sequence[Op], wanted: Iterable[Result]) -> list[Op]:
    """The operations that values need, in program order."""
    values = {v for v in wanted if isinstance(v, Value)}
    found = []
    for op in reversed(ops):
        if not values.isdisjoint(op.outs):
            found.append(op)
            values.update(op.reads)
    return found[::-1]


def _leaf_of(
    update: Update, i: int, states: tuple[int, ...], makers: Mapping[Value, Op], hidden: Collection[Value]
) -> HostLeaf | None:
    """What the host computes of a parameter's update: from its gradient on if it can, else from the first array that
    follows from it and is enough. None where there is none.
    """
    shape, behind = update.gradients[i].shape, _behind(update.ops, [update.gradients[i]])
    later = (v for op in update.ops for v in op.outs if v in behind and v not in hidden and v.shape == shape)
    tries = (_leaf(update, i, states, makers, hidden, v) for v in (update.gradients[i], *later))
    return next((leaf for leaf in tries if leaf is not None), None)


def _leaf(
    update: Update,
    i: int,
    states: tuple[int, ...],
    makers: Mapping[Value, Op],
    hidden: Collection[Value],
    given: Value,
) -> HostLeaf | None:
    """As `_leaf_of`; an array that is `given` is not computed by the host."""
    own = {update.states[j] for j in states}
    ops, wires, words = set[Op](), dict[Value, None](), dict[Value, None]()
    seen = set[Value]()
    todo = [update.updates[i], *(update.new_states[j] for j in states)]
    while todo:
        v = todo.pop()
        if isinstance(v, Literal) or v in seen or v in own or v is update.parameters[i]:
            seen |= {v} if isinstance(v, Value) else set()
            continue
        seen.add(v)
        maker = makers.get(v)
        if v.shape and v is not given and maker is not None and _is_simple(maker):
            ops.add(maker)
            todo += maker.ins
        else:
            (wires if v.shape else words)[v] = None
    crossing = [*wires, *words]
    if len(wires) != 1 or any(v in hidden for v in crossing) or any(v.dtype not in WORDS for v in words):
        return None
    if any(update.states[j].dtype not in ARRAYS for j in states):
        return None
    ordered = tuple(op for op in update.ops if op in ops)
    return HostLeaf(i, ordered, next(iter(wires)), tuple(words), states, update.parameters[i] in seen)


def _missed(
    update: Update,
    leaves: Sequence[HostLeaf],
    owners: Mapping[int, tuple[int, ...]],
    makers: Mapping[Value, Op],
    hidden: Collection[Value],
) -> set[int]:
    """The leaves whose state the device needs for what is not the host's."""
    division = Division(update, tuple(leaves), (), False)
    made = {v for op in division.device_ops() for v in op.reads} & set(hidden)
    kept = set(_kept(update, leaves)) & set(hidden)
    missing = made | kept
    mine = lambda leaf: (update.parameters[leaf.index], *(update.states[j] for j in leaf.states))
    return {leaf.index for leaf in leaves if not missing.isdisjoint(mine(leaf))}


def _kept(update: Update, leaves: Sequence[HostLeaf]) -> Iterator[Value]:
    """The results that are not the host's."""
    mine = {leaf.index for leaf in leaves}
    states = {j for leaf in leaves for j in leaf.states}
    for i, v in enumerate(update.updates):
        if i not in mine and isinstance(v, Value):
            yield v
    for j, v in enumerate(update.new_states):
        if j not in states and isinstance(v, Value):
            yield v


__all__ = ["Division", "HostLeaf", "Update", "divide"]
