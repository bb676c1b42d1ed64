"""Which elementwise values are computed again where they are read, and what shares a pass over memory.

A training step reads in its backward half what its forward half computed element by element: centred values, masks of
activations. Kept, each of them is written and read once more than the array that it follows from. Here every value that
need not be kept becomes part of each *pass* that reads it; a pass is an elementwise value that is kept, or the
reductions over leading axes of arrays of one shape, with such values beside them.

    x -> square ---> sum         one pass over x:   sum, sum
      \\----------> sum          one pass over x:   y (max), and nothing else
       \\-> sub -> mul -> max    backward, over x and dy:   sum, sum;  over x and dy:   dx

Levels keep this free of circles: what a pass reads is of a lower level than what it makes.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ..codegen.program import Group, Literal, Op, Value, consumers, external
from ..codegen.rules.columns import is_column_reduction
from .anywhere import anywhere, constant_broadcasts, is_moving, is_simple

MOST_OPERANDS = 11  # arrays that a pass reads and writes: a nest of loops has one more
MOST_LEAVES = 9  # those that it reads
MOST_OPS = 160  # operations in a pass
SMALL = 1 << 13  # elements of a value that is made as soon as it can be

_Form: TypeAlias = (
    tuple[int, tuple[int, ...], tuple[int, ...]] | Value
)  # (level, shape, axes) of reductions; what else is kept


def swept(ops: Sequence[Op], data: set[Value], outputs: Sequence[Value]) -> tuple[list[Op], list[Group]]:
    """Operations in an order that holds, with copies of those that several passes compute, and the groups that are
    passes. `data`: the values that are no constants; `outputs`: those of the program. A program without a reduction
    over its leading axis stays as it is.
    """
    if not any(_over_batch(op, data) for op in ops):
        return list(ops), []
    found = _Sweeps(_masks_of_results(list(ops), outputs), data, outputs)
    return found.ordered()


def _over_batch(op: Op, data: set[Value]) -> bool:
    x = op.ins[0] if op.ins else None
    if not is_column_reduction(op) or not isinstance(x, Value) or x not in data:
        return False
    return 0 in op.params["axes"] and x.shape[0] > 1 and len(x.shape) > 1


def _masks_of_results(ops: list[Op], outputs: Sequence[Value]) -> list[Op]:
    """`max(z, 0) > 0` in the place of `z > 0` where nobody else needs what z follows from: z is never kept then."""
    makers, readers = {v: op for op in ops for v in op.outs}, consumers(ops)
    is_zero = lambda v: isinstance(v, Literal) and not v.shape and v.val == 0
    relus = {op.ins[0]: op for op in ops if op.prim == "max" and is_zero(op.ins[1])}

    def replaced(op: Op) -> Op:
        z = op.ins[0] if op.ins else None
        if op.prim != "gt" or not isinstance(z, Value) or z not in relus or not is_zero(op.ins[1]) or z in outputs:
            return op
        inside, roots = _cone([z], lambda v: v in makers and is_simple(makers[v]), makers)
        large = [v for v in roots if v.size == z.size]
        same = [*large, *(v for made in inside for v in made.outs if v.size == z.size)]
        beside = {*inside, *readers[z]}
        if len(large) == 1 and any(v in outputs or any(r not in beside for r in readers.get(v, ())) for v in same):
            return op
        return dataclasses.replace(op, ins=(relus[z].out, op.ins[1]))

    return [replaced(op) for op in ops]


def _cone(
    values: Iterable[Value], inlined: Callable[[Value], bool], makers: Mapping[Value, Op]
) -> tuple[list[Op], list[Value]]:
    """The operations that make values out of others, as far back as values are `inlined`, and these others."""
    ops: dict[Op, None] = {}
    leaves: dict[Value, None] = {}

    def visit(v: Value) -> None:
        if not inlined(v):
            leaves[v] = None
        elif makers[v] not in ops:
            for u in makers[v].value_ins:
                visit(u)
            ops[makers[v]] = None

    for v in values:
        visit(v)
    return list(ops), list(leaves)


@dataclasses.dataclass(eq=False)
class _Pass:
    """A pass in the making: reductions `sums` and elementwise values `kept`, what it reads, and its level."""

    sums: list[Op]
    kept: list[Value]
    leaves: set[Value]
    level: int


class _Sweeps:
    """The passes of a program. `soft` operations may be computed in any pass; `kept` are those of their results that
    are stored.
    """

    def __init__(self, ops: list[Op], data: set[Value], outputs: Sequence[Value]):
        self.ops, self.outputs = ops, set(outputs)
        self.makers, self.readers = {v: op for op in ops for v in op.outs}, consumers(ops)
        self.position = {op: i for i, op in enumerate(ops)}
        self.floating = constant_broadcasts(ops, self.makers, data)
        self.sums = {op for op in ops if is_column_reduction(op)}
        self.soft = anywhere(ops, self.floating, self.makers, self.readers, self.outputs)
        self.kept: set[Value] = set()
        self._keep_needed()
        self._keep_large()
        self._keep_costly()

    def inlined(self, v: Value) -> bool:
        """Whether a pass that reads the value computes it."""
        return v not in self.kept and v in self.makers and self.makers[v] in self.soft

    def cone(self, *values: Value) -> tuple[list[Op], list[Value]]:
        """The operations of a pass that needs values, and what it reads."""
        return _cone(values, self.inlined, self.makers)

    # -- what is kept
    def _keep_needed(self) -> None:
        """Outputs, what others than passes read, and what passes over larger arrays read."""
        for op in self.ops:
            if op in self.soft or op in self.sums:
                size = op.out.size if op in self.soft else op.value_ins[0].size
                for v in op.value_ins:
                    self._keep_across(v, size)
                continue
            self.kept.update(v for v in op.reads if self.makers.get(v) in self.soft - self.floating)
        self.kept.update(v for v in self.outputs if self.makers.get(v) in self.soft)

    def _keep_across(self, v: Value, size: int) -> None:
        """Keeps what a pass over arrays of another size reads, unless that is a matter of how it is read."""
        while v.size != size and self.makers.get(v) in self.soft and is_moving(self.makers[v]):
            if not self.makers[v].value_ins:
                return
            v, size = self.makers[v].value_ins[0], -1
        if v.size != size and self.makers.get(v) in self.soft:
            self.kept.add(v)

    def _keep_large(self) -> None:
        """Keeps operands of what would read more arrays than a pass can, or be more operations."""
        for op in self.ops:
            while op in self.soft:
                inside, leaves = self.cone(*op.value_ins)
                if len(leaves) <= MOST_LEAVES and len(inside) < MOST_OPS:
                    break
                mine = [v for v in op.value_ins if self.inlined(v)]
                if not mine:
                    break
                self.kept.add(max(mine, key=lambda v: len(self.cone(v)[1])))

    def _keep_costly(self) -> None:
        """Keeps a value where all passes that need it read less for that, its own writing counted: it is made in a
        pass of its own, or beside reductions.
        """
        level = self.levels()
        for op in self.ops:
            v = op.out if op.outs else None
            if v is None or not self.inlined(v) or is_moving(op) or len(self.readers.get(v, [])) < 2:
                continue
            passes = self._needing(v, level)
            if len(passes) < 2:
                continue
            again, made = self._reads(passes, v), self._large([v], v)
            self.kept.add(v)
            read = self._reads(passes, v)
            alone = 1 + made + sum(read)
            beside = (1 + sum(read) + again[k] - read[k] for k, p in enumerate(passes) if isinstance(p, tuple))
            if min((alone, *beside)) >= sum(again):
                self.kept.remove(v)

    def _reads(self, passes: Mapping[_Form, list[Value]], v: Value) -> list[int]:
        return [self._large(values, v) for values in passes.values()]

    def _large(self, values: Sequence[Value], v: Value) -> int:
        """How many arrays of the size of `v` a pass reads that computes values."""
        return sum(u.size == v.size for u in self.cone(*values)[1])

    def _needing(self, v: Value, level: Mapping[Value, int]) -> dict[_Form, list[Value]]:
        """The passes that need a value, by their forms (or what they keep), and what they compute."""
        found: dict[_Form, list[Value]] = {}
        todo, seen = [v], {v}
        while todo:
            for r in self.readers.get(todo.pop(), []):
                if r in self.sums:
                    found.setdefault(_form(r, level[r.out]), []).append(r.value_ins[0])
                elif r in self.soft and r.out in self.kept:
                    found[r.out] = list(r.value_ins)
                elif r in self.soft and r.out not in seen:
                    seen.add(r.out)
                    todo.append(r.out)
        return found

    def levels(self) -> dict[Value, int]:
        """Of every value the number of operations and passes that follow each other before it is there."""
        level: dict[Value, int] = {}
        for op in self.ops:
            before = max((level.get(v, 0) for v in op.reads), default=0)
            level.update((v, before + (not self.inlined(v))) for v in op.outs)
        return level

    # -- what shares a pass
    def passes(self) -> list[_Pass]:
        """The passes that make all that is kept, and all reductions."""
        level = self.levels()
        found: dict[_Form, list[_Pass]] = {}
        owners: dict[Value, _Pass] = {}
        for op in self.ops:
            if op in self.sums:
                self._join(op, level, found, owners)
        rest = [v for op in self.ops if op in self.soft for v in op.outs if v in self.kept and v not in owners]
        alone = [_Pass([], [v], set(self.cone(*self.makers[v].value_ins)[1]), level[v]) for v in rest]
        return [*(p for same in found.values() for p in same), *alone]

    def _join(
        self, op: Op, level: Mapping[Value, int], found: dict[_Form, list[_Pass]], owners: dict[Value, _Pass]
    ) -> None:
        """Adds a reduction to a pass of its form that reads what it reads; it takes along the values of the level
        before that it reads, where they can be made in that pass.
        """
        x = op.value_ins[0]
        plain = _Pass([op], [], set(self.cone(x)[1]), level[op.out])
        for mine in filter(None, (self._taking(plain, x, level, owners), plain)):
            same = found.setdefault(_form(op, mine.level), [])
            owned = {owners[v] for v in mine.kept if v in owners}
            for p in same:
                joined = _Pass(
                    [*p.sums, op], list(dict.fromkeys((*p.kept, *mine.kept))), p.leaves | mine.leaves, p.level
                )
                if owned <= {p} and p.leaves & mine.leaves and _fits(joined):
                    p.sums, p.kept, p.leaves = joined.sums, joined.kept, joined.leaves
                    owners.update(dict.fromkeys(mine.kept, p))
                    return
            if not owned and _fits(mine) and (mine.kept or mine is plain):
                same.append(mine)
                owners.update(dict.fromkeys(mine.kept, mine))
                return
        found[_form(op, plain.level)].append(plain)

    def _taking(self, p: _Pass, x: Value, level: Mapping[Value, int], owners: Mapping[Value, _Pass]) -> _Pass | None:
        """The pass with the values of the level before in it; None where one of them is not made by a pass."""
        top = [v for v in p.leaves if level.get(v, 0) == p.level - 1]
        makers = [self.makers[v] for v in top if v in self.makers]
        if len(makers) < len(top):
            return None
        if any(m not in self.soft or is_moving(m) or m.out.shape != x.shape for m in makers):
            return None
        leaves = {u for m in makers for u in self.cone(*m.value_ins)[1]}
        return _Pass(p.sums, top, (p.leaves - set(top)) | leaves, p.level - 1)

    def ordered(self) -> tuple[list[Op], list[Group]]:
        """All operations in an order that holds, and the groups that are passes."""
        groups = [self._group(p) for p in self.passes()]
        hard = [op for op in self.ops if op not in self.soft and op not in self.sums]
        read = {v for op in hard for v in op.reads}
        spread = self._spread_for(read)
        units: list[tuple[Op, ...]] = [(op,) for op in self.ops if op in spread or op not in self.soft | self.sums]
        units += [g.ops for g in groups]
        return _in_order(units, self._places(units)), groups

    def _spread_for(self, read: set[Value]) -> set[Op]:
        """The broadcasts of constants that others than passes read."""
        found: set[Op] = set()
        for op in reversed(self.ops):
            if op in self.floating and op in self.soft and op.out not in self.kept and op.out in read:
                found.add(op)
                read = read | set(op.value_ins)
        return found

    def _places(self, units: Sequence[tuple[Op, ...]]) -> list[int]:
        """Where each unit stood: its last result. Views come as soon as they can be made, so that whoever reads them
        finds them there; small values before who may fuse a reader of them, and so do outputs of the program, as what
        they are made of may be gone then.
        """
        first = {v: i for op, i in self.position.items() for v in op.outs}

        def place(unit: tuple[Op, ...]) -> int:
            last, made = unit[-1], [v for op in unit for v in op.outs if v in first]
            if all(map(is_moving, unit)):
                return max((first.get(v, -1) for v in external(unit)), default=max(first[v] for v in made))
            early = last.out.size <= SMALL or self.outputs.issuperset(made)
            free = last not in self.position and early and not is_column_reduction(last)
            return -1 if free else max(first[v] for v in made)

        return [place(unit) for unit in units]

    def _group(self, p: _Pass) -> Group:
        """A pass as a group, of copies of all that is made for it alone."""
        makers, wanted = self.makers, set(p.kept)
        inlined = lambda v: v in wanted or self.inlined(v)
        inside, _ = _cone([*(op.value_ins[0] for op in p.sums), *p.kept], inlined, makers)
        new = {op.out: Value(op.out.shape, op.out.dtype) for op in inside if op.out not in wanted}
        copies = [_copied(op, new) for op in (*sorted(inside, key=self.position.__getitem__), *p.sums)]
        also = tuple(v for v in (*p.kept, *(op.out for op in p.sums)) if v not in copies[-1].outs)
        working = copies[len(inside) :] or [op for op in copies if not is_moving(op)] or copies[-1:]
        return Group(tuple(copies), working[0], also)


def _copied(op: Op, new: Mapping[Value, Value]) -> Op:
    ins = tuple(new.get(v, v) if isinstance(v, Value) else v for v in op.ins)
    return dataclasses.replace(op, ins=ins, outs=tuple(new.get(v, v) for v in op.outs))


def _form(op: Op, level: int) -> _Form:
    """What reductions of one pass have in common."""
    return level, op.value_ins[0].shape, tuple(sorted(op.params["axes"]))


def _fits(p: _Pass) -> bool:
    return len(p.leaves) + len(p.kept) < MOST_OPERANDS


def _in_order(units: Sequence[tuple[Op, ...]], places: Sequence[int]) -> list[Op]:
    """The operations of units, each behind those whose results it reads, else as they stood."""
    owner = {v: i for i, unit in enumerate(units) for op in unit for v in op.outs}
    before = [{owner[v] for v in external(unit) if v in owner} for unit in units]
    after: dict[int, list[int]] = {}
    for i, needs in enumerate(before):
        for j in needs:
            after.setdefault(j, []).append(i)
    waiting = [len(needs) for needs in before]
    ready = [(places[i], i) for i, n in enumerate(waiting) if n == 0]
    heapq.heapify(ready)
    done: list[Op] = []
    while ready:
        _, i = heapq.heappop(ready)
        done += units[i]
        for j in after.get(i, []):
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, (places[j], j))
    assert not any(waiting), "passes that wait for each other"
    return done


__all__ = ["swept"]
