"""Where one layer runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .geometry import axis_of, cut
from .layers import Layer, LayerGraph
from .words import SPLIT


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where one layer runs. `p_cpu` (0..1) is the host half's share along `dim`; `predicted` seconds.

    Neighbouring split layers with the same `chain` (not 0) exchange nothing between them: the last one's result is
    divided, and each half computes what its part needs of those before. `reads`, `writes`: how what the host half takes
    and gives crosses to a device of its own, "mapped" (kernels in host-mapped memory) or "copy" (copy engines); ""
    where nothing crosses. `streamed` (0..1, of the whole layer): what the device half computes from weights that come
    over at every call, in so many `pieces`; the rest of its weights is resident.
    """

    layer: str
    half: str
    p_cpu: float
    dim: str = "channel"
    predicted: float | None = None
    note: str = ""
    chain: int = 0
    reads: str = ""
    writes: str = ""
    streamed: float = 0.0
    pieces: int = 1


def bare(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Placements without what is predicted and said of them: what tells one executable from another."""
    return tuple(dataclasses.replace(p, predicted=None, note="") for p in placements)


def chains(graph: LayerGraph, placements: Sequence[Placement]) -> list[list[Layer]]:
    """The layers in runs that are placed together: neighbours of one split chain, every other layer alone. Raises
    `ValueError` where there is not one placement for each layer.
    """
    out: list[list[Layer]] = []
    before = 0
    for layer, place in zip(graph.layers, placements, strict=True):
        if place.chain and place.chain == before:
            out[-1].append(layer)
        else:
            out.append([layer])
        before = place.chain
    return out


def bounds(layer: Layer, place: Placement, apart: bool = True) -> tuple[int, int, int]:
    """(end of the host half's part, end of what the device half computes from resident weights, size) as indices along
    the axis of the placement's dimension; (0, 0, 0) where the result has no such axis. `apart`: the device half has a
    memory of its own, so that weights can be streamed.
    """
    axis = axis_of(layer.group, place.dim)
    size, granule = layer.out.shape[axis] if axis is not None else 0, layer.dims.get(place.dim, 1)
    at = cut(size, granule, place.p_cpu) if place.half == SPLIT else 0
    return at, max(at, size - cut(size, granule, place.streamed)) if apart else size, size
