"""The minimum cut of a directed graph (Dinic, 1970): graphs of layers are small, and a solver's import takes longer."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable

Edge = tuple[int, int, float]  # from, to, capacity
TINY = 1e-12  # of the largest finite capacity: what rounding leaves


def minimum_cut(nodes: int, edges: Iterable[Edge], source: int, sink: int) -> set[int]:
    """The nodes on the source's side of a cut with the least sum of capacities (0 or more; `inf`: never cut) from there
    to the sink's side: the fewest nodes where several cuts have that sum.

    Raises `ValueError` when every cut is infinite.
    """
    given = [(a, b, c) for a, b, c in edges if c > 0]
    finite = [c for *_, c in given if c < math.inf]
    never, tiny = 2 * sum(finite) + 1, TINY * max(finite, default=0.0)
    flow = _Flow(nodes, [(a, b, min(c, never)) for a, b, c in given], tiny)
    total = 0.0
    while flow.levels(source)[sink] >= 0:
        while found := flow.path(source, sink):
            total += found
    if total > never / 2:  # no cut of finite edges has so much
        raise ValueError("Every cut of the graph has an edge that must not be cut.")
    return {node for node, level in enumerate(flow.level) if level >= 0}


class _Flow:
    """What capacities are left; edge `e ^ 1` is the way back of edge `e`."""

    def __init__(self, nodes: int, edges: Iterable[Edge], tiny: float) -> None:
        self.ends: list[int] = []
        self.left: list[float] = []
        self.out: list[list[int]] = [[] for _ in range(nodes)]
        self.level: list[int] = []
        self.tried: list[int] = []  # of each node: how many of its edges lead to no open path any more
        self.tiny = tiny
        for a, b, c in edges:
            self.out[a].append(len(self.ends))
            self.out[b].append(len(self.ends) + 1)
            self.ends += [b, a]
            self.left += [c, 0.0]

    def levels(self, source: int) -> list[int]:
        """The least number of edges from the source to each node, -1 where none lead; paths begin anew."""
        self.level = [-1] * len(self.out)
        self.level[source] = 0
        self.tried = [0] * len(self.out)
        queue = collections.deque([source])
        while queue:
            node = queue.popleft()
            for e in self.out[node]:
                if self.left[e] > self.tiny and self.level[self.ends[e]] < 0:
                    self.level[self.ends[e]] = self.level[node] + 1
                    queue.append(self.ends[e])
        return self.level

    def path(self, source: int, sink: int) -> float:
        """Sends as much as fits along one of the shortest paths, and returns it; 0 when none of them is open."""
        path: list[int] = []
        node = source
        while node != sink:
            if self.tried[node] < len(self.out[node]):
                e = self.out[node][self.tried[node]]
                if self.left[e] > self.tiny and self.level[self.ends[e]] == self.level[node] + 1:
                    path.append(e)
                    node = self.ends[e]
                    continue
            elif not path:
                return 0.0
            else:
                node = self.ends[path.pop() ^ 1]
            self.tried[node] += 1
        amount = min(self.left[e] for e in path)
        for e in path:
            self.left[e] -= amount
            self.left[e ^ 1] += amount
        return amount


__all__ = ["Edge", "minimum_cut"]
