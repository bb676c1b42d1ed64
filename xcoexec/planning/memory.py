"""Memory: how arrays cross between the halves, and what a plan keeps on the device (EdgeNN's memory management, section
IV-B).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from ..codegen.program import Value
from ..ir.geometry import axis_of, by_channels
from ..ir.layers import Layer, LayerGraph
from ..ir.placement import Placement, bounds, chains
from ..ir.streaming import STREAMED_BYTES, ahead
from ..ir.words import DEVICE, HOST, SPLIT, SUMS

Moves = Mapping[str, tuple[float, float]]
SPARE_PIECES = 2  # more than are alive: small values between them may keep XLA from using their place again
POLICIES = ("auto", "mapped", "copy")
UNITS = {
    "": 1,
    "B": 1,
    **{f"{p}B": 1000 ** (i + 1) for i, p in enumerate("KMGT")},
    **{f"{p}iB": 1024 ** (i + 1) for i, p in enumerate("KMGT")},
}


def amount(given: object) -> float | int | None:
    """Bytes (an int) or a share of the device's memory (a float up to 1) that `device_memory=` asks for; None for no
    bound. Raises `ValueError` for anything else.
    """
    if given is None:
        return None
    valid = 'a number of bytes, text such as "16GiB" or "500 MB", or a share of the device\'s memory up to 1.0'
    found: float | int = -1
    if isinstance(given, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?i?B?)\s*", given)
        if match and match[2] in UNITS:
            found = int(float(match[1]) * UNITS[match[2]])
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        found = given
    if found <= 0 or (isinstance(found, float) and found > 1) or math.isnan(found):
        raise ValueError(f"xcoexec: got device_memory={given!r}; valid is {valid}.")
    return found


def ways(graph: LayerGraph, placements: Sequence[Placement], policy: str, moves: Moves) -> tuple[Placement, ...]:
    """The placements with a way for every array that crosses between the halves; `moves`: (seconds, bytes/s) of each
    way, as in `Costs`.

    "auto" takes for each what costs less by this machine's figures; pieces that are not contiguous are then always
    mapped, because copy engines are slow with short rows. What a placement says already stays.
    """
    out = list(placements)
    for members in chains(graph, placements):
        place = placements[members[-1].index]
        if place.half == DEVICE or (place.half == SPLIT and place.p_cpu <= 0):
            continue
        reads, contiguous = _read(graph, members, placements)
        first, last = members[0].index, members[-1].index
        if reads and not out[first].reads:
            out[first] = dataclasses.replace(out[first], reads=_way("read", reads, contiguous, policy, moves))
        result, contiguous = _written(graph, members[-1], place, placements)
        if result and not out[last].writes:
            out[last] = dataclasses.replace(out[last], writes=_way("write", result, contiguous, policy, moves))
    return tuple(out)


def _way(what: str, nbytes: float, contiguous: bool, policy: str, moves: Moves) -> str:
    if policy != "auto":
        return policy
    if not moves or not contiguous:
        return "mapped"
    seconds = {way: moves[f"{what} {way}"][0] + nbytes / moves[f"{what} {way}"][1] for way in ("mapped", "copy")}
    return min(seconds, key=lambda way: seconds[way])


def _read(graph: LayerGraph, members: Sequence[Layer], placements: Sequence[Placement]) -> tuple[float, bool]:
    """(bytes that the first layer of a host part takes from the device, whether each piece of them is contiguous)."""
    layer, place = members[0], placements[members[0].index]
    consts = set(graph.program.consts)
    home = graph.home
    crossing = [
        v
        for v in layer.ins
        if v not in consts and (v not in home or placements[home[v]].half != HOST or place.half != HOST)
    ]
    rows = place.half == SPLIT and not by_channels(place.dim, len(members))
    axis = layer.sums.axes[0] if rows and place.dim == SUMS and layer.sums else axis_of(layer.group, place.dim) or 0
    before = max((math.prod(v.shape[:axis]) for v in crossing), default=1) if rows else 1
    return sum(v.nbytes for v in crossing) * (place.p_cpu if rows else 1.0), before == 1


def _written(graph: LayerGraph, layer: Layer, place: Placement, placements: Sequence[Placement]) -> tuple[float, bool]:
    """The same for the result of the last layer of a host part; nothing where only host layers read it."""
    if place.half == SPLIT and place.dim != SUMS:
        axis = axis_of(layer.group, place.dim) or 0
        return layer.out.nbytes * place.p_cpu, math.prod(layer.out.shape[:axis]) == 1
    readers = [placements[x.index].half for x in graph.layers if layer.out in x.ins]
    crosses = layer.out in graph.program.outputs or any(half != HOST for half in readers)
    return layer.out.nbytes if crosses else 0.0, True


@dataclasses.dataclass(frozen=True)
class Usage:
    """Bytes on the device: `resident` weights, `streaming` buffers, `values` of a call alive at once."""

    resident: int
    streaming: int
    values: int

    @property
    def total(self) -> int:
        """Bytes of all three."""
        return self.resident + self.streaming + self.values

    @property
    def text(self) -> str:
        """All three in MB, as messages show them."""
        parts = (
            (self.resident, "resident weights"),
            (self.streaming, "buffers for streamed ones"),
            (self.values, "values of a call"),
        )
        return ", ".join(f"{n / 1e6:.1f} MB {what}" for n, what in parts)


def large(layer: Layer, consts: set[Value]) -> int:
    """Bytes of a layer's weights that can be divided, streamed or left to the host half."""
    return sum(v.nbytes for v in layer.ins if v in consts and v.nbytes >= STREAMED_BYTES)


def weight_shares(layer: Layer, place: Placement) -> tuple[float, float, float]:
    """The shares (0..1) of a layer that the host half computes, the device half from resident weights, and from
    streamed ones.
    """
    if place.half == HOST:
        return 1.0, 0.0, 0.0
    if place.dim == SUMS:  # of each layer of the chain
        return place.p_cpu, 1 - place.p_cpu, 0.0
    at, resident, size = bounds(layer, place)
    if not size:
        return (0.0, 0.0, 1.0) if place.streamed else (0.0, 1.0, 0.0)
    return at / size, (resident - at) / size, (size - resident) / size


def usage(graph: LayerGraph, placements: Sequence[Placement]) -> Usage:
    """The bytes that a plan keeps on the device."""
    consts = set(graph.program.consts)
    resident: dict[object, int] = {}
    fetches = []
    for layer, place in zip(graph.layers, placements, strict=True):
        host, mine, over = weight_shares(layer, place)
        for v in layer.ins if host < 1 else ():
            if v not in consts:
                continue
            if mine == 1.0 or place.dim not in ("channel", SUMS):
                resident[v] = v.nbytes
            elif v.nbytes < STREAMED_BYTES:
                resident[layer.index, v] = math.ceil(v.nbytes * (mine + over))
            else:
                resident[layer.index, v] = math.ceil(v.nbytes * mine)
                fetches += [math.ceil(v.nbytes * over / place.pieces)] * place.pieces if over else []
    streaming = int(min(sum(fetches), ahead(fetches) + SPARE_PIECES * max(fetches, default=0)))
    return Usage(sum(resident.values()), streaming, alive(graph))


def alive(graph: LayerGraph) -> int:
    """Most bytes of a call's values that are needed at one time."""
    consts = set(graph.program.consts)
    last: dict[Value, int] = dict.fromkeys(graph.program.outputs, len(graph.layers))
    for x in graph.layers:
        for v in x.ins:
            if v not in consts:
                last[v] = max(last.get(v, 0), x.index)
    there = {v: v.nbytes for v in graph.program.inputs}
    most = 0
    for x in graph.layers:
        there.update((v, v.nbytes) for v in x.outs)
        most = max(most, sum(there.values()))
        there = {v: n for v, n in there.items() if last.get(v, 0) > x.index}
    return max(most, sum(there.values()))


__all__ = ["POLICIES", "Usage", "alive", "amount", "large", "usage", "ways", "weight_shares"]
