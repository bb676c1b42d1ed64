"""Which layers run as one block, and which blocks deserve a twin for the other half (BlastNet, section 5.1.1)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence, Set

from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..planning.spans import Span, crossing

FEWEST = 3  # places where one value goes on
LEAST_SECONDS = 2.5e-3  # of a block: deciding about one and waking its worker takes 30 to 40 us
TWIN_SECONDS = 1e-3  # of one that may get a twin: the shorter a block is, the more of them are replaceable
EPSILON = 1.5  # least CD of a block that gets a twin (BlastNet's: 1 or 10, by the network)


@dataclasses.dataclass(frozen=True)
class Worth:
    """Seconds of a block on its faster half (`primary`) and the other one; `share`: its part of the whole network's."""

    span: Span
    half: str
    primary: float
    secondary: float
    share: float

    @property
    def degree(self) -> float:
        """CD = T_sec / T_pri (BlastNet's Equation 1), seconds over seconds."""
        return self.secondary / self.primary


def blocks(graph: LayerGraph, costs: Costs, most: int | None = None, least: float = LEAST_SECONDS) -> tuple[Span, ...]:
    """Layers (which are fused operators already) between places where one value alone goes on, in blocks.

    A block is merged with the next one where moving its results to the other half costs more than computing it on its
    faster half, or where that takes less than `least` seconds; then the cheapest neighbours are, until there are at
    most `most`.
    """
    ends = _ends(graph)
    spans = [Span(a, b) for a, b in itertools.pairwise((0, *ends))]
    moved = {k: costs.exchange(sum(v.nbytes for v in crossing(graph, k))) for k in ends}
    found: list[Span] = []
    for span in spans:
        joined = Span(found.pop().start, span.stop) if found and _open(found[-1], moved, costs, least) else span
        found.append(joined)
    if len(found) > 1 and _open(found[-1], moved, costs, least):
        last = found.pop()
        found[-1] = Span(found[-1].start, last.stop)
    while most is not None and len(found) > most:
        i = min(range(len(found) - 1), key=lambda i: fastest(found[i], costs) + fastest(found[i + 1], costs))
        found[i : i + 2] = [Span(found[i].start, found[i + 1].stop)]
    return tuple(found)


def merged(spans: Sequence[Span], apart: Set[Span], costs: Costs, least: float = LEAST_SECONDS) -> tuple[Span, ...]:
    """Blocks of which neighbours are joined where one of them takes less than `least` seconds on its faster half, but
    for those in `apart`.
    """
    out: list[Span] = []
    for span in spans:
        if out and apart.isdisjoint((out[-1], span)) and min(fastest(out[-1], costs), fastest(span, costs)) < least:
            span = Span(out.pop().start, span.stop)
        out.append(span)
    return tuple(out)


def _ends(graph: LayerGraph) -> list[int]:
    """Where a block may end: where one value goes on, so that it can have a twin; anywhere in graphs that hardly have
    such places.
    """
    n = len(graph.layers)
    single = [k for k in range(1, n) if len(crossing(graph, k)) == 1]
    return [*(single if len(single) >= FEWEST else range(1, n)), n]


def _open(span: Span, moved: Mapping[int, float], costs: Costs, least: float) -> bool:
    return max(moved[span.stop], least) > fastest(span, costs)


def seconds(span: Span, half: str, costs: Costs) -> float:
    """Seconds of a block's own layers on a half; infinite where one of them cannot run there."""
    layers = getattr(costs, half)[span.start : span.stop]
    return float("inf") if any(t is None for t in layers) else sum(layers)


def fastest(span: Span, costs: Costs) -> float:
    """Seconds of a block's own layers on its faster half."""
    return min(seconds(span, half, costs) for half in ("host", "device"))


def worth(spans: Sequence[Span], costs: Costs) -> list[Worth]:
    """CD (a ratio of seconds) and WP (the block's share of the network's seconds, 0..1) of each block."""
    total = sum(fastest(x, costs) for x in spans)
    out = []
    for x in spans:
        by = {half: seconds(x, half, costs) for half in ("host", "device")}
        half = min(by, key=lambda h: by[h])
        out.append(Worth(x, half, by[half], max(by.values()), by[half] / total))
    return out


def deserving(spans: Sequence[Span], graph: LayerGraph, costs: Costs, epsilon: float = EPSILON) -> list[Worth]:
    """Blocks that deserve a twin and can have one: it can only stand for a block that makes one value from one value.
    `epsilon`: the least ratio of seconds (CD).
    """
    return [
        w
        for w in worth(spans, costs)
        if deserves(w.degree, w.share, len(spans), epsilon) and replaceable(graph, w.span)
    ]


def deserves(degree: float, share: float, count: int, epsilon: float = EPSILON) -> bool:
    """Whether one of `count` blocks is much slower on its other half (`degree`: CD > epsilon) and a good part of the
    work (`share`: WP > 1 / blocks; the only block of a network is all of it, which no share exceeds).
    """
    return degree > epsilon and (share > 1 / count or count == 1)


def replaceable(graph: LayerGraph, span: Span) -> bool:
    """Whether a block makes one value from one value."""
    inside = graph.layers[span.start : span.stop]
    made = {v for x in inside for v in x.outs}
    consts = set(graph.program.consts)
    reads = {v for x in inside for v in x.ins if v not in consts and v not in made}
    return len(reads) == 1 and len([v for v in crossing(graph, span.stop) if v in made]) == 1


__all__ = [
    "EPSILON",
    "TWIN_SECONDS",
    "Worth",
    "blocks",
    "deserves",
    "deserving",
    "fastest",
    "merged",
    "replaceable",
    "seconds",
    "worth",
]
