"""Chains split along rows or channels, between layers on either half (after CoDL, Jia et al., MobiSys 2022).

A shortest path through the layers in their order, each place with what is alive there on the device, divided by rows as
the layers before have left it, or (where that is a single array) on the host. The steps: a layer on the device, layers
on the host, one layer split by output channels or rows, or a chain of layers: split by rows, whose halves exchange
nothing until its end and compute the rows around their border twice (the paper's padding growth, Equation 1), by
channels, where the layers behind the first keep channels apart, or along the sums of a product, whose halves add up
what they have computed themselves, such as the features between a transformer's products, or heads of an attention
(Shoeybi et al., Megatron-LM, 2019, section 3). A chain of rows behind another one of rows finds its own rows where they
were made, so that only borders cross. Several results of a chain may be read behind it, such as the queries, keys and
values of a transformer's next block and the sum that goes around it; they are divided alike. The paper's own search is
`algorithm1`. Its choice of data types and layouts (section 4: images for the GPU, buffers for the CPU's part) is no
decision here: XLA chooses the device half's layouts.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

from ...codegen.program import Value
from ...codegen.rules.convolution import convolution
from ...ir.costs import Costs
from ...ir.geometry import axis_of, cut
from ...ir.layers import Layer, LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.words import DEVICE, HOST, SPLIT, SUMS
from ..chain_shares import MAX_CHAIN, Chains

SHARES = tuple(i / 16 for i in range(1, 16))
DIMS = ("channel", "rows")  # of the paper
ALL = (*DIMS, SUMS)
SMOOTH = ("channel", SUMS)  # along which a product of few rows takes a device as much less as it has less to compute
MARGIN = 0.03  # a split that is not predicted to win by this share is not made
ROWS = "rows"  # where arrays lie: on both halves
FURTHER = 0.3  # of a crossing's fixed seconds: what each result of a chain costs behind its first one


@dataclasses.dataclass(frozen=True)
class Piece:
    """Layers `first:last`, how they are placed, and their seconds without what lies before and behind them."""

    first: int
    last: int
    half: str
    seconds: float
    p: float = 0.0
    dim: str = "channel"


def codl(
    graph: LayerGraph, costs: Costs, *, dims: Sequence[str] = DIMS, chain: bool = True, longest: int = MAX_CHAIN
) -> Plan:
    """The shortest path, in seconds, over (place in the program, where its arrays lie).

    `dims`: along which layers may be split ("channel", "rows"; the paper's hybrid-dimension partitioning, section 4.1,
    has both), and "sums"; without `chain` every layer is split alone; `longest`: layers of a chain at most. Raises
    `ValueError` for other dims.
    """
    if not dims or set(dims) - set(ALL):
        raise ValueError(f"codl: got dims={dims!r}; valid are some of {', '.join(map(repr, ALL))}.")
    return _shortest(graph, costs, _Search(graph, costs, tuple(d for d in ALL if d in dims), longest if chain else 1))


def _shortest(graph: LayerGraph, costs: Costs, search: _Search) -> Plan:
    n = len(graph.layers)
    places = clean(graph)
    size = {k: _bytes(graph, k) for k in places}
    best: dict[tuple[int, str], tuple[float, list[Piece]]] = {(0, DEVICE): (0.0, [])}
    for at in range(n):
        if at in size:
            for state, other in ((DEVICE, HOST), (HOST, DEVICE)):  # the array may change sides first
                if (at, state) in best:
                    seconds, path = best[at, state]
                    _offer(best, (at, other), seconds + costs.sync / 2 + size[at] / costs.copy_rate, path)
        if (at, DEVICE) in best:
            seconds, path = best[at, DEVICE]
            for piece in search.from_device(at):
                _made(best, seconds, path, piece)
        if (at, ROWS) in best:
            seconds, path = best[at, ROWS]
            for piece in search.from_rows(at, path[-1]):
                _made(best, seconds, path, piece)
        after = next((k for k in places if k > at), n)
        t = search.host_seconds(at, after)
        if (at, HOST) in best and t is not None:
            seconds, path = best[at, HOST]
            _offer(best, (after, HOST), seconds + t, [*path, Piece(at, after, HOST, t)])
    _offer(best, (n, DEVICE), *_returned(best, n, size[n], costs))
    seconds, path = best[n, DEVICE]
    return Plan(
        "codl",
        _placements(graph, path, costs),
        graph.key,
        seconds,
        chosen="chains by dynamic programming over rows, channels and halves",
    )


def _made(
    best: dict[tuple[int, str], tuple[float, list[Piece]]], before: float, path: list[Piece], piece: Piece
) -> None:
    """One more step. Where it has divided rows, the next one may find them so; until then they count as whole."""
    _offer(best, (piece.last, DEVICE), before + piece.seconds, [*path, piece])
    if piece.half == SPLIT and piece.dim == "rows":
        _offer(best, (piece.last, ROWS), before + piece.seconds, [*path, piece])


def _returned(
    best: dict[tuple[int, str], tuple[float, list[Piece]]], end: int, nbytes: int, costs: Costs
) -> tuple[float, list[Piece]]:
    seconds, path = best.get((end, HOST), (math.inf, []))
    return seconds + costs.sync / 2 + nbytes / costs.copy_rate, path


def _offer(
    best: dict[tuple[int, str], tuple[float, list[Piece]]], key: tuple[int, str], seconds: float, path: list[Piece]
) -> None:
    if key not in best or seconds < best[key][0]:
        best[key] = (seconds, path)


def clean(graph: LayerGraph) -> list[int]:
    """Numbers of layers before which only the last layer's result is still needed; the beginning and the end too."""
    n = len(graph.layers)
    last_use: dict[Value, int] = {}
    for x in graph.layers:
        for v in x.ins:
            last_use[v] = x.index
    last_use.update((v, n) for v in graph.program.outputs)
    consts = set(graph.program.consts)
    out, alive = [0], {v for v in graph.program.inputs if v in last_use}
    for x in graph.layers[:-1]:
        alive = {v for v in (*alive, *x.outs) if v not in consts and last_use.get(v, -1) > x.index}
        if alive == {x.out}:
            out.append(x.index + 1)
    return [*out, n]


def _bytes(graph: LayerGraph, at: int) -> int:
    values = graph.program.inputs if at == 0 else graph.layers[at - 1].outs
    return sum(v.nbytes for v in values)


class _Search:
    """What may follow at a place, and what it costs."""

    def __init__(self, graph: LayerGraph, costs: Costs, dims: tuple[str, ...], longest: int):
        self.graph, self.costs, self.dims, self.longest = graph, costs, dims, longest
        self.chains = Chains(graph)
        self.consts = self.chains.consts
        self.ways = functools.lru_cache(None)(self._ways)

    def host_seconds(self, first: int, last: int) -> float | None:
        times = [self.costs.host[i] for i in range(first, last)]
        return None if any(t is None for t in times) else sum(t for t in times if t is not None)

    def from_device(self, first: int) -> Iterator[Piece]:
        """Steps that begin and end with everything on the device."""
        yield Piece(first, first + 1, DEVICE, self.costs.device[first])
        if self.costs.shared_cores:
            return
        yield from self.channels(self.graph.layers[first])
        for last in range(first + 1, min(first + self.longest, len(self.graph.layers)) + 1):
            if self.costs.host[last - 1] is None:
                return
            yield from self.chained(first, last)

    def from_rows(self, first: int, before: Piece) -> Iterator[Piece]:
        """Chains of rows that begin where the piece before has left its results divided by rows."""
        for last in range(first + 1, min(first + self.longest, len(self.graph.layers)) + 1):
            if self.costs.host[last - 1] is None:
                return
            piece = self.divided(first, last, "rows", before)
            if piece is not None:
                yield piece

    def on_host(self, layer: int) -> Iterator[Piece]:
        """A layer as a whole on the host half, between layers on the device."""
        t, x = self.costs.host[layer], self.graph.layers[layer]
        if t is not None:
            data = sum(v.nbytes for v in x.ins if v not in self.consts) + x.out.nbytes
            yield Piece(layer, layer + 1, HOST, t + self.costs.sync + data / self.costs.copy_rate)

    def chained(self, first: int, last: int) -> Iterator[Piece]:
        """Layers `first:last` as one chain along each dimension, where what others read of it can be divided.

        A chain of rows computes the border twice; one of channels exists where every layer but the first is depthwise,
        pooling or elementwise, and computes nothing twice. One of sums ends with a product.
        """
        if self.costs.shared_cores or any(self.costs.host[i] is None for i in range(first, last)):
            return
        for dim in self.dims:
            if dim != "channel" or last - first > 1:  # one layer by channels: `channels`
                piece = self.divided(first, last, dim)
                if piece is not None:
                    yield piece

    def channels(self, layer: Layer) -> Iterator[Piece]:
        """The best split of one layer by output channels: the host half needs all of the operand."""
        axis, t_host, t_device = (
            axis_of(layer.group, "channel"),
            self.costs.host[layer.index],
            self.costs.device[layer.index],
        )
        if axis is None or "channel" not in layer.dims or t_host is None or "channel" not in self.dims:
            return
        data = sum(v.nbytes for v in layer.ins if v not in self.consts)
        size, granule = layer.out.shape[axis], layer.dims["channel"]

        def seconds(p: float) -> float:
            both = (
                max(
                    self.costs.part(HOST, layer.index, "channel", p),
                    self.costs.part(DEVICE, layer.index, "channel", 1 - p),
                )
                * self.costs.contention
            )
            return self.costs.sync + (data + p * layer.out.nbytes) / self.costs.copy_rate + both

        shares = [p for p in SHARES if 0 < cut(size, granule, p) < size]
        if shares:
            p = min(shares, key=seconds)
            if seconds(p) < (1 - MARGIN) * t_device:
                yield Piece(layer.index, layer.index + 1, SPLIT, seconds(p), p, "channel")

    def divided(self, first: int, last: int, dim: str, before: Piece | None = None) -> Piece | None:
        """The best split of layers `first:last` along a dimension of the last one; None where none pays. `before`: what
        has left its rows divided.
        """
        results, costs, found = self.chains.results(first, last, dim), self.costs, None
        ways = self.ways(first, last, dim) if results is not None else []
        if results is None or not ways:
            return None
        size = self.graph.layers[last - 1].extent(dim)
        made, fixed = sum(v.nbytes for v in results), costs.sync * (1 + FURTHER * (len(results) - 1))
        read, whole = self.chains.read(first, last), self.chains.reads_whole(first, last, dim)
        lying, left = self._lying(before, first, last)
        for at, mine, other, both in ways:
            data = read * (1.0 if whole else mine) + made * (1.0 if dim == SUMS else at / size)
            if before is not None:
                data = max(data - lying * min(before.p, mine) - left * min(before.p, 1 - other), 0.0)
            seconds = fixed + data / costs.copy_rate + both
            if found is None or seconds < found.seconds:
                found = Piece(first, last, SPLIT, seconds, at / size, dim)
        return found if found is not None and found.seconds < (1 - MARGIN) * sum(costs.device[first:last]) else None

    def _ways(self, first: int, last: int, dim: str) -> list[tuple[int, float, float, float]]:
        """Where layers `first:last` may be cut along a dimension: (index, the host half's share of the first one, the
        device half's, seconds of both at once); none where they cannot be followed.
        """
        costs, grain = self.costs, self.chains.grain(first, last, dim)
        if grain is None:
            return []
        size, found = self.graph.layers[last - 1].extent(dim), []
        for at in sorted({cut(size, grain, p) for p in SHARES} - {0, size}):
            needed = self.chains.needed(first, last, dim, at)
            if needed is None:
                return []
            mine, other = needed
            host = sum(costs.part(HOST, i, dim, mine[i]) for i in range(first, last))
            device = sum(costs.part(DEVICE, i, dim, other[i]) for i in range(first, last))
            found.append((at, mine[first], other[first], max(host, device) * costs.contention))
        return found

    def _lying(self, before: Piece | None, first: int, last: int) -> tuple[int, int]:
        """(bytes that layers `first:last` read of what `before` has divided, bytes of that which nobody reads behind
        them): the rows of one image.
        """
        if before is None:
            return 0, 0
        made = self.chains.results(before.first, before.last, before.dim) or ()
        read = {v for x in self.graph.layers[first:last] for v in x.ins}
        owner = self.graph.home
        lying = [v for v in made if v in read and v.shape and v.shape[0] == 1]
        return sum(v.nbytes for v in lying), sum(v.nbytes for v in lying if self.chains.last_reader[owner[v]] < last)


def transposed(layer: Layer, costs: Costs) -> float:
    """Seconds that a layer's image and result take to be moved to the layout of the host half's kernels and back; 0
    where they are channels-last.

    XLA chooses the device half's layout itself. The time is a part of the host half's, which was measured with it.
    """
    op = layer.group.anchor
    conv = convolution(op)
    if conv is None or conv.image[1] == len(conv.image) - 1:
        return 0.0
    return (layer.ins[0].nbytes + op.out.nbytes) / costs.copy_rate


def _note(layer: Layer, half: str, costs: Costs) -> str:
    if half == DEVICE:
        return layer.host_error
    seconds = transposed(layer, costs)
    return f"channels-last on the host half: {seconds * 1e6:.0f} us to move" if seconds else ""


def _placements(graph: LayerGraph, path: Sequence[Piece], costs: Costs) -> tuple[Placement, ...]:
    places = []
    for number, piece in enumerate(path, 1):
        chain = number if piece.half == SPLIT and piece.last - piece.first > 1 else 0
        share = {DEVICE: 0.0, HOST: 1.0}.get(piece.half, piece.p)
        for x in graph.layers[piece.first : piece.last]:
            predicted = piece.seconds / (piece.last - piece.first)
            places.append(
                Placement(x.name, piece.half, share, piece.dim, predicted, _note(x, piece.half, costs), chain)
            )
    return tuple(places)
