"""Elementwise groups and groups over rows that read each other's results, or the same, as one with several results.

A training step keeps many values: an optimizer's moments beside the weights that follow from them, a normalized row
beside what its gradient needs. Made one by one, each of them is a pass over memory; here a value is read where it is
made.

    g, m, v, p -> m'           g, m, v, p -> m', v', p'
    g, v -> v'          =>
    m', v', p -> p'
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..codegen.program import Group, Op, Unsupported, Value, external, kind
from ..codegen.rules.columns import is_column_reduction
from ..codegen.rules.expressions import expressions
from ..codegen.rules.primitives import is_broadcast, is_elementwise, is_reduction, is_view, primitive
from ..codegen.rules.rows import is_row_reduction, recognise, row_shape, row_shapes

MOST_ARRAYS = 16  # that a cluster reads or makes: a nest of loops has no more operands
MOST_OPS = 200  # operations of a cluster
BESIDE = 24  # groups between two that read the same and are joined for it: what is computed again later stays there
LEAST_ROWS = 16  # fewer rows give threads too little to share
SMALL = 1 << 15  # elements that need not be shared


def clustered(groups: Sequence[Group], data: set[Value], outputs: Sequence[Value]) -> list[Group]:
    """Groups in an order that holds, with those that read each other's results joined. `data`: the values that are no
    constants; `outputs`: those of the program. A program with constant weights stays as it is: its groups are divided
    between devices, which those with several results cannot be.
    """
    ops = [op for group in groups for op in group.ops]
    if any(primitive(op).contraction and any(v not in data for v in op.value_ins) for op in ops):
        return list(groups)
    return _Clusters(groups, outputs).joined()


class _Clusters:
    """Groups by number, in clusters: `owner` is each group's cluster, `before` a bit for each group that one of a
    cluster needs, through others too.
    """

    def __init__(self, groups: Sequence[Group], outputs: Sequence[Value]):
        self.groups, self.outputs = groups, set(outputs)
        self.home = {v: i for i, group in enumerate(groups) for v in group.outs}
        self.reads = [external(group.ops) for group in groups]
        self.readers: dict[Value, set[int]] = {}
        for i, values in enumerate(self.reads):
            for v in values:
                self.readers.setdefault(v, set()).add(i)
        self.owner = list(range(len(groups)))
        self.members: dict[int, tuple[int, ...]] = {i: (i,) for i in self.owner}
        self.before: dict[int, int] = {}
        for i in self.owner:
            self.before[i] = 0
            for p in self._makers(i):
                self.before[i] |= self.before[p] | 1 << p
        self.open = [_is_open(group) for group in groups]

    def joined(self) -> list[Group]:
        """All groups, in an order that holds."""
        for i in range(len(self.groups)):
            for p in self._near(i) if self.open[i] else ():
                a, b = self.owner[p], self.owner[i]
                if self.open[p] and a != b and self._apart(a, b) and self._one(self.members[a] + self.members[b]):
                    self._join(a, b)
        return self._in_order()

    def _makers(self, i: int) -> set[int]:
        """The groups whose results a group reads."""
        return {self.home[v] for v in self.reads[i] if v in self.home}

    def _near(self, i: int) -> list[int]:
        """The groups that a group reads, the last one first; then those shortly before it that read what it reads."""
        makers = self._makers(i)
        large = [v for v in self.reads[i] if v.size >= self.groups[i].out.size]
        beside = {j for v in large for j in self.readers[v] if i - BESIDE <= j < i} - makers
        return [*sorted(makers, reverse=True), *sorted(beside, reverse=True)]

    def _bits(self, cluster: int) -> int:
        return sum(1 << i for i in self.members[cluster])

    def _apart(self, a: int, b: int) -> bool:
        """Whether nothing outside of both clusters needs one of them and is needed by the other."""
        both = {a, b}
        for near, far in ((a, b), (b, a)):
            for i in self.members[near]:
                for p in {self.owner[m] for m in self._makers(i)} - both:
                    if self.before[p] & self._bits(far):
                        return False
        return True

    def _join(self, a: int, b: int) -> None:
        """Makes one cluster of two, under the number of the second."""
        for i in self.members[a]:
            self.owner[i] = b
        self.members[b] = tuple(sorted(self.members.pop(a) + self.members[b]))
        mine = self._bits(b)
        self.before[b] = (self.before.pop(a) | self.before[b]) & ~mine
        for c, needs in self.before.items():
            if needs & mine:
                self.before[c] = needs | mine | self.before[b]

    def _one(self, numbers: Sequence[int]) -> Group | None:
        """Groups as one; None where no kernel makes all their results in passes over the same elements."""
        numbers = sorted(numbers)
        ops = tuple(dict.fromkeys(op for i in numbers for op in self.groups[i].ops))
        inside = set(numbers)
        made = [v for i in numbers for v in self.groups[i].outs]
        shown = [v for v in made if v in self.outputs or self.readers.get(v, set()) - inside]
        last = self.groups[numbers[-1]].out
        shown = [*(v for v in shown if v is not last), last]
        if not any(not _is_moving(op) for op in ops):
            return None
        if len(ops) > MOST_OPS or len(external(ops)) + len(shown) > MOST_ARRAYS or not _same_elements(ops, shown):
            return None
        anchor = next((op for op in ops if is_reduction(op)), next(op for op in ops if not _is_moving(op)))
        return Group(ops, anchor, tuple(shown[:-1]))

    def _in_order(self) -> list[Group]:
        """The clusters as groups, each behind those that it needs, where its last group stood."""
        out: list[Group] = []
        done: set[int] = set()

        def put(cluster: int) -> None:
            if cluster in done:
                return
            done.add(cluster)
            for i in self.members[cluster]:
                for m in sorted(self._makers(i)):
                    if self.owner[m] != cluster:
                        put(self.owner[m])
            out.extend(self._final(self.members[cluster]))

        for i in range(len(self.groups)):
            if self.members[self.owner[i]][-1] == i:
                put(self.owner[i])
        return out

    def _final(self, numbers: Sequence[int]) -> list[Group]:
        """The group of a cluster; its groups as they were where kernels cannot express it."""
        one = self._one(numbers) if len(numbers) > 1 else None
        return [one] if one is not None and _expressible(one) else [self.groups[i] for i in numbers]


def _is_moving(op: Op) -> bool:
    return is_broadcast(op) or (op.prim in ("reshape", "squeeze") and is_view(op))


def _is_open(group: Group) -> bool:
    """Whether a group is elementwise, or a pass over rows."""
    for op in group.ops:
        known = is_elementwise(op) or _is_moving(op) or (is_row_reduction(op) and not is_column_reduction(op))
        if not known or len(op.outs) != 1 or op.body is not None or not all(kind(v.dtype) for v in (*op.ins, op.out)):
            return False
    return True


def _same_elements(ops: Sequence[Op], results: Sequence[Value]) -> bool:
    """Whether all that is computed has the shape of the results; or they are rows, and numbers of one row each."""
    made = [op.out for op in ops if is_elementwise(op)]
    shape = row_shape(ops, (*made, *results))
    if shape is None:
        return len({v.shape for v in (*made, *results)}) == 1 and not any(map(is_reduction, ops))
    rows = math.prod(shape[:-1])
    known = all(v.shape in row_shapes(shape) for v in made)
    return known and (rows >= LEAST_ROWS or math.prod(shape) <= SMALL)


def _expressible(group: Group) -> bool:
    """Whether kernels have code for a group, with as many operands as they can read."""
    row = recognise(group.ops, group.outs)
    if row is not None:
        return len(row.views) + len(row.results) <= MOST_ARRAYS
    try:
        _, _, views = expressions(group.ops, (), group.outs)
    except Unsupported:
        return False
    return len(views) + len(group.outs) <= MOST_ARRAYS


__all__ = ["clustered"]
