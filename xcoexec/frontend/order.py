"""The order of groups: what only XLA can run is put together, so that the rest is few native calls; updates of a state
come late enough to be made in place.

Random bits of dropout follow from a key alone; left where they are read, each of them would cut a training step's
kernels in two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..codegen.program import Group, Value, external


def in_few_runs(groups: Sequence[Group], apart: Sequence[bool]) -> list[int]:
    """The numbers of groups in an order that holds: of those that are `apart`, what needs no others first, and what no
    others need last; all else as it was. Calls back keep their place.
    """
    if any("callback" in op.prim for group in groups for op in group.ops):
        return list(range(len(groups)))
    home = {v: i for i, group in enumerate(groups) for v in group.outs}
    makers = [{home[v] for v in external(group.ops) if v in home} for group in groups]
    first: set[int] = set()
    for i, needs in enumerate(makers):
        if apart[i] and needs <= first:
            first.add(i)
    last: set[int] = set()
    needed = {m for i, needs in enumerate(makers) for m in needs if not apart[i]}
    for i in reversed(range(len(groups))):
        if apart[i] and i not in needed and i not in first:
            last.add(i)
        else:
            needed |= makers[i]
    middle = [i for i in range(len(groups)) if i not in first and i not in last]
    return [*sorted(first), *middle, *sorted(last)]


def behind_readers(groups: Sequence[Group], inputs: Collection[Value], outputs: Collection[Value]) -> tuple[Group, ...]:
    """Groups in an order that holds, where the update of a state's leaf comes behind whoever reads the old leaf: it may
    then be written in the old one's place. An update reads an input and makes a result of the same type, which no other
    group reads. (A layer's gradient by its weights is there before the one by its input, which reads the weights.)
    """
    needs = [external(group.ops) for group in groups]
    read = {v for values in needs for v in values}
    last = {v: i for i, values in enumerate(needs) for v in values if v in inputs}
    places = list(range(len(groups)))
    for i, group in enumerate(groups):
        if all(v in outputs and v not in read for v in group.outs):
            types = {(v.shape, v.dtype) for v in group.outs}
            places[i] = max([i, *(last[v] for v in needs[i] if v in last and (v.shape, v.dtype) in types)])
    return tuple(groups[i] for i in sorted(range(len(groups)), key=lambda i: (places[i], places[i] != i, i)))


__all__ = ["behind_readers", "in_few_runs"]
