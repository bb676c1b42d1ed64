"""What a predictor knows of a layer before it runs: for each half the kernels' class, and what their time is made of.

CoDL's predictor (Jia et al., MobiSys 2022, section 4.3) takes the non-linear part of a kernel's time out by counting
the blocks that it really computes, and learns the time of a block by linear regression. The host half's blocks are read
from the step table that the kernels' own rules make; the device half's are tiles of the matrix product that a layer
amounts to, in whole waves over the device's processors.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Collection, Mapping

from ..codegen.program import Group, Op, Value, external
from .features import flops


@dataclasses.dataclass(frozen=True)
class Work:
    """Kernels of one class. Their seconds are a sum over `terms` with learned coefficients, times a correction that is
    learned over `traits` (logarithms of sizes)."""

    kind: str
    terms: tuple[float, ...]
    traits: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Blocks:
    """How a device computes a matrix product: tiles (rows, columns) that kernels may have, processors that compute one
    each.
    """

    tiles: tuple[tuple[int, int], ...]
    processors: int


@dataclasses.dataclass(frozen=True)
class Kernels:
    """What the host half's code generation tells a predictor.

    `work(ops, constants, threads, bytes of the program)`: algorithm -> the work of its steps, the first algorithm
    first; raises `Unsupported`. `gain`: another algorithm replaces the first one below this share of its time.
    """

    work: Callable[[Group, Collection[Value], int, float], Mapping[str, tuple[Work, ...]]]
    gain: float


@functools.lru_cache
def cache_bytes(level: int = 2) -> int:
    """Of one core's L2 cache, or of the L3 that it shares (a virtual machine may show more than it has: at most 32
    MiB).
    """
    least, most = {2: (1 << 18, 1 << 22), 3: (1 << 22, 1 << 25)}[level]
    try:
        return min(max(os.sysconf(f"SC_LEVEL{level}_CACHE_SIZE"), least), most)
    except (ValueError, OSError):
        return 4 * least


def cold(footprint: float) -> float:
    """The share (0..1) of a program's bytes that its next call no longer finds in the L3 cache: from half the cache's
    size on, all at twice.
    """
    return min(max((footprint / cache_bytes(3) - 0.5) / 1.5, 0.0), 1.0)


# -- the device half ---------------------------------------------------------------------------------


def device_work(group: Group, blocks: Blocks) -> Work:
    """Waves of tiles for matrix products, bytes and FLOP for all others."""
    op = group.anchor
    inputs = external(group.ops)
    read, written = sum(v.nbytes for v in inputs), float(group.out.nbytes)
    product = _product(op)
    if product is None:
        work = float(sum(map(flops, group.ops)))
        terms = (1.0, work, float(read), written, *(max(0.0, n - cache_bytes()) for n in (float(read), written)))
        return Work(_other(op), terms, tuple(math.log(max(x, 1.0)) for x in (work, read, written)))
    kind, rows, inner, columns, groups = product
    waves = [
        -(-(-(-rows // a) * -(-columns // b) * groups) // blocks.processors) * a * b * inner for a, b in blocks.tiles
    ]
    weights = float(sum(v.nbytes for v in inputs[1:]))
    data, patches = float(inputs[0].nbytes), 4.0 * rows * inner
    beyond = [max(0.0, n - cache_bytes()) for n in (data, weights, written, patches)]
    terms = (1.0, float(rows * inner * columns * groups), *map(float, waves), patches, data, weights, written, *beyond)
    window, stride = _window(op)
    traits = tuple(math.log(max(x, 1)) for x in (rows, inner, columns, groups, window, stride))
    return Work(kind, terms, traits)


def _product(op: Op) -> tuple[str, int, int, int, int] | None:
    """(class, rows, length of the sums, columns, groups) of the matrix product that an operation amounts to."""
    if op.prim == "dot_general":
        (ac, _), (ab, _) = op.params["dimension_numbers"]
        a, b = op.ins[0].shape, op.ins[1].shape
        groups, inner = math.prod(a[d] for d in ab), math.prod(a[d] for d in ac)
        rows, columns = math.prod(a) // (groups * inner), math.prod(b) // (groups * inner)
        return "vector" if min(rows, columns) == 1 else "dense", rows, inner, columns, groups
    if op.prim != "conv_general_dilated":
        return None
    p, (window, stride) = op.params, _window(op)
    dn, groups = p["dimension_numbers"], p["feature_group_count"]
    channels = op.out.shape[dn.out_spec[1]]
    rows, inner = op.out.size // channels, math.prod(op.ins[1].shape[d] for d in dn.rhs_spec[1:])
    kind = "depthwise" if groups == channels > 1 else "pointwise" if window == stride == 1 else "conv"
    return kind, rows, inner, channels // groups, groups


def _window(op: Op) -> tuple[int, int]:
    """(elements of the window, of a stride) of a convolution."""
    if op.prim != "conv_general_dilated":
        return 1, 1
    return math.prod(op.ins[1].shape[d] for d in op.params["dimension_numbers"].rhs_spec[2:]), math.prod(
        op.params["window_strides"]
    )


def _other(op: Op) -> str:
    return op.prim if op.prim.startswith("reduce_") else "elementwise"


__all__ = ["Blocks", "Kernels", "Work", "cache_bytes", "cold", "device_work"]
