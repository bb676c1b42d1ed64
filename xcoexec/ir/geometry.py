"""Ranges of a layer's result: which axis a split dimension means, and where a share of it is cut."""

from __future__ import annotations

from ..codegen.program import Group
from ..codegen.rules.convolution import convolution

VECTOR = 16  # channels: one vector of the widest instruction set


def axis_of(group: Group, dim: str) -> int | None:
    """The axis of a group's result that `dim`, "channel", "rows" or "items", means; None where the result has none.

    "channel" is the feature axis of a convolution, else the last axis; "rows" the first spatial axis of a convolution,
    of other results the last axis but one (up to rank 3) or axis 1; "items" the batch of a convolution, else axis 0 of
    two or more.
    """
    rank, conv = len(group.out.shape), convolution(group.anchor)
    if conv is not None:
        return conv.result[{"items": 0, "channel": 1, "rows": 2}[dim]]
    if dim == "channel":
        return rank - 1 if rank else None
    if dim == "items":
        return 0 if rank > 1 else None
    return None if rank < 2 else rank - 2 if rank <= 3 else 1


def block(granule: int, size: int) -> int:
    """Channels that a share of `size` should be a multiple of: whole granules, and whole vectors where there are
    enough.
    """
    return -(-VECTOR // granule) * granule if size >= 2 * VECTOR and granule < VECTOR else granule


def cut(size: int, granule: int, p_cpu: float) -> int:
    """The first index of the device half along an axis of `size`: the host half's share `p_cpu` (0..1) of it, rounded
    to whole granules.
    """
    blocks = size // granule
    return min(size, max(0, round(p_cpu * blocks)) * granule) if p_cpu < 1 else size
