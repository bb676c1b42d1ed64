"""Ranges of a layer: which axis a split dimension means, what a product sums over, and where a share of it is cut."""

from __future__ import annotations

import dataclasses

from ..codegen.program import Group, Op, Value
from ..codegen.rules.convolution import convolution
from .words import SUMS

VECTOR = 16  # channels: one vector of the widest instruction set
TILE, TILES = 128, 8  # of a device's matrix product; a share is a multiple of it where there are so many


def axis_of(group: Group, dim: str) -> int | None:
    """The axis of a group's result that `dim`, "channel", "rows" or "items", means; None where the result has none.

    "channel" is the feature axis of a convolution, else the last axis; "rows" the first spatial axis of a convolution,
    of other results the last axis but one (up to rank 3) or axis 1; "items" the batch of a convolution, else axis 0 of
    two or more; "sums" none.
    """
    if dim == SUMS:
        return None
    rank, conv = len(group.out.shape), convolution(group.anchor)
    if conv is not None:
        axes = dict(zip(("items", "channel", "rows"), conv.result, strict=False))
        return axes.get(dim)
    if dim == "channel":
        return rank - 1 if rank else None
    if dim == "items":
        return 0 if rank > 1 else None
    return None if rank < 2 else rank - 2 if rank <= 3 else 1


def by_channels(dim: str, layers: int) -> bool:
    """Whether parts of so many layers along a dimension begin with channels of the first one: those of a product need
    all that it reads.
    """
    return dim == "channel" or (dim == SUMS and layers > 1)


@dataclasses.dataclass(frozen=True, eq=False)
class Sums:
    """A product whose sums can be divided: over `size` indices along `axes`, one of each of both `operands`, which the
    operations `before` make. `behind`: the layer's operations that need the whole sums.
    """

    anchor: Op
    operands: tuple[Value, Value]
    axes: tuple[int, int]
    size: int
    before: tuple[Op, ...]
    behind: tuple[Op, ...]

    def requests(self, start: int, stop: int) -> dict[Value, tuple[int, int, int]]:
        """Operand -> (axis, `start`, `stop`): what the sums over a part of the indices need of it."""
        return {v: (axis, start, stop) for v, axis in zip(self.operands, self.axes, strict=True)}


def sums_of(group: Group) -> Sums | None:
    """The sums of a layer that is a product with float32 results (narrower ones would round each half's); None of
    another one, and where others read what is computed before the product.
    """
    op = group.anchor
    if op.prim != "dot_general" or op.out.dtype != "float32" or op.ins[0] is op.ins[1]:
        return None
    (left, right), _ = op.params["dimension_numbers"]
    a, b = op.ins
    if not left or not isinstance(a, Value) or not isinstance(b, Value):
        return None
    needed, before = set(op.value_ins), list[Op]()
    for x in reversed(group.ops[: group.ops.index(op)]):
        if needed & set(x.outs):
            before.insert(0, x)
            needed |= set(x.value_ins)
    made = {v for x in before for v in x.outs}
    behind = tuple(x for x in group.ops if x is not op and x not in before)
    if made & {*group.also, *(v for x in behind for v in x.value_ins)}:
        return None
    axes = min(zip(left, right, strict=True))  # of several the first one: heads, and not their features
    return Sums(op, (a, b), axes, a.shape[axes[0]], tuple(before), behind)


def block(granule: int, size: int) -> int:
    """Channels that a share of `size` should be a multiple of: whole granules, and whole vectors where there are
    enough.
    """
    return -(-VECTOR // granule) * granule if size >= 2 * VECTOR and granule < VECTOR else granule


def tiles(granule: int, size: int) -> int:
    """The same of a matrix product's indices: whole tiles of a device where there are many, so that neither half of a
    product begins a tile that it does not fill.
    """
    own = block(granule, size)
    return TILE if size >= TILE * TILES and TILE % own == 0 else own


def cut(size: int, granule: int, p_cpu: float) -> int:
    """The first index of the device half along an axis of `size`: the host half's share `p_cpu` (0..1) of it, rounded
    to whole granules.
    """
    blocks = size // granule
    return min(size, max(0, round(p_cpu * blocks)) * granule) if p_cpu < 1 else size
