"""Where one layer runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..codegen.program import Value
from .geometry import axis_of, cut
from .layers import Layer, LayerGraph
from .words import SPLIT, SUMS


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where one layer runs. `p_cpu` (0..1) is the host half's share along `dim`; `predicted` seconds.

    Neighbouring split layers with the same `chain` (not 0) exchange nothing between them: the last one's result and the
    others that are read outside of the chain are divided, and each half computes what its parts need. Along "sums" the
    last one is a product, of whose sums each half adds up its part of the indices, from what it has computed itself;
    the device half then adds both and does what is behind the product. `reads`, `writes`: how what the host half takes
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


def divided_axis(layer: Layer, dim: str, size: int) -> int | None:
    """The axis along which a layer's result is divided as one that has `size` indices along `dim`; None where it has no
    such axis, or several results.
    """
    axis = axis_of(layer.group, dim)
    return axis if axis is not None and len(layer.outs) == 1 and layer.out.shape[axis] == size else None


def chain_results(graph: LayerGraph, members: Sequence[Layer], dim: str) -> dict[Value, int | None]:
    """The results of a chain's layers that are read outside of it, the last one's last, and along which axis each is
    divided (None: it cannot be; a chain along "sums" leaves no result that is).
    """
    last = members[-1]
    axis = axis_of(last.group, dim)
    size = last.out.shape[axis] if axis is not None else 0
    whole = last.sums.behind if dim == SUMS and last.sums is not None else ()  # computed from all of what they read
    inside = {op for x in members for op in x.ops} - set(whole)
    outside = lambda v: v in graph.program.outputs or any(r not in inside for r in graph.readers.get(v, []))
    found = {v: divided_axis(x, dim, size) for x in members[:-1] for v in x.outs if outside(v)}
    return found | {last.out: axis}


def bounds(layer: Layer, place: Placement, apart: bool = True) -> tuple[int, int, int]:
    """(end of the host half's part, end of what the device half computes from resident weights, size) as indices along
    the axis of the placement's dimension; (0, 0, 0) where the result has no such axis. `apart`: the device half has a
    memory of its own, so that weights can be streamed.
    """
    size, granule = layer.extent(place.dim), layer.dims.get(place.dim, 1)
    at = cut(size, granule, place.p_cpu) if place.half == SPLIT else 0
    return at, max(at, size - cut(size, granule, place.streamed)) if apart else size, size
