"""What a predictor knows of a layer before it runs: for each half the kernels' class, and what their time is made of.

CoDL's predictor (Jia et al., MobiSys 2022, section 5.2, Equation 3 and Table 1) takes the non-linear part of a kernel's
time out by counting the blocks that it really computes, and learns the time of a block by linear regression. The terms
here are others than its (H, W, IC, OC), and what they leave is interpolated. The host half's blocks are read
from the step table that the kernels' own rules make; the device half's are tiles of the matrix product that a layer
amounts to, in whole waves over the device's processors.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Collection, Mapping

from ..codegen.program import Group, Value, external
from ..codegen.rules.primitives import primitive
from .features import flops


@dataclasses.dataclass(frozen=True)
class Work:
    """Kernels of one class. Their seconds are a sum over `terms` with learned coefficients, times a correction that is
    learned over `traits` (logarithms of sizes).
    """

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

    `work(group, constants, threads, bytes of the program)`: algorithm -> the work of its steps, the first algorithm
    first; raises `Unsupported`. `gain`: another algorithm replaces the first one below this share of its time.
    """

    work: Callable[[Group, Collection[Value], int, float], Mapping[str, tuple[Work, ...]]]
    gain: float


@functools.lru_cache
def cache_bytes(level: int = 2) -> int:
    """Bytes of one core's L2 cache, or of the L3 that it shares (`level`: 2 or 3; a virtual machine may show more than
    it has: at most 32 MiB).
    """
    least, most = {2: (1 << 18, 1 << 22), 3: (1 << 22, 1 << 25)}[level]
    try:
        return min(max(os.sysconf(f"SC_LEVEL{level}_CACHE_SIZE"), least), most)
    except (ValueError, OSError):
        return 4 * least


def cold(footprint: float) -> float:
    """The share (0..1) of a program's `footprint` bytes that its next call no longer finds in the L3 cache: from half
    the cache's size on, all at twice.
    """
    return min(max((footprint / cache_bytes(3) - 0.5) / 1.5, 0.0), 1.0)


# -- the device half ---------------------------------------------------------------------------------


def device_work(group: Group, blocks: Blocks) -> Work:
    """Waves of tiles for matrix products, bytes and FLOP for all others."""
    op = group.anchor
    inputs = external(group.ops)
    read, written = sum(v.nbytes for v in inputs), float(sum(v.nbytes for v in group.outs))
    rule = primitive(op).matrix
    if rule is None:
        work = float(sum(map(flops, group.ops)))
        terms = (1.0, work, float(read), written, *(max(0.0, n - cache_bytes()) for n in (float(read), written)))
        return Work(primitive(op).model, terms, tuple(math.log(max(x, 1.0)) for x in (work, read, written)))
    m = rule(op)
    waves = [
        -(-(-(-m.rows // a) * -(-m.columns // b) * m.groups) // blocks.processors) * a * b * m.inner
        for a, b in blocks.tiles
    ]
    weights = float(sum(v.nbytes for v in inputs[1:]))
    data, patches = float(inputs[0].nbytes), 4.0 * m.rows * m.inner
    beyond = [max(0.0, n - cache_bytes()) for n in (data, weights, written, patches)]
    terms = (
        1.0,
        float(m.rows * m.inner * m.columns * m.groups),
        *map(float, waves),
        patches,
        data,
        weights,
        written,
        *beyond,
    )
    traits = tuple(math.log(max(x, 1)) for x in (m.rows, m.inner, m.columns, m.groups, m.window, m.stride))
    return Work(m.kind, terms, traits)


__all__ = ["Blocks", "Kernels", "Work", "cache_bytes", "cold", "device_work"]
