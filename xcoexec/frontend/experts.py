"""Experts on both halves: the device half computes with the chosen matrices that lie on it, the host half with the
others, where they lie.

Which matrices of a table are chosen is known when a call is there. So everything between the choice and the end of what
is computed for each choice alone stands in the program twice: once with the table, and once with a *cache*, a table of
fewer matrices. `where` [matrices] says in which place of the cache a matrix lies (-1: in none).

    place  = where[index]
    theirs = f(x, table[index, or outside of the table where place >= 0])     reads no matrix for that
    mine   = f(x, cache[max(place, 0)])
    y      = mine where place >= 0, else theirs

Any `where` that agrees with the caches gives the same results: what lies there may change between two calls.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..codegen.program import Op, Value, kind
from ..codegen.rules.chosen import chosen
from ..codegen.rules.indexing import gathered
from ..codegen.rules.primitives import is_elementwise, is_reduction
from ..ir.layers import Layer, LayerGraph
from ..ir.streaming import STREAMED_BYTES
from ..ir.words import DEVICE, HOST
from .fold import Def, Folded
from .trace import traced_ops

NAME = "experts"  # of operations that look where a matrix lies


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """What is computed for each choice of `index` alone: `ops`, with the gathers from `tables`. `lead`: how many axes
    the choices have, the first ones of all values there. `edges`: the values that others read.
    """

    index: Value
    tables: tuple[Value, ...]
    ops: tuple[Op, ...]
    lead: int
    edges: tuple[Value, ...]

    @property
    def matrices(self) -> int:
        """How many matrices there are to choose from."""
        return self.tables[0].shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of one matrix of each table."""
        return sum(kept(t).nbytes // t.shape[0] for t in self.tables)


def kept(table: Value) -> Value:
    """A table as the model keeps it, in fewer bits where it is cast."""
    return table.source or table


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """A region in the program: `caches` by their tables, of the types in which these are kept; `where` a matrix lies in
    them. `order`: the numbers of the matrices that a new cache holds, by place.
    """

    region: Region
    where: Value
    caches: Mapping[Value, Value]
    slots: int
    order: Callable[[], np.ndarray]

    def places(self, order: np.ndarray) -> np.ndarray:
        """`where` for caches that hold these matrices, [matrices] of s32."""
        found = np.full(self.region.matrices, -1, np.int32)
        found[order] = np.arange(len(order), dtype=np.int32)
        return found


# -- what there is -----------------------------------------------------------------------------------


def regions(folded: Folded) -> list[Region]:
    """The regions of a program whose tables are weights."""
    made = {v for op in folded.ops for v in op.outs} | set(folded.inputs)
    makers = {op.out: op for op in folded.ops if op.prim in ("gather", "convert_element_type")}
    by_index: dict[tuple[Value, int], dict[Op, None]] = {}
    for op in folded.ops:
        found = chosen(op, makers) if any(v in makers for v in op.value_ins) else None
        if found is None or found.table in made or found.table.scale is not None or found.summed:
            continue
        table, matrices = kept(found.table), found.table.shape[0]
        few = 2 * math.prod(found.index.shape) <= matrices  # else a cache would be read for choices of others
        if few and table.shape == found.table.shape and table.nbytes // matrices >= STREAMED_BYTES:
            by_index.setdefault((found.index, found.table.shape[0]), {})[found.gather] = None
    grown = [_region(folded, index, list(gathers)) for (index, _), gathers in by_index.items()]
    return [r for r in grown if r is not None]


def _region(folded: Folded, index: Value, gathers: Collection[Op]) -> Region | None:
    """The region of these gathers; None where somebody reads a whole matrix of theirs."""
    lead = len(index.shape) - 1
    inside, whole, ops, edges = set[Value](), set[Value](), list[Op](), dict[Value, None]()
    for op in folded.ops:
        mine = [v for v in op.value_ins if v in inside]
        if op in gathers or (mine and _by_choice(op, inside, lead)):
            ops.append(op)
            inside.update(op.outs)
            if op in gathers or (op.prim == "convert_element_type" and op.ins[0] in whole):
                whole.update(op.outs)
        else:
            edges.update(dict.fromkeys(mine))
    edges.update(dict.fromkeys(v for v in folded.outputs if isinstance(v, Value) and v in inside))
    if whole & set(edges):
        return None
    tables = dict.fromkeys(op.value_ins[0] for op in gathers)
    return Region(index, tuple(tables), tuple(ops), lead, tuple(edges))


def _by_choice(op: Op, inside: Collection[Value], lead: int) -> bool:
    """Whether an operation computes for each choice alone, and its result has the choices as its first `lead` axes."""
    if op.body is not None or len(op.outs) != 1:
        return False
    mine = [v for v in op.value_ins if v in inside]
    if is_elementwise(op):
        return all(v.shape == op.out.shape for v in mine)
    if is_reduction(op):
        return min(op.params["axes"], default=lead) >= lead
    rule = _KEEPS.get(op.prim)
    return rule is not None and all(rule(op, side, lead) for side, v in enumerate(op.ins) if v in inside)


def _product(op: Op, side: int, lead: int) -> bool:
    (contract, batch) = (axes[side] for axes in op.params["dimension_numbers"])
    free = [d for d in range(len(op.ins[side].shape)) if d not in (*contract, *batch)]
    first = len(op.out.shape) - len(free) if side else len(batch)
    place = {d: i for i, d in enumerate(batch)} | {d: first + i for i, d in enumerate(free)}
    return all(place.get(d) == d for d in range(lead))


def _cut(op: Op, side: int, lead: int) -> bool:
    shape, p = op.ins[0].shape, op.params
    kept = zip(p["start_indices"], p["limit_indices"], p["strides"] or (1,) * len(shape), shape, strict=True)
    return all((start, stop, step) == (0, n, 1) for start, stop, step, n in list(kept)[:lead])


#: whether an operation leaves the first axes of an operand the first of its result: (op, operand, how many)
_KEEPS: dict[str, Callable[[Op, int, int], bool]] = {
    "dot_general": _product,
    "reshape": lambda op, side, lead: op.ins[0].shape[:lead] == op.out.shape[:lead],
    "transpose": lambda op, side, lead: tuple(op.params["permutation"][:lead]) == tuple(range(lead)),
    "broadcast_in_dim": lambda op, side, lead: (
        tuple(op.params["broadcast_dimensions"][:lead]) == tuple(range(lead))
        and op.ins[0].shape[:lead] == op.out.shape[:lead]
    ),
    "slice": _cut,
    "squeeze": lambda op, side, lead: min(op.params["dimensions"], default=lead) >= lead,
}


# -- the program with caches -------------------------------------------------------------------------


def with_caches(
    folded: Folded, found: Sequence[Region], slots: int, order: Callable[[int], np.ndarray]
) -> tuple[Folded, list[Bank]]:
    """The program whose regions have caches of `slots` matrices, and what there is to know of these. Its last result,
    which is not the function's, is the numbers that all regions have chosen, s32 [choices of all]. `order(i)`: the
    matrices that a new cache of region i holds.
    """
    banks, ops, prologue = [], list(folded.ops), list(folded.prologue)
    for i, region in enumerate(found):
        where, caches = Value((region.matrices,), "int32"), _caches(region, slots)
        bank = Bank(region, where, caches, slots, functools.partial(order, i))
        prologue.append(Def(bank.where, (), lambda bank=bank: bank.places(bank.order())))
        prologue += [Def(c, (kept(t),), lambda x, bank=bank: x[bank.order()]) for t, c in bank.caches.items()]
        ops = _twice(ops, bank)
        banks.append(bank)
    seen, more = traced_ops(
        functools.partial(_numbers, matrices=[r.matrices for r in found]), [r.index for r in found], NAME
    )
    outputs, weak = (*folded.outputs, *seen), folded.weak and (*folded.weak, False)
    made = dataclasses.replace(folded, ops=(*ops, *more), prologue=tuple(prologue), outputs=outputs, weak=weak)
    return dataclasses.replace(made, hidden=1), banks


def _caches(region: Region, slots: int) -> dict[Value, Value]:
    return {t: Value((slots, *t.shape[1:]), kept(t).dtype) for t in region.tables}


def _twice(ops: Sequence[Op], bank: Bank) -> list[Op]:
    """The operations with those of a region twice, one half's behind the other's: each is one run of a half then."""
    region, mine = bank.region, set(bank.region.ops)
    at = [i for i, op in enumerate(ops) if op in mine]
    first, last = at[0], at[-1] + 1
    after, before, later = set(region.edges), list[Op](), list[Op]()
    for op in ops[first:last]:
        if op in mine:
            continue
        late = any(v in after for v in op.reads)
        after.update(op.outs if late else ())
        (later if late else before).append(op)
    rows = gathered(next(op for op in region.ops if op.prim == "gather" and op.ins[1] is region.index))
    fills = rows is not None and rows.mode == "fill"
    (index, place, resident), asked = traced_ops(
        functools.partial(_places, fills=fills), [bank.where, region.index], NAME
    )
    theirs, on_host = _copy(region, {}, index, jax.lax.GatherScatterMode.FILL_OR_DROP)
    own, on_device = _copy(region, bank.caches, place, jax.lax.GatherScatterMode.CLIP)
    merged = []
    for v in region.edges:
        _, steps = traced_ops(_merged, [resident, own[v], theirs[v]], NAME, (v,))
        merged += steps
    return [*ops[:first], *before, *asked, *on_host, *on_device, *merged, *later, *ops[last:]]


def _copy(
    region: Region, tables: Mapping[Value, Value], index: Value, mode: jax.lax.GatherScatterMode
) -> tuple[dict[Value, Value], list[Op]]:
    """A region's operations with results of their own, which choose by `index` from other tables."""
    new: dict[Value, Value] = {region.index: index, **tables}
    like = lambda v: dataclasses.replace(v, source=new.get(v.source, v.source), scale=new.get(v.scale, v.scale))
    made = []
    for op in region.ops:
        chooses = op.prim == "gather" and op.ins[0] in region.tables
        swap = new if chooses else {v: new[v] for v in op.value_ins if v in new and v is not region.index}
        ins = tuple(swap.get(v, v) if isinstance(v, Value) else v for v in op.ins)
        new.update((v, like(v)) for v in op.outs)
        fill = np.nan if kind(op.out.dtype) == "f" else 0  # of what is read nowhere
        params = {**op.params, "mode": mode, "fill_value": fill} if chooses else op.params
        out = new[op.out]
        if chooses and ins[0].dtype != out.dtype:
            narrow = Value(out.shape, ins[0].dtype)
            made.append(dataclasses.replace(op, ins=ins, outs=(narrow,), params=params))
            made += traced_ops(functools.partial(_cast, dtype=out.dtype), [narrow], op.name, (out,))[1]
        else:
            made.append(dataclasses.replace(op, ins=ins, outs=(out,), params=params))
    return new, made


def _cast(values: Sequence[jax.Array], dtype: str) -> jax.Array:
    return values[0].astype(dtype)


def _places(values: Sequence[jax.Array], fills: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of `where` and an index [.., 1]: the index for the table, that for the cache, and whether [..] it lies there."""
    where, index = values
    near = jnp.clip(index, 0, len(where) - 1)
    place = jnp.take(where, near, axis=0, mode="clip")
    resident = (place >= 0) & (index == near) if fills else place >= 0
    return jnp.where(resident, len(where), index if fills else near), jnp.maximum(place, 0), resident[..., 0]


def _merged(values: Sequence[jax.Array]) -> jax.Array:
    """By choices [..], one of two [.., more]."""
    resident, mine, theirs = values
    return jnp.where(resident.reshape(resident.shape + (1,) * (mine.ndim - resident.ndim)), mine, theirs)


def _numbers(values: Sequence[jax.Array], matrices: Sequence[int]) -> jax.Array:
    """The numbers that all regions have chosen, one behind the other; one outside is that of the nearest."""
    return jnp.concatenate([jnp.clip(x, 0, n - 1).reshape(-1) for x, n in zip(values, matrices, strict=True)])


def apportioned(graph: LayerGraph, banks: Sequence[Bank]) -> LayerGraph:
    """The graph whose layers that read tables are the host half's, and those that read caches the device half's."""
    halves: dict[Value, str] = {}
    for bank in banks:
        halves.update(dict.fromkeys(bank.region.tables, HOST))
        halves.update(dict.fromkeys((bank.where, *bank.caches.values()), DEVICE))

    def placed(x: Layer) -> Layer:
        half = next((halves[v] for v in x.ins if v in halves), "")
        return dataclasses.replace(x, half=half, host_error="its matrices change" if half == DEVICE else x.host_error)

    return dataclasses.replace(graph, layers=tuple(map(placed, graph.layers)))


def choices(bank: Bank) -> int:
    """How many matrices of each table a call chooses."""
    return math.prod(bank.region.index.shape)


__all__ = ["Bank", "Region", "apportioned", "choices", "kept", "regions", "with_caches"]
