"""Weights larger than the device: which output channels are resident, which are streamed, which the host half computes.

One linear program over all layers with large weights: least time under the bytes that may lie on the device. For
each such layer three shares of its output channels, `host + resident + streamed = 1`; its end `e` and the end `c` of
the copy of its weights, which come in pieces, are bounded from below by

    e[i] >= e[i-1] + gap[i] + (t_host[i] + result bytes / copy_rate) * host[i]
                            + (sync + operand bytes / copy_rate) * both[i]
    e[i] >= e[i-1] + gap[i] + t_device[i] * (resident[i] + streamed[i])
    e[i] >= c[i] + t_device[i] * streamed[i] * piece[i]          the last piece is computed after its copy
    c[i] >= c[i-1] + (bytes[i] / rate + piece seconds) * streamed[i]      one copy engine
    c[i] >= e[i-1] + (bytes[i] * streamed[i] - AHEAD * largest piece) / rate     room for so many pieces

and the device holds `sum(bytes * resident) + buffers <= capacity`. `gap`: the layers between, on the device; `piece`: a
piece's part of a layer. Shares of layers that cannot be divided are whole numbers, and so is `both >= host` where the
fixed cost matters. `clock` is the same without the approximations; it decides between ways of rounding.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...errors import PlanError
from ...ir.costs import Costs
from ...ir.geometry import axis_of, block
from ...ir.layers import Layer, LayerGraph
from ...ir.placement import Placement
from ...ir.plan import Plan
from ...ir.streaming import AHEAD, Ahead
from ...ir.words import DEVICE, HOST, SPLIT
from ..memory import SPARE_PIECES, large, usage

PIECE_BYTES = 1 << 24  # of streamed weights: large enough for the bus's full rate
#: of a piece beside what its bytes take: a copy, and a product of its own; so small weights are better resident
PIECE_SECONDS = 2e-5
#: what streaming a layer is charged for that in the program, where it would not be linear: the last one keeps weights
#: from being streamed at all. `clock` decides
WEIGHED = (0.0, PIECE_SECONDS, 1.0)
PIECES = 16  # or this part of the capacity, where that is less
LEAST_SHARE = 1 / 64  # of a layer: a smaller part is not worth a call
ALIGNED = 4  # channels: what is resident ends at 16 bytes
SEARCH_SECONDS = 2.0
#: of a layer's time: below that a host call's fixed cost grows with the share, and no whole numbers are needed
FIXED_MATTERS = 0.02
ROUNDINGS = 8
LEAST_EXCESS = 2e-3  # of the capacity
Shares = tuple[float, float, float]  # host, resident, streamed
Row = tuple[Mapping[int, float], float, float]  # of the program: coefficients by column, at least, at most


@dataclasses.dataclass(frozen=True)
class Heavy:
    """A layer with large weights as the program sees it: seconds, bytes, the granule of its shares (None: all or
    nothing).
    """

    layer: Layer
    nbytes: int
    host: float | None
    device: float
    granule: int | None
    gap: float
    largest: int  # bytes of a piece
    moved: tuple[int, int]  # bytes of the operands, of the result

    def pieces(self, streamed: float) -> int:
        """How many pieces the streamed share (0..1) comes in."""
        return (
            1
            if self.granule is None
            else max(
                1, min(math.ceil(streamed * self.nbytes / self.largest), int(streamed * _size(self) / self.granule))
            )
        )


def capacity(graph: LayerGraph, costs: Costs) -> Plan:
    """The plan with the least predicted seconds whose weights fit `costs.capacity` bytes. Raises `PlanError` where none
    does.
    """
    heavy, tail = _heavy(graph, costs)
    layers = {h.layer.index for h in heavy}
    alone = [Placement(x.name, x.half or (HOST if x.index in layers else DEVICE), 0.0) for x in graph.layers]
    room = costs.capacity - usage(graph, alone).total
    least = costs.capacity - room + _least(heavy)
    for attempt in range(ROUNDINGS):
        ways = [found for piece in WEIGHED if (found := solve(heavy, room, costs, piece)) is not None]
        if not ways:
            raise PlanError(
                f"device_memory: got {_text(costs.capacity)}; valid for this function is {_text(least)} or more."
            )
        rounded = [_placed(graph, costs, heavy, s) for found in ways for s in _rounded_ways(heavy, found)]
        excess = min(p.nbytes for p in rounded) - costs.capacity
        if excess <= 0:
            break
        # whole blocks and pieces take a little more than the program's shares
        room -= max(excess, LEAST_EXCESS * costs.capacity) * 2**attempt
    plans = [*rounded, *(_placed(graph, costs, heavy, shares) for shares in _simple(heavy))]
    best = min((p for p in plans if p.nbytes <= costs.capacity), key=lambda p: p.seconds, default=None)
    if best is None:
        raise PlanError(
            f"device_memory: got {_text(costs.capacity)}; valid for this function is {_text(least)} or more."
        )
    seconds, places = best.seconds, best.placements
    bound = (
        f"with at most {_text(costs.capacity)} on the device"
        if costs.capacity < math.inf
        else "with room for all weights"
    )
    chosen = f"least time {bound}: {usage(graph, places).text}"
    return Plan("capacity", places, graph.key, seconds + tail, chosen=chosen)


def _rounded_ways(heavy: Sequence[Heavy], found: Sequence[Shares]) -> list[list[Shares]]:
    """The program's shares in whole blocks: to the nearest, up, down; the same where layers that are nearly resident
    are so as a whole.
    """
    ways = [[_rounded(h, shares, nudge) for h, shares in zip(heavy, found, strict=True)] for nudge in (0.0, 0.5, -0.5)]
    return ways + [[(0.0, 1.0, 0.0) if s[1] > 1 - LEAST_SHARE else s for s in shares] for shares in ways]


def _simple(heavy: Sequence[Heavy]) -> list[list[Shares]]:
    """The plans that need no program: everything resident, everything streamed, everything on the host half."""
    on_host = [[(1.0, 0.0, 0.0)] * len(heavy)] if all(h.host is not None for h in heavy) else []
    return [[(0.0, 1.0, 0.0)] * len(heavy), [(0.0, 0.0, 1.0)] * len(heavy), *on_host]


def _host_seconds(h: Heavy, costs: Costs) -> tuple[float, float]:
    """Seconds of the host half's part of a layer: fixed, and for all of it."""
    return costs.sync + h.moved[0] / costs.copy_rate, (h.host or 0.0) * costs.contention + h.moved[1] / costs.copy_rate


def clock(heavy: Sequence[Heavy], shares: Sequence[Shares], costs: Costs) -> float:
    """Seconds until the last of the layers ends, by the bounds above; `shares`: (host, resident, streamed) of each
    layer.
    """
    sizes = [
        streamed * h.nbytes / h.pieces(streamed) for h, (_, _, streamed) in zip(heavy, shares, strict=True) if streamed
    ]
    window, now, engine = Ahead(sizes), 0.0, 0.0
    for h, (host, resident, streamed) in zip(heavy, shares, strict=True):
        begin = now + h.gap
        device = begin + h.device * resident
        pieces = h.pieces(streamed) if streamed else 0
        for _ in range(pieces):
            size = streamed / pieces * h.nbytes
            engine = max(engine, window.take(size)) + size / costs.stream_rate + PIECE_SECONDS
            device = max(device, engine) + h.device * streamed / pieces
            window.used(size, device)
        over, back = _host_seconds(h, costs)
        now = max(device, begin + over + back * host if host else 0.0)
    return now


@dataclasses.dataclass(frozen=True)
class _Placed:
    placements: tuple[Placement, ...]
    seconds: float
    nbytes: int


def _placed(graph: LayerGraph, costs: Costs, heavy: Sequence[Heavy], shares: Sequence[Shares]) -> _Placed:
    """Shares as placements, with their time and the bytes that they keep on the device."""
    places = [_alone(x, costs) for x in graph.layers]
    for h, share in zip(heavy, shares, strict=True):
        places[h.layer.index] = _place(h, share)
    return _Placed(tuple(places), clock(heavy, shares, costs), usage(graph, places).total)


def _alone(x: Layer, costs: Costs) -> Placement:
    """Where a layer runs that nothing is decided of."""
    if x.half == HOST:
        return Placement(x.name, HOST, 1.0, predicted=costs.host[x.index])
    return Placement(x.name, DEVICE, 0.0, predicted=costs.device[x.index], note=x.host_error)


def _heavy(graph: LayerGraph, costs: Costs) -> tuple[list[Heavy], float]:
    """The layers with large weights in their order, but for those that one half has to compute, and the seconds behind
    the last of them.
    """
    consts = set(graph.program.consts)
    found, gap = [], 0.0
    for x in graph.layers:
        nbytes = large(x, consts)
        if x.half or not nbytes:
            gap += (costs.host[x.index] or 0.0) if x.half == HOST else costs.device[x.index]
            continue
        axis = axis_of(x.group, "channel")
        granule = x.dims.get("channel") if axis is not None else None
        moved = (sum(v.nbytes for v in x.ins if v not in consts), x.out.nbytes)
        largest = int(max(1, min(PIECE_BYTES, costs.capacity / PIECES)))
        found.append(Heavy(x, nbytes, costs.host[x.index], costs.device[x.index], granule, gap, largest, moved))
        gap = 0.0
    return found, gap


def _size(h: Heavy) -> int:
    return h.layer.out.shape[axis_of(h.layer.group, "channel") or 0]


def _step(h: Heavy) -> float:
    """The smallest difference between two shares of a layer."""
    if h.granule is None:
        return 0.0
    return block(h.granule, _size(h)) / _size(h)


class _Columns(NamedTuple):
    """The program's variables by their columns: six of each layer, then the bytes of all buffers."""

    host: range
    resident: range
    streamed: range
    both: range
    ends: range
    copies: range
    buffers: int

    @classmethod
    def of(cls, layers: int) -> _Columns:
        host, resident, streamed, both, ends, copies = (range(k * layers, (k + 1) * layers) for k in range(6))
        return cls(host, resident, streamed, both, ends, copies, 6 * layers)

    @property
    def width(self) -> int:
        return self.buffers + 1


def solve(heavy: Sequence[Heavy], room: float, costs: Costs, piece: float = 0.0) -> list[Shares] | None:
    """(host, resident, streamed) shares (0..1) of every layer with the least seconds until the last one ends; None
    where nothing fits into `room` bytes. `piece`: seconds that count for streaming a whole layer beside its bytes.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n = len(heavy)
    if not n:
        return [] if room >= 0 else None
    room = min(room, 2.0 * sum(h.nbytes for h in heavy))
    at = _Columns.of(n)
    scale = 1 / max(room, 1.0)  # bytes as parts of the room, so that all coefficients are of one size
    rows = [row for i in range(n) for row in _layer_rows(heavy, i, at, costs, scale, piece)]
    held = {at.buffers: 1.0, **{at.resident[i]: h.nbytes * scale for i, h in enumerate(heavy)}}
    rows.append((held, -math.inf, room * scale if room > 0 else -1.0))
    entries = [(r, c, v) for r, (row, _, _) in enumerate(rows) for c, v in row.items()]
    matrix = coo_array(
        ([v for _, _, v in entries], ([r for r, _, _ in entries], [c for _, c, _ in entries])), (len(rows), at.width)
    ).tocsr()
    result = milp(
        _objective(at),
        constraints=LinearConstraint(matrix, [lo for _, lo, _ in rows], [hi for _, _, hi in rows]),
        bounds=Bounds(np.zeros(at.width), _most(heavy, at)),
        integrality=_whole(heavy, at, costs),
        options={"time_limit": SEARCH_SECONDS, "mip_rel_gap": 1e-2},
    )
    if result.x is None:
        return None
    x = [float(v) for v in result.x]
    return [(x[at.host[i]], x[at.resident[i]], x[at.streamed[i]]) for i in range(n)]


def _layer_rows(
    heavy: Sequence[Heavy], i: int, at: _Columns, costs: Costs, scale: float, fixed: float
) -> Iterator[Row]:
    """The bounds above of layer i, in their order; `scale`: of bytes, `fixed`: seconds of a piece."""
    h, inf = heavy[i], math.inf
    host, resident, streamed, both, end, copy = (columns[i] for columns in at[:6])
    before = {at.ends[i - 1]: -1.0} if i else {}
    move = h.nbytes / costs.stream_rate + fixed
    over, back = _host_seconds(h, costs)
    yield {host: 1, resident: 1, streamed: 1}, 1, 1
    yield {host: 1, both: -1}, -inf, 0
    yield {end: 1, **before, host: -back, both: -over}, h.gap, inf
    yield {end: 1, **before, resident: -h.device, streamed: -h.device}, h.gap, inf
    piece = 1.0 if h.granule is None else min(1.0, h.largest / h.nbytes)
    yield {end: 1, copy: -1, streamed: -h.device * piece}, 0, inf
    yield {copy: 1, streamed: -move, **({at.copies[i - 1]: -1} if i else {})}, 0, inf
    if i:
        yield {copy: 1, streamed: -move, at.ends[i - 1]: -1}, -AHEAD * h.largest / costs.stream_rate, inf
    yield {at.buffers: 1, streamed: -(AHEAD + SPARE_PIECES) * piece * h.nbytes * scale}, 0, inf


def _objective(at: _Columns) -> np.ndarray:
    """What is least: the last end."""
    cost = np.zeros(at.width)
    cost[at.ends[-1]] = 1.0
    cost[list(at.streamed)] = 1e-9  # where streaming costs nothing, weights are resident all the same
    return cost


def _most(heavy: Sequence[Heavy], at: _Columns) -> np.ndarray:
    """The most of each variable: 1 of shares, 0 of what the host half cannot compute."""
    most = np.full(at.width, math.inf)
    most[: at.ends[0]] = 1.0
    most[[at.host[i] for i, h in enumerate(heavy) if h.host is None]] = 0.0
    return most


def _whole(heavy: Sequence[Heavy], at: _Columns, costs: Costs) -> np.ndarray:
    """1 for the variables that are whole numbers."""
    whole = np.zeros(at.width)
    fixed = (costs.sync > FIXED_MATTERS * min(h.device, h.host or h.device) for h in heavy)
    whole[[at.both[i] for i, matters in enumerate(fixed) if matters]] = 1
    undivided = [i for i, h in enumerate(heavy) if h.granule is None]
    whole[[columns[i] for i in undivided for columns in (at.host, at.resident, at.streamed)]] = 1
    return whole


def _least(heavy: Sequence[Heavy]) -> float:
    """Bytes that the layers need which the host half cannot take, when they are streamed."""
    alone = [h.nbytes for h in heavy if h.host is None]
    return max((sum(alone[i : i + AHEAD + SPARE_PIECES]) for i in range(len(alone))), default=0)


def _rounded(h: Heavy, shares: Shares, nudge: float) -> Shares:
    """Shares in whole blocks, the host's `nudge` blocks more; what is resident never grows, and parts too small to be
    worth it go to a neighbour.
    """
    if h.granule is None:
        return tuple(float(round(s)) for s in shares)  # type: ignore[return-value]
    step = _step(h)
    host, resident, _ = (s if s >= LEAST_SHARE else 0.0 for s in shares)
    if host:
        host = min(max(round(host / step + nudge), 0), round(1 / step)) * step
        host = 1.0 if host > 1 - LEAST_SHARE else host
    fine = max(h.granule, ALIGNED) / _size(h)
    resident = min(math.floor(resident / fine + 1e-6) * fine, 1 - host)
    streamed = 1 - host - resident
    if shares[2] < LEAST_SHARE and streamed <= step + 1e-9 and h.host is not None:
        host, streamed = 1 - resident, 0.0  # the last block: better with the host half than over the bus
    return host, resident, max(streamed, 0.0)


def _place(h: Heavy, shares: Shares) -> Placement:
    host, _, streamed = shares
    half = HOST if host >= 1 else SPLIT if host > 0 else DEVICE
    streamed = 0.0 if half == HOST else min(streamed, 1.0 - host)
    return Placement(
        h.layer.name, half, min(host, 1.0), streamed=streamed, pieces=h.pieces(streamed) if streamed else 1
    )


def _text(nbytes: float) -> str:
    return f"{nbytes / 1e6:.1f} MB" if nbytes < 1e9 else f"{nbytes / 1e9:.2f} GB"
