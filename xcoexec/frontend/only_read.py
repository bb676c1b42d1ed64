"""Results of which little is read, as less work: what every reader takes a slice of is computed in that part alone.

x [n, t, c] -> layers -> y [n, t, c] -> y[:, 0]   -->   x[:, 0] -> layers -> [n, 1, c]

The class token of a vision transformer and the last token of a prompt leave all other tokens' share of the last layers
unread, back to what needs them all (the keys and values of an attention, say).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from ..codegen.program import Literal, Op, Value
from ..codegen.rules.primitives import primitive
from ..errors import SplitError
from ..partition.split import Part, split
from .decompose import sliced

LARGEST = 0.5  # share of an axis up to which computing it alone is worth that it may lie less evenly


def only_read(ops: Sequence[Op], outputs: Collection[Value | Literal], known: Collection[Value]) -> list[Op]:
    """Operations in order, without those that nobody needs; those of whose results slices alone are read compute what
    these take. `known`: values that are known at bind, which are not cut for products: they may be read as they are
    stored.
    """
    todo, kept = list(ops), _Kept(outputs)
    while todo:
        op = todo.pop()
        if not kept.needs(op):
            continue
        cuts = kept.readers(op)
        if not all(r.prim == "slice" and r.out.shape and r.out.size for r in cuts):
            cuts = []
        if op.prim == "slice" and cuts:
            kept.take_over(op)
            continue
        found = _less(op, cuts, known)
        if found is None:
            kept.add(op)
            continue
        part, axis, start = found
        out = kept.cut(op.out, part.out, axis, start)
        before = (sliced(s.source, s.value, _at(s.source, s.axis, s.start), op.name) for s in part.slices)
        todo += [*before, *part.ops[:-1], dataclasses.replace(part.ops[-1], outs=(out,))]
    return list(kept.now.values())[::-1]


class _Kept:
    """The operations that stay, each under its first form, the last one first; and who reads what."""

    def __init__(self, outputs: Collection[Value | Literal]):
        self.now: dict[Op, Op] = {}
        self._outputs, self._readers = frozenset(v for v in outputs if isinstance(v, Value)), dict[Value, list[Op]]()

    def add(self, op: Op) -> None:
        """Behind it stand all who read its results."""
        self.now[op] = op
        for v in dict.fromkeys(op.reads):
            self._readers.setdefault(v, []).append(op)

    def needs(self, op: Op) -> bool:
        """Whether somebody reads what an operation makes, or it does more than that."""
        return bool(primitive(op).effect) or any(v in self._outputs or self._readers.get(v) for v in op.outs)

    def readers(self, op: Op) -> list[Op]:
        """Who reads the only result of an operation; none where it has several, or where it is a result of them all."""
        if len(op.outs) != 1 or op.out in self._outputs:
            return []
        return [self.now[r] for r in self._readers.get(op.out, ())]

    def take_over(self, cut: Op) -> None:
        """Has the slices of a slice, which has no other readers, take theirs of its operand."""
        readers = self._readers.pop(cut.out)
        for r in readers:
            self.now[r] = _of_slice(cut, self.now[r])
        for v in cut.value_ins:
            self._readers.setdefault(v, []).extend(readers)

    def cut(self, v: Value, part: Value, axis: int, start: int) -> Value:
        """Has the slices that read a value take the same of its part from `start` on along an axis. Those that take
        all of it go. Returns what the part is called.
        """
        cuts = self._readers.pop(v)
        all_of_it = [c for c in cuts if self.now[c].out.shape == part.shape]
        first = next((c for c in all_of_it if c.out in self._outputs), all_of_it[0] if all_of_it else None)
        name = part if first is None else first.out
        inside = list[Op]()
        for c in cuts:
            others = self._readers.get(c.out, [])
            if c is first or (c in all_of_it and c.out not in self._outputs and not any(r.body for r in others)):
                del self.now[c]
                inside += others
            else:
                self.now[c] = _moved(self.now[c], name, axis, start)
                inside.append(c)
        gone = {c.out for c in cuts if c not in self.now} - {name}
        for r in dict.fromkeys(inside):
            op = self.now[r]
            self.now[r] = dataclasses.replace(op, ins=tuple(name if x in gone else x for x in op.ins))
        self._readers[name] = list(dict.fromkeys(inside))
        return name


def _less(op: Op, cuts: Sequence[Op], known: Collection[Value]) -> tuple[Part, int, int] | None:
    """The part of an operation that slices of its result take, and the axis and index at which it begins; None where
    they take most of it, or where it has no such part.
    """
    if not cuts:
        return None
    taken = zip(*map(_range, cuts), strict=True)  # by axis
    for axis, (n, ranges) in enumerate(zip(op.out.shape, taken, strict=True)):
        start, stop = min(a for a, _, _ in ranges), max(b for _, b, _ in ranges)
        if not 0 < stop - start <= LARGEST * n:
            continue
        try:
            part = split((op,), axis, start, stop)
        except SplitError:
            continue
        if not (primitive(op).contraction and any(s.source in known for s in part.slices)):
            return part, axis, start
    return None


def _range(cut: Op) -> list[tuple[int, int, int]]:
    """Along each axis the first index that a slice takes, the one behind its last, and its step."""
    starts, steps = cut.params["start_indices"], cut.params["strides"] or (1,) * len(cut.out.shape)
    return [(a, a + (n - 1) * step + 1, step) for a, n, step in zip(starts, cut.out.shape, steps, strict=True)]


def _taking(cut: Op, x: Value | Literal, ranges: Sequence[tuple[int, int, int]]) -> Op:
    """The slice as one of another value."""
    starts, limits, steps = zip(*ranges, strict=True)
    params = {"start_indices": starts, "limit_indices": limits, "strides": steps if set(steps) != {1} else None}
    return dataclasses.replace(cut, ins=(x,), params={**cut.params, **params})


def _moved(cut: Op, part: Value, axis: int, start: int) -> Op:
    """A slice that takes the same of a part, which begins at index `start` along an axis."""
    far = _at(part, axis, start)
    return _taking(cut, part, [(a - d, b - d, step) for (a, b, step), d in zip(_range(cut), far, strict=True)])


def _of_slice(first: Op, second: Op) -> Op:
    """A slice of a slice as one."""
    both = zip(_range(first), _range(second), strict=True)
    ranges = [(at + far * a, at + far * (b - 1) + 1, far * step) for (at, _, far), (a, b, step) in both]
    return _taking(second, first.ins[0], ranges)


def _at(v: Value, axis: int, start: int) -> tuple[int, ...]:
    return tuple(start if d == axis else 0 for d in range(len(v.shape)))
