"""The order of groups: what only XLA can run is put together, so that the rest is few native calls.

Random bits of dropout follow from a key alone; left where they are read, each of them would cut a training step's
kernels in two.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.program import Group, external


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


__all__ = ["in_few_runs"]
