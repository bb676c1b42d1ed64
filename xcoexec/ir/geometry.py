"""Ranges of a layer's result: which axis a split dimension means, and where a share of it is cut."""

from __future__ import annotations

from ..codegen.program import Group
from ..codegen.rules.convolution import convolution

VECTOR = 16  # channels: one vector of the widest instruction set


def axis_of(group: Group, dim: str) -> int | None:
    """The axis of a group's result that "channel" or "rows" means, or None."""
    rank, conv = len(group.out.shape), convolution(group.anchor)
    if conv is not None:
        return conv.result[1] if dim == "channel" else conv.result[2]
    if dim == "channel":
        return rank - 1 if rank else None
    return None if rank < 2 else rank - 2 if rank <= 3 else 1


def block(granule: int, size: int) -> int:
    """Channels that a share should be a multiple of: whole granules, and whole vectors where there are enough of them."""
    return -(-VECTOR // granule) * granule if size >= 2 * VECTOR and granule < VECTOR else granule


def cut(size: int, granule: int, p_cpu: float) -> int:
    """The first index of the device half: `p_cpu` of `size`, in whole granules."""
    blocks = size // granule
    return min(size, max(0, round(p_cpu * blocks)) * granule) if p_cpu < 1 else size
