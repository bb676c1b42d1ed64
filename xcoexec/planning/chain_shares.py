"""Which neighbouring layers may be one chain, and what share of each of them a part of its results needs."""

from __future__ import annotations

import functools

from ..codegen.program import Value
from ..codegen.rules.primitives import primitive
from ..ir.geometry import axis_of, block, by_channels, tiles
from ..ir.layers import LayerGraph
from ..ir.placement import divided_axis
from ..ir.words import SUMS
from ..partition.split import part_shares, parts_needed

MAX_CHAIN = 40


class Chains:
    """The chains of a graph: layers `first:last` whose halves exchange nothing until the last result."""

    def __init__(self, graph: LayerGraph):
        self.graph, self.consts = graph, set(graph.program.consts)
        self.shares = functools.lru_cache(None)(self._shares)
        self.read_later = functools.lru_cache(None)(self._read_later)
        owner = graph.home
        self.last_reader = {x.index: x.index for x in graph.layers}
        for x in graph.layers:
            self.last_reader.update((owner[v], x.index) for v in x.ins if v in owner)
        self.last_reader.update((owner[v], len(graph.layers)) for v in graph.program.outputs if v in owner)

    def closed(self, first: int, last: int) -> bool:
        """Whether nobody else reads what lies inside of layers `first:last`."""
        return all(self.last_reader[i] < last for i in range(first, last - 1))

    def grain(self, first: int, last: int, dim: str) -> int | None:
        """The block, in indices, that parts of layers `first:last` along a dimension are multiples of; None where the
        last one has no such dimension, and for sums whose parts the others cannot be followed to.
        """
        layer = self.graph.layers[last - 1]
        size = layer.extent(dim)
        if dim != SUMS:
            granule = layer.dims.get(dim)
            if granule is None or dim != "channel":
                return granule
            return tiles(granule, size) if layer.group.anchor.prim == "dot_general" else block(granule, size)
        follows = lambda grain: 2 * grain <= size and self.needed(first, last, dim, grain) is not None
        return next(filter(follows, self._grains(first, last)), None) if self._adds_up(first, last) else None

    def _adds_up(self, first: int, last: int) -> bool:
        """Whether layers `first:last` end with sums that can be divided, and nobody reads whole what lies before."""
        sums = self.graph.layers[last - 1].sums
        if sums is None or not self.closed(first, last):
            return False
        made = {v for x in self.graph.layers[first : last - 1] for v in x.outs}
        return not any(v in made for op in sums.behind for v in op.value_ins)

    def _grains(self, first: int, last: int) -> list[int]:
        """Blocks that sums may be divided by: tiles or vectors, and what reshapes join to an axis (heads); indices
        where there are few.
        """
        reshapes = (op for x in self.graph.layers[first:last] for op in x.ops if op.prim == "reshape")
        least = tiles(1, self.graph.layers[last - 1].extent(SUMS))
        return [least, *sorted({n for op in reshapes for n in op.ins[0].shape[-1:]} - {1, least})]

    def needed(self, first: int, last: int, dim: str, at: int) -> tuple[dict[int, float], dict[int, float]] | None:
        """(layer -> share of it that the host half computes, the same of the device half) where the last layer and what
        else is read outside of the chain are cut at an index of their axes; None where a layer of the chain cannot be
        followed.
        """
        size = self.graph.layers[last - 1].extent(dim)
        mine, other = self.shares(last, dim, 0, at), self.shares(last, dim, at, size)
        return None if any(i not in mine or i not in other for i in range(first, last)) else (mine, other)

    def results(self, first: int, last: int, dim: str) -> tuple[Value, ...] | None:
        """What layers `first:last` make and others read, the last one's result last; None where some of it cannot be
        divided along the dimension as that one is.
        """
        if dim == SUMS:
            return (self.graph.layers[last - 1].out,) if self._adds_up(first, last) else None
        least, found = self.read_later(last, dim)
        inner = tuple(self.graph.layers[i].out for i in sorted(found) if i >= first)
        return None if first < least else (*inner, self.graph.layers[last - 1].out)

    def read(self, first: int, last: int) -> int:
        """Bytes of what layers `first:last` read and none of them makes, without weights."""
        layers = self.graph.layers[first:last]
        made = {v for x in layers for v in x.outs}
        return sum(v.nbytes for v in {v for x in layers for v in x.ins} - made - self.consts)

    def reads_whole(self, first: int, last: int, dim: str) -> bool:
        """Whether a part of layers `first:last` needs all of the first one's operand, whose sums run over all channels:
        of one that is divided by its channels.
        """
        return by_channels(dim, last - first) and primitive(self.graph.layers[first].group.anchor).contraction

    def _read_later(self, last: int, dim: str) -> tuple[int, dict[int, int]]:
        """(the first layer with which a chain up to layer `last - 1` may begin, {layer before that one whose result is
        read behind it: the axis along which that is divided}).
        """
        layers = self.graph.layers[max(0, last - MAX_CHAIN) : last]
        axis = axis_of(layers[-1].group, dim)
        size = layers[-1].out.shape[axis] if axis is not None else 0
        found: dict[int, int] = {}
        for x in reversed(layers[:-1]):
            if self.last_reader[x.index] < last:
                continue
            own = divided_axis(x, dim, size)
            if own is None:
                return x.index + 1, found
            found[x.index] = own
        return layers[0].index, found

    def _shares(self, last: int, dim: str, start: int, stop: int) -> dict[int, float]:
        """Layer -> share of it that `start:stop` of the results of a chain up to layer `last - 1` needs, as far back as
        that can be followed. A result that others of the chain need in a larger part cannot.
        """
        layers = self.graph.layers[max(0, last - MAX_CHAIN) : last]
        later = self.read_later(last, dim)[1] if dim != SUMS else {}
        wanted = {self.graph.layers[i].out: (own, start, stop) for i, own in later.items()}
        wanted |= layers[-1].requests(dim, start, stop)
        needed = parts_needed([op for x in layers for op in x.ops], wanted)
        known = part_shares(needed)
        followed = lambda x: (
            x.out in known
            and all(op.out in needed for op in x.ops)
            and wanted.get(x.out, needed[x.out]) == needed[x.out]
        )
        found = {x.index: known[x.out] for x in layers if followed(x)}
        return found if dim != SUMS else found | {last - 1: (stop - start) / layers[-1].extent(dim)}


__all__ = ["MAX_CHAIN", "Chains"]
